"""Fixtures for the tests of programs that use colmem; pytest finds them once colmem is installed.

Importing this module imports the contract only: the engine, and what it stands on, comes with the
first fixture that is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import colmem

if TYPE_CHECKING:
    from colmem import Embedder, Engine

STORE_NAME = "store.colmem"


@pytest.fixture(scope="session")
def colmem_embedder() -> Embedder | str | None:
    """Embedder of the stores that the fixtures make; override it to use another one."""
    return None


@pytest.fixture
def colmem_engine(colmem_embedder: Embedder | str | None) -> Iterator[Engine]:
    """An empty engine in memory, closed after the test."""
    with colmem.open(":memory:", embedder=colmem_embedder) as engine:
        yield engine


@pytest.fixture
def colmem_store(tmp_path: Path, colmem_embedder: Embedder | str | None) -> Iterator[Engine]:
    """An empty store on disk, at ``tmp_path / "store.colmem"``, closed after the test."""
    with colmem.open(tmp_path / STORE_NAME, embedder=colmem_embedder) as engine:
        yield engine
