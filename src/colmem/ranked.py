"""Ranked reads: from a fetch request to one page of rows with their scores.

A ranking is one fixed order of all admitted items that match, so pages of any size cut the same
order into pieces. Keyword: BM25 order. Vector: the best of the code scan, then the exact rest.
Hybrid: both legs' best fused and rescored, then everything else by the blend of the exact legs.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from colmem.contract import Embedder, FetchMode, FetchRequest, MetaFilter
from colmem.embedding import embed_texts
from colmem.retrieval.dialogue import Turns, lend, mark_turns
from colmem.retrieval.fuse import Weights, fuse, lexical_bounds, pool, ranked, tail
from colmem.retrieval.rescore import maxsim, piece_weights, read_query, rescore
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Admitted, Candidates, RowIds, Scores, Vectors
from colmem.storage.sql_filter import condition
from colmem.store import Store, View


class Page(NamedTuple):
    """Rows int64 (n,) and scores float32 (n,), best first, and whether more follow."""

    rows: RowIds
    scores: Scores
    has_more: bool


class _Query(NamedTuple):
    """A query for the hybrid ranking; its word pieces where the embedder tells them."""

    vector: Vectors
    weights: Weights
    pieces: Any = None
    content: Any = None


class Ranker:
    """Ranks the rows of one store for one fetch request at a time."""

    def __init__(self, store: Store, embedder: Embedder | None, settings: RankingSettings) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings

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
        depth = self._settings.pool_per_leg
        head = self._store.vectors.search(query, depth, admitted)
        if k <= len(head.rows):
            return head
        scores = self._all_cosines(query, len(admitted.mask))
        rest = admitted.mask.astype(bool)
        rest[head.rows] = False
        rows = np.flatnonzero(rest)
        below = ranked(rows, np.minimum(scores[rows], head.scores[-1]))
        return _joined(head, below)

    def _hybrid(self, request: FetchRequest, k: int, admitted: Admitted, view: View) -> Candidates:
        """The pool of both legs, fused and rescored; then, if asked that far, all the rest."""
        query = self._query(request.query)
        settings, vectors = self._settings, self._store.vectors
        lexical = self._lexical_leg(request, settings.pool_per_leg, view)
        vector, lowest, highest = vectors.search_with_bounds(
            query.vector, settings.pool_per_leg, admitted
        )
        candidates = pool(lexical, vector)
        unscored = candidates.without_vector()
        candidates.vector[unscored] = vectors.scores(query.vector, candidates.rows[unscored])
        head = fuse(
            candidates,
            vector_bounds=(lowest, highest),
            lexical_bounds=lexical_bounds(lexical, is_whole=len(lexical.rows) == admitted.count),
            weights=query.weights,
        )
        head = self._rescored(head, query, admitted)
        if k <= len(head.rows):
            return head
        rest = tail(
            admitted.mask,
            head.rows,
            self._lexical_leg(request, admitted.count, view),
            self._all_cosines(query.vector, len(admitted.mask)),
            vector_bounds=(lowest, highest),
            weights=query.weights,
            ceiling=float(head.scores[-1]),
        )
        return _joined(head, rest)

    def _lexical_leg(self, request: FetchRequest, k: int, view: View) -> Candidates:
        now_s = int(time.time())
        found = self._store.lexical.search(request.query, k, filter=request.filter, now_s=now_s)
        return _visible(found, view)

    def _query(self, text: str) -> _Query:
        vector = self._query_vector(text)
        pieces_of = self._pieces_of()
        if pieces_of is None:
            weights = Weights.of(self._settings)
            both = weights.lexical + weights.vector
            return _Query(vector, Weights(weights.lexical / both, weights.vector / both, 0.0))
        pieces = pieces_of.pieces(text)
        read = read_query(
            pieces,
            piece_text=pieces_of.piece_text,
            is_function_word=pieces_of.is_function_word,
            is_punctuation=pieces_of.is_punctuation,
        )
        return _Query(vector, Weights.of(self._settings, read.fit), pieces, read.content)

    def _rescored(self, ranking: Candidates, query: _Query, admitted: Admitted) -> Candidates:
        """Rescore the best by their word pieces, then let turns of a conversation lend scores."""
        store, index, pieces_of = self._store, self._store.pieces, self._pieces_of()
        if index is None or pieces_of is None or query.content is None:
            return ranking
        if len(query.content):
            flat, offsets = index.take(ranking.rows[: self._settings.rescore_top])
            scores = maxsim(
                query.content,
                piece_weights(query.content, index.document_frequency(), store.n_live),
                flat,
                offsets,
                table=pieces_of.rows,
                inverse_norms=pieces_of.row_inverse_norms,
            )
            ranking = rescore(ranking, scores, query.weights)
        threads, beside = store.attributes.turns(ranking.rows, admitted.mask)
        if not self._settings.dialogue or not (threads >= 0).any():
            return ranking
        flat, offsets = index.take(ranking.rows)
        marks = mark_turns(
            query.pieces,
            flat,
            offsets,
            n_vocab=len(pieces_of.rows),
            colon=int(pieces_of.pieces(":")[0]),
            question_mark=int(pieces_of.pieces("?")[0]),
        )
        return lend(ranking, Turns(threads, beside, marks), self._settings)

    def _pieces_of(self) -> Any:
        """The embedder, when it tells word pieces and the store keeps them."""
        return self._embedder if self._store.pieces is not None else None

    def _all_cosines(self, query: Vectors, n_rows: int) -> Scores:
        """Exact cosines of all rows: float32 (n_rows,)."""
        return self._store.vectors.scores(query, np.arange(n_rows, dtype=np.int64))


_NOTHING = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


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
