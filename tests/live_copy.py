"""A copy of an open store, as a crash at this moment would leave it."""

import shutil
from contextlib import suppress
from pathlib import Path


def copy_live(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=_copy_what_is_there)


def _copy_what_is_there(source: str, target: str) -> None:
    # The lexical index commits and merges in the background: a file may be gone by now, as after a
    # crash; what lacks it is rebuilt.
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)
