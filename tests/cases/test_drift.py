"""DRIFT: the lexical index and the vectors never disagree with the table (D1, D2)."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colmem
from agreement import assert_agreement, fetched
from colmem.contract import MetaFilter, document
from samples import WORD, folder_bytes, make


def found(engine: Any, query: str, mode: str = "keyword") -> list[str]:
    return [hit.text for hit in engine.fetch(query=query, mode=mode, limit=50).hits]


def test_d01_an_item_stored_after_the_first_fetch_is_found_at_once(store_path: Path) -> None:
    unique = "the unique word zephyrine"
    with colmem.open(store_path) as engine:
        engine.store_many(make(100))
        assert len(found(engine, WORD)) == 50
        engine.store(document(unique))
        assert found(engine, "zephyrine") == [unique]
        assert found(engine, "zephyrine", "hybrid")[0] == unique
        elsewhere: list[list[str]] = []
        thread = threading.Thread(target=lambda: elsewhere.append(found(engine, "zephyrine")))
        thread.start()
        thread.join()
        assert elsewhere == [[unique]]
    with colmem.open(store_path) as engine:
        assert found(engine, "zephyrine") == [unique]


def test_d01_many_writes_and_fetches_in_turn(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        for i in range(30):
            engine.store(document(f"{WORD} turn{i}x"))
            assert len(found(engine, f"turn{i}x")) == 1
        assert len(assert_agreement(engine, WORD)) == 30


def forgotten_items_leave_every_index(store_path: Path, n: int) -> None:
    kept = make(10, "kept", workspace="kept")
    gone = make(n - 10, "gone", workspace="gone")
    with colmem.open(store_path) as engine:
        engine.ingest([*gone[: n // 2], *kept, *gone[n // 2 :]])
        assert len(found(engine, WORD)) == 50  # every index is built
        assert engine.forget(filter=MetaFilter(workspace="gone")).forgotten == n - 10
        for item in gone[:: max(1, n // 200)]:
            assert found(engine, item.body.text.split()[-1]) == []
        assert len(assert_agreement(engine, WORD)) == 10
        held = scores(engine)
        before = sizes(store_path)
        engine.compact()
        after = sizes(store_path)
        assert after["items.log"] < before["items.log"] / 10
        assert after["embeddings.f32"] < before["embeddings.f32"] / 10
        assert after["lexical"] <= before["lexical"]
        compacted = scores(engine)
    with colmem.open(store_path) as engine:
        assert engine.check().problems == []
        assert scores(engine) == compacted
    with colmem.open(":memory:") as fresh:
        fresh.store_many(kept)
        expected = scores(fresh)
    for answer in (held, compacted):
        assert list(answer) == list(expected)
        np.testing.assert_allclose(list(answer.values()), list(expected.values()), atol=1e-6)


def sizes(store_path: Path) -> dict[str, int]:
    """Bytes of what grows with the items."""
    files = {name: next(store_path.glob(f"*/*/{name}")) for name in ("items.log", "embeddings.f32")}
    held = {name: path.stat().st_size for name, path in files.items()}
    return {**held, "lexical": folder_bytes(store_path / "lexical")}


def scores(engine: Any) -> dict[str, float]:
    """BM25 of every item: equal statistics give equal scores."""
    return {
        f"{query} {hit.id}": hit.score
        for query in (WORD, "kept", f"{WORD} kept3x")
        for hit in fetched(engine, query=query, mode="keyword")
    }


def test_d02_forgotten_items_leave_the_statistics_too(store_path: Path) -> None:
    forgotten_items_leave_every_index(store_path, 1_000)


@pytest.mark.slow
def test_d02_forgotten_items_leave_the_statistics_too_in_full(store_path: Path) -> None:
    forgotten_items_leave_every_index(store_path, 5_000)
