"""The kernels over metadata columns, keys and word pieces one by one, at 1,000,000 rows.

    pytest -o addopts= bench/bench_kernels_columns.py --benchmark-only

Each answer is checked against NumPy before it is timed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from colmem_kernels import columns, keys, pieces, rescoring
from colmem_kernels import reference_rescoring as plain

N_ROWS, N_VALUES, N_VOCABULARY = 1_000_000, 1_000, 30_000
NEVER = np.iinfo(np.int64).max


@pytest.fixture(scope="module")
def codes():
    return np.random.default_rng(1).integers(0, N_VALUES + 1, N_ROWS).astype(np.uint32)


@pytest.fixture(scope="module")
def tags():
    rng = np.random.default_rng(2)
    offsets = np.r_[0, np.cumsum(rng.integers(0, 6, N_ROWS))].astype(np.int64)
    return offsets, rng.integers(1, N_VALUES + 1, offsets[-1]).astype(np.uint32)


def wanted_values(n):
    wanted = np.zeros(N_VALUES + 1, np.uint8)
    wanted[1 : n + 1] = 1
    return wanted


def record(benchmark, n_rows=N_ROWS):
    benchmark.extra_info["ns_per_row"] = round(benchmark.stats.stats.min / n_rows * 1e9, 3)


def check_and_time(benchmark, expected, kernel, *arguments):
    """Run a mask kernel once on a full mask, then time it on one it changes no further."""
    mask = np.ones(N_ROWS, np.uint8)
    kernel(*arguments, mask)
    np.testing.assert_array_equal(mask, expected)
    benchmark(kernel, *arguments, np.ones(N_ROWS, np.uint8))
    record(benchmark)


def test_keep_equal(benchmark, codes):
    check_and_time(benchmark, codes == 7, columns.keep_equal, codes, 7)


def test_keep_listed(benchmark, codes):
    wanted = wanted_values(50)
    check_and_time(benchmark, wanted[codes], columns.keep_listed, codes, wanted)


def test_keep_under(benchmark, codes):
    parents = (codes % 97).astype(np.uint32)
    wanted = wanted_values(5)
    expected = (codes != 0) & ((codes == 500) | (wanted[parents] != 0))
    check_and_time(benchmark, expected, columns.keep_under, codes, parents, 500, 0, wanted)


def test_keep_any_tag(benchmark, tags):
    offsets, values = tags
    wanted = wanted_values(3)
    before = np.r_[0, np.cumsum(wanted[values])]
    expected = before[offsets[1:]] > before[offsets[:-1]]
    check_and_time(benchmark, expected, columns.keep_any_tag, offsets, values, wanted)


def test_keep_between(benchmark):
    seconds = np.random.default_rng(3).integers(0, 1000, N_ROWS)
    nanos = np.zeros(N_ROWS, np.int32)
    expected = (seconds >= 200) & (seconds < 400)
    bounds = 200, 0, 400, 0
    check_and_time(benchmark, expected, columns.keep_between, seconds, nanos, *bounds)


def test_keep_unexpired(benchmark):
    expires = np.full(N_ROWS, NEVER)
    expires[::10] = 5
    check_and_time(benchmark, expires > 10, columns.keep_unexpired, expires, 10)


def test_count_codes(benchmark, codes):
    mask = (codes % 2).astype(np.uint8)
    counts = np.zeros(N_VALUES + 1, np.int64)
    columns.count_codes(codes, mask, counts)
    np.testing.assert_array_equal(counts, np.bincount(codes[mask != 0], minlength=N_VALUES + 1))
    benchmark(columns.count_codes, codes, mask, counts)
    record(benchmark)


def test_count_tags(benchmark, tags):
    offsets, values = tags
    mask = np.ones(N_ROWS, np.uint8)
    counts = np.zeros(N_VALUES + 1, np.int64)
    missing = columns.count_tags(offsets, values, mask, counts)
    assert missing == (np.diff(offsets) == 0).sum()
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=N_VALUES + 1))
    benchmark(columns.count_tags, offsets, values, mask, counts)
    record(benchmark)


@pytest.fixture(scope="module")
def conversations():
    """Source kinds, threads and sources of rows that are all turns, two hundred to a thread."""
    kinds = np.ones(N_ROWS, np.uint32)
    threads = (1 + np.arange(N_ROWS) // 200).astype(np.uint32)
    return kinds, threads, np.zeros(N_ROWS, np.uint32)


def test_thread_keys(benchmark, conversations):
    rows = np.random.default_rng(6).choice(N_ROWS, 200, replace=False)
    out = np.empty(200, np.int64)
    columns.thread_keys(*conversations, 1, rows, out)
    np.testing.assert_array_equal(out, conversations[1][rows].astype(np.int64) << 1)
    benchmark(columns.thread_keys, *conversations, 1, rows, out)


def test_beside(benchmark, conversations):
    rows = 200 * np.arange(100) + 100
    found, out = np.empty(100, np.int64), np.empty((100, 4), np.int64)
    columns.thread_keys(*conversations, 1, rows, found)
    mask = np.ones(N_ROWS, np.uint8)
    columns.beside(*conversations, 1, mask, rows, found, 64, out)
    np.testing.assert_array_equal(out, rows[:, None] + [-2, -1, 1, 2])
    benchmark(columns.beside, *conversations, 1, mask, rows, found, 64, out)


# The key table.


@pytest.fixture(scope="module")
def table():
    """A table that is half full, and its keys; the row of a key is its place."""
    known = np.random.default_rng(7).integers(0, 1 << 62, N_ROWS).astype(np.uint64)
    slots = np.zeros(1 << 21, np.uint64), np.full(1 << 21, -1, np.int64)
    live = np.ones(N_ROWS, np.uint8)
    assert keys.insert(*slots, known, np.arange(N_ROWS), live) == N_ROWS
    return slots, known, live


def test_insert_keys(benchmark):
    known = np.random.default_rng(8).integers(0, 1 << 62, 100_000).astype(np.uint64)
    rows, live = np.arange(len(known)), np.ones(len(known), np.uint8)

    def setup():
        slots = np.zeros(1 << 18, np.uint64), np.full(1 << 18, -1, np.int64)
        return (*slots, known, rows, live), {}

    taken = benchmark.pedantic(keys.insert, setup=setup, rounds=20, warmup_rounds=2)
    assert taken == len(known)
    record(benchmark, len(known))


def test_find_key(benchmark, table):
    slots, known, live = table
    out = np.empty(4, np.int64)
    assert benchmark(keys.find, *slots, known[77], live, out) == 1
    assert out[0] == 77


@pytest.mark.parametrize("held", [True, False])
def test_find_first_keys(benchmark, table, held):
    slots, known, live = table
    rows = np.random.default_rng(9).choice(N_ROWS, 5_000, replace=False)
    wanted = known[rows] if held else known[rows] | np.uint64(1 << 63)
    out = np.empty(len(rows), np.int64)
    benchmark(keys.find_first, *slots, wanted, live, out)
    np.testing.assert_array_equal(out, rows if held else -1)
    record(benchmark, len(rows))


# Word pieces.


@pytest.fixture(scope="module")
def piece_lists():
    """Pieces of a hundred candidates of about eighty pieces, and where each begins."""
    rng = np.random.default_rng(10)
    offsets = np.r_[0, np.cumsum(rng.integers(60, 100, 100))].astype(np.int64)
    ranks = np.minimum(rng.zipf(1.2, offsets[-1]), N_VOCABULARY) - 1
    return ranks.astype(np.uint16), offsets


def test_count_documents(benchmark, piece_lists):
    flat, offsets = piece_lists
    seen, frequency = np.full(N_VOCABULARY, -1), np.zeros(N_VOCABULARY, np.int64)
    pieces.count_documents(flat, offsets, 1, seen, frequency)
    expected = np.zeros(N_VOCABULARY, np.int64)
    for first, last in pairwise(offsets):
        expected[np.unique(flat[first:last])] += 1
    np.testing.assert_array_equal(frequency, expected)
    benchmark(pieces.count_documents, flat, offsets, 1, seen, frequency)
    record(benchmark, len(offsets) - 1)


@pytest.mark.parametrize("n_query", [8, 16])
def test_maxsim(benchmark, piece_lists, n_query):
    flat, offsets = piece_lists
    rng = np.random.default_rng(11)
    vocabulary = rng.integers(-127, 128, (N_VOCABULARY, 256)).astype(np.int8)
    norms = 1 / np.linalg.norm(vocabulary.astype(np.float32), axis=1)
    asked = rng.choice(N_VOCABULARY, n_query, replace=False)
    query = vocabulary[asked].astype(np.int16)
    weights = np.full(n_query, 1 / n_query, np.float32)
    inputs = vocabulary, norms, query, norms[asked], weights, flat, offsets, 32, 0.5
    slots, cosines = np.zeros(N_VOCABULARY, np.int32), np.empty((len(flat), n_query), np.float32)
    out, expected = np.empty((2, len(offsets) - 1), np.float32)
    plain.maxsim(*inputs, slots.copy(), cosines, expected)

    def setup():
        slots[:] = 0
        return (*inputs, slots, cosines, out), {}

    benchmark.pedantic(rescoring.maxsim, setup=setup, rounds=200, warmup_rounds=10)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    record(benchmark, len(out))


def test_mark_turns(benchmark, piece_lists):
    flat, offsets = piece_lists
    in_query = np.zeros(N_VOCABULARY, np.uint8)
    in_query[[1, 2, 3]] = 1
    out, expected = np.empty((2, len(offsets) - 1), np.uint8)
    inputs = flat, offsets, in_query, 5, 6, 8
    plain.mark_turns(*inputs, expected)
    benchmark(rescoring.mark_turns, *inputs, out)
    np.testing.assert_array_equal(out, expected)
    record(benchmark, len(out))


def test_lend_scores(benchmark):
    rng = np.random.default_rng(12)
    rows = rng.choice(1_000, 100, replace=False)
    scores = np.sort(rng.random(100, dtype=np.float32))[::-1].copy()
    threads = rows // 50
    beside = rows[:, None] + np.array([-2, -1, 1, 2])
    marks = rng.integers(0, 4, 100).astype(np.uint8)
    weights = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.05], np.float32)
    by_thread = np.argsort(threads, kind="stable")
    inputs = rows, scores, np.argsort(rows), by_thread, threads, beside, marks, weights
    out, expected = np.empty((2, 100), np.float32)
    plain.lend_scores(*inputs, expected)
    benchmark(rescoring.lend_scores, *inputs, out)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    record(benchmark, len(out))
