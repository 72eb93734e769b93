"""The head of a hybrid ranking, from both legs' best: fuse, rescore, let turns lend each other.

The same for every page size, so that pages of any size cut one order. What it needs to know of
single rows it asks its :class:`Sources` for; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.retrieval import dialogue
from colmem.retrieval.dialogue import Turns
from colmem.retrieval.diversity import COMPARED_MAX, defer_near_duplicates
from colmem.retrieval.fuse import Pool, Weights, fuse, pool, unit
from colmem.retrieval.rescore import (
    QueryPieces,
    depth,
    distinct_cosines,
    insert,
    maxsim,
    piece_weights,
    rescore,
)
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates, RowIds, Scores, Vectors

PiecesOf = Callable[[RowIds], tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]]
TurnsOf = Callable[[RowIds], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


class PieceTable(NamedTuple):
    """The embedder's piece table.

    rows : int8 (n_vocab, dim); inverse_norms : float32 (n_vocab,), 1 / norm of each row;
    scales : float32 (n_vocab,), what each row is multiplied by in the embedding of a text;
    colon, question_mark : their piece ids.
    """

    rows: npt.NDArray[np.int8]
    inverse_norms: Scores
    scales: Scores
    colon: int
    question_mark: int


class Sources(NamedTuple):
    """Where single rows are looked up.

    cosines : rows -> float32 (n,), with the query, exact.
    pieces : rows -> uint16 (total,), int64 (n + 1,); None when the embedder has no pieces.
    turns : rows -> int64 (n,), thread code or -1, and int64 (n, 4), the admitted rows two and one
    before, one and two after in the same thread or -1; None when the store holds no conversation.
    vectors : rows -> float32 (n, dim), rows L2-normalised; needed to defer near-duplicates only.
    """

    cosines: Callable[[RowIds], Scores]
    pieces: PiecesOf | None = None
    turns: TurnsOf | None = None
    vectors: Callable[[RowIds], Vectors] | None = None


class Pieces(NamedTuple):
    """The query in pieces, all and those that matter, and what to compare them by.

    all : uint16 (k,); vector : float32 (dim,), the query's embedding;
    frequency : int64 (n_vocab,), in how many of ``n_items`` each piece stands.
    """

    all: npt.NDArray[np.uint16]
    query: QueryPieces
    vector: Vectors
    table: PieceTable
    frequency: npt.NDArray[np.int64]
    n_items: int


class Head(NamedTuple):
    """A ranking's head, with what explains it.

    ranking : best first, scores 0..1; fused : before rescoring, in the order of that stage;
    maxsim : float32 (k,), of the first k rows of ``fused``; distinct : float32 (k,), their cosines
    by distinct pieces, or empty where these do not count; rescored : before turns lent scores;
    turns : of ``rescored``, None when none is a turn; lent : before near-duplicates were deferred.
    """

    ranking: Candidates
    candidates: Pool
    fused: Candidates
    maxsim: Scores
    distinct: Scores
    weights: Weights
    rescored: Candidates
    turns: Turns | None
    lent: Candidates


def rank_head(
    lexical: Candidates,
    vector: Candidates,
    *,
    lexical_bounds: tuple[float, float],
    vector_bounds: tuple[float, float],
    sources: Sources,
    settings: RankingSettings,
    pieces: Pieces | None = None,
) -> Head:
    """Rank the best of both legs.

    lexical, vector : each leg's best ``settings.pool_per_leg`` admitted rows; the bounds are the
    lowest and highest score of all admitted rows in each leg.
    """
    if sources.pieces is None or settings.rescore_top == 0:
        pieces = None
    candidates = pool(lexical, vector)
    missing = candidates.without_vector()
    if missing.any():
        candidates.vector[missing] = sources.cosines(candidates.rows[missing])

    fit = 1.0 if pieces is None else pieces.query.fit
    weights = Weights.of(settings, fit)
    if pieces is None:
        weights = weights.without_maxsim()
    bounds = {"vector_bounds": vector_bounds, "lexical_bounds": lexical_bounds}
    fused = fuse(candidates, weights=weights, **bounds)
    held = None if pieces is None else _take(fused.rows[:_SAMPLE], sources)
    if held is not None and _is_code(held, pieces, settings):
        weights = Weights.of(settings, fit, is_code=True)
        fused = fuse(candidates, weights=weights, **bounds)
        held = _take(fused.rows[:_SAMPLE], sources)

    turns = _turns(fused, sources, settings)
    if turns is not None:
        extra = dialogue.beside_best(fused, turns.beside[: settings.dialogue_expand])
        if len(extra):
            unmatched = Pool(extra, np.zeros(len(extra), np.float32), sources.cosines(extra))
            behind = fuse(unmatched, weights=weights, **bounds)
            fused = insert(fused, settings.dialogue_expand, behind)
            turns = _turns(fused, sources, settings)

    ranking, best, distinct = fused, np.empty(0, np.float32), np.empty(0, np.float32)
    if pieces is not None and held is not None:
        held = _take_enough(held, fused, sources, settings, whole=turns is not None)
        first = _first(held, settings)
        # A turn says nothing more in its first words than in its others.
        opening = (0, 0.0) if turns else (settings.opening_pieces, settings.opening_share)
        best = _maxsim(first, pieces, opening)
        shift = None
        if weights.distinct:
            distinct = _distinct(first, pieces)
            plain = sources.cosines(first.rows)
            gain = unit(distinct, vector_bounds) - unit(plain, vector_bounds)
            shift = np.float32(weights.distinct) * gain
        ranking = rescore(fused, best, weights, shift)
        if turns is not None:
            turns = turns._replace(marks=_marks(held, pieces))
    rescored = ranking
    if turns is not None:
        turns = _reordered(turns, fused, ranking)
        ranking = dialogue.lend(ranking, turns, settings)
    lent = ranking
    if settings.near_duplicates > 0 and sources.vectors is not None:
        vectors = sources.vectors(ranking.rows[:COMPARED_MAX])
        ranking = defer_near_duplicates(ranking, vectors, settings.near_duplicates)
    return Head(ranking, candidates, fused, best, distinct, weights, rescored, turns, lent)


_SAMPLE_STEP = 3  # every third piece tells the share of punctuation well enough
_SAMPLE = 100  # candidates whose pieces tell what kind of text is searched


class _Held(NamedTuple):
    """Pieces of rows: rows int64 (n,), flat uint16 (total,), offsets int64 (n + 1,)."""

    rows: RowIds
    flat: npt.NDArray[np.uint16]
    offsets: npt.NDArray[np.int64]


def _take(rows: RowIds, sources: Sources) -> _Held:
    assert sources.pieces is not None
    return _Held(rows, *sources.pieces(rows))


def _take_enough(
    sample: _Held, fused: Candidates, sources: Sources, settings: RankingSettings, *, whole: bool
) -> _Held:
    """Pieces of the first candidates: of all of them, or as many as the budget may need."""
    wanted = len(fused.rows)
    if not whole:
        mean = max(1.0, float(sample.offsets[-1]) / max(1, len(sample.rows)))
        wanted = min(wanted, settings.rescore_top, int(1.2 * settings.rescore_pieces / mean))
    n = len(sample.rows)
    if not np.array_equal(fused.rows[:n], sample.rows):  # Turns came between.
        return _take(fused.rows[:wanted], sources)
    if wanted <= n or (not whole and sample.offsets[-1] >= settings.rescore_pieces):
        return sample
    more = _take(fused.rows[n:wanted], sources)
    return _Held(
        fused.rows[:wanted],
        np.concatenate([sample.flat, more.flat]),
        np.concatenate([sample.offsets, more.offsets[1:] + sample.offsets[-1]]),
    )


def _is_code(held: _Held, pieces: Pieces | None, settings: RankingSettings) -> bool:
    if pieces is None or len(held.flat) == 0:
        return False
    some = held.flat[::_SAMPLE_STEP]
    n_punctuation = int(np.count_nonzero(pieces.query.is_punctuation[some]))
    return n_punctuation >= settings.code_share * len(some)


def _first(held: _Held, settings: RankingSettings) -> _Held:
    """The first rows, as many as the settings' budgets allow to rescore."""
    k = depth(held.offsets, settings)
    offsets = held.offsets[: k + 1]
    return _Held(held.rows[:k], held.flat[: offsets[-1]], offsets)


