"""bm25s: BM25 scores computed when indexing, kept as a sparse matrix."""

from __future__ import annotations

from typing import Any

import bm25s
import Stemmer

from yardstick.contender import Contender
from yardstick.vectors import Vectors
from yardstick.workload import Batch


class Bm25s(Contender):
    packages = ("bm25s", "PyStemmer", "numba")
    imports = "bm25s"
    setup = "numba backend, English stemmer, index mapped; built at once, nothing stored"
    modes = frozenset({"keyword"})

    def open(self) -> None:
        self._stemmer = Stemmer.Stemmer("english")
        self._texts: list[str] = []
        if self.folder.exists():
            self._index = bm25s.BM25.load(self.folder, mmap=True)
            self._index.backend = "numba"
            self._index.activate_numba_scorer()

    def close(self) -> None:
        self._texts = []

    def add(self, batch: Batch) -> None:
        self._texts += batch.texts

    def finish(self, n: int) -> None:
        tokens = bm25s.tokenize(
            self._texts, stopwords=None, stemmer=self._stemmer, show_progress=False
        )
        self._index = bm25s.BM25(k1=1.2, b=0.75, backend="numba")
        self._index.index(tokens, show_progress=False)
        self._index.save(self.folder)

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        tokens = bm25s.tokenize(
            text, stopwords=None, stemmer=self._stemmer, show_progress=False, return_ids=False
        )
        rows, scores = self._index.retrieve(tokens, k=k, show_progress=False, n_threads=0)
        return rows[0][scores[0] > 0]
