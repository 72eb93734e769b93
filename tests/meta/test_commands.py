"""Every command has help and is documented, and asking for help is cheap."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from colmem.adapters.cli import cli

TOP = Path(__file__).parents[2]
HEAVY = ("duckdb", "llvmlite", "numba", "numpy", "pyarrow", "rich", "tantivy")
COMMANDS = list(cli.commands.values())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_has_help(command: click.Command) -> None:
    assert command.help
    first, _, _ = command.help.partition("\n")
    assert first.endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.opts} has no help"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_prints_json_and_shows_tracebacks(command: click.Command) -> None:
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {"--json", "--debug"} <= flags


def test_the_documentation_is_what_help_says() -> None:
    script = TOP / "docs" / "make_cli.py"
    checked = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_every_surface_has_its_command() -> None:
    assert {*cli.commands} >= {"serve", "mcp", "tools", "context"}


@pytest.mark.parametrize(
    "statement",
    [
        "import colmem",
        "import colmem.contract",
        "import colmem.adapters.cli",
        "from colmem import MetaFilter, Reach, document; document('x').fingerprint()",
    ],
)
def test_what_is_light_stays_light(statement: str) -> None:
    code = f"import sys; {statement}; print(*sorted({{*{HEAVY}}} & {{*sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
