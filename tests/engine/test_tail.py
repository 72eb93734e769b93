"""A read after a write finds what was stored without waiting for the lexical index's commit."""

import threading
from pathlib import Path
from typing import Any

import pytest

import colmem
from colmem import lexical_level
from colmem.contract import MemoryMeta, MetaFilter


@pytest.fixture
def engine(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(lexical_level, "TAIL_SHARE_MAX", 1.0)
    with colmem.open(store_path) as engine:
        engine.ingest(colmem.document(f"owl {i} of the wood") for i in range(300))
        assert len(engine.fetch(query="owl", mode="keyword", limit=5).hits) == 5
        yield engine


def level_of(engine: Any) -> int:
    engine._opened.store.lexical_level._await_feeder()
    return int(engine._opened.store.lexical.watermark)


def texts(engine: Any, query: str, **fields: Any) -> list[str]:
    return [hit.text for hit in engine.fetch(query=query, **fields).hits]


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_it_is_found_at_once_and_the_index_stays_as_it_was(engine: Any, mode: str) -> None:
    engine.store(colmem.document("a lonely moth"))
    assert texts(engine, "moth", mode=mode)[0] == "a lonely moth"
    engine.store(colmem.document("a second moth", meta=MemoryMeta(tags=["late"])))
    assert len(engine.fetch(query="moth", mode="keyword").hits) == 2
    late = engine.fetch(query="moth", mode="keyword", filter=MetaFilter(tags_any=["late"])).hits
    assert [hit.text for hit in late] == ["a second moth"]
    assert level_of(engine) == 300


def test_pages_cut_one_order(engine: Any) -> None:
    for i in range(7):
        engine.store(colmem.document(f"moth and owl {i}"))
    whole = texts(engine, "moth owl", mode="keyword", limit=40)
    paged: list[str] = []
    cursor = None
    while len(paged) < 40:
        page = engine.fetch(query="moth owl", mode="keyword", limit=8, cursor=cursor)
        paged += [hit.text for hit in page.hits]
        cursor = page.next_cursor
    assert paged == whole
    assert level_of(engine) == 300


def test_the_index_follows_in_the_background_before_the_tail_grows_large(engine: Any) -> None:
    for i in range(lexical_level.TAIL_ROWS_SOON):
        engine.store(colmem.document(f"moth {i}"))
        assert len(engine.fetch(query="moth", mode="keyword", limit=1).hits) == 1
    assert level_of(engine) == 300 + lexical_level.TAIL_ROWS_SOON
    assert engine._opened.store.lexical_level._tail is None


def test_many_new_items_are_indexed_before_a_read(engine: Any) -> None:
    n = lexical_level.TAIL_ROWS_MAX + 1
    engine.ingest(colmem.document(f"moth {i}") for i in range(n))
    assert len(engine.fetch(query="moth", mode="keyword", limit=20).hits) == 20
    assert level_of(engine) == 300 + n


def test_large_new_items_are_indexed_before_a_read(engine: Any) -> None:
    engine.store(colmem.document("moth " * (lexical_level.TAIL_BYTES_MAX // 5 + 1)))
    assert len(engine.fetch(query="moth", mode="keyword").hits) == 1
    assert level_of(engine) == 301


def test_what_is_forgotten_is_not_found(engine: Any) -> None:
    stored = engine.store(colmem.document("a lonely moth"))
    assert texts(engine, "moth", mode="keyword") == ["a lonely moth"]
    engine.forget(ids=[stored.id])
    assert texts(engine, "moth", mode="keyword") == []


def test_an_explanation_tells_the_words_of_new_items(engine: Any) -> None:
    engine.store(colmem.document("a lonely moth"))
    texts(engine, "moth", mode="keyword")
    hit = engine.explain(query="moth", mode="keyword").hits[0]
    assert "moth" in str(hit)
    assert level_of(engine) == 301


def test_a_store_opened_again_has_indexed_all(engine: Any, store_path: Path) -> None:
    engine.store(colmem.document("a lonely moth"))
    assert texts(engine, "moth", mode="keyword") == ["a lonely moth"]
    engine.close()
    with colmem.open(store_path) as again:
        assert again._opened.store.lexical.watermark == 301
        assert texts(again, "moth", mode="keyword") == ["a lonely moth"]


def test_small_indexes_have_no_tail(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store_many([colmem.document(f"owl {i}") for i in range(50)])
        texts(engine, "owl", mode="keyword")
        engine.store(colmem.document("a lonely moth"))
        assert texts(engine, "moth", mode="keyword") == ["a lonely moth"]
        assert level_of(engine) == 51


def test_every_thread_finds_what_it_stored(engine: Any) -> None:
    missed: list[str] = []

    def work(name: str) -> None:
        for i in range(60):
            text = f"{name}{i} flies"
            engine.store(colmem.document(text))
            if text not in texts(engine, f"{name}{i}", mode="keyword"):
                missed.append(text)

    threads = [threading.Thread(target=work, args=(f"moth{n}x",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []
