"""LanceDB: a columnar table with a vector index, a full-text index and scalar indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import lancedb
import pyarrow as pa
from lancedb.rerankers import RRFReranker

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch

_BITMAPS = ("kind", "source", "language", "thread", "namespace")
_TREES = ("source_id", "folder", "row", "observed")
_LIST = pa.list_(pa.string())


class LanceDB(Contender):
    packages = ("lancedb", "pyarrow")
    imports = "lancedb"
    setup = "IVF_HNSW_SQ, native full-text index, bitmap, list and tree indexes; no fsync; ids"
    can: ClassVar[frozenset[str]] = frozenset(
        {"get", "page", "store", "store_many", "threads", "forget", "compact"}
    )
    efforts = (1, 2, 4, 8, 16)
    """Refine factors: so many times k are scored exactly."""

    def open(self) -> None:
        self._db = lancedb.connect(str(self.folder))
        fields = [("row", pa.int64()), ("text", pa.string())]
        fields += [(name, pa.string()) for name in SINGLE_VALUED]
        fields += [("observed", pa.int64()), ("tag", _LIST), ("above", _LIST)]
        fields += [("vector", pa.list_(pa.float32(), self.dim))]
        self._schema = pa.schema(fields)
        self._table = self._db.create_table("items", schema=self._schema, exist_ok=True)
        self._blend = RRFReranker()

    def close(self) -> None:
        return

    def add(self, batch: Batch) -> None:
        namespaces = [str(namespace).split("/") for namespace in batch.values("namespace")]
        columns: dict[str, Any] = {name: batch.values(name) for name in SINGLE_VALUED}
        columns |= {
            "row": list(batch.rows),
            "text": batch.texts,
            "observed": batch.observed(),
            "tag": batch.tags(),
            "above": [["/".join(n[: d + 1]) for d in range(len(n))] for n in namespaces],
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(batch.vectors.reshape(-1), pa.float32()), self.dim
            ),
        }
        self._table.add(pa.Table.from_pydict(columns, self._schema))

    def finish(self, n: int) -> None:
        self._table.optimize()
        self._table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")
        self._table.create_fts_index("text", remove_stop_words=False)
        for name in _BITMAPS:
            self._table.create_scalar_index(name, index_type="BITMAP")
        for name in _TREES:
            self._table.create_scalar_index(name, index_type="BTREE")
        for name in ("tag", "above"):
            self._table.create_scalar_index(name, index_type="LABEL_LIST")
        assert self._table.count_rows() == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        table = self._table
        if mode == "vector":
            query = self._near(table.search(vector))
        elif mode == "keyword":
            query = table.search(text, query_type="fts")
        else:
            query = self._near(table.search(query_type="hybrid").vector(vector).text(text))
            query = query.rerank(self._blend)
        if filter is not None:
            query = query.where(filter)
        if mode != "hybrid":
            query = query.select(["row", "_distance" if mode == "vector" else "_score"])
        return query.limit(k).to_arrow()["row"].to_pylist()

    def _near(self, query: Any) -> Any:
        return query.metric("cosine").nprobes(20).refine_factor(self.effort)

    def prepare(self, filter: Filter) -> str | None:
        if filter.name == "none":
            return None
        if filter.field is not None:
            return f"{filter.field} = '{filter.value}'"
        if filter.reach is not None:
            above = ", ".join(f"'{node}'" for node in filter.ancestors())
            return f"array_has(above, '{filter.reach}') OR namespace IN ({above})"
        return f"observed >= {filter.after_s} AND observed < {filter.before_s}"

    def get(self, ids: Sequence[int]) -> Any:
        return self._whole(f"row IN ({', '.join(map(str, ids))})", len(ids), 0)

    def page(self, place: int, size: int, filter: str | None) -> list[int]:
        rows: list[int] = self._whole(filter, size, place)["row"].to_pylist()
        return rows

    def _whole(self, filter: str | None, limit: int, offset: int) -> Any:
        columns = [name for name in self._schema.names if name != "vector"]
        query = self._table.search().select(columns).limit(limit).offset(offset)
        return (query.where(filter) if filter else query).to_arrow()

    def store(self, batch: Batch) -> None:
        self.add(batch)

    def forget(self, filter: str) -> int | None:
        before = self._table.count_rows()
        self._table.delete(filter)
        return int(before - self._table.count_rows())

    def compact(self) -> None:
        self._table.optimize()
