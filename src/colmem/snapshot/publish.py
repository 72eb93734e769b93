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
        When a file is at the path.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_dir():
        raise InvalidRequest(
            f"{path} is a file; give a directory to write, or a name ending in .jsonl or .jsonl.gz"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = _sibling(place)
    draft.mkdir(mode=0o777)
    try:
        yield draft
        sync_tree(draft)
        if not place.exists():
            draft.rename(place)
        elif (place / layout.MANIFEST).exists():
            shutil.copymode(place, draft)
            _exchange(draft, place)
            _keep_strangers(draft, place)
        else:
            _move_into(draft, place)
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


def _move_into(draft: Path, place: Path) -> None:
    """Move a snapshot into a directory that holds none; it counts once its manifest is there."""
    stale = place / layout.ATTACHMENTS
    if stale.is_dir() and not stale.is_symlink():
        shutil.rmtree(stale)
    for name in sorted(os.listdir(draft), key=lambda name: name == layout.MANIFEST):
        (draft / name).replace(place / name)
    fsync_folder(place)


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
