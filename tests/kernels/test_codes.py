"""The code kernels against NumPy, and the laws the search relies on."""

import numpy as np
import pytest
from numba import types

from colmem_kernels import codes, lanes
from colmem_kernels import reference_codes as reference
from colmem_kernels._jit import kernel

DIMS = [48, 64, 255, 256, 300, 512, 768]


def _unit(n, dim, seed=0):
    vectors = np.random.default_rng([n, dim, seed]).standard_normal((n, dim)).astype(np.float32)
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _encoded(vectors, first=0):
    width = codes.code_width(vectors.shape[1])
    flips = codes.rotation_flips(width)
    n_blocks = -(-(first + len(vectors)) // lanes.ROWS_PER_BLOCK)
    signs = np.zeros((n_blocks, 4 * width), np.uint8)
    levels = np.zeros((len(vectors), width // 2), np.uint8)
    codes.encode_rows(vectors, flips, first, signs, levels)
    return flips, signs, levels


def _prepared(query, flips, lookup_max=lanes.LOOKUP_MAX):
    width = flips.shape[1]
    tables, weights = np.empty(4 * width, np.uint8), np.empty(width, np.int16)
    affine = np.empty(5, np.float64)
    codes.prepare_query(query, flips, lookup_max, tables, weights, affine)
    return tables, weights, affine


def _scan(signs, tables, mask, keep, keep_far=0, *, is_sampled=False, blocks=None):
    sum_max = lanes.LOOKUP_MAX * (signs.shape[1] // 16)
    rows, sums = np.empty(2 * keep + 32, np.int32), np.empty(2 * keep + 32, np.uint16)
    far, far_sums = np.empty(2 * keep_far + 32, np.int32), np.empty(2 * keep_far + 32, np.uint16)
    counts = np.empty(3, np.int64)
    first, last = blocks or (0, len(signs))
    codes.scan_codes(
        signs, tables, sum_max, mask, (first, last, len(mask)), (keep, keep_far), is_sampled,
        rows, sums, far, far_sums, counts,
    )  # fmt: skip
    return rows[: counts[0]], sums[: counts[0]], far[: counts[1]], far_sums[: counts[1]], counts[2]


@pytest.mark.parametrize("dim", [1, 48, 256, 257, 1000])
def test_the_rotation_keeps_dot_products(dim):
    flips = codes.rotation_flips(codes.code_width(dim))
    matrix = reference.rotation(flips)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=1e-9)
    assert set(np.unique(flips)) == {-1.0, 1.0}


def test_the_rotation_never_changes():
    # Codes on disk depend on it.
    flips = codes.rotation_flips(256).reshape(-1)
    assert "".join("+" if flip > 0 else "-" for flip in flips[:24]) == "-+++--+---+--++-++++-+-+"


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize(("first", "n"), [(0, 1), (0, 70), (5, 40), (64, 17)])
def test_encode_rows_equals_its_twin(dim, first, n):
    vectors = _unit(n, dim)
    flips, signs, levels = _encoded(vectors, first)
    rotated = reference.rotate(vectors, flips)
    clear = np.abs(rotated) > 1e-6
    bits = np.unpackbits(
        reference.unpack_signs(signs, first + n)[first:], axis=1, bitorder="little"
    )
    assert (bits.astype(bool) == (rotated > 0))[clear].all()
    scaled = rotated * np.sqrt(rotated.shape[1]) / codes.LEVEL_STEP
    clear = np.abs(scaled - np.round(scaled)) > 1e-3
    assert (reference.unpack_levels(levels) == reference.levels_of(rotated))[clear].all()
    # Rows of the block that were not written keep their bytes.
    others = reference.unpack_signs(signs, first)
    assert not others.any() if first else True


def test_encoding_in_parts_gives_the_same_codes():
    vectors = _unit(100, 256)
    flips, signs, levels = _encoded(vectors)
    again, again_levels = np.zeros_like(signs), np.zeros_like(levels)
    for first, last in ((0, 1), (1, 30), (30, 64), (64, 99), (99, 100)):
        part = vectors[first:last]
        codes.encode_rows(part, flips, first, again, again_levels[first:last])
    assert (again == signs).all()
    assert (again_levels == levels).all()


@pytest.mark.parametrize("dim", DIMS)
def test_code_scores_are_close_to_the_dot_products(dim):
    vectors = _unit(400, dim)
    query = _unit(1, dim, seed=1)[0]
    vectors[:50] += query  # Some that are alike.
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    flips, signs, levels = _encoded(vectors)
    tables, weights, affine = _prepared(query, flips)
    exact = vectors @ query
    by_signs = affine[0] * reference.sums_of(signs, tables, len(vectors)) + affine[1]
    by_levels = reference.level_scores(levels, weights, affine)
    width = flips.shape[1]
    sd = np.sqrt(np.pi / 2 - 1) / np.sqrt(width)
    assert np.std(by_signs - exact) < 1.25 * sd
    assert abs(np.mean(by_signs - exact)) < 0.25 * sd
    assert np.std(by_levels - exact) < 1.5 * np.sqrt(0.01154 / width)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 2000])
@pytest.mark.parametrize("keep", [1, 20, 500])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("is_sampled", [False, True])
def test_scan_codes_equals_its_twin(n, keep, share, is_sampled):
    vectors = _unit(n, 64)
    vectors[n // 2 :] = vectors[: n - n // 2]  # Equal rows: ties.
    flips, signs, _ = _encoded(vectors)
    tables, _, _ = _prepared(_unit(1, 64, seed=2)[0], flips)
    mask = (np.random.default_rng(n).random(n) < share).astype(np.uint8)
    rows, sums, far, far_sums, is_short = _scan(
        signs, tables, mask, keep, keep, is_sampled=is_sampled
    )
    sum_max = lanes.LOOKUP_MAX * 64
    expected, expected_sums = reference.scan_codes(signs, tables, mask, n, keep)
    if is_short:
        assert is_sampled
        assert set(rows) <= set(expected)
    else:
        assert rows.tolist() == expected.tolist()
        assert sums.tolist() == expected_sums.tolist()
    all_sums = reference.sums_of(signs, tables, n)
    admitted = np.flatnonzero(mask)
    lowest = np.sort(admitted[np.lexsort((admitted, all_sums[admitted]))[:keep]])
    assert far.tolist() == lowest.tolist()
    assert far_sums.tolist() == (sum_max - all_sums[lowest]).tolist()


def test_parts_of_a_scan_merge_to_the_whole():
    vectors = _unit(3000, 256)
    flips, signs, _ = _encoded(vectors)
    tables, _, _ = _prepared(_unit(1, 256, seed=3)[0], flips)
    mask = np.ones(3000, np.uint8)
    whole = _scan(signs, tables, mask, 100)
    parts = [_scan(signs, tables, mask, 100, blocks=blocks) for blocks in ((0, 40), (40, 94))]
    rows = np.concatenate([part[0] for part in parts])
    sums = np.concatenate([part[1] for part in parts])
    bins = np.empty(lanes.LOOKUP_MAX * 64 + 1, np.int32)
    held, _ = codes.keep_best(rows, sums, len(rows), 100, bins)
    assert rows[:held].tolist() == whole[0].tolist()
    assert sums[:held].tolist() == whole[1].tolist()


@pytest.mark.parametrize(("n", "keep"), [(0, 5), (1, 1), (10, 10), (10, 3), (500, 77), (500, 1)])
def test_keep_best_equals_its_twin(n, keep):
    rng = np.random.default_rng(n)
    rows = np.arange(n, dtype=np.int32)
    sums = rng.integers(0, 9, n).astype(np.uint16)
    expected_rows, expected_sums = reference.keep_best(rows, sums, n, keep)
    held, lowest = codes.keep_best(rows, sums, n, keep, np.empty(9, np.int32))
    assert rows[:held].tolist() == expected_rows.tolist()
    assert sums[:held].tolist() == expected_sums.tolist()
    assert lowest == (expected_sums.min() if n > keep else -1)


_plain = kernel(
    types.uint64(
        types.Array(types.uint8, 1, "C", readonly=True), types.int64,
        types.Array(types.uint8, 1, "C", readonly=True), types.int64, types.int64, types.int64,
        types.Array(types.uint16, 1, "C"),
    )
)(codes.plain_hits.py_func)  # fmt: skip


@kernel(
    types.uint64(
        types.Array(types.uint8, 1, "C", readonly=True), types.int64,
        types.Array(types.uint8, 1, "C", readonly=True), types.int64, types.int64, types.int64,
        types.Array(types.uint16, 1, "C"),
    )
)  # fmt: skip
def _chosen(codes_, at, tables, n_steps, above, below, sums):
    return codes._hits(codes_, at, tables, n_steps, above, below, sums)


@pytest.mark.parametrize("width", [256, 1024, 4096])
def test_the_vector_instructions_and_plain_code_agree(width):
    rng = np.random.default_rng(width)
    block = rng.integers(0, 256, 8 * width, dtype=np.uint8)
    tables = rng.integers(0, lanes.LOOKUP_MAX + 1, 4 * width, dtype=np.uint8)
    tables[: 2 * width] = lanes.LOOKUP_MAX
    expected = reference.sums_of(block.reshape(2, -1), tables, 64)[32:]
    middle = int(np.median(expected))
    for function in (_plain, _chosen):
        sums = np.empty(32, np.uint16)
        bits = int(function(block, 4 * width, tables, width // 32, middle, middle - 5, sums))
        assert sums.tolist() == expected.tolist()
        assert [bits >> i & 1 for i in range(32)] == (expected > middle).astype(int).tolist()
        below = (expected < middle - 5).astype(int).tolist()
        assert [bits >> i & 1 for i in range(32, 64)] == below


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("k", [1, 10, 300])
def test_refine_codes_keeps_what_may_be_among_the_best(dim, k):
    vectors = _unit(3000, dim)
    query = _unit(1, dim, seed=4)[0]
    flips, signs, levels = _encoded(vectors)
    tables, weights, affine = _prepared(query, flips)
    rows, sums, *_ = _scan(signs, tables, np.ones(3000, np.uint8), 2000)
    rows_out, scores_out = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
    counts = np.empty(3, np.int64)
    sd = float(np.sqrt(np.pi / 2 - 1) / np.sqrt(flips.shape[1]))
    codes.refine_codes(
        rows, sums, levels, weights, affine, (1.0, 30 * sd, 30 * sd, 0.0, 0.0), k,
        rows_out, scores_out, counts,
    )  # fmt: skip
    held, scored, is_settled = counts.tolist()
    assert scored == len(rows)  # Nothing is 30 standard deviations away.
    assert not is_settled
    expected_rows, expected_scores = reference.best_levels(rows, levels, weights, affine, k)
    best = np.lexsort((rows_out[:held], -scores_out[:held]))[:k]
    assert rows_out[best].tolist() == expected_rows.tolist()
    np.testing.assert_allclose(scores_out[best], expected_scores, rtol=1e-6)
    # With no error allowed the walk stops early, and still holds k rows.
    codes.refine_codes(
        rows,
        sums,
        levels,
        weights,
        affine,
        (1.0, 0.0, 0.0, 0.0, 0.0),
        k,
        rows_out,
        scores_out,
        counts,
    )
    assert counts[1] <= scored
    assert counts[0] >= k
    assert counts[2] == 1


def test_a_scan_of_nothing_finds_nothing():
    signs = np.zeros((0, 1024), np.uint8)
    rows, _, far, _, is_short = _scan(signs, np.zeros(1024, np.uint8), np.zeros(0, np.uint8), 5, 5)
    assert len(rows) == len(far) == is_short == 0
