from __future__ import annotations

import numpy as np
import pytest

from colmem.embed.static import StaticEmbedder
from colmem.retrieval.fuse import ranked
from colmem.retrieval.hybrid import Pieces, PieceTable, Sources, rank_head
from colmem.retrieval.rescore import read_query
from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates

EMBEDDER = StaticEmbedder()
TEXTS = [
    "Ann: Do you still play the cello?",
    "Ben: Not since the spring, my wrist hurts.",
    "Ann: Oh no, what happened?",
    "The cello is a bowed string instrument tuned in fifths.",
    "Weather for the coming week: rain.",
]
THREADS = np.array([0, 0, 0, -1, -1])
BESIDE = np.array([[-1, -1, 1, 2], [-1, 0, 2, -1], [0, 1, -1, -1], [-1] * 4, [-1] * 4])


def _head(query: str, *, depth: int = 200, with_pieces: bool = True, with_turns: bool = True):
    vectors, flat, offsets = EMBEDDER.embed_pieces(TEXTS)
    cosines = vectors @ EMBEDDER.embed([query])[0]
    rows = np.arange(len(TEXTS))
    matching = np.array([i for i, text in enumerate(TEXTS) if "cello" in text])
    lexical = ranked(matching, np.ones(len(matching), np.float32))
    best = ranked(rows, cosines)
    vector = Candidates(best.rows[:depth], best.scores[:depth])

    def pieces_of(rows: np.ndarray):
        parts = [flat[offsets[row] : offsets[row + 1]] for row in rows]
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)])

    all_pieces = EMBEDDER.pieces(query)
    read = read_query(
        all_pieces,
        piece_text=EMBEDDER.piece_text,
        is_function_word=EMBEDDER.is_function_word,
        is_punctuation=EMBEDDER.is_punctuation,
    )
    table = PieceTable(
        EMBEDDER.rows,
        EMBEDDER.row_inverse_norms,
        EMBEDDER.row_scales,
        int(EMBEDDER.pieces(":")[0]),
        int(EMBEDDER.pieces("?")[0]),
    )
    frequency = np.bincount(flat, minlength=len(table.rows))
    return rank_head(
        lexical,
        vector,
        lexical_bounds=(0, 1),
        vector_bounds=(float(cosines.min()), float(cosines.max())),
        sources=Sources(
            lambda rows: cosines[rows],
            pieces_of if with_pieces else None,
            (lambda rows: (THREADS[rows], BESIDE[rows])) if with_turns else None,
        ),
        settings=RankingSettings(),
        pieces=Pieces(all_pieces, read, EMBEDDER.embed([query])[0], table, frequency, len(TEXTS))
        if with_pieces
        else None,
    )


def test_every_candidate_is_ranked_once_with_a_score_from_0_to_1() -> None:
    ranking = _head("does Ben play the cello").ranking
    assert sorted(ranking.rows.tolist()) == [0, 1, 2, 3, 4]
    assert (np.diff(ranking.scores) <= 0).all()
    assert ranking.scores.max() <= 1
    assert ranking.scores.min() >= 0


def test_an_answer_of_the_named_speaker_rises() -> None:
    query = "does Ben play the cello"
    plain = _head(query, with_turns=False).ranking.rows.tolist()
    lent = _head(query).ranking.rows.tolist()
    assert lent.index(1) < plain.index(1)
    assert lent.index(4) == len(lent) - 1


def test_a_turn_beside_the_best_becomes_a_candidate() -> None:
    assert 1 in _head("bowed string instrument cello", depth=1).ranking.rows
    assert 1 not in _head("bowed string instrument cello", depth=1, with_turns=False).ranking.rows


def test_an_embedder_without_pieces_blends_both_legs() -> None:
    head = _head("cello", with_pieces=False, with_turns=False)
    assert head.weights.maxsim == 0
    assert len(head.maxsim) == 0
    assert head.ranking.rows[0] in (0, 3)
    assert head.ranking.scores[0] == pytest.approx(1)


def test_no_candidates_give_an_empty_head() -> None:
    nothing = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))
    head = rank_head(
        nothing,
        nothing,
        lexical_bounds=(0, 0),
        vector_bounds=(0, 0),
        sources=Sources(lambda rows: np.empty(0, np.float32)),
        settings=RankingSettings(),
    )
    assert len(head.ranking.rows) == 0


def test_candidates_that_are_code_are_ranked_by_meaning_more() -> None:
    code = ["def f(x):\n    return {k: v for k, v in x.items()}", "a = b[0](c, *d)  # (e.g.)"]
    _, flat, offsets = EMBEDDER.embed_pieces(code)
    asked = "swap keys and values of a dictionary"
    query, vector = EMBEDDER.pieces(asked), EMBEDDER.embed([asked])[0]
    read = read_query(
        query,
        piece_text=EMBEDDER.piece_text,
        is_function_word=EMBEDDER.is_function_word,
        is_punctuation=EMBEDDER.is_punctuation,
    )
    table = PieceTable(EMBEDDER.rows, EMBEDDER.row_inverse_norms, EMBEDDER.row_scales, 0, 1)
    settings = RankingSettings()
    both = Candidates(np.arange(2), np.array([0.5, 0.4], np.float32))
    head = rank_head(
        both,
        both,
        lexical_bounds=(0, 1),
        vector_bounds=(0, 1),
        sources=Sources(lambda rows: both.scores[rows], lambda rows: (flat, offsets)),
        settings=settings,
        pieces=Pieces(query, read, vector, table, np.bincount(flat, minlength=len(table.rows)), 2),
    )
    assert head.weights.vector == settings.code_weight_vector
    assert head.weights.maxsim == settings.code_weight_maxsim
    assert head.weights.distinct == settings.code_weight_distinct
    # The cosine by distinct pieces is that of a text in which each stands once.
    for i, distinct in enumerate(head.distinct):
        own = np.unique(flat[offsets[i] : offsets[i + 1]])
        pooled = (EMBEDDER.rows[own] * EMBEDDER.row_scales[own][:, None]).sum(axis=0)
        assert distinct == pytest.approx(pooled @ vector / np.linalg.norm(pooled), abs=1e-5)
    expected = 0.55 * head.fused.scores + 0.45 * head.maxsim + 0.25 * (head.distinct - both.scores)
    np.testing.assert_allclose(head.rescored.scores, np.sort(expected)[::-1], atol=1e-5)
