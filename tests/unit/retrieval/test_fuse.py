from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmem.retrieval.fuse import Weights, blend, fuse, lexical_bounds, pool, ranked, tail
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates


def _candidates(*pairs: tuple[int, float]) -> Candidates:
    rows, scores = zip(*pairs, strict=True) if pairs else ((), ())
    return Candidates(np.array(rows, np.int64), np.array(scores, np.float32))


HALF = Weights(0.5, 0.5, 0.0)


def test_pool_joins_by_row_and_tells_which_cosines_are_missing() -> None:
    joined = pool(_candidates((7, 3.0), (2, 1.0)), _candidates((5, 0.5), (7, 0.1)))
    assert joined.rows.tolist() == [2, 5, 7]
    assert joined.lexical.tolist() == [1.0, 0.0, 3.0]
    assert joined.without_vector().tolist() == [True, False, False]


def test_fuse_blends_both_legs_between_their_extremes() -> None:
    joined = pool(_candidates((0, 4.0), (1, 2.0)), _candidates((1, 0.8), (0, 0.2), (2, -0.2)))
    ranking = fuse(joined, vector_bounds=(-0.2, 0.8), lexical_bounds=(0, 4), weights=HALF)
    assert ranking.rows.tolist() == [1, 0, 2]
    assert ranking.scores.tolist() == pytest.approx([0.75, 0.7, 0.0])


def test_equal_scores_stand_in_order_of_rows() -> None:
    ranking = ranked(np.array([9, 3, 5]), np.array([1, 1, 1], np.float32))
    assert ranking.rows.tolist() == [3, 5, 9]


def test_nan_ranks_as_no_score() -> None:
    assert ranked(np.array([0, 1]), np.array([np.nan, 0.1], np.float32)).rows.tolist() == [1, 0]


def test_legs_without_a_range_add_nothing() -> None:
    ones = np.ones(3, np.float32)
    flat = blend(ones, ones, vector_bounds=(1, 1), lexical_bounds=(1, 1), weights=HALF)
    assert flat.tolist() == [0, 0, 0]


def test_a_query_the_vocabulary_does_not_know_counts_on_words() -> None:
    settings = RankingSettings()
    known, foreign = Weights.of(settings, 1.0), Weights.of(settings, 0.0)
    assert sum(known) == pytest.approx(1)
    assert sum(foreign) == pytest.approx(1)
    assert foreign.vector == pytest.approx(settings.fit_min * known.vector)
    assert Weights.of(settings, settings.fit_full / 2).vector == pytest.approx(known.vector / 2)


def test_without_maxsim_both_legs_keep_their_proportion() -> None:
    weights = Weights(0.2, 0.4, 0.4).without_maxsim()
    assert weights == pytest.approx((1 / 3, 2 / 3, 0, 0))


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(-1, 1)), min_size=1, max_size=60),
    st.integers(1, 20),
    st.randoms(use_true_random=False),
)
def test_head_and_tail_hold_every_admitted_row_once_in_falling_order(scores, depth, random) -> None:
    n = len(scores)
    bm25 = np.array([s[0] if random.random() < 0.5 else 0 for s in scores], np.float32)
    cosines = np.array([s[1] for s in scores], np.float32)
    mask = np.array([random.random() < 0.8 for _ in scores], np.uint8)
    rows = np.flatnonzero(mask)
    matching = rows[bm25[rows] > 0]
    lexical, vector = ranked(matching, bm25[matching]), ranked(rows, cosines[rows])
    bounds = (float(cosines[rows].min()), float(cosines[rows].max())) if len(rows) else (0.0, 0.0)
    first = pool(
        Candidates(lexical.rows[:depth], lexical.scores[:depth]),
        Candidates(vector.rows[:depth], vector.scores[:depth]),
    )
    first.vector[:] = cosines[first.rows]
    head = fuse(
        first,
        vector_bounds=bounds,
        lexical_bounds=lexical_bounds(lexical, is_whole=False),
        weights=HALF,
    )
    rest = tail(
        mask,
        head.rows,
        lexical,
        cosines,
        vector_bounds=bounds,
        weights=HALF,
        ceiling=float(head.scores[-1]) if len(head.rows) else 1.0,
    )
    assert sorted([*head.rows.tolist(), *rest.rows.tolist()]) == rows.tolist()
    together = np.concatenate([head.scores, rest.scores])
    assert (np.diff(together) <= 0).all()
    assert ((together >= 0) & (together <= 1)).all()
    assert len(head.rows) + len(rest.rows) <= n
