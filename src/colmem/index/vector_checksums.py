"""Checksums of the embeddings file, so that damaged bits are found.

A small file beside the embeddings holds the CRC-32 of every block of rows. It is brought up to date
on flush and replaced as a whole; rows stored since have no checksum yet. A missing or damaged
checksum file says nothing about the embeddings and is written anew.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np

from colmem.schema import Vectors

CHECKSUMS_NAME = "embeddings.crc"

_HEAD = struct.Struct("<8sIIQ")
_MAGIC = b"colmemE1"
_BLOCK_BYTES = 1 << 20


class Checksums:
    """CRC-32 of each block of the first ``n_rows`` embeddings, the last block being partial.

    ``file_dim`` is the dimension the checksum file names, None without a readable one.
    """

    def __init__(self, folder: Path, dim: int, n_rows: int) -> None:
        self._path = folder / CHECKSUMS_NAME
        self._dim = dim
        self._block_rows = max(1, _BLOCK_BYTES // (4 * dim))
        self._sums: list[int] = []
        self.n_rows = 0
        self.file_dim: int | None = None
        self._load(n_rows)

    def first_damaged(self, vectors: Vectors) -> tuple[int, int] | None:
        """Compare float32 (n_rows, dim); returns the rows (first, last + 1) of a damaged block."""
        for block, expected in enumerate(self._sums):
            first, last = self._rows_of(block, self.n_rows)
            if zlib.crc32(vectors[first:last].reshape(-1).data) != expected:
                return first, last
        return None

    def extend(self, vectors: Vectors) -> None:
        """Add what is missing for float32 (n_rows, dim), and write the file; durable on return."""
        if len(vectors) == self.n_rows:
            return
        n_whole = self.n_rows // self._block_rows
        n_blocks = -(-len(vectors) // self._block_rows)
        del self._sums[n_whole:]
        for block in range(n_whole, n_blocks):
            first, last = self._rows_of(block, len(vectors))
            self._sums.append(zlib.crc32(vectors[first:last].reshape(-1).data))
        self.n_rows = len(vectors)
        self._save()

    def _rows_of(self, block: int, n_rows: int) -> tuple[int, int]:
        first = block * self._block_rows
        return first, min(n_rows, first + self._block_rows)

    def _load(self, n_rows: int) -> None:
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        body, checksum = data[:-4], data[-4:]
        if len(body) < _HEAD.size or struct.pack("<I", zlib.crc32(body)) != checksum:
            return
        magic, dim, block_rows, covered = _HEAD.unpack_from(body)
        if magic != _MAGIC:
            return
        self.file_dim = int(dim)
        sums = np.frombuffer(body, "<u4", offset=_HEAD.size).tolist()
        if (dim, block_rows) != (self._dim, self._block_rows):
            return
        if covered > n_rows:
            # The partial last block covers rows the table does not have.
            covered = n_rows // block_rows * block_rows
            sums = sums[: covered // block_rows]
        self._sums, self.n_rows = sums, int(covered)

    def _save(self) -> None:
        body = _HEAD.pack(_MAGIC, self._dim, self._block_rows, self.n_rows)
        body += np.array(self._sums, "<u4").tobytes()
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(body + struct.pack("<I", zlib.crc32(body)))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
