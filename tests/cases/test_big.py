"""BIG: no operation has a limit that a large store runs into (D23)."""

import numpy as np
import pytest

import colmem
from agreement import listed
from colmem.contract import MetaFilter
from samples import WORD, SampleEmbedder, arrow_items


def large_store(n: int) -> None:
    vectors = np.random.default_rng(3).normal(size=(n, 32)).astype(np.float32)
    tags = [[f"t{i % 1000}"] for i in range(n)]
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        namespaces = ["agent:a"] * n
        report = engine.ingest_arrow(arrow_items(n, vectors, tags=tags, namespace=namespaces))
        assert report.stored == n
        ids = [hit.id for hit in listed(engine, limit=5_000)]
        assert len(set(ids)) == n
        page = engine.explore(facet="tag", limit=500)
        assert (page.total, len(page.buckets), page.more_buckets) == (n, 500, 500)
        wanted = n // 3
        for mode in engine.descriptor().fetch_modes:
            hits = engine.fetch(query=WORD, mode=mode, limit=wanted).hits
            assert len({hit.id for hit in hits}) == wanted
        assert len(engine.get(ids=ids[-200:])) == 200
        assert engine.forget(ids=ids[:wanted]).forgotten == wanted
        filter = MetaFilter(tags_any=[f"t{i}" for i in range(500)])
        n_tagged = engine.explore(facet="kind", filter=filter).total
        assert engine.forget(filter=filter).forgotten == n_tagged
        left = n - wanted - n_tagged
        assert engine.explore(facet="kind").total == left
        assert len(engine.fetch(query=WORD, mode="keyword", limit=n).hits) == left
        assert engine.sql("SELECT count(*) AS n FROM items").to_pylist() == [{"n": left}]
        everything = MetaFilter(tags_any=[f"t{i}" for i in range(1_000)])
        assert engine.forget(filter=everything).forgotten == left
        assert engine.list(limit=5).items == []


def test_d23_no_operation_runs_into_a_limit() -> None:
    large_store(12_000)


@pytest.mark.slow
def test_d23_no_operation_runs_into_a_limit_with_three_hundred_thousand() -> None:
    large_store(300_000)


def test_d23_one_item_of_a_megabyte() -> None:
    text = f"{WORD} " + "lorem ipsum dolor " * 60_000
    with colmem.open(":memory:") as engine:
        engine.store(colmem.document(text))
        for mode in engine.descriptor().fetch_modes:
            (hit,) = engine.fetch(query="dolor", mode=mode, limit=3).hits
            assert hit.text == text
