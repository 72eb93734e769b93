"""What every test may use: the engines by name, temporary stores, and seeds."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import colmem
import search_paths  # noqa: F401 - as the environment says
from colmem.reference import ReferenceEngine

# Example databases would make a run depend on the one before; a slow machine is no failure.
settings.register_profile(
    "colmem",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("colmem")

Factory = Callable[[Path], Any]

ENGINES: dict[str, Factory] = {
    "colmem-memory": lambda folder: colmem.open(":memory:"),
    "colmem-disk": lambda folder: colmem.open(folder / "store"),
    "reference": lambda folder: ReferenceEngine(),
}
"""Makers of an empty engine; a new engine joins every shared test with one line here."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each engine in turn, empty."""
    made = ENGINES[request.param](tmp_path)
    yield made
    if hasattr(made, "close"):
        made.close()


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may make a store."""
    return tmp_path / "store"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the test's name alone."""
    return random.Random(request.node.nodeid)
