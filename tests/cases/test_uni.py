"""UNI: words inside runs without spaces are found, and no query is ever syntax (D16, D17)."""

from collections.abc import Iterator
from typing import Any

import pytest

import colmem

RUNS = {
    "系统把機器推論洗成權威事實了": ["權威事實", "機器推論", "事實"],
    "hello tantivy你好world": ["你好", "tantivy", "world"],
    "東京都庁舎": ["都庁"],
    "데이터베이스를": ["데이터베이스"],
    "ภาษาไทยง่าย": ["ไทย", "ภาษา"],
}
# A query, and the text of the item that holds it.
WORDS = {
    "multi-agent": "a multi-agent system",
    "don't": "I don't know",
    "TODO: fix": "# TODO: fix the parser",
    "GB/s": "it reads 14 GB/s",
    "ubuntu 20.04": "made on ubuntu 20.04 yesterday",
    'a"b': 'they wrote a"b there',
    "C++": "compiled as C++ code",
    "(x": "the call f(x, y)",
    "*": "all of src/* matches",
    "AND": "first this AND then that",
    "NOT x": "it is NOT x but y",
    "field:value": "set field:value pairs",
    "~2": "within ~2 edits",
    "^3": "boosted ^3 times",
    "\\": "a path C:\\temp here",
    '"' * 10_000: "he said " + '"' * 10_000,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(text) for text in [*RUNS, *WORDS.values()])
        yield engine


@pytest.mark.parametrize(("text", "word"), [(t, w) for t, words in RUNS.items() for w in words])
def test_d16_words_inside_a_run_are_found(engine: Any, text: str, word: str) -> None:
    for mode in ("keyword", "hybrid"):
        hits = engine.fetch(query=word, mode=mode, limit=3).hits
        assert hits[0].text == text


@pytest.mark.parametrize("query", WORDS, ids=lambda query: query[:12])
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_d17_no_query_is_syntax(engine: Any, query: str, mode: str) -> None:
    hits = engine.fetch(query=query, mode=mode, limit=len(RUNS) + len(WORDS)).hits
    assert WORDS[query] in [hit.text for hit in hits]
    if mode == "keyword":
        # What comes before holds the query's words as well.
        assert all(hit.score > 0 for hit in hits)
