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
    near = set(beside.ravel().tolist())
    near.discard(-1)
    return np.array(sorted(near.difference(ranking.rows.tolist())), np.int64)


def lend(ranking: Candidates, turns: Turns, settings: RankingSettings) -> Candidates:
    """Rank anew with what turns lend each other; scores stay 0..1, of others in proportion.

    A turn beside a candidate that is none itself lends nothing.
    """
    if not settings.dialogue or not (turns.threads >= 0).any():
        return ranking
    weights = _weights(settings)
    gain = _gain(ranking, turns, weights)
    return ranked(ranking.rows, (ranking.scores + gain) / np.float32(_most(weights, settings)))


def shares(
    ranking: Candidates, turns: Turns, settings: RankingSettings
) -> tuple[float, dict[str, Scores]]:
    """What :func:`lend` divides every score by, and what each weight adds after the division.

    Of each setting its share of the new score: float32 (n,), in the ranking's order.
    """
    weights = _weights(settings)
    most = _most(weights, settings)
    added = {}
    for at, name in enumerate(_WEIGHTS):
        alone = np.zeros_like(weights)
        alone[at] = weights[at]
        added[name] = _gain(ranking, turns, alone) / np.float32(most)
    return most, added


_WEIGHTS = (
    "dialogue_previous",
    "dialogue_next",
    "dialogue_second",
    "dialogue_answer",
    "dialogue_thread",
    "dialogue_named",
)


def _weights(settings: RankingSettings) -> Scores:
    return np.array([getattr(settings, name) for name in _WEIGHTS], np.float32)


def _most(weights: Scores, settings: RankingSettings) -> float:
    # What is two away may lend from both sides.
    return 1.0 + float(weights.sum()) + settings.dialogue_second


def _gain(ranking: Candidates, turns: Turns, weights: Scores) -> Scores:
    from colmem_kernels import rescoring  # noqa: PLC0415 - numba only with the first query

    gain = np.empty(len(ranking.rows), np.float32)
    rescoring.lend_scores(
        ranking.rows,
        ranking.scores,
        np.argsort(ranking.rows),
        np.argsort(turns.threads, kind="stable"),
        turns.threads,
        turns.beside,
        turns.marks,
        weights,
        gain,
    )
    return gain
