"""What the writers of the crash cases do until they are killed; each says how far it came."""

import os
import time
from pathlib import Path
from typing import Any

import colmem
from colmem.contract import document
from colmem_kernels import columns, keys, similarity, wordpiece
from samples import WORD, make
from zygote import serve

LOADED = (columns, keys, similarity, wordpiece)


class Says:
    """A file that holds how many steps were acknowledged."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def step(self) -> None:
        os.write(self.fd, b".")


def again(engine: Any, says: Says) -> None:
    """Store X, forget X, store X again: two steps a round, and it is there after an odd number."""
    item = document(f"{WORD} x")
    while True:
        engine.store(item)
        says.step()
        engine.forget(ids=[item.fingerprint()])
        says.step()


def many_again(engine: Any, says: Says) -> None:
    """The same with a hundred items in one batch."""
    items = make(100, "pair")
    while True:
        engine.store_many(items)
        says.step()
        engine.forget(ids=[item.fingerprint() for item in items])
        says.step()


def unflushed(engine: Any, says: Says) -> None:
    """150 items, and nothing that would bring an index level."""
    engine.store_many(make(100, "first"))
    engine.store_many(make(50, "second"))
    says.step()
    time.sleep(600)


def indexing(engine: Any, says: Says) -> None:
    """Rows committed and lexical commits in turn."""
    number = engine.explore(facet="kind").total
    while True:
        engine.ingest(make(20, f"batch{number}n"), batch_size=20)
        says.step()
        engine.fetch(query=WORD, mode="keyword", limit=5)
        number += 20


def holding(engine: Any, says: Says) -> None:
    """Hold the store and every lock of it while writing."""
    with engine._opened.store.exclusive(), engine._rewriting:
        engine.store(document(f"{WORD} held"))
        says.step()
        time.sleep(600)


def live(name: str, store: str, path: str) -> None:
    what = {f.__name__: f for f in (again, many_again, unflushed, indexing, holding)}[name]
    what(colmem.open(Path(store)), Says(path))


if __name__ == "__main__":
    colmem.embedder("static-s256").embed(["warm"])
    serve(live)
