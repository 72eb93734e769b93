"""Embedding: texts per second of the built-in embedders, and one query.

Texts are made from the vocabulary with a Zipf distribution and a fixed seed; the plain Python form
of ``hotmem-hash-v1`` is the contender of the hashing kernel. Answers are checked before timing.
"""

from __future__ import annotations

import numpy as np
import pytest

from colmem.embed import embedder
from colmem.embed.texts import code_points
from colmem_kernels import reference_hashing

SEED = 2026
SHORT_WORDS, LONG_WORDS = 6, 250


def make_texts(n, n_words, seed=SEED):
    """``n`` texts of ``n_words`` words; frequent pieces are frequent here too."""
    static = embedder("static-s256")
    rng = np.random.default_rng(seed)
    ranks = np.minimum(1995 + rng.zipf(1.25, n * n_words), 28000).astype(int)
    words = [static.piece_text(rank).removeprefix("##") for rank in ranks]
    return [" ".join(words[i : i + n_words]) for i in range(0, len(words), n_words)]


@pytest.fixture(scope="module")
def short_texts():
    return make_texts(20_000, SHORT_WORDS)


@pytest.fixture(scope="module")
def long_texts():
    return make_texts(500, LONG_WORDS)


def record(benchmark, texts, pieces=None):
    fastest = benchmark.stats.stats.min
    benchmark.extra_info["texts_per_s"] = round(len(texts) / fastest)
    benchmark.extra_info["chars_per_text"] = round(sum(map(len, texts)) / len(texts), 1)
    if pieces is not None:
        benchmark.extra_info["pieces_per_text"] = round(pieces / len(texts), 1)
        benchmark.extra_info["ns_per_piece"] = round(fastest / pieces * 1e9, 1)


@pytest.mark.parametrize("size", ["short", "long"])
def test_static_embed(benchmark, request, size):
    texts = request.getfixturevalue(f"{size}_texts")
    static = embedder("static-s256")
    pieces = len(static.embed_pieces(texts, 1 << 40)[1])
    vectors = benchmark.pedantic(static.embed, (texts,), rounds=15, warmup_rounds=2)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    record(benchmark, texts, pieces)


def test_static_embed_pieces(benchmark, long_texts):
    static = embedder("static-s256")
    _, pieces, offsets = benchmark.pedantic(
        static.embed_pieces, (long_texts,), rounds=15, warmup_rounds=2
    )
    assert len(pieces) == offsets[-1] == 128 * len(long_texts)
    record(benchmark, long_texts)


def test_static_query(benchmark):
    static = embedder("static-s256")
    vector = benchmark(static.embed, ["who owns a value in rust and why"])
    assert vector.shape == (1, 256)


def test_static_query_pieces(benchmark):
    static = embedder("static-s256")
    assert len(benchmark(static.pieces, "who owns a value in rust and why")) == 8


def hash_plain(texts):
    points, offsets = code_points([text.lower() for text in texts])
    vectors = np.empty((len(texts), 64), np.float32)
    reference_hashing.hash_texts(points, offsets, np.empty(0, np.int64), vectors)
    return vectors


def cjk_texts():
    rng = np.random.default_rng(SEED)
    return ["".join(map(chr, row)) for row in rng.integers(0x4E00, 0x9FFF, (300, 100))]


@pytest.mark.parametrize("script", ["latin", "cjk"])
@pytest.mark.parametrize("form", ["kernel", "plain"])
def test_hash_embed(benchmark, short_texts, script, form):
    """The CJK texts are random: nearly every trigram is new, the worst case of the kernel."""
    texts = short_texts[:3000] if script == "latin" else cjk_texts()
    hashed = embedder("hotmem-hash-v1")
    assert hashed.embed(texts).tobytes() == hash_plain(texts).tobytes()
    run = hashed.embed if form == "kernel" else hash_plain
    benchmark.pedantic(run, (texts,), rounds=7, warmup_rounds=1)
    record(benchmark, texts)
