from __future__ import annotations

import pytest

from colmem.recall.instructions import Format, read_instructions


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, Format()),
        ("", Format()),
        ("Answer politely and in English.", Format()),
        ("one sentence", Format(sentences_max=1)),
        ("Answer in a single sentence, please.", Format(sentences_max=1)),
        ("At most three short sentences.", Format(sentences_max=3)),
        ("one-sentence answer", Format(sentences_max=1)),
        ("bullets", Format(bullets=True)),
        ("Use bullet points", Format(bullets=True)),
        ("as a bulleted list of facts", Format(bullets=True)),
        ("two bullet points in at most 40 words", Format(True, 2, 40)),
        ("in at most 20 words", Format(words_max=20)),
        ("No more than fifty words.", Format(words_max=50)),
        ("25 words or fewer", Format(words_max=25)),
        ("under 30 words", Format(words_max=29)),
        ("within 100 characters", Format(chars_max=100)),
        ("max 0 words", Format(words_max=1)),
        ("Be brief.", Format(sentences_max=2)),
        ("Write a brief as markdown bullets.", Format(bullets=True)),
    ],
)
def test_what_is_asked_of_length_and_form_is_read(text: str | None, wanted: Format) -> None:
    assert read_instructions(text) == wanted
