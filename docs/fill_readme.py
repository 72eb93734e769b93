"""Runs the README's shell sessions and writes down what they print; ``--check`` only compares.

What differs from run to run (seconds, rates, cursors) is written as ``...``.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parents[1]
README = TOP / "README.md"
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"((?:seconds|items per second) +|--cursor )[^\s]+")
COLUMNS = "100"


def filled(text: str) -> str:
    """The text with every session as it runs now, all in one folder that sees the data."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").symlink_to(TOP / "data")
        return BLOCK.sub(lambda match: _session(match[1], Path(folder)), text)


def _session(block: str, folder: Path) -> str:
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)
    return "".join(f"$ {command}\n{_printed(command, folder)}" for command in commands)


def _printed(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": COLUMNS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        sys.exit(f"$ {command}\n{ran.stdout}")
    return VARYING.sub(r"\1...", ran.stdout)


def main() -> None:
    """Fill the README, or say how it differs from a run."""
    held = README.read_text(encoding="utf-8")
    made = filled(held)
    if "--check" not in sys.argv:
        README.write_text(made, encoding="utf-8")
    elif made != held:
        lines = difflib.unified_diff(held.split("\n"), made.split("\n"), "README.md", "a run now")
        sys.exit("\n".join(["README.md is not what its commands print; run `make docs`", *lines]))


if __name__ == "__main__":
    main()
