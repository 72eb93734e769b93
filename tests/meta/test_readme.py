"""The README's blocks run, in their order, and print what stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_shell_sessions_print_what_stands_there() -> None:
    assert "```console\n$ colmem " in README
    checked = subprocess.run(
        [sys.executable, TOP / "docs" / "fill_sessions.py", "--check", TOP / "README.md"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("number", range(len(PYTHON_BLOCKS)))
def test_a_python_block_prints_what_its_comments_say(tmp_path: Path, number: int) -> None:
    text = PYTHON_BLOCKS[number]
    expected = [line.removeprefix("# -> ") for line in text.splitlines() if line.startswith("# ->")]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == expected
