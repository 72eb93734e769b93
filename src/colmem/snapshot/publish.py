"""Publishing files and directories: written beside their place, synced, then put there in one step.

What stood at the place stays whole until the new one is; a reader never meets half of either.
"""

from __future__ import annotations

import ctypes
import errno
import fnmatch
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colmem.contract.errors import InvalidRequest
from colmem.files import fsync_folder
from colmem.snapshot import layout

_OWN_NAMES = (
    layout.MANIFEST,
    layout.METADATA,
    layout.MEMORIES,
    layout.MEMORIES_GZ,
    layout.GONE,
    layout.ATTACHMENTS,
    "memories-*.parquet",
)
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give an empty directory that takes the place of ``path`` when the block ends well.

    Of a directory already there the files of a snapshot are replaced; others are kept.

    Raises
    ------
    InvalidRequest
        When something else than a snapshot or an empty directory is at the path.
    """
    place = Path(os.path.realpath(path))
    _check_place(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = _sibling(place)
    draft.mkdir(mode=0o777)
    try:
        yield draft
        sync_tree(draft)
        if place.exists():
            shutil.copymode(place, draft)
            _exchange(draft, place)
            _keep_strangers(draft, place)
        else:
            draft.rename(place)
        fsync_folder(place.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give the path of a file that takes the place of ``path`` when the block ends well."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise InvalidRequest(f"{path} is a directory; give the name of a file to write")
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = _sibling(place)
    try:
        yield draft
        _sync_file(draft)
        draft.replace(place)
        fsync_folder(place.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_tree(folder: Path) -> None:
    """Make every file and name below a directory durable."""
    for parent, _, names in os.walk(folder):
        for name in names:
            _sync_file(Path(parent, name))
        fsync_folder(Path(parent))


def _check_place(place: Path) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise InvalidRequest(
            f"{place} is a file; give a directory to write, or a name ending in .jsonl or .jsonl.gz"
        )
    names = os.listdir(place)
    if layout.MANIFEST not in names and not all(_is_own(name) for name in names):
        raise InvalidRequest(
            f"{place} holds files and no snapshot; give an empty directory or a new name"
        )


def _is_own(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _OWN_NAMES)


def _keep_strangers(old: Path, place: Path) -> None:
    for name in os.listdir(old):
        if not _is_own(name):
            (old / name).rename(place / name)


def _sibling(place: Path) -> Path:
    return place.parent / f".{place.name}.{secrets.token_hex(6)}.tmp"


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(draft: Path, place: Path) -> None:
    """Swap two directories in one step where the system can, else by two renames."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        rename = None
    if rename is not None:
        names = os.fsencode(draft), os.fsencode(place)
        if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), str(place))
    aside = _sibling(place)
    place.rename(aside)
    draft.rename(place)
    aside.rename(draft)
