"""A ranker that keeps its ranking's stages and how long each took, and explains hits by them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from colmem.contract import FetchMode, FetchRequest, MetaFilter
from colmem.explaining.parts import HeadParts, facts_of, lowered, places
from colmem.explanation import ExplainedHit
from colmem.opening import Opened
from colmem.ranked import Legs, Ranker
from colmem.retrieval.fuse import lexical_bounds
from colmem.retrieval.hybrid import Head
from colmem.schema import Admitted, Candidates, RowIds, Vectors, View
from colmem.stored import StoredItem
from colmem.words import Words


class _Rest(NamedTuple):
    """What lies behind a hybrid ranking's head: the keyword leg of all that match."""

    lexical: Candidates
    bounds: tuple[float, float]


class Watched(Ranker):
    """A ranker that keeps the stages of its one ranking, and the seconds each took by itself."""

    def __init__(self, opened: Opened, words: Words) -> None:
        super().__init__(opened.store, opened.embedder, opened.ranking, words)
        self.stages: dict[str, float] = {}
        self._within: list[float] = []  # seconds of the stages inside each running one
        self._leg: Candidates | None = None
        self._query: Vectors | None = None
        self._legs_seen: Legs | None = None
        self._head_seen: Head | None = None
        self._rest_seen: _Rest | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a stage, without that of the stages within it."""
        self._within.append(0.0)
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            own = seconds - self._within.pop()
            self.stages[name] = self.stages.get(name, 0.0) + own
            if self._within:
                self._within[-1] += seconds

    # The stages of a ranking, watched.

    def _level(self, mode: FetchMode) -> None:
        with self.stage("level"):
            if mode is not FetchMode.VECTOR:
                self._words.level()  # only the index itself explains
            super()._level(mode)

    def _admitted(self, filter: MetaFilter, view: View) -> Admitted:
        with self.stage("filter"):
            return super()._admitted(filter, view)

    def _keyword(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        with self.stage("keyword"):
            return super()._keyword(query, k, filter, view)

    def _query_vector(self, query: str) -> Vectors:
        with self.stage("embed"):
            self._query = super()._query_vector(query)
        return self._query

    def _vector(self, query: Vectors, k: int, admitted: Admitted) -> Candidates:
        with self.stage("vector"):
            return super()._vector(query, k, admitted)

    def _lexical_leg(self, request: FetchRequest, k: int, view: View) -> Candidates:
        with self.stage("keyword"):
            self._leg = super()._lexical_leg(request, k, view)
        return self._leg

    def _vector_leg(
        self, query: Vectors, k: int, admitted: Admitted
    ) -> tuple[Candidates, float, float]:
        with self.stage("vector"):
            return super()._vector_leg(query, k, admitted)

    def _legs(self, request: FetchRequest, admitted: Admitted, view: View) -> Legs:
        self._legs_seen = super()._legs(request, admitted, view)
        return self._legs_seen

    def _head(self, request: FetchRequest, legs: Legs, admitted: Admitted) -> Head:
        with self.stage("blend and rescore"):
            self._head_seen = super()._head(request, legs, admitted)
        return self._head_seen

    def _rest(
        self, request: FetchRequest, legs: Legs, head: Head, admitted: Admitted, view: View
    ) -> Candidates:
        with self.stage("rest"):
            rest = super()._rest(request, legs, head, admitted, view)
        assert self._leg is not None
        is_whole = len(self._leg.rows) == np.count_nonzero(admitted.mask)
        self._rest_seen = _Rest(self._leg, lexical_bounds(self._leg, is_whole=is_whole))
        return rest

    # What was seen.

    def weights(self) -> dict[str, float]:
        """Shares of the parts of this query's scores."""
        head = self._head_seen
        return {} if head is None else {k: round(v, 6) for k, v in head.weights._asdict().items()}

    def extremes(self) -> dict[str, tuple[float, float]]:
        """What the blend of the head maps to 0 and 1."""
        legs = self._legs_seen
        if legs is None:
            return {}
        return {"bm25": legs.lexical_bounds, "cosine": legs.vector_bounds}

    def explained(
        self,
        request: FetchRequest,
        items: Sequence[StoredItem],
        ranks: Sequence[int],
        scores: Sequence[float],
    ) -> list[ExplainedHit]:
        """Explain items of the ranking, at these places with these scores."""
        rows = np.array([item.row for item in items], np.int64)
        terms: list[dict[str, float]] = [{} for _ in items]
        if request.mode is not FetchMode.VECTOR:
            terms = self._words.lexical.explain(request.query, rows)
        parts_of = {
            FetchMode.KEYWORD: self._keyword_parts,
            FetchMode.VECTOR: self._vector_parts,
            FetchMode.HYBRID: self._hybrid_parts,
        }[request.mode]
        facts = parts_of(request, rows, ranks, scores)
        long_items = self._store.long_items
        if long_items is not None and self._query is not None:
            for fact, item in zip(facts, items, strict=True):
                fact["span"] = long_items.span_of(self._query, item)
        return [
            ExplainedHit(id=item.id, rank=rank, score=score, terms=held, **fact)
            for item, rank, score, held, fact in zip(
                items, ranks, scores, terms, facts, strict=True
            )
        ]

    def _keyword_parts(
        self, request: FetchRequest, rows: RowIds, ranks: Sequence[int], scores: Sequence[float]
    ) -> list[dict[str, Any]]:
        has_terms = self._store.lexical.has_terms(request.query)
        return [
            facts_of(
                bm25=score if has_terms else None,
                ranks={"keyword": rank},
                parts={"lexical" if has_terms else "substring": score},
            )
            for rank, score in zip(ranks, scores, strict=True)
        ]

    def _vector_parts(
        self, request: FetchRequest, rows: RowIds, ranks: Sequence[int], scores: Sequence[float]
    ) -> list[dict[str, Any]]:
        assert self._query is not None or len(rows) == 0
        cosines = self._cosines(self._query, rows).tolist() if self._query is not None else []
        return [
            facts_of(
                cosine=cosine,
                ranks={"vector": rank},
                parts=lowered({"vector": cosine}, score, "ceiling"),
            )
            for rank, score, cosine in zip(ranks, scores, cosines, strict=True)
        ]

    def _hybrid_parts(
        self, request: FetchRequest, rows: RowIds, ranks: Sequence[int], scores: Sequence[float]
    ) -> list[dict[str, Any]]:
        legs, head = self._legs_seen, self._head_seen
        if legs is None or head is None:
            return []
        in_keyword, in_vector = places(legs.lexical.rows), places(legs.vector.rows)
        in_blend = places(head.fused.rows)
        read = HeadParts(head, legs, self._settings)
        cosines = self._cosines(legs.query, rows).tolist()
        facts = []
        for row, score, cosine in zip(rows.tolist(), scores, cosines, strict=True):
            if row in in_blend:
                bm25 = read.bm25(row)
                maxsim, parts = read.parts(row, bm25, cosine, score)
            else:
                assert self._rest_seen is not None
                at = np.flatnonzero(self._rest_seen.lexical.rows == row)
                bm25 = float(self._rest_seen.lexical.scores[at[0]]) if len(at) else 0.0
                maxsim = None
                parts = read.blended(bm25, cosine, self._rest_seen.bounds, 1 - head.weights.maxsim)
                parts = lowered(parts, score, "ceiling")
            held_at = {"keyword": in_keyword, "vector": in_vector, "blend": in_blend}
            facts.append(
                facts_of(
                    bm25=bm25,
                    cosine=cosine,
                    maxsim=maxsim,
                    ranks={name: held.get(row) for name, held in held_at.items()},
                    parts=parts,
                )
            )
        return facts
