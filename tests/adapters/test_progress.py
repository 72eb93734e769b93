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


def work(seconds_max: float, total: int | None, terminal: Terminal | None = None) -> None:
    """Work for a while, on a terminal until its rate is shown."""
    with Progress("importing", total) as shown:
        end = time.perf_counter() + seconds_max
        done = 0
        while time.perf_counter() < end and (terminal is None or "/s" not in terminal.getvalue()):
            done += 1
            shown.update(done, done * 2)
            time.sleep(0.01)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


@pytest.mark.parametrize("total", [100, None])
def test_long_work_shows_count_and_rate(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, total: int | None
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.01)
    work(30, total, terminal)
    shown = terminal.getvalue()
    assert "importing" in shown
    assert "items, " in shown
    assert "/s" in shown


def test_short_work_shows_nothing(terminal: Terminal) -> None:
    work(0.05, 100)
    assert terminal.getvalue() == ""


def test_nothing_is_shown_off_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.01)
    work(0.2, 100)
    assert capsys.readouterr().err == ""
