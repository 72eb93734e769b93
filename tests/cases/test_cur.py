"""CUR: pages of any size cut the same ranking into pieces (D18)."""

from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import fetched, listed
from colmem.contract import InvalidRequest, MemoryMeta, MetaFilter, document
from samples import WORD

QUERY = f"{WORD} owl tide"


def fill(engine: Any, n: int, n_equal: int) -> None:
    words = ["owl", "tide", "rust", "night", "value", "harbour", "lantern"]
    items = []
    for i in range(n):
        # Items that differ in their metadata alone have equal scores in every mode.
        text = "owl tide equal" if i % (n // n_equal) == 0 else f"{words[i % 7]} {words[i % 5]} {i}"
        items.append(document(f"{WORD} {text}", meta=MemoryMeta(url=str(i), tags=[f"t{i % 2}"])))
    engine.ingest(items)


def pages_cut_one_ranking(engine: Any, limits: list[int], n: int) -> None:
    for filter in (MetaFilter(), MetaFilter(tags_any=["t1"])):
        expected = {hit.id for hit in listed(engine, filter)}
        assert len(expected) == (n if filter.is_empty() else n // 2)
        for mode in engine.descriptor().fetch_modes:
            whole = engine.fetch(query=QUERY, mode=mode, limit=n + 1, filter=filter)
            assert whole.next_cursor is None
            big = [(hit.id, hit.score) for hit in whole.hits]
            assert {id for id, _ in big} == expected, mode
            for limit in limits:
                pages = fetched(engine, limit, query=QUERY, mode=mode, filter=filter)
                assert [(hit.id, hit.score) for hit in pages] == big, (mode, limit)


def test_d18_pages_cut_one_ranking() -> None:
    with colmem.open(":memory:") as engine:
        fill(engine, 700, 50)
        pages_cut_one_ranking(engine, [37, 100], 700)


def test_d18_the_smallest_pages_cut_one_ranking() -> None:
    with colmem.open(":memory:") as engine:
        fill(engine, 60, 20)
        pages_cut_one_ranking(engine, [1, 3, 7], 60)


@pytest.mark.slow
def test_d18_pages_of_five_thousand_cut_one_ranking(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        fill(engine, 5_000, 200)
        pages_cut_one_ranking(engine, [7, 100], 5_000)
    with colmem.open(store_path) as engine:
        engine.compact()
        pages_cut_one_ranking(engine, [3, 100], 5_000)


def test_d18_a_keyword_page_is_full_though_better_items_were_just_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when an item is forgotten between bringing the index level and searching it."""
    with colmem.open(":memory:") as engine:
        fill(engine, 60, 20)
        best = engine.fetch(query=QUERY, mode="keyword", limit=30).hits
        monkeypatch.setattr(engine._opened.store.lexical_level, "ready", lambda: None)
        engine.forget(ids=[hit.id for hit in best])
        rest = [hit.id for hit in fetched(engine, 4, query=QUERY, mode="keyword")]
        assert len(rest) == 30
        assert not {hit.id for hit in best}.intersection(rest)


def test_d18_cursors_belong_to_their_request() -> None:
    with colmem.open(":memory:") as engine:
        fill(engine, 60, 20)
        cursor = engine.fetch(query=QUERY, mode="keyword", limit=5).next_cursor
        listing = engine.list(limit=5).next_cursor
        others: list[dict[str, Any]] = [
            {"query": QUERY, "mode": "vector"},
            {"query": WORD, "mode": "keyword"},
            {"query": QUERY, "mode": "keyword", "filter": MetaFilter(tags_any=["t1"])},
        ]
        for other in others:
            with pytest.raises(InvalidRequest, match="unknown cursor"):
                engine.fetch(**other, limit=5, cursor=cursor)
        for unknown in (cursor, "", "x", "5", listing[:-1] + "A" + listing[-1], "é", "=" * 100):
            with pytest.raises(InvalidRequest, match="unknown cursor"):
                engine.list(limit=5, cursor=unknown)
