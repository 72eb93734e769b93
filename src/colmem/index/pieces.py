"""Word-piece ids of every row, for rescoring by token rows: a ragged uint16 file.

Derived from the items' texts. The file only grows; its length and the offsets are part of the
resident state, and what lies past them is written anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colmem.files import AppendFile
from colmem.index.growing import GrowingArray
from colmem.schema import RowIds
from colmem_kernels import pieces as kernels

FILE_NAME = "pieces.u16"
_CHECKED_BYTES_MAX = 32 << 20
Pieces = npt.NDArray[np.uint16]


class PieceIndex:
    """Piece ids by row; ``folder=None`` keeps them in memory.

    offsets : int64 (n_rows + 1,), as saved by :meth:`arrays`; None to start empty.
    """

    def __init__(
        self,
        folder: Path | None,
        n_piece_ids: int,
        *,
        offsets: npt.NDArray[np.int64] | None = None,
        document_frequency: npt.NDArray[np.int64] | None = None,
        read_only: bool = False,
    ) -> None:
        start = np.zeros(1, np.int64) if offsets is None else offsets
        path = None if folder is None else folder / FILE_NAME
        self._offsets = GrowingArray(np.int64, start)
        if read_only and path is not None and not path.exists():
            path = None  # Nothing was stored yet, and a reader creates nothing.
        self._read_only = read_only
        self._file = AppendFile(path, length=2 * int(start[-1]), read_only=read_only)
        self.n_piece_ids = n_piece_ids
        self._frequency = (
            np.zeros(n_piece_ids, np.int64) if document_frequency is None else document_frequency
        )

    @staticmethod
    def fits(
        folder: Path, saved: Mapping[str, npt.NDArray[Any]], *, all_bytes: bool = False
    ) -> bool:
        """Whether the file is what ``arrays`` described; without ``all_bytes`` only small ones."""
        if "piece_checksum" not in saved:
            return False
        size = 2 * int(saved["piece_offsets"][-1])
        path = folder / FILE_NAME
        if size == 0:
            return True
        if not path.is_file() or path.stat().st_size < size:
            return False
        if size > _CHECKED_BYTES_MAX and not all_bytes:
            return True
        held = np.memmap(path, "<u2", "r", shape=size // 2)
        return zlib.crc32(held.data) == int(saved["piece_checksum"][0])

    @property
    def n_rows(self) -> int:
        """Rows held."""
        return self._offsets.length - 1

    def append(self, pieces: Pieces, offsets: npt.NDArray[np.int64]) -> None:
        """Add rows: uint16 flat, int64 (n + 1,) offsets into it."""
        if self._read_only and self._file.path is not None:
            self._take_into_memory()
        self._file.append(np.ascontiguousarray(pieces, "<u2").data, sync=False)
        self._offsets.append(offsets[1:] + self._offsets.values()[-1])
        self._count(pieces, offsets, 1)

    def discard(self, n_rows: int) -> None:
        """Take back the rows from ``n_rows`` on, whose write failed."""
        if self.n_rows > n_rows:
            self.forget(np.arange(n_rows, self.n_rows))
            self._offsets.length = n_rows + 1
            self._file.length = 2 * int(self._offsets.values()[-1])

    def forget(self, rows: RowIds) -> None:
        """Take rows out of the document frequencies."""
        self._count(*self.take(rows), -1)

    def take(self, rows: RowIds) -> tuple[Pieces, npt.NDArray[np.int64]]:
        """Piece ids of rows: uint16 flat, int64 (len(rows) + 1,) offsets into it."""
        held = self._offsets.values()
        starts, ends = held[rows], held[rows + 1]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        flat = self._file.array("<u2", int(held[-1]))
        at = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], ends - starts)
        # A changed file must not lead a kernel beyond its tables.
        return np.minimum(flat[at], self.n_piece_ids - 1, dtype=np.uint16), offsets

    def document_frequency(self) -> npt.NDArray[np.int64]:
        """In how many live rows each piece id stands: int64 (n_piece_ids,)."""
        return self._frequency

    def count(self, rows: RowIds, by: int, frequency: npt.NDArray[np.int64]) -> None:
        """Add ``by`` to each piece id of ``frequency`` (int64) for every row that it stands in."""
        last_seen = np.full(len(frequency), -1, np.int64)
        kernels.count_documents(*self.take(rows), by, last_seen, frequency)

    def arrays(self) -> dict[str, npt.NDArray[np.int64]]:
        """What the resident state keeps."""
        ends = self._offsets.values()
        held = self._file.array("<u2", int(ends[-1]))
        return {
            "piece_offsets": ends,
            "piece_frequency": self._frequency,
            "piece_checksum": np.array([zlib.crc32(held.data)]),
        }

    def sync(self) -> None:
        """Make the file durable."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _take_into_memory(self) -> None:
        """A reader of a store that was not closed adds the last rows to a copy of its own."""
        held = self._file
        self._file = AppendFile(None, length=0)
        self._file.append(held.read(0, held.length), sync=False)
        held.close()

    def _count(self, pieces: Pieces, offsets: npt.NDArray[np.int64], by: int) -> None:
        last_seen = np.full(len(self._frequency), -1, np.int64)
        kernels.count_documents(pieces, offsets, by, last_seen, self._frequency)
