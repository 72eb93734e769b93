"""Late interaction over word pieces: how well an item's pieces cover a query's, and dialogue marks.

Each distinct piece of all candidates is compared with the query's once; items share most of theirs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from colmem_kernels._jit import kernel

_TABLE = types.Array(types.int8, 2, "C", readonly=True)
_FLOATS = types.Array(types.float32, 1, "C", readonly=True)
_QUERY = types.Array(types.int16, 2, "C", readonly=True)
_PIECES = types.Array(types.uint16, 1, "C", readonly=True)
_OFFSETS = types.Array(types.int64, 1, "C", readonly=True)
_FLAGS = types.Array(types.uint8, 1, "C", readonly=True)
_SLOTS = types.Array(types.int32, 1, "C")
_COSINES = types.Array(types.float32, 2, "C")
_OUT = types.Array(types.float32, 1, "C")
_FLAGS_OUT = types.Array(types.uint8, 1, "C")


@kernel(
    types.void(
        _TABLE,
        _FLOATS,
        _QUERY,
        _FLOATS,
        _FLOATS,
        _PIECES,
        _OFFSETS,
        types.int64,
        types.float32,
        _SLOTS,
        _COSINES,
        _OUT,
    ),
    fastmath=True,
)
def maxsim(
    table: npt.NDArray[np.int8],
    inverse_norms: npt.NDArray[np.float32],
    query: npt.NDArray[np.int16],
    scales: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    n_opening: int,
    opening_share: float,
    slots: npt.NDArray[np.int32],
    cosines: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Weighted mean, over the query's pieces, of the best cosine with any of an item's pieces.

    Of an item longer than ``n_opening`` pieces, that mean over its first pieces alone counts by
    ``opening_share`` (0..1), the one over all of them by the rest.

    table : int8 (n_vocab, dim); inverse_norms : float32 (n_vocab,), 1 / norm of each table row;
    query : int16 (q, dim), q a multiple of 8; query * scales are rows of norm 1, or of zeros to
    fill up, so scaled that ``127 * dim`` times their largest value fits an int32;
    scales, weights : float32 (q,), the weights summing to 1;
    pieces : uint16 (total,), each below n_vocab; offsets : int64 (n + 1,), where items begin.
    slots : int32 (n_vocab,), zeros, and cosines : float32 (min(total, n_vocab), q) are scratch.
    out : float32 (n,), 0..1; a negative best and an item without pieces count as 0.

    O(distinct pieces * q * dim + total * q). Whole numbers take two thirds of the time of floats,
    four query rows at a time a further third; eight maxima at a time stay in registers.

    Source: Khattab and Zaharia 2020 (ColBERT), section 3.3, equation 3; here a mean weighted by
    inverse document frequency over static rows, not below 0.
    """
    n_query, dim = query.shape
    n_distinct = 0
    row = np.empty(dim, np.int16)
    for at in range(offsets[0], offsets[offsets.shape[0] - 1]):
        piece = pieces[at]
        if slots[piece] != 0:
            continue
        for k in range(dim):
            row[k] = np.int16(table[piece, k])
        norm = inverse_norms[piece]
        for j in range(0, n_query, 4):
            dot0 = np.int32(0)
            dot1 = np.int32(0)
            dot2 = np.int32(0)
            dot3 = np.int32(0)
            for k in range(dim):
                value = np.int32(row[k])
                dot0 = np.int32(dot0 + np.int32(value * np.int32(query[j, k])))
                dot1 = np.int32(dot1 + np.int32(value * np.int32(query[j + 1, k])))
                dot2 = np.int32(dot2 + np.int32(value * np.int32(query[j + 2, k])))
                dot3 = np.int32(dot3 + np.int32(value * np.int32(query[j + 3, k])))
            cosines[n_distinct, j] = np.float32(dot0) * norm * scales[j]
            cosines[n_distinct, j + 1] = np.float32(dot1) * norm * scales[j + 1]
            cosines[n_distinct, j + 2] = np.float32(dot2) * norm * scales[j + 2]
            cosines[n_distinct, j + 3] = np.float32(dot3) * norm * scales[j + 3]
        n_distinct += 1
        slots[piece] = n_distinct
    share = np.float32(opening_share)
    for i in range(out.shape[0]):
        mean = np.float32(0)
        cut = min(offsets[i] + n_opening, offsets[i + 1])
        for j in range(0, n_query, 8):
            best0 = np.float32(0)
            best1 = best2 = best3 = best4 = best5 = best6 = best7 = best0
            first, last, counts = offsets[i], cut, share
            for _ in range(2):
                for at in range(first, last):
                    slot = slots[pieces[at]] - 1
                    best0 = max(best0, cosines[slot, j])
                    best1 = max(best1, cosines[slot, j + 1])
                    best2 = max(best2, cosines[slot, j + 2])
                    best3 = max(best3, cosines[slot, j + 3])
                    best4 = max(best4, cosines[slot, j + 4])
                    best5 = max(best5, cosines[slot, j + 5])
                    best6 = max(best6, cosines[slot, j + 6])
                    best7 = max(best7, cosines[slot, j + 7])
                best = weights[j] * best0 + weights[j + 1] * best1
                best += weights[j + 2] * best2 + weights[j + 3] * best3
                best += weights[j + 4] * best4 + weights[j + 5] * best5
                best += weights[j + 6] * best6 + weights[j + 7] * best7
                mean += counts * best
                first, last, counts = cut, offsets[i + 1], np.float32(1) - share
        out[i] = mean


