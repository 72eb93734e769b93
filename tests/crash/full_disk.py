"""Fill a disk: ``full_disk.py <store> <bytes> <how>``; run in a process of its own.

Files may not grow beyond ``bytes`` (RLIMIT_FSIZE) while items are stored until a call fails.
``how`` says what comes then: ``space``, the limit is lifted and the work goes on; ``close``, the
store is closed while it is full. With ``indexes`` nothing can be written while the indexes are
brought level, again and again. Ends with code 0 when all that must hold held.
"""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import colmem
from agreement import assert_agreement
from colmem import store as store_module
from colmem.contract import ColmemError, Document, MemoryMeta, Unavailable, document

WORD = "common"
BATCH = 40


def make(name: str, n: int = BATCH) -> list[Document]:
    meta = MemoryMeta(tags=[name], workspace="w")
    return [document(f"{WORD} {name} {i} " + "word " * 20, meta=meta) for i in range(n)]


def limit_files(size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def fill(engine: Any) -> list[str]:
    """Store until a call fails; returns the ids that were acknowledged."""
    held: list[str] = []
    for items in batches():
        try:
            if len(held) % (2 * BATCH):
                engine.ingest(items)
            else:
                engine.store_many(items)
        except Unavailable as error:
            is_clear("nothing of this call was stored" in str(error), error)
            break
        held += [item.fingerprint() for item in items]
        read_or_refuse(engine)
    return held


def batches() -> Iterator[list[Document]]:
    for number in range(400):
        yield make(f"batch{number}")
    raise AssertionError("the disk did not fill up")


def is_clear(holds: bool, error: ColmemError) -> None:
    if not holds:
        raise AssertionError(f"unclear: {error}")


def read_or_refuse(engine: Any) -> None:
    """Reads that need no file go on; those that must write one say clearly that they cannot."""
    assert engine.list(limit=3).items
    engine.explore(facet="tag")
    engine.fetch(query=WORD, mode="vector", limit=3)
    for call in (
        lambda: engine.fetch(query=WORD, mode="keyword", limit=3),
        lambda: engine.sql("SELECT count(*) FROM items"),
    ):
        try:
            call()
        except ColmemError as error:
            is_clear("\n" not in str(error), error)


def starve_indexes(store: str, size: int) -> None:
    held = []
    calls = {
        "fetch": lambda: engine.fetch(query=WORD, mode="keyword", limit=3),
        "sql": lambda: engine.sql("SELECT count(*) FROM items"),
        "compact": lambda: engine.compact(),
        "reembed": lambda: engine.reembed("static-s256"),
    }
    with colmem.open(store) as engine:
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        for number, (name, call) in enumerate([*calls.items(), *calls.items()]):
            items = make(f"{name}{number}")
            engine.store_many(items)
            held += [item.fingerprint() for item in items]
            limit_files(size)
            try:
                call()
            except ColmemError as error:
                is_clear("\n" not in str(error), error)
            assert [hit.id for hit in engine.list(limit=100_000).items] == held
            limit_files(unlimited)
            assert assert_agreement(engine, WORD) == held, name
            engine.forget(ids=held[:2])
            del held[:2]
            assert assert_agreement(engine, WORD) == held, name
            assert engine.check().problems == [], name
    with colmem.open(store) as engine:
        assert assert_agreement(engine, WORD) == held
        assert engine.check().problems == []


def main() -> None:
    store, size, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if how == "indexes":
        starve_indexes(store, size)
        return
    store_module.FLUSH_ROWS = 100
    first = make("first", 100)
    with colmem.open(store) as engine:
        engine.store_many(first)
    engine = colmem.open(store)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    limit_files(size)
    held = [item.fingerprint() for item in first] + fill(engine)
    read_or_refuse(engine)
    assert [hit.id for hit in engine.list(limit=100_000).items] == held
    if how == "space":
        limit_files(unlimited)
        more = make("more")
        engine.store_many(more)
        held += [item.fingerprint() for item in more]
        assert assert_agreement(engine, WORD) == held
        assert engine.check().problems == []
        engine.compact()
        assert assert_agreement(engine, WORD) == held
        engine.close()
    else:
        try:
            engine.close()
        except ColmemError as error:
            is_clear("\n" not in str(error), error)
        limit_files(unlimited)
    with colmem.open(store) as engine:
        assert assert_agreement(engine, WORD) == held
        assert engine.check().problems == []
        assert not any(receipt.replayed for receipt in engine.store_many(make("last")))


if __name__ == "__main__":
    main()
