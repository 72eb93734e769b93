"""Search by codes, with exact scores at the end.

One scan keeps the rows with the best sign sums. The level codes of those that can still reach the k
best are scored; the few that may be among these get their exact scores. When the scan kept too few
rows to settle that, it is repeated keeping more. Pure; the number of threads
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
from colmem_kernels.gate import Gate
from colmem_kernels.lanes import ROWS_PER_BLOCK
from colmem_kernels.similarity import dot_rows, mask_rows

# How far, in standard deviations, the sign sum of a row among the k best may be off: 2.6 at 100,000
# rows, less in larger and more in smaller stores (where it costs little) within these limits; the
# second one holds when many rows are asked for. The rows kept by the scan must cover the part
# SIGN_ERROR_LEAST of it. The last: how far a level score may be off. All chosen by
# bench/bench_vector.py for a recall of .99.
SIGN_ERROR_SDS = 1.9
SIGN_ERROR_SDS_DEEP = 2.2
SIGN_ERROR_SDS_MAX = 3.0
SIGN_ERROR_LEAST = 0.7
LEVEL_ERROR_SDS = 2.2
_DEEP_K = 20
_DEEP_ROWS_MIN = 20_000

# One such deviation, times the square root of the width: Gao and Long 2024, theorem 3.2; and what
# 16 uniform levels leave of a Gaussian's: Max 1960, table 2.
_SIGN_SD = float(np.sqrt(np.pi / 2.0 - 1.0))
_LEVEL_SD = float(np.sqrt(0.01154))

# A scan keeps _KEEP_BASE rows for the 10 best of a million; the exponents fit measured rank depths.
_KEEP_BASE = 4500
_KEEP_MIN = 512
_KEEP_GROWTH = 4
# Of fewer than one row in so many, all level codes are scored without a scan.
_SPARSE = 16

_COMPILE_AFTER_ROWS = 2_000_000


def search_codes(vectors: Vectors, codes: CodeView, query: Query, workers: Workers) -> Found:
    """Find the k best rows of the mask.

    vectors : float32 (n_rows, dim); codes : of the same rows.
    """
    search = _Search(vectors, codes, query, workers)
    n_admitted = query.n_admitted
    if n_admitted <= len(query.mask) // _SPARSE:
        return search.run_sparse()
    keep = min(_keep_rows(query.k, n_admitted), n_admitted)
    found = search.run(keep)
    while found is None:
        # With all rows kept everything is settled.
        keep = min(_KEEP_GROWTH * keep, n_admitted)
        found = search.run(keep)
    return found


def _keep_rows(k: int, count: int) -> int:
    wanted = _KEEP_BASE * (max(k, 1) / 10) ** 0.72 * (count / 1e6) ** 0.4
    return max(_KEEP_MIN, 4 * k, int(wanted))


gate = Gate(
    prepare_query,
    scan_codes,
    keep_best,
    refine_codes,
    after=_COMPILE_AFTER_ROWS,
    in_background=True,
)
"""Of a search by codes; the unit is a row compared without."""


class _Search:
    """One query prepared for the codes."""

    def __init__(self, vectors: Vectors, codes: CodeView, query: Query, workers: Workers) -> None:
        width = codes.flips.shape[1]
        self._vectors = vectors
        self._codes = codes
        self._query = query
        self._workers = workers
        self._keep_far = _keep_rows(1, query.n_admitted) if query.needs_bounds else 0
        self._tables = np.empty(4 * width, np.uint8)
        self._weights = np.empty(width, np.int16)
        self._affine = np.empty(5, np.float64)
        prepare_query(
            query.vector, codes.flips, codes.lookup_max, self._tables, self._weights, self._affine
        )
        is_deep = query.k > _DEEP_K and query.n_admitted > _DEEP_ROWS_MIN
        most = SIGN_ERROR_SDS_DEEP if is_deep else SIGN_ERROR_SDS_MAX
        sign_sds = 2.6 - 0.7 * np.log10(query.n_admitted / 1e5)
        sign_sds = max(SIGN_ERROR_SDS, min(most, sign_sds))
        self._limits = (
            query.length,
            sign_sds * _SIGN_SD / width**0.5,
            SIGN_ERROR_LEAST * sign_sds * _SIGN_SD / width**0.5,
            LEVEL_ERROR_SDS * _LEVEL_SD * query.length / width**0.5,
            max(0.0, 1.0 - float(self._affine[4]) / query.length),
        )

    def run(self, keep: int) -> Found | None:
        """Search with ``keep`` rows from the scan; None when those do not settle the k best."""
        near, far = self._scan(keep, self._keep_far)
        rows, is_settled = self._refine_near(near)
        if not is_settled and len(near.rows) == keep < self._query.n_admitted:
            return None
        return self._answer(rows, far)

    def run_sparse(self) -> Found:
        """Search by the level codes of all admitted rows."""
        listed = np.empty(self._query.n_admitted, np.int64)
        rows = listed[: mask_rows(self._query.mask, listed)].astype(np.int32)
        # Sums higher than there are: no row is too low to be looked at.
        sums = _Sums(rows, np.full(len(rows), 2 * self._codes.sum_max, np.uint16))
        best, _ = self._refine_near(sums)
        return self._answer(best, sums if self._query.needs_bounds else sums.first(0))

    def _refine_near(self, near: _Sums) -> tuple[RowIds, bool]:
        return self._refine(near, self._weights, self._affine, max(self._query.k, 1))

    def _answer(self, rows: RowIds, far: _Sums) -> Found:
        """Score exactly what may be among the best, and what may be the farthest."""
        scores = self._exact(rows)
        lowest = scores.min(initial=np.inf)
        if len(far.rows):
            a0, a1, a2, a3, _ = self._affine
            turned = np.array([a0, -(a0 * self._codes.sum_max + a1), a2, -a3])
            far_rows, _ = self._refine(far, -self._weights, turned, 1)
            lowest = min(lowest, self._exact(far_rows).min(initial=np.inf))
        if not len(scores):
            return Found(best_of(rows, scores, 0), 0.0, 0.0)
        return Found(best_of(rows, scores, self._query.k), float(lowest), float(scores.max()))

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
