"""Make the environment of its own that holds HotMem, the peer of interoperability and benchmarks.

``python bench/peer_env.py`` prints the path of its interpreter, making the environment when it is
not there yet. HotMem is never installed beside colmem.
"""

from __future__ import annotations

import sys
from pathlib import Path

from yardstick.environments import RUN, make

PEER = "hotmem==0.2.6"
FOLDER = RUN / "venv-hotmem"


def interpreter() -> Path:
    """Give the peer's interpreter, installing the peer first when it is missing."""
    return make(FOLDER, [PEER])


if __name__ == "__main__":
    sys.stdout.write(f"{interpreter()}\n")
