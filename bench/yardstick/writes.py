"""Durable writes of a contender, forgetting and compaction; the store is spent afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from yardstick.clocks import Result, once, summary
from yardstick.metadata import FORGOTTEN, TABLES
from yardstick.run import Run
from yardstick.truth import K
from yardstick.workload import Batch

SINGLES, SEEN, BULKS, BULK = 200, 30, 20, 100
AT_ONCE, THREADS = 100, 8


def measure_writes(run: Run) -> None:
    contender, fresh = run.contender, run.workload.fresh()
    contender.open()
    if "store" in contender.can:
        singles = [fresh.part(i, 1) for i in range(SINGLES + SEEN)]
        run.report(["store"], _through(contender.store, singles[:SINGLES], run.seconds))
        _store_then_search(run, singles[SINGLES:])
        if "writers" in contender.can:
            first = SINGLES + SEEN
            _store_at_once(run, [fresh.part(first + i, 1) for i in range(THREADS * AT_ONCE)])
    if "store_many" in contender.can:
        first = SINGLES + SEEN + THREADS * AT_ONCE
        bulks = [fresh.part(first + BULK * i, BULK) for i in range(BULKS)]
        run.report(["store_many_100"], _through(contender.store, bulks, run.seconds))
    if "forget" in contender.can:
        _forget(run)
    if "compact" in contender.can:
        _, compacting = once(contender.compact)
        run.report(["compact"], compacting)
    if "forget" in contender.can and "vector" in contender.modes:
        _check_forgotten(run)
    contender.close()


def _through(call: Callable[[Batch], object], batches: Sequence[Batch], seconds: float) -> Result:
    """Time a call with each batch once, for at most twice the span; the first warms up."""
    walls, cpu = [], 0.0
    end = time.perf_counter() + 2 * seconds
    for i, batch in enumerate(batches):
        _, took = once(lambda batch=batch: call(batch))  # type: ignore[misc]
        if i:
            walls.append(took["s"])
            cpu += took["cpu_s"]
        if time.perf_counter() > end and i >= 2:
            break
    return summary(walls) | {
        "cpu_ms": round(1e3 * cpu / len(walls), 4),
        "per_s": round(len(walls) / sum(walls), 2),
    }


def _store_then_search(run: Run, singles: Sequence[Batch]) -> None:
    """Store an item and search for it at once: is it the first hit?"""
    contender = run.contender
    mode = "vector" if "vector" in contender.modes else "keyword"
    n_seen, tried = 0, 0

    def both(batch: Batch) -> None:
        nonlocal n_seen, tried
        contender.store(batch)
        found = contender.search(mode, batch.texts[0], batch.vectors[0], K)
        rows = contender.rows(found, run.workload)
        tried += 1
        n_seen += rows[:1] == [batch.first]

    result = _through(both, singles, run.seconds)
    if n_seen != tried:
        run.refuse("search after store", f"{n_seen} of {tried} new items found first")
    run.report(["store_then_search"], {"seen": round(n_seen / tried, 3)} | result)


def _store_at_once(run: Run, singles: Sequence[Batch]) -> None:
    """Many threads storing single items: items per second in all."""
    end = time.perf_counter() + 3 * run.seconds

    def work(thread: int) -> int:
        own = singles[thread::THREADS]
        for i, batch in enumerate(own):
            if time.perf_counter() > end:
                return i
            run.contender.store(batch)
        return len(own)

    with ThreadPoolExecutor(THREADS) as pool:
        n, took = once(lambda: sum(pool.map(work, range(THREADS))))
    run.report(["store_8_threads"], {"n": n, "per_s": round(n / took["s"], 2)} | took)


def _forget(run: Run) -> None:
    prepared = run.contender.prepare(FORGOTTEN)
    n_forgotten, took = once(lambda: run.contender.forget(prepared))
    run.report(["forget_1_percent"], took | {"items": n_forgotten})
    expected = int(_is_forgotten(run, range(run.workload.n)).sum())
    # Of the items stored meanwhile some are meant too.
    if n_forgotten is not None and n_forgotten < expected:
        run.refuse("forget", f"{n_forgotten} items, expected {expected} or more")


def _check_forgotten(run: Run) -> None:
    """No search may give what was forgotten."""
    contender = run.contender
    for asked in run.workload.queries[:20]:
        found = contender.search("vector", asked.text, asked.vector, K)
        rows = contender.rows(found, run.workload)
        if _is_forgotten(run, rows).any():
            run.refuse("search after forget and compact", f"forgotten ones are among {rows}")


def _is_forgotten(run: Run, rows: Sequence[int]) -> npt.NDArray[np.bool_]:
    assert FORGOTTEN.field is not None
    assert FORGOTTEN.value is not None
    code = TABLES[FORGOTTEN.field].index(FORGOTTEN.value)
    held: npt.NDArray[np.bool_] = run.workload.codes(FORGOTTEN.field)[np.asarray(rows)] == code
    return held
