"""Splits a text into quotable units: exact spans, each a sentence, a line or a block of code.

Rule-based, for any script: full stops of Latin and CJK scripts, abbreviations, initials, numbers,
hard-wrapped prose, lists and code. Every span is a substring of the text without outer whitespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

WHOLE_CHARS_MAX = 240  # a text of one line up to this length is quoted whole
UNIT_CHARS_MAX = 400  # a longer unit is cut at a clause or a space


class Span(NamedTuple):
    """Half-open range of code points of a text."""

    start: int
    end: int


_ABBREVIATION_LIST = (
    "mr mrs ms dr prof sr jr st vs etc fig figs eq eqs nos vol vols al approx dept est gen gov "
    "hon inc ltd co corp cf ca ed eds e.g i.e u.s u.k a.m p.m ph.d jan feb mar apr jun jul aug "
    "sep sept oct nov dec mon tue wed thu fri sat sun z.b bzw usw d.h p.ej sra resp rev sec ch pp"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
# A stop, then what closes around it; CJK stops end a sentence without a space.
_STOP = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？｡！？]+[」』”’）)\]]*|[।॥؟۔]+(?=\s|$))")
_WORD_BEFORE = re.compile(r"(\S+)$")
_CODE_LINE = re.compile(
    r"^(?:\s{4,}|\t)|[{};]\s*$|^\s*(?:def|class|import|from|return|if|for|while|elif|else|try|"
    r"except|with|fn|func|function|const|let|var|public|private|static|#include)\b.*[:({;]\s*$|"
    r"^\s*[\w.\[\]]+\s*=[^=]|^\s*@\w|^\s*[)}\]]"
)
_LIST_LINE = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#{1,6})\s")
_CLAUSE = re.compile(r"[;:,，、；：]\s*")
_SPACE = re.compile(r"\s+")


def split_units(text: str) -> list[Span]:
    """Spans of the quotable units of a text, in order; none for a blank text."""
    whole = _trimmed(text, Span(0, len(text)))
    if whole is None:
        return []
    if whole.end - whole.start <= WHOLE_CHARS_MAX and "\n" not in text[whole.start : whole.end]:
        return [whole]
    if whole.end - whole.start <= UNIT_CHARS_MAX and _is_mostly_code(text):
        return [whole]
    units: list[Span] = []
    for block, is_code in _blocks(text):
        parts = [block] if is_code else _sentences(text, block)
        for part in parts:
            trimmed = _trimmed(text, part)
            if trimmed is not None:
                units += _cut(text, trimmed)
    return units


def _is_mostly_code(text: str) -> bool:
    """Whether a text is source code: quoted in parts, a short function would say nothing."""
    lines = [line for line in text.split("\n") if line.strip()]
    return 3 * sum(bool(_CODE_LINE.search(line)) for line in lines) > 2 * len(lines) > 2


def _blocks(text: str) -> Iterator[tuple[Span, bool]]:
    """Runs of lines that belong together, and whether each is code."""
    start, was_code = 0, False
    in_fence = False
    at = 0
    previous = ""
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```")
        is_code = not is_fence and (in_fence or bool(_CODE_LINE.search(line)))
        begins = (
            is_fence
            or is_code != was_code
            or not line.strip()
            or (not is_code and not _continues(previous, line))
        )
        if begins and at > start:
            yield Span(start, at), was_code
            start = at
        if is_fence:  # The fence itself is never quoted.
            in_fence = not in_fence
            start = min(at + len(line) + 1, len(text))
            is_code = False
        was_code = is_code
        previous = line
        at += len(line) + 1
    if len(text) > start:
        yield Span(start, len(text)), was_code


def _continues(previous: str, line: str) -> bool:
    """Whether a line of prose goes on a hard-wrapped sentence."""
    first = line.lstrip()[:1]
    return (
        bool(previous.strip())
        and not _LIST_LINE.match(line)
        and (first.islower() or first.isdigit() or previous.rstrip()[-1] in ",;-–(")
    )


def _sentences(text: str, block: Span) -> list[Span]:
    spans: list[Span] = []
    start = block.start
    for stop in _STOP.finditer(text, block.start, block.end):
        if _ends_sentence(text, start, stop, block.end):
            spans.append(Span(start, stop.end()))
            start = stop.end()
    spans.append(Span(start, block.end))
    return spans


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    if not stop.group().startswith("."):
        return True
    after = text[stop.end() : end].lstrip()
    if after and after[0].islower():
        return False
    word = _WORD_BEFORE.search(text, start, stop.start())
    if word is None or stop.group() != ".":
        return True
    before = word.group().lstrip("([\"'“‘").lower()
    # "A. Smith", "e.g. this", "Fig. 3", and the "1." of a list go on.
    if len(before) == 1 and before.isalpha():
        return False
    if before.isdigit() and word.start() == start + len(text[start:end]) - len(
        text[start:end].lstrip()
    ):
        return False
    if before == "no":
        return not after[:1].isdigit()
    return before not in _ABBREVIATIONS


def _cut(text: str, span: Span) -> list[Span]:
    """A unit that is too long, in parts that end at a clause or a space."""
    parts: list[Span] = []
    start = span.start
    while span.end - start > UNIT_CHARS_MAX:
        at = start + UNIT_CHARS_MAX
        for pattern in (_CLAUSE, _SPACE):
            breaks = [m.end() for m in pattern.finditer(text, start, start + UNIT_CHARS_MAX)]
            if breaks and breaks[-1] - start > UNIT_CHARS_MAX // 2:
                at = breaks[-1]
                break
        part = _trimmed(text, Span(start, at))
        if part is not None:
            parts.append(part)
        start = at
    rest = _trimmed(text, Span(start, span.end))
    return parts if rest is None else [*parts, rest]


def _trimmed(text: str, span: Span) -> Span | None:
    part = text[span.start : span.end]
    bare = part.strip()
    if not bare:
        return None
    start = span.start + len(part) - len(part.lstrip())
    return Span(start, start + len(bare))
