"""The exact JSON text of every line and manifest this package writes.

Lines are put together from their parts in the order of their keys: strings by the C encoder of
the standard library, numbers as Python prints them, JSON columns sorted anew only when they hold
an object.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import orjson
from pybase64 import b64encode_as_string

from colmem.contract.errors import InvalidRequest
from colmem.snapshot.record import Record


class SortedText(str):
    """JSON text known to have its keys sorted at every level already."""

    __slots__ = ()


_sorted = json.JSONEncoder(sort_keys=True).encode
_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_pretty = json.JSONEncoder(sort_keys=True, indent=2).encode
_number = json.JSONEncoder().encode


def manifest_text(value: dict[str, Any]) -> bytes:
    """Encode a manifest: sorted keys, two spaces, ASCII, one final LF."""
    return (_pretty(value) + "\n").encode("ascii")


def v2_line(record: Record) -> str:
    """Encode a stored record as a line of a v2 payload, final LF included."""
    embedding = record.embedding
    summary = record.fact_summary
    dim = record.embedding_dim
    make: Callable[..., str] = _v2_tail
    if record.source_uri or record.provenance_json is not None:
        make = _v2_tail.__wrapped__  # hardly ever met twice
    tail: str = make(
        record.namespace,
        record.promotion_candidate,
        record.promotion_state,
        record.provenance_json,
        record.source,
        record.source_checksum,
        record.source_format,
        record.source_uri,
        record.tags_json,
        record.tier,
        record.ttl_seconds,
    )
    return (
        f'{{"byte_length": {_int(record.byte_length)}, "byte_offset": {_int(record.byte_offset)}, '
        f'"content_hash": {quoted(record.content_hash)}, '
        f'"created_at": {quoted(record.created_at)}, '
        f'"embedding": {_base64(embedding)}, "embedding_dim": {_int(dim)}, '
        f'"embedding_model": {quoted(record.embedding_model)}, '
        f'"fact_summary": {"null" if summary is None else quoted(summary)}, '
        f'"fact_text": {_long(record.fact_text)}, "id": {quoted(record.id)}, '
        f'"identifier": {quoted(record.identifier)}, "importance": {_float(record.importance)}, '
        f'"memory_type": "{record.memory_type}", "metadata": {_resorted(record.metadata_json)}, '
        + tail
    )


@lru_cache(maxsize=1024)
def _v2_tail(
    namespace: str,
    promotion_candidate: int,
    promotion_state: str,
    provenance: str | None,
    source: str,
    source_checksum: str,
    source_format: str,
    source_uri: str,
    tags: str,
    tier: str,
    ttl_seconds: int | None,
) -> str:
    """Encode the end of a line: the fields that are mostly alike from record to record."""
    return (
        f'"namespace": {quoted(namespace)}, "promotion_candidate": {promotion_candidate}, '
        f'"promotion_state": {quoted(promotion_state)}, "provenance": {_resorted(provenance)}, '
        f'"schema_version": 2, "source": {quoted(source)}, '
        f'"source_checksum": {quoted(source_checksum)}, "source_format": {quoted(source_format)}, '
        f'"source_uri": {quoted(source_uri)}, "tags": {_resorted(tags)}, "tier": {quoted(tier)}, '
        f'"ttl_seconds": {_int(ttl_seconds)}}}\n'
    )


def legacy_line(record: Record) -> str:
    """Encode a stored record as a line of the older single-file format, final LF included."""
    summary, updated, provenance = record.fact_summary, record.updated_at, record.provenance_json
    embedding = "" if not record.embedding else b64encode_as_string(record.embedding)
    return (
        f'{{"id": {quoted(record.id)}, "identifier": {quoted(record.identifier)}, '
        f'"fact_text": {_long(record.fact_text)}, '
        f'"embedding_dim": {_int(record.embedding_dim)}, '
        f'"embedding_model": {quoted(record.embedding_model)}, '
        f'"source": {quoted(record.source)}, "importance": {_float(record.importance)}, '
        f'"metadata_json": {quoted(record.metadata_json)}, '
        f'"content_hash": {quoted(record.content_hash)}, '
        f'"ttl_seconds": {_int(record.ttl_seconds)}, "created_at": {quoted(record.created_at)}, '
        f'"namespace": {quoted(record.namespace)}, "tier": {quoted(record.tier)}, '
        f'"memory_type": "{record.memory_type}", "source_uri": {quoted(record.source_uri)}, '
        f'"source_format": {quoted(record.source_format)}, '
        f'"source_checksum": {quoted(record.source_checksum)}, '
        f'"byte_offset": {_int(record.byte_offset)}, "byte_length": {_int(record.byte_length)}, '
        f'"updated_at": {"null" if updated is None else quoted(updated)}, '
        f'"snapshot_id": {quoted(record.snapshot_id)}, '
        f'"promotion_state": {quoted(record.promotion_state)}, '
        f'"promotion_candidate": {record.promotion_candidate}, '
        f'"parent_memory": {quoted(record.parent_memory)}, '
        f'"related_memories": {quoted(record.related_json)}, "tags": {quoted(record.tags_json)}, '
        f'"schema_version": {record.schema_version}, '
        f'"fact_summary": {"null" if summary is None else quoted(summary)}, '
        f'"provenance_json": {"null" if provenance is None else quoted(provenance)}, '
        f'"embedding_b64": "{embedding}"}}\n'
    )


def package_line(record: Record) -> str:
    """Encode a stored record as a line of an interchange package, final LF included.

    Raises
    ------
    InvalidRequest
        When the record holds a number (NaN, infinity) or text (a lone surrogate) that this strict
        form of JSON cannot hold.
    """
    embedding, summary, ttl = record.embedding, record.fact_summary, record.ttl_seconds
    length, offset = record.byte_length, record.byte_offset
    try:
        parts = (
            "" if length is None else f'"byte_length":{length},',
            "" if offset is None else f'"byte_offset":{offset},',
            f'"content_hash":{_utf8(record.content_hash)},"created_at":{_utf8(record.created_at)},',
            f'"embedding":{_base64(embedding)},' if embedding else "",
            f'"embedding_dim":{_int(record.embedding_dim)},',
            f'"embedding_model":{_utf8(record.embedding_model)},',
            "" if summary is None else f'"fact_summary":{_utf8(summary)},',
            f'"fact_text":{_utf8(record.fact_text)},"id":{_utf8(record.id)},',
            f'"identifier":{_utf8(record.identifier)},',
            f'"importance":{_canonical(float(record.importance))},',
            f'"memory_type":"{record.memory_type}","metadata":{_compact(record.metadata_json)},',
            f'"namespace":{_utf8(record.namespace)},',
            f'"promotion_candidate":{record.promotion_candidate},',
            f'"promotion_state":{_utf8(record.promotion_state)},',
            f'"provenance":{_compact(record.provenance_json)},' if record.provenance_json else "",
            f'"schema_version":1,"source":{_utf8(record.source)},',
            f'"source_checksum":{_utf8(record.source_checksum)},',
            f'"source_format":{_utf8(record.source_format)},',
            f'"source_uri":{_utf8(record.source_uri)},"tags":{_compact(record.tags_json)},',
            f'"tier":{_utf8(record.tier)}',
            "" if ttl is None else f',"ttl_seconds":{ttl}',
        )
    except ValueError as error:  # UnicodeEncodeError is one of them
        raise InvalidRequest(
            f"record {record.id!r} holds a number or text an interchange package cannot hold "
            f"({type(error).__name__}); write a v2 snapshot instead"
        ) from error
    return f"{{{''.join(parts)}}}\n"


def _utf8(text: str) -> str:
    return orjson.dumps(text).decode()


def _compact(text: str) -> str:
    """Give a JSON column in canonical form; ValueError when it has none."""
    if text in ("{}", "[]"):
        return text
    line = _canonical(json.loads(text))
    line.encode()
    return line


def _long(text: str) -> str:
    """Quote a long text: where nothing but the usual escapes is needed, several times as fast."""
    if text.isascii() and "\x7f" not in text:
        return orjson.dumps(text).decode()
    return quoted(text)


def _int(value: int | None) -> str:
    return "null" if value is None else str(value)


def _float(value: float) -> str:
    return "0.5" if value == 0.5 else _number(float(value))


def _base64(data: bytes | None) -> str:
    return f'"{b64encode_as_string(data)}"' if data else "null"


def _resorted(text: str | None) -> str:
    """Sort the keys of a JSON column; text without an object in it is sorted as it is."""
    if text is None:
        return "null"
    if text == "{}" or type(text) is SortedText or "{" not in text:
        return text
    return _sorted(json.loads(text))
