"""Chroma, embedded: HNSW over vectors; texts can be filtered, not ranked, by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import chromadb

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Texts


class Chroma(Contender):
    packages = ("chromadb",)
    imports = "chromadb"
    setup = "PersistentClient, HNSW max_neighbors 16, ef_construction 100, cosine; ids"
    modes = frozenset({"vector"})
    can: ClassVar[frozenset[str]] = frozenset(
        {"get", "page", "store", "store_many", "threads", "forget"}
    )
    efforts = (100, 200, 400, 800)

    def open(self) -> None:
        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(self.folder), settings)
        graph = {"space": "cosine", "ef_construction": 100, "max_neighbors": 16}
        self._held = self._client.get_or_create_collection(
            "items", configuration={"hnsw": {**graph, "ef_search": 100}}, embedding_function=None
        )
        self._effort_set = 100

    def close(self) -> None:
        self._client.close()

    def add(self, batch: Batch) -> None:
        columns = {name: batch.values(name) for name in SINGLE_VALUED}
        tags, observed = batch.tags(), batch.observed()
        metadatas = []
        for i in range(len(batch)):
            fields: dict[str, Any] = {name: values[i] for name, values in columns.items()}
            parts = str(fields["namespace"]).split("/")
            fields["above"] = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
            fields["observed"] = observed[i]
            fields["tag"] = tags[i] or None
            metadatas.append({n: value for n, value in fields.items() if value is not None})
        ids = [str(row) for row in batch.rows]
        self._held.add(ids, batch.vectors, metadatas, batch.texts)

    def finish(self, n: int) -> None:
        assert self._held.count() == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        if self.effort != self._effort_set:
            self._held.modify(configuration={"hnsw": {"ef_search": self.effort}})
            self._effort_set = self.effort
        return self._held.query(vector, n_results=k, where=filter, include=[])["ids"][0]

    def rows(self, found: Any, texts: Texts) -> list[int]:
        return [int(id) for id in found]

    def prepare(self, filter: Filter) -> Any:
        if filter.name == "none":
            return None
        if filter.field is not None:
            return {filter.field: filter.value}
        if filter.reach is not None:
            below = {"above": {"$contains": filter.reach}}
            return {"$or": [below, {"namespace": {"$in": filter.ancestors()}}]}
        after, before = {"$gte": filter.after_s}, {"$lt": filter.before_s}
        return {"$and": [{"observed": after}, {"observed": before}]}

    def ids(self, rows: Sequence[int]) -> list[str]:
        return [str(row) for row in rows]

    def get(self, ids: list[str]) -> Any:
        return self._held.get(ids)["ids"]

    def page(self, place: int, size: int, filter: Any) -> Any:
        return self._held.get(where=filter, limit=size, offset=place)["ids"]

    def store(self, batch: Batch) -> None:
        self.add(batch)

    def forget(self, filter: Any) -> None:
        self._held.delete(where=filter)
