"""Writers of a store, to be killed at any point; see zygote for how they are started.

A writer's threads keep to items of their own (by workspace). Before each call a line says what it
would change, after it a line says that it was acknowledged; see ``Journal`` in test_kill.
"""

import json
import os
import random
import threading
import traceback
from typing import Any

import colmem
import search_paths  # noqa: F401 - as the environment says
from colmem import store as store_module
from colmem.contract import Document, MemoryMeta, MetaFilter, document
from colmem_kernels import columns, keys, similarity, wordpiece
from zygote import serve

LOADED = (columns, keys, similarity, wordpiece)
N_THREADS = 2
WORD = "common"


class Writer:
    """One thread's random operations."""

    def __init__(self, engine: Any, journal: int, number: int, seed: int) -> None:
        self.engine = engine
        self.journal = journal
        self.workspace = f"t{number}"
        self.rng = random.Random(f"{seed}/{number}")
        self.n_made = 0
        self.seed = seed
        self.held: dict[str, Document] = {}
        for hit in self.engine.list(filter=self.filter(), limit=100_000).items:
            self.held[hit.id] = document(hit.text, meta=hit.meta)

    def filter(self, **fields: Any) -> MetaFilter:
        return MetaFilter(workspace=self.workspace, **fields)

    def say(self, **line: Any) -> None:
        data = json.dumps({"thread": self.workspace, **line}).encode() + b"\n"
        assert os.write(self.journal, data) == len(data)

    def make(self) -> Document:
        self.n_made += 1
        n_words = 5 if self.rng.random() < 0.9 else 260  # the long ones have passages
        words = " ".join(self.rng.choices(["owl", "tide", "rust", "night", "value"], k=n_words))
        text = f"{WORD} {words} item{self.seed}x{self.n_made}"
        group = f"g{self.rng.randrange(8)}"
        return document(text, meta=MemoryMeta(workspace=self.workspace, tags=[group]))

    def changes(self, add: list[list[str]], forget: list[str]) -> None:
        self.say(begin=True, add=add, forget=forget)

    def done(self) -> None:
        self.say(done=True)

    def run(self) -> None:
        steps = [self.store, self.store_many, self.ingest, self.forget, self.again, self.fetch]
        weights = [6, 4, 2, 3, 4, 3]
        if self.workspace == "t0":
            steps, weights = [*steps, self.compact, self.sql], [*weights, 1, 1]
        while True:
            self.rng.choices(steps, weights)[0]()

    def store(self) -> None:
        item = self.make()
        self.changes([[item.fingerprint()]], [])
        self.engine.store(item)
        self.done()
        self.held[item.fingerprint()] = item

    def store_many(self) -> None:
        items = [self.make() for _ in range(self.rng.randrange(1, 40))]
        self.changes([[item.fingerprint() for item in items]], [])
        self.engine.store_many(items)
        self.done()
        self.held |= {item.fingerprint(): item for item in items}

    def ingest(self) -> None:
        items = [self.make() for _ in range(60)]
        ids = [item.fingerprint() for item in items]
        self.changes([ids[at : at + 20] for at in range(0, 60, 20)], [])
        self.engine.ingest(items, batch_size=20, progress=lambda n: self.say(batch=n // 20))
        self.done()
        self.held |= dict(zip(ids, items, strict=True))

    def forget(self) -> None:
        if self.rng.random() < 0.5:
            ids = self.rng.sample(sorted(self.held), min(3, len(self.held)))
            if not ids:
                return
            self.changes([], ids)
            assert self.engine.forget(ids=ids).forgotten == len(ids)
        else:
            group = f"g{self.rng.randrange(8)}"
            ids = [id for id, item in self.held.items() if group in item.meta.tags]
            self.changes([], ids)
            report = self.engine.forget(filter=self.filter(tags_any=[group]))
            assert report.forgotten == len(ids)
        self.done()
        for id in ids:
            del self.held[id]

    def again(self) -> None:
        """Forget items and store the same ones again."""
        ids = self.rng.sample(sorted(self.held), min(5, len(self.held)))
        if not ids:
            return
        self.changes([], ids)
        self.engine.forget(ids=ids)
        self.done()
        items = [self.held.pop(id) for id in ids]
        self.changes([ids], [])
        receipts = self.engine.store_many(items)
        assert [receipt.id for receipt in receipts] == ids
        assert not any(receipt.replayed for receipt in receipts)
        self.done()
        self.held |= dict(zip(ids, items, strict=True))

    def fetch(self) -> None:
        mode = self.rng.choice(["keyword", "vector", "hybrid"])
        page = self.engine.fetch(query=WORD, mode=mode, filter=self.filter(), limit=20)
        assert len(page.hits) == min(20, len(self.held))

    def sql(self) -> None:
        self.engine.sql("SELECT count(*) FROM items")

    def compact(self) -> None:
        self.engine.compact()


def write(store: str, journal: str, seed: str) -> None:
    """Open the store and write until killed; a failure is written to the journal."""
    store_module.FLUSH_ROWS = 40
    store_module.FLUSH_ROWS_MAX = 200
    fd = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        engine = colmem.open(store)
        os.write(fd, b'{"opened": true}\n')
        writers = [Writer(engine, fd, number, int(seed)) for number in range(N_THREADS)]
    except BaseException as error:  # noqa: BLE001 - told to the parent
        _fail(fd, error)

    def run(writer: Writer) -> None:
        try:
            writer.run()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            _fail(fd, error)

    for writer in writers[1:]:
        threading.Thread(target=run, args=(writer,)).start()
    run(writers[0])


def _fail(fd: int, error: BaseException) -> None:
    text = "".join(traceback.format_exception(error))
    os.write(fd, json.dumps({"failed": text}).encode() + b"\n")
    os._exit(1)


if __name__ == "__main__":
    colmem.embedder("static-s256").embed(["warm"])
    serve(write)
