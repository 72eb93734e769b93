"""FILT: a filter holds before the best are taken, whatever it names, in every operation alike."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import colmem
from agreement import fetched, listed
from colmem.contract import MemoryMeta, MetaFilter, Reach, SourceRef, StoreItem, document
from colmem.contract.metadata import ToolCallRef, TurnRange
from samples import WORD, SampleEmbedder, arrow_items
from strategies import filters, filters_near, items


class QueryEmbedder(SampleEmbedder):
    """Answers one query with a vector of the test's choice."""

    query = np.zeros(32, np.float32)

    def embed(self, texts: Any) -> Any:
        made = super().embed(texts)
        for at, text in enumerate(texts):
            if text == "the query":
                made[at] = self.query
        return made


def few_admitted_all_far(n: int) -> None:
    """Items near the query are not admitted; those that are lie on its other side."""
    rng = np.random.default_rng(7)
    embedder = QueryEmbedder()
    query = embedder.embed(["anything"])[0]
    embedder.query = query
    vectors = rng.normal(size=(n, 32)).astype(np.float32) + 2 * query
    admitted = {count: rng.choice(n, 30, replace=False)[:count] for count in (30, 3, 1)}
    tags: list[list[str]] = [[] for _ in range(n)]
    for count, rows in admitted.items():
        vectors[rows] = rng.normal(size=(count, 32)) - 3 * query
        for row in rows:
            tags[row].append(f"few{count}")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with colmem.open(":memory:", embedder=embedder) as engine:
        engine.ingest_arrow(arrow_items(n, vectors, tags=tags))
        ids = np.array(engine.to_arrow(columns=["id"]).read_all().column("id").to_pylist())
        stored = engine.to_arrow(columns=["id"], embeddings=True).read_all()
        flat = stored.column("embedding").combine_chunks().flatten().to_numpy()
        cosines = flat.reshape(n, 32) @ query
        for count, rows in admitted.items():
            order = rows[np.lexsort((rows, -cosines[rows]))]
            for mode in ("vector", "hybrid"):
                filter = MetaFilter(tags_any=[f"few{count}"])
                page = engine.fetch(query="the query", mode=mode, limit=10, filter=filter)
                assert len(page.hits) == min(10, count), mode
                if mode == "vector":
                    assert [hit.id for hit in page.hits] == ids[order][:10].tolist()
                    got = [hit.score for hit in page.hits]
                    np.testing.assert_allclose(got, cosines[order][:10], atol=1e-5)
                else:
                    assert {hit.id for hit in page.hits} <= set(ids[rows].tolist())
        for mode in ("keyword", "vector", "hybrid"):
            nothing = MetaFilter(tags_any=["absent"])
            assert engine.fetch(query="the query", mode=mode, limit=10, filter=nothing).hits == []


def test_d11_a_filter_that_admits_few_far_items_returns_them() -> None:
    few_admitted_all_far(12_000)


@pytest.mark.slow
def test_d11_a_filter_that_admits_few_of_a_hundred_thousand_returns_them() -> None:
    few_admitted_all_far(100_000)


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # metadata of an item -> fields of the filter that admits it
    "namespace": ({"namespace": "agent:a"}, {"reach": Reach.exact("agent:a")}),
    "workspace": ({"workspace": "w"}, {"workspace": "w"}),
    "folder": ({"folder": "/a/b"}, {"folder": "/a"}),
    "file_path": ({"file_path": "/a/b.md"}, {"file_path": "/a"}),
    "language": ({"language": "en"}, {"language": "en"}),
    "repo": ({"repo": "r"}, {"repo": "r"}),
    "commit": ({"commit": "c"}, {"commit": "c"}),
    "url": ({"url": "u"}, {"url": "u"}),
    "thread_id": ({"thread_id": "t"}, {"thread_id": "t"}),
    "turns": ({"turns": TurnRange(1, 2)}, {"turns": TurnRange(1, 2)}),
    "agent_id": ({"agent_id": "a"}, {"agent_id": "a"}),
    "tool_call": ({"tool_call": ToolCallRef("tool")}, {"tool_call": "tool"}),
    "source": ({"source": SourceRef("rss")}, {"sources": ["rss"]}),
    "tags": ({"tags": ["night"]}, {"tags_any": ["night"]}),
    "observed_at": (
        {"observed_at": "2020-06-01T00:00:00Z"},
        {"observed_after": "2020-01-01T00:00:00Z", "observed_before": "2021-01-01T00:00:00Z"},
    ),
}


