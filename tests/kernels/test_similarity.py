"""Exact dot products against NumPy."""

import numpy as np
import pytest

from colmem_kernels import reference_similarity as reference
from colmem_kernels import similarity

MASKS = {
    "none": lambda n, rng: np.zeros(n, np.uint8),
    "first": lambda n, rng: (np.arange(n) == 0).astype(np.uint8),
    "last": lambda n, rng: (np.arange(n) == n - 1).astype(np.uint8),
    "half": lambda n, rng: (rng.random(n) < 0.5).astype(np.uint8),
    "any byte": lambda n, rng: rng.integers(0, 256, n, dtype=np.uint8),
    "all": lambda n, rng: np.ones(n, np.uint8),
}


def _vectors(n, dim):
    rng = np.random.default_rng(n * dim + 1)
    vectors = rng.standard_normal((n, dim)).astype(np.float32)
    vectors.flags.writeable = False
    return vectors, rng.standard_normal(dim).astype(np.float32), rng


def _top(function, vectors, query, mask, k, first=0, last=None):
    rows, scores, bounds = np.empty(k, np.int64), np.empty(k, np.float32), np.empty(2, np.float32)
    last = len(mask) if last is None else last
    held = function(vectors, query, mask, first, last, rows, scores, bounds)
    order = np.lexsort((rows[:held], -scores[:held]))
    return rows[:held][order], scores[:held][order], bounds


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 255, 256, 384])
@pytest.mark.parametrize("n", [1, 33, 300])
def test_dot_rows_equals_its_twin(n, dim):
    vectors, query, rng = _vectors(n, dim)
    rows = rng.integers(0, n, 2 * n)
    found, expected = np.empty(2 * n, np.float32), np.empty(2 * n, np.float32)
    similarity.dot_rows(vectors, query, rows, found)
    reference.dot_rows(vectors, query, rows, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000])
@pytest.mark.parametrize("k", [0, 1, 10, 2000])
def test_dot_top_equals_its_twin(n, k, kind):
    vectors, query, rng = _vectors(n, 24)
    mask = MASKS[kind](n, rng)
    rows, scores, bounds = _top(similarity.dot_top, vectors, query, mask, k)
    expected_rows, expected_scores, expected_bounds = _top(
        reference.dot_top, vectors, query, mask, k
    )
    assert rows.tolist() == expected_rows.tolist()
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(bounds, expected_bounds, rtol=1e-5, atol=1e-5)


def test_dot_top_takes_a_range_and_keeps_the_lower_of_equal_rows():
    vectors = np.ones((100, 4), np.float32)
    query, mask = np.ones(4, np.float32), np.ones(100, np.uint8)
    rows, _, _ = _top(similarity.dot_top, vectors, query, mask, 3, first=17, last=90)
    assert rows.tolist() == [17, 18, 19]


def test_the_two_kernels_agree_to_the_last_bit():
    vectors, query, _ = _vectors(500, 256)
    rows, scores, _ = _top(similarity.dot_top, vectors, query, np.ones(500, np.uint8), 500)
    again = np.empty(500, np.float32)
    similarity.dot_rows(vectors, query, rows, again)
    assert again.tobytes() == scores.tobytes()


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_mask_rows_equals_its_twin(n, kind):
    mask = MASKS[kind](n, np.random.default_rng(n))
    found, expected = np.zeros(n // 2 + 1, np.int64), np.zeros(n // 2 + 1, np.int64)
    assert similarity.mask_rows(mask, found) == reference.mask_rows(mask, expected)
    assert found.tolist() == expected.tolist()


def test_nan_is_never_among_the_best():
    vectors = np.ones((40, 3), np.float32)
    vectors[5] = np.nan
    query, mask = np.ones(3, np.float32), np.ones(40, np.uint8)
    rows, _, _ = _top(similarity.dot_top, vectors, query, mask, 40)
    assert 5 not in rows
    assert len(rows) == 39
