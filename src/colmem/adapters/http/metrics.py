"""Counters of a server in Prometheus' text form: requests, times, and what the store holds."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

_BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts requests by route and status, and their times; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.in_flight = 0

    def begin(self) -> None:
        """Count a request in."""
        with self._lock:
            self.in_flight += 1

    def end(self, route: str, status: int, seconds: float) -> None:
        """Count a request out."""
        with self._lock:
            self.in_flight -= 1
            self._requests[route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]
            buckets = self._buckets.setdefault(route, [0] * (len(_BOUNDS_SECONDS) + 1))
            buckets[bisect_left(_BOUNDS_SECONDS, seconds)] += 1

    def text(self, stats: Mapping[str, Any]) -> str:
        """Everything counted, and the counts of the store."""
        with self._lock:
            return "\n".join([*self._lines(), *_store_lines(stats), ""])

    def _lines(self) -> Iterator[str]:
        yield "# HELP colmem_http_requests_total Requests answered."
        yield "# TYPE colmem_http_requests_total counter"
        for (route, status), count in sorted(self._requests.items()):
            yield f'colmem_http_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# HELP colmem_http_request_seconds Time from request to answer."
        yield "# TYPE colmem_http_request_seconds histogram"
        name = "colmem_http_request_seconds"
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*_BOUNDS_SECONDS, "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'
        yield "# HELP colmem_http_requests_in_flight Requests being answered."
        yield "# TYPE colmem_http_requests_in_flight gauge"
        yield f"colmem_http_requests_in_flight {self.in_flight}"


def _store_lines(stats: Mapping[str, Any]) -> Iterator[str]:
    for key in ("items", "rows", "forgotten_rows", "generation"):
        if key in stats:
            yield f"# TYPE colmem_store_{key} gauge"
            yield f"colmem_store_{key} {stats[key]}"
    if "bytes" in stats:
        yield "# TYPE colmem_store_bytes gauge"
        for part, size in stats["bytes"].items():
            yield f'colmem_store_bytes{{part="{part}"}} {size}'
