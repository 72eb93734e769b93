"""Stores for the snapshot tests: every factory here must show the same behaviour."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "snapshot"))

from engine_store import EngineStore
from memory_store import MemoryStore

STORES: dict[str, Callable[[], Any]] = {"memory": MemoryStore, "engine": EngineStore}


@pytest.fixture(params=sorted(STORES))
def stores(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    """A maker of empty stores with ``hydrate``, ``snapshot``, ``store``, ``forget``, ``rows``."""
    made: list[Any] = []

    def make() -> Any:
        made.append(STORES[request.param]())
        return made[-1]

    yield make
    for store in made:
        if hasattr(store, "close"):
            store.close()
