from __future__ import annotations

import numpy as np
import pytest

from colmem.retrieval.dialogue import ASKS, IS_NAMED, Turns, beside_best, lend
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates

OFF = {
    "dialogue_previous": 0.0,
    "dialogue_next": 0.0,
    "dialogue_second": 0.0,
    "dialogue_answer": 0.0,
    "dialogue_thread": 0.0,
    "dialogue_named": 0.0,
}
# Rows 1..5 are one conversation in order, row 8 is a document.
RANKING = Candidates(np.array([3, 8, 1, 5]), np.array([0.8, 0.6, 0.4, 0.2], np.float32))
BESIDE = np.array([[1, 2, 4, 5], [-1, -1, -1, -1], [-1, -1, 2, 3], [3, 4, -1, -1]])
THREADS = np.array([0, -1, 0, 0])


def _lend(marks: list[int] | None = None, **weights: float) -> dict[int, float]:
    turns = Turns(THREADS, BESIDE, np.array(marks or [0] * 4, np.uint8))
    again = lend(RANKING, turns, RankingSettings(**{**OFF, **weights}))
    assert (np.diff(again.scores) <= 0).all()
    return dict(zip(again.rows.tolist(), again.scores.tolist(), strict=True))


def test_turns_two_away_lend_both_ways_and_absent_ones_nothing() -> None:
    scores = _lend(dialogue_second=0.25)
    assert scores[3] == pytest.approx((0.8 + 0.25 * (0.4 + 0.2)) / 1.5)
    assert scores[1] == pytest.approx((0.4 + 0.25 * 0.8) / 1.5)
    assert scores[8] == pytest.approx(0.6 / 1.5)


def test_a_conversation_lends_its_best_to_each_turn() -> None:
    scores = _lend(dialogue_thread=0.5)
    assert scores[5] == pytest.approx((0.2 + 0.5 * (0.8 + 0.4 + 0.2) / 3) / 1.5)


def test_an_answer_gains_from_the_question_before_it() -> None:
    ranking = Candidates(np.array([1, 2]), np.array([0.8, 0.1], np.float32))
    beside = np.array([[-1, -1, 2, -1], [-1, 1, -1, -1]])
    turns = Turns(np.zeros(2, np.int64), beside, np.array([ASKS, 0], np.uint8))
    again = lend(ranking, turns, RankingSettings(**{**OFF, "dialogue_answer": 1.0}))
    assert again.scores.tolist() == pytest.approx([0.9 / 2, 0.8 / 2])


def test_a_named_speaker_gains() -> None:
    scores = _lend([0, IS_NAMED, 0, IS_NAMED], dialogue_named=1.0)
    assert scores[5] == pytest.approx(1.2 / 2)
    assert scores[8] == pytest.approx(0.6 / 2)  # A document has no speaker.


def test_off_or_without_turns_nothing_changes() -> None:
    turns = Turns(THREADS, BESIDE, np.zeros(4, np.uint8))
    assert lend(RANKING, turns, RankingSettings(dialogue=False)) is RANKING
    assert lend(RANKING, turns._replace(threads=np.full(4, -1)), RankingSettings()) is RANKING


def test_beside_best_are_the_rows_not_ranked_yet() -> None:
    assert beside_best(RANKING, BESIDE[:1]).tolist() == [2, 4]
    assert beside_best(RANKING, BESIDE[:0]).tolist() == []
