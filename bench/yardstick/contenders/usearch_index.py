"""usearch: HNSW over vectors, saved as one file and mapped."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from usearch.index import Index

from yardstick.contender import Contender
from yardstick.vectors import Vectors
from yardstick.workload import Batch


class Usearch(Contender):
    packages = ("usearch",)
    imports = "usearch.index"
    setup = "float32, connectivity 16, expansion_add 128; saved as a file and mapped; ids"
    modes = frozenset({"vector"})
    can: ClassVar[frozenset[str]] = frozenset({"threads"})
    efforts = (64, 128, 256, 512, 1024)

    def open(self) -> None:
        self._index = Index(
            ndim=self.dim, metric="cos", dtype="f32", connectivity=16, expansion_add=128
        )
        if self.folder.exists():
            self._index.view(str(self.folder / "index"))

    def close(self) -> None:
        self._index.reset()

    def add(self, batch: Batch) -> None:
        self._index.add(np.array(batch.rows), batch.vectors)

    def finish(self, n: int) -> None:
        self.folder.mkdir()
        self._index.save(str(self.folder / "index"))

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        self._index.expansion_search = self.effort
        return self._index.search(vector, k).keys
