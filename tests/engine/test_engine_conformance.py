"""The conformance suite on every engine: empty, reopened, and holding other data."""

from pathlib import Path
from typing import Any

import pytest

import colmem
from colmem import conformance
from colmem.contract import MemoryMeta, conversation, document, encode, learning

FOREIGN = [
    document("note in the way", meta=MemoryMeta(folder="/a/b", tags=["namespaces", "x"])),
    document("elsewhere", title="tmconf", meta=MemoryMeta(workspace="tinymemory-conformance")),
    learning("below", meta=MemoryMeta(namespace="agent:a", observed_at="2001-06-01T00:00:00Z")),
    conversation([("user", "note")], meta=MemoryMeta(source="rss")),
]


def test_an_empty_engine_conforms(engine: Any) -> None:
    conformance.run(engine)
    assert engine.list(limit=10).items == []


def test_an_engine_that_holds_other_data_conforms_and_keeps_it(engine: Any) -> None:
    for item in FOREIGN:
        engine.store(item)
    before = encode(engine.list(limit=10))
    conformance.run(engine)
    assert encode(engine.list(limit=10)) == before


def test_a_reopened_store_conforms_and_keeps_its_data(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store_many(FOREIGN)
        before = encode(engine.list(limit=10))
    for _ in range(2):
        with colmem.open(store_path) as engine:
            conformance.run(engine)
            assert encode(engine.list(limit=10)) == before
            assert engine.check().problems == []


@pytest.mark.parametrize("key", ["hotmem-hash-v1", "static-s256"])
def test_every_built_in_embedder_conforms(key: str) -> None:
    with colmem.open(":memory:", embedder=key) as engine:
        conformance.run(engine)
