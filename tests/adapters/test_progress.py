"""Progress bars: only on a terminal, only when the work takes long, gone when it is done."""

import io
import sys
import time

import pytest

from colmem.adapters import progress
from colmem.adapters.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(seconds_max: float, total: int | None, shown_on: Terminal | None = None) -> None:
    """Work for a while, on a terminal until its rate is shown."""
    with Progress("importing", total) as shown:
        end = time.perf_counter() + seconds_max
        done = 0
        while time.perf_counter() < end and (shown_on is None or "/s" not in shown_on.getvalue()):
            done += 1
            shown.update(done, done * 2)
            time.sleep(0.01)


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Take the place of standard error; not a fixture, as pytest sets it anew for the call."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


@pytest.mark.parametrize("total", [100, None])
def test_long_work_shows_count_and_rate(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.01)
    shown_on = terminal(monkeypatch)
    work(30, total, shown_on)
    shown = shown_on.getvalue()
    assert "importing" in shown
    assert "items, " in shown
    assert "/s" in shown


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_on = terminal(monkeypatch)
    work(0.05, 100)
    assert shown_on.getvalue() == ""


def test_nothing_is_shown_off_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.01)
    work(0.2, 100)
    assert capsys.readouterr().err == ""
