"""EMB: vectors of two embedders never meet, and a store says which one it wants (D21)."""

from pathlib import Path

import pytest

import colmem
from agreement import assert_agreement
from colmem.contract import ConfigError, Unsupported, document
from samples import WORD, SampleEmbedder, make

A = SampleEmbedder("sample-a", 256)
B = SampleEmbedder("sample-b", 256)
C = SampleEmbedder("sample-c", 64)


@pytest.fixture
def store(store_path: Path) -> Path:
    with colmem.open(store_path, embedder=A) as engine:
        engine.store_many(make(30))
    return store_path


@pytest.mark.parametrize("other", [B, C], ids=["same dimension", "other dimension"])
def test_d21_another_embedder_is_refused_and_both_are_named(
    store: Path, other: SampleEmbedder
) -> None:
    with pytest.raises(ConfigError) as error:
        colmem.open(store, embedder=other)
    assert "sample-a (256 dimensions)" in str(error.value)
    assert f"{other.key} ({other.dim})" in str(error.value)
    with colmem.open(store, embedder=A) as engine:
        assert len(assert_agreement(engine, WORD)) == 30


def test_d21_without_its_embedder_a_store_serves_words_and_says_so(store: Path) -> None:
    with colmem.open(store) as engine:
        health = engine.health()
        assert health.state == "degraded"
        assert "sample-a" in str(health.reason)
        assert [str(mode) for mode in engine.descriptor().fetch_modes] == ["keyword"]
        assert len(engine.fetch(query=WORD, mode="keyword", limit=99).hits) == 30
        for mode in ("vector", "hybrid"):
            with pytest.raises(Unsupported, match=f"does not offer {mode} fetch"):
                engine.fetch(query=WORD, mode=mode)
        with pytest.raises(ConfigError, match="sample-a is not available"):
            engine.store(document("new"))
        assert len(engine.list(limit=99).items) == 30
        assert engine.recall(question=f"{WORD} item3x").citations
        engine.compact()
        assert len(engine.list(limit=99).items) == 30
    with colmem.open(store, embedder=A) as engine:
        assert len(assert_agreement(engine, WORD)) == 30


@pytest.mark.parametrize("other", [B, C], ids=["same dimension", "other dimension"])
def test_d21_reembedding_repairs_it(store: Path, other: SampleEmbedder) -> None:
    with colmem.open(store) as engine:
        seen: list[int] = []
        engine.reembed(other, progress=seen.append)
        assert seen[-1] == 30
        assert engine.health().state == "ok"
        assert engine.embedder is other
        assert len(assert_agreement(engine, WORD)) == 30
        best = engine.fetch(query=f"{WORD} item item7x", mode="vector", limit=1).hits[0]
        assert best.text.endswith("item7x")
        assert best.score == pytest.approx(1.0, abs=1e-5)
        engine.store(document(f"{WORD} new"))
    with pytest.raises(ConfigError, match=rf"embeddings of {other.key} \({other.dim}"):
        colmem.open(store, embedder=A)
    with colmem.open(store, embedder=other) as engine:
        assert len(assert_agreement(engine, WORD)) == 31
        assert engine.check().problems == []


def test_d21_an_embedder_that_changed_its_dimension_is_refused(store: Path) -> None:
    colmem.register_embedder("sample-a", lambda: SampleEmbedder("sample-a", 128))
    try:
        with pytest.raises(ConfigError, match="embeddings of 256 dimensions, sample-a now makes"):
            colmem.open(store)
    finally:
        colmem.register_embedder("sample-a", lambda: A)
    with colmem.open(store) as engine:
        assert len(assert_agreement(engine, WORD)) == 30
