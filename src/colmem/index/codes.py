"""The codes of the embeddings: kept in step with them, written beside them, searched.

Codes are derived: whatever is missing or does not fit is made again from the embeddings. The sign
codes stand in memory (32 rows a block), the level codes in a mapped append-only file. A small head
file says how many rows both cover; it is replaced after them, so a crash leaves an older, true one.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from colmem.files import AppendFile
from colmem.schema import Vectors
from colmem_kernels.codes import code_width, encode_rows, rotation_flips
from colmem_kernels.lanes import LOOKUP_MAX, ROWS_PER_BLOCK

_HEAD_NAME = "codes.head"
_SIGNS_NAME = "codes.s1"
_LEVELS_NAME = "codes.l4"
_HEAD = struct.Struct("<8sIIQ")
_MAGIC = b"colmemC1"
_BATCH_ROWS = 8192

Bytes = npt.NDArray[np.uint8]


class CodeView(NamedTuple):
    """Codes of the rows below n_rows, as a search sees them.

    signs : uint8 (>= blocks, 4 * width); levels : uint8 (n_rows, width / 2);
    flips : float32 (rounds, width); lookup_max : highest entry of a query's tables
    """

    n_rows: int
    signs: Bytes
    levels: Bytes
    flips: Vectors
    lookup_max: int

    @property
    def sum_max(self) -> int:
        """Highest possible sum of a row's table lookups."""
        return self.lookup_max * int(self.flips.shape[1] // 4)


class Codes:
    """Sign and level codes of the first ``n_rows`` embeddings, extended by one thread at a time.

    ``is_fresh`` ignores what the files hold.
    """

    def __init__(
        self, folder: Path | None, dim: int, *, n_rows: int, read_only: bool, is_fresh: bool = False
    ) -> None:
        self.width = code_width(dim)
        self.n_rows = 0
        self._dim = dim
        self._folder = folder
        self._flips = rotation_flips(self.width)
        self._signs = np.zeros((0, 4 * self.width), np.uint8)
        self._n_flushed = 0
        if folder is not None and not is_fresh:
            self.n_rows = self._n_flushed = self._load_signs(folder, n_rows)
        # A reader makes what the files lack in memory; the files are the writer's.
        in_memory = folder is None or (read_only and self.n_rows < n_rows)
        if in_memory:
            self.n_rows = self._n_flushed = 0
        path = None if in_memory or folder is None else folder / _LEVELS_NAME
        self._levels = AppendFile(path, length=self._level_bytes(self.n_rows), read_only=read_only)

    def extend(self, vectors: Vectors) -> None:
        """Make the codes that are missing for vectors, float32 (n_rows, dim)."""
        n_rows = len(vectors)
        self._reserve(n_rows)
        while self.n_rows < n_rows:
            last = min(n_rows, self.n_rows + _BATCH_ROWS)
            batch = vectors[self.n_rows : last]
            levels = np.empty((len(batch), self.width // 2), np.uint8)
            encode_rows(batch, self._flips, self.n_rows, self._signs, levels)
            try:
                self._levels.append(levels.reshape(-1).data, sync=False)
            except OSError:
                # Codes are no reason to refuse a write that is committed: go on in memory.
                self._leave_disk()
                self._levels.append(levels.reshape(-1).data, sync=False)
            self.n_rows = last

    def fits(self, vectors: Vectors) -> bool:
        """Make all codes again from vectors, float32 (n_rows, dim), and compare."""
        held = self.view()
        for first in range(0, self.n_rows, _BATCH_ROWS):
            last = min(self.n_rows, first + _BATCH_ROWS)
            blocks = slice(first // ROWS_PER_BLOCK, _n_blocks(last))
            # Start from what is held: the bytes of rows that are not there yet mean nothing.
            signs = self._signs[blocks].copy()
            levels = np.empty((last - first, self.width // 2), np.uint8)
            encode_rows(vectors[first:last], self._flips, 0, signs, levels)
            if not (
                np.array_equal(signs, self._signs[blocks])
                and np.array_equal(levels, held.levels[first:last])
            ):
                return False
        return True

    def view(self) -> CodeView:
        """Give what a search needs; later extensions do not change it."""
        levels = cast(Bytes, self._levels.array(np.uint8, self._level_bytes(self.n_rows)))
        return CodeView(
            self.n_rows,
            self._signs,
            levels.reshape(self.n_rows, self.width // 2),
            self._flips,
            min(LOOKUP_MAX, 32767 // (self.width // 4)),
        )

    def flush(self) -> None:
        """Write what is not on disk yet; returns after it is durable."""
        if self._folder is None or self._levels.path is None or self._n_flushed == self.n_rows:
            return
        self._levels.sync()
        first = self._n_flushed // ROWS_PER_BLOCK
        last = _n_blocks(self.n_rows)
        handle = os.open(self._folder / _SIGNS_NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            offset = first * 4 * self.width
            data = self._signs[first:last].reshape(-1).data.cast("B")
            done = 0
            while done < len(data):
                done += os.pwrite(handle, data[done:], offset + done)
            os.fdatasync(handle)
        finally:
            os.close(handle)
        self._write_head(self._folder)
        self._n_flushed = self.n_rows

    def close(self) -> None:
        """Release the files; views stay readable."""
        self._levels.close()

    def _leave_disk(self) -> None:
        held = self._levels.array(np.uint8, self._levels.length)
        self._levels = AppendFile(None, length=0)
        self._levels.append(cast(Bytes, held).data, sync=False)

    def _level_bytes(self, n_rows: int) -> int:
        return n_rows * (self.width // 2)

    def _reserve(self, n_rows: int) -> None:
        n_blocks = _n_blocks(n_rows)
        if n_blocks > len(self._signs):
            grown = np.zeros((max(n_blocks, n_blocks * 5 // 4), 4 * self.width), np.uint8)
            held = _n_blocks(self.n_rows)
            grown[:held] = self._signs[:held]
            # Views keep the smaller array: a row's bytes are never written twice.
            self._signs = grown

    def _write_head(self, folder: Path) -> None:
        head = _HEAD.pack(_MAGIC, self._dim, self.width, self.n_rows)
        path = folder / _HEAD_NAME
        temporary = path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(head + struct.pack("<I", zlib.crc32(head)))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _load_signs(self, folder: Path, n_rows: int) -> int:
        """Read the sign codes on disk; returns for how many of n_rows both codes are there."""
        covered = min(n_rows, self._read_head(folder))
        size = _n_blocks(covered) * 4 * self.width
        try:
            if (folder / _LEVELS_NAME).stat().st_size < self._level_bytes(covered):
                return 0
            with (folder / _SIGNS_NAME).open("rb") as file:
                signs = np.empty((_n_blocks(n_rows), 4 * self.width), np.uint8)
                if file.readinto(signs.reshape(-1).data.cast("B")[:size]) < size:
                    return 0
        except OSError:
            return 0
        self._signs = signs
        return covered

    def _read_head(self, folder: Path) -> int:
        try:
            data = (folder / _HEAD_NAME).read_bytes()
        except OSError:
            return 0
        if len(data) != _HEAD.size + 4:
            return 0
        head, checksum = data[: _HEAD.size], data[_HEAD.size :]
        magic, dim, width, n_rows = _HEAD.unpack(head)
        if struct.pack("<I", zlib.crc32(head)) != checksum or magic != _MAGIC:
            return 0
        return int(n_rows) if (dim, width) == (self._dim, self.width) else 0


def _n_blocks(n_rows: int) -> int:
    return -(-n_rows // ROWS_PER_BLOCK)
