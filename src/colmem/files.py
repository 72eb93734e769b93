"""Append-only files of fixed-width rows or of byte strings, readable while they grow.

A file never changes below its length. What lies past the length its owner has committed is
ignored and overwritten by the next append, so a crash in the middle of an append loses nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_GROW_BYTES_MIN = 1 << 16
_MAP_BYTES_MIN = 1 << 20

_LIBC: Any = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]

_Mapped: TypeAlias = "ctypes.Array[ctypes.c_ubyte]"


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _map_shared(handle: int, size: int) -> _Mapped:
    """Map a file for reading, also past its end: those pages are there once the file reaches them.

    Python's own mmap refuses a size above the file's. Unmapped when the last array over it goes.
    """
    address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"{size} bytes cannot be mapped")
    mapped = (ctypes.c_ubyte * size).from_address(address)
    unmap = weakref.finalize(mapped, _LIBC.munmap, ctypes.c_void_p(address), ctypes.c_size_t(size))
    unmap.atexit = False  # The process's end unmaps; until then a thread may still read.
    return mapped


class AppendFile:
    """An append-only file of bytes, memory-mapped for reading; ``path=None`` keeps it in memory.

    ``length`` is what counts as written. Reads below it are safe from any thread; appends come from
    one thread at a time.
    """

    def __init__(self, path: Path | None, *, length: int, read_only: bool = False) -> None:
        self.path = path
        self.length = length
        self._memory = bytearray()
        self._map: _Mapped | None = None
        self._fd = -1
        self._is_writable = not read_only
        if path is not None:
            flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
            self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
            held = os.fstat(self._fd).st_size
            if held < length:
                self.close()
                raise ValueError(f"{path} holds {held} bytes, expected at least {length}")

    def append(self, data: bytes | memoryview, *, sync: bool) -> int:
        """Write bytes at the end and return their offset; ``sync`` returns after fdatasync."""
        offset = self.length
        view = memoryview(data).cast("B")
        if self.path is None:
            self._grow_memory(offset + len(view))
            self._memory[offset : offset + len(view)] = view
        else:
            done = 0
            while done < len(view):
                done += os.pwrite(self._fd, view[done:], offset + done)
            if sync:
                os.fdatasync(self._fd)
        self.length = offset + len(view)
        return offset

    def sync(self) -> None:
        """Make everything appended so far durable."""
        if self.path is not None:
            os.fdatasync(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at an offset; the caller keeps within ``length``."""
        if self.path is None:
            return bytes(self._memory[offset : offset + size])
        return os.pread(self._fd, size, offset)

    def array(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[np.generic]:
        """The first ``count`` values of the file as a read-only array over the mapped bytes."""
        size = count * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(0, dtype)
        if self.path is None:
            array = np.frombuffer(memoryview(self._memory), dtype, count)
            array.flags.writeable = False
            return array
        if self._map is None or len(self._map) < size:
            # An array handed out earlier keeps the older mapping alive.
            self._map = self._make_map(size)
        mapped: npt.NDArray[np.generic] = np.frombuffer(memoryview(self._map), dtype, count)
        mapped.flags.writeable = False
        return mapped

    def __del__(self) -> None:
        # A generation that compaction replaced is read until its last reader lets go of it.
        self.close()

    def close(self) -> None:
        """Release the file; arrays handed out stay readable."""
        self._map = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _make_map(self, size: int) -> _Mapped:
        """Map at least ``size`` bytes, with room to grow: a new mapping means new page faults."""
        held = max(size, os.fstat(self._fd).st_size)
        if self._is_writable:
            return _map_shared(self._fd, max(2 * held, _MAP_BYTES_MIN))
        return _map_shared(self._fd, held)

    def _grow_memory(self, size: int) -> None:
        if len(self._memory) < size:
            # A new buffer each time: arrays over the old one stay valid.
            grown = bytearray(max(size, 2 * len(self._memory), _GROW_BYTES_MIN))
            grown[: self.length] = self._memory[: self.length]
            self._memory = grown
