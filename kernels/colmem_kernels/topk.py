"""The k best of many scores, deterministic: higher score first, of equal scores the lower row.

The best so far stand in a heap whose root is the worst of them: one comparison refuses most rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from colmem_kernels._jit import kernel

_ROWS = types.Array(types.int64, 1, "C", readonly=True)
_SCORES = types.Array(types.float32, 1, "C", readonly=True)
_ROWS_OUT = types.Array(types.int64, 1, "C")
_SCORES_OUT = types.Array(types.float32, 1, "C")


@kernel(None)
def _is_worse(score: float, row: int, other_score: float, other_row: int) -> bool:
    return score < other_score or (score == other_score and row > other_row)


@kernel(None)
def heap_offer(
    rows: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
    count: int,
    row: Any,
    score: Any,
) -> int:
    """Offer a row to the heap of the best ``len(rows)``; returns the new count.

    rows, scores : int64, float32 (k,), a heap of ``count`` entries with the worst at 0. NaN is
    refused. O(log k).
    """
    k = rows.shape[0]
    if k == 0 or score != score:
        return count
    if count < k:
        at = count
        while at > 0:
            parent = (at - 1) >> 1
            if not _is_worse(score, row, scores[parent], rows[parent]):
                break
            scores[at] = scores[parent]
            rows[at] = rows[parent]
            at = parent
        scores[at] = score
        rows[at] = row
        return count + 1
    if not _is_worse(scores[0], rows[0], score, row):
        return count
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _is_worse(
            scores[child + 1], rows[child + 1], scores[child], rows[child]
        ):
            child += 1
        if not _is_worse(scores[child], rows[child], score, row):
            break
        scores[at] = scores[child]
        rows[at] = rows[child]
        at = child
    scores[at] = score
    rows[at] = row
    return count


@kernel(types.int64(_ROWS, _SCORES, _ROWS_OUT, _SCORES_OUT))
def top_k(
    rows: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
    rows_out: npt.NDArray[np.int64],
    scores_out: npt.NDArray[np.float32],
) -> int:
    """Keep the k best of given rows as a heap (order them with a sort afterwards).

    rows, scores : int64, float32 (n,); rows_out, scores_out : int64, float32 (k,), written.
    Returns how many were kept, min(n, k) less the NaN scores. O(n log k).
    """
    k = rows_out.shape[0]
    count = 0
    for i in range(rows.shape[0]):
        # Most are worse than the worst held; the comparison also refuses NaN.
        if count < k or (k > 0 and scores[i] >= scores_out[0]):
            count = heap_offer(rows_out, scores_out, count, rows[i], scores[i])
    return count
