"""Where passages of long texts begin and end."""

from itertools import pairwise

import pytest

from colmem.index.spans import LONG_WORDS, PASSAGE_WORDS, Span, passage_spans

WORDS = [f"word{n}" for n in range(1000)]


def _texts(text: str, turns: list[Span] | None = None) -> list[str]:
    return [text[start:end] for start, end in passage_spans(text, turns or [])]


@pytest.mark.parametrize("n", [0, 1, PASSAGE_WORDS, LONG_WORDS])
def test_a_short_text_has_none(n: int) -> None:
    assert passage_spans(" ".join(WORDS[:n])) == []
    assert passage_spans("x" * 10_000) == []


@pytest.mark.parametrize("n", [LONG_WORDS + 1, 333, 1000])
def test_passages_overlap_by_half_and_cover_the_text(n: int) -> None:
    text = "\n ".join(WORDS[:n]) + " "
    passages = [passage.split() for passage in _texts(text)]
    assert all(len(passage) == PASSAGE_WORDS for passage in passages[:-1])
    assert 0 < len(passages[-1]) <= PASSAGE_WORDS
    assert passages[0][0] == WORDS[0]
    assert passages[-1][-1] == WORDS[n - 1]
    for before, after in pairwise(passages):
        assert after[0] == before[PASSAGE_WORDS // 2]


def test_two_characters_are_a_word_in_scripts_without_spaces() -> None:
    assert passage_spans("字" * 2 * LONG_WORDS) == []
    text = "字" * (2 * LONG_WORDS + 2)
    assert [end - start for start, end in passage_spans(text)][:2] == [2 * PASSAGE_WORDS] * 2
    assert passage_spans(text)[-1].end == len(text)


def _turns(sizes: list[int]) -> tuple[str, list[Span]]:
    lines = [" ".join([f"turn{n}:", *WORDS[: size - 1]]) for n, size in enumerate(sizes)]
    ends = [sum(map(len, lines[: n + 1])) + n for n in range(len(lines))]
    spans = [Span(end - len(line), end) for line, end in zip(lines, ends, strict=True)]
    return "\n".join(lines), spans


def test_passages_of_a_conversation_are_windows_of_whole_turns() -> None:
    text, turns = _turns([10] * 30)
    passages = _texts(text, turns)
    for passage in passages:
        assert passage.startswith("turn")
        assert passage in text
        assert len(passage.split()) % 10 == 0
    assert [passage.count("turn") for passage in passages[:3]] == [8, 8, 8]
    assert passages[1].startswith("turn4:")
    assert passages[-1].splitlines()[-1] == text.splitlines()[-1]


def test_a_long_turn_is_cut_like_a_text() -> None:
    text, turns = _turns([10, 500, 10])
    passages = _texts(text, turns)
    assert max(len(passage.split()) for passage in passages) <= PASSAGE_WORDS + 10
    assert len(passages) > 500 / PASSAGE_WORDS
    assert passages[-1].endswith(text[-20:])
