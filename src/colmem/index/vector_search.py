"""Search over one view of the embeddings: chooses between the exact scan and the codes.

Exact when few rows are admitted, when many of them are asked for, or on demand; else the codes
answer (:mod:`colmem.index.vector_code_search`). Pure: a search changes nothing here, and the number
of threads never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from colmem.schema import Admitted, Candidates, Mask, RowIds, Scores, Vectors
from colmem_kernels.similarity import dot_rows, dot_top, mask_rows
from colmem_kernels.topk import top_k

_EXACT_ROWS_MAX = 4096
_SPLIT_ROWS_MIN = 200_000
_PLAIN_ROWS = 1 << 16
_ROUNDING = np.float32(1e-5)

if TYPE_CHECKING:
    from colmem.index.codes import CodeView

T = TypeVar("T")


class SearchView(NamedTuple):
    """What a search sees: vectors float32 (n_rows, dim); codes of the same rows, or None."""

    n_rows: int
    vectors: Vectors
    codes: CodeView | None


class Found(NamedTuple):
    """The best rows, and the lowest and highest score of all admitted rows.

    The bounds are (0, 0) without any row, and mean nothing when they were not asked for.
    """

    best: Candidates
    lowest: float
    highest: float


class Query(NamedTuple):
    """What is looked for, and among which rows.

    vector : float32 (dim,), of this length, not 0; mask : uint8 (n_rows,), n_admitted ones;
    needs_bounds : whether the lowest score is wanted.
    """

    vector: Vectors
    length: float
    k: int
    mask: Mask
    n_admitted: int
    needs_bounds: bool


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
    view: SearchView,
    query: Vectors,
    k: int,
    admitted: Admitted,
    workers: Workers,
    *,
    exact: bool,
    needs_bounds: bool,
) -> Found:
    """Find the k best admitted rows, best first, ties in order of rows.

    query : float32 (dim,), finite.
    """
    n_rows = min(view.n_rows, len(admitted.mask))
    mask = np.ascontiguousarray(admitted.mask[:n_rows])
    count = min(admitted.count, n_rows)
    k = max(0, min(k, count))
    length = float(np.sqrt(np.dot(query, query)))
    if exact or view.codes is None or length == 0.0 or compares_all(view, k, count):
        return _search_exact(view.vectors, query, k, mask, count, workers)
    # Compiled only in stores large enough to use codes.
    from colmem.index.vector_code_search import gate, search_codes  # noqa: PLC0415

    if not gate.is_open(n_rows):
        return _search_plain(view.vectors, query, k, mask)
    prepared = Query(query, length, k, mask, count, needs_bounds)
    return search_codes(view.vectors, view.codes, prepared, workers)


def compares_all(view: SearchView, k: int, n_admitted: int) -> bool:
    """Whether a search for k rows compares every admitted one instead of scanning codes."""
    return view.codes is None or n_admitted <= max(_EXACT_ROWS_MAX, 8 * k)


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
        return Found(best_of(rows, scores, k), *_extremes(scores))

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
    return Found(best_of(rows, scores, k), lowest, highest)


def _search_plain(vectors: Vectors, query: Vectors, k: int, mask: Mask) -> Found:
    """Find by NumPy what `_search_exact` finds, while the kernels of a larger search are not made.

    What rounds to a score close to the k-th best is scored once more, as everywhere.
    """
    scores = np.empty(len(mask), np.float32)
    for first in range(0, len(mask), _PLAIN_ROWS):
        last = first + _PLAIN_ROWS
        np.dot(vectors[first:last], query, out=scores[first:last])
    rows = np.flatnonzero(mask)
    scores = scores[rows]
    if k == 0:
        return Found(_nothing(), *_extremes(scores))
    enough = np.partition(scores, len(scores) - k)[len(scores) - k]
    near = rows[scores >= enough - _ROUNDING * np.abs(scores).max()]
    exact = np.empty(len(near), np.float32)
    dot_rows(vectors, query, near, exact)
    return Found(best_of(near, exact, k), *_extremes(scores))


def _nothing() -> Candidates:
    return Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


def _extremes(scores: Scores) -> tuple[float, float]:
    if not len(scores):
        return 0.0, 0.0
    return float(scores.min()), float(scores.max())


def best_of(rows: RowIds, scores: Scores, k: int) -> Candidates:
    """Order the k best of some rows: higher score first, of equal scores the lower row."""
    if len(rows) > 4 * k:
        best_rows = np.empty(k, np.int64)
        best_scores = np.empty(k, np.float32)
        held = top_k(rows, scores, best_rows, best_scores)
        rows, scores = best_rows[:held], best_scores[:held]
    order = np.lexsort((rows, -scores))[:k]
    return Candidates(rows[order], scores[order])
