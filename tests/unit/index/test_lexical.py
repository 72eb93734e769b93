"""The lexical index: ranking, filters, ties, deletion, threads."""

import math
import threading
from collections import Counter

import numpy as np
import pytest
from item_batches import batch_of

from colmem.contract import MetaFilter, Reach
from colmem.index import lexical as module
from colmem.index.analyser import SURFACE_WEIGHT, analyse_items, analyse_query
from colmem.index.lexical import LexicalIndex
from colmem.index.lexical_rank import QUERY_TERMS_MAX

NOW_S = 1_700_000_000
K1, B = 1.2, 0.75


@pytest.fixture
def index():
    made = LexicalIndex(None)
    yield made
    made.close()


def fill(index, items, first_row=0, commit=True):
    index.add(batch_of(items, first_row))
    if commit:
        index.commit(first_row + len(items))


def search(index, query, k=10, **filter):
    return index.search(query, k, filter=MetaFilter(**filter), now_s=NOW_S)


def rows(index, query, k=10, **filter):
    return search(index, query, k, **filter).rows.tolist()


def test_an_empty_index_finds_nothing(index):
    assert rows(index, "owl") == []
    assert index.n_docs == 0
    assert index.deleted_share == 0.0
    assert index.matching_rows(MetaFilter(), NOW_S).tolist() == []
    index.commit(0)
    assert rows(index, "owl") == []


def test_types_of_the_answer(index):
    fill(index, ["an owl", "two owls"])
    for k in (1, 10):
        found = search(index, "owl", k)
        assert found.rows.dtype == np.int64
        assert found.scores.dtype == np.float32
        assert len(found.rows) == len(found.scores) == min(k, 2)
    assert len(search(index, "nothing").rows) == 0
    assert len(search(index, "owl", 0).rows) == 0


def test_rows_are_found_after_the_commit_that_follows_them(index):
    fill(index, [f"item {i}" for i in range(100)])
    fill(index, ["the word zephyrine"], 100, commit=False)
    assert rows(index, "zephyrine") == []
    index.commit(101)
    assert rows(index, "zephyrine") == [100]
    found = []
    thread = threading.Thread(target=lambda: found.append(rows(index, "zephyrine")))
    thread.start()
    thread.join()
    assert found == [[100]]


def exact_bm25(texts, query):
    """Scores of the texts by the formula: what the analyser says, nothing else shared."""
    terms = [text.split() for text in analyse_items(batch_of(texts).column("text"))[0]]
    wanted = analyse_query(query)
    weights = dict.fromkeys(wanted.terms, 1.0) | dict.fromkeys(wanted.surfaces, SURFACE_WEIGHT)
    n = len(texts)
    mean = sum(map(len, terms)) / n
    scores = np.zeros(n)
    for term, weight in weights.items():
        held = sum(term in words for words in terms)
        idf = math.log(1 + (n - held + 0.5) / (held + 0.5))
        for i, words in enumerate(terms):
            tf = Counter(words)[term]
            scores[i] += weight * idf * (K1 + 1) * tf / (tf + K1 * (1 - B + B * len(words) / mean))
    return scores


def test_a_word_in_most_items_does_not_lower_a_score(index):
    fill(index, ["a b lorem", "a b ipsum", "a b ipsum"])
    found = index.search(
        "a b lorem", 10, filter=MetaFilter(), now_s=NOW_S, keep_function_words=True
    )
    assert found.rows.tolist() == [0, 1, 2]
    assert found.scores.min() > 0


def test_scores_and_order_are_those_of_exact_bm25():
    rng = np.random.default_rng(3)
    words = ["owl", "owls", "tide", "tides", "zephyr", "multi-agent", "水東", "x9", "class"]
    for _ in range(60):
        index = LexicalIndex(None)
        # Up to 40 terms tantivy keeps a text's length exactly.
        texts = [
            " ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(rng.integers(2, 21))
        ]
        middle = len(texts) // 2
        fill(index, texts[:middle])
        fill(index, texts[middle:], middle)
        for _ in range(10):
            query = " ".join(rng.choice(words, rng.integers(1, 4)))
            exact = exact_bm25(texts, query)
            found = search(index, query, 100)
            assert found.rows.tolist() == sorted(
                np.flatnonzero(exact > 0), key=lambda i: (-round(exact[i], 5), i)
            )
            np.testing.assert_allclose(found.scores, exact[found.rows], rtol=1e-5)
        index.close()


def test_equal_scores_come_in_order_of_storing_over_segments(index, monkeypatch):
    # Segments of unlike size, the first stored not the largest: tantivy ranks by size.
    row = 0
    for size in (3, 50, 7, 300, 1, 20):
        fill(index, ["owl tide"] * size, row)
        row += size
    for k in (1, 2, 5, 60, 200, row, row + 5):
        assert rows(index, "owl", k) == list(range(min(k, row)))
    # A better one at the end comes first, and takes one place.
    fill(index, ["owl owl"], row)
    assert rows(index, "owl", 4) == [row, 0, 1, 2]


