"""The environments of the contenders: one each below ``.run/``, with pinned versions.

An environment is made when it is first asked for, and again when its pins change.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

RUN = Path(__file__).parents[2] / ".run"
NUMPY = "numpy==2.4.6"
PINS: dict[str, tuple[str, ...]] = {
    "tantivy": ("tantivy==0.27.0", NUMPY),
    "bm25s": ("bm25s==0.3.16", "PyStemmer==3.1.0", "numba==0.68.1", NUMPY),
    "faiss": ("faiss-cpu==1.15.1", NUMPY),
    "usearch": ("usearch==2.26.6", NUMPY),
    "sqlite": ("apsw==3.54.1.0", "sqlite-vec==0.1.9", NUMPY),
    "zvec": ("zvec==0.8.0", NUMPY),
    "qdrant-edge": ("qdrant-edge-py==0.9.0", NUMPY),
    "lancedb": ("lancedb==0.40.0", "pyarrow==26.0.1", NUMPY),
    "chroma": ("chromadb==1.5.9", NUMPY),
    "hotmem": ("hotmem==0.2.6", NUMPY),
    "measures": ("ir-measures==0.4.3", NUMPY),
    "plots": ("matplotlib==3.11.2", NUMPY),
}
_MARK = "pins.txt"


def interpreter(name: str) -> Path:
    """Give the interpreter of a contender's environment, making it when it is missing."""
    if name == "colmem":
        return Path(sys.executable)
    return make(RUN / "peers" / name, PINS[name])


def make(folder: Path, pins: Sequence[str]) -> Path:
    """Make an environment of pinned packages at ``folder``, unless it is there."""
    python, mark = folder / "bin" / "python", folder / _MARK
    wanted = "".join(f"{pin}\n" for pin in pins)
    if python.exists() and mark.exists() and mark.read_text() == wanted:
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    venv.create(folder, with_pip=True, clear=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *pins,
    ]
    subprocess.run(command, check=True)
    mark.write_text(wanted)
    return python
