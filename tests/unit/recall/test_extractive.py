from __future__ import annotations

import re

import pytest

from colmem.embed.static import StaticEmbedder
from colmem.recall.extractive import (
    ANSWER_CHARS_MAX,
    NO_ANSWER,
    Question,
    Source,
    answer,
    evidence,
)

EMBED = StaticEmbedder().embed
STOP = {"what", "is", "the", "a", "of", "in", "who", "does", "how", "and", "to"}
OWNERSHIP = (
    "Rust has no garbage collector. Each value in Rust has a variable that is called its owner. "
    "There can only be one owner at a time. When the owner goes out of scope, the value is "
    "dropped. Borrowing lets other code read the value without taking it."
)
BREAD = "A sourdough starter needs flour, water and about a week of daily feeding to become lively."
SOURCES = [Source(OWNERSHIP, 0.9), Source(BREAD, 0.4)]


def _terms(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _ask(text: str) -> Question:
    return Question.read(
        text,
        analyse=_terms,
        query_terms=lambda query: [t for t in _terms(query) if t not in STOP],
        embed=EMBED,
    )


def _quotes(text: str) -> list[tuple[str, int]]:
    return [(m[1].strip(), int(m[2])) for m in re.finditer(r"(.*?) ?\[(\d+)\]", text, re.S)]


def test_every_quote_stands_in_the_source_its_number_names() -> None:
    extract = answer(_ask("What is the owner of a value in Rust?"), SOURCES)
    quotes = _quotes(extract.answer)
    assert quotes[0][0] == "Each value in Rust has a variable that is called its owner."
    for quote, number in quotes:
        assert quote in SOURCES[extract.cited[number - 1]].text
    assert len(extract.answer) <= ANSWER_CHARS_MAX


def test_a_word_without_meaning_is_answered_by_what_holds_it() -> None:
    sources = [Source("tmconf18ab replay note", 0.5), Source("tmconf18ab bulk-0 note", 0.5)]
    extract = answer(_ask("tmconf18ab"), sources, evidence_min=0.4)
    assert extract.cited
    assert "tmconf18ab" in extract.answer


def test_weak_evidence_is_no_answer_and_cites_nothing() -> None:
    question = _ask("Which comet did the probe photograph?")
    assert evidence(question, SOURCES) < 0.3
    assert answer(question, SOURCES, evidence_min=0.3) == (NO_ANSWER, [])
    assert answer(question, []) == (NO_ANSWER, [])


def test_the_same_sentence_of_two_hits_is_quoted_once() -> None:
    extract = answer(_ask("sourdough starter"), [Source(BREAD, 0.9), Source(BREAD, 0.9)])
    assert extract.answer.count("sourdough") == 1
    assert extract.cited == [0]


def test_one_sentence_bullets_and_word_limits_are_kept() -> None:
    question = _ask("What happens to a value when its owner goes out of scope?")
    one = answer(question, SOURCES, instructions="Answer in one sentence.")
    assert len(_quotes(one.answer)) == 1
    bullets = answer(question, SOURCES, instructions="Use bullets.")
    assert all(line.startswith("- ") for line in bullets.answer.split("\n"))
    for limit in (1, 2, 5, 12, 30):
        short = answer(question, SOURCES, instructions=f"in at most {limit} words")
        assert 1 <= len(short.answer.split()) <= limit
        assert short.cited
    narrow = answer(question, SOURCES, instructions="at most 40 characters")
    assert len(narrow.answer) <= 40


def test_without_an_embedder_words_decide() -> None:
    question = Question.read("borrowing", analyse=_terms)
    assert answer(question, SOURCES).answer.startswith("Borrowing lets other code")


@pytest.mark.parametrize("text", ["", " \n ", "x" * 5000, "你好" * 3000])
def test_odd_sources_neither_fail_nor_overflow(text: str) -> None:
    extract = answer(_ask("x 你好"), [Source(text, 0.0)])
    assert len(extract.answer) <= ANSWER_CHARS_MAX


def test_rare_words_weigh_more_when_told_so() -> None:
    question = Question.read(
        "value starter", analyse=_terms, rarity=lambda term: 9.0 if term == "starter" else 1.0
    )
    equal = [source._replace(score=0.5) for source in SOURCES]
    assert answer(question, equal).answer.startswith("A sourdough starter")
