from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmem.recall.sentences import UNIT_CHARS_MAX, WHOLE_CHARS_MAX, split_units

FILL = " Filler words make the text longer than what is quoted whole, again and again and again."


def _units(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_units(text)]


def _long(text: str) -> list[str]:
    """Units of a text long enough to be split, without the filler's."""
    return [unit for unit in _units(text + FILL * 3) if unit != FILL.strip()]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith met Mr. J. Doe in the U.S. embassy.", "They spoke for 3.5 hours."],
        ["Use e.g. a list, i.e. an array.", "Version 1.2.3 is out!", "Is it?"],
        ['He said "stop."', "Then he left."],
        ["It costs approx. 5 dollars.", "See Fig. 3 for more."],
        ["Wait... what?", "No."],
        ["See https://a.example/x.y?z=1 for it.", "Done."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    assert _long(" ".join(sentences)) == sentences


def test_scripts_without_spaces_end_sentences_too() -> None:
    assert _units("黑豹队赢了。" * 30 + "他们说：「好！」" * 10)[:2] == [
        "黑豹队赢了。",
        "黑豹队赢了。",
    ]
    assert _units(("यह एक वाक्य है। " * 20).strip())[0] == "यह एक वाक्य है।"


def test_a_short_text_is_one_unit() -> None:
    assert _units("  One. Two. Three.  ") == ["One. Two. Three."]


def test_turns_and_list_items_stay_apart_and_wrapped_prose_together() -> None:
    text = (
        "user: when?\nassistant: On Monday,\nI think.\n\n- first\n- second\n1. third" + "\n" + FILL
    )
    assert _units(text)[:5] == [
        "user: when?",
        "assistant: On Monday,\nI think.",
        "- first",
        "- second",
        "1. third",
    ]


def test_code_stays_in_one_piece() -> None:
    code = "def area(r):\n    pi = 3.14\n    return pi * r ** 2"
    assert code in _units(f"It is short.\n\n{code}\n\nThat is all. {FILL * 3}")
    fenced = _units(f"Before.\n```python\nx = 1\ny = 2\n```\nAfter.{FILL * 3}")
    assert fenced[:3] == ["Before.", "x = 1\ny = 2", "After."]


def test_a_long_unit_is_cut_at_a_clause() -> None:
    text = ", ".join(f"clause number {i}" for i in range(100))
    units = _units(text)
    assert all(len(unit) <= UNIT_CHARS_MAX for unit in units)
    assert all(unit.endswith(",") for unit in units[:-1])


@given(st.text(alphabet=st.sampled_from("aB1 .\n\t。!?:`'\"(){}-#é中"), max_size=900))
def test_units_are_spans_in_order_that_leave_out_no_word(text: str) -> None:
    spans = split_units(text)
    at = 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        assert text[start:end].strip() == text[start:end]
        assert end - start <= max(WHOLE_CHARS_MAX, UNIT_CHARS_MAX)
        at = end
    if "```" not in text:
        kept = "".join(text[start:end] for start, end in spans)
        assert "".join(kept.split()) == "".join(text.split())


def test_a_short_function_is_quoted_whole() -> None:
    code = 'def rounded(x):\n    """Give the nearest int."""\n\n    n = floor(x)\n\n    return n'
    assert _units(code) == [code]
    assert len(_units(code + "\n    # and so on" * 40)) > 1
