"""JSON files that are one value: which export a file is, and its elements one at a time.

A file is known by the keys of its first element, read from its beginning. However large it is, one
element at a time is in memory.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import ijson

from colmem import ItemKind
from colmem.adapters.importing.reading import WIDE_MARKS, opened, unreadable

SNIFFED_BYTES: Final = 2**18
_BOM: Final = b"\xef\xbb\xbf"
_FIELDS: Final = frozenset({"text", "turns"})


class Export(StrEnum):
    """What a JSON file holds."""

    CHATGPT = "chatgpt"
    MEM0 = "mem0"
    MEM0_HISTORY = "mem0-history"
    ROWS = "rows"


class Shape(NamedTuple):
    """An export, and where its elements stand, as ijson names it."""

    export: Export
    prefix: str


class Element(NamedTuple):
    """One element of an export, or with ``problem`` why no more of it can be read."""

    place: str
    problem: str
    value: Any = None


def shape_of(path: Path, mapped: tuple[str, ...] = ()) -> Shape | None:
    """What a file holds, or None when it is no known export.

    mapped : further keys that make an object a row.
    """
    with opened(path) as (file, _):
        return shape_of_head(file.read(SNIFFED_BYTES), mapped)


def shape_of_head(head: bytes, mapped: tuple[str, ...] = ()) -> Shape | None:
    """What a file that begins so holds."""
    prefix, keys = _first_element(head.removeprefix(_BOM))
    if prefix is None:
        return None
    if not keys and prefix == "item":
        return Shape(Export.ROWS, prefix) if _is_closed(head) else None
    if "mapping" in keys and {"current_node", "title", "create_time"} & keys.keys():
        return Shape(Export.CHATGPT, prefix)
    if {"memory_id", "event"} <= keys.keys():
        return Shape(Export.MEM0_HISTORY, prefix)
    if {"memory", "id"} <= keys.keys() or (prefix == "results.item" and not keys):
        return Shape(Export.MEM0, prefix)
    is_row = keys.get("type") in list(ItemKind) or not keys.keys().isdisjoint(_FIELDS | {*mapped})
    return Shape(Export.ROWS, prefix) if prefix == "item" and is_row else None


def read(path: Path, shape: Shape, consumed: Callable[[int], None]) -> Iterator[Element]:
    """The elements of a file; ``consumed`` is told how many bytes have been read."""
    try:
        with opened(path) as (file, raw):
            for element in elements(file, shape, str(path)):
                consumed(raw.tell())
                yield element
    except (OSError, EOFError, zlib.error) as error:
        yield Element(*unreadable(path, error))


def elements(file: IO[bytes], shape: Shape, name: str) -> Iterator[Element]:
    """The elements of an export; numbers with a fraction are Decimals for ChatGPT, else floats.

    name : what the places begin with, such as the path.
    """
    number = -1
    stem = {"item": "$", "results.item": "$.results"}.get(shape.prefix)
    try:
        head = file.read(len(_BOM))
        source = _Rejoined(b"" if head == _BOM else head, file)
        exact = shape.export is Export.CHATGPT
        for number, value in enumerate(ijson.items(source, shape.prefix, use_float=not exact)):
            at = "$" if stem is None else f"{stem}[{number}]"
            yield Element(f"{name} {at}", "", value)
    except ijson.JSONError as error:
        after = f" after {stem}[{number}]" if stem is not None and number >= 0 else ""
        yield Element(name, f"{_said(error)}{after}")


class _Rejoined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._head or size == 0:
            return self._rest.read(size)
        head, self._head = self._head, b""
        return head


def _first_element(head: bytes) -> tuple[str | None, dict[str, Any]]:
    """Where the elements stand, and the first one's keys; texts of it come as their values."""
    prefix: str | None = None
    keys: dict[str, Any] = {}
    if head.startswith(WIDE_MARKS):
        return None, keys
    try:
        for at, event, value in ijson.parse(io.BytesIO(head)):
            if prefix is None:
                prefix = {"start_array": "item", "start_map": ""}.get(event)
                if prefix is None:
                    return None, keys
            elif prefix == "" and (at, event) == ("results", "start_array"):
                prefix, keys = "results.item", {}
            elif (at, event) == (prefix, "map_key"):
                keys[value] = None
            elif event == "string" and at.startswith(f"{prefix}.") and prefix:
                keys[at[len(prefix) + 1 :]] = value
            elif (at, event) == (prefix, "end_map"):
                return prefix, keys
    except ijson.JSONError:
        pass  # the head ends somewhere, and what is wrong further on is found when it is read
    return prefix, keys


def _is_closed(head: bytes) -> bool:
    return b"".join(head.removeprefix(_BOM).split()) == b"[]"


def _said(error: Exception) -> str:
    # In words of our own, for the library's quote the file.
    text = str(error)
    if "premature EOF" in text or "Incomplete" in text:
        return "the file ends in the middle; it was cut off, so make the export again"
    if "UTF8" in text:
        return "a text is not UTF-8; convert the file, for example with `iconv -f latin1 -t utf-8`"
    return "not valid JSON"
