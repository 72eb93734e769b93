"""What colmem is to reach: each measure, its bound, and how figure, best peer and limit are read.

A figure is read from the line of a contender, a limit from the limits of the machine at the same
size; either is None where it was not measured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from yardstick.checks import RECALL_MIN
from yardstick.metadata import SINGLE_VALUED
from yardstick.results import Line, figure
from yardstick.run import MODES

Figure = Callable[[Line], float | None]
SMALL, LARGE = 100_000, 1_000_000
Bounds = dict[int, float]


@dataclass(frozen=True)
class Target:
    """One row of the table.

    bounds : size -> bound; at_most : whether less is better; is_ratio : whether figures are shown
    as shares of the limit, is_speedup : as so many times less; peers : which are compared with
    """

    measure: str
    unit: str
    figure: Figure
    bounds: Bounds
    at_most: bool = True
    limit: Figure | None = None
    limit_name: str = ""
    is_ratio: bool = False
    is_speedup: bool = False
    peers: Callable[[Line], bool] = field(default=lambda line: True)

    def value(self, line: Line | None, limits: Line | None) -> float | None:
        """The figure, or its ratio to the limit where the bound is one."""
        found = None if line is None else self.figure(line)
        if found is None or not self.is_ratio:
            return found
        limit = None if limits is None or self.limit is None else self.limit(limits)
        if not limit:
            return None
        return limit / found if self.is_speedup else found / limit

    def is_met(self, value: float, size: int) -> bool | None:
        """Whether a value keeps the bound of a size; None where it has none."""
        if size not in self.bounds:
            return None
        compare = operator.le if self.at_most else operator.ge
        return bool(compare(value, self.bounds[size]))


def at(*names: str) -> Figure:
    return lambda line: figure(line, *names)


def worst(found: Iterable[float | None]) -> float | None:
    known = [value for value in found if value is not None]
    return max(known) if known else None


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def p50(mode: str, filter: str) -> Figure:
    return at("search", mode, filter, "p50_ms")


def explored(facets: Iterable[str], filters: Iterable[str]) -> Figure:
    """The slowest of some facets under some filters."""
    places = [(facet, filter) for facet in facets for filter in filters]
    return lambda line: worst(figure(line, "explore", *place, "p50_ms") for place in places)


def listed(line: Line) -> float | None:
    pages: dict[str, dict[str, Any]] = line.get("list") or {}
    return worst(one["p50_ms"] for page in pages.values() for one in page.values())


def page_ratio(line: Line) -> float | None:
    last = figure(line, "list", "page 1000", "none", "p50_ms")
    return ratio(last, figure(line, "list", "page 1", "none", "p50_ms"))


def threads_ratio(mode: str) -> Figure:
    def found(line: Line) -> float | None:
        two = figure(line, "threads", mode, "2", "per_s")
        return ratio(two, figure(line, "threads", mode, "1", "per_s"))

    return found


def writers_ratio(line: Line) -> float | None:
    return ratio(figure(line, "store_8_threads", "per_s"), figure(line, "store", "per_s"))


def filtered_ratio(filter: str) -> Figure:
    return lambda line: ratio(p50("vector", filter)(line), p50("vector", "none")(line))


def is_exact_enough(filter: str) -> Callable[[Line], bool]:
    """Peers are compared where they find as much as is asked of colmem."""
    return lambda line: (figure(line, "search", "vector", filter, "recall") or 0) >= RECALL_MIN


def has_both(line: Line) -> bool:
    return {"keyword", "vector"} <= set(line["modes"])


def is_qdrant(line: Line) -> bool:
    return bool(line["contender"] == "qdrant-edge")


_BLAS = at("blas_scan", "with_ten_best", "p50_ms")
_TANTIVY = at("tantivy", "query", "p50_ms")
TARGETS = (
    Target(
        "vector fetch, whole items, one thread",
        "ms",
        p50("vector", "none"),
        {SMALL: 0.7, LARGE: 4},
        limit=_BLAS,
        limit_name="float32 BLAS scan, ids",
        peers=is_exact_enough("none"),
    ),
    Target(
        "… times faster than a BLAS scan",
        "×",
        p50("vector", "none"),
        {LARGE: 20},
        at_most=False,
        limit=_BLAS,
        is_ratio=True,
        is_speedup=True,
        peers=is_exact_enough("none"),
    ),
    Target(
        "… recall@10",
        "",
        at("search", "vector", "none", "recall"),
        {SMALL: RECALL_MIN, LARGE: RECALL_MIN},
        at_most=False,
    ),
    *(
        Target(
            f"vector fetch under a filter of {filter}",
            "ms",
            p50("vector", filter),
            {},
            peers=is_exact_enough(filter),
        )
        for filter in ("1 %", "0.01 %")
    ),
    *(
        Target(f"… {filter}, of unfiltered", "×", filtered_ratio(filter), {LARGE: 1})
        for filter in ("1 %", "0.01 %")
    ),
    *(
        Target(
            f"… {filter}, recall",
            "",
            at("search", "vector", filter, "recall"),
            {SMALL: RECALL_MIN, LARGE: RECALL_MIN},
            at_most=False,
        )
        for filter in ("1 %", "0.01 %")
    ),
    Target(
        "keyword fetch, whole items",
        "ms",
        p50("keyword", "none"),
        {SMALL: 0.5},
        limit=_TANTIVY,
        limit_name="bare tantivy, addresses",
    ),
    Target(
        "… of bare tantivy",
        "×",
        p50("keyword", "none"),
        {LARGE: 2},
        limit=_TANTIVY,
        is_ratio=True,
    ),
    Target("hybrid fetch, whole items", "ms", p50("hybrid", "none"), {SMALL: 1.1, LARGE: 7}),
    *(
        Target(
            f"two client threads, {mode}, of one",
            "×",
            threads_ratio(mode),
            {SMALL: 1.6, LARGE: 1.6},
            at_most=False,
        )
        for mode in MODES
    ),
    Target(
        "explore, slowest single-valued facet, unfiltered",
        "ms",
        explored(SINGLE_VALUED, ["none"]),
        {SMALL: 1, LARGE: 8},
    ),
    Target(
        "… filtered",
        "ms",
        explored(SINGLE_VALUED, ["50 %", "1 %"]),
        {SMALL: 1, LARGE: 8},
    ),
    Target("explore, tag, unfiltered", "ms", explored(["tag"], ["none"]), {SMALL: 4, LARGE: 30}),
    Target("… filtered", "ms", explored(["tag"], ["50 %", "1 %"]), {SMALL: 4, LARGE: 30}),
    Target(
        "ingest to fully searchable, vectors given",
        "items/s",
        at("load", "items_per_s"),
        {},
        at_most=False,
        limit=at("tantivy", "texts_per_s"),
        limit_name="bare tantivy, not stored",
        peers=has_both,
    ),
    Target(
        "… of bare tantivy's rate",
        "of it",
        at("load", "items_per_s"),
        {SMALL: 0.7, LARGE: 0.7},
        at_most=False,
        limit=at("tantivy", "texts_per_s"),
        is_ratio=True,
        peers=has_both,
    ),
    Target(
        "single durable store",
        "ms",
        at("store", "p50_ms"),
        {SMALL: 2, LARGE: 2},
        limit=at("sync", "fdatasync", "p50_ms"),
        limit_name="fdatasync",
    ),
    Target("8 threads storing, of one", "×", writers_ratio, {SMALL: 3, LARGE: 3}, at_most=False),
    Target("store_many(100)", "ms", at("store_many_100", "p50_ms"), {SMALL: 15, LARGE: 15}),
    Target("get of 200 ids", "ms", at("get_200", "p50_ms"), {LARGE: 5}),
    Target("slowest list page of 10, filtered or not", "ms", listed, {LARGE: 10}),
    Target("… 1,000th page, of the first", "×", page_ratio, {LARGE: 1.25}),
    Target("open in a fresh process, imports included", "ms", at("open", "open_ms"), {LARGE: 300}),
    Target("… imports done", "ms", at("open", "again_ms"), {}),
    Target(
        "first hybrid fetch after it, kernels cached", "ms", at("open", "first_ms"), {LARGE: 700}
    ),
    Target(
        "very first open and fetch after installation",
        "ms",
        lambda line: figure(line, "installed", "total_ms"),
        {SMALL: 5_000, LARGE: 5_000},
    ),
    Target(
        "memory of its own while querying",
        "MB",
        at("memory_query", "own_mb"),
        {LARGE: 600},
        peers=has_both,
    ),
    Target(
        "disk beyond the text and 1 KB of vector",
        "bytes an item",
        at("load", "extra_bytes_per_item"),
        {SMALL: 800, LARGE: 800},
        limit=at("tantivy", "bytes_per_text"),
        limit_name="bare tantivy, not stored",
        peers=has_both,
    ),
    Target("import", "ms", at("import_ms"), {}),
)
GROWTH = (
    ("vector fetch", ("read", "vector, none", "p50_ms"), 10),
    ("keyword fetch", ("read", "keyword, none", "p50_ms"), 3),
    ("get of 200 ids", ("read", "get_200", "p50_ms"), 3),
    ("1,000th list page", ("read", "list page 1000", "p50_ms"), 3),
    ("open", ("read", "open_ms"), 3),
)
"""Measure, where it stands in a line of the growth, and how many times it may grow tenfold."""
