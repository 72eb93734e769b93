# ruff: noqa: SIM109, SIM110
# (membership in a tuple compiles to a loop, and generators do not compile)
"""The English stemmer Porter2, in place over ASCII lower-case bytes.

Source: M. F. Porter, "The English (Porter2) stemming algorithm", Snowball, in the form of 2024
(evening, added, past, -ogist), without its rules for apostrophes, which never reach it. Here every
step is rows of one table, tried in turn by one loop: written out as code it is no faster and takes
seconds to compile. A suffix is compared as a number: the last eight bytes of the word, the very
last lowest, under a mask.
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from colmem_kernels._jit import kernel

_BYTES = nb.types.Array(nb.uint8, 1, "C")
_READ_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_OFFSETS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_OUT_OFFSETS = nb.types.Array(nb.int64, 1, "C")
_MEMO = nb.types.Array(nb.uint64, 2, "C")

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]

SPARE_BYTES: Final = 8
"""Bytes that must stand before a word, whatever they are."""
MEMO_WORDS: Final = 1 << 13
_MEMO_SHIFT = np.uint64(64 - 13)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BYTE = np.uint64(255)

# What must hold for a suffix to be replaced; `at` is where it begins.
(
    _WHOLE_WORD,
    _AFTER_ONE,  # exactly one letter before
    _AFTER_TWO,  # or more
    _ALWAYS,
    _VOWEL_BEFORE,  # anywhere before
    _VOWEL_EARLIER,  # before the letter before
    _AFTER_CONSONANT,  # which is not the first letter
    _NOT_SHORT_ROOT,  # not add, egg, off
    _SHORT_WORD,
    _IN_R1,
    _IN_R2,
    _LAST_IN_R2,
    _IN_R1_AFTER_L,
    _IN_R1_AFTER_LI_ENDING,
    _IN_R2_AFTER_S_T,
    _FINAL_E,
) = range(16)

_Rule = tuple[str, str, int]


def _all(condition: int, *pairs: tuple[str, str]) -> tuple[_Rule, ...]:
    return tuple((suffix, new, condition) for suffix, new in pairs)


_IRREGULAR: Final = _all(
    _WHOLE_WORD,
    *(
        ("skis", "ski"),
        ("skies", "sky"),
        ("idly", "idl"),
        ("gently", "gentl"),
        ("ugly", "ugli"),
        ("early", "earli"),
    ),
    *(("only", "onli"), ("singly", "singl"), ("sky", "sky"), ("news", "news")),
    *(("howe", "howe"), ("atlas", "atlas"), ("cosmos", "cosmos"), ("bias", "bias")),
    ("andes", "andes"),
)
_STEP_1A: Final = (
    ("sses", "ss", _ALWAYS),
    ("ies", "i", _AFTER_TWO),
    ("ied", "i", _AFTER_TWO),
    *_all(_ALWAYS, ("ies", "ie"), ("ied", "ie"), ("us", "us"), ("ss", "ss")),
    ("s", "", _VOWEL_EARLIER),
)
_KEPT: Final = _all(
    _WHOLE_WORD,
    *((word, word) for word in ("inning", "outing", "canning", "herring", "earring", "evening")),
    *((word, word) for word in ("proceed", "exceed", "succeed")),
)
_STEP_1B: Final = (
    ("eedly", "ee", _IN_R1),
    ("ingly", "", _VOWEL_BEFORE),
    ("ying", "ie", _AFTER_ONE),
    ("edly", "", _VOWEL_BEFORE),
    ("eed", "ee", _IN_R1),
    *_all(_VOWEL_BEFORE, ("ing", ""), ("ed", "")),
)
_AFTER_1B: Final = (
    *_all(_ALWAYS, ("at", "ate"), ("bl", "ble"), ("iz", "ize")),
    *_all(_NOT_SHORT_ROOT, *((c + c, c) for c in "bdfgmnprt")),
    ("", "e", _SHORT_WORD),
)
_STEP_1C: Final = _all(_AFTER_CONSONANT, ("y", "i"), ("Y", "i"))
_STEP_2: Final = (
    *_all(
        _IN_R1,
        *(("ization", "ize"), ("ational", "ate"), ("fulness", "ful"), ("ousness", "ous")),
        *(("iveness", "ive"), ("tional", "tion"), ("biliti", "ble"), ("lessli", "less")),
        *(("entli", "ent"), ("ation", "ate"), ("alism", "al"), ("aliti", "al")),
        *(("ousli", "ous"), ("iviti", "ive"), ("fulli", "ful"), ("ogist", "og")),
        *(("enci", "ence"), ("anci", "ance"), ("abli", "able"), ("izer", "ize")),
        *(("ator", "ate"), ("alli", "al"), ("bli", "ble")),
    ),
    ("ogi", "og", _IN_R1_AFTER_L),
    ("li", "", _IN_R1_AFTER_LI_ENDING),
)
_STEP_3: Final = (
    *_all(_IN_R1, ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic")),
    ("iciti", "ic", _IN_R1),
    ("ative", "", _IN_R2),
    *_all(_IN_R1, ("ical", "ic"), ("ness", ""), ("ful", "")),
)
_STEP_4: Final = (
    *_all(_IN_R2, *((s, "") for s in ("ement", "ance", "ence", "able", "ible", "ment"))),
    *_all(_IN_R2, *((s, "") for s in ("ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize"))),
    ("ion", "", _IN_R2_AFTER_S_T),
    *_all(_IN_R2, *((s, "") for s in ("al", "er", "ic"))),
)
_STEP_5: Final = (("ll", "l", _LAST_IN_R2), ("e", "", _FINAL_E))
_STEPS: Final[tuple[tuple[_Rule, ...], ...]] = (
    _IRREGULAR,
    _STEP_1A,
    _KEPT,
    _STEP_1B,
    _AFTER_1B,
    _STEP_1C,
    _STEP_2,
    _STEP_3,
    _STEP_4,
    _STEP_5,
)
"""In each the longest suffixes come first: of several that fit the longest counts."""
_STEP_AFTER_1B = 4
_LONG_PREFIXES: Final = (
    *("gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter"),
)
"""The first region begins after them."""


def _numbers(words: list[str]) -> npt.NDArray[np.uint64]:
    return np.array([int.from_bytes(word.encode(), "big") for word in words], np.uint64)


_RULES = [rule for step in _STEPS for rule in step]
_SUFFIXES = _numbers([suffix for suffix, _, _ in _RULES])
_LENGTHS = np.array([len(suffix) for suffix, _, _ in _RULES])
_NEW = _numbers([new for _, new, _ in _RULES])
_NEW_LENGTHS = np.array([len(new) for _, new, _ in _RULES])
_CONDITIONS = np.array([condition for _, _, condition in _RULES])
_STEP_STARTS = np.cumsum([0, *map(len, _STEPS)])
# A step is skipped when no suffix of it ends in the word's last letter, or is as long as the word
# where it must be the word. One bit per letter, by the low five bits of its code.
_STEP_LETTERS = np.array(
    [
        -1 if any(not s for s, _, _ in step) else sum({1 << (ord(s[-1]) & 31) for s, _, _ in step})
        for step in _STEPS
    ]
)
_STEP_WORD_MAX = np.array(
    [max(len(s) for s, _, _ in step) if step[0][2] == _WHOLE_WORD else 1 << 30 for step in _STEPS]
)
_LENGTH_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
_MASKS = _LENGTH_MASKS[_LENGTHS]
_PREFIXES = _numbers(list(_LONG_PREFIXES))
_PREFIX_LENGTHS = np.array([len(prefix) for prefix in _LONG_PREFIXES])

_IS_VOWEL = np.zeros(256, np.bool_)
_IS_VOWEL[[ord(c) for c in "aeiouy"]] = True
_IS_LI_ENDING = np.zeros(256, np.bool_)
_IS_LI_ENDING[[ord(c) for c in "cdeghkmnrt"]] = True
# What never ends a short syllable: vowels, w, x and a y that is a consonant, written Y.
_IS_OPEN = _IS_VOWEL.copy()
_IS_OPEN[[ord(c) for c in "wxY"]] = True
_KEEPS_DOUBLE = np.zeros(256, np.bool_)
_KEEPS_DOUBLE[[ord(c) for c in "aeo"]] = True
_L, _S, _T, _SMALL_Y, _BIG_Y = (ord(c) for c in "lstyY")
_PAST = int.from_bytes(b"past", "big")
_SPACE = ord(" ")

_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(n) for n in range(1, 9))
_16, _24, _32, _40, _48, _56 = (np.uint64(n) for n in range(16, 57, 8))


@kernel(None, inline=True)
def _ending(buffer: Bytes, start: int, end: int) -> Any:
    """The last bytes of a word, at most eight, as a number."""
    # Unsigned, or a test for a negative position comes with each byte.
    at = np.uint64(end)
    value = (
        np.uint64(buffer[at - _1])
        | np.uint64(buffer[at - _2]) << _8
        | np.uint64(buffer[at - _3]) << _16
        | np.uint64(buffer[at - _4]) << _24
        | np.uint64(buffer[at - _5]) << _32
        | np.uint64(buffer[at - _6]) << _40
        | np.uint64(buffer[at - _7]) << _48
        | np.uint64(buffer[at - _8]) << _56
    )
    return value & _LENGTH_MASKS[min(end - start, 8)]


@kernel(None, inline=True)
def _region(buffer: Bytes, start: int, end: int) -> int:
    """The position after the first non-vowel that follows a vowel, else the end."""
    for i in range(start + 1, end):
        if not _IS_VOWEL[buffer[i]] and _IS_VOWEL[buffer[i - 1]]:
            return i + 1
    return end


@kernel(None, inline=True)
def _ends_short(buffer: Bytes, start: int, end: int, ending: Any) -> Any:
    """Whether a word ends in a short syllable."""
    if end - start < 2 or not _IS_VOWEL[buffer[end - 2]]:
        return (ending & _LENGTH_MASKS[4]) == _PAST
    if end - start == 2:
        return not _IS_VOWEL[buffer[end - 1]]
    return not _IS_OPEN[buffer[end - 1]] and not _IS_VOWEL[buffer[end - 3]]


@kernel(None, inline=True)
def _holds(
    condition: Any, buffer: Bytes, start: int, at: int, r1: int, r2: int, ending: Any
) -> Any:
    """Whether the condition of a rule holds; ``ending`` is that of what stands before ``at``."""
    before = buffer[at - 1]
    n_before = at - start
    if condition >= _IN_R1:
        if condition == _IN_R1:
            return at >= r1
        if condition == _IN_R2:
            return at >= r2
        if condition == _LAST_IN_R2:
            return at + 1 >= r2
        if condition == _IN_R1_AFTER_L:
            return at >= r1 and before == _L
        if condition == _IN_R1_AFTER_LI_ENDING:
            return at >= r1 and _IS_LI_ENDING[before]
        if condition == _IN_R2_AFTER_S_T:
            return at >= r2 and (before == _S or before == _T)
        return at >= r2 or (at >= r1 and not _ends_short(buffer, start, at, ending))
    if condition == _WHOLE_WORD:
        return n_before == 0
    if condition == _AFTER_ONE:
        return n_before == 1
    if condition == _AFTER_TWO:
        return n_before > 1
    if condition == _AFTER_CONSONANT:
        return n_before > 1 and not _IS_VOWEL[before]
    if condition == _NOT_SHORT_ROOT:
        return n_before != 1 or not _KEEPS_DOUBLE[buffer[start]]
    if condition == _SHORT_WORD:
        return at <= r1 and _ends_short(buffer, start, at, ending)
    if condition == _ALWAYS:
        return True
    last = at if condition == _VOWEL_BEFORE else at - 1
    for i in range(start, last):
        if _IS_VOWEL[buffer[i]]:
            return True
    return False


@kernel(None, inline=True)
def stem_english(buffer: Bytes, start: int, end: int) -> int:
    """Stem ``buffer[start:end]`` (ASCII a to z) in place and return its new end.

    At least ``SPARE_BYTES`` stand before the word. The stem is never longer than the word. O(1)
    rules and O(length).
    """
    if end - start <= 2:
        return end
    # A y that is a consonant is written Y until the end.
    has_y = False
    for i in range(start, end):
        if buffer[i] == _SMALL_Y and (i == start or _IS_VOWEL[buffer[i - 1]]):
            buffer[i] = _BIG_Y
            has_y = True
    r1 = _region(buffer, start, end)
    for row in range(_PREFIXES.shape[0]):
        length = _PREFIX_LENGTHS[row]
        if end - start >= length and _ending(buffer, start, start + length) == _PREFIXES[row]:
            r1 = start + length
    r2 = _region(buffer, r1, end)
    was_cut = False  # by the step before
    for step in range(_STEP_STARTS.shape[0] - 1):
        if step == _STEP_AFTER_1B and not was_cut:
            continue
        was_cut = False
        letter = np.int64(1) << np.int64(buffer[end - 1] & 31)
        if not _STEP_LETTERS[step] & letter or end - start > _STEP_WORD_MAX[step]:
            continue
        ending = _ending(buffer, start, end)
        for row in range(_STEP_STARTS[step], _STEP_STARTS[step + 1]):
            length = _LENGTHS[row]
            if (ending & _MASKS[row]) != _SUFFIXES[row] or length > end - start:
                continue
            at = end - length
            condition = _CONDITIONS[row]
            if _holds(condition, buffer, start, at, r1, r2, ending >> np.uint64(8 * length)):
                for i in range(_NEW_LENGTHS[row]):
                    shift = np.uint64(8 * (_NEW_LENGTHS[row] - 1 - i))
                    buffer[at + i] = _NEW[row] >> shift & np.uint64(255)
                end = at + _NEW_LENGTHS[row]
                was_cut = _NEW_LENGTHS[row] == 0
                if condition == _WHOLE_WORD:
                    return end
                break
            if condition > _AFTER_TWO:
                break  # the first three let a shorter suffix have its turn
    if has_y:
        for i in range(start, end):
            if buffer[i] == _BIG_Y:
                buffer[i] = _SMALL_Y
    return end


@kernel(nb.void(_READ_BYTES, _OFFSETS, nb.boolean, _MEMO, _BYTES, _OUT_OFFSETS))
def stem_terms(
    surfaces: Bytes,
    offsets: Offsets,
    with_plurals: bool,
    memo: npt.NDArray[np.uint64],
    out: Bytes,
    out_offsets: Offsets,
) -> None:
    """Stem the terms of many texts; what is not all of a to z stays as it is.

    surfaces : uint8, terms with a space after each; offsets : int64 (n + 1,), the terms of text i
    are ``surfaces[offsets[i]:offsets[i + 1]]``
    with_plurals : write after a stem also the word as it stands, where that looks like a plural
    memo : uint64 (MEMO_WORDS, 4), zeros at first; words of up to 16 letters and their stems as two
    numbers each, one word to a place
    out : uint8, twice as long as the surfaces, and SPARE_BYTES, where it begins
    out_offsets : int64 (n + 1,), written
    O(n_bytes).
    """
    at = SPARE_BYTES
    for text in range(offsets.shape[0] - 1):
        out_offsets[text] = at
        first = offsets[text]
        while first < offsets[text + 1]:
            last = first
            is_plain = True
            end = at
            high = low = np.uint64(0)
            while surfaces[last] != _SPACE:
                byte = surfaces[last]
                is_plain &= nb.uint8(byte - 97) < 26
                out[end] = byte
                high = high << _8 | low >> _56
                low = low << _8 | np.uint64(byte)
                last += 1
                end += 1
            if is_plain and end - at > 2:
                is_plural = surfaces[last - 1] == _S and surfaces[last - 2] != _S
                is_short = end - at <= 16
                place = np.int64((low ^ high * _MIX) * _MIX >> _MEMO_SHIFT)
                if is_short and memo[place, 0] == low and memo[place, 1] == high:
                    stem_low, stem_high = memo[place, 2], memo[place, 3]
                    end = at
                    for i in range(16):
                        bits = np.uint64(8 * (7 - (i & 7)))
                        byte = (stem_high if i < 8 else stem_low) >> bits & _BYTE
                        if byte:
                            out[end] = byte
                            end += 1
                else:
                    end = stem_english(out, at, end)
                    if is_short:
                        memo[place, 0], memo[place, 1] = low, high
                        stem_low = _ending(out, at, end)
                        stem_high = _ending(out, at, end - 8) if end - at > 8 else np.uint64(0)
                        memo[place, 2], memo[place, 3] = stem_low, stem_high
                # An s that was cut or changed is all that tells a plural's stem from itself.
                if with_plurals and is_plural and (end - at < last - first):
                    out[end] = _SPACE
                    end += 1
                    for i in range(first, last):
                        out[end] = surfaces[i]
                        end += 1
            out[end] = _SPACE
            at = end + 1
            first = last + 1
    out_offsets[offsets.shape[0] - 1] = at
