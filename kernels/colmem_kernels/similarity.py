"""Exact float32 dot products: of chosen rows, and of all admitted rows with the k best kept.

Both kernels compute one row at a time with one and the same loop, so a row's score does not depend
on which rows stand beside it. A NaN score is never kept by a selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from colmem_kernels._jit import kernel
from colmem_kernels.lanes import (
    ROWS_PER_BLOCK,
    admitted_bits,
    prefetch,
    trailing_zeros,
)
from colmem_kernels.topk import heap_offer

_VECTORS = types.Array(types.float32, 2, "C", readonly=True)
_QUERY = types.Array(types.float32, 1, "C", readonly=True)
_ROWS = types.Array(types.int64, 1, "C", readonly=True)
_MASK = types.Array(types.uint8, 1, "C", readonly=True)
_SCORES_OUT = types.Array(types.float32, 1, "C")
_ROWS_OUT = types.Array(types.int64, 1, "C")
_AHEAD = 6


# Compiled once for itself, so that every kernel adds up a row in the same order.
@kernel(types.float32(_VECTORS, types.int64, _QUERY), fastmath=True)
def dot_row(vectors: npt.NDArray[np.float32], row: Any, query: npt.NDArray[np.float32]) -> Any:
    """Dot product of the query, float32 (dim,), with one row of vectors, float32 (n, dim)."""
    total = np.float32(0.0)
    for d in range(query.shape[0]):
        total += vectors[row, d] * query[d]
    return total


@kernel(types.void(_VECTORS, _QUERY, _ROWS, _SCORES_OUT))
def dot_rows(
    vectors: npt.NDArray[np.float32],
    query: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    out: npt.NDArray[np.float32],
) -> None:
    """Dot product of the query with each named row.

    vectors : float32 (n, dim); query : float32 (dim,); rows : int64 (m,), each in 0..n-1;
    out : float32 (m,), written. O(m dim).
    """
    dim = query.shape[0]
    # The processor follows a row by itself once its first lines were asked for.
    lines = min(dim, 4 * 16)
    for i in range(rows.shape[0]):
        if i + _AHEAD < rows.shape[0]:
            coming = rows[i + _AHEAD] * dim
            for d in range(0, lines, 16):
                prefetch(vectors, coming + d)
        out[i] = dot_row(vectors, rows[i], query)


@kernel(types.int64(_MASK, _ROWS_OUT))
def mask_rows(mask: npt.NDArray[np.uint8], out: npt.NDArray[np.int64]) -> int:
    """List the rows whose mask is not 0, ascending, as many as fit; returns how many.

    mask : uint8 (n,); out : int64 (m,), written. O(n).
    """
    n = mask.shape[0]
    count = 0
    for start in range(0, n, ROWS_PER_BLOCK):
        bits = admitted_bits(mask, start, n)
        while bits != 0:
            if count == out.shape[0]:
                return count
            out[count] = start + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            count += 1
    return count


@kernel(
    types.int64(
        _VECTORS, _QUERY, _MASK, types.int64, types.int64, _ROWS_OUT, _SCORES_OUT, _SCORES_OUT
    )
)
def dot_top(
    vectors: npt.NDArray[np.float32],
    query: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint8],
    first: int,
    last: int,
    rows_out: npt.NDArray[np.int64],
    scores_out: npt.NDArray[np.float32],
    bounds: npt.NDArray[np.float32],
) -> int:
    """Keep the k best admitted rows of ``first..last-1`` as a heap, and the extremes of all.

    vectors : float32 (n, dim); query : float32 (dim,); mask : uint8 (>= last,);
    rows_out, scores_out : int64, float32 (k,), the heap, in no useful order;
    bounds : float32 (2,), lowest and highest score, (+inf, -inf) when nothing is admitted.
    Returns how many were kept. Of equal scores the lower row is kept. O(n dim + n log k).
    """
    k = rows_out.shape[0]
    count = 0
    lowest = np.float32(np.inf)
    highest = np.float32(-np.inf)
    for start in range(first, last, ROWS_PER_BLOCK):
        bits = admitted_bits(mask, start, last)
        while bits != 0:
            row = start + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            score = dot_row(vectors, row, query)
            lowest = min(lowest, score)
            highest = max(highest, score)
            if count < k or (k > 0 and score > scores_out[0]):
                count = heap_offer(rows_out, scores_out, count, row, score)
    bounds[0] = lowest
    bounds[1] = highest
    return count
