"""Text and number rules that differ from Python's own: white space, single-precision numbers."""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Final

WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The Unicode White_Space characters; U+001C to U+001F, which `str.strip` takes, are not."""

_F32 = struct.Struct("<f")
_F32_DIGITS_MAX: Final = 9


def trim(text: str) -> str:
    """Text without the white space at its ends."""
    return text.strip(WHITE_SPACE)


def is_blank(text: str) -> bool:
    """Whether nothing but white space is in the text."""
    return not text or (text[0] in WHITE_SPACE and not text.strip(WHITE_SPACE))


class F32(float):
    """A float rounded to IEEE single precision; prints with the fewest digits that say which."""

    __slots__ = ()

    def __new__(cls, value: float) -> F32:
        """Round to the nearest; what is out of range becomes an infinity."""
        if type(value) is F32:
            return value
        try:
            return float.__new__(cls, _F32.unpack(_F32.pack(value))[0])
        except OverflowError:
            return float.__new__(cls, math.copysign(math.inf, value))

    def __repr__(self) -> str:
        return f32_json(self) if math.isfinite(self) else float.__repr__(self)

    __str__ = __repr__

    def __getnewargs__(self) -> tuple[float]:
        return (float(self),)


@lru_cache(maxsize=8192)
def _shortest(value: float) -> tuple[str, int]:
    # The fewest decimal digits that read back as the same f32, and the power of ten of the first.
    packed = _F32.pack(value)
    text = ""
    for digits in range(_F32_DIGITS_MAX):
        text = f"{value:.{digits}e}"
        try:
            if _F32.pack(float(text)) == packed:
                break
        except OverflowError:
            continue
    mantissa, exponent = text.split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def f32_json(value: float) -> str:
    """Canonical JSON text of an f32; ``null`` for an infinity or not-a-number."""
    if not math.isfinite(value):
        return "null"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value))
    if 0 <= exponent <= 12:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    if -6 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    point = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}e{'+' if exponent > 0 else ''}{exponent}"


def f32_display(value: float) -> str:
    """Write an f32 as messages show it: the same digits, without an exponent and without ``.0``."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return sign + "inf"
    if value == 0:
        return sign + "0"
    digits, exponent = _shortest(abs(value))
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole
