from __future__ import annotations

import numpy as np
import pytest

from colmem_kernels import reference_rescoring, rescoring


def _case(rng: np.random.Generator, lengths: list[int], content: list[int], dim: int = 16):
    table = rng.integers(-127, 128, (300, dim)).astype(np.int8)
    table[0] = 0  # A row without a direction.
    norms = np.sqrt(np.square(table.astype(np.float32)).sum(axis=1))
    inverse = (1 / np.maximum(norms, 1)).astype(np.float32)
    n_filled = -(-len(content) // 8) * 8
    query, scales, weights = (
        np.zeros((n_filled, dim), np.int16),
        *np.zeros((2, n_filled), np.float32),
    )
    query[: len(content)] = table[content].astype(np.int16) * 100
    scales[: len(content)] = inverse[content] / 100
    weights[: len(content)] = 1 / len(content)
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    pieces = rng.integers(0, 300, offsets[-1]).astype(np.uint16)
    return table, inverse, query, scales, weights, pieces, offsets


def _run(module, case, n_opening: int = 0, share: float = 0) -> np.ndarray:
    table, _, query, _, _, pieces, offsets = case
    out = np.full(len(offsets) - 1, 9, np.float32)
    slots = np.zeros(len(table), np.int32)
    cosines = np.empty((min(len(pieces), len(table)), len(query)), np.float32)
    module.maxsim(*case, n_opening, share, slots, cosines, out)
    return out


@pytest.mark.parametrize("lengths", [[], [0], [1], [3, 0, 128, 7], [5] * 101])
@pytest.mark.parametrize("n_query", [1, 3, 12, 16])
def test_maxsim_equals_its_twin(lengths: list[int], n_query: int) -> None:
    rng = np.random.default_rng(n_query)
    case = _case(rng, lengths, rng.choice(300, n_query, replace=False).tolist())
    np.testing.assert_allclose(_run(rescoring, case), _run(reference_rescoring, case), atol=1e-5)


@pytest.mark.parametrize("n_opening", [0, 1, 4, 200])
def test_the_opening_counts_by_its_share(n_opening: int) -> None:
    case = _case(np.random.default_rng(4), [3, 0, 128, 7], [7, 9, 11])
    twin = _run(reference_rescoring, case, n_opening, 0.25)
    np.testing.assert_allclose(_run(rescoring, case, n_opening, 0.25), twin, atol=1e-5)
    whole = _run(rescoring, case)
    assert (twin <= whole + 1e-5).all()
    if n_opening == 200:
        np.testing.assert_allclose(twin, whole, atol=1e-5)


@pytest.mark.parametrize("lengths", [[], [0], [1], [3, 0, 128, 7]])
def test_distinct_cosines_equal_their_twin(lengths: list[int]) -> None:
    rng = np.random.default_rng(5)
    table, _, _, _, _, pieces, offsets = _case(rng, lengths, [1], dim=24)
    scales = rng.random(len(table)).astype(np.float32)
    query = rng.normal(size=24).astype(np.float32)
    query /= np.linalg.norm(query)
    found = []
    for module in (rescoring, reference_rescoring):
        out = np.full(len(lengths), 9, np.float32)
        seen, total = np.zeros(len(table), np.int32), np.empty(24, np.float32)
        module.distinct_cosines(table, scales, query, pieces, offsets, seen, total, out)
        found.append(out)
    np.testing.assert_allclose(*found, atol=1e-5)
    doubled = np.repeat(pieces, 2)
    again = np.empty_like(found[0])
    seen[:] = 0
    rescoring.distinct_cosines(table, scales, query, doubled, 2 * offsets, seen, total, again)
    np.testing.assert_allclose(again, found[0], atol=1e-5)


def test_maxsim_of_an_item_with_all_query_pieces_is_1() -> None:
    case = _case(np.random.default_rng(1), [4], [7, 9, 11])
    case[-2][:] = [7, 9, 11, 200]
    assert _run(rescoring, case)[0] == pytest.approx(1, abs=1e-5)


def test_maxsim_keeps_its_sums_at_the_largest_values() -> None:
    table, inverse, query, scales, weights, pieces, offsets = _case(
        np.random.default_rng(2), [1], [5], dim=256
    )
    table[5] = 127
    inverse[5] = 1 / np.float32(127 * 16)
    query[0], scales[0] = 32_767, 1 / np.float32(32_767 * 16)
    pieces[:] = 5
    case = table, inverse, query, scales, weights, pieces, offsets
    assert _run(rescoring, case)[0] == pytest.approx(1, abs=1e-5)


def test_maxsim_reads_read_only_arrays_and_refuses_strided_ones() -> None:
    case = _case(np.random.default_rng(3), [4, 4], [1, 2])
    for array in case:
        array.flags.writeable = False
    _run(rescoring, case)
    with pytest.raises(TypeError):
        _run(rescoring, (case[0][:, ::2], *case[1:]))


COLON, QUESTION = 10, 20


@pytest.mark.parametrize(
    ("pieces", "mark"),
    [
        ([], 0),
        ([5, COLON, 30], 1),
        ([5, 6, COLON, QUESTION], 3),
        ([5, 30, COLON, 1], 0),
        ([30, 31, QUESTION], 2),
        ([COLON, 5], 0),
        ([5, 5, 5, COLON], 0),
        ([5, 6], 0),
    ],
)
def test_mark_turns(pieces: list[int], mark: int) -> None:
    in_query = np.zeros(40, np.uint8)
    in_query[[5, 6]] = 1
    flat, offsets = np.array(pieces, np.uint16), np.array([0, len(pieces)])
    for module in (rescoring, reference_rescoring):
        out = np.full(1, 9, np.uint8)
        module.mark_turns(flat, offsets, in_query, COLON, QUESTION, 2, out)
        assert out[0] == mark


def test_mark_turns_equals_its_twin_on_random_items() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 9, 200)
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    pieces = rng.choice(np.array([5, 6, COLON, QUESTION, 30], np.uint16), offsets[-1])
    in_query = np.zeros(40, np.uint8)
    in_query[[5, 6]] = 1
    outs = np.empty((2, 200), np.uint8)
    for module, out in zip((rescoring, reference_rescoring), outs, strict=True):
        module.mark_turns(pieces, offsets, in_query, COLON, QUESTION, 3, out)
    np.testing.assert_array_equal(*outs)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 300])
def test_lend_scores_equals_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = rng.permutation(2 * n)[:n].astype(np.int64)
    scores = np.sort(rng.random(n).astype(np.float32))[::-1].copy()
    threads = rng.integers(-1, 5, n)
    beside = rng.integers(-1, 2 * n + 1, (n, 4))
    marks = rng.integers(0, 4, n).astype(np.uint8)
    by_row, by_thread = np.argsort(rows), np.argsort(threads, kind="stable")
    weights = rng.random(6).astype(np.float32)
    outs = np.full((2, n), 9, np.float32)
    for module, out in zip((rescoring, reference_rescoring), outs, strict=True):
        module.lend_scores(rows, scores, by_row, by_thread, threads, beside, marks, weights, out)
    np.testing.assert_allclose(*outs, atol=1e-5)
