"""What readers of files share: what they are told, and how they report what cannot be read."""

from __future__ import annotations

import codecs
import gzip
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

from colmem import MetaFilter, StoreItem

WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Problem(NamedTuple):
    """A part of the input that cannot be read; ``place`` is a file, or a place in one."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Reading(NamedTuple):
    """What a reader works with.

    mapping : column or key -> field; consumed : is told how many bytes of the file have been read;
    note : says something to the user; filter : what is wanted, for a reader that can ask for it.
    """

    mapping: Mapping[str, str]
    consumed: Callable[[int], None]
    note: Callable[[str], None]
    filter: MetaFilter = MetaFilter()


Items = Iterator[StoreItem | Problem]
"""What a reader gives: items in the order of the file, and what cannot be read."""


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with a text and how to mend it."""
    if error.object.startswith(WIDE_MARKS):
        return "the file is UTF-16; convert it, for example with `iconv -f utf-16 -t utf-8`"
    return (
        f"byte {error.start} is not UTF-8; convert the file, for example with "
        "`iconv -f latin1 -t utf-8`"
    )


def unreadable(path: Path, error: BaseException) -> Problem:
    """The problem of a file that the system or a library cannot read."""
    text = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return Problem(str(path), text or type(error).__name__)


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The content of a file, unpacked, and the file itself; ``-`` is standard input."""
    if str(path) == "-":
        stdin = sys.stdin.buffer
        yield stdin, stdin
        return
    with path.open("rb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as unpacked:
                yield unpacked, raw  # type: ignore[misc]
        else:
            yield raw, raw
