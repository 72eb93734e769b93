"""The lock of a store: one writer, or any number of readers, across processes.

The lock is an advisory ``flock`` on the file ``lock``: the kernel drops it with its process, so a
dead holder never blocks anyone. The file's text names the holder for the message.
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from colmem.contract.errors import StoreLocked

_TEXT_BYTES_MAX = 200


class StoreLock:
    """Holds the lock from construction to :meth:`release`.

    Raises
    ------
    StoreLocked
        At once, naming the holder, when another process (or another engine of this one) holds it.
    """

    def __init__(self, folder: Path, *, exclusive: bool) -> None:
        self._path = folder / "lock"
        flags = os.O_RDWR | os.O_CREAT if os.access(folder, os.W_OK) else os.O_RDONLY
        self._fd = os.open(self._path, flags | os.O_CLOEXEC, 0o644)
        try:
            mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            fcntl.flock(self._fd, mode | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, _TEXT_BYTES_MAX).decode("utf-8", "replace").strip()
            os.close(self._fd)
            raise StoreLocked(
                f"store {folder} is already open {holder or 'in another process'}; "
                "close it there, or wait for that process to end"
            ) from error
        if exclusive:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"by process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Let others open the store."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
