"""Excerpts: one line, within its width, at the query's words."""

import pytest

from colmem.adapters.excerpts import excerpt, pattern_of, words_of


def test_a_short_text_is_whole_and_on_one_line() -> None:
    assert excerpt("  one\n\ntwo\tthree ", "two", 50) == "one two three"


def test_a_long_text_begins_with_the_sentence_of_the_words() -> None:
    text = "Filler words stand here. " * 20 + "The zephyrine rose. It fell again." + " More." * 50
    shown = excerpt(text, "zephyrine", 60)
    assert shown.startswith("…The zephyrine rose.")
    assert shown.endswith("…")
    assert len(shown) <= 60


def test_without_the_words_a_text_begins_at_its_beginning() -> None:
    assert excerpt("alpha beta " * 50, "zephyrine", 40).startswith("alpha beta")


def test_wide_characters_take_half_as_many() -> None:
    shown = excerpt("系统把機器推論洗成權威事實了" * 20, "權威", 40)
    assert len(shown) <= 20
    assert "權威" in shown


@pytest.mark.parametrize("columns", range(5, 60, 7))
def test_never_longer_than_asked(columns: int) -> None:
    assert len(excerpt("some words, " * 40 + "needle" * 30, "needle", columns)) <= columns


def test_function_words_do_not_point_anywhere() -> None:
    assert words_of("what did the user say") == ["user", "say"]
    assert pattern_of("the of and") is None
    assert words_of("東京都庁") == ["東京", "京都", "都庁"]


def test_an_odd_query_is_no_regular_expression() -> None:
    assert excerpt("a(b) c++ " * 50, "c++ (x [", 40)
