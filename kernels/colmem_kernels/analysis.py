# ruff: noqa: SIM109
# (membership in a tuple compiles to a loop, and generators do not compile)
"""From UTF-8 text to the terms of the lexical index, in three passes over a batch of texts.

Decode characters into classes and folded forms, find the terms as spans of characters, write them
out. The rules are told by the twin in ``reference_analysis``. One kernel for all three
would compile for many seconds.
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from colmem_kernels._jit import kernel
from colmem_kernels.reference_analysis import (
    APOSTROPHE,
    CJ,
    DIGIT,
    DROP,
    JOINER,
    LETTER,
    MARK,
    SYMBOL,
    TERM_BYTES_MAX,
    UPPER,
    WHOLE_BYTES_MAX,
    WHOLE_WORDS_MAX,
)

_U8 = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_U16 = nb.types.Array(nb.uint16, 1, "C", readonly=True)
_U32 = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_I32 = nb.types.Array(nb.int32, 1, "C", readonly=True)
_I64 = nb.types.Array(nb.int64, 1, "C", readonly=True)
_OUT_U8 = nb.types.Array(nb.uint8, 1, "C")
_OUT_I32 = nb.types.Array(nb.int32, 1, "C")
_OUT_I64 = nb.types.Array(nb.int64, 1, "C")

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

FOLDED_PER_BYTE: Final = 4
SPANS_PER_CHAR: Final = 2
OUT_PER_FOLDED: Final = 6
"""Sizes that always suffice, per unit of input."""

WORD, WHOLE, SINGLE = 0, 1, 2
"""Kinds of spans: taken as it is, with joiners left out, a single character of a run."""

_SPACE, _DOT, _COMMA, _PLUS, _SHARP = (ord(c) for c in " .,+#")
_C_S, _C_T, _C_D, _C_M, _C_L, _C_R, _C_V, _C_E = (ord(c) for c in "stdmlrve")
_FOLD_IS_TAIL = 0x80000000
# First bytes of UTF-8 sequences of two, three and four.
_LONG, _LONGER, _LONGEST = 0xC0, 0xE0, 0xF0


@kernel(
    nb.int64(_U8, _I64, _U16, _U8, _U32, _U32, _OUT_U8, _OUT_I32, _OUT_U8, _OUT_I64)
)  # fmt: skip
def decode_texts(
    texts: Bytes,
    offsets: Offsets,
    page_of: npt.NDArray[np.uint16],
    classes: Bytes,
    folds: npt.NDArray[np.uint32],
    tails: npt.NDArray[np.uint32],
    kinds: Bytes,
    places: Places,
    folded: Bytes,
    char_offsets: Offsets,
) -> int:
    """Decode texts into the class and folded bytes of each character; dropped ones leave no trace.

    texts : uint8 (n_bytes,), UTF-8 in NFKC; offsets : int64 (n + 1,), text i is
    ``texts[offsets[i]:offsets[i + 1]]``; page_of, classes, folds, tails : the table
    kinds : uint8 (n_bytes,), places : int32 (n_bytes + 1,), folded : uint8 (4 n_bytes,),
    char_offsets : int64 (n + 1,), written: character c is ``folded[places[c]:places[c + 1]]``
    Returns the number of characters. O(n_bytes).
    """
    n_chars = 0
    length = 0
    at = offsets[0]
    first_page = nb.int64(page_of[0]) * 256
    for text in range(offsets.shape[0] - 1):
        char_offsets[text] = n_chars
        while at < offsets[text + 1]:
            code = nb.int64(texts[at])
            at += 1
            if code < 0x80:
                # Folding is lower case here, and nothing is dropped.
                kinds[n_chars] = classes[first_page + code]
                places[n_chars] = length
                folded[length] = code + 32 if 65 <= code <= 90 else code
                n_chars += 1
                length += 1
                continue
            n_more = 1 if code < _LONGER else 2 if code < _LONGEST else 3
            code &= 63 >> n_more
            for _ in range(n_more):
                code = code << 6 | nb.int64(texts[at]) & 63
                at += 1
            entry = nb.int64(page_of[code >> 8]) * 256 + (code & 255)
            if classes[entry] == DROP:
                continue
            kinds[n_chars] = classes[entry]
            places[n_chars] = length
            n_chars += 1
            fold = nb.int64(folds[entry])
            first_tail = 0
            n_out = 1
            if fold >= _FOLD_IS_TAIL:
                first_tail = (fold & 0x7FFFFFFF) >> 8
                n_out = fold & 255
            elif fold:
                code = fold
            for i in range(n_out):
                if fold >= _FOLD_IS_TAIL:
                    code = nb.int64(tails[first_tail + i])
                if code < 0x80:
                    folded[length] = code
                    length += 1
                    continue
                n_more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
                lead = _LONG if n_more == 1 else _LONGER if n_more == 2 else _LONGEST
                folded[length] = lead | code >> 6 * n_more
                for j in range(1, n_more + 1):
                    folded[length + j] = 0x80 | code >> 6 * (n_more - j) & 63
                length += n_more + 1
    char_offsets[offsets.shape[0] - 1] = n_chars
    places[n_chars] = length
    return n_chars


@kernel(None, inline=True)
def _is_clitic(folded: Bytes, first: int, last: int) -> Any:
    """What follows the apostrophe in it's, don't, he'd, I'm, we'll, they're, we've."""
    a = folded[first]
    if last - first == 1:
        return a == _C_S or a == _C_T or a == _C_D or a == _C_M
    b = folded[last - 1]
    is_ll = a == _C_L and b == _C_L
    return last - first == 2 and (is_ll or (b == _C_E and (a == _C_R or a == _C_V)))


