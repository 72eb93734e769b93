"""The README's blocks run, in their order, and print what stands there."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(match[1], match[2]) for match in BLOCK.finditer(README)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the blocks run: an empty folder that sees the bundled data."""
    path = tmp_path_factory.mktemp("readme")
    (path / "data").symlink_to(TOP / "data")
    return path


def test_there_are_blocks_of_both_kinds() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "console"}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(folder: Path, number: int) -> None:
    kind, text = BLOCKS[number]
    if kind == "python":
        _run_python(text, folder)
    else:
        for command, expected in _commands(text):
            _run_command(command, expected, folder)


def _run_python(text: str, folder: Path) -> None:
    """Run a script; what it prints is what its last comment lines (`# ->`) say."""
    expected = "".join(f"{line}\n" for line in re.findall(r"# -> (.*)", text))
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    _compare(expected, ran.stdout)


def _commands(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert parts[0] == ""
    commands = []
    for part in parts[1:]:
        command, _, output = part.replace("\\\n", "").partition("\n")
        commands.append((command, output))
    return commands


def _run_command(command: str, expected: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout}"
    _compare(expected, ran.stdout)


def _compare(expected: str, got: str) -> None:
    """Equal but for `...`, which stands for anything."""
    assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), got
