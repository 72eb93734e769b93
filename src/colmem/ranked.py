"""Ranked reads: from a fetch request to one page of rows with their scores.

A ranking is one fixed order of all admitted items that match, so pages of any size cut the same
order into pieces. Keyword: BM25 order. Vector: the best of the code scan, then the exact rest.
Hybrid: both legs' best fused and rescored, then everything else by the blend of the exact legs.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from colmem.contract import Embedder, FetchMode, FetchRequest, MetaFilter
from colmem.embedding import embed_texts
from colmem.retrieval.fuse import lexical_bounds, ranked, tail
from colmem.retrieval.hybrid import Head, Pieces, PieceTable, Sources, rank_head
from colmem.retrieval.rescore import read_query
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Admitted, Candidates, RowIds, Scores, Vectors, View
from colmem.storage.sql_filter import condition
from colmem.store import Store
from colmem.words import Words

FIRST_PAGE_ROWS = 24  # a fetch by vector looks so deep at first: a page of 20, and what follows


class Page(NamedTuple):
    """Rows int64 (n,) and scores float32 (n,), best first, and whether more follow."""

    rows: RowIds
    scores: Scores
    has_more: bool


class Legs(NamedTuple):
    """Both legs' best of a hybrid ranking, and the lowest and highest score of all in each.

    query : float32 (dim,), the query's embedding.
    """

    query: Vectors
    lexical: Candidates
    lexical_bounds: tuple[float, float]
    vector: Candidates
    vector_bounds: tuple[float, float]


class Ranker:
    """Ranks the rows of one store for one fetch request at a time."""

    def __init__(
        self, store: Store, embedder: Embedder | None, settings: RankingSettings, words: Words
    ) -> None:
        self._store = store
        self._words = words
        self._meaning = store.vectors if store.long_items is None else store.long_items
        self._embedder = embedder
        self._settings = settings

    def page(self, request: FetchRequest, offset: int) -> Page:
        """The rows at places ``offset`` to ``offset + limit`` of the request's ranking."""
        store = self._store
        self._level(request.mode)
        view = store.view
        admitted = self._admitted(request.filter, view)
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

    def _level(self, mode: FetchMode) -> None:
        if mode is not FetchMode.VECTOR:
            self._words.ready()
        if mode is not FetchMode.KEYWORD and self._store.long_items is not None:
            self._store.long_items.ready()

    def _admitted(self, filter: MetaFilter, view: View) -> Admitted:
        return self._store.admitted(filter, view)

    def nearest(self, vector: Vectors, k: int, filter: MetaFilter) -> Candidates:
        """The k admitted rows nearest to an embedding, best first.

        vector : float32 (dim,), L2-normalised or zero.
        """
        store = self._store
        self._level(FetchMode.VECTOR)
        admitted = store.admitted(filter, store.view)
        found = self._vector(vector, min(k, admitted.count), admitted)
        return Candidates(found.rows[:k], found.scores[:k])

    def _keyword(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        if not self._words.lexical.has_terms(query):
            return self._substring(query, k, filter, view)
        depth = k
        while True:
            found = self._words.search(query, depth, filter, view)
            seen = _visible(found, view)
            if len(seen.rows) >= k or len(found.rows) < depth:
                return Candidates(seen.rows[:k], seen.scores[:k])
            depth += k  # some were forgotten since the index was brought level

    def _substring(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        """Rows whose text holds a query without any term (punctuation) as it stands."""
        where = condition(filter, now_s=int(time.time()))
        with self._store.level_table() as table:
            rows = table.rows(where, holding=query.strip())
        rows = rows[rows < view.n_rows]
        rows = rows[view.live[rows] != 0][:k]
        return Candidates(rows, np.ones(len(rows), np.float32))

    def _query_vector(self, query: str) -> Vectors:
        assert self._embedder is not None
        vector: Vectors = embed_texts(self._embedder, [query]).vectors[0]
        return vector

    def _vector(self, query: Vectors, k: int, admitted: Admitted) -> Candidates:
        # Searches of other depths may differ in a row, so each depth only adds to the one before.
        head = _NOTHING
        for depth in (FIRST_PAGE_ROWS, self._settings.pool_per_leg):
            found = self._meaning.search(query, depth, admitted)
            head = found if not len(head.rows) else _continued(head, found)
            if k <= len(head.rows):
                return head
        scores = self._all_cosines(query, len(admitted.mask))
        rest = admitted.mask.astype(bool)
        rest[head.rows] = False
        rows = np.flatnonzero(rest)
        below = ranked(rows, np.minimum(scores[rows], head.scores[-1]))
        return _joined(head, below)

    def _hybrid(self, request: FetchRequest, k: int, admitted: Admitted, view: View) -> Candidates:
        """The pool of both legs, ranked; then, if asked that far, all the rest."""
        legs = self._legs(request, admitted, view)
        head = self._head(request, legs, admitted)
        if k <= len(head.ranking.rows):
            return head.ranking
        return _joined(head.ranking, self._rest(request, legs, head, admitted, view))

    def _legs(self, request: FetchRequest, admitted: Admitted, view: View) -> Legs:
        depth = self._settings.pool_per_leg
        query = self._query_vector(request.query)
        lexical = self._lexical_leg(request, depth, view)
        vector, *bounds = self._vector_leg(query, depth, admitted)
        by_words = lexical_bounds(lexical, is_whole=len(lexical.rows) == admitted.count)
        return Legs(query, lexical, by_words, vector, (bounds[0], bounds[1]))

    def _head(self, request: FetchRequest, legs: Legs, admitted: Admitted) -> Head:
        store = self._store
        pieces, index = self._pieces(request.query, legs.query), store.pieces
        return rank_head(
            legs.lexical,
            legs.vector,
            lexical_bounds=legs.lexical_bounds,
            vector_bounds=legs.vector_bounds,
            sources=Sources(
                cosines=lambda rows: self._cosines(legs.query, rows),
                pieces=None if index is None else index.take,
                turns=lambda rows: store.attributes.turns(rows, admitted.mask),
                vectors=store.vectors.take,
            ),
            settings=self._settings,
            pieces=pieces,
        )

    def _rest(
        self, request: FetchRequest, legs: Legs, head: Head, admitted: Admitted, view: View
    ) -> Candidates:
        return tail(
            admitted.mask,
            head.ranking.rows,
            self._lexical_leg(request, admitted.count, view),
            self._all_cosines(legs.query, len(admitted.mask)),
            vector_bounds=legs.vector_bounds,
            weights=head.weights,
            ceiling=float(head.ranking.scores[-1]),
        )

    def _vector_leg(
        self, query: Vectors, k: int, admitted: Admitted
    ) -> tuple[Candidates, float, float]:
        """The k best by cosine, and the lowest and highest cosine of all admitted rows."""
        return self._meaning.search_with_bounds(query, k, admitted)

    def _lexical_leg(self, request: FetchRequest, k: int, view: View) -> Candidates:
        return _visible(self._words.search(request.query, k, request.filter, view), view)

    def _pieces(self, query: str, vector: Vectors) -> Pieces | None:
        """The query in word pieces, when the embedder tells them and the store keeps them."""
        index = self._store.pieces
        if index is None:
            return None
        teller: Any = self._embedder
        pieces = teller.pieces(query)
        read = read_query(
            pieces,
            piece_text=teller.piece_text,
            is_function_word=teller.is_function_word,
            is_punctuation=teller.is_punctuation,
        )
        norms, scales = teller.row_inverse_norms, teller.row_scales
        table = PieceTable(teller.rows, norms, scales, *_marks(teller))
        frequency, n_items = self._words.piece_frequency(), self._words.n_items
        return Pieces(pieces, read, vector, table, frequency, n_items)

    def _cosines(self, query: Vectors, rows: RowIds) -> Scores:
        """Exact cosines of rows: float32 (n,)."""
        return self._meaning.scores(query, rows)

    def _all_cosines(self, query: Vectors, n_rows: int) -> Scores:
        """Exact cosines of all rows: float32 (n_rows,)."""
        return self._cosines(query, np.arange(n_rows, dtype=np.int64))


_NOTHING = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


@cache
def _marks(teller: Any) -> tuple[int, int]:
    """Piece ids of the colon and the question mark."""
    return int(teller.pieces(":")[0]), int(teller.pieces("?")[0])


def _continued(head: Candidates, found: Candidates) -> Candidates:
    """A ranking, and behind it what a deeper search found besides."""
    is_new = ~np.isin(found.rows, head.rows)
    scores = np.minimum(found.scores[is_new], head.scores[-1])
    return _joined(head, Candidates(found.rows[is_new], scores))


def _joined(head: Candidates, below: Candidates) -> Candidates:
    return Candidates(
        np.concatenate([head.rows, below.rows]), np.concatenate([head.scores, below.scores])
    )


def _visible(found: Candidates, view: View) -> Candidates:
    """Leave out rows stored after the view, or forgotten since the index was brought level."""
    known = found.rows < view.n_rows
    seen = known & (view.live[np.where(known, found.rows, 0)] != 0)
    return found if seen.all() else Candidates(found.rows[seen], found.scores[seen])


def _cut(ranking: Candidates, offset: int, limit: int) -> Page:
    end = offset + limit
    return Page(ranking.rows[offset:end], ranking.scores[offset:end], len(ranking.rows) > end)
