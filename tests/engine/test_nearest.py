"""Search by a vector that the caller brings: the order of vector fetch, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

import colmem
from colmem import InvalidRequest, MemoryMeta, MetaFilter

TEXTS = ["owls hunt at night", "a compiler reads source code", "bread needs yeast", "night birds"]


@pytest.fixture(scope="module")
def filled() -> Any:
    with colmem.open(":memory:") as engine:
        for i, text in enumerate(TEXTS):
            engine.store(colmem.document(text, meta=MemoryMeta(folder=f"/{i % 2}")))
        yield engine


@pytest.mark.parametrize("scale", [1.0, 7.5])
def test_it_ranks_as_vector_fetch_does(filled: Any, scale: float) -> None:
    query = "birds of the night"
    fetched = filled.fetch(query=query, mode="vector", limit=4).hits
    vector = filled.embedder.embed([query])[0] * scale
    nearest = filled.nearest(vector, limit=4)
    assert [hit.id for hit in nearest] == [hit.id for hit in fetched]
    assert [hit.score for hit in nearest] == pytest.approx([hit.score for hit in fetched], abs=1e-6)
    assert filled.nearest(vector.tolist(), limit=2) == nearest[:2]


def test_the_filter_confines_it(filled: Any) -> None:
    vector = filled.embedder.embed(["night"])[0]
    hits = filled.nearest(vector, filter=MetaFilter(folder="/1"))
    assert {hit.meta.folder for hit in hits} == {"/1"}
    assert filled.nearest(vector, filter=MetaFilter(folder="/none")) == []


def test_pages_beyond_the_first_two_hundred_are_whole() -> None:
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(f"text number {i}") for i in range(300))
        assert engine.embedder is not None
        vector = engine.embedder.embed(["text number 7"])[0]
        hits = engine.nearest(vector, limit=1_000)
        assert len({hit.id for hit in hits}) == 300
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        ([1.0, 2.0], "vector has the shape (2,); expected"),
        ("words", "vector: "),
        ([math.nan] * 256, "not finite"),
        (np.zeros((1, 256)), "vector has the shape (1, 256)"),
    ],
)
def test_what_is_no_vector_of_the_store_is_refused(filled: Any, vector: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match="finite numbers") as raised:
        filled.nearest(vector)
    assert said in raised.value.message


def test_a_limit_of_nothing_is_refused(filled: Any) -> None:
    with pytest.raises(InvalidRequest):
        filled.nearest(np.ones(filled.embedder.dim), limit=0)
