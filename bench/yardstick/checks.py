"""Answers beside the exact ones. Every answer is checked before it is timed.

A contender whose answers must be exact fails loudly; how good those of the others are is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from yardstick.metadata import TABLES
from yardstick.truth import K, Truth
from yardstick.workload import Workload

RECALL_MIN = 0.99
OVERLAP_MIN = 0.9
"""With one of the two exact rankings: what an analyser makes of a text may differ a little."""
SHARES = {"vector": ("recall",), "keyword": ("overlap", "overlap_rounded"), "hybrid": ()}
"""How the answers of each mode are compared with the exact ones."""


class WrongAnswerError(AssertionError):
    """A contender that must be right is not."""


def share_found(
    truth: Truth, share: str, filter: str, query: int, rows: Sequence[int]
) -> float | None:
    """One of SHARES of the ten first hits; None where nothing matches."""
    top = rows[:K]
    if share == "recall":
        wanted = {row for row in truth.vector[filter][query].tolist() if row >= 0}
        return len(wanted.intersection(top)) / len(wanted) if wanted else None
    size = int(truth.keyword_sizes[filter][query])
    if not size:
        return None
    exact = truth.keyword_rows(filter, query, rounded=share == "overlap_rounded")
    return min(size, len(exact.intersection(top))) / size


def check_rows(
    workload: Workload, mode: str, filter: str, query: int, rows: Sequence[int]
) -> str | None:
    """What is wrong with an answer, however approximate the ranking: its number, or an item."""
    truth = workload.truth
    if len(set(rows)) != len(rows):
        return "an item twice"
    if mode == "keyword":
        expected = int(truth.keyword_sizes[filter][query])
    else:
        expected = min(K, truth.admitted[filter])
    if len(rows) != expected:
        return f"{len(rows)} hits, expected {expected}"
    outside = [row for row in rows if row < 0 or not admits(workload, filter, row)]
    return f"items {outside[:3]} that the filter does not admit" if outside else None


def admits(workload: Workload, filter: str, row: int) -> bool:
    return row < workload.n and bool(workload.mask(filter)[row])


def count_wrong(
    workload: Workload, facet: str, filter: str, counts: Mapping[str, int], limit: int
) -> str | None:
    """What is wrong with the counts along a facet; ties at the end may be cut either way."""
    exact = workload.truth.counts[filter][facet]
    expected = {v: int(n) for v, n in zip(TABLES[facet], exact, strict=True) if n}
    wrong = {v: n for v, n in counts.items() if expected.get(v) != n}
    if wrong:
        value = next(iter(wrong))
        return f"{value}: {wrong[value]}, expected {expected.get(value, 0)}"
    top = sorted(expected.values(), reverse=True)[:limit]
    if sorted(counts.values(), reverse=True) != top:
        return f"{len(counts)} values, expected the {len(top)} most frequent"
    return None


def page_rows(workload: Workload, page: int, size: int, filter: str) -> list[int]:
    """The rows of a page of a listing in order of storing."""
    admitted = np.flatnonzero(workload.mask(filter))
    rows: list[int] = admitted[page * size : (page + 1) * size].tolist()
    return rows


def mean_share(
    workload: Workload, share: str, filter: str, answers: Mapping[int, Sequence[int]]
) -> float | None:
    """Mean of one of SHARES over the queries answered."""
    truth = workload.truth
    shares = [share_found(truth, share, filter, query, rows) for query, rows in answers.items()]
    known = [share for share in shares if share is not None]
    return round(float(np.mean(known)), 4) if known else None
