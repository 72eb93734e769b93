"""One line of JSON to a normalised record: a fast reader for plain lines, a strict one besides.

The fast reader takes only what both would read alike (known keys with values of their own types);
whatever it declines goes to the standard library's parser, whose reading is the rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.limits import Limits
from colmem.snapshot.lines import Lines, stripped
from colmem.snapshot.nesting import depth, is_deeper
from colmem.snapshot.record import (
    Record,
    UnstorableError,
    content_hash,
    json_column,
    normalise,
    settle,
    settle_typed,
    utc_now,
)

_OPEN, _CLOSE, _LIST = ord("{"), ord("}"), ord("[")
_DIGITS = b"0123456789"
_ABSENT = msgspec.Raw(b"")


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    # Every known key with the type it has in practice; JSON columns are kept as their bytes. In the
    # order in which a snapshot has them, for the decoder looks for each key after the last one.
    byte_length: int | None = None
    byte_offset: int | None = None
    content_hash: str | None = None
    created_at: str | None = None
    embedding: str | None = None
    embedding_b64: str | None = None
    embedding_dim: int | None = None
    embedding_model: str | None = None
    fact_summary: str | None = None
    fact_text: str = ""
    id: str | None = None
    identifier: str = ""
    importance: float = 0.5
    memory_type: str = "fact"
    metadata: msgspec.Raw = _ABSENT
    metadata_json: str | None = None
    namespace: str = ""
    parent_memory: str = ""
    promotion_candidate: int | None = None
    promotion_state: str | None = None
    provenance: msgspec.Raw = _ABSENT
    provenance_json: str | None = None
    related_memories: msgspec.Raw = _ABSENT
    schema_version: int | None = None
    snapshot_id: str = ""
    source: str | None = None
    source_checksum: str | None = None
    source_format: str = ""
    source_uri: str = ""
    tags: msgspec.Raw = _ABSENT
    tier: str = "hot"
    ttl_seconds: int | None = None
    updated_at: str | None = None


_decoder = msgspec.json.Decoder(_Line)
_decode_line, _decode_lines = _decoder.decode, _decoder.decode_lines
_skip = msgspec.json.Decoder(msgspec.Raw).decode
_skip_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines
# What the fast reader raises for a line that is the strict one's.
_DECLINED = (msgspec.DecodeError, ValueError, RecursionError)


class LineReader:
    """Reads the lines of one payload; ``source`` is its default for that field.

    ``loaded_at`` is the ``created_at`` of records that have none.
    """

    def __init__(self, *, source: str, name: str, limits: Limits) -> None:
        self.loaded_at = utc_now()
        self._source = source
        self._name = name
        self._limits = limits
        self._parse = json.JSONDecoder(parse_int=self._integer).decode

    def read(self, line: bytes, number: int) -> Record | None:
        """Read and settle a line that is not blank; None when it is JSON but no valid record.

        Raises
        ------
        SnapshotReadError
            When the line is not JSON or not UTF-8, or is beyond a limit; ``number`` is named.
        """
        try:
            record = _plain(_decode_line(line), self._source)
        except _DECLINED:
            return self._read_strictly(line, number)
        return record if settle_typed(record, loaded_at=self.loaded_at) else None

    def id(self, line: bytes, number: int) -> str | None:
        """Give the id that a line itself names, if it names one."""
        record = self._normalised(line, number)
        return record.id if record is not None else None

    def check(self, lines: Lines, first_number: int) -> int:
        """Make sure that ``read`` will take every line, and count those that are not blank.

        Raises
        ------
        SnapshotReadError
            At the first line it would refuse.
        """
        if self._are_plain(lines):
            return len(lines)
        n_blank = 0
        for i, line in enumerate(lines):
            try:
                if not line.isascii():
                    line.decode()
                _skip(line)
                if line[-1] == _CLOSE and not self._is_suspect(line):
                    continue
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass
            text = self._stripped(line, first_number + i)
            if text:
                self._strict(text, first_number + i)
            else:
                n_blank += 1
        return len(lines) - n_blank

    def lines(self, lines: Lines, first_number: int) -> list[Record | None]:
        """Read and settle a group of lines; blank ones are left out."""
        if lines.are_objects():
            try:
                plain = [_plain(line, self._source) for line in _decode_lines(lines.data)]
            except _DECLINED:
                plain = []
            if len(plain) == len(lines):
                loaded_at = self.loaded_at
                return [r if settle_typed(r, loaded_at=loaded_at) else None for r in plain]
        read = self.read
        return [read(text, number) for text, number in self.filled(lines, first_number)]

    def filled(self, lines: Lines, first_number: int) -> Iterator[tuple[bytes, int]]:
        """Yield the lines that are not blank, stripped, with their numbers."""
        for number, line in enumerate(lines, first_number):
            if line and line[0] == _OPEN and line[-1] == _CLOSE:
                yield line, number
            else:
                text = self._stripped(line, number)
                if text:
                    yield text, number

    def _read_strictly(self, line: bytes, number: int) -> Record | None:
        record = self._normalised(line, number)
        return record if record is not None and settle(record, loaded_at=self.loaded_at) else None

    def _are_plain(self, lines: Lines) -> bool:
        """Whether every line is surely an object within the limits, found out in a few passes."""
        if not lines.are_objects():
            return False
        try:
            if not lines.data.isascii():
                lines.data.decode()
            if len(_skip_lines(lines.data)) != len(lines):
                return False
        except _DECLINED:
            return False
        longest = int(np.diff(lines.ends, prepend=0).max())
        deepest = self._limits.nesting_max
        if longest > self._limits.digits_max:
            return False
        held = lines.as_array()
        opened = np.flatnonzero((held == _LIST) | (held == _OPEN))
        # A line that nests too deep has more brackets than that within its length.
        spans = opened[deepest:] - opened[: max(len(opened) - deepest, 0)]
        return not bool((spans < longest).any())

    def _is_suspect(self, line: bytes) -> bool:
        """Whether a line may be beyond the limits that the skipping reader does not know."""
        limits, size = self._limits, len(line)
        if size > limits.nesting_max and line.count(b"[") + line.count(b"{") > limits.nesting_max:
            return True
        return size > limits.digits_max and _has_digits(line, limits.digits_max + 1)

    def _stripped(self, line: bytes, number: int) -> bytes:
        try:
            return stripped(line)
        except UnicodeDecodeError as error:
            raise self._refused(number, f"is not UTF-8 ({error.reason})") from error

    def _normalised(self, line: bytes, number: int) -> Record | None:
        raw = self._strict(line, number)
        if not isinstance(raw, dict):
            return None
        try:
            return normalise(raw, source=self._source)
        except UnstorableError:
            return None

    def _strict(self, line: bytes, number: int) -> Any:
        limits = self._limits
        if is_deeper(line, limits.nesting_max):
            raise self._refused(
                number,
                f"nests {depth(line)} levels deep, limit is {limits.nesting_max} (nesting_max)",
            )
        try:
            return self._parse(line.decode())
        except UnicodeDecodeError as error:
            raise self._refused(number, f"is not UTF-8 ({error.reason})") from error
        except json.JSONDecodeError as error:
            raise self._refused(number, f"is not JSON ({error.msg})") from error
        except RecursionError as error:
            raise self._refused(number, "nests too deep for this interpreter") from error
        except ValueError as error:
            raise self._refused(number, f"holds a number out of bounds ({error})") from error

    def _integer(self, text: str) -> int:
        if len(text) > self._limits.digits_max and len(text.lstrip("-")) > self._limits.digits_max:
            raise ValueError(
                f"an integer of {len(text)} digits, limit is {self._limits.digits_max} (digits_max)"
            )
        return int(text)

    def _refused(self, number: int, what: str) -> SnapshotReadError:
        return SnapshotReadError(
            f"line {number} of {self._name} {what}; nothing was loaded: repair or remove the line",
            file=self._name,
            line=number,
        )


def _plain(line: _Line, source: str) -> Record:
    """Normalise what the fast reader took; ValueError sends the line to the strict one.

    The reader checks all text but that of the columns it keeps as bytes, and takes no NaN.
    """
    hash_text = line.content_hash or content_hash(line.identifier, line.fact_text)
    tags, related = bytes(line.tags), bytes(line.related_memories)
    return Record(
        line.id or "",
        line.identifier,
        line.fact_text,
        line.fact_summary,
        "file" if line.memory_type == "file" else "fact",
        line.embedding or line.embedding_b64 or None,
        line.embedding_dim,
        line.embedding_model,
        source if line.source is None else line.source,
        float(line.importance),
        _metadata(bytes(line.metadata), line.metadata_json),
        hash_text,
        line.ttl_seconds,
        line.created_at,
        line.namespace,
        line.tier,
        "[]" if tags in _EMPTY_LISTS else _list(tags),
        line.source_uri,
        line.source_format,
        line.source_checksum,
        line.byte_offset,
        line.byte_length,
        _provenance(bytes(line.provenance), line.provenance_json),
        line.promotion_state,
        line.promotion_candidate,
        line.updated_at,
        line.snapshot_id,
        line.parent_memory,
        "[]" if related in _EMPTY_LISTS else _list(related),
        line.schema_version or 1,
    )


_EMPTY_LISTS = frozenset({b"", b"[]", b"null", b'"[]"'})


def _metadata(raw: bytes, text: str | None) -> str:
    if raw:
        return "{}" if raw == b"{}" else _object(json.loads(raw))
    if text is None or text == "{}":
        return "{}"
    return _object(json.loads(text))


def _provenance(raw: bytes, text: str | None) -> str | None:
    if raw:
        return None if raw == b"null" else _object(json.loads(raw))
    return None if text is None else _object(json.loads(text))


def _object(value: Any) -> str:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return json_column(value)


def _list(raw: bytes) -> str:
    # The lists of a snapshot are short and mostly the same few.
    return _short_list(raw) if len(raw) <= _SHORT_BYTES else _any_list(raw)


def _any_list(raw: bytes) -> str:
    value = json.loads(raw)
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, list):
        raise ValueError("not a list")
    return json_column(value)


_SHORT_BYTES = 200
_short_list = lru_cache(maxsize=4096)(_any_list)


def _has_digits(line: bytes, n: int) -> bool:
    """Whether ``n`` digits stand in a row; such a row crosses one of every ``n - 1`` positions."""
    step = n - 1
    for at in range(0, len(line), step):
        if line[at : at + 1].isdigit():
            before, after = line[max(at - step, 0) : at], line[at : at + n]
            left = len(before) - len(before.rstrip(_DIGITS))
            if left + len(after) - len(after.lstrip(_DIGITS)) >= n:
                return True
    return False
