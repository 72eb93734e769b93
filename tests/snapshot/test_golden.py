"""Every golden case, counted: one that is not run is a failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_cases import NAMES, Case


def test_all_cases_are_here() -> None:
    assert len(NAMES) == 135


@pytest.mark.parametrize("name", NAMES)
def test_case(
    name: str, stores: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    case.run(stores())
