"""zvec: HNSW over vectors, a full-text index, and inverted indexes of the metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import zvec

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Texts

_POOL = 100


class Zvec(Contender):
    packages = ("zvec",)
    imports = "zvec"
    setup = "HNSW m 16, ef_construction 100; full-text index; log, no flush per write; ids"
    can: ClassVar[frozenset[str]] = frozenset(
        {"get", "store", "store_many", "threads", "forget", "compact"}
    )
    batch_rows = 1_000
    efforts = (64, 128, 256, 512, 1024)

    def open(self) -> None:
        zvec.init(log_type=zvec.LogType.CONSOLE, log_level=zvec.LogLevel.ERROR)
        if self.folder.exists():
            self._held = zvec.open(str(self.folder))
            return
        inverted = zvec.InvertIndexParam()
        kinds = zvec.DataType
        fields = [zvec.FieldSchema(n, kinds.STRING, True, inverted) for n in SINGLE_VALUED]
        words = zvec.FtsIndexParam(filters=["lowercase", "stemmer"])
        spans = zvec.InvertIndexParam(enable_range_optimization=True)
        fields += [
            zvec.FieldSchema("text", kinds.STRING, False, words),
            zvec.FieldSchema("tag", kinds.ARRAY_STRING, True, inverted),
            zvec.FieldSchema("above", kinds.ARRAY_STRING, True, inverted),
            zvec.FieldSchema("observed", kinds.INT64, True, spans),
        ]
        graph = zvec.HnswIndexParam(zvec.MetricType.IP, 16, 100)
        vectors = zvec.VectorSchema("embedding", kinds.VECTOR_FP32, self.dim, graph)
        schema = zvec.CollectionSchema("items", fields, vectors)
        self._held = zvec.create_and_open(str(self.folder), schema)

    def close(self) -> None:
        self._held.flush()
        self._held.close()

    def add(self, batch: Batch) -> None:
        columns = {name: batch.values(name) for name in SINGLE_VALUED}
        tags, observed = batch.tags(), batch.observed()
        documents = []
        for i, (row, text) in enumerate(zip(batch.rows, batch.texts, strict=True)):
            parts = str(columns["namespace"][i]).split("/")
            above = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
            fields: dict[str, Any] = {name: values[i] for name, values in columns.items()}
            fields |= {"text": text, "tag": tags[i], "above": above, "observed": observed[i]}
            known = {name: value for name, value in fields.items() if value is not None}
            vectors = {"embedding": batch.vectors[i]}
            documents.append(zvec.Doc(id=str(row), vectors=vectors, fields=known))
        for status in self._held.insert(documents):
            assert status.ok(), status.message()

    def finish(self, n: int) -> None:
        self._held.flush()
        self._held.optimize()
        assert self._held.stats.doc_count == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        near = zvec.HnswQueryParam(ef=self.effort)
        meaning = zvec.Query("embedding", vector=vector, param=near)
        words = zvec.Query("text", fts=zvec.Fts(match_string=text))
        if mode == "hybrid":
            legs, blend = [meaning, words], zvec.RrfReRanker(60)
            return self._held.query(legs, topk=k, filter=filter, output_fields=[], reranker=blend)
        query = meaning if mode == "vector" else words
        return self._held.query(query, topk=k, filter=filter, output_fields=[])

    def rows(self, found: Sequence[Any], texts: Texts) -> list[int]:
        return [int(document.id) for document in found]

    def prepare(self, filter: Filter) -> str | None:
        if filter.name == "none":
            return None
        if filter.field is not None:
            return f"{filter.field} = '{filter.value}'"
        if filter.reach is not None:
            above = ", ".join(f"'{node}'" for node in filter.ancestors())
            return f"above contain_any ('{filter.reach}') or namespace in ({above})"
        return f"observed >= {filter.after_s} and observed < {filter.before_s}"

    def ids(self, rows: Sequence[int]) -> list[str]:
        return [str(row) for row in rows]

    def get(self, ids: list[str]) -> Sequence[Any]:
        return list(self._held.fetch(ids, include_vector=False).values())

    def store(self, batch: Batch) -> None:
        self.add(batch)

    def forget(self, filter: str) -> None:
        self._held.delete_by_filter(filter)
        self._held.flush()

    def compact(self) -> None:
        self._held.optimize()
