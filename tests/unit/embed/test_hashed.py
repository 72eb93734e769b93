"""hotmem-hash-v1: the golden vectors bit for bit, case rules, refusals, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colmem.contract.errors import InvalidRequest
from colmem.embed import embedder
from colmem.embed.hashed import HashEmbedder


def test_golden_vectors_are_exact_to_the_bit(golden_hashes):
    vectors = HashEmbedder().embed([r["text"] for r in golden_hashes])
    zero = 0
    for record, vector in zip(golden_hashes, vectors, strict=True):
        assert vector.astype("<f4").tobytes().hex() == record["f32le_hex"], record["text"]
        assert record["zero_vector"] == (not vector.any())
        zero += record["zero_vector"]
    assert zero == 6


def test_answers_from_the_cache_are_the_same(golden_hashes):
    hashes = HashEmbedder()
    texts = [r["text"] for r in golden_hashes]
    first = hashes.embed(texts).tobytes()
    assert hashes.embed(texts).tobytes() == first
    assert b"".join(hashes.embed([text]).tobytes() for text in texts) == first


def test_many_texts_take_several_kernel_calls():
    texts = [f"item {n}" for n in range(9001)]
    vectors = HashEmbedder().embed(texts)
    assert vectors.shape == (9001, 64)
    assert vectors.dtype == np.float32
    assert vectors[[0, 4095, 4096, 9000]].tobytes() == (
        HashEmbedder().embed([texts[i] for i in (0, 4095, 4096, 9000)]).tobytes()
    )


def test_no_texts():
    assert HashEmbedder().embed([]).shape == (0, 64)


@pytest.mark.parametrize(("one", "other"), [("ΑΣ", "ας"), ("Σ", "σ"), ("ẞ", "ß"), ("İ", "i̇")])
def test_lower_casing_is_the_full_mapping(one, other):
    left, right = HashEmbedder().embed([one, other])
    assert left.tobytes() == right.tobytes()


def test_normal_forms_differ():
    left, right = HashEmbedder().embed(["\u00e9", "e\u0301"])
    assert left.tobytes() != right.tobytes()


def test_a_lone_surrogate_is_refused_with_its_place():
    with pytest.raises(InvalidRequest, match=r"text 0 .* character 1 .* U\+D800"):
        HashEmbedder().embed(["a\ud800b"])


def test_threads_share_the_cache(golden_hashes):
    texts = [r["text"] for r in golden_hashes]
    whole = HashEmbedder().embed(texts).tobytes()
    shared = embedder("hotmem-hash-v1")
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: shared.embed(texts).tobytes(), range(64)):
            assert answer == whole
