"""The vector kernels one by one, at 100,000 rows of 256 components.

    pytest -o addopts= bench/bench_kernels.py --benchmark-only

Answers are checked against NumPy before timing where NumPy can give them in reasonable time; the
BLAS scan beside the kernels is what they compete with.
"""

from __future__ import annotations

import numpy as np
import pytest

from colmem_kernels import codes, similarity, topk
from colmem_kernels.lanes import LOOKUP_MAX, ROWS_PER_BLOCK
from colmem_kernels.reference_similarity import best_first

N_ROWS, DIM, K = 100_000, 256, 10
SUM_MAX = LOOKUP_MAX * (DIM // 4)


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((1000, DIM), dtype=np.float32)
    made = centres[rng.integers(0, 1000, N_ROWS)]
    made += rng.standard_normal((N_ROWS, DIM), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def flips():
    return codes.rotation_flips(DIM)


@pytest.fixture(scope="module")
def coded(vectors, flips):
    signs = np.zeros((N_ROWS // ROWS_PER_BLOCK, 4 * DIM), np.uint8)
    levels = np.empty((N_ROWS, DIM // 2), np.uint8)
    codes.encode_rows(vectors, flips, 0, signs, levels)
    return signs, levels


@pytest.fixture(scope="module")
def prepared(vectors, flips):
    tables, weights, affine = np.empty(4 * DIM, np.uint8), np.empty(DIM, np.int16), np.empty(5)
    codes.prepare_query(vectors[0], flips, LOOKUP_MAX, tables, weights, affine)
    return tables, weights, affine


def scan(coded, prepared, mask, keep, keep_far):
    rows, sums = np.empty(2 * keep + 32, np.int32), np.empty(2 * keep + 32, np.uint16)
    far, far_sums = np.empty(2 * keep_far + 32, np.int32), np.empty(2 * keep_far + 32, np.uint16)
    counts = np.empty(3, np.int64)
    codes.scan_codes(
        coded[0], prepared[0], SUM_MAX, mask, (0, len(coded[0]), N_ROWS), (keep, keep_far), True,
        rows, sums, far, far_sums, counts,
    )  # fmt: skip
    return rows[: counts[0]], sums[: counts[0]]


def record(benchmark, n_rows):
    benchmark.extra_info["ns_per_row"] = round(benchmark.stats.stats.min / n_rows * 1e9, 2)


def test_blas_scan(benchmark, vectors):
    benchmark(np.dot, vectors, vectors[0])
    record(benchmark, N_ROWS)


def test_dot_top(benchmark, vectors):
    mask = np.ones(N_ROWS, np.uint8)
    rows, scores, bounds = np.empty(K, np.int64), np.empty(K, np.float32), np.empty(2, np.float32)

    def run():
        return similarity.dot_top(vectors, vectors[0], mask, 0, N_ROWS, rows, scores, bounds)

    assert run() == K
    expected, _ = best_first(np.arange(N_ROWS), vectors @ vectors[0], K)
    assert set(rows) == set(expected)
    benchmark(run)
    record(benchmark, N_ROWS)


@pytest.mark.parametrize("n", [100, 10_000])
def test_dot_rows(benchmark, vectors, n):
    rows = np.sort(np.random.default_rng(n).choice(N_ROWS, n, replace=False))
    out = np.empty(n, np.float32)
    similarity.dot_rows(vectors, vectors[0], rows, out)
    np.testing.assert_allclose(out, vectors[rows] @ vectors[0], atol=1e-5)
    benchmark(similarity.dot_rows, vectors, vectors[0], rows, out)
    record(benchmark, n)


@pytest.mark.parametrize("share", [0.0001, 0.01, 1.0])
def test_mask_rows(benchmark, share):
    mask = (np.random.default_rng(1).random(N_ROWS) < share).astype(np.uint8)
    out = np.empty(N_ROWS, np.int64)
    count = benchmark(similarity.mask_rows, mask, out)
    assert (out[:count] == np.flatnonzero(mask)).all()
    record(benchmark, N_ROWS)


@pytest.mark.parametrize("k", [10, 200, 10_000])
def test_top_k(benchmark, k):
    rows = np.arange(N_ROWS)
    scores = np.random.default_rng(k).random(N_ROWS, dtype=np.float32)
    rows_out, scores_out = np.empty(k, np.int64), np.empty(k, np.float32)
    assert benchmark(topk.top_k, rows, scores, rows_out, scores_out) == k
    assert set(rows_out) == set(best_first(rows, scores, k)[0])
    record(benchmark, N_ROWS)


def test_rotate_tile(benchmark, flips):
    tile = np.random.default_rng(4).random((DIM, 16), dtype=np.float32)
    before = np.linalg.norm(tile, axis=0)
    codes.rotate_tile(tile, flips)
    np.testing.assert_allclose(np.linalg.norm(tile, axis=0), before, rtol=1e-4)
    benchmark(codes.rotate_tile, tile, flips)
    record(benchmark, 16)


def test_keep_best(benchmark):
    n, keep = 4 * 1800 + 32, 1800
    drawn = np.random.default_rng(5).integers(0, SUM_MAX, n).astype(np.uint16)
    bins = np.empty(SUM_MAX + 1, np.int32)

    def setup():
        return (np.arange(n, dtype=np.int32), drawn.copy(), n, keep, bins), {}

    kept, lowest = benchmark.pedantic(codes.keep_best, setup=setup, rounds=200, warmup_rounds=10)
    assert kept == keep
    assert lowest == np.sort(drawn)[-keep]
    record(benchmark, n)


def test_encode_rows(benchmark, vectors, flips):
    n = 8192
    signs, levels = np.zeros((n // 32, 4 * DIM), np.uint8), np.empty((n, DIM // 2), np.uint8)
    benchmark(codes.encode_rows, vectors[:n], flips, 0, signs, levels)
    record(benchmark, n)


def test_prepare_query(benchmark, vectors, flips):
    tables, weights, affine = np.empty(4 * DIM, np.uint8), np.empty(DIM, np.int16), np.empty(5)
    benchmark(codes.prepare_query, vectors[1], flips, LOOKUP_MAX, tables, weights, affine)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.02])
@pytest.mark.parametrize("keep", [1800, 15_500])
def test_scan_codes(benchmark, coded, prepared, keep, share):
    mask = (np.random.default_rng(2).random(N_ROWS) < share).astype(np.uint8)
    keep = min(keep, int(mask.sum()))
    rows, _ = benchmark(scan, coded, prepared, mask, keep, 512)
    assert len(rows) == keep
    assert mask[rows].all()
    record(benchmark, N_ROWS)


@pytest.mark.parametrize("k", [10, 200])
def test_refine_codes(benchmark, coded, prepared, k):
    rows, sums = scan(coded, prepared, np.ones(N_ROWS, np.uint8), 15_500, 0)
    rows_out, scores_out = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
    counts = np.empty(3, np.int64)
    # So wide a margin that every candidate is scored.
    limits = (1.0, 9.0, 9.0, 0.015, 0.0)
    benchmark(
        codes.refine_codes, rows, sums, coded[1], *prepared[1:], limits, k,
        rows_out, scores_out, counts,
    )  # fmt: skip
    assert counts[1] == len(rows)
    record(benchmark, len(rows))
