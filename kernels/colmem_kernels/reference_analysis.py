"""Twin of the analysis kernel: the rules from text to terms, in plain Python over code points.

The oracle of the kernel's tests. The text is in NFKC already; a table gives each code point a class
and its folded form. Beside the terms come single characters of scripts without spaces, which a
query of one character looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SEPARATOR, LETTER, UPPER, DIGIT, MARK, DROP = 0, 1, 2, 3, 4, 5
CJ, HANGUL, SEA, SYMBOL, JOINER, APOSTROPHE = 6, 7, 8, 9, 10, 11
"""Classes of code points. CJ, HANGUL and SEA (Thai, Lao, Khmer, Burmese) become bigrams."""

WHOLE_WORDS_MAX = 8
WHOLE_BYTES_MAX = 64
"""A longer compound is found by its parts only."""
TERM_BYTES_MAX = 128
"""A longer word is cut, the same way in items and queries."""
_CLITICS = frozenset(["s", "t", "d", "m", "ll", "re", "ve"])


class Table(NamedTuple):
    """Class and folding of every code point, in pages of 256.

    page_of : uint16 (4352,); classes : uint8 (n_pages * 256,); folds : uint32 (n_pages * 256,),
    0 for itself, a code point, or 0x80000000 | start << 8 | length into tails : uint32 (n,)
    """

    page_of: npt.NDArray[np.uint16]
    classes: npt.NDArray[np.uint8]
    folds: npt.NDArray[np.uint32]
    tails: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Table:
        """Take the arrays of a table by their names."""
        return cls(*(np.ascontiguousarray(arrays[name]) for name in cls._fields))

    def look_up(self, char: str) -> tuple[int, str]:
        """Class and folded form of one character."""
        code = ord(char)
        at = int(self.page_of[code >> 8]) * 256 + (code & 255)
        fold = int(self.folds[at])
        if fold == 0:
            return int(self.classes[at]), char
        if fold < 0x80000000:
            return int(self.classes[at]), chr(fold)
        start, length = fold >> 8 & 0x7FFFFF, fold & 255
        tail = self.tails[start : start + length]
        return int(self.classes[at]), "".join(chr(int(c)) for c in tail)


class _Word(NamedTuple):
    """A run of letters, digits and marks: folded characters with the class of their source."""

    chars: list[tuple[int, str]]
    joiner: str  # what stands between the word before and this one; "" for the first

    @property
    def text(self) -> str:
        return "".join(char for _, char in self.chars)


def analyse(
    text: str, table: Table, stem: Callable[[str], str] = lambda word: word
) -> tuple[list[str], list[str]]:
    """Terms of a text, and the single characters of its runs without spaces, both in order."""
    text = "".join(char for char in text if table.look_up(char)[0] != DROP)
    coded = [table.look_up(char) for char in text]
    terms: list[str] = []
    singles: list[str] = []
    at = 0
    while at < len(coded):
        kind = coded[at][0]
        if kind in (LETTER, UPPER, DIGIT, MARK):
            words, at = _compound(text, coded, at)
            _emit_compound(words, stem, terms)
            at = _emit_sharp(text, at, words, terms)
        elif kind in (CJ, HANGUL, SEA):
            run = []
            while at < len(coded) and coded[at][0] == kind:
                run.append(coded[at][1])
                at += 1
            singles.extend(run)
            terms.extend(run if len(run) == 1 else map("".join, pairwise(run)))
        else:
            if kind == SYMBOL:
                terms.append(coded[at][1])
            at += 1
    return terms, singles


def _compound(text: str, coded: list[tuple[int, str]], at: int) -> tuple[list[_Word], int]:
    """Words joined by single joiners, and the position after the last."""
    words: list[_Word] = []
    joiner = ""
    while True:
        chars = []
        while at < len(coded) and coded[at][0] in (LETTER, UPPER, DIGIT, MARK):
            chars.append(coded[at])
            at += 1
        words.append(_Word(chars, joiner))
        if at + 1 >= len(coded) or coded[at][0] not in (JOINER, APOSTROPHE):
            return words, at
        after = coded[at + 1][0]
        if after not in (LETTER, UPPER, DIGIT):
            return words, at
        if text[at] == "," and not (chars[-1][0] == DIGIT and after == DIGIT):
            return words, at
        joiner = "'" if coded[at][0] == APOSTROPHE else text[at]
        at += 1


def _emit_sharp(text: str, at: int, words: list[_Word], terms: list[str]) -> int:
    """``C++`` and ``C#``: a single letter directly followed by the sign is a term with it."""
    if len(words[-1].chars) == 1 and words[-1].chars[0][0] in (LETTER, UPPER):
        for sign in ("++", "#"):
            if text.startswith(sign, at):
                terms.append(words[-1].text + sign)
                return at + len(sign)
    return at


def _emit_compound(words: list[_Word], stem: Callable[[str], str], terms: list[str]) -> None:
    is_number = len(words) > 1 and all(
        word.joiner in ("", ",") and all(kind == DIGIT for kind, _ in word.chars) for word in words
    )
    for word in words if not is_number else []:
        if word.joiner == "'" and word.text in _CLITICS:
            continue
        pieces = _camel_pieces(word)
        terms.extend(stem(_cut(piece)) for piece in pieces)
        if pieces != [word.text]:
            terms.append(stem(_cut(word.text)))
    if len(words) == 1 or len(words) > WHOLE_WORDS_MAX:
        return
    if len(words) == 2 and words[1].joiner == "'" and words[1].text in _CLITICS - {"t"}:
        return
    whole = ""
    for before, word in zip([None, *words], words, strict=False):
        between_digits = (
            before is not None and before.chars[-1][0] == DIGIT and word.chars[0][0] == DIGIT
        )
        whole += ("." if word.joiner == "." and between_digits else "") + word.text
    if len(whole.encode()) <= WHOLE_BYTES_MAX:
        terms.append(stem(whole))


def _cut(word: str) -> str:
    return word.encode()[:TERM_BYTES_MAX].decode(errors="ignore")


def _camel_pieces(word: _Word) -> list[str]:
    """Split before a capital that follows a small letter or starts a capitalised word.

    The s of GPUs is left out.
    """
    chars = word.chars
    kinds = [kind for kind, _ in chars]
    if kinds[-3:] == [UPPER, UPPER, LETTER] and chars[-1][1] == "s":
        chars = chars[:-1]
    pieces = [""]
    for i, (kind, char) in enumerate(chars):
        if kind == UPPER and i > 0:
            starts_word = i + 1 < len(chars) and kinds[i + 1] == LETTER
            if kinds[i - 1] == LETTER or starts_word:
                pieces.append("")
        pieces[-1] += char
    return pieces
