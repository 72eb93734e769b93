"""Items behind a committed index, searched beside it: as if they stood in it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from item_batches import batch_of
from tantivy import Query

from colmem.contract import MetaFilter
from colmem.index.lexical import LexicalIndex
from colmem.index.lexical_rank import TEXT_FIELD
from colmem.index.lexical_tail import Tail, idf, kept_length

NOW_S = 1_700_000_000
WORDS = ["owl", "moth", "fern", "lake", "reed", "moon"]  # a plural would count as two terms
N_WORDS = 6
ANY = MetaFilter()


def by_row(found) -> dict[int, float]:
    return dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))


texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=N_WORDS, max_size=N_WORDS).map(" ".join),
    min_size=1,
    max_size=12,
)


def index_of(items: list[str]) -> LexicalIndex:
    index = LexicalIndex(None)
    index.add(batch_of(items))
    index.commit(len(items))
    return index


def with_tail(index: LexicalIndex, items: list[str]) -> Tail:
    tail = index.new_tail()
    first = tail.end
    tail.add(batch_of(items, first), first + len(items))
    return tail


def found_beside(index: LexicalIndex, tail: Tail, query: str, k: int = 50, mask=None):
    mask = np.ones(tail.end, np.uint8) if mask is None else mask
    return index.search_with(tail, query, k, filter=ANY, now_s=NOW_S, mask=mask)


@given(texts, texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join))
@settings(max_examples=60, deadline=None)
def test_texts_of_equal_length_score_as_in_one_index(held, new, query):
    index, whole = index_of(held), index_of(held + new)
    try:
        found = found_beside(index, with_tail(index, new), query)
        expected = whole.search(query, 50, filter=ANY, now_s=NOW_S)
        assert by_row(found) == pytest.approx(by_row(expected), rel=1e-5)
        assert (np.diff(found.scores) <= 0).all()
    finally:
        index.close()
        whole.close()


def test_the_best_come_first_whichever_side_they_are_on():
    index = index_of(["owl owl owl", "a moth", "an owl by a lake full of reed"])
    tail = with_tail(index, ["fern", "owl", "owl lake"])
    found = found_beside(index, tail, "owl", k=3)
    assert set(found.rows.tolist()) == {0, 4, 5}
    assert found_beside(index, tail, "owl", k=1).rows.tolist() == [found.rows[0]]
    assert found_beside(index, tail, "reed fern").rows.tolist() == [3, 2]
    index.close()


def test_equal_scores_come_in_order_of_storing():
    index = index_of(["owl moth"] * 3)
    tail = with_tail(index, ["owl moth"] * 3)
    assert found_beside(index, tail, "owl", k=5).rows.tolist() == [0, 1, 2, 3, 4]
    index.close()


def test_only_admitted_rows_of_the_tail_are_found():
    index = index_of(["owl"])
    tail = with_tail(index, ["owl", "owl", "owl"])
    mask = np.array([1, 0, 1], np.uint8)  # and of a view that lacks the last
    assert found_beside(index, tail, "owl", mask=mask).rows.tolist() == [0, 2]
    index.close()


def test_words_that_only_the_tail_holds():
    index = index_of(["owl"])
    tail = with_tail(index, ["moth fern", "moth"])
    assert found_beside(index, tail, "moth").rows.tolist() == [2, 1]
    assert found_beside(index, tail, "lake").rows.tolist() == []
    assert tail.frequency(TEXT_FIELD, "moth") == 2
    index.close()


def test_a_long_query_of_words_that_only_the_tail_holds():
    index = index_of(["owl"])
    text = " ".join(f"word{i}x" for i in range(600))
    assert found_beside(index, with_tail(index, [text]), text).rows.tolist() == [1]
    index.close()


def test_a_tail_keeps_to_the_state_it_began_at():
    index = index_of(["owl", "moth"])
    tail = with_tail(index, ["owl"])
    index.add(batch_of(["owl", "owl"], 2))
    index.commit(4)
    assert found_beside(index, tail, "owl").rows.tolist() == [0, 2]
    assert index.new_tail().end == 4
    index.close()


@pytest.mark.parametrize("length", [1, 23, 24, 39, 40, 41, 43, 57, 63, 64, 200, 1000, 5001])
def test_lengths_are_kept_as_the_index_keeps_them(length):
    index = index_of(["owl " * length])
    query = Query.term_query(index._schema, TEXT_FIELD, "owl", "freq")
    searcher = index.view.searcher
    hit = searcher.search(query, 1).hits[0][1]
    explained = json.dumps(json.loads(query.explain(searcher, hit).to_json()))
    assert f'"value": {float(kept_length(length))}, "description": "dl, length' in explained
    index.close()


def test_characters_that_stand_alone():
    index = index_of(["東 owl"])
    tail = with_tail(index, ["西 owl", "東京 owl"])
    assert found_beside(index, tail, "西").rows.tolist() == [1]
    assert found_beside(index, tail, "東京").rows[0] == 2
    index.close()


def test_how_much_a_term_counts():
    assert idf(0, 10) > idf(1, 10) > idf(10, 10) > 0
