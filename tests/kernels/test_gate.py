"""The gate before kernels that are not compiled yet."""

import threading
from typing import Any

import pytest

from colmem_kernels.gate import Gate


class FakeKernel:
    def __init__(self) -> None:
        self.made = threading.Event()

    def is_ready(self) -> bool:
        return self.made.is_set()

    def compiled(self) -> None:
        self.made.set()


@pytest.fixture
def kernels() -> Any:
    return FakeKernel(), FakeKernel()


def test_it_opens_at_once_when_all_are_compiled(kernels: Any) -> None:
    gate = Gate(*kernels, after=100)
    kernels[0].compiled()
    assert not gate.is_open(1)
    kernels[1].compiled()
    assert gate.is_open(1)


def test_it_opens_when_enough_was_done_without(kernels: Any) -> None:
    gate = Gate(*kernels, after=100)
    assert [gate.is_open(60), gate.is_open(40), gate.is_open(1), gate.is_open(0)] == [
        False,
        False,
        True,
        True,
    ]
    assert not kernels[0].is_ready()  # the caller compiles what it calls


def test_in_the_background_it_opens_when_they_are_made(kernels: Any) -> None:
    gate = Gate(*kernels, after=100, in_background=True)
    assert not gate.is_open(60)
    assert not kernels[0].is_ready()
    gate.is_open(60)
    assert all(kernel.made.wait(10) for kernel in kernels)
    assert gate.is_open(0)
