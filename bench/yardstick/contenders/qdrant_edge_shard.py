"""Qdrant Edge: HNSW over vectors, BM25 over a text index of the payload, payload indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import qdrant_edge as qe

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Texts

_KEYWORDS = (*SINGLE_VALUED, "above", "tag")
_POOL = 100


class QdrantEdge(Contender):
    packages = ("qdrant-edge-py",)
    imports = "qdrant_edge"
    setup = "HNSW m 16, ef_construct 100; BM25 text index; log, no flush per write; ids"
    can: ClassVar[frozenset[str]] = frozenset(
        {"explore", "get", "page", "store", "store_many", "threads", "forget", "compact"}
    )
    batch_rows = 1_000
    efforts = (32, 64, 128, 256, 512, 1024)

    def open(self) -> None:
        if self.folder.exists():
            self._shard = qe.EdgeShard.load(str(self.folder))
            return
        self.folder.mkdir()
        vector = qe.EdgeVectorParams(size=self.dim, distance=qe.Distance.Cosine)
        hnsw = qe.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10_000)
        config = qe.EdgeConfig(vectors=vector, hnsw_config=hnsw)
        self._shard = qe.EdgeShard.create(str(self.folder), config)
        index = qe.UpdateOperation.create_field_index
        for name in _KEYWORDS:
            self._shard.update(index(name, qe.PayloadSchemaType.Keyword))
        self._shard.update(index("observed", qe.PayloadSchemaType.Integer))
        english = qe.SnowballParams(qe.SnowballLanguage.English)
        words = qe.TextIndexParams(
            tokenizer=qe.TokenizerType.Word, lowercase=True, stemmer=english, scoring=True
        )
        self._shard.update(index("text", words))

    def close(self) -> None:
        self._shard.flush()
        self._shard.close()

    def add(self, batch: Batch) -> None:
        columns = {name: batch.values(name) for name in SINGLE_VALUED}
        rest = zip(batch.rows, batch.vectors.tolist(), batch.texts, strict=True)
        tags, observed = batch.tags(), batch.observed()
        points = []
        for i, (row, vector, text) in enumerate(rest):
            payload: dict[str, Any] = {"text": text, "tag": tags[i]}
            payload |= {n: values[i] for n, values in columns.items() if values[i] is not None}
            if observed[i] is not None:
                payload["observed"] = observed[i]
            parts = str(columns["namespace"][i]).split("/")
            payload["above"] = ["/".join(parts[: d + 1]) for d in range(len(parts))]
            points.append(qe.Point(row, vector, payload))
        self._shard.update(qe.UpdateOperation.upsert_points(points))

    def finish(self, n: int) -> None:
        self._shard.optimize()
        self._shard.flush()
        assert self._shard.count(qe.CountRequest(exact=True)) == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        near = qe.SearchParams(hnsw_ef=self.effort)
        meaning = qe.Query.Nearest(vector.tolist())
        words = qe.TextQuery("text", text)
        if mode == "vector":
            request = qe.QueryRequest(limit=k, query=meaning, filter=filter, params=near)
        elif mode == "keyword":
            request = qe.QueryRequest(limit=k, query=words, filter=filter)
        else:
            legs = [
                qe.Prefetch(limit=_POOL, query=meaning, filter=filter, params=near),
                qe.Prefetch(limit=_POOL, query=words, filter=filter),
            ]
            request = qe.QueryRequest(limit=k, query=qe.Fusion.Rrf(k=60), prefetches=legs)
        return self._shard.query(request)

    def rows(self, found: Sequence[Any], texts: Texts) -> list[int]:
        return [point.id for point in found]

    def prepare(self, filter: Filter) -> Any:
        if filter.name == "none":
            return None
        if filter.field is not None:
            return qe.Filter(must=[_is(filter.field, qe.MatchValue(filter.value))])
        if filter.reach is not None:
            below = _is("above", qe.MatchValue(filter.reach))
            above = _is("namespace", qe.MatchAny(filter.ancestors()))
            return qe.Filter(should=[below, above])
        span = qe.RangeFloat(gte=filter.after_s, lt=filter.before_s)
        return qe.Filter(must=[qe.FieldCondition("observed", range=span)])

    def explore(self, facet: str, filter: Any, limit: int) -> Mapping[str, int]:
        request = qe.FacetRequest(facet, limit=limit, exact=True, filter=filter)
        return {str(hit.value): hit.count for hit in self._shard.facet(request).hits}

    def get(self, ids: Sequence[int]) -> Sequence[Any]:
        return self._shard.retrieve(list(ids), True, False)  # type: ignore[no-any-return]

    def place(self, page: int, size: int, filter: Any) -> int | None:
        offset: int | None = None
        for first in range(0, page * size, 10_000):
            n = min(10_000, page * size - first)
            request = qe.ScrollRequest(offset, n, filter, with_payload=False)
            offset = self._shard.scroll(request)[1]
        return offset

    def page(self, place: int | None, size: int, filter: Any) -> Sequence[Any]:
        request = qe.ScrollRequest(place, size, filter, with_payload=True)
        return self._shard.scroll(request)[0]  # type: ignore[no-any-return]

    def store(self, batch: Batch) -> None:
        self.add(batch)

    def forget(self, filter: Any) -> None:
        self._shard.update(qe.UpdateOperation.delete_points_by_filter(filter))
        self._shard.flush()

    def compact(self) -> None:
        self._shard.optimize()
        self._shard.flush()


def _is(key: str, match: Any) -> Any:
    return qe.FieldCondition(key, match=match)
