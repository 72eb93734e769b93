from __future__ import annotations

import numpy as np

from colmem.retrieval.diversity import defer_near_duplicates
from colmem.schema import Candidates

RANKING = Candidates(np.array([5, 3, 9, 1]), np.array([0.9, 0.8, 0.7, 0.6], np.float32))


def _unit(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_the_better_of_near_identical_ones_keeps_its_place_and_the_rest_follow() -> None:
    again = defer_near_duplicates(RANKING, _unit(0, 1, 90, 91), 0.99)
    assert again.rows.tolist() == [5, 9, 3, 1]
    assert again.scores.tolist() == [np.float32(0.9), *[np.float32(0.7)] * 2, np.float32(0.6)]


def test_only_a_kept_one_defers_others() -> None:
    # 8 degrees is near 4 but not near 0; 4 is deferred itself and so defers nothing.
    again = defer_near_duplicates(RANKING, _unit(0, 4, 8, 90), np.cos(np.radians(5)))
    assert again.rows.tolist() == [5, 9, 1, 3]


def test_without_near_identical_ones_nothing_moves() -> None:
    assert defer_near_duplicates(RANKING, _unit(0, 45, 90), 0.99) is RANKING
    nothing = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))
    assert defer_near_duplicates(nothing, _unit(), 0.9) is nothing
