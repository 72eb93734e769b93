"""Runs command lines in this process, on stores in temporary folders."""

from pathlib import Path

import pytest
from cli_runs import ITEMS, Ran, Run
from click.testing import CliRunner

import colmem
from colmem.adapters.cli import cli


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``colmem`` with arguments."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: object, stdin: str | bytes | None = None) -> Ran:
        result = CliRunner().invoke(cli, [*map(str, args)], input=stdin)
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of ITEMS that tests only read."""
    path = tmp_path_factory.mktemp("filled") / "s.colmem"
    with colmem.open(path) as engine:
        engine.store_many(ITEMS)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of ITEMS of the test's own."""
    path = tmp_path / "s.colmem"
    with colmem.open(path) as engine:
        engine.store_many(ITEMS)
    return path
