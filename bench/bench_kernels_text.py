"""The kernels over texts one by one: terms, stems, word pieces and trigram hashes.

    pytest -o addopts= bench/bench_kernels_text.py --benchmark-only

A thousand texts of about sixty words; each answer is checked against the kernel's plain twin, or
the analyser's, on some of them before it is timed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from colmem.embed.static import load_tables, utf8_buffer
from colmem.embed.texts import code_points
from colmem.index import analyser
from colmem_kernels import (
    analysis,
    hashing,
    reference_hashing,
    reference_wordpiece,
    stemming,
    wordpiece,
)
from yardstick.workload import Generator

N_TEXTS, N_CHECKED, PIECES_MAX = 1_000, 20, 128


@pytest.fixture(scope="module")
def texts():
    batch, _ = Generator().batch(0)
    return batch.texts[:N_TEXTS]


def record(benchmark, texts):
    fastest = benchmark.stats.stats.min
    size = sum(len(text.encode()) for text in texts)
    benchmark.extra_info["ns_per_byte"] = round(fastest / size * 1e9, 3)
    benchmark.extra_info["texts_per_s"] = round(len(texts) / fastest)


# Terms.


class Analysed:
    """The arrays that pass from one analysis kernel to the next."""

    def __init__(self, texts):
        self.data, self.offsets = utf8_buffer(texts)
        n_bytes, n = len(self.data), len(texts)
        n_folded = analysis.FOLDED_PER_BYTE * n_bytes
        self.kinds, self.folded = np.empty(n_bytes, np.uint8), np.empty(n_folded, np.uint8)
        self.places = np.empty(n_bytes + 1, np.int32)
        self.spans = np.empty(analysis.SPANS_PER_CHAR * n_bytes, np.int64)
        self.surfaces, self.singles = np.empty((2, analysis.OUT_PER_FOLDED * n_folded), np.uint8)
        self.stems = np.empty(2 * len(self.surfaces) + stemming.SPARE_BYTES, np.uint8)
        self.memo = np.zeros((stemming.MEMO_WORDS, 4), np.uint64)
        ends = np.empty((5, n + 1), np.int64)
        self.chars, self.span_ends, self.surface_ends, self.single_ends, self.stem_ends = ends

    def decode(self):
        tables = analyser._table()
        analysis.decode_texts(
            self.data, self.offsets, *tables, self.kinds, self.places, self.folded, self.chars
        )

    def find(self):
        analysis.find_terms(
            self.kinds, self.places, self.folded, self.chars, self.spans, self.span_ends
        )

    def write(self):
        analysis.write_terms(
            self.kinds, self.places, self.folded, self.spans, self.span_ends,
            self.surfaces, self.surface_ends, self.singles, self.single_ends,
        )  # fmt: skip

    def stem(self):
        stemming.stem_terms(
            self.surfaces, self.surface_ends, True, self.memo, self.stems, self.stem_ends
        )


@pytest.fixture(scope="module")
def analysed(texts):
    """All steps done once, and the terms compared with those of the analyser's twin."""
    held = Analysed(texts)
    for step in (held.decode, held.find, held.write, held.stem):
        step()
    expected, _ = analyser.analyse_items(pa.array(texts[:N_CHECKED]))
    for i, terms in enumerate(expected):
        first, last = held.stem_ends[i : i + 2]
        assert held.stems[first:last].tobytes().decode().split() == terms.split()
    return held


@pytest.mark.parametrize("step", ["decode", "find", "write", "stem"])
def test_analysis(benchmark, analysed, texts, step):
    benchmark(getattr(analysed, step))
    record(benchmark, texts)


# Word pieces.


@pytest.fixture(scope="module")
def encoded(texts):
    data, starts = utf8_buffer(texts)
    flat, offsets = np.empty(len(data), np.uint16), np.empty(len(texts) + 1, np.int64)
    n = wordpiece.encode_texts(data, starts, *load_tables()[:6], flat, offsets)
    return flat[:n], offsets


def test_encode_texts(benchmark, texts, encoded):
    data, starts = utf8_buffer(texts)
    flat, offsets = np.empty(len(data), np.uint16), np.empty(len(texts) + 1, np.int64)
    short, short_starts = utf8_buffer(texts[:N_CHECKED])
    expected, ends = np.empty(len(short), np.uint16), np.empty(N_CHECKED + 1, np.int64)
    tables = load_tables()[:6]
    n = reference_wordpiece.encode_texts(short, short_starts, *tables, expected, ends)
    np.testing.assert_array_equal(encoded[0][:n], expected[:n])
    benchmark(wordpiece.encode_texts, data, starts, *tables, flat, offsets)
    record(benchmark, texts)


def test_pool_pieces(benchmark, texts, encoded):
    tables, vectors = load_tables(), np.empty((N_TEXTS, 256), np.float32)
    offsets, expected = encoded[1][: N_CHECKED + 1], np.empty((N_CHECKED, 256), np.float32)
    reference_wordpiece.pool_pieces(
        encoded[0][: offsets[-1]], offsets, tables.rows, tables.scales, expected
    )
    benchmark(wordpiece.pool_pieces, *encoded, tables.rows, tables.scales, vectors)
    np.testing.assert_allclose(vectors[:N_CHECKED], expected, atol=1e-6)
    record(benchmark, texts)


def test_cap_pieces(benchmark, texts, encoded):
    flat, offsets = encoded
    sizes = np.minimum(np.diff(offsets), PIECES_MAX)
    kept, ends = np.empty(sizes.sum(), np.uint16), np.empty_like(offsets)
    assert benchmark(wordpiece.cap_pieces, flat, offsets, PIECES_MAX, kept, ends) == sizes.sum()
    np.testing.assert_array_equal(np.diff(ends), sizes)
    record(benchmark, texts)


# Trigram hashes.


def test_hash_texts(benchmark, texts):
    points, offsets = code_points([text.lower() for text in texts])
    cache, vectors = np.zeros(hashing.CACHE_SIZE, np.int64), np.empty((N_TEXTS, 64), np.float32)
    ends, expected = offsets[: N_CHECKED + 1], np.empty((N_CHECKED, 64), np.float32)
    reference_hashing.hash_texts(points[: ends[-1]], ends, np.empty(0, np.int64), expected)
    benchmark(hashing.hash_texts, points, offsets, cache, vectors)
    np.testing.assert_array_equal(vectors[:N_CHECKED], expected)
    record(benchmark, texts)
