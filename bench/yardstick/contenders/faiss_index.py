"""faiss on the CPU: exact, HNSW and inverted lists; an index in memory, saved as one file."""

from __future__ import annotations

from typing import Any, ClassVar

import faiss
import numpy as np

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, TABLES, Columns, Filter, mask_of
from yardstick.vectors import Vectors
from yardstick.workload import Batch

_TRAINED_BY = 100_000


class _Faiss(Contender):
    """Metadata are columns beside the index; a filter is a bitmap made for it, untimed."""

    packages = ("faiss-cpu",)
    imports = "faiss"
    modes = frozenset({"vector"})
    can: ClassVar[frozenset[str]] = frozenset({"threads"})

    def make(self, n: int) -> Any:
        raise NotImplementedError

    def parameters(self) -> Any:
        return None

    def open(self) -> None:
        self._parts: list[Vectors] = []
        self._columns: list[Columns] = []
        self.folder.mkdir(exist_ok=True)
        if (self.folder / "index").exists():
            self._index = faiss.read_index(str(self.folder / "index"))
            with np.load(self.folder / "columns.npz") as held:
                observed = held["observed"]
                codes = {name: held[name] for name in SINGLE_VALUED}
            nothing = np.zeros(0, np.int32)
            self._columns = [Columns(codes, np.zeros(1, np.int64), nothing, observed)]

    def close(self) -> None:
        return

    def add(self, batch: Batch) -> None:
        self._parts.append(batch.vectors)
        self._columns.append(batch.columns)

    def finish(self, n: int) -> None:
        self._index = self.make(n)
        if not self._index.is_trained:
            sample = np.concatenate(self._parts[: -(-_TRAINED_BY // self.batch_rows)])
            self._index.train(sample)
        for part in self._parts:
            self._index.add(np.ascontiguousarray(part))
        self._parts.clear()
        faiss.write_index(self._index, str(self.folder / "index"))
        codes = {
            name: np.concatenate([part.codes[name] for part in self._columns])
            for name in SINGLE_VALUED
        }
        observed = np.concatenate([part.observed_s for part in self._columns])
        np.savez(self.folder / "columns.npz", observed=observed, **codes)  # type: ignore[arg-type]

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        parameters = self.parameters()
        if filter is not None:
            parameters.sel = filter[0]
        rows = self._index.search(vector[None, :], k, params=parameters)[1][0]
        return rows[rows >= 0]

    def prepare(self, filter: Filter) -> Any:
        if filter.name == "none":
            return None
        assert filter.field is None or filter.field in TABLES
        bits = np.packbits(mask_of(filter, self._columns[0]), bitorder="little")
        # The selector points into the bits.
        return faiss.IDSelectorBitmap(bits), bits


class FaissFlat(_Faiss):
    setup = "IndexFlatIP; in memory, saved as a file; filters as bitmaps made beforehand; ids"

    def make(self, n: int) -> Any:
        return faiss.IndexFlatIP(self.dim)

    def parameters(self) -> Any:
        return faiss.SearchParameters()


class FaissHnsw(_Faiss):
    setup = "IndexHNSWFlat M 32, efConstruction 100; in memory; bitmaps made beforehand; ids"
    efforts = (32, 64, 128, 256, 512, 1024)

    def make(self, n: int) -> Any:
        index = faiss.IndexHNSWFlat(self.dim, 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 100
        return index

    def parameters(self) -> Any:
        return faiss.SearchParametersHNSW(efSearch=self.effort)


class FaissIvf(_Faiss):
    setup = "IndexIVFFlat, 4 sqrt(n) lists; in memory; bitmaps made beforehand; ids"
    efforts = (4, 8, 16, 32, 64, 128, 256, 512)

    def make(self, n: int) -> Any:
        n_lists = max(16, min(int(4 * n**0.5), n // 39))
        coarse = faiss.IndexFlatIP(self.dim)
        return faiss.IndexIVFFlat(coarse, self.dim, n_lists, faiss.METRIC_INNER_PRODUCT)

    def parameters(self) -> Any:
        return faiss.SearchParametersIVF(nprobe=self.effort)
