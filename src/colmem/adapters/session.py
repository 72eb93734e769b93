"""What a command runs in: how it prints, and the store it works on.

Knows paths and the engine's ``open``, nothing of what commands do with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import colmem
from colmem import ConfigError
from colmem.adapters.output import JsonOutput, Output, TextOutput

if TYPE_CHECKING:
    from colmem.engine import Engine

SETTINGS_FILE = "store.json"  # what makes a directory a store


@dataclass
class Session:
    """The options every command has."""

    is_json: bool = False
    is_debug: bool = False

    @property
    def output(self) -> Output:
        """Where a command prints, as JSON or for people."""
        return JsonOutput() if self.is_json else TextOutput()


def session() -> Session:
    """The session of the running command."""
    made: Session = click.get_current_context().find_root().ensure_object(Session)
    return made


def exists(path: Path) -> bool:
    """Whether a directory holds a store."""
    return (path / SETTINGS_FILE).exists()


def open_for_reading(path: Path) -> Engine:
    """Open a store beside other readers.

    Raises
    ------
    ConfigError
        When there is no store.
    """
    _refuse_absent(path)
    return colmem.open(path, create=False, read_only=True)


def open_for_writing(path: Path) -> Engine:
    """Open an existing store for this process alone.

    Raises
    ------
    ConfigError
        When there is no store.
    """
    _refuse_absent(path)
    return colmem.open(path, create=False)


def open_or_create(path: Path, embedder: str | None = None) -> Engine:
    """Open a store for this process alone, made when absent; says so."""
    is_new = not exists(path)
    engine = colmem.open(path, embedder=embedder)
    if is_new:
        session().output.note(f"created the store {path} (embedder {_key(engine)})")
    return engine


def _key(engine: Engine) -> str:
    return "none" if engine.embedder is None else engine.embedder.key


def _refuse_absent(path: Path) -> None:
    if not path.exists():
        raise ConfigError(
            f"there is no store at {path}; check the path, or make one with `colmem init {path}`"
        )
