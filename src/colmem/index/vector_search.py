"""Search over one view of the embeddings: exact, or by codes with exact scores at the end.

By codes: one scan keeps the rows with the best sign sums; their level codes are scored best first
until no row left can reach the k best; the few that may be among them get their exact scores. When
the scan kept too few to settle that, it is repeated keeping more, and at last everything is exact.
Pure: nothing here is changed by a search, and the number of threads never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from colmem.index.codes import CodeView
from colmem.schema import Admitted, Candidates, Mask, RowIds, Scores, Vectors
from colmem_kernels.codes import keep_best, prepare_query, refine_codes, scan_codes
from colmem_kernels.lanes import ROWS_PER_BLOCK
from colmem_kernels.similarity import dot_rows, dot_top, mask_rows
from colmem_kernels.topk import top_k

# How far, in standard deviations, the sign sum of a row among the k best may be off: the most
# that is looked at (more in a smaller store, where it costs little), and the least that must have
# been; and the same for its level score. Chosen by bench/bench_vector.py for a recall of .99.
SIGN_ERROR_SDS = 1.9
SIGN_ERROR_SDS_LEAST = 1.3
LEVEL_ERROR_SDS = 2.2
_SIGN_SD = float(
    np.sqrt(np.pi / 2.0 - 1.0)
)  # times sqrt(1 / width): Gao and Long 2024, theorem 3.2
_LEVEL_SD = float(np.sqrt(0.01154))  # of a Gaussian at 16 uniform levels: Max 1960, table 2

# A scan keeps _KEEP_BASE rows for the 10 best of a million; the exponents fit measured rank depths.
_KEEP_BASE = 3000
_KEEP_MIN = 512
_KEEP_GROWTH = 8
_KEEP_FAR_K = 1

# One row scored exactly takes as long as _EXACT_COST rows scanned.
_EXACT_COST = 50
_EXACT_ROWS_MIN = 4096
_SPLIT_ROWS_MIN = 200_000

T = TypeVar("T")


class SearchView(NamedTuple):
    """What a search sees: vectors float32 (n_rows, dim); codes of the same rows, or None."""

    n_rows: int
    vectors: Vectors
    codes: CodeView | None


class Found(NamedTuple):
    """The best rows, and the lowest and highest score of all admitted rows (0, 0 without any)."""

    best: Candidates
    lowest: float
    highest: float


class Workers(NamedTuple):
    """Threads to share a scan with: ``n_threads`` in all, the calling one included."""

    executor: Executor | None = None
    n_threads: int = 1

    def map(self, function: Callable[[int, int], T], length: int, step: int) -> Iterable[T]:
        """Call ``function(first, last)`` over 0..length cut into one range per thread."""
        if self.executor is None or self.n_threads <= 1 or length * step < _SPLIT_ROWS_MIN:
            return [function(0, length)]
        edges = [length * i // self.n_threads for i in range(self.n_threads + 1)]
        rest = [self.executor.submit(function, first, last) for first, last in pairwise(edges[1:])]
        return [function(edges[0], edges[1]), *(future.result() for future in rest)]


def search_view(
    view: SearchView, query: Vectors, k: int, admitted: Admitted, workers: Workers, *, exact: bool
) -> Found:
    """Find the k best admitted rows, best first, ties in order of rows.

    query : float32 (dim,), finite.
    """
    n_rows = min(view.n_rows, len(admitted.mask))
    mask = np.ascontiguousarray(admitted.mask[:n_rows])
    count = min(admitted.count, n_rows)
    k = max(0, min(k, count))
    length = float(np.sqrt(np.dot(query, query)))
    few = count <= max(_EXACT_ROWS_MIN, n_rows // _EXACT_COST)
    if exact or few or view.codes is None or length == 0.0:
        return _search_exact(view.vectors, query, k, mask, count, workers)
    search = _CodeSearch(view.vectors, view.codes, query, length, mask, count, workers)
    keep = _keep_rows(k, count)
    while keep < count // 2:
        found = search.run(k, keep)
        if found is not None:
            return found
        keep *= _KEEP_GROWTH
    return _search_exact(view.vectors, query, k, mask, count, workers)


def _keep_rows(k: int, count: int) -> int:
    wanted = _KEEP_BASE * (max(k, 1) / 10) ** 0.65 * (count / 1e6) ** 0.4
    return max(_KEEP_MIN, 4 * k, int(wanted))


def _search_exact(
    vectors: Vectors, query: Vectors, k: int, mask: Mask, count: int, workers: Workers
) -> Found:
    if count == 0:
        return Found(_nothing(), 0.0, 0.0)
    if count <= len(mask) // 8:
        rows = np.empty(count, np.int64)
        rows = rows[: mask_rows(mask, rows)]
        scores = np.empty(len(rows), np.float32)
        dot_rows(vectors, query, rows, scores)
        return Found(_best(rows, scores, k), *_extremes(scores))

    def part(first: int, last: int) -> tuple[RowIds, Scores, Scores]:
        rows = np.empty(k, np.int64)
        scores = np.empty(k, np.float32)
        bounds = np.empty(2, np.float32)
        held = dot_top(vectors, query, mask, first, last, rows, scores, bounds)
        return rows[:held], scores[:held], bounds

    parts = list(workers.map(part, len(mask), 1))
    rows = np.concatenate([part[0] for part in parts])
    scores = np.concatenate([part[1] for part in parts])
    bounds = np.stack([part[2] for part in parts])
    lowest, highest = float(bounds[:, 0].min()), float(bounds[:, 1].max())
    if lowest > highest:
        return Found(_nothing(), 0.0, 0.0)
    return Found(_best(rows, scores, k), lowest, highest)


class _CodeSearch:
    """One query prepared for the codes."""

    def __init__(
        self,
        vectors: Vectors,
        codes: CodeView,
        query: Vectors,
        length: float,
        mask: Mask,
        count: int,
        workers: Workers,
    ) -> None:
        width = codes.flips.shape[1]
        self._vectors = vectors
        self._codes = codes
        self._query = query
        self._mask = mask
        self._workers = workers
        self._keep_far = _keep_rows(_KEEP_FAR_K, count)
        self._tables = np.empty(4 * width, np.uint8)
        self._weights = np.empty(width, np.int16)
        self._affine = np.empty(4, np.float64)
        prepare_query(
            query, codes.flips, codes.lookup_max, self._tables, self._weights, self._affine
        )
        sign_sds = max(SIGN_ERROR_SDS, min(3.0, 2.6 - 0.7 * np.log10(count / 1e5)))
        self._limits = (
            length,
            sign_sds * _SIGN_SD / width**0.5,
            min(sign_sds, SIGN_ERROR_SDS_LEAST) * _SIGN_SD / width**0.5,
            LEVEL_ERROR_SDS * _LEVEL_SD * length / width**0.5,
        )

    def run(self, k: int, keep: int) -> Found | None:
        """Search with ``keep`` rows from the scan; None when those do not settle the k best."""
        near, far = self._scan(keep, self._keep_far)
        rows, is_settled = self._refine(near, self._weights, self._affine, max(k, 1))
        if not is_settled and len(near[0]) == keep:
            return None
        scores = self._exact(rows)
        a0, a1, a2, a3 = self._affine
        turned = np.array([a0, -(a0 * self._codes.sum_max + a1), a2, -a3])
        far_rows, _ = self._refine(far, -self._weights, turned, 1)
        lowest = min(self._exact(far_rows).min(initial=np.inf), scores.min(initial=np.inf))
        return Found(_best(rows, scores, k), float(lowest), float(scores.max()))

    def _exact(self, rows: RowIds) -> Scores:
        scores = np.empty(len(rows), np.float32)
        dot_rows(self._vectors, self._query, rows, scores)
        return scores

    def _scan(self, keep: int, keep_far: int) -> tuple[_Sums, _Sums]:
        """Rows with the best sign sums and rows with the worst, each in order of rows."""
        n_rows = len(self._mask)
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
                    self._mask,
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
    return merged.first(keep_best(*merged, len(merged.rows), keep, sum_max))


def _nothing() -> Candidates:
    return Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


def _extremes(scores: Scores) -> tuple[float, float]:
    if not len(scores):
        return 0.0, 0.0
    return float(scores.min()), float(scores.max())


def _best(rows: RowIds, scores: Scores, k: int) -> Candidates:
    if len(rows) > 4 * k:
        best_rows = np.empty(k, np.int64)
        best_scores = np.empty(k, np.float32)
        held = top_k(rows, scores, best_rows, best_scores)
        rows, scores = best_rows[:held], best_scores[:held]
    order = np.lexsort((rows, -scores))[:k]
    return Candidates(rows[order], scores[order])