def test_equal_scores_come_in_order_of_storing_after_merges(tmp_path):
    rng = np.random.default_rng(5)
    index = LexicalIndex(tmp_path)
    row, is_mixed = 0, False
    for n, size in enumerate(rng.integers(1, 40, 120).tolist()):
        if n % 10 == 9:
            index.flush()  # eight segments of like size have become one
        fill(index, [" ".join(["owl"] * n + ["tide"]) for n in rng.integers(1, 3, size)], row)
        row += size
        view = index.view
        is_mixed |= not all(segment.is_ascending for segment in view.segments)
        scores = dict(zip(*(each.tolist() for each in search(index, "owl", row)), strict=True))
        ranked = sorted(scores, key=lambda row: (-scores[row], row))
        assert len(ranked) == row
        for k in (1, 3, 10, 200):
            assert rows(index, "owl", k) == ranked[:k]
    assert is_mixed, "no merge mixed the rows: the test shows nothing"
    index.close()
    again = LexicalIndex(tmp_path)
    assert rows(again, "owl", 200) == ranked[:200]
    again.close()


def test_a_bulk_load_is_cut_into_ever_smaller_segments(index, monkeypatch):
    monkeypatch.setattr(module, "_SEGMENT_ROWS", 40)
    monkeypatch.setattr(module, "_SEGMENT_ROWS_LESS", 5)
    for first in range(0, 120, 8):
        fill(index, ["owl"] * 8, first, commit=False)
    assert rows(index, "owl") == []
    index.commit(120)
    assert index.view.segments == [(0, True), (40, True), (75, True), (105, True)]
    assert rows(index, "owl", 7) == list(range(7))
    assert index.matching_rows(MetaFilter(), NOW_S).tolist() == list(range(120))


def test_deleted_rows_are_gone_after_the_commit(index):
    fill(index, [f"owl number{i}" for i in range(50)])
    index.delete(np.array([3, 4, 49, 1000]))
    index.delete(np.empty(0, np.int64))
    assert rows(index, "number3") == [3]
    index.commit(50)
    assert rows(index, "number3") == []
    assert rows(index, "number5") == [5]
    assert index.n_docs == 47
    assert index.deleted_share == pytest.approx(3 / 50)
    assert len(search(index, "owl", 100).rows) == 47


def test_what_a_rebuild_ranks_by_is_what_a_fresh_index_does(index):
    texts = [f"owl tide number{i}" for i in range(500)]
    fill(index, texts)
    index.delete(np.arange(490))
    index.commit(500)
    assert index.deleted_share == pytest.approx(0.98)
    for i in range(0, 490, 7):
        assert rows(index, f"number{i}") == []
    index.clear()
    assert rows(index, "number495") == [495]  # the old state, until the next commit
    assert index.watermark == 0
    fill(index, texts[490:], 490)
    assert index.watermark == 500
    assert index.deleted_share == 0.0
    fresh = LexicalIndex(None)
    fill(fresh, texts[490:])
    for query in ("owl", "number495", "tide number499"):
        assert rows(index, query) == [row + 490 for row in rows(fresh, query)]
        np.testing.assert_allclose(
            search(index, query).scores, search(fresh, query).scores, rtol=1e-6
        )
    fresh.close()


def test_every_condition_is_part_of_the_query(index):
    items = [{"text": "owl", "thread_id": f"t{i}", "folder": f"/a/{i % 3}"} for i in range(300)]
    items[7] |= {"namespace": "team:x/agent:y", "tags": ["g", "g", "h"], "turn_first": 1}
    items[7] |= {"turn_last": 4_294_967_295, "tool_name": "grep", "source_id": ""}
    items[7] |= {"observed_s": 10, "observed_ns": 1_999_999_999, "url": "u" * 100_000}
    fill(index, items)
    assert rows(index, "owl", thread_id="t7") == [7]
    assert rows(index, "owl", url="u" * 100_000) == [7]
    assert rows(index, "owl", source_id="") == [7]
    assert rows(index, "owl", tags_any=["h", "nothing"]) == [7]
    assert rows(index, "owl", tool_call="grep") == [7]
    assert rows(index, "owl", reach=Reach(at="team:x", inherit=False, descendants=True)) == [7]
    assert rows(index, "owl", reach=Reach(at="team:x/agent:y/user:z", inherit=True), k=2) == [0, 1]
    assert rows(index, "owl", observed_after="1970-01-01T00:00:10.999999999Z") == [7]
    assert rows(index, "owl", observed_before="1970-01-01T00:00:11Z") == [7]
    assert rows(index, "owl", folder="/a/1", k=3) == [1, 4, 7]
    assert rows(index, "owl", folder="/a/1", thread_id="t7") == [7]
    assert rows(index, "owl", folder="/a/2", thread_id="t7") == []
    unfiltered = search(index, "owl", 300)
    filtered = search(index, "owl", folder="/a")
    assert filtered.scores[0] == unfiltered.scores[0]


