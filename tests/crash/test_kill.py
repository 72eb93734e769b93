"""A writing process dies at any point: what it was told is stored is there, nothing is half there.

The writers are in writer.py; every kill is a real SIGKILL, the store is opened again in this
process, and all its parts are compared.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import assert_agreement, listed
from colmem.contract import MetaFilter
from zygote import Zygote

WORD = "common"
KILLS_PER_STORE = 8
pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with colmem.open(":memory:") as engine:  # compiles kernels now, where they are not cached
        engine.store(colmem.document(WORD))
        assert_agreement(engine, WORD)
    made = Zygote(Path(__file__).with_name("writer.py"))
    yield made
    made.close()


class Journal:
    """What each thread's items may be: after everything acknowledged, and after what was begun.

    A begun change adds batches one after the other, or forgets; each is whole or absent.
    """

    def __init__(self) -> None:
        self.held: dict[str, list[str]] = {}
        self.n_done = 0

    def possible(self, path: Path) -> dict[str, list[list[str]]]:
        """Thread -> its possible states, given what its last process wrote."""
        begun: dict[str, tuple[list[list[str]], list[str], int]] = {}
        for line in path.read_bytes().splitlines() if path.exists() else []:
            entry = json.loads(line)
            assert "failed" not in entry, entry["failed"]
            if "opened" in entry:
                continue
            thread = entry["thread"]
            if "begin" in entry:
                begun[thread] = entry["add"], entry["forget"], 0
            elif "batch" in entry:
                add, forget, _ = begun[thread]
                begun[thread] = add, forget, entry["batch"]
            else:
                add, forget, _ = begun.pop(thread)
                self.held[thread] = _changed(self.held.get(thread, []), add, forget)
                self.n_done += 1
        states = {thread: [held] for thread, held in self.held.items()}
        for thread, (add, forget, n_acknowledged) in begun.items():
            before = self.held.get(thread, [])
            if forget:
                states[thread] = [before, _changed(before, [], forget)]
            else:
                some = range(n_acknowledged, len(add) + 1)
                states[thread] = [_changed(before, add[:n], []) for n in some]
        return states


def _changed(held: list[str], add: list[list[str]], forget: list[str]) -> list[str]:
    gone = set(forget)
    return [id for id in held if id not in gone] + [id for batch in add for id in batch]


def kill_at_random_points(zygote: Zygote, folder: Path, rng: random.Random, n_kills: int) -> int:
    """Kill writers one after the other; returns how many calls were acknowledged in all."""
    n_done = 0
    for number in range(n_kills):
        if number % KILLS_PER_STORE == 0:
            store = folder / f"store-{number}"
            journal = Journal()
        path = folder / f"journal-{number}"
        pid = zygote.start(store, path, rng.randrange(1 << 30))
        if rng.random() < 0.8:
            _wait_opened(path)
        time.sleep(rng.random() ** 2 * 0.4)
        os.kill(pid, signal.SIGKILL)
        assert zygote.wait_dead() == -signal.SIGKILL
        started = time.perf_counter()
        with colmem.open(store) as engine:
            assert time.perf_counter() - started < 5
            check_after_crash(engine, journal, path, rng)
        n_done += journal.n_done
        journal.n_done = 0
    return n_done


def check_after_crash(engine: Any, journal: Journal, path: Path, rng: random.Random) -> None:
    states = journal.possible(path)
    ids = assert_agreement(engine, WORD)
    held = {thread: [] for thread in states}
    for hit in listed(engine):
        held[hit.meta.workspace].append(hit.id)
    for thread, possible in states.items():
        assert held[thread] in possible, f"{thread} is in none of {len(possible)} states"
    if rng.random() < 0.5:
        report = engine.check()
        assert report.problems == []
        assert report.items == len(ids)
    # Forgetting agrees with listing, before the next writer goes on.
    filter = MetaFilter(tags_any=[f"g{rng.randrange(8)}"])
    gone = [hit.id for hit in listed(engine, filter)]
    assert engine.forget(filter=filter).forgotten == len(gone)
    assert_agreement(engine, WORD)
    journal.held = {thread: _changed(state, [], gone) for thread, state in held.items()}


def _wait_opened(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, "the writer did not open the store"
        time.sleep(0.002)


def test_nothing_acknowledged_is_lost_to_a_kill(
    zygote: Zygote, tmp_path: Path, rng: random.Random
) -> None:
    assert kill_at_random_points(zygote, tmp_path, rng, n_kills=12) > 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_two_hundred_kills(
    zygote: Zygote, tmp_path: Path, rng: random.Random
) -> None:
    assert kill_at_random_points(zygote, tmp_path, rng, n_kills=240) > 240
