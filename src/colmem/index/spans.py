"""Where the passages of a long text begin and end; pure.

Windows of about ``PASSAGE_WORDS`` words, each beginning half a window after the one before; of a
conversation windows of whole turns. A change of any rule needs another ``SPANS_VERSION``: passages
cut by another version are cut anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SPANS_VERSION: Final = 1
LONG_WORDS: Final = 150
"""A text of more words has passages."""
PASSAGE_WORDS: Final = 80
"""Words of a passage; chosen on SciFact, see bench/results/quality.md."""
_STEP_WORDS: Final = PASSAGE_WORDS // 2

# In scripts without spaces two characters count as a word: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
_WORD: Final = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+")


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a text."""

    start: int
    end: int


class _Part(NamedTuple):
    # What is never cut: a word, or a turn of a conversation.
    span: Span
    n_words: int


def passage_spans(text: str, turns: Sequence[Span] = ()) -> list[Span]:
    """The overlapping passages of a text, in order; none unless it is long.

    turns : those of a conversation, in order; a turn longer than a passage is cut like a text.
    """
    if len(text) <= LONG_WORDS or (text.isascii() and text.count(" ") < LONG_WORDS // 2):
        return []
    words = [Span(*match.span()) for match in _WORD.finditer(text)]
    if len(words) <= LONG_WORDS:
        return []
    parts = [*_turn_parts(words, turns)] if turns else [_Part(word, 1) for word in words]
    return [*_windows(parts)]


def _windows(parts: Sequence[_Part]) -> Iterator[Span]:
    first = 0
    while True:
        last, n_words = first, 0
        while last < len(parts) and n_words < PASSAGE_WORDS:
            n_words += parts[last].n_words
            last += 1
        yield Span(parts[first].span.start, parts[last - 1].span.end)
        if last == len(parts):
            return
        n_words = 0
        while n_words < _STEP_WORDS:
            n_words += parts[first].n_words
            first += 1


def _turn_parts(words: Sequence[Span], turns: Sequence[Span]) -> Iterator[_Part]:
    at = 0
    for turn in turns:
        held = at
        while at < len(words) and words[at].start < turn.end:
            at += 1
        own = words[held:at]
        if len(own) > PASSAGE_WORDS:
            yield from (_Part(word, 1) for word in own)
        elif own:
            yield _Part(Span(own[0].start, own[-1].end), len(own))