@kernel(None, inline=True)
def _splits_before(kinds: Bytes, i: int, last: int) -> Any:
    """Whether a word is split before its character i: at a capital that begins a part."""
    is_capital = kinds[i] == UPPER
    starts_word = i + 1 < last and kinds[i + 1] == LETTER
    return is_capital and (kinds[i - 1] == LETTER or starts_word)


@kernel(None, inline=True)
def _is_plural(kinds: Bytes, places: Places, folded: Bytes, first: int, last: int) -> Any:
    """Whether a word ends in the s of a plural of capitals: GPUs, PDFs."""
    return (
        last - first > 2
        and kinds[last - 1] == LETTER
        and kinds[last - 2] == UPPER
        and kinds[last - 3] == UPPER
        and places[last] - places[last - 1] == 1
        and folded[places[last - 1]] == _C_S
    )


@kernel(None, inline=True)
def _compound_end(
    kinds: Bytes, places: Places, folded: Bytes, first: int, n: int
) -> tuple[int, int, int, bool, bool]:
    """Find the end of words joined by single joiners.

    Returns it, the start of the last word, the number of words, whether they are a number written
    with commas, and whether a capital stands inside a word.
    """
    last = first
    word = first
    n_words = 1
    is_number = True
    has_capital = False
    while True:
        while last < n and LETTER <= kinds[last] <= MARK:
            is_number &= kinds[last] == DIGIT
            has_capital |= (kinds[last] == UPPER) & (last > word)
            last += 1
        if last + 1 >= n or kinds[last] < JOINER or not LETTER <= kinds[last + 1] <= DIGIT:
            break
        is_comma = folded[places[last]] == _COMMA
        if is_comma and (kinds[last - 1] != DIGIT or kinds[last + 1] != DIGIT):
            break
        is_number &= is_comma
        n_words += 1
        last += 1
        word = last
    return last, word, n_words, is_number and n_words > 1, has_capital


@kernel(None, inline=True)
def _span(first: int, last: int, kind: int) -> int:
    """Pack a span of characters: its start, length and kind."""
    return first << 32 | (last - first) << 2 | kind


