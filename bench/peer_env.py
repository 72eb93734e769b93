"""Make the environment of its own that holds HotMem, the peer of interoperability and benchmarks.

``python bench/peer_env.py`` prints the path of its interpreter, making the environment when it is
not there yet. HotMem is never installed beside colmem.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PEER = "hotmem==0.2.6"
FOLDER = Path(__file__).parents[1] / ".run" / "venv-hotmem"


def interpreter() -> Path:
    """Give the peer's interpreter, installing the peer first when it is missing."""
    python = FOLDER / "bin" / "python"
    if python.exists() and _has_peer(python):
        return python
    FOLDER.parent.mkdir(exist_ok=True)
    venv.create(FOLDER, with_pip=True, clear=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER], check=True
    )
    return python


def _has_peer(python: Path) -> bool:
    probe = f"import importlib.metadata as m; assert m.version('hotmem') == '{PEER[8:]}'"
    return subprocess.run([python, "-c", probe], check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.stdout.write(f"{interpreter()}\n")
