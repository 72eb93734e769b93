"""What readers of files share: what they are told, and how they report what cannot be read."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Problem(NamedTuple):
    """A part of the input that cannot be read; ``place`` is a file, or a file and line."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Reading(NamedTuple):
    """What a reader works with.

    mapping : column or key -> field; consumed : is told how many bytes of the file have been read;
    note : says something to the user.
    """

    mapping: Mapping[str, str]
    consumed: Callable[[int], None]
    note: Callable[[str], None]


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with a text and how to mend it."""
    if error.object.startswith(WIDE_MARKS):
        return "the file is UTF-16; convert it, for example with `iconv -f utf-16 -t utf-8`"
    return (
        f"byte {error.start} is not UTF-8; convert the file, for example with "
        "`iconv -f latin1 -t utf-8`"
    )
