from __future__ import annotations

import numpy as np
import pytest

from colmem.embed.static import StaticEmbedder
from colmem.retrieval.fuse import Weights
from colmem.retrieval.rescore import (
    depth,
    insert,
    maxsim,
    piece_weights,
    read_query,
    rescore,
)
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates

EMBEDDER = StaticEmbedder()
WEIGHTS = Weights(0.3, 0.3, 0.4)


def _read(text: str):
    return read_query(
        EMBEDDER.pieces(text),
        piece_text=EMBEDDER.piece_text,
        is_function_word=EMBEDDER.is_function_word,
        is_punctuation=EMBEDDER.is_punctuation,
    )


def _words(text: str) -> list[str]:
    return [EMBEDDER.piece_text(piece) for piece in _read(text).content.tolist()]


def test_function_words_and_punctuation_carry_no_meaning() -> None:
    assert _words("Who owns the value, and the value's name?") == ["owns", "value", "name"]


def test_a_query_of_function_words_keeps_them() -> None:
    assert _words("who is that?") == ["who", "is", "that", "?"]
    assert _words("") == []


@pytest.mark.parametrize(
    ("query", "low", "high"),
    [
        ("when did she paint a sunrise", 1, 1),
        ("zephyrine", 0, 0),
        ("wie viele Abwehrspieler hatte die Mannschaft", 0, 0.6),
        ("黑豹队的防守丢了多少分", 0, 0.1),
        ("", 0, 0),
    ],
)
def test_fit_tells_how_well_the_vocabulary_knows_a_query(
    query: str, low: float, high: float
) -> None:
    assert low <= _read(query).fit <= high


def test_rare_pieces_weigh_more() -> None:
    frequency = np.array([0, 100, 3, 200])
    weights = piece_weights(np.array([1, 2], np.uint16), frequency, 100)
    assert weights[1] > weights[0] > 0
    assert weights.sum() == pytest.approx(1)
    # A count gone stale beside the number of items never turns a weight negative.
    assert piece_weights(np.array([3], np.uint16), frequency, 100)[0] > 0


def test_maxsim_is_1_for_the_query_itself_and_lower_for_other_texts() -> None:
    texts = ["owns value", "she paints a sunrise over the lake", ""]
    _, pieces, offsets = EMBEDDER.embed_pieces(texts)
    content = _read("who owns a value").content
    frequency = np.zeros(len(EMBEDDER.rows), np.int64)
    scores = maxsim(
        content,
        piece_weights(content, frequency, 3),
        pieces,
        offsets,
        table=EMBEDDER.rows,
        inverse_norms=EMBEDDER.row_inverse_norms,
    )
    assert scores[0] == pytest.approx(1, abs=1e-5)
    assert 0 < scores[1] < 0.7
    assert scores[2] == 0


def test_the_opening_of_a_text_counts_more() -> None:
    about = "the cello is an instrument " + "and so on and on " * 8
    late = "and so on and on " * 8 + "the cello is an instrument"
    _, pieces, offsets = EMBEDDER.embed_pieces([about, late])
    content = _read("cello").content
    weights = piece_weights(content, np.zeros(len(EMBEDDER.rows), np.int64), 2)
    tables = {"table": EMBEDDER.rows, "inverse_norms": EMBEDDER.row_inverse_norms}
    first, second = maxsim(content, weights, pieces, offsets, **tables)
    assert first == second
    first, second = maxsim(content, weights, pieces, offsets, **tables, opening=(32, 0.5))
    assert first > second > first / 2


def test_depth_keeps_to_both_budgets() -> None:
    offsets = np.array([0, 10, 20, 30])
    settings = RankingSettings(rescore_top=9, rescore_pieces=20)
    assert depth(offsets, settings) == 2
    assert depth(offsets, RankingSettings(rescore_top=1)) == 1
    assert depth(offsets[:1], settings) == 0


def test_rescored_candidates_stay_above_the_others() -> None:
    ranking = Candidates(np.array([4, 2, 9]), np.array([0.9, 0.8, 0.79], np.float32))
    again = rescore(ranking, np.array([0.0, 0.5], np.float32), WEIGHTS)
    assert again.rows.tolist() == [2, 4, 9]
    assert again.scores.tolist() == pytest.approx([0.68, 0.54, 0.474])
    low = rescore(ranking, np.array([0.0, 0.0], np.float32), WEIGHTS)
    assert low.scores.tolist() == pytest.approx([0.54, 0.48, 0.474])
    capped = rescore(ranking, np.array([1.0, 0.0], np.float32)[:1], WEIGHTS)
    assert (np.diff(capped.scores) <= 0).all()


def test_nothing_to_rescore_changes_nothing() -> None:
    ranking = Candidates(np.array([4]), np.array([0.9], np.float32))
    assert rescore(ranking, np.empty(0, np.float32), WEIGHTS) is ranking


def test_insert_puts_candidates_behind_the_first() -> None:
    ranking = Candidates(np.array([4, 2]), np.array([0.9, 0.8], np.float32))
    extra = Candidates(np.array([7]), np.array([0.1], np.float32))
    assert insert(ranking, 1, extra).rows.tolist() == [4, 7, 2]
