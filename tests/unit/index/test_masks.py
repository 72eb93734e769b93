from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colmem.index import masks


@given(st.integers(0, 70_000), st.sampled_from([0.0, 1e-4, 0.3, 1.0]), st.integers(0, 70_000))
def test_the_next_rows_are_the_first_ones_of_the_mask(n: int, share: float, start: int) -> None:
    mask = (np.random.default_rng(n).random(n) < share).astype(np.uint8)
    expected = start + np.flatnonzero(mask[start:])
    for wanted in (0, 1, 7, 40_000):
        assert np.array_equal(masks.next_rows(mask, start, wanted), expected[:wanted])
    assert masks.count_ones(mask) == int(mask.sum())
