"""Stores for the snapshot tests: every factory here must show the same behaviour."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "snapshot"))

from memory_store import MemoryStore

STORES: dict[str, Callable[[], Any]] = {"memory": MemoryStore}


@pytest.fixture(params=sorted(STORES))
def stores(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """A maker of empty stores with ``hydrate``, ``snapshot`` and ``rows``."""
    return STORES[request.param]
