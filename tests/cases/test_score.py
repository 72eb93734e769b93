"""SCORE: keyword order is BM25's, vector order that of exact dot products (D14, D15)."""

import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import colmem
from colmem.contract import document
from samples import WORD, SampleEmbedder

K1, B = 1.2, 0.75  # tantivy's
TERMS = ["lorem", "ipsum", "dolor", "amet", "tempor", "magna", "aliqua", "minim"]


def bm25(corpus: list[list[str]], query: list[str]) -> list[float]:
    """Okapi BM25 with the idf that is never negative (Robertson and Zaragoza 2009, 3.3)."""
    n = len(corpus)
    mean_length = sum(map(len, corpus)) / n
    scores = []
    for text in corpus:
        score = 0.0
        for term in dict.fromkeys(query):
            holding = sum(term in other for other in corpus)
            idf = math.log(1 + (n - holding + 0.5) / (holding + 0.5))
            count = text.count(term)
            norm = K1 * (1 - B + B * len(text) / mean_length)
            score += idf * count * (K1 + 1) / (count + norm)
        scores.append(score)
    return scores


def keyword(engine: Any, query: str) -> list[tuple[str, float]]:
    hits = engine.fetch(query=query, mode="keyword", limit=100).hits
    return [(hit.text, hit.score) for hit in hits]


def test_d14_matching_a_frequent_word_never_ranks_lower() -> None:
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        texts = ["a b lorem", "a b ipsum", "a b  ipsum"]
        engine.store_many([document(text) for text in texts])
        ranked = keyword(engine, "a b lorem")
        assert ranked[0][0] == "a b lorem"
        assert len(ranked) == 3
        assert all(score > 0 for _, score in ranked)


def order_is_bm25(rng: random.Random, n_corpora: int) -> None:
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        for _ in range(n_corpora):
            n = rng.randrange(2, 21)
            corpus: list[list[str]] = []
            while len(corpus) < n:
                text = rng.choices(TERMS, k=rng.randrange(1, 12))
                if text not in corpus:
                    corpus.append(text)
            receipts = engine.store_many([document(" ".join(text)) for text in corpus])
            ids = [receipt.id for receipt in receipts]
            query = rng.sample(TERMS, rng.randrange(1, 4))
            scores = bm25(corpus, query)
            hits = engine.fetch(query=" ".join(query), mode="keyword", limit=100).hits
            expected = {id: score for id, score in zip(ids, scores, strict=True) if score > 0}
            assert {hit.id for hit in hits} == set(expected)
            factor = hits[0].score / expected[hits[0].id] if hits else 1.0
            got = [hit.score for hit in hits]
            np.testing.assert_allclose(got, [factor * expected[hit.id] for hit in hits], rtol=1e-4)
            assert got == sorted(got, reverse=True)
            for before, after in pairwise(hits):
                if before.score == after.score:
                    assert ids.index(before.id) < ids.index(after.id)
            engine.forget(ids=ids)
            engine.compact()  # the statistics of what was forgotten go with it


def test_d14_order_is_that_of_exact_bm25(rng: random.Random) -> None:
    order_is_bm25(rng, 25)


@pytest.mark.slow
def test_d14_order_is_that_of_exact_bm25_on_a_thousand_corpora(rng: random.Random) -> None:
    order_is_bm25(rng, 1_000)


def top_is_truth(rng: random.Random, n_rounds: int) -> None:
    embedder = SampleEmbedder()
    held: dict[str, str] = {}  # id -> text, in order of storing
    with colmem.open(":memory:", embedder=embedder) as engine:
        for number in range(n_rounds):
            for text in rng.sample([f"{WORD} {i}" for i in range(40)], rng.randrange(1, 6)):
                item = document(text)
                engine.store(item)
                held.setdefault(item.fingerprint(), text)
            gone = rng.sample(sorted(held), rng.randrange(len(held)) // 2)
            if gone:
                assert engine.forget(ids=gone).forgotten == len(gone)
            for id in gone:
                del held[id]
            query = f"query {number}"
            vectors = embedder.embed(list(held.values()))
            cosines = vectors @ embedder.embed([query])[0]
            order = np.argsort(-cosines, kind="stable")
            for limit in (1, 3, 100):
                hits = engine.fetch(query=query, mode="vector", limit=limit).hits
                ids = list(held)
                assert [hit.id for hit in hits] == [ids[at] for at in order[:limit]]
                np.testing.assert_allclose(
                    [hit.score for hit in hits], cosines[order[:limit]], atol=1e-5
                )
            if number % 20 == 19:
                engine.compact()


def test_d15_a_limit_above_the_store_returns_what_is_there() -> None:
    with colmem.open(":memory:") as engine:
        engine.store_many([document(text) for text in ("one", "two", "three")])
        for mode in engine.descriptor().fetch_modes:
            hits = engine.fetch(query="one two three", mode=mode, limit=100).hits
            assert len({hit.id for hit in hits}) == len(hits) == 3


def test_d15_forgetting_and_storing_again_loses_no_neighbour(rng: random.Random) -> None:
    top_is_truth(rng, 60)


@pytest.mark.slow
def test_d15_a_thousand_rounds_lose_no_neighbour(rng: random.Random) -> None:
    top_is_truth(rng, 1_000)
