from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from colmem_kernels.warmup import kernels

ONE = "from colmem_kernels.columns import count_codes as k; k.compiled(); print(k.is_cached())"


def test_every_kernel_of_a_file_is_found() -> None:
    folder = Path(sys.modules["colmem_kernels"].__path__[0])
    names = {kernel.__name__ for kernel in kernels()}
    for path in folder.glob("[!_]*.py"):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            if line.startswith("@kernel(") and "None" not in line:
                after = next(text for text in lines[i:] if text.startswith("def "))
                assert after.removeprefix("def ").partition("(")[0] in names, path


def test_compiling_is_announced_once_and_then_served_from_the_cache(tmp_path: Path) -> None:
    setup = "import logging; logging.basicConfig(level='INFO', format='%(message)s'); "
    for is_first in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", setup + ONE],
            env=os.environ | {"COLMEM_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "True\n"
        assert done.stderr.startswith("compiling native code") is is_first
