"""Paths a client may name: below the server's snapshot folder, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from colmem.adapters.http.settings import ServerSettings
from colmem.contract import ColmemError, InvalidRequest, Unsupported

DEFAULT_NAME: Final = "swap.jsonl"
"""What is meant when no path is named."""


class SnapshotFolder:
    """The folder snapshots are confined to."""

    def __init__(self, settings: ServerSettings) -> None:
        self._root = None if settings.snapshots is None else settings.snapshots.resolve()
        self._store = None if settings.store is None else settings.store.resolve()

    def path(self, name: str, key: str = "path") -> Path:
        """The file or folder a client names, links followed.

        Raises
        ------
        Unsupported
            When the server has no such folder.
        InvalidRequest
            When the name leads out of it, is the folder itself, or leads into the store.
        """
        if self._root is None:
            raise Unsupported(
                "this server has no folder for snapshots; start it with --snapshots FOLDER"
            )
        try:
            path = (self._root / name).resolve()
            is_inside = path != self._root and path.is_relative_to(self._root)
        except (OSError, ValueError, RuntimeError):
            is_inside = False
        if not is_inside:
            raise InvalidRequest(
                f"`{name[:200]}` is not below the server's snapshot folder; name a path within it",
                path=f"$.{key}",
            )
        if self._store and (path.is_relative_to(self._store) or self._store.is_relative_to(path)):
            raise InvalidRequest(
                f"`{name[:200]}` is the store itself; name another path", path=f"$.{key}"
            )
        return path

    def hide(self, error: ColmemError) -> ColmemError:
        """An error whose message names paths as clients do."""
        if self._root is not None:
            error.message = error.message.replace(f"{self._root}/", "")
        return error
