"""The row log: every item in encoded form, appended and synced; the store's write-ahead log.

A frame is one atomic write: items put, or rows forgotten. It is the moment a write counts; the
columnar table is brought level with the log in batches and records up to where. The same bytes
serve random reads of whole items, by row. A torn frame at the end was never acknowledged and is
overwritten; a bad frame followed by more data is damage and refused.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.contract.errors import CorruptStore
from colmem.files import AppendFile
from colmem.schema import RowIds

FILE_NAME = "items.log"
NO_ROWS: RowIds = np.empty(0, np.int64)
_MAGIC = 0x474C4D43  # "CMLG"
_HEADER = struct.Struct("<IIQIII")  # magic, kind, first row, count, payload bytes, CRC-32
_LENGTH = struct.Struct("<I")
_PUT, _FORGET = 1, 2
# Items that stand so near are read in one piece, up to so many.
_GAP_BYTES = 2048
_SPAN_ITEMS = 256


class Put(NamedTuple):
    """Items put by one frame, and the rows that they take the place of: row ``first_row + i``.

    offsets : int64 (n,), positions in the file; lengths : uint32 (n,); gone : int64 (m,)
    """

    first_row: int
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.uint32]
    blobs: list[bytes]
    gone: RowIds
    end: int


class Forget(NamedTuple):
    """Rows forgotten by one frame: int64 (n,)."""

    rows: RowIds
    end: int


class RowLog:
    """One log file; ``folder=None`` keeps it in memory."""

    def __init__(self, folder: Path | None, *, length: int, read_only: bool = False) -> None:
        self.path = None if folder is None else folder / FILE_NAME
        try:
            self._file = AppendFile(self.path, length=length, read_only=read_only)
        except ValueError as error:
            raise CorruptStore(
                f"the row log is shorter than recorded: {error}; restore the store from a snapshot"
            ) from error

    @property
    def length(self) -> int:
        """Bytes that count as written."""
        return self._file.length

    def put(self, first_row: int, blobs: Sequence[bytes], gone: RowIds = NO_ROWS) -> Put:
        """Append one frame of encoded items and of the rows they replace; durable on return."""
        lengths = np.fromiter(map(len, blobs), np.uint32, len(blobs))
        head = _LENGTH.pack(len(gone)) + gone.astype("<i8").tobytes() + lengths.tobytes()
        start = self._append(_PUT, first_row, len(blobs), head + b"".join(blobs))
        offsets = _offsets(start + _HEADER.size + len(head), lengths)
        return Put(first_row, offsets, lengths, list(blobs), gone, self.length)

    def forget(self, rows: RowIds) -> None:
        """Append one frame that forgets rows; durable on return."""
        self._append(_FORGET, 0, len(rows), rows.astype("<i8").tobytes())

    def read(self, offset: int, length: int) -> bytes:
        """The encoded item at a position named by :class:`Put`."""
        return self._file.read(offset, length)

    def read_many(self, offsets: RowIds, lengths: npt.NDArray[np.uint32]) -> list[bytes]:
        """The encoded items at several positions: neighbours in the file are read at once."""
        read = self._file.read
        order = np.argsort(offsets, kind="stable").tolist()
        starts, sizes = offsets.tolist(), lengths.tolist()
        blobs: list[bytes] = [b""] * len(order)
        done = 0
        while done < len(order):
            first = starts[order[done]]
            end = first + sizes[order[done]]
            together = [order[done]]
            for at in order[done + 1 : done + _SPAN_ITEMS]:
                if starts[at] - end > _GAP_BYTES:
                    break
                together.append(at)
                end = max(end, starts[at] + sizes[at])
            data = read(first, end - first)
            for at in together:
                start = starts[at] - first
                blobs[at] = data[start : start + sizes[at]]
            done += len(together)
        return blobs

    def sync(self) -> None:
        """Make everything appended durable."""
        self._file.sync()

    def recover(self) -> Iterator[Put | Forget]:
        """Frames that stand past ``length`` in the file, moving ``length`` past each whole one."""
        size = self._size()
        while (frame := self._frame_at(self.length, size)) is not None:
            self._file.length = frame.end
            yield frame

    def frames(self, start: int, end: int) -> Iterator[Put | Forget]:
        """Frames between two positions that frames begin at, both within ``length``.

        Raises
        ------
        CorruptStore
            When a frame there is not whole.
        """
        while start < end:
            frame = self._frame_at(start, end)
            if frame is None:
                raise CorruptStore(
                    f"{self.path} is damaged at byte {start}; run `colmem check --repair` to "
                    "rebuild the log from the table"
                )
            start = frame.end
            yield frame

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _append(self, kind: int, first_row: int, count: int, payload: bytes) -> int:
        head = _HEADER.pack(_MAGIC, kind, first_row, count, len(payload), 0)
        crc = zlib.crc32(payload, zlib.crc32(head))
        head = _HEADER.pack(_MAGIC, kind, first_row, count, len(payload), crc)
        try:
            return self._file.append(head + payload, sync=True)
        except OSError:
            self._cut()
            raise

    def _cut(self) -> None:
        """Remove what a failed append left, which the next open would take for a frame."""
        if self.path is not None:
            with suppress(OSError):
                os.truncate(self.path, self.length)

    def _size(self) -> int:
        return self._file.length if self.path is None else self.path.stat().st_size

    def _frame_at(self, offset: int, size: int) -> Put | Forget | None:
        if offset >= size:
            return None
        head = self._file.read(offset, _HEADER.size)
        payload = b""
        good = len(head) == _HEADER.size
        if good:
            magic, kind, first_row, count, n_bytes, crc = _HEADER.unpack(head)
            good = magic == _MAGIC and kind in (_PUT, _FORGET)
        if good:
            payload = self._file.read(offset + _HEADER.size, n_bytes)
            bare = _HEADER.pack(magic, kind, first_row, count, n_bytes, 0)
            good = len(payload) == n_bytes and zlib.crc32(payload, zlib.crc32(bare)) == crc
        if not good:
            self._refuse_damage(offset, size)
            return None
        end = offset + _HEADER.size + n_bytes
        if kind == _FORGET:
            return Forget(np.frombuffer(payload, "<i8").astype(np.int64), end)
        (n_gone,) = _LENGTH.unpack_from(payload)
        gone = np.frombuffer(payload, "<i8", n_gone, _LENGTH.size).astype(np.int64)
        lengths_at = _LENGTH.size + gone.nbytes
        lengths = np.frombuffer(payload, "<u4", count, lengths_at)
        payload_at = offset + _HEADER.size
        offsets = _offsets(payload_at + lengths_at + lengths.nbytes, lengths)
        starts = (offsets - payload_at).tolist()
        blobs = [payload[s : s + n] for s, n in zip(starts, lengths.tolist(), strict=True)]
        return Put(first_row, offsets, lengths, blobs, gone, end)

    def _refuse_damage(self, offset: int, size: int) -> None:
        """Tell a torn tail (nothing whole follows) from damage in the middle."""
        magic = _LENGTH.pack(_MAGIC)
        at = offset + 1
        while at < size:
            block = self._file.read(at, 1 << 20)
            found = block.find(magic)
            while found >= 0:
                if self._is_frame(at + found):
                    raise CorruptStore(
                        f"{self.path} is damaged at byte {offset}: a later frame is whole; run "
                        "`colmem check --repair` to rebuild the log from the table"
                    )
                found = block.find(magic, found + 1)
            at += max(1, len(block) - len(magic) + 1)

    def _is_frame(self, offset: int) -> bool:
        head = self._file.read(offset, _HEADER.size)
        if len(head) < _HEADER.size:
            return False
        magic, kind, first_row, count, n_bytes, crc = _HEADER.unpack(head)
        payload = self._file.read(offset + _HEADER.size, n_bytes)
        bare = _HEADER.pack(magic, kind, first_row, count, n_bytes, 0)
        return bool(len(payload) == n_bytes and zlib.crc32(payload, zlib.crc32(bare)) == crc)


def _offsets(start: int, lengths: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Positions of items that stand one behind the other from ``start`` on."""
    offsets = np.full(len(lengths), start, np.int64)
    np.cumsum(lengths[:-1], out=offsets[1:], dtype=np.int64)
    offsets[1:] += start
    return offsets
