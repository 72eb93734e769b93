"""Timing loops: wall time beside CPU time, on one thread and on several."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import numpy as np

CALLS_MIN, CALLS_MAX = 5, 2_000
Result = dict[str, Any]


def timed(call: Callable[[Any], Any], arguments: Sequence[Any], seconds: float) -> Result:
    """Call with each argument in turn, for so long: quantiles of the wall time, CPU per call.

    The first tenth of the calls, at most 20, warms up and is not counted.
    """
    for argument in islice(cycle(arguments), warm_up_calls(call, arguments, seconds / 10)):
        call(argument)
    walls: list[float] = []
    clock = time.perf_counter
    cpu, begin = time.process_time(), clock()
    for argument in cycle(arguments):
        start = clock()
        call(argument)
        end = clock()
        walls.append(end - start)
        done = len(walls)
        if done >= CALLS_MAX or (end - begin > seconds and done >= CALLS_MIN):
            break
    cpu, whole = time.process_time() - cpu, clock() - begin
    return summary(walls) | {
        "cpu_ms": round(1e3 * cpu / len(walls), 4),
        "per_s": round(len(walls) / whole, 2),
    }


def warm_up_calls(call: Callable[[Any], Any], arguments: Sequence[Any], seconds: float) -> int:
    """How many calls fit a span, by the time the first takes; 2 to 20."""
    start = time.perf_counter()
    call(arguments[0])
    took = time.perf_counter() - start
    return int(np.clip(seconds / max(took, 1e-6), 2, 20))


def once(call: Callable[[], Any]) -> tuple[Any, Result]:
    """One call: its answer, seconds and CPU seconds."""
    cpu, start = time.process_time(), time.perf_counter()
    answer = call()
    wall = time.perf_counter() - start
    return answer, {"s": round(wall, 5), "cpu_s": round(time.process_time() - cpu, 5)}


def per_second(
    call: Callable[[Any], Any], arguments: Sequence[Any], n_threads: int, seconds: float
) -> Result:
    """Calls per second of so many threads at once, each going through arguments of its own."""
    barrier = threading.Barrier(n_threads + 1)
    span = [float("inf")]

    def work(thread: int) -> int:
        own = cycle(arguments[thread::n_threads])
        try:
            call(next(own))
            barrier.wait()
        except Exception:
            barrier.abort()
            raise
        for count, argument in enumerate(own):
            if time.perf_counter() > span[0]:
                return count
            call(argument)
        return 0

    with ThreadPoolExecutor(n_threads) as pool:
        counts = [pool.submit(work, thread) for thread in range(n_threads)]
        with contextlib.suppress(threading.BrokenBarrierError):  # its cause is raised below
            barrier.wait()
        cpu, start = time.process_time(), time.perf_counter()
        span[0] = start + seconds
        n = sum(count.result() for count in counts)
    wall = time.perf_counter() - start
    cpu_ms = 1e3 * (time.process_time() - cpu) / max(n, 1)
    return {"per_s": round(n / wall, 2), "cpu_ms": round(cpu_ms, 4)}


def summary(walls: Sequence[float]) -> Result:
    """Quantiles of wall times, in milliseconds."""
    ms = 1e3 * np.asarray(walls)
    return {
        "n": len(ms),
        "min_ms": round(float(ms.min()), 4),
        "p50_ms": round(float(np.median(ms)), 4),
        "p95_ms": round(float(np.percentile(ms, 95)), 4),
        "mean_ms": round(float(ms.mean()), 4),
    }
