"""colmem through its public interface, durable as it is by default, vectors given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import colmem
from colmem.contract import Facet, Hit, MetaFilter, Reach, StoreItem
from yardstick.contender import Contender
from yardstick.metadata import TABLES, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Texts

_FIELDS = {
    "namespace": "namespace",
    "kind": "kind",
    "source": "source_kind",
    "source_id": "source_id",
    "language": "language",
    "thread": "thread_id",
    "folder": "folder",
}


class GivenVectors:
    """An embedder that knows the vector of every text it is asked about."""

    key = "yardstick-256"

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.known: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str], /) -> Vectors:
        return np.array([self.known[text] for text in texts], np.float32)


class Colmem(Contender):
    packages = ("colmem", "duckdb", "tantivy", "numba", "pyarrow", "numpy")
    imports = "colmem"
    setup = "ingest_arrow with embeddings; whole items returned; every write durable on return"
    can: ClassVar[frozenset[str]] = frozenset(
        {"explore", "get", "page", "store", "store_many", "threads", "writers", "forget", "compact"}
    )
    returns = "items"

    def open(self) -> None:
        self._embedder = GivenVectors(self.dim)
        self._engine = colmem.open(self.folder, embedder=self._embedder)

    def close(self) -> None:
        self._engine.close()

    def add(self, batch: Batch) -> None:
        self._engine.ingest_arrow(_table(batch, self.dim))

    def finish(self, n: int) -> None:
        # A ranked read brings the lexical index level.
        self._embedder.known["level"] = np.ones(self.dim, np.float32)
        self._engine.fetch(query="level", mode="hybrid", limit=1)
        assert self._engine.explore(facet=Facet.KIND).total == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        self._embedder.known[text] = vector
        return self._engine.fetch(
            query=text, mode=mode, filter=filter or MetaFilter(), limit=k
        ).hits

    def rows(self, found: list[Hit], texts: Texts) -> list[int]:
        return texts.rows_of([hit.text for hit in found])

    def prepare(self, filter: Filter) -> MetaFilter:
        if filter.reach is not None:
            return MetaFilter(reach=Reach(at=filter.reach, inherit=True, descendants=True))
        if filter.field == "thread":
            return MetaFilter(thread_id=filter.value)
        if filter.field is not None:
            return MetaFilter(**{filter.field: filter.value})  # type: ignore[arg-type]
        return MetaFilter(
            observed_after=None if filter.after_s is None else _instant(filter.after_s),
            observed_before=None if filter.before_s is None else _instant(filter.before_s),
        )

    def explore(self, facet: str, filter: MetaFilter, limit: int) -> Mapping[str, int]:
        page = self._engine.explore(facet=Facet(facet), filter=filter, limit=limit)
        return {bucket.value: bucket.count for bucket in page.buckets}

    def ids(self, rows: Sequence[int]) -> list[str]:
        found = self._engine.sql(f"SELECT id FROM items WHERE row IN ({','.join(map(str, rows))})")
        ids: list[str] = found["id"].to_pylist()
        return ids

    def get(self, ids: list[str]) -> list[Hit]:
        return self._engine.get(ids=ids)

    def place(self, page: int, size: int, filter: MetaFilter) -> str | None:
        cursor = None
        for first in range(0, page * size, 10_000):
            n = min(10_000, page * size - first)
            cursor = self._engine.list(limit=n, cursor=cursor, filter=filter).next_cursor
        return cursor

    def page(self, place: str | None, size: int, filter: MetaFilter) -> list[Hit]:
        return self._engine.list(limit=size, cursor=place, filter=filter).items

    def store(self, batch: Batch) -> None:
        self._embedder.known.update(zip(batch.texts, batch.vectors, strict=True))
        items = [*_items(batch)]
        if len(items) == 1:
            self._engine.store(items[0])
        else:
            self._engine.store_many(items)

    def forget(self, filter: MetaFilter) -> int:
        return self._engine.forget(filter=filter).forgotten

    def compact(self) -> None:
        self._engine.compact()


def _table(batch: Batch, dim: int) -> pa.RecordBatch:
    columns = {"text": pa.array(batch.texts, pa.string())}
    for name, field in _FIELDS.items():
        codes = pa.array(batch.columns.codes[name], mask=batch.columns.codes[name] < 0)
        columns[field] = pa.array(TABLES[name], pa.string()).take(codes)
    seconds = batch.columns.observed_s
    columns["observed_at"] = pa.array(seconds, pa.timestamp("s", "UTC"), mask=seconds < 0)
    columns["tags"] = pa.ListArray.from_arrays(
        pa.array(batch.columns.tag_offsets, pa.int32()),
        pa.array(TABLES["tag"], pa.string()).take(pa.array(batch.columns.tags)),
    )
    flat = pa.array(batch.vectors.reshape(-1), pa.float32())
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, dim)
    return pa.RecordBatch.from_pydict(columns)


def _items(batch: Batch) -> list[StoreItem]:
    values = {name: batch.values(name) for name in _FIELDS}
    items: list[StoreItem] = []
    for i, (text, tags, at) in enumerate(
        zip(batch.texts, batch.tags(), batch.observed(), strict=True)
    ):
        meta = colmem.MemoryMeta(
            namespace=values["namespace"][i] or "root",
            source=colmem.SourceRef(values["source"][i] or "agent", values["source_id"][i]),
            language=values["language"][i],
            thread_id=values["thread"][i],
            folder=values["folder"][i],
            tags=tags,
            observed_at=None if at is None else _instant(at),
        )
        if values["kind"][i] == "learning":
            items.append(colmem.learning(text, meta=meta))
        else:
            items.append(colmem.document(text, meta=meta))
    return items


def _instant(seconds: int) -> colmem.Timestamp:
    return colmem.Timestamp(seconds, 0)
