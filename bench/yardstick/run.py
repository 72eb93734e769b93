"""What every measure of a contender is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from yardstick import checks
from yardstick.contender import Contender
from yardstick.workload import Workload

Report = Callable[[Sequence[str], Any], None]
"""Takes the names that lead to a figure in the result, and the figure."""
MODES = ("keyword", "vector", "hybrid")


@dataclass(frozen=True)
class Run:
    """One phase: the contender, what it is measured with, and where figures go.

    seconds : how long one measure may go on; is_strict : a wrong answer ends the run
    """

    contender: Contender
    workload: Workload
    report: Report
    seconds: float
    is_strict: bool

    def refuse(self, what: str, problem: str) -> None:
        """Fail when the contender must be right."""
        if self.is_strict:
            raise checks.WrongAnswerError(f"{what}: {problem}")
