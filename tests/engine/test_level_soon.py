"""The lexical index follows writes in the background while there are readers, and only then."""

import time
from pathlib import Path
from typing import Any

import colmem


def level_of(engine: Any) -> int:
    return int(engine._opened.store.lexical.watermark)


def waited(engine: Any, level: int) -> bool:
    end = time.monotonic() + 20
    while level_of(engine) < level and time.monotonic() < end:
        time.sleep(0.01)
    return level_of(engine) == level


def test_after_a_read_a_write_is_indexed_without_another_read(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store(colmem.document("owl"))
        assert len(engine.fetch(query="owl", mode="keyword").hits) == 1
        engine.store(colmem.document("night owl"))
        assert waited(engine, 2)
        engine.forget(ids=[engine.list().items[0].id])
        assert [hit.text for hit in engine.fetch(query="owl", mode="keyword").hits] == ["night owl"]


def test_a_store_that_nobody_reads_is_left_behind(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        for i in range(3):
            engine.store(colmem.document(f"owl {i}"))
        feeding = engine._opened.store.lexical_level._feeding
        assert feeding is None
        assert level_of(engine) == 0


def test_one_read_is_followed_by_one_background_commit(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store(colmem.document("owl"))
        engine.fetch(query="owl", mode="keyword")
        engine.store(colmem.document("night owl"))
        assert waited(engine, 2)
        engine._opened.store.lexical_level._await_feeder()
        engine.store(colmem.document("third owl"))
        engine._opened.store.lexical_level._await_feeder()
        assert level_of(engine) == 2
        assert len(engine.fetch(query="owl", mode="keyword").hits) == 3
