"""Search by codes, with exact scores at the end.

One scan keeps the rows with the best sign sums. Their level codes are scored, best sums first,
until no row left can reach the k best; the few that may be among those get their exact scores. When
the scan kept too few rows to settle that, it is repeated keeping more. Pure; the number of threads
never changes an answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.index.codes import CodeView
from colmem.index.vector_search import Found, Query, Workers, best_of
from colmem.schema import RowIds, Scores, Vectors
from colmem_kernels.codes import keep_best, prepare_query, refine_codes, scan_codes
from colmem_kernels.lanes import ROWS_PER_BLOCK
from colmem_kernels.similarity import dot_rows

# How far, in standard deviations, the sign sum of a row among the k best may be off (further in a
# smaller store, where it costs little), which part of that the rows kept by the scan must cover,
# and how far a level score may be off. Chosen by bench/bench_vector.py for a recall of .99.
SIGN_ERROR_SDS = 1.9
SIGN_ERROR_LEAST = 0.7
LEVEL_ERROR_SDS = 2.2
_SIGN_SD = float(
    np.sqrt(np.pi / 2.0 - 1.0)
)  # times sqrt(1 / width): Gao and Long 2024, theorem 3.2
_LEVEL_SD = float(np.sqrt(0.01154))  # of a Gaussian at 16 uniform levels: Max 1960, table 2

# A scan keeps _KEEP_BASE rows for the 10 best of a million; the exponents fit measured rank depths.
_KEEP_BASE = 4500
_KEEP_MIN = 512
_KEEP_GROWTH = 4


def search_codes(vectors: Vectors, codes: CodeView, query: Query, workers: Workers) -> Found | None:
    """Find the k best rows of the mask; None when scoring all of them is the cheaper way.

    vectors : float32 (n_rows, dim); codes : of the same rows.
    """
    search = _Search(vectors, codes, query, workers)
    keep = _keep_rows(query.k, query.n_admitted)
    if keep >= query.n_admitted // 2:
        return None
    found = None
    while found is None:
        # With all rows kept all is settled: scoring every level code still beats every embedding.
        found = search.run(keep)
        keep = min(_KEEP_GROWTH * keep, query.n_admitted)
    return found


def _keep_rows(k: int, count: int) -> int:
    wanted = _KEEP_BASE * (max(k, 1) / 10) ** 0.65 * (count / 1e6) ** 0.4
    return max(_KEEP_MIN, 4 * k, int(wanted))


class _Search:
    """One query prepared for the codes."""

    def __init__(self, vectors: Vectors, codes: CodeView, query: Query, workers: Workers) -> None:
        width = codes.flips.shape[1]
        self._vectors = vectors
        self._codes = codes
        self._query = query
        self._workers = workers
        self._keep_far = _keep_rows(1, query.n_admitted)
        self._tables = np.empty(4 * width, np.uint8)
        self._weights = np.empty(width, np.int16)
        self._affine = np.empty(4, np.float64)
        prepare_query(
            query.vector, codes.flips, codes.lookup_max, self._tables, self._weights, self._affine
        )
        sign_sds = max(SIGN_ERROR_SDS, min(3.0, 2.6 - 0.7 * np.log10(query.n_admitted / 1e5)))
        self._limits = (
            query.length,
            sign_sds * _SIGN_SD / width**0.5,
            SIGN_ERROR_LEAST * sign_sds * _SIGN_SD / width**0.5,
            LEVEL_ERROR_SDS * _LEVEL_SD * query.length / width**0.5,
        )

    def run(self, keep: int) -> Found | None:
        """Search with ``keep`` rows from the scan; None when those do not settle the k best."""
        k = self._query.k
        near, far = self._scan(keep, self._keep_far)
        rows, is_settled = self._refine(near, self._weights, self._affine, max(k, 1))
        if not is_settled and len(near.rows) == keep < self._query.n_admitted:
            return None
        scores = self._exact(rows)
        a0, a1, a2, a3 = self._affine
        turned = np.array([a0, -(a0 * self._codes.sum_max + a1), a2, -a3])
        far_rows, _ = self._refine(far, -self._weights, turned, 1)
        lowest = min(self._exact(far_rows).min(initial=np.inf), scores.min(initial=np.inf))
        return Found(best_of(rows, scores, k), float(lowest), float(scores.max()))

    def _exact(self, rows: RowIds) -> Scores:
        scores = np.empty(len(rows), np.float32)
        dot_rows(self._vectors, self._query.vector, rows, scores)
        return scores

    def _scan(self, keep: int, keep_far: int) -> tuple[_Sums, _Sums]:
        """Rows with the best sign sums and rows with the worst, each in order of rows."""
        n_rows = len(self._query.mask)
        n_blocks = -(-n_rows // ROWS_PER_BLOCK)

        def part(first: int, last: int) -> tuple[_Sums, _Sums]:
            near = _empty_sums(2 * keep + ROWS_PER_BLOCK)
            far = _empty_sums(2 * keep_far + ROWS_PER_BLOCK)
            counts = np.empty(3, np.int64)
            for is_sampled in (True, False):
                scan_codes(
                    self._codes.signs,
                    self._tables,
                    self._codes.sum_max,
                    self._query.mask,
                    (first, last, n_rows),
                    (keep, keep_far),
                    is_sampled,
                    *near,
                    *far,
                    counts,
                )
                if not counts[2]:
                    break
            return near.first(int(counts[0])), far.first(int(counts[1]))

        parts = list(self._workers.map(part, n_blocks, ROWS_PER_BLOCK))
        sum_max = self._codes.sum_max
        return (
            _merged([part[0] for part in parts], keep, sum_max),
            _merged([part[1] for part in parts], keep_far, sum_max),
        )

    def _refine(
        self, sums: _Sums, weights: npt.NDArray[np.int16], affine: npt.NDArray[np.float64], k: int
    ) -> tuple[RowIds, bool]:
        """Rows that may be among the k best by their level codes; whether that is settled."""
        rows = np.empty(len(sums.rows), np.int64)
        scores = np.empty(len(rows), np.float32)
        counts = np.empty(3, np.int64)
        refine_codes(
            *sums, self._codes.levels, weights, affine, self._limits, k, rows, scores, counts
        )
        return rows[: counts[0]], bool(counts[2])


class _Sums(NamedTuple):
    """rows : int32 (n,), ascending; sums : uint16 (n,), the higher the better."""

    rows: npt.NDArray[np.int32]
    sums: npt.NDArray[np.uint16]

    def first(self, count: int) -> _Sums:
        return _Sums(self.rows[:count], self.sums[:count])


def _empty_sums(length: int) -> _Sums:
    return _Sums(np.empty(length, np.int32), np.empty(length, np.uint16))


def _merged(parts: list[_Sums], keep: int, sum_max: int) -> _Sums:
    if len(parts) == 1:
        return parts[0]
    merged = _Sums(
        np.concatenate([part.rows for part in parts]), np.concatenate([part.sums for part in parts])
    )
    bins = np.empty(sum_max + 1, np.int32)
    return merged.first(keep_best(*merged, len(merged.rows), keep, bins)[0])
