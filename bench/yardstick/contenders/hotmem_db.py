"""HotMem: memories in SQLite with full-text search; cosines are computed in Python, row by row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from hotmem.db import MemoryDB, MemoryRecord
from hotmem.embed import EmbeddingDescriptor, pack_embedding
from hotmem.search import search_memories

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED
from yardstick.vectors import Vectors
from yardstick.workload import Batch


class _GivenVector:
    """An embedder that answers with the vector of the query at hand."""

    def __init__(self, dim: int) -> None:
        self.descriptor = EmbeddingDescriptor("yardstick", "given", dim)
        self.vector: list[float] = []

    def embed(self, text: str) -> list[float]:
        return self.vector


class HotMem(Contender):
    packages = ("hotmem",)
    imports = "hotmem.db, hotmem.search"
    setup = "MemoryDB and search_memories, without the optional vector index; whole memories"
    can: ClassVar[frozenset[str]] = frozenset({"get", "store", "store_many"})
    returns = "items"

    def open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._db = MemoryDB(self.folder / "memories.db")
        self._embedder = _GivenVector(self.dim)

    def close(self) -> None:
        self._db.close()

    def add(self, batch: Batch) -> None:
        self._db.insert_many_ignore(self._records(batch))

    def _records(self, batch: Batch) -> list[MemoryRecord]:
        columns = {name: batch.values(name) for name in SINGLE_VALUED}
        tags = batch.tags()
        model = self._embedder.descriptor.key
        records = []
        for i, (row, text) in enumerate(zip(batch.rows, batch.texts, strict=True)):
            fields = {name: values[i] for name, values in columns.items()}
            records.append(
                MemoryRecord(
                    id=str(row),
                    identifier=str(row),
                    fact_text=text,
                    embedding=pack_embedding(batch.vectors[i].tolist()),
                    embedding_dim=self.dim,
                    embedding_model=model,
                    source=str(fields["source"]),
                    metadata_json=json.dumps(fields),
                    content_hash=str(row),
                    namespace=str(fields["namespace"]),
                    tags=json.dumps(tags[i]),
                )
            )
        return records

    def finish(self, n: int) -> None:
        assert self._db.count() == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        if mode == "keyword":
            return [row["id"] for row in self._db.fts_search(text)[:k]]
        listed = vector.tolist()
        if mode == "vector":
            model = self._embedder.descriptor.key
            query = pack_embedding(listed)
            found = self._db.search_with_cosine(query, embedding_model=model)
            return [row["id"] for row in found[:k]]
        self._embedder.vector = listed
        hits = search_memories(self._db, text, k, embedder=self._embedder)
        return [hit["memory_id"] for hit in hits]

    def ids(self, rows: Sequence[int]) -> list[str]:
        return [str(row) for row in rows]

    def get(self, ids: list[str]) -> list[Any]:
        return [self._db.get_memory(id) for id in ids]

    def store(self, batch: Batch) -> None:
        self._db.insert_many_ignore(self._records(batch))
