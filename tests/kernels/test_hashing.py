"""The trigram hashing kernel against its twin."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colmem.embed.texts import code_points
from colmem_kernels import hashing, reference_hashing


def hashed(module, texts, cache=None):
    points, offsets = code_points(texts)
    vectors = np.full((len(texts), 64), np.nan, np.float32)
    cache = np.zeros(hashing.CACHE_SIZE, np.int64) if cache is None else cache
    module.hash_texts(points, offsets, cache, vectors)
    return vectors


def assert_same(texts):
    assert hashed(hashing, texts).tobytes() == hashed(reference_hashing, texts).tobytes()


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 63, 64, 65, 66, 67, 129, 1001])
def test_lengths(length):
    rng = random.Random(length)
    assert_same(["".join(rng.choices("abc déf", k=length)) for _ in range(3)])


@pytest.mark.parametrize("texts", [[], [""], ["", "", ""], ["a", "", "ab"]])
def test_few_and_empty_texts(texts):
    assert_same(texts)


def test_code_points_of_every_width():
    edges = [0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    assert_same([chr(a) + chr(b) + chr(c) for a in edges for b in edges for c in edges])
    assert_same([chr(a) + chr(b) for a in edges for b in edges])


def test_more_grams_than_the_cache_has_entries():
    rng = random.Random(2)
    texts = ["".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=400))) for _ in range(500)]
    cache = np.zeros(hashing.CACHE_SIZE, np.int64)
    twins = hashed(reference_hashing, texts).tobytes()
    assert hashed(hashing, texts, cache).tobytes() == twins
    assert hashed(hashing, texts, cache).tobytes() == twins
    assert np.count_nonzero(cache) > hashing.CACHE_SIZE // 2


def test_wrong_types_are_refused():
    points, offsets = code_points(["abc"])
    cache = np.zeros(hashing.CACHE_SIZE, np.int64)
    with pytest.raises(TypeError):
        hashing.hash_texts(points.astype(np.int64), offsets, cache, np.empty((1, 64), np.float32))
