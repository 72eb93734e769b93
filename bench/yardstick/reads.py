"""Every read of a contender: checked against the exact answer first, and then timed."""

from __future__ import annotations

import time
from typing import Any

from yardstick import checks
from yardstick.clocks import Result, per_second, timed
from yardstick.metadata import FACETS, FILTERS, UNFILTERED, Filter
from yardstick.run import MODES, Run
from yardstick.truth import K
from yardstick.workload import Query

EXPLORE_LIMIT, PAGE_ITEMS, GET_IDS = 50, 10, 200
EXPLORE_FILTERS = ("none", "50 %", "1 %")
PAGES = (1, 1_000)
TUNED_BY = 50
"""Queries that the effort of an approximate search is chosen by."""


def measure_reads(run: Run) -> None:
    run.contender.open()
    _tune(run)
    for mode in MODES:
        if mode in run.contender.modes:
            for filter in FILTERS:
                _search(run, mode, filter)
    for facet in FACETS if "explore" in run.contender.can else ():
        for filter in FILTERS:
            if filter.name in EXPLORE_FILTERS:
                _explore(run, facet, filter)
    if "get" in run.contender.can:
        _get(run)
    for page in PAGES if "page" in run.contender.can else ():
        for filter in (UNFILTERED, FILTERS[1]):
            _page(run, page, filter)
    run.contender.close()


def _answers(
    run: Run, mode: str, filter: Filter, prepared: Any, seconds: float
) -> dict[int, list[int]]:
    """Rows for each query, for as many as fit the span."""
    contender, found = run.contender, {}
    end = time.perf_counter() + seconds
    for i, asked in enumerate(run.workload.queries):
        answer = contender.search(mode, asked.text, asked.vector, K, prepared)
        found[i] = contender.rows(answer, run.workload)
        problem = checks.check_rows(run.workload, mode, filter.name, i, found[i])
        if problem:
            run.refuse(f"{mode} search, filter {filter.name}, query {i}", problem)
        if time.perf_counter() > end and i >= 4:
            break
    return found


def _tune(run: Run) -> None:
    """Choose the least effort that reaches the recall."""
    if "vector" not in run.contender.modes:
        return
    tried = {}
    for effort in run.contender.efforts:
        run.contender.effort = effort
        found = {}
        for i, asked in enumerate(run.workload.queries[:TUNED_BY]):
            answer = run.contender.search("vector", asked.text, asked.vector, K)
            found[i] = run.contender.rows(answer, run.workload)
        tried[str(effort)] = checks.mean_share(run.workload, "recall", "none", found)
        if (tried[str(effort)] or 0) >= checks.RECALL_MIN:
            break
    if tried:
        run.report(["effort"], {"chosen": run.contender.effort, "recall": tried})


def _search(run: Run, mode: str, filter: Filter) -> None:
    contender, where = run.contender, ["search", mode, filter.name]
    try:
        prepared = contender.prepare(filter)
    except NotImplementedError:
        return
    found = _answers(run, mode, filter, prepared, 4 * run.seconds)
    result: Result = {"admitted": run.workload.truth.admitted[filter.name]}
    result["wrong"] = sum(
        checks.check_rows(run.workload, mode, filter.name, i, rows) is not None
        for i, rows in found.items()
    )
    shares = {
        share: checks.mean_share(run.workload, share, filter.name, found)
        for share in checks.SHARES[mode]
    }
    result |= shares
    best = max((share for share in shares.values() if share is not None), default=1.0)
    least = checks.RECALL_MIN if mode == "vector" else checks.OVERLAP_MIN
    if best < least:
        run.refuse(f"{mode} search, filter {filter.name}", f"{shares}, expected {least}")

    def ask(asked: Query) -> Any:
        return contender.search(mode, asked.text, asked.vector, K, prepared)

    result |= timed(ask, run.workload.queries, run.seconds)
    run.report(where, result)
    if filter is UNFILTERED:
        for n_threads in (1, 2) if "threads" in contender.can else (1,):
            rate = per_second(ask, run.workload.queries, n_threads, run.seconds)
            run.report(["threads", mode, str(n_threads)], rate)


def _explore(run: Run, facet: str, filter: Filter) -> None:
    contender = run.contender
    try:
        prepared = contender.prepare(filter)
    except NotImplementedError:
        return
    counts = contender.explore(facet, prepared, EXPLORE_LIMIT)
    problem = checks.count_wrong(run.workload, facet, filter.name, counts, EXPLORE_LIMIT)
    if problem:
        run.refuse(f"explore {facet}, filter {filter.name}", problem)
    result: Result = {"is_right": problem is None}
    result |= timed(
        lambda _: contender.explore(facet, prepared, EXPLORE_LIMIT), [None], run.seconds / 2
    )
    run.report(["explore", facet, filter.name], result)


def _get(run: Run) -> None:
    contender, n = run.contender, run.workload.n
    groups = []
    for start in range(20):
        step = max(1, n // GET_IDS)
        rows = [(start * 97 + i * step) % n for i in range(min(GET_IDS, n))]
        groups.append(contender.ids(rows))
    n_found = len(contender.get(groups[0]))
    if n_found != min(GET_IDS, n):
        run.refuse("get", f"{n_found} items of {GET_IDS}")
    run.report(["get_200"], {"found": n_found} | timed(contender.get, groups, run.seconds))


def _page(run: Run, page: int, filter: Filter) -> None:
    contender = run.contender
    try:
        prepared = contender.prepare(filter)
    except NotImplementedError:
        return
    # The last whole page, where there are fewer.
    number = min(page, run.workload.truth.admitted[filter.name] // PAGE_ITEMS) - 1
    place = contender.place(number, PAGE_ITEMS, prepared)
    rows = contender.rows(contender.page(place, PAGE_ITEMS, prepared), run.workload)
    expected = checks.page_rows(run.workload, number, PAGE_ITEMS, filter.name)
    if rows != expected:
        run.refuse(f"page {number + 1}, filter {filter.name}", f"rows {rows}, expected {expected}")
    result: Result = {"number": number + 1, "is_right": rows == expected}
    result |= timed(lambda _: contender.page(place, PAGE_ITEMS, prepared), [None], run.seconds / 2)
    run.report(["list", f"page {page}", filter.name], result)