def two_fields_and_a_limit(n: int, pairs: list[tuple[str, str]]) -> None:
    """All items have one field, few the other as well: the limit comes after both."""
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        for number, (all_have, few_have) in enumerate(pairs):
            common, wanted = FIELDS[all_have]
            rare, also = FIELDS[few_have]
            at = {"first": 0, "middle": n // 2, "last": n - 5}
            for place, start in at.items():
                made = [
                    document(
                        f"{WORD} {number} {place} {i}",
                        meta=MemoryMeta(**common, **(rare if start <= i < start + 5 else {})),
                    )
                    for i in range(n)
                ]
                engine.ingest(made)
                filter = MetaFilter(**wanted, **also)
                expected = [item.fingerprint() for item in made[start : start + 5]]
                assert [hit.id for hit in listed(engine, filter, limit=3)] == expected
                for mode in engine.descriptor().fetch_modes:
                    hits = fetched(engine, 3, query=WORD, mode=mode, filter=filter)
                    assert sorted(hit.id for hit in hits) == sorted(expected), (mode, place)
                assert engine.explore(facet="kind", filter=filter).total == 5
                assert engine.forget(filter=MetaFilter(**wanted)).forgotten == n


PAIRS = list(itertools.permutations(FIELDS, 2))


def test_d12_a_limit_comes_after_both_conditions() -> None:
    two_fields_and_a_limit(300, PAIRS[:: len(PAIRS) // 12])


@pytest.mark.slow
def test_d12_a_limit_comes_after_both_conditions_for_every_pair() -> None:
    two_fields_and_a_limit(500, PAIRS)
    two_fields_and_a_limit(10_000, [("namespace", "tags")])


def same_items_by_every_operation(engine: Any, filter: MetaFilter) -> int:
    """List, keyword fetch, explore and forget; what is forgotten is stored again."""
    ids = [hit.id for hit in listed(engine, filter, limit=7)]
    hits = fetched(engine, 5, query=WORD, mode="keyword", filter=filter)
    assert sorted(hit.id for hit in hits) == sorted(ids)
    assert engine.explore(facet="kind", filter=filter).total == len(ids)
    if not filter.is_empty():
        assert engine.forget(filter=filter).forgotten == len(ids)
        assert listed(engine, filter) == []
    return len(ids)


def _with_word(item: StoreItem) -> StoreItem:
    return document(f"{WORD} {item.render_text()}", meta=item.meta)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[StoreItem], list[MetaFilter]]:
    held = [_with_word(item) for item in draw(st.lists(items, min_size=8, max_size=30))]
    wanted = [draw(filters_near(item.meta, item.kind)) for item in held[:8]]
    return held, wanted + draw(st.lists(filters, min_size=4, max_size=10))


def check_worlds(n_worlds: int) -> Callable[[], None]:
    @given(worlds())
    @settings(
        max_examples=n_worlds,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(world: tuple[list[StoreItem], list[MetaFilter]]) -> None:
        held, wanted = world
        with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
            for filter in wanted:
                engine.store_many(held)
                same_items_by_every_operation(engine, filter)

    return check


def test_d13_every_operation_honours_the_same_filter() -> None:
    check_worlds(6)()


@pytest.mark.slow
def test_d13_every_operation_honours_five_hundred_filters() -> None:
    check_worlds(60)()


@pytest.mark.parametrize("name", FIELDS)
def test_d13_every_field_is_honoured_by_every_operation(name: str, rng: random.Random) -> None:
    own, wanted = FIELDS[name]
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        metas = [MemoryMeta(**own) if i % 3 == 0 else MemoryMeta(tags=["x"]) for i in range(30)]
        rng.shuffle(metas)
        engine.store_many([document(f"{WORD} {i}", meta=meta) for i, meta in enumerate(metas)])
        assert same_items_by_every_operation(engine, MetaFilter(**wanted)) == 10
        assert engine.explore(facet="kind").total == 20


def test_d13_a_reopened_store_honours_the_same_filters(store_path: Path) -> None:
    with colmem.open(store_path, embedder="hotmem-hash-v1") as engine:
        for name, (own, _) in FIELDS.items():
            engine.store(document(f"{WORD} {name}", meta=MemoryMeta(**own)))
    with colmem.open(store_path) as engine:
        for _, wanted in FIELDS.values():
            assert same_items_by_every_operation(engine, MetaFilter(**wanted)) == 1
