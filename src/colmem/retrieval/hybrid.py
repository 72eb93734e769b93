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
from colmem.retrieval.fuse import Pool, Weights, blend, fuse, pool
from colmem.retrieval.rescore import QueryPieces, depth, insert, maxsim, piece_weights, rescore
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates, RowIds, Scores

PiecesOf = Callable[[RowIds], tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]]
TurnsOf = Callable[[RowIds], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


class PieceTable(NamedTuple):
    """The embedder's piece table.

    rows : int8 (n_vocab, dim); inverse_norms : float32 (n_vocab,), 1 / norm of each row;
    colon, question_mark : their piece ids.
    """

    rows: npt.NDArray[np.int8]
    inverse_norms: Scores
    colon: int
    question_mark: int


class Sources(NamedTuple):
    """Where single rows are looked up.

    cosines : rows -> float32 (n,), with the query, exact.
    pieces : rows -> uint16 (total,), int64 (n + 1,); None when the embedder has no pieces.
    turns : rows -> int64 (n,), thread code or -1, and int64 (n, 4), the admitted rows two and one
    before, one and two after in the same thread or -1; None when the store holds no conversation.
    """

    cosines: Callable[[RowIds], Scores]
    pieces: PiecesOf | None = None
    turns: TurnsOf | None = None


class Pieces(NamedTuple):
    """The query in pieces, all and those that matter, and what to compare them by.

    all : uint16 (k,); frequency : int64 (n_vocab,), in how many of ``n_items`` each piece stands.
    """

    all: npt.NDArray[np.uint16]
    query: QueryPieces
    table: PieceTable
    frequency: npt.NDArray[np.int64]
    n_items: int


class Head(NamedTuple):
    """A ranking's head, with what explains it.

    ranking : best first, scores 0..1; fused : before rescoring, in the order of that stage;
    maxsim : float32 (k,), of the first k rows of ``fused``.
    """

    ranking: Candidates
    candidates: Pool
    fused: Candidates
    maxsim: Scores
    weights: Weights


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
    candidates = pool(lexical, vector)
    missing = candidates.without_vector()
    if missing.any():
        candidates.vector[missing] = sources.cosines(candidates.rows[missing])
    rescoring = pieces is not None and sources.pieces is not None and settings.rescore_top > 0
    weights = Weights.of(settings, pieces.query.fit if pieces is not None else 1.0)
    if not rescoring:
        weights = weights.without_maxsim()
    fused = fuse(
        candidates,
        vector_bounds=vector_bounds,
        lexical_bounds=lexical_bounds,
        weights=weights,
    )
    turns = _turns(fused, sources, settings)
    if turns is not None:
        extra = dialogue.beside_best(fused, turns[1][: settings.dialogue_expand])
        if len(extra):
            scores = blend(
                np.zeros(len(extra), np.float32),
                sources.cosines(extra),
                vector_bounds=vector_bounds,
                lexical_bounds=lexical_bounds,
                weights=weights,
            )
            fused = insert(fused, settings.dialogue_expand, Candidates(extra, scores))
    ranking, best = fused, np.empty(0, np.float32)
    if rescoring:
        assert pieces is not None
        assert sources.pieces is not None
        flat, offsets = sources.pieces(fused.rows[: settings.rescore_top])
        offsets = offsets[: depth(offsets, settings) + 1]
        best = maxsim(
            pieces.query.content,
            piece_weights(pieces.query.content, pieces.frequency, pieces.n_items),
            flat[: offsets[-1]],
            offsets,
            table=pieces.table.rows,
            inverse_norms=pieces.table.inverse_norms,
        )
        ranking = rescore(fused, best, weights)
    if turns is not None:
        ranking = _lend(ranking, sources, settings, pieces)
    return Head(ranking, candidates, fused, best, weights)


def _turns(
    fused: Candidates, sources: Sources, settings: RankingSettings
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    if not settings.dialogue or sources.turns is None or len(fused.rows) == 0:
        return None
    turns = sources.turns(fused.rows)
    return turns if (turns[0] >= 0).any() else None


def _lend(
    ranking: Candidates, sources: Sources, settings: RankingSettings, pieces: Pieces | None
) -> Candidates:
    assert sources.turns is not None
    threads, beside = sources.turns(ranking.rows)
    marks = np.zeros(len(threads), np.uint8)
    if pieces is not None and sources.pieces is not None:
        table = pieces.table
        marks = dialogue.mark_turns(
            pieces.all,
            *sources.pieces(ranking.rows),
            n_vocab=len(table.rows),
            colon=table.colon,
            question_mark=table.question_mark,
        )
    return dialogue.lend(ranking, Turns(threads, beside, marks), settings)
