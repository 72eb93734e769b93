"""Copies of the small ranges that file-backed records point to, named by their own digest."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from colmem.snapshot import layout
from colmem.snapshot.layout import Listed
from colmem.snapshot.record import Record

COPIED_BYTES_MAX = 8191


class References:
    """Collects the references of a snapshot, in order of id, copying ranges when asked to.

    A range that cannot be read whole is left out; its reference stays.
    """

    def __init__(self, folder: Path, *, attach: bool, base_dir: Path) -> None:
        self.entries: list[dict[str, Any]] = []
        self.attachments: dict[str, dict[str, Any]] = {}
        self._folder = folder / layout.ATTACHMENTS
        self._attach = attach
        self._base_dir = base_dir
        if attach:
            self._folder.mkdir()

    def add(self, record: Record) -> None:
        """Note a file-backed record."""
        if not record.source_uri:
            return
        self.entries.append(
            {
                "attachment": self._copied(record) if self._attach else None,
                "byte_length": record.byte_length or 0,
                "byte_offset": record.byte_offset or 0,
                "memory_id": record.id,
                "source_checksum": record.source_checksum,
                "source_format": record.source_format,
                "source_uri": record.source_uri,
            }
        )

    def listed(self) -> list[Listed]:
        """Give the copied files as a manifest lists them."""
        return [
            Listed(f"{layout.ATTACHMENTS}/{name}", name, entry["size"])
            for name, entry in self.attachments.items()
        ]

    def _copied(self, record: Record) -> str | None:
        length = record.byte_length or 0
        if not 0 < length <= COPIED_BYTES_MAX:
            return None
        data = self._read(record.source_uri, record.byte_offset or 0, length)
        if data is None:
            return None
        name = hashlib.sha256(data).hexdigest()
        if name not in self.attachments:
            (self._folder / name).write_bytes(data)
            self.attachments[name] = {
                "name": name,
                "sha256": name,
                "size": len(data),
                "source_uri": record.source_uri,
            }
        return name

    def _read(self, source_uri: str, offset: int, length: int) -> bytes | None:
        name = source_uri.removeprefix("file://")
        if "://" not in source_uri:
            name = os.path.join(self._base_dir, name)
        if offset < 0:
            return None
        try:
            # Not blocking: a name may belong to a pipe that nobody writes to.
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = os.pread(handle, length, offset)
        except (OSError, OverflowError):
            return None
        finally:
            os.close(handle)
        return data if len(data) == length else None
