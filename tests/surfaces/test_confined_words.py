"""A confined token is answered as if nothing were stored outside its reach: scores, order, all."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import colmem
from colmem import MemoryMeta, Namespace, Reach
from colmem.adapters.http.confine import ConfinedEngine
from colmem.contract import FetchMode, encode
from colmem.tools import ToolScope

WORDS = ["owl", "owls", "tide", "zephyr", "night", "bread", "getUserName", "水東"]
OWN, OTHER = Namespace.parse("ws:own"), Namespace.parse("ws:other")
SCOPE = ToolScope(place=OWN, reach=Reach(at=OWN, inherit=False, descendants=True))

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
modes = st.sampled_from(list(FetchMode))


def item(text: str, at: Namespace) -> Any:
    return colmem.document(text, meta=MemoryMeta(namespace=at))


def answers(engine: Any, query: str, mode: FetchMode) -> list[Any]:
    """Everything ranked that a confined token can ask, less the time it took."""
    fields: dict[str, Any] = {"query": query, "mode": mode, "limit": 5}
    page = engine.fetch(**fields)
    explained = engine.explain(**fields)
    recalled = engine.recall(question=query)
    return [
        encode(page.hits),
        page.next_cursor is None,
        encode(msgspec.structs.replace(explained, stages_ms={})),
        encode(recalled),
    ]


@pytest.fixture
def both() -> Iterator[tuple[Any, Any]]:
    with colmem.open(":memory:") as whole, colmem.open(":memory:") as alone:
        yield ConfinedEngine(whole, SCOPE), ConfinedEngine(alone, SCOPE)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_answer_changes_with_what_others_store_and_forget(data: st.DataObject) -> None:
    with colmem.open(":memory:") as whole, colmem.open(":memory:") as alone:
        shared, single = ConfinedEngine(whole, SCOPE), ConfinedEngine(alone, SCOPE)
        kept: list[str] = []
        for _ in range(data.draw(st.integers(1, 6))):
            for text in data.draw(st.lists(texts, max_size=6, unique=True)):
                others = whole.store(item(f"{text} {len(kept)}", OTHER))
                kept.append(others.id)
            for text in data.draw(st.lists(texts, max_size=4)):
                receipt = shared.store(item(text, OWN))
                assert single.store(item(text, OWN)) == receipt
                if data.draw(st.booleans()):
                    assert shared.forget(ids=[receipt.id]) == single.forget(ids=[receipt.id])
            if kept and data.draw(st.booleans()):
                whole.forget(ids=[kept.pop()])
            if data.draw(st.integers(0, 5)) == 0:
                for engine in (whole, alone):  # which ends the statistics of what was forgotten
                    engine.compact()
            query, mode = data.draw(texts), data.draw(modes)
            assert answers(shared, query, mode) == answers(single, query, mode)


def test_an_unconfined_reader_would_have_seen_a_difference() -> None:
    """What the test above would find: the plain engine measures words over the whole store."""
    with colmem.open(":memory:") as engine:
        for text in ("owl tide", "tide night", "bread"):
            engine.store(item(text, OWN))
        reach = colmem.MetaFilter(reach=SCOPE.reach)
        fields: dict[str, Any] = {"query": "owl tide", "mode": "keyword", "filter": reach}
        plain, confined = engine.fetch(**fields), ConfinedEngine(engine, SCOPE)
        before = confined.fetch(query="owl tide", mode="keyword")
        assert plain == before
        engine.store_many([item(f"owl {i}", OTHER) for i in range(50)])
        assert engine.fetch(**fields) != plain
        assert confined.fetch(query="owl tide", mode="keyword") == before


def test_a_store_compacted_meanwhile_is_read_anew(both: tuple[Any, Any]) -> None:
    shared, _ = both
    first = shared.store(item("owl tide", OWN))
    shared.store(item("owl night", OWN))
    shared.engine.store(item("owl owl owl", OTHER))
    before = shared.fetch(query="owl", mode="keyword")
    shared.engine.forget(ids=[first.id])
    shared.engine.compact()
    assert [hit.text for hit in shared.fetch(query="owl", mode="keyword").hits] == ["owl night"]
    assert len(before.hits) == 2


def test_all_forgotten_and_stored_anew(both: tuple[Any, Any]) -> None:
    shared, single = both
    ids = [shared.store(item(f"owl number{i}", OWN)).id for i in range(5)]
    assert len(shared.fetch(query="owl", mode="keyword").hits) == 5
    shared.forget(ids=ids)
    assert shared.fetch(query="owl", mode="keyword").hits == []
    for engine in (shared, single):
        engine.store(item("owl again", OWN))
    wanted: dict[str, Any] = {"query": "owl", "mode": "keyword"}
    assert shared.fetch(**wanted) == single.fetch(**wanted)


def test_many_forgotten_items_leave_no_trace_in_scores(both: tuple[Any, Any]) -> None:
    shared, single = both
    ids = [shared.store(item(f"owl number{i}", OWN)).id for i in range(40)]
    shared.fetch(query="owl", mode="keyword")
    shared.forget(ids=ids[:30])
    for i in range(30, 40):
        single.store(item(f"owl number{i}", OWN))
    wanted: dict[str, Any] = {"query": "owl number35", "mode": "keyword"}
    assert shared.fetch(**wanted) == single.fetch(**wanted)


def test_a_reach_of_thousands_is_ranked_as_if_it_were_all(both: tuple[Any, Any]) -> None:
    """More items than are compared exactly: searches by meaning go by codes in both stores."""
    shared, single = both
    own = [item(f"{WORDS[i % 8]} {WORDS[i % 7]} number{i}", OWN) for i in range(4_500)]
    others = [item(f"{WORDS[i % 7]} {WORDS[i % 5]} other{i}", OTHER) for i in range(4_500)]
    shared.engine.ingest([one for pair in zip(own, others, strict=True) for one in pair])
    single.engine.ingest(own)
    for mode in FetchMode:
        for n in range(0, 4_500, 500):
            query = f"{WORDS[n % 8]} number{n}"
            found = shared.fetch(query=query, mode=mode).hits
            assert len(found) == 10
            assert found == single.fetch(query=query, mode=mode).hits
