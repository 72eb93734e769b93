"""NumPy twins of the similarity and selection kernels, obvious by reading."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


def best_first(rows: I64, scores: F32, k: int) -> tuple[I64, F32]:
    """Order the k best rows: higher score first, of equal scores the lower row; no NaN."""
    held = ~np.isnan(scores)
    rows, scores = rows[held], scores[held]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]


def dot_rows(vectors: F32, query: F32, rows: I64, out: F32) -> None:
    """Twin of :func:`colmem_kernels.similarity.dot_rows`."""
    out[:] = vectors[rows] @ query


def dot_top(
    vectors: F32,
    query: F32,
    mask: U8,
    first: int,
    last: int,
    rows_out: I64,
    scores_out: F32,
    bounds: F32,
) -> int:
    """Twin of :func:`colmem_kernels.similarity.dot_top`; leaves its answer sorted."""
    rows = np.flatnonzero(mask[first:last]) + first
    scores = np.empty(len(rows), np.float32)
    dot_rows(vectors, query, rows, scores)
    bounds[0] = scores.min(initial=np.inf)
    bounds[1] = scores.max(initial=-np.inf)
    best_rows, best_scores = best_first(rows, scores, len(rows_out))
    rows_out[: len(best_rows)] = best_rows
    scores_out[: len(best_rows)] = best_scores
    return len(best_rows)


def top_k(rows: I64, scores: F32, rows_out: I64, scores_out: F32) -> int:
    """Twin of :func:`colmem_kernels.topk.top_k`; leaves its answer sorted."""
    best_rows, best_scores = best_first(rows, scores, len(rows_out))
    rows_out[: len(best_rows)] = best_rows
    scores_out[: len(best_rows)] = best_scores
    return len(best_rows)


def mask_rows(mask: U8, out: I64) -> int:
    """Twin of :func:`colmem_kernels.similarity.mask_rows`."""
    rows = np.flatnonzero(mask)[: len(out)]
    out[: len(rows)] = rows
    return len(rows)
