"""What a store records about itself in ``store.json``: format, embedder, analyser, weights.

The file names, per generation of data files, the embedder their vectors were made with, so that a
change of generation (compaction, re-embedding) is decided by the table's transaction alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from colmem.contract import ConfigError, CorruptStore, VersionUnsupported
from colmem.files import fsync_folder

FILE_NAME = "store.json"
FORMAT = 1


class EmbedderRecord(msgspec.Struct, frozen=True):
    """The embedder of a generation: its key and dimension."""

    key: str
    dim: int


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``store.json``."""

    format: int = FORMAT
    colmem: str
    analyser: int
    ranking: dict[str, Any] = {}
    generations: dict[str, EmbedderRecord]

    def embedder(self, generation: int) -> EmbedderRecord:
        """The embedder a generation's vectors were made with."""
        try:
            return self.generations[str(generation)]
        except KeyError:
            raise CorruptStore(
                f"{FILE_NAME} does not name the embedder of generation {generation}; restore the "
                "file from a backup of the store"
            ) from None


class _Format(msgspec.Struct):
    format: int


def read(folder: Path) -> Settings:
    """Read the settings of a store.

    Raises
    ------
    VersionUnsupported
        When a newer version wrote the store.
    CorruptStore
        When the file cannot be read or is not what it should be.
    """
    path = folder / FILE_NAME
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Format).format
        if version > FORMAT:
            raise VersionUnsupported(
                f"{path} has format {version}, this version reads up to {FORMAT}; upgrade colmem"
            )
        return msgspec.json.decode(data, type=Settings)
    except OSError as error:
        raise CorruptStore(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptStore(
            f"{path} is damaged ({error}); restore the file from a backup of the store"
        ) from error


def write(folder: Path, settings: Settings) -> None:
    """Replace the settings of a store; durable on return."""
    temporary = folder / f"{FILE_NAME}.new"
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / FILE_NAME)
    fsync_folder(folder)


def check_folder(folder: Path, *, create: bool) -> bool:
    """Whether a path holds a store already; refuses what could not become one.

    Raises
    ------
    ConfigError
        When the path is a file, a folder of other things, or absent and not to be created.
    """
    try:
        return _holds_store(folder, create=create)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be a store: {error.strerror}; check the path"
        ) from error


def _holds_store(folder: Path, *, create: bool) -> bool:
    if folder.is_file():
        raise ConfigError(f"{folder} is a file; a store is a directory, name another path")
    if (folder / FILE_NAME).exists():
        return True
    # What a creation leaves that was killed before its first step was done.
    unfinished = {"lock", f"{FILE_NAME}.new"}
    if folder.exists() and any(p.name not in unfinished for p in folder.iterdir()):
        raise ConfigError(
            f"{folder} is not empty and holds no {FILE_NAME}; name a store or an empty directory"
        )
    if not create:
        raise ConfigError(
            f"there is no store at {folder}; check the path, or open with create=True"
        )
    return False
