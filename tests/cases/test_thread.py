"""THREAD and DUP: many threads at once lose nothing, tear nothing, double nothing (D9, D10)."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import assert_agreement, listed
from colmem.contract import MetaFilter, StoreReceipt
from samples import WORD, make

N_WRITERS = 8


def run_all(works: list[Callable[[], None]]) -> None:
    """Run each work in a thread of its own; what one raises is raised here."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def reading(engine: Any, stop: threading.Event) -> None:
    """What a reader sees is whole: counts, lists and hits of one moment."""
    n_before = 0
    while not stop.is_set():
        total = engine.explore(facet="tag").total
        assert total >= n_before
        n_before = total
        page = engine.list(limit=50)
        assert len({hit.id for hit in page.items}) == len(page.items)
        for mode in ("keyword", "vector", "hybrid"):
            hits = engine.fetch(query=f"{WORD} batch", mode=mode, limit=20).hits
            scores = [hit.score for hit in hits]
            assert scores == sorted(scores, reverse=True)
            assert len({hit.id for hit in hits}) == len(hits)
            assert all(hit.text.startswith(WORD) for hit in hits)
            assert len(hits) == 20 or total < 20 + 50
        ids = [hit.id for hit in page.items]
        if ids:
            assert [hit.id for hit in engine.get(ids=ids)] == ids


def write_from_many_threads(path: Path | str) -> None:
    stop = threading.Event()
    with colmem.open(path) as engine:

        def writing(number: int) -> Callable[[], None]:
            def work() -> None:
                for batch in range(20):
                    items = make(10, f"writer{number}batch{batch}n", tags=[f"w{number}"])
                    receipts = engine.store_many(items)
                    assert not any(receipt.replayed for receipt in receipts)

            return work

        def all_writers() -> None:
            try:
                run_all([writing(number) for number in range(N_WRITERS)])
            finally:
                stop.set()

        run_all([all_writers, *[lambda: reading(engine, stop)] * 2])
        page = engine.explore(facet="tag")
        assert page.total == N_WRITERS * 200
        assert {bucket.count for bucket in page.buckets} == {200}
        assert len(assert_agreement(engine, WORD)) == N_WRITERS * 200
        assert engine.check().problems == []


def test_d09_eight_writers_and_two_readers(store_path: Path) -> None:
    write_from_many_threads(store_path)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(5))
def test_d09_eight_writers_and_two_readers_five_times(store_path: Path, trial: int) -> None:
    write_from_many_threads(store_path if trial % 2 else ":memory:")


def test_d09_forgetting_and_compacting_beside_writers_and_readers(store_path: Path) -> None:
    """Every item of a thread is stored, half are forgotten; compaction runs all the time."""
    stop = threading.Event()
    with colmem.open(store_path) as engine:
        engine.ingest(make(200, "steady", workspace="steady"))

        def writing(number: int) -> Callable[[], None]:
            def work() -> None:
                for batch in range(6):
                    items = make(6, f"writer{number}batch{batch}n", workspace=f"w{number}")
                    engine.store_many(items)
                    ids = [item.fingerprint() for item in items[:3]]
                    assert engine.forget(ids=ids).forgotten == 3
                    again = engine.store(items[0])
                    assert not again.replayed
                    assert engine.forget(ids=[again.id]).forgotten == 1

            return work

        def steady() -> None:
            filter = MetaFilter(workspace="steady")
            while not stop.is_set():
                assert len(listed(engine, filter, limit=70)) == 200
                for mode in ("keyword", "vector", "hybrid"):
                    page = engine.fetch(query=f"{WORD} steady", mode=mode, limit=300, filter=filter)
                    assert len(page.hits) == 200
                assert engine.to_arrow(filter, columns=["id"]).read_all().num_rows == 200

        def compacting() -> None:
            while not stop.is_set():
                engine.compact()

        def all_writers() -> None:
            try:
                run_all([writing(number) for number in range(4)])
            finally:
                stop.set()

        run_all([all_writers, steady, compacting])
        assert engine.explore(facet="workspace").total == 200 + 4 * 6 * 3
        assert len(assert_agreement(engine, WORD)) == 200 + 4 * 6 * 3
        assert engine.check().problems == []


def same_items_from_many_threads(path: Path, n: int) -> None:
    items = make(n)
    receipts: list[StoreReceipt] = []
    with colmem.open(path) as engine:

        def storing() -> None:
            receipts.extend([engine.store(item) for item in items])

        run_all([storing] * N_WRITERS)
        assert len(assert_agreement(engine, WORD)) == n
    assert len(receipts) == N_WRITERS * n
    stored = Counter(receipt.id for receipt in receipts if not receipt.replayed)
    assert set(stored) == {item.fingerprint() for item in items}
    assert set(stored.values()) == {1}


def test_d10_the_same_items_from_eight_threads_are_stored_once(store_path: Path) -> None:
    same_items_from_many_threads(store_path, 60)


@pytest.mark.slow
def test_d10_a_thousand_items_from_eight_threads_are_stored_once(store_path: Path) -> None:
    same_items_from_many_threads(store_path, 1_000)


def test_d10_another_process_stores_nothing_twice(store_path: Path) -> None:
    """Two processes cannot hold the store at once: the second is refused, then replays."""
    script = (
        "import sys, colmem\n"
        "from colmem.contract import StoreLocked\n"
        "from samples import make\n"
        "try:\n"
        "    with colmem.open(sys.argv[1]) as engine:\n"
        "        print(sum(r.replayed for r in engine.store_many(make(50))))\n"
        "except StoreLocked:\n"
        "    print('locked')\n"
    )

    def other() -> str:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        run = [sys.executable, "-c", script, str(store_path)]
        done = subprocess.run(
            run, capture_output=True, text=True, check=True, timeout=120, env=environment
        )
        return done.stdout.strip()

    with colmem.open(store_path) as engine:
        engine.store_many(make(50))
        assert other() == "locked"
    assert other() == "50"
    with colmem.open(store_path) as engine:
        assert len(assert_agreement(engine, WORD)) == 50
