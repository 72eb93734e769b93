"""Make the analyser's table of code points: class and folded form, from Python's Unicode data.

Run by hand when the rules change: ``python kernels/make_analysis_table.py``. The table is shipped,
so that a store's terms do not depend on the Unicode version of the Python that opens it. Any change
to the table needs a new ``ANALYSER_VERSION``.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from colmem_kernels.reference_analysis import (
    APOSTROPHE,
    CJ,
    DIGIT,
    DROP,
    HANGUL,
    JOINER,
    LETTER,
    MARK,
    SEA,
    SEPARATOR,
    SYMBOL,
    UPPER,
)

OUTPUT = Path(__file__).parents[1] / "src/colmem/index/analysis_table.npz"
PAGE = 256
N_CODE_POINTS = 0x110000

# Combining marks that a reader may leave out: Latin, Greek and Cyrillic accents, Hebrew points,
# Arabic vowel signs, variation selectors. Vowel signs of Indic scripts are letters in all but name.
OPTIONAL_MARKS = [
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x05BF, 0x05C7),
    (0x0610, 0x061A),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
]
# Letters that no decomposition reduces to their base, and dotless i.
EXTRA_FOLDS = {
    "ı": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ð": "d", "þ": "th", "æ": "ae",
    "œ": "oe", "ŋ": "n", "ĸ": "k", "ƒ": "f", "ɨ": "i", "ʉ": "u", "ə": "e",
    "٠": "0", "ى": "ي", "ک": "ك", "ی": "ي",
}  # fmt: skip
TATWEEL = 0x0640
CJ_RANGES = [
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x303B, 0x303C),
    (0x3041, 0x3096),
    (0x3099, 0x309A),
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x3105, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFD),
]
HANGUL_RANGES = [(0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7FB)]
SEA_RANGES = [(0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECE), (0x0EDC, 0x0EDF),
              (0x1000, 0x103F), (0x1050, 0x108F), (0x1780, 0x17D3), (0x17D7, 0x17DD),
              (0xA9E0, 0xA9EF), (0xAA60, 0xAA7F)]  # fmt: skip
JOINERS = "_-./\\&,‐‑‿⁄·"
APOSTROPHES = "'’ʼ"


def within(code: int, ranges: list[tuple[int, int]]) -> bool:
    """Whether a code point lies in one of the ranges, both ends included."""
    return any(low <= code <= high for low, high in ranges)


def class_of(code: int) -> int:
    """Choose the class of a code point."""
    char = chr(code)
    category = unicodedata.category(char)
    if char in APOSTROPHES:
        return APOSTROPHE
    if char in JOINERS:
        return JOINER
    if within(code, OPTIONAL_MARKS) or code == TATWEEL:
        return DROP
    if category == "Cf":
        return DROP
    if code == 0x200B or category[0] in "ZC":
        return SEPARATOR
    if category == "Nd":
        return DIGIT
    for name, ranges in ((CJ, CJ_RANGES), (HANGUL, HANGUL_RANGES), (SEA, SEA_RANGES)):
        if within(code, ranges) and category[0] in "LMN":
            return name
    if category[0] == "M":
        return MARK
    if category in ("Lu", "Lt"):
        return UPPER
    if category[0] == "L":
        return LETTER
    if category[0] == "N":
        return DIGIT
    if category in ("So", "Sm", "Sk") and code >= 0x2190:
        return SYMBOL
    return SEPARATOR


def folded(code: int) -> str:
    """Fold case and drop accents of one code point; several characters may come of it."""
    char = chr(code)
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.decimal(char))
    out = unicodedata.normalize("NFKD", char.casefold())
    out = "".join(c for c in out if class_of(ord(c)) != DROP)
    out = "".join(EXTRA_FOLDS.get(c, c) for c in out)
    return unicodedata.normalize("NFKC", out)


def main() -> None:
    """Write the table."""
    classes = np.zeros(N_CODE_POINTS, np.uint8)
    folds = np.zeros(N_CODE_POINTS, np.uint32)
    tails: list[int] = []
    for code in range(N_CODE_POINTS):
        if 0xD800 <= code < 0xE000:
            continue
        kind = class_of(code)
        if kind in (SEPARATOR, DROP, JOINER, APOSTROPHE):
            classes[code] = kind
            folds[code] = code
            continue
        out = folded(code)
        if not out:
            classes[code] = DROP
            continue
        classes[code] = kind
        if len(out) == 1:
            folds[code] = ord(out)
        else:
            folds[code] = 0x80000000 | len(tails) << 8 | len(out)
            tails.extend(map(ord, out))
    # Code points that stand for themselves are kept as 0, so that pages repeat.
    own = folds == np.arange(N_CODE_POINTS, dtype=np.uint32)
    folds[own] = 0
    pages, page_of = np.unique(
        np.concatenate([classes.reshape(-1, PAGE), folds.reshape(-1, PAGE)], 1, dtype=np.uint32),
        axis=0,
        return_inverse=True,
    )
    np.savez_compressed(
        OUTPUT,
        page_of=page_of.astype(np.uint16).reshape(-1),
        classes=pages[:, :PAGE].astype(np.uint8).reshape(-1),
        folds=np.ascontiguousarray(pages[:, PAGE:]).reshape(-1),
        tails=np.array(tails, np.uint32),
    )


if __name__ == "__main__":
    main()