def _maxsim(held: _Held, pieces: Pieces, opening: tuple[int, float]) -> Scores:
    content = pieces.query.content
    return maxsim(
        content,
        piece_weights(content, pieces.frequency, pieces.n_items),
        held.flat,
        held.offsets,
        table=pieces.table.rows,
        inverse_norms=pieces.table.inverse_norms,
        opening=opening,
    )


def _distinct(held: _Held, pieces: Pieces) -> Scores:
    return distinct_cosines(
        pieces.vector,
        held.flat,
        held.offsets,
        table=pieces.table.rows,
        scales=pieces.table.scales,
    )


def _turns(fused: Candidates, sources: Sources, settings: RankingSettings) -> Turns | None:
    """The candidates as turns, not marked yet; None when there is no turn among them."""
    if not settings.dialogue or sources.turns is None or len(fused.rows) == 0:
        return None
    threads, beside = sources.turns(fused.rows)
    if not (threads >= 0).any():
        return None
    return Turns(threads, beside, np.zeros(len(threads), np.uint8))


def _marks(held: _Held, pieces: Pieces) -> npt.NDArray[np.uint8]:
    return dialogue.mark_turns(
        pieces.all,
        held.flat,
        held.offsets,
        n_vocab=len(pieces.table.rows),
        colon=pieces.table.colon,
        question_mark=pieces.table.question_mark,
    )


def _reordered(turns: Turns, fused: Candidates, ranking: Candidates) -> Turns:
    """Turns known in the order of one ranking, in the order of another of the same rows."""
    order = np.argsort(fused.rows)
    at = order[np.searchsorted(fused.rows, ranking.rows, sorter=order)]
    return Turns(turns.threads[at], turns.beside[at], turns.marks[at])
