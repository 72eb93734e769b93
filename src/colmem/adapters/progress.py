"""Progress bars: on a terminal's standard error, for work that takes over a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Final

SHOWN_AFTER_SECONDS: Final = 1.0
REFRESH_SECONDS: Final = 0.1


class Progress:
    """Shows how far a piece of work is, with its rate and the time that remains.

    ``total`` is in the unit of ``done``; ``count`` is what the rate is about, the same unless
    given. Off a terminal nothing is shown. Use it as a context manager.
    """

    def __init__(self, label: str, total: int | None = None, unit: str = "items") -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._lock = threading.Lock()
        self._is_over = False
        self._bar: Any = None
        self._task: Any = None
        self._started = self._refreshed = time.perf_counter()
        self._timer = threading.Timer(SHOWN_AFTER_SECONDS, self._show)
        self._timer.daemon = True

    def update(self, done: int, count: int | None = None) -> None:
        """Take the state of the work; cheap enough to be called for each item."""
        if self._bar is None:
            return
        now = time.perf_counter()
        if now - self._refreshed < REFRESH_SECONDS:
            return
        self._refreshed = now
        count = done if count is None else count
        about = f"{count:,} {self._unit}, {count / (now - self._started):,.0f}/s"
        self._bar.update(self._task, completed=done, about=about)

    def update_of(self, done: int, total: int) -> None:
        """Take the state of work whose size shows only while it is under way."""
        if total != self._total:
            self._total = total
            if self._bar is not None:
                self._bar.update(self._task, total=total)
        self.update(done)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        from rich import progress  # noqa: PLC0415 - rich only when there is something to show
        from rich.console import Console  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[about]}"),
            progress.TimeElapsedColumn(),
            *([] if self._total is None else [progress.TimeRemainingColumn()]),
            console=Console(stderr=True),
            transient=True,
        )
        with self._lock:
            if self._is_over:
                return
            self._task = bar.add_task(self._label, total=self._total, about="")
            bar.start()
            self._bar = bar
