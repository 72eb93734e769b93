"""The Nth write or sync fails, N = 1, 2, …: the call says so, and the store is as before or after.

The failing layer stands under colmem's own files; the disk that fills up, under DuckDB's and
tantivy's files as well, is in test_full_disk.
"""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import assert_agreement, listed
from colmem import files
from colmem.contract import ColmemError, MemoryMeta, MetaFilter, Unavailable, document
from live_copy import copy_live

pytestmark = pytest.mark.crash
WORD = "common"
N_MAX = 60


class FailingOs:
    """The os module, whose Nth pwrite or fdatasync fails; a write fails half done."""

    def __init__(self, number: int, code: int, *, for_good: bool) -> None:
        self.left = number
        self.code = code
        self.for_good = for_good
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        if self._fails():
            os.pwrite(fd, bytes(data)[: len(data) // 2], offset)
            raise OSError(self.code, os.strerror(self.code))
        return os.pwrite(fd, data, offset)

    def fdatasync(self, fd: int) -> None:
        os.fdatasync(fd)
        if self._fails():
            raise OSError(self.code, os.strerror(self.code))

    def _fails(self) -> bool:
        self.left -= 1
        fails = self.left < 0 if self.for_good else self.left == 0
        self.failed += fails
        return fails


def _items(name: str, n: int) -> list[Any]:
    return [
        document(f"{WORD} {name} {i}", meta=MemoryMeta(tags=[name], workspace="w"))
        for i in range(n)
    ]


CALLS: dict[str, Callable[[Any], Any]] = {
    "store": lambda engine: engine.store(_items("one", 1)[0]),
    "store_many": lambda engine: engine.store_many(_items("many", 20)),
    "ingest": lambda engine: engine.ingest(_items("bulk", 30), batch_size=30),
    "forget ids": lambda engine: engine.forget(
        ids=[item.fingerprint() for item in _items("base", 3)]
    ),
    "forget filter": lambda engine: engine.forget(filter=MetaFilter(tags_any=["base"])),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a few items."""
    path = tmp_path_factory.mktemp("base") / "store"
    with colmem.open(path) as engine:
        engine.store_many(_items("base", 12))
    return path


FAULTS = [
    pytest.param(errno.ENOSPC, False, id="ENOSPC once"),
    pytest.param(errno.EIO, True, id="EIO for good", marks=pytest.mark.slow),
    pytest.param(errno.EIO, False, id="EIO once", marks=pytest.mark.slow),
    pytest.param(errno.ENOSPC, True, id="ENOSPC for good", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("code", "for_good"), FAULTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_failing_write_leaves_the_state_before_or_after(
    name: str, for_good: bool, code: int, base: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    for number in range(1, N_MAX):
        store = tmp_path / f"store-{number}"
        shutil.copytree(base, store)
        with colmem.open(store) as engine:
            before = _state(engine)
            failing = FailingOs(number, code, for_good=for_good)
            monkeypatch.setattr(files, "os", failing)
            error = None
            try:
                CALLS[name](engine)
            except ColmemError as raised:
                error = raised
            monkeypatch.setattr(files, "os", os)
            if error is None and failing.failed == 0:
                break
            if error is None:
                # The codes are made again from the embeddings: their loss is no failure of a call.
                has_codes = engine._opened.store.vectors._codes is not None
                assert has_codes, f"operation {number} failed and the call did not say so"
                after = _state(engine)
                assert len(after) > len(before)
                assert_agreement(engine, WORD)
                copy_live(store, tmp_path / f"crashed-{number}")
                _is_whole(tmp_path / f"crashed-{number}", [after])
                continue
            assert isinstance(error, Unavailable)
            assert os.strerror(code) in str(error)
            assert _state(engine) == before
            assert_agreement(engine, WORD)
            # What a crash would leave now, and what it would leave after another write.
            copy_live(store, tmp_path / f"crashed-{number}")
            engine.store(_items("other", 1)[0])
            copy_live(store, tmp_path / f"written-{number}")
            CALLS[name](engine)
            after = _state(engine)
            assert_agreement(engine, WORD)
        _is_whole(store, [after])
        _is_whole(tmp_path / f"crashed-{number}", [before])
        _is_whole(tmp_path / f"written-{number}", [[*before, _items("other", 1)[0].fingerprint()]])
    else:
        pytest.fail(f"more than {N_MAX} writes in one call")
    assert number > 1


@pytest.mark.parametrize("name", ["store_many", "forget ids"])
def test_a_failed_call_stays_failed_after_a_clean_close(
    name: str, base: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    for number in range(1, N_MAX):
        store = tmp_path / f"store-{number}"
        shutil.copytree(base, store)
        with colmem.open(store) as engine:
            before = _state(engine)
            monkeypatch.setattr(files, "os", FailingOs(number, errno.EIO, for_good=False))
            try:
                CALLS[name](engine)
            except Unavailable:
                failed = True
            else:
                failed = False
            monkeypatch.setattr(files, "os", os)
        if not failed:
            break
        _is_whole(store, [before])
    assert number > 1


def test_a_failed_write_of_one_thread_is_told_to_every_caller_of_its_frame(
    base: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    store = tmp_path / "store"
    shutil.copytree(base, store)
    outcomes: dict[int, Exception | None] = {}

    def write(engine: Any, number: int) -> None:
        try:
            engine.store(_items(f"thread{number}", 1)[0])
            outcomes[number] = None
        except Unavailable as error:
            outcomes[number] = error

    with colmem.open(store) as engine:
        monkeypatch.setattr(files, "os", FailingOs(4, errno.ENOSPC, for_good=False))
        threads = [threading.Thread(target=write, args=(engine, n)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        monkeypatch.setattr(files, "os", os)
        assert len(outcomes) == 16
        assert any(outcomes.values())
        held = set(assert_agreement(engine, WORD))
        for number, error in outcomes.items():
            assert (_items(f"thread{number}", 1)[0].fingerprint() in held) == (error is None)
    with colmem.open(store) as engine:
        assert set(assert_agreement(engine, WORD)) == held
        assert engine.check().problems == []


def _state(engine: Any) -> list[str]:
    return [hit.id for hit in listed(engine)]


def _is_whole(store: Path, possible: list[list[str]]) -> None:
    with colmem.open(store) as engine:
        assert assert_agreement(engine, WORD) in possible
        assert engine.check().problems == []
