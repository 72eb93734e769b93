"""Ranked reads: from a fetch request to one page of rows with their scores.

A ranking is one fixed order of all admitted items that match, so pages of any size cut the same
order into pieces. Keyword: BM25 order. Vector: the best of the code scan, then the exact rest.
Hybrid: both legs' best fused and rescored, then everything else by the blend of the exact legs.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from colmem.contract import Embedder, FetchMode, FetchRequest, MetaFilter
from colmem.embedding import embed_texts
from colmem.schema import Admitted, Candidates, RowIds, Scores, Vectors
from colmem.storage.sql_filter import condition
from colmem.store import Store, View

HEAD_ROWS = 200  # of each leg; one search of that depth answers every page within it


class Page(NamedTuple):
    """Rows int64 (n,) and scores float32 (n,), best first, and whether more follow."""

    rows: RowIds
    scores: Scores
    has_more: bool


class Ranker:
    """Ranks the rows of one store for one fetch request at a time."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    def page(self, request: FetchRequest, offset: int) -> Page:
        """The rows at places ``offset`` to ``offset + limit`` of the request's ranking."""
        store = self._store
        if request.mode is not FetchMode.VECTOR:
            store.lexical_ready()
        view = store.view
        admitted = store.admitted(request.filter, view)
        wanted = min(offset + request.limit + 1, admitted.count)
        if wanted <= offset:
            return _cut(_NOTHING, offset, request.limit)
        if request.mode is FetchMode.KEYWORD:
            ranking = self._keyword(request.query, wanted, request.filter, view)
        elif request.mode is FetchMode.VECTOR:
            ranking = self._vector(self._query_vector(request.query), wanted, admitted)
        else:
            ranking = self._hybrid(request, wanted, admitted, view)
        return _cut(ranking, offset, request.limit)

    def _keyword(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        lexical = self._store.lexical
        if not lexical.has_terms(query):
            return self._substring(query, k, filter, view)
        found = lexical.search(query, k, filter=filter, now_s=int(time.time()))
        return _visible(found, view)

    def _substring(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        """Rows whose text holds a query without any term (punctuation) as it stands."""
        store = self._store
        store.flush_table()
        rows = store.table.rows(condition(filter, now_s=int(time.time())), holding=query.strip())
        rows = rows[rows < view.n_rows]
        rows = rows[view.live[rows] != 0][:k]
        return Candidates(rows, np.ones(len(rows), np.float32))

    def _query_vector(self, query: str) -> Vectors:
        assert self._embedder is not None
        vector: Vectors = embed_texts(self._embedder, [query]).vectors[0]
        return vector

    def _vector(self, query: Vectors, k: int, admitted: Admitted) -> Candidates:
        vectors = self._store.vectors
        head = vectors.search(query, min(max(k, HEAD_ROWS), admitted.count), admitted)
        return Candidates(head.rows[:k], head.scores[:k])


_NOTHING = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


def _visible(found: Candidates, view: View) -> Candidates:
    """Leave out rows stored after the view, or forgotten since the index was brought level."""
    known = found.rows < view.n_rows
    seen = known & (view.live[np.where(known, found.rows, 0)] != 0)
    return found if seen.all() else Candidates(found.rows[seen], found.scores[seen])


def _cut(ranking: Candidates, offset: int, limit: int) -> Page:
    end = offset + limit
    return Page(ranking.rows[offset:end], ranking.scores[offset:end], len(ranking.rows) > end)
