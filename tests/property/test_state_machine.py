"""colmem and the reference engine, driven with the same random operations, answer the same.

Batches of the table and of the lexical index are made tiny, so that few items cross their borders.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import colmem
from colmem import lexical_level
from colmem import store as store_module
from colmem.contract import Facet, MetaFilter, Reach, StoreItem, encode
from colmem.reference import ReferenceEngine
from live_copy import copy_live
from strategies import filters, filters_near, items, reaches

EMBEDDER = "hotmem-hash-v1"
FETCH_WORDS = ["owl", "zephyr", "tide"]
EVERYTHING = 10_000


@pytest.fixture(autouse=True)
def _tiny_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "FLUSH_ROWS", 5)
    monkeypatch.setattr(store_module, "FLUSH_ROWS_MAX", 20)
    monkeypatch.setattr(lexical_level, "BATCH_ROWS", 3)
    monkeypatch.setattr(store_module, "MASKS_MAX", 2)


class Walk:
    """A listing under way: its pages so far, and the ids that were there throughout."""

    def __init__(self, filter: MetaFilter, limit: int, there: set[str]) -> None:
        self.filter = filter
        self.limit = limit
        self.throughout = there
        self.seen: list[str] = []
        self.cursor: str | None = None


class MemoryMachine(RuleBasedStateMachine):
    """A store in memory."""

    seen = Bundle("seen")
    walks = Bundle("walks")

    def __init__(self) -> None:
        super().__init__()
        self.model = ReferenceEngine()
        self.engine = self.open()
        self.open_walks: list[Walk] = []

    def open(self) -> Any:
        return colmem.open(":memory:", embedder=EMBEDDER)

    def teardown(self) -> None:
        self.engine.close()

    # Writing.

    @initialize(target=seen, held=st.lists(items, max_size=6))
    def fill(self, held: list[StoreItem]) -> Any:
        for item in held:
            self.engine.store(item)
            self.model.store(item)
        return multiple(*held)

    @rule(target=seen, item=items)
    def store(self, item: StoreItem) -> StoreItem:
        assert self.engine.store(item) == self.model.store(item)
        return item

    @rule(item=seen)
    def store_again(self, item: StoreItem) -> None:
        assert self.engine.store(item) == self.model.store(item)

    @rule(target=seen, new=st.lists(items, min_size=1, max_size=8), old=st.lists(seen, max_size=3))
    def store_many(self, new: list[StoreItem], old: list[StoreItem]) -> Any:
        batch = [*new[:4], *old, *new[4:], new[0]]
        assert self.engine.store_many(batch) == self.model.store_many(batch)
        return multiple(*new)

    @rule(target=seen, new=st.lists(items, min_size=1, max_size=8))
    def ingest(self, new: list[StoreItem]) -> Any:
        report = self.engine.ingest(iter(new), batch_size=3)
        receipts = [self.model.store(item) for item in new]
        assert report.replayed == sum(receipt.replayed for receipt in receipts)
        assert report.total == len(new)
        return multiple(*new)

    @rule(chosen=st.lists(seen, min_size=1, max_size=4), repeat=st.booleans())
    def forget_ids(self, chosen: list[StoreItem], repeat: bool) -> None:
        ids = [item.fingerprint() for item in chosen]
        ids = [*ids, "unknown", "", *(ids if repeat else [])]
        self.forgotten(self.engine.forget(ids=ids), self.model.forget(ids=ids))

    @rule(filter=filters)
    def forget_filter(self, filter: MetaFilter) -> None:
        if not filter.is_empty():
            self.forgotten(self.engine.forget(filter=filter), self.model.forget(filter=filter))

    @rule(item=seen, data=st.data())
    def forget_like(self, item: StoreItem, data: st.DataObject) -> None:
        self.forget_filter(data.draw(filters_near(item.meta, item.kind)))

    def forgotten(self, got: Any, expected: Any) -> None:
        assert got == expected
        held = self.model_ids(MetaFilter())
        for walk in self.open_walks:
            walk.throughout &= held

    @rule()
    def compact(self) -> None:
        self.engine.compact()

    # Reading.

    @rule(filter=filters, limit=st.integers(1, 4))
    def list_pages(self, filter: MetaFilter, limit: int) -> None:
        self.same_listing(filter, limit)

    @rule(item=seen, data=st.data())
    def list_like(self, item: StoreItem, data: st.DataObject) -> None:
        filter = data.draw(filters_near(item.meta, item.kind))
        self.same_listing(filter, 2)
        self.same_explore(filter, data.draw(st.sampled_from(list(Facet))), 3)

    @rule(filter=filters, facet=st.sampled_from(list(Facet)), limit=st.integers(1, 5))
    def explore(self, filter: MetaFilter, facet: Facet, limit: int) -> None:
        self.same_explore(filter, facet, limit)

    @rule(chosen=st.lists(seen, min_size=1, max_size=5), reach=st.one_of(st.none(), reaches))
    def get(self, chosen: Any, reach: Reach | None) -> None:
        ids = [item.fingerprint() for item in chosen]
        ids = [ids[-1], "unknown", *ids]
        got = self.engine.get(ids=ids, reach=reach)
        assert encode(got) == encode(self.model.get(ids=ids, reach=reach))

    @rule(filter=filters, word=st.sampled_from(FETCH_WORDS), limit=st.integers(1, 5))
    def fetch(self, filter: MetaFilter, word: str, limit: int) -> None:
        self.right_fetch(filter, word, limit)

    @rule(item=seen, word=st.sampled_from(FETCH_WORDS), data=st.data())
    def fetch_like(self, item: StoreItem, word: str, data: st.DataObject) -> None:
        self.right_fetch(data.draw(filters_near(item.meta, item.kind)), word, 2)

    @rule(target=walks, filter=filters, limit=st.integers(1, 3))
    def start_walk(self, filter: MetaFilter, limit: int) -> Any:
        walk = Walk(filter, limit, self.model_ids(filter))
        self.open_walks.append(walk)
        if self.walk_one_page(walk):
            return multiple()
        return walk

    @rule(walk=consumes(walks))
    def finish_walk(self, walk: Walk) -> None:
        while not self.walk_one_page(walk):
            pass

    def walk_one_page(self, walk: Walk) -> bool:
        page = self.engine.list(filter=walk.filter, limit=walk.limit, cursor=walk.cursor)
        walk.seen += [hit.id for hit in page.items]
        walk.cursor = page.next_cursor
        if walk.cursor is not None:
            return False
        for id in walk.throughout:
            assert walk.seen.count(id) == 1
        self.open_walks.remove(walk)
        return True

    def model_ids(self, filter: MetaFilter) -> set[str]:
        return {hit.id for hit in self.model.list(filter=filter, limit=EVERYTHING).items}

    # Comparing.

    @invariant()
    def same_everything(self) -> None:
        everything = MetaFilter()
        got = self.engine.list(filter=everything, limit=EVERYTHING)
        assert encode(got) == encode(self.model.list(filter=everything, limit=EVERYTHING))

    def same_listing(self, filter: MetaFilter, limit: int) -> None:
        got, expected = (
            self.engine.list(filter=filter, limit=limit),
            self.model.list(filter=filter, limit=limit),
        )
        while True:
            assert encode(got.items) == encode(expected.items)
            assert (got.next_cursor is None) == (expected.next_cursor is None)
            if got.next_cursor is None:
                return
            got = self.engine.list(filter=filter, limit=limit, cursor=got.next_cursor)
            expected = self.model.list(filter=filter, limit=limit, cursor=expected.next_cursor)

    def same_explore(self, filter: MetaFilter, facet: Facet, limit: int) -> None:
        got = self.engine.explore(facet=facet, filter=filter, limit=limit)
        assert got == self.model.explore(facet=facet, filter=filter, limit=limit)

    def right_fetch(self, filter: MetaFilter, word: str, limit: int) -> None:
        admitted = {hit.id: hit for hit in self.model.list(filter=filter, limit=EVERYTHING).items}
        holding = {id for id, hit in admitted.items() if word in hit.text.split()}
        for mode in self.engine.descriptor().fetch_modes:
            whole = self.engine.fetch(query=word, mode=mode, filter=filter, limit=EVERYTHING)
            found = [hit.id for hit in whole.hits]
            assert len(found) == len(set(found))
            assert set(found) == (holding if mode == "keyword" else set(admitted)), mode
            scores = [hit.score for hit in whole.hits]
            assert scores == sorted(scores, reverse=True)
            for hit in whole.hits:
                assert encode(hit.meta) == encode(admitted[hit.id].meta)
                assert hit.text == admitted[hit.id].text
            paged = list(_pages(self.engine, query=word, mode=mode, filter=filter, limit=limit))
            assert encode(paged) == encode(whole.hits), mode


def _pages(engine: Any, **request: Any) -> Iterator[Any]:
    cursor = None
    while True:
        page = engine.fetch(**request, cursor=cursor)
        assert len(page.hits) <= request["limit"]
        yield from page.hits
        cursor = page.next_cursor
        if cursor is None:
            return


class DiskMachine(MemoryMachine):
    """A store on disk, which may also be closed, or copied as a crash would leave it."""

    def open(self) -> Any:
        if not hasattr(self, "folder"):
            self.folder = Path(tempfile.mkdtemp(prefix="colmem-machine-"))
            self.n_copies = 0
        return colmem.open(self.folder / f"store-{self.n_copies}", embedder=EMBEDDER)

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        self.engine.close()
        self.engine = self.open()

    @rule()
    def crash(self) -> None:
        flushing = self.engine._opened.store._flushing
        if flushing is not None:
            flushing.result()
        before, self.n_copies = self.folder / f"store-{self.n_copies}", self.n_copies + 1
        copy_live(before, self.folder / f"store-{self.n_copies}")
        self.engine.close()
        self.engine = self.open()

    @rule()
    def check(self) -> None:
        report = self.engine.check()
        assert report.problems == []
        assert report.items == len(self.model_ids(MetaFilter()))


def _run(machine: type[MemoryMachine], n_runs: int, n_steps: int, *, shrink: bool) -> None:
    # Shrinking takes minutes: the long form does it, the short form only reports.
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=n_runs,
            stateful_step_count=n_steps,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_store_in_memory_answers_as_the_reference_does() -> None:
    _run(MemoryMachine, 6, 25, shrink=False)


def test_a_store_on_disk_answers_as_the_reference_does() -> None:
    _run(DiskMachine, 6, 25, shrink=False)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [MemoryMachine, DiskMachine])
def test_many_long_runs_answer_as_the_reference_does(machine: type[MemoryMachine]) -> None:
    _run(machine, 500, 50, shrink=True)