@kernel(
    types.void(_TABLE, _FLOATS, _FLOATS, _PIECES, _OFFSETS, _SLOTS, _OUT, _OUT),
    fastmath=True,
)
def distinct_cosines(
    table: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    query: npt.NDArray[np.float32],
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    seen: npt.NDArray[np.int32],
    total: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Cosine of a query with the sum of each item's distinct pieces, repeats counted once.

    table : int8 (n_vocab, dim); scales : float32 (n_vocab,), of its rows; query : float32 (dim,),
    L2-normalised; pieces : uint16 (total,), each below n_vocab; offsets : int64 (n + 1,).
    seen : int32 (n_vocab,), zeros, and total : float32 (dim,) are scratch.
    out : float32 (n,); 0 for an item without pieces. O(total * dim).
    """
    dim = query.shape[0]
    for i in range(out.shape[0]):
        for k in range(dim):
            total[k] = 0
        for at in range(offsets[i], offsets[i + 1]):
            piece = pieces[at]
            if seen[piece] == i + 1:
                continue
            seen[piece] = i + 1
            scale = scales[piece]
            for k in range(dim):
                total[k] += scale * np.float32(table[piece, k])
        dot = np.float32(0)
        square = np.float32(0)
        for k in range(dim):
            dot += total[k] * query[k]
            square += total[k] * total[k]
        out[i] = dot / np.sqrt(square) if square > 0 else np.float32(0)


@kernel(types.void(_PIECES, _OFFSETS, _FLAGS, types.int64, types.int64, types.int64, _FLAGS_OUT))
def mark_turns(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    in_query: npt.NDArray[np.uint8],
    colon: int,
    question_mark: int,
    name_pieces_max: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """Mark turns of a dialogue: 1 when the query names the speaker, 2 when the turn asks, or both.

    A turn reads ``speaker: words``; the speaker is named when each of its at most
    ``name_pieces_max`` pieces is among the query's.

    pieces, offsets : as for :func:`maxsim`; in_query : uint8 (n_vocab,), 1 for the query's pieces;
    colon, question_mark : piece ids; out : uint8 (n,). O(total).
    """
    for i in range(out.shape[0]):
        first, last = offsets[i], offsets[i + 1]
        mark = 0
        for at in range(first, min(last, first + name_pieces_max + 1)):
            if pieces[at] == colon:
                if at > first:
                    mark = 1
                break
            if in_query[pieces[at]] == 0:
                break
        for at in range(first, last):
            if pieces[at] == question_mark:
                mark |= 2
                break
        out[i] = mark


_ROWS = types.Array(types.int64, 1, "C", readonly=True)
_BESIDE = types.Array(types.int64, 2, "C", readonly=True)


@kernel(types.void(_ROWS, _FLOATS, _ROWS, _ROWS, _ROWS, _BESIDE, _FLAGS, _FLOATS, _OUT))
def lend_scores(
    rows: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
    by_row: npt.NDArray[np.int64],
    by_thread: npt.NDArray[np.int64],
    threads: npt.NDArray[np.int64],
    beside: npt.NDArray[np.int64],
    marks: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """What each turn of a dialogue gains from the turns around it.

    rows : int64 (n,), distinct; scores : float32 (n,), falling; by_row : int64 (n,), places in
    order of rows; by_thread : int64 (n,), places in order of threads, then of place;
    threads : int64 (n,), -1 for what is no turn; beside : int64 (n, 4), rows two and one before,
    one and two after, or -1; marks : uint8 (n,), as :func:`mark_turns` gives them.
    weights : float32 (6,), of the turn before, the one after, each two away, a question before,
    the mean of the thread's three best scores (absent ones 0), and being named.
    out : float32 (n,), the gain, 0 for what is no turn. O(n log n).
    """
    n = rows.shape[0]
    for i in range(n):
        out[i] = 0
        if threads[i] < 0:
            continue
        gain = np.float32(0)
        for j in range(4):
            wanted = beside[i, j]
            low, high = 0, n
            while low < high:
                middle = (low + high) >> 1
                if rows[by_row[middle]] < wanted:
                    low = middle + 1
                else:
                    high = middle
            if low == n or rows[by_row[low]] != wanted:
                continue
            at = by_row[low]
            if j == 1:
                gain += weights[0] * scores[at]
                if marks[at] & 2:
                    gain += weights[3] * scores[at]
            elif j == 2:
                gain += weights[1] * scores[at]
            else:
                gain += weights[2] * scores[at]
        if marks[i] & 1:
            gain += weights[5]
        out[i] = gain
    first = 0
    while first < n:
        thread = threads[by_thread[first]]
        last = first
        best = np.float32(0)
        while last < n and threads[by_thread[last]] == thread:
            if last < first + 3:
                best += scores[by_thread[last]]
            last += 1
        if thread >= 0:
            for place in range(first, last):
                out[by_thread[place]] += weights[4] * best / np.float32(3)
        first = last
