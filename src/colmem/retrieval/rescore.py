"""Rescores the best of a ranking by MaxSim: each piece of the query looks for its like in the item.

Finer than one vector a text, at the price of the items' piece ids: used on the best candidates
only. The candidates below keep their order and never score above a rescored one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.retrieval.fuse import Weights, ranked
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates, Scores

Pieces = npt.NDArray[np.uint16]
Offsets = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class QueryPieces(NamedTuple):
    """A query in word pieces.

    content : uint16 (k,), distinct pieces without function words and punctuation (all of them when
    nothing else is there), in order of first mention; fit : share of its words that the vocabulary
    holds whole, 0..1; is_punctuation : bool (n_vocab,), of every piece.
    """

    content: Pieces
    fit: float
    is_punctuation: Flags


def read_query(
    pieces: Pieces,
    *,
    piece_text: Callable[[int], str],
    is_function_word: Flags,
    is_punctuation: Flags,
) -> QueryPieces:
    """Split a query's pieces into what carries its meaning, and how well the vocabulary knows it.

    A word cut into parts, or outside ASCII, is one the English vocabulary does not hold: a low
    share tells of another language, a name or a code, where matching words is worth more.
    """
    words: list[bool] = []
    for piece in pieces.tolist():
        text = piece_text(piece)
        if text.startswith("##") and len(text) > 2:
            if words:
                words[-1] = False
        elif not is_punctuation[piece]:
            words.append(text.isascii() and text != "[UNK]")
    content = _distinct(
        p for p in pieces.tolist() if not (is_function_word[p] or is_punctuation[p])
    )
    return QueryPieces(
        np.array(content or _distinct(pieces.tolist()), np.uint16),
        sum(words) / len(words) if words else 0.0,
        is_punctuation,
    )


def piece_weights(content: Pieces, frequency: npt.NDArray[np.int64], n_items: int) -> Scores:
    """Inverse document frequencies of pieces, summing to 1: float32 (k,).

    frequency : int64 (n_vocab,), in how many of the ``n_items`` items each piece stands.

    Source: Robertson and Spärck Jones 1976, as in BM25.
    """
    held = np.minimum(frequency[content], n_items).astype(np.float64)
    weights = np.log1p((n_items - held + 0.5) / (held + 0.5))
    shares: Scores = (weights / weights.sum()).astype(np.float32)
    return shares


def maxsim(
    content: Pieces,
    weights: Scores,
    pieces: Pieces,
    offsets: Offsets,
    *,
    table: npt.NDArray[np.int8],
    inverse_norms: Scores,
    opening: tuple[int, float] = (0, 0.0),
) -> Scores:
    """Weighted mean of each query piece's best cosine in every item: float32 (n,), 0..1.

    opening : how many first pieces of an item count once more by themselves, and by what share.

    pieces, offsets : uint16 (total,), int64 (n + 1,), the items' pieces end to end from 0;
    table : int8 (n_vocab, dim); inverse_norms : float32 (n_vocab,), 1 / norm of its rows.
    """
    from colmem_kernels import rescoring  # noqa: PLC0415 - numba only with the first query

    query, scales = _whole_numbers(table[content].astype(np.float32), inverse_norms[content])
    n_query, n_vocab = len(query), len(table)
    filled = np.zeros(n_query, np.float32)
    filled[: len(content)] = weights
    out = np.empty(len(offsets) - 1, np.float32)
    rescoring.maxsim(
        table,
        inverse_norms,
        query,
        scales,
        filled,
        pieces,
        offsets,
        *opening,
        np.zeros(n_vocab, np.int32),
        np.empty((min(len(pieces), n_vocab), n_query), np.float32),
        out,
    )
    return out


def distinct_cosines(
    query: npt.NDArray[np.float32],
    pieces: Pieces,
    offsets: Offsets,
    *,
    table: npt.NDArray[np.int8],
    scales: Scores,
) -> Scores:
    """Cosine of a query with the sum of each item's distinct pieces: float32 (n,).

    query : float32 (dim,), L2-normalised; scales : float32 (n_vocab,), of the table's rows.
    """
    from colmem_kernels import rescoring  # noqa: PLC0415 - numba only with the first query

    seen, total = np.zeros(len(table), np.int32), np.empty(len(query), np.float32)
    out = np.empty(len(offsets) - 1, np.float32)
    rescoring.distinct_cosines(table, scales, query, pieces, offsets, seen, total, out)
    return out


def _whole_numbers(
    rows: npt.NDArray[np.float32], inverse_norms: Scores
) -> tuple[npt.NDArray[np.int16], Scores]:
    """Rows as int16, filled up to a multiple of 8, and the scales that make their norms 1."""
    n, dim = rows.shape
    n_filled = -(-max(n, 1) // 8) * 8
    # The largest value with which a dot product with an int8 row cannot leave int32.
    most = min(32_767, (2**31 - 1) // (127 * dim))
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0), np.float32(1e-9))
    whole = np.zeros((n_filled, dim), np.int16)
    whole[:n] = np.rint(rows * (most / largest)[:, None])
    scales = np.zeros(n_filled, np.float32)
    scales[:n] = largest / most * inverse_norms
    return whole, scales


def depth(offsets: Offsets, settings: RankingSettings) -> int:
    """How many of the first items are rescored: int64 (n + 1,), where the pieces of each begin."""
    fitting = int(np.searchsorted(offsets[1:], settings.rescore_pieces, "right"))
    return min(settings.rescore_top, fitting)


def rescore(
    ranking: Candidates, scores: Scores, weights: Weights, shift: Scores | None = None
) -> Candidates:
    """Blend MaxSim into the scores of the first ``len(scores)`` candidates and rank anew.

    scores : float32 (k,), MaxSim of the ranking's first k rows. It is blended as it is: mapping it
    to 0..1 over the candidates was measured no better, and made scores of two queries differ in
    meaning. The candidates below keep their order.
    shift : float32 (k,), what else is added to the blend, if anything.
    """
    k = len(scores)
    if k == 0 or weights.maxsim == 0:
        return ranking
    keep = np.float32(1.0 - weights.maxsim)
    blended = keep * ranking.scores[:k] + np.float32(weights.maxsim) * scores
    head = ranked(ranking.rows[:k], blended if shift is None else blended + shift)
    below = np.minimum(keep * ranking.scores[k:], head.scores[-1])
    return Candidates(
        np.concatenate([head.rows, ranking.rows[k:]]), np.concatenate([head.scores, below])
    )


def insert(ranking: Candidates, at: int, extra: Candidates) -> Candidates:
    """Put further candidates behind the first ``at``, to be rescored with them."""
    return Candidates(
        np.concatenate([ranking.rows[:at], extra.rows, ranking.rows[at:]]),
        np.concatenate([ranking.scores[:at], extra.scores, ranking.scores[at:]]),
    )


def _distinct(values: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(values))
