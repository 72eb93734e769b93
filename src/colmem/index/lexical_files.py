"""The folder of a lexical index: who made it, how far it goes, whether its files are whole."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from colmem.files import fsync_folder
from colmem.index.analyser import ANALYSER_VERSION

LAYOUT_VERSION: Final = 2
"""Of the fields and their terms; an index of another layout is made anew."""

_STATE_FILE: Final = "colmem.json"
_META_FILE: Final = "meta.json"
_COPIED_FILES: Final = (_STATE_FILE, _META_FILE, ".managed.json")
_CHECKED_BYTES_MAX: Final = 32 << 20
"""Up to this size of the index, opening reads every file against its checksum."""
_FOOTER_TAIL: Final = struct.Struct("<II")
_FOOTER_MAGIC: Final = 1337


class LexicalDamagedError(Exception):
    """The index cannot be read or written; clear it and replay the item table."""


class State(NamedTuple):
    """What the state file says.

    How far the commit of an opstamp goes, and of some segments, by name, the first row and whether
    rows ascend.
    """

    opstamp: int
    watermark: int
    segments: Mapping[str, tuple[int, bool]]


class _Segment(msgspec.Struct):
    segment_id: str
    max_doc: int


class _Meta(msgspec.Struct):
    """The part of tantivy's meta file that is read here."""

    segments: list[_Segment]
    opstamp: int


@contextmanager
def damage_as_error(doing: str) -> Iterator[None]:
    """Turn what tantivy raises over a damaged file into LexicalDamagedError."""
    try:
        yield
    except BaseException as error:
        # A panic of the Rust side derives from BaseException and has no importable class.
        if isinstance(error, (ValueError, OSError)) or type(error).__name__ == "PanicException":
            raise LexicalDamagedError(
                f"the lexical index failed while {doing} ({error}); "
                "it can be rebuilt from the item table"
            ) from error
        raise


def read_state(folder: Path) -> State | None:
    """Who made the index; None when there is none, or it was made by another version."""
    try:
        held = json.loads((folder / _STATE_FILE).read_bytes())
        if (held["layout"], held["analyser"]) != (LAYOUT_VERSION, ANALYSER_VERSION):
            return None
        segments = {
            name: (int(first), is_ascending is True)
            for name, (first, is_ascending) in held["segments"].items()
        }
        return State(int(held["opstamp"]), int(held["watermark"]), segments)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_state(folder: Path, state: State) -> None:
    """Record the versions and how far a commit goes, in one step."""
    held = {"layout": LAYOUT_VERSION, "analyser": ANALYSER_VERSION, **state._asdict()}
    draft = folder / f"{_STATE_FILE}.tmp"
    with draft.open("w") as file:
        json.dump(held, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / _STATE_FILE)
    fsync_folder(folder)


def committed_opstamp(folder: Path) -> int:
    """The opstamp of tantivy's last commit."""
    return _read_meta(folder).opstamp


def segments_of(folder: Path) -> list[tuple[str, int]]:
    """Names of the committed segments, in tantivy's order, with the documents each ever held."""
    return [(segment.segment_id, segment.max_doc) for segment in _read_meta(folder).segments]


def empty(folder: Path) -> None:
    """Leave the folder there, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def linked_copy(folder: Path, target: Path) -> Path:
    """Make a copy that may be opened and written to while the original stays as it is.

    Tantivy never changes a segment's file, so these are linked; the few others are copied.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name in _COPIED_FILES:
            shutil.copyfile(path, target / path.name)
        elif path.suffix != ".lock":
            (target / path.name).symlink_to(path.resolve())
    return target


def check_files(folder: Path, *, all_bytes: bool = False) -> None:
    """Compare the segments' files with their checksums; without ``all_bytes`` only small indexes.

    Raises
    ------
    LexicalDamagedError
        When a file is missing, cut, or not what was written.
    """
    names = [segment.segment_id.replace("-", "") for segment in _read_meta(folder).segments]
    paths = [path for path in sorted(folder.iterdir()) if path.stem.split(".")[0] in names]
    if len({path.stem.split(".")[0] for path in paths}) < len(names):
        raise LexicalDamagedError(f"{folder} lacks files of a segment")
    if all_bytes or sum(path.stat().st_size for path in paths) <= _CHECKED_BYTES_MAX:
        for path in paths:
            _check_file(path)


def _read_meta(folder: Path) -> _Meta:
    try:
        return msgspec.json.decode((folder / _META_FILE).read_bytes(), type=_Meta)
    except (OSError, msgspec.MsgspecError) as error:
        raise LexicalDamagedError(f"{folder / _META_FILE} cannot be read") from error


def _check_file(path: Path) -> None:
    # Layout: body, footer as JSON, its length, a magic number.
    data = memoryview(path.read_bytes())
    crc = None
    if len(data) > _FOOTER_TAIL.size:
        length, magic = _FOOTER_TAIL.unpack(data[-_FOOTER_TAIL.size :])
        end = len(data) - _FOOTER_TAIL.size
        if magic == _FOOTER_MAGIC and length <= end:
            try:
                crc = json.loads(bytes(data[end - length : end]))["crc"]
            except (ValueError, KeyError, TypeError):
                crc = None
            data = data[: end - length]
    if crc is None or zlib.crc32(data) != crc:
        raise LexicalDamagedError(f"{path} is not what was written")
