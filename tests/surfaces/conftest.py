"""Servers over engines in memory, in a thread of the test process, and clients of them."""

from collections.abc import Iterator

import httpx
import pytest
from surface_parts import Server, serving

import colmem


@pytest.fixture(scope="session")
def shared() -> Iterator[Server]:
    """A server without tokens; its items are left by the tests before, so look for your own."""
    with colmem.open(":memory:") as engine, serving(engine) as server:
        yield server


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of the test's own, empty and without tokens."""
    with colmem.open(":memory:") as engine, serving(engine) as server:
        yield server


@pytest.fixture
def http(shared: Server) -> Iterator[httpx.Client]:
    """Plain HTTP to the shared server."""
    with httpx.Client(base_url=shared.url, trust_env=False) as client:
        yield client
