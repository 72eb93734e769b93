"""Lets turns of a conversation lend each other their scores; pure.

An answer seldom repeats its question's words, and evidence sits where the talk was about the
matter: a turn gains from the turns beside it, more from a question it answers, from how well its
whole conversation does, and from being said by whom the query names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.retrieval.fuse import ranked
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates, RowIds, Scores

IS_NAMED, ASKS = 1, 2  # bits of a mark, as the kernel sets them
NAME_PIECES_MAX = 6
_THREAD_BEST = 3

Pieces = npt.NDArray[np.uint16]
Offsets = npt.NDArray[np.int64]


class Turns(NamedTuple):
    """What is known of the candidates as turns, in the ranking's order.

    threads : int64 (n,), code of the conversation, -1 for anything else;
    beside : int64 (n, 4), rows two and one before, one and two after in the conversation, else -1;
    marks : uint8 (n,), bits IS_NAMED and ASKS.
    """

    threads: npt.NDArray[np.int64]
    beside: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint8]


def mark_turns(
    query: Pieces, pieces: Pieces, offsets: Offsets, *, n_vocab: int, colon: int, question_mark: int
) -> npt.NDArray[np.uint8]:
    """Marks of items from their pieces: uint8 (n,).

    query : uint16 (k,), all pieces of the query; pieces, offsets : the items', end to end.
    """
    from colmem_kernels import rescoring  # noqa: PLC0415 - numba only with the first query

    in_query = np.zeros(n_vocab, np.uint8)
    in_query[query] = 1
    out = np.empty(len(offsets) - 1, np.uint8)
    rescoring.mark_turns(pieces, offsets, in_query, colon, question_mark, NAME_PIECES_MAX, out)
    return out


def beside_best(ranking: Candidates, beside: npt.NDArray[np.int64]) -> RowIds:
    """Rows beside the best that are no candidates yet: int64, ascending.

    beside : int64 (k, 4), as in :class:`Turns`, for the ranking's first k rows.
    """
    rows = np.unique(beside)
    return np.setdiff1d(rows[rows >= 0], ranking.rows, assume_unique=True)


def lend(ranking: Candidates, turns: Turns, settings: RankingSettings) -> Candidates:
    """Rank anew with what turns lend each other; scores stay 0..1, of others in proportion.

    A turn beside a candidate that is none itself lends nothing.
    """
    is_turn = turns.threads >= 0
    if not settings.dialogue or not is_turn.any():
        return ranking
    scores = ranking.scores
    before, asks = _lookup(ranking.rows, scores, turns)
    second = before[:, 0] + before[:, 3]
    gain = (
        settings.dialogue_previous * before[:, 1]
        + settings.dialogue_next * before[:, 2]
        + settings.dialogue_second * second
        + settings.dialogue_answer * before[:, 1] * asks
        + settings.dialogue_thread * _thread_scores(turns.threads, scores)
        + settings.dialogue_named * ((turns.marks & IS_NAMED) != 0)
    )
    most = (
        1.0
        + settings.dialogue_previous
        + settings.dialogue_next
        + 2 * settings.dialogue_second
        + settings.dialogue_answer
        + settings.dialogue_thread
        + settings.dialogue_named
    )
    lent = (scores + np.where(is_turn, gain, 0)) / most
    return ranked(ranking.rows, lent.astype(np.float32))


def _lookup(rows: RowIds, scores: Scores, turns: Turns) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Scores of the turns beside each, float32 (n, 4), and whether the one before asks."""
    order = np.argsort(rows)
    at = np.searchsorted(rows[order], turns.beside)
    at = order[np.minimum(at, len(rows) - 1)]
    held = rows[at] == turns.beside
    asks = held[:, 1] & ((turns.marks[at[:, 1]] & ASKS) != 0)
    return np.where(held, scores[at], np.float32(0)), asks


def _thread_scores(threads: npt.NDArray[np.int64], scores: Scores) -> Scores:
    """Mean of the three best scores of each one's conversation (missing ones count as 0)."""
    order = np.lexsort((-scores, threads))
    grouped = threads[order]
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    place = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    best = np.where(place < _THREAD_BEST, scores[order], np.float32(0))
    means = np.add.reduceat(best, first) / np.float32(_THREAD_BEST)
    out = np.empty(len(scores), np.float32)
    out[order] = np.repeat(means, np.diff(np.r_[first, len(order)]))
    return out
