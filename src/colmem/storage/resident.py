"""The resident file: the in-memory columns of a store as saved at close, mapped at the next open.

One header (JSON) and aligned arrays behind it. It is derived: a file that is missing, torn, changed
or of another version is ignored, and the columns are rebuilt from the row log. It is written to a
temporary name, synced and renamed, so it is whole or absent. A large file's arrays are not read
when it is opened: :func:`is_whole` compares them with their checksums.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colmem.files import fsync_folder

FILE_NAME = "resident.bin"
FORMAT = 3
_ALIGN = 64
_CHECKED_BYTES_MAX = 32 << 20
_MAGIC = b"colmem-resident\n"


def save(folder: Path, header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the file; durable on return."""
    table = []
    at = 0
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        table.append([name, array.dtype.str, len(array), at, zlib.crc32(array.data)])
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    head = json.dumps({"format": FORMAT, "header": header, "arrays": table}).encode()
    prefix = _MAGIC + len(head).to_bytes(8, "little") + zlib.crc32(head).to_bytes(4, "little")
    temporary = folder / f"{FILE_NAME}.new"
    with temporary.open("wb") as file:
        file.write(prefix + head)
        file.write(b"\0" * (-file.tell() % _ALIGN))
        for array in plain.values():
            file.write(array.data)
            file.write(b"\0" * (-array.nbytes % _ALIGN))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / FILE_NAME)
    fsync_folder(folder)


def load(
    folder: Path, *, all_bytes: bool = False
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
    """The header and arrays as saved, or None when there is no usable file.

    The arrays lie in a private mapping: they may be written to, the file never changes. Those of a
    file above 32 MiB are compared with their checksums only with ``all_bytes``.
    """
    try:
        with (folder / FILE_NAME).open("rb") as file:
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None
    start = len(_MAGIC) + 12
    head_bytes = int.from_bytes(held[len(_MAGIC) : len(_MAGIC) + 8], "little")
    head = held[start : start + head_bytes]
    crc = int.from_bytes(held[start - 4 : start], "little")
    if held[: len(_MAGIC)] != _MAGIC or zlib.crc32(head) != crc:
        return None
    parsed = json.loads(head)
    if parsed["format"] != FORMAT:
        return None
    body = -(-(start + head_bytes) // _ALIGN) * _ALIGN
    arrays = {}
    is_checked = all_bytes or len(held) <= _CHECKED_BYTES_MAX
    for name, dtype, length, at, crc in parsed["arrays"]:
        if body + at + length * np.dtype(dtype).itemsize > len(held):
            return None
        arrays[name] = np.frombuffer(held, dtype, length, body + at)
        if is_checked and zlib.crc32(arrays[name].data) != crc:
            return None
    return parsed["header"], arrays


def is_whole(folder: Path) -> bool:
    """Whether the file is absent, or holds what was saved."""
    return not (folder / FILE_NAME).exists() or load(folder, all_bytes=True) is not None


def remove(folder: Path) -> None:
    """Forget the saved state."""
    (folder / FILE_NAME).unlink(missing_ok=True)
