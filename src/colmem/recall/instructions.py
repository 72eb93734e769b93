"""Reads what a recall's instructions ask of length and format; anything else is left alone."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBERS = {
    "a": 1, "one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twenty": 20, "thirty": 30,
    "fifty": 50, "hundred": 100,
}  # fmt: skip
_N = r"(\d{1,6}|" + "|".join(_NUMBERS) + r")"
_SENTENCES = re.compile(rf"\b{_N}(?:\s+(?:short|brief|complete))?[\s-]+sentences?\b", re.I)
_BULLETS_N = re.compile(rf"\b{_N}\s+(?:\w+\s+)?bullet(?:s|\s+points?)\b", re.I)
_BULLETS = re.compile(r"\bbullet(?:s|ed)?\b|\bbullet[\s-]points?\b|\bas an? (?:\w+ )?list\b", re.I)
_BELOW = r"(?:under|below|less than|fewer than)"
_UNITS = r"(words?|characters?|chars?)"
_LIMIT_BEFORE = re.compile(
    rf"\b(at most|no more than|not more than|up to|within|max(?:imum)?(?: of)?|{_BELOW}|in)"
    rf"\s+{_N}\s+{_UNITS}\b",
    re.I,
)
_LIMIT_AFTER = re.compile(
    rf"\b{_N}\s+{_UNITS}\s+(?:or (?:less|fewer)|max(?:imum)?|at most|tops?)\b", re.I
)
_SHORT = re.compile(r"\b(?:brief(?:ly)?|short(?:ly)?|concise(?:ly)?|terse(?:ly)?)\b", re.I)


_SHORT_SENTENCES = 2


class Format(NamedTuple):
    """What an answer must keep to; None where nothing was asked.

    Word limits count the citation marks as words.
    """

    bullets: bool = False
    sentences_max: int | None = None
    words_max: int | None = None
    chars_max: int | None = None


def read_instructions(instructions: str | None) -> Format:
    """Recognise "one sentence", "bullets", "in at most N words or characters", "briefly"."""
    text = instructions or ""
    words_max = chars_max = None
    limits = [(m[1], m[2], m[3]) for m in _LIMIT_BEFORE.finditer(text)]
    limits += [("", m[1], m[2]) for m in _LIMIT_AFTER.finditer(text)]
    for bound, number, unit in limits:
        limit = _number(number) - bool(re.fullmatch(_BELOW, bound, re.I))
        if unit.lower().startswith("word"):
            words_max = limit if words_max is None else min(words_max, limit)
        else:
            chars_max = limit if chars_max is None else min(chars_max, limit)
    count = _SENTENCES.search(text) or _BULLETS_N.search(text)
    bullets = bool(_BULLETS.search(text))
    sentences_max = None
    if count:
        sentences_max = _number(count[1])
    elif _SHORT.search(text) and not bullets:
        sentences_max = _SHORT_SENTENCES
    return Format(
        bullets=bullets,
        sentences_max=None if sentences_max is None else max(1, sentences_max),
        words_max=None if words_max is None else max(1, words_max),
        chars_max=None if chars_max is None else max(1, chars_max),
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]
