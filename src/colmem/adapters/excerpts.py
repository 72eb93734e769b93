"""Cuts a short excerpt out of a text, around the words of a query where it holds them."""

from __future__ import annotations

import re

from colmem.function_words import FUNCTION_WORDS

_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SPACE = re.compile(r"\s+")


def words_of(query: str) -> list[str]:
    """The words of a query worth pointing at; runs of CJK as pairs of characters."""
    words: dict[str, None] = {}
    for word in _WORD.findall(query):
        if _CJK.search(word):
            words.update((word[i : i + 2], None) for i in range(max(1, len(word) - 1)))
        elif word.casefold() not in FUNCTION_WORDS:
            words[word] = None
    return list(words)


def pattern_of(query: str) -> str | None:
    """A regular expression for the query's words, each at the beginning of one; None without."""
    words = sorted(words_of(query), key=len, reverse=True)
    if not words:
        return None
    return "(?i)" + "|".join(
        re.escape(word) if _CJK.search(word) else rf"\b{re.escape(word)}" for word in words
    )


def excerpt(text: str, query: str, columns: int) -> str:
    """One line of the text, at most ``columns`` wide, where the query's words are densest."""
    line = _SPACE.sub(" ", text).strip()
    chars = columns
    if _CJK.search(line[:columns]):
        chars = columns // 2  # such characters are two columns wide
    if len(line) <= chars:
        return line
    start = _best_start(line, query, chars)
    end = min(start + chars - 2, len(line))
    if end < len(line) and (space := line.rfind(" ", end - chars // 5, end)) > start:
        end = space
    shown = line[start:end].strip()
    return f"{'…' if start else ''}{shown}{'…' if end < len(line) else ''}"


def _best_start(line: str, query: str, chars: int) -> int:
    pattern = pattern_of(query)
    found = [match.start() for match in re.finditer(pattern, line)] if pattern else []
    if not found:
        return 0
    best = max(found, key=lambda at: (sum(at <= other < at + chars * 0.8 for other in found), -at))
    if best < chars * 0.5:
        return 0
    sentence = max(line.rfind(mark, best - chars // 2, best) for mark in (". ", "! ", "? "))
    if sentence >= 0:
        return sentence + 2
    space = line.rfind(" ", best - chars // 5, best)
    return space + 1 if space >= 0 else best
