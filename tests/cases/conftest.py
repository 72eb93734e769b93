"""What the cases share: children that are killed."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import colmem
from agreement import assert_agreement
from zygote import Zygote


class Killer:
    """Starts the writers of crash_writer.py and kills them."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    def kill(self, name: str, store: Path, *, after_steps: int, delay_s: float = 0) -> int:
        """Kill a writer some time after a number of steps; how many it had done by then."""
        said = store.parent / f"said-{name}"
        said.unlink(missing_ok=True)
        pid = self._zygote.start(name, store, said)
        deadline = time.monotonic() + 120
        while not said.exists() or said.stat().st_size < after_steps:
            assert time.monotonic() < deadline, f"{name} came to no step {after_steps}"
            time.sleep(0.001)
        time.sleep(delay_s)
        os.kill(pid, signal.SIGKILL)
        assert self._zygote.wait_dead() == -signal.SIGKILL
        return said.stat().st_size


@pytest.fixture(scope="package")
def killer() -> Iterator[Killer]:
    """One process that forks every writer."""
    with colmem.open(":memory:") as engine:  # compiles kernels now, where they are not cached
        engine.store(colmem.document("warm"))
        assert_agreement(engine, "warm")
    zygote = Zygote(Path(__file__).with_name("crash_writer.py"))
    yield Killer(zygote)
    zygote.close()


@pytest.fixture
def delay(rng: random.Random) -> Iterator[float]:
    """Random delays of 0 to 50 ms."""
    return iter(lambda: rng.random() * 0.05, None)  # type: ignore[arg-type]