def test_expired_items_are_left_out_from_their_second_on(index):
    fill(index, [{"text": "owl", "expires_s": s} for s in (None, 100, 200, 0)])

    def at(now_s):
        found = index.search("owl", 10, filter=MetaFilter(), now_s=now_s)
        assert index.matching_rows(MetaFilter(), now_s).tolist() == found.rows.tolist()
        return found.rows.tolist()

    assert at(-1) == [0, 1, 2, 3]
    assert at(0) == [0, 1, 2]
    assert at(99) == [0, 1, 2]
    assert at(100) == [0, 2]
    assert at(1 << 40) == [0]


@pytest.mark.parametrize(
    "query",
    ["multi-agent", "don't", "TODO: fix", "GB/s", "ubuntu 20.04", 'a"b', "C++", "(x", "AND",
     "NOT x", "field:value", "~2", "^3", "水", "café"],
)  # fmt: skip
def test_a_query_is_never_syntax(index, query):
    fill(index, ["something else", f"here {query} there", "not this either"])
    assert rows(index, query)[0] == 1


@pytest.mark.parametrize("query", ["", " ", "*", "\\", '"' * 10_000, "()"])
def test_a_query_without_terms_finds_nothing(index, query):
    fill(index, [f"here {query} there"])
    assert rows(index, query) == []
    assert not index.has_terms(query)


def test_a_very_long_query_is_searched_by_its_rarest_terms(index):
    fill(index, [f"owl common{i % 5} rare{i}" for i in range(400)])
    query = " ".join(["common1", *(f"absent{i}" for i in range(1500)), "rare7", "rare9", "owl"])
    assert set(rows(index, query, 2)) == {7, 9}
    many = " ".join(f"rare{i}" for i in range(400))
    assert len(rows(index, many, 1000)) == QUERY_TERMS_MAX
    assert len(rows(index, "owl " * 200_000, 5)) == 5


def test_single_characters_are_found_in_a_run(index):
    fill(index, ["權威事實", "事件", "hello 水 world", "水曜日"])
    assert rows(index, "事") == [1, 0]
    assert set(rows(index, "水")) == {2, 3}
    assert rows(index, "威") == [0]


def test_the_terms_of_a_query_can_be_asked_for(index):
    assert index.explain_terms("the owls of 水") == ["owl", "水", "owls", "水"]


def test_parts_of_a_score_add_up_to_it(index):
    fill(index, ["two owls at 水", "owl tide", "tide", "水曜"])
    query = "the owls and 水 of a tide"
    found = search(index, query)
    parts = index.explain(query, found.rows)
    by_row = dict(zip(found.rows.tolist(), parts, strict=True))
    assert {row: set(part) for row, part in by_row.items()} == {
        0: {"owl", "owls", "水"},
        1: {"owl", "tide"},
        2: {"tide"},
        3: {"水"},
    }
    np.testing.assert_allclose([sum(part.values()) for part in parts], found.scores, rtol=1e-6)
    assert index.explain("...", found.rows) == [{}] * 4
    assert index.explain("owl", found.rows[:0]) == []


def test_readers_see_whole_states_while_a_writer_adds(index):
    fill(index, ["owl start"])
    stop = threading.Event()
    errors = []

    def read():
        seen = 0
        while not stop.is_set():
            found = rows(index, "owl", 1000)
            # Each commit adds ten rows, and none is ever missing.
            if (
                sorted(found) != list(range(len(found)))
                or len(found) % 10 != 1
                or len(found) < seen
            ):
                errors.append(found)
            seen = len(found)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for first in range(1, 200, 10):
        fill(index, ["owl tide"] * 10, first)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(rows(index, "owl", 1000)) == 201


def test_paths_and_tags_of_any_length_and_number(index):
    deep = "/a" * 50_000
    fill(index, [{"text": "owl", "folder": deep, "tags": [f"g{i}" for i in range(1000)]}, "owl"])
    assert rows(index, "owl", folder="/a") == [0]
    assert rows(index, "owl", folder=deep) == [0]
    assert rows(index, "owl", folder=deep + "//") == [0]
    assert rows(index, "owl", folder=deep + "/a") == []
    assert rows(index, "owl", tags_any=[f"x{i}" for i in range(5000)]) == []
    assert rows(index, "owl", tags_any=[*(f"x{i}" for i in range(5000)), "g999"]) == [0]
