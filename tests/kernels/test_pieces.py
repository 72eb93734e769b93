from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from colmem.index.pieces import PieceIndex


@pytest.mark.parametrize("seed", range(5))
def test_frequencies_count_each_item_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = PieceIndex(None, 50)
    items = [rng.integers(0, 50, rng.integers(0, 30)).astype(np.uint16) for _ in range(40)]
    for start in range(0, 40, 7):
        part = items[start : start + 7]
        offsets = np.cumsum([0, *map(len, part)]).astype(np.int64)
        index.append(np.concatenate(part), offsets)
    gone = np.array([3, 17, 39], np.int64)
    index.forget(gone)
    kept = [set(item.tolist()) for i, item in enumerate(items) if i not in gone]
    expected = Counter(piece for item in kept for piece in item)
    assert index.document_frequency().tolist() == [expected[p] for p in range(50)]
    flat, offsets = index.take(np.array([5, 0, 5], np.int64))
    parts = [flat[offsets[i] : offsets[i + 1]].tolist() for i in range(3)]
    assert parts == [items[5].tolist(), items[0].tolist(), items[5].tolist()]