@kernel(nb.int64(_U8, _I32, _U8, _I64, _OUT_I64, _OUT_I64))
def find_terms(
    kinds: Bytes,
    places: Places,
    folded: Bytes,
    char_offsets: Offsets,
    spans: Offsets,
    span_offsets: Offsets,
) -> int:
    """Find the terms of decoded texts, as spans of characters.

    kinds, places, folded, char_offsets : of :func:`decode_texts`
    spans : int64 (2 n_chars,) and span_offsets : int64 (n + 1,), written
    Returns the number of spans. O(n_chars).
    """
    count = 0
    for text in range(char_offsets.shape[0] - 1):
        span_offsets[text] = count
        i = char_offsets[text]
        n = char_offsets[text + 1]
        while i < n:
            kind = kinds[i]
            first = i
            if kind < LETTER or kind >= SYMBOL:
                i += 1
                if kind == SYMBOL:
                    spans[count] = _span(first, i, WORD)
                    count += 1
                continue
            if kind >= CJ:
                while i < n and kinds[i] == kind:
                    i += 1
                for char in range(first, i):
                    spans[count] = _span(char, char + 1, SINGLE)
                    count += 1
                    if char + 1 < i or i - first == 1:
                        spans[count] = _span(char, min(char + 2, i), WORD)
                        count += 1
                continue
            i, last_word, n_words, is_number, has_capital = _compound_end(
                kinds, places, folded, first, n
            )
            is_clitic = False
            word = i if is_number else first
            if n_words == 1 and not has_capital:
                spans[count] = _span(first, i, WORD)
                count += 1
                word = i
            while word < i:
                end = word
                while end < i and LETTER <= kinds[end] <= MARK:
                    end += 1
                is_clitic = (
                    word > first
                    and kinds[word - 1] == APOSTROPHE
                    and _is_clitic(folded, places[word], places[end])
                )
                piece = word
                if has_capital and not is_clitic:
                    stop = end - 1 if _is_plural(kinds, places, folded, word, end) else end
                    for char in range(word + 1, stop):
                        if _splits_before(kinds, char, stop):
                            spans[count] = _span(piece, char, WORD)
                            count += 1
                            piece = char
                    if piece > word or stop < end:
                        spans[count] = _span(piece, stop, WORD)
                        count += 1
                if not is_clitic:
                    spans[count] = _span(word, end, WORD)
                    count += 1
                word = end + 1
            # Of John's and we'll the first word is enough; don't stays whole as well.
            is_first_enough = n_words == 2 and is_clitic and folded[places[last_word]] != _C_T
            if 1 < n_words <= WHOLE_WORDS_MAX and not is_first_enough:
                spans[count] = _span(first, i, WHOLE)
                count += 1
            # C++ and C#: a single letter directly followed by the sign.
            if i - last_word == 1 and i < n and LETTER <= kinds[last_word] <= UPPER:
                sign = folded[places[i]]
                length = 0
                if sign == _SHARP:
                    length = 1
                elif sign == _PLUS and i + 1 < n and folded[places[i + 1]] == _PLUS:
                    length = 2
                if length:
                    i += length
                    spans[count] = _span(last_word, i, WORD)
                    count += 1
    span_offsets[char_offsets.shape[0] - 1] = count
    return count


@kernel(nb.void(_U8, _I32, _U8, _I64, _I64, _OUT_U8, _OUT_I64, _OUT_U8, _OUT_I64))
def write_terms(
    kinds: Bytes,
    places: Places,
    folded: Bytes,
    spans: Offsets,
    span_offsets: Offsets,
    out: Bytes,
    out_offsets: Offsets,
    singles: Bytes,
    singles_offsets: Offsets,
) -> None:
    """Write the terms of spans as UTF-8, with a space after each.

    The first five : of :func:`decode_texts` and :func:`find_terms`
    out, singles : uint8 (6 n_folded,), out_offsets, singles_offsets : int64 (n + 1,), written; the
    terms of text i are ``out[out_offsets[i]:out_offsets[i + 1]]``
    A term is cut to TERM_BYTES_MAX; a whole of more than WHOLE_BYTES_MAX is left out. O(n_folded).
    """
    at = 0
    at_single = 0
    for text in range(span_offsets.shape[0] - 1):
        out_offsets[text] = at
        singles_offsets[text] = at_single
        for span in range(span_offsets[text], span_offsets[text + 1]):
            first = spans[span] >> 32
            last = first + (spans[span] >> 2 & 0x3FFFFFFF)
            kind = spans[span] & 3
            if kind == SINGLE:
                for i in range(places[first], places[last]):
                    singles[at_single] = folded[i]
                    at_single += 1
                singles[at_single] = _SPACE
                at_single += 1
                continue
            end = at
            if kind == WORD:
                cut = nb.int64(places[last])
                if cut - places[first] > TERM_BYTES_MAX:
                    cut = places[first] + TERM_BYTES_MAX
                    while folded[cut] & 0xC0 == 0x80:
                        cut -= 1  # never inside a character
                for i in range(places[first], cut):
                    out[end] = folded[i]
                    end += 1
            else:
                for char in range(first, last):
                    # Joiners are left out, but for a dot between digits.
                    if kinds[char] < JOINER or (
                        folded[places[char]] == _DOT
                        and kinds[char - 1] == DIGIT
                        and kinds[char + 1] == DIGIT
                    ):
                        for i in range(places[char], places[char + 1]):
                            out[end] = folded[i]
                            end += 1
                if end - at > WHOLE_BYTES_MAX:
                    continue
            out[end] = _SPACE
            at = end + 1
    out_offsets[span_offsets.shape[0] - 1] = at
    singles_offsets[span_offsets.shape[0] - 1] = at_single
