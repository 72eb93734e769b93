"""Records and items, both ways, and the row of the item table that carries either.

A contract item travels as a record whose ``metadata.colmem.item`` holds it; a foreign record is
seen as an item of the nearest shape. What an item's columns cannot give back stands as JSON in the
column ``record``, so both come out as they went in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any

import msgspec
from orjson import dumps as _json

from colmem.contract import (
    Document,
    InvalidRequest,
    Learning,
    LearningKind,
    MemoryMeta,
    Namespace,
    SegmentKind,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    encode,
    is_blank,
)
from colmem.contract.namespaces import Segment
from colmem.contract.scalars import F32, f32_json
from colmem.contract.wire import decode_stored
from colmem.snapshot.json_form import SortedText
from colmem.snapshot.record import Record
from colmem.stored import StoredItem, item_of, stored

_INT64_MAX = 2**63 - 1
_FINGERPRINT_DIGITS = 40
_SCHEMA_VERSION = 2
# Neither says anything about the item or the record: where a vector was made, and which format
# the line came in.
_NOT_COMPARED = frozenset({"embedding", "embedding_dim", "embedding_model", "schema_version"})
_COMPARED = tuple(name for name in Record.__struct_fields__ if name not in _NOT_COMPARED)
_dump_sorted = json.JSONEncoder(sort_keys=True).encode


class ForgedItemError(ValueError):
    """A record carries an item that is malformed or does not hash to the content hash."""


class _Extra(msgspec.Struct, omit_defaults=True, gc=False):
    # The column `record`. With `changed`, the row is a contract item and only these fields of its
    # record are not the derived ones; without, it is a foreign record. `fact_text` null: the text.
    changed: dict[str, Any] | None = None
    fact_text: str | None = None
    fact_summary: str | None = None
    source: str = "snapshot"
    importance: float | str = 0.5
    metadata: str = "{}"
    ttl_seconds: int | None = None
    namespace: str = ""
    tier: str = "hot"
    tags: str = "[]"
    source_uri: str = ""
    source_format: str = ""
    source_checksum: str = ""
    byte_offset: int | None = None
    byte_length: int | None = None
    provenance: str | None = None
    promotion_state: str = "HOT"
    promotion_candidate: int = 0
    updated_at: str | None = None
    snapshot_id: str = ""
    parent_memory: str = ""
    related: str = "[]"
    schema_version: int = _SCHEMA_VERSION


_to_column = msgspec.json.Encoder().encode
_from_column = msgspec.json.Decoder(_Extra).decode
_SHORT_CHARS = 200
_short_extra = lru_cache(maxsize=4096)(_from_column)


def record_of_item(
    item: StoreItem,
    *,
    id: str,
    created_at: str,
    vector: bytes | None,
    model: str,
    dim: int,
    digest: str | None = None,
) -> Record:
    """Write a contract item as a record.

    ``vector`` : float32 little-endian bytes or None; ``digest`` : the item's content digest when
    it is known.
    """
    meta = item.meta
    text = item.render_text()
    title = item.title if isinstance(item, Document) else None
    wire = json.loads(encode(item))
    if isinstance(item, Learning):
        del wire["text"]
    elif isinstance(item, Document) and item.body.content == text:
        del wire["body"]
    source = meta.source
    names = (title, meta.file_path, meta.url, meta.thread_id)
    return Record(
        id=id,
        identifier=next((name for name in names if name and not is_blank(name)), item.kind.value),
        fact_text=text,
        embedding=vector,
        embedding_dim=dim,
        embedding_model=model if vector else "",
        source=source.kind.value if source.id is None else f"{source.kind.value}:{source.id}",
        importance=0.5 if item.confidence is None else float(item.confidence),
        metadata_json=SortedText(_dump_sorted({"colmem": {"item": wire}})),
        content_hash=item.content_digest() if digest is None else digest,
        created_at=created_at,
        namespace="" if meta.namespace.is_root else str(meta.namespace),
        tags_json=json.dumps(meta.tags) if meta.tags else "[]",
        schema_version=_SCHEMA_VERSION,
    )


def carried_item(record: Record) -> StoreItem | None:
    """Give the contract item a settled record carries, or None for a foreign record.

    Raises
    ------
    ForgedItemError
        When what stands under ``metadata.colmem.item`` is not that item.
    """
    if '"colmem"' not in record.metadata_json:
        return None
    member = record.metadata().get("colmem")
    if not isinstance(member, dict) or "item" not in member:
        return None
    wire = member["item"]
    if not isinstance(wire, dict):
        raise ForgedItemError("metadata.colmem.item is not an object")
    if wire.get("type") == "learning":
        wire.setdefault("text", record.fact_text)
    elif wire.get("type") == "document":
        wire.setdefault("body", {"text": record.fact_text})
    try:
        item: StoreItem = decode_stored(json.dumps(wire).encode(), StoreItem)
        item.validate()
        digest = item.content_digest()
    except (InvalidRequest, RecursionError) as error:
        raise ForgedItemError("metadata.colmem.item is not a contract item") from error
    if digest != record.content_hash:
        raise ForgedItemError("metadata.colmem.item does not hash to content_hash")
    return item


def foreign_item(record: Record) -> StoreItem:
    """See a settled record that carries no item as the item nearest to it."""
    source = SourceRef(SourceKind.IMPORT, record.identifier or None)
    meta = MemoryMeta(
        namespace=_namespace(record.namespace),
        source=source,
        tags=_item_tags(record.tags_json)[0],
        observed_at=_instant(record.created_at),
    )
    if record.memory_type == "file":
        path, url = _place(record.source_uri)
        return Document(
            title=record.identifier or None,
            body=record.fact_summary or record.identifier or record.source_uri,  # type: ignore[arg-type]
            meta=meta.replace(file_path=path, url=url),
        )
    return Learning(
        text=record.fact_text or record.fact_summary or "",
        learning_kind=LearningKind.FACT,
        confidence=_confidence(record.importance)[0],
        meta=meta,
    )


def item_of_record(record: Record) -> tuple[StoreItem, str]:
    """Give the item of a settled record, and its id."""
    return carried_item(record) or foreign_item(record), record.id


def row_of_record(record: Record) -> StoredItem:
    """Lay a settled record out as a row of the item table (``row``, ``seq`` and vector unset).

    Raises
    ------
    ForgedItemError
        As :func:`carried_item`.
    """
    item = carried_item(record)
    if item is None:
        return _foreign_row(record)
    row = stored(item, record.content_hash, record.created_at, foreign_id=record.id)
    derived = record_of_item(
        item,
        id=record.id,
        created_at=record.created_at,
        vector=None,
        model="",
        dim=0,
        digest=record.content_hash,
    )
    changed = {
        name: getattr(record, name)
        for name in _COMPARED
        if getattr(record, name) != getattr(derived, name)
    }
    # The line has its metadata in sorted or in wire order: the same either way.
    if "metadata_json" in changed and record.metadata() == derived.metadata():
        del changed["metadata_json"]
    if changed:
        if "importance" in changed:
            changed["importance"] = _finite(changed["importance"])
        row.record = _to_column(_Extra(changed=changed)).decode()
    row.expires_s = _expiry(record)
    return row


def record_to_column(record: Record) -> str:
    """Give the column ``record`` of a foreign record: what the item's columns cannot give back."""
    is_file = record.memory_type == "file"
    make: Callable[..., str] = _extra_text
    if record.metadata_json != "{}" or record.fact_summary is not None or is_file:
        make = _extra_text.__wrapped__  # hardly ever met twice
    importance = record.importance
    return make(
        record.fact_text if is_file or not record.fact_text else None,
        importance if math.isfinite(importance) else _finite(importance),
        _extra_fields(record),
    )


_extra_fields = attrgetter(
    "fact_summary",
    "source",
    "metadata_json",
    "ttl_seconds",
    "namespace",
    "tier",
    "tags_json",
    "source_uri",
    "source_format",
    "source_checksum",
    "byte_offset",
    "byte_length",
    "provenance_json",
    "promotion_state",
    "promotion_candidate",
    "updated_at",
    "snapshot_id",
    "parent_memory",
    "related_json",
    "schema_version",
)


@lru_cache(maxsize=1024)
def _extra_text(fact_text: str | None, importance: float | str, fields: tuple[Any, ...]) -> str:
    summary, source, *others = fields
    extra = _Extra(None, fact_text, summary, source, importance, *others)
    return _to_column(extra).decode()


def record_of_row(row: StoredItem, *, vector: bytes | None, model: str, dim: int) -> Record:
    """Give the record of a row of the item table.

    ``vector`` : float32 little-endian bytes, or None when the row has none; ``model``, ``dim`` :
    the store's embedder.
    """
    extra = None if row.record is None else _extra_of(row.record)
    if extra is not None and extra.changed is None:
        return _foreign_record(row, extra, vector, model, dim)
    record = record_of_item(
        item_of(row),
        id=row.id,
        created_at=row.created_at,
        vector=vector,
        model=model,
        dim=dim,
        digest=row.content_hash,
    )
    if extra is not None and extra.changed is not None:
        for name, value in extra.changed.items():
            setattr(record, name, float(value) if name == "importance" else value)
    return record


def _extra_of(column: str) -> _Extra:
    # Short ones say the same of many records; nobody changes what is read.
    return _short_extra(column) if len(column) <= _SHORT_CHARS else _from_column(column)


def _foreign_record(
    row: StoredItem, extra: _Extra, vector: bytes | None, model: str, dim: int
) -> Record:
    return Record(
        row.id,
        row.source_id or "",
        row.text if extra.fact_text is None else extra.fact_text,
        extra.fact_summary,
        "file" if row.kind == "document" else "fact",
        vector,
        dim,
        model if vector else "",
        extra.source,
        float(extra.importance),
        extra.metadata,
        row.content_hash,
        extra.ttl_seconds,
        row.created_at,
        extra.namespace,
        extra.tier,
        extra.tags,
        extra.source_uri,
        extra.source_format,
        extra.source_checksum,
        extra.byte_offset,
        extra.byte_length,
        extra.provenance,
        extra.promotion_state,
        extra.promotion_candidate,
        extra.updated_at,
        extra.snapshot_id,
        extra.parent_memory,
        extra.related,
        extra.schema_version,
    )


def _foreign_row(record: Record) -> StoredItem:
    """Lay out ``foreign_item(record)`` without making it: a snapshot holds millions of them."""
    namespace, namespace_json = _namespace_path(record.namespace)
    tags, tags_json = _item_tags(record.tags_json)
    identifier = record.identifier
    title = path = url = confidence = None
    if record.memory_type == "file":
        title = identifier or None
        body = record.fact_summary or identifier or record.source_uri
        text = body if title is None or is_blank(title) else f"# {title}\n\n{body}"
        path, url = _place(record.source_uri)
        head = b'{"type":"document"%b,"body":{"text":%b}' % (_member(b"title", title), _json(body))
    else:
        text = record.fact_text or record.fact_summary
        confidence, confidence_json = _confidence(record.importance)
        head = b'{"type":"learning","text":%b,"kind":"fact","confidence":%b' % (
            _json(text),
            confidence_json,
        )
    place = _member(b"file_path", path) + _member(b"url", url) if path or url else b""
    source = _member(b"id", identifier)
    meta = b'%b%b,"source":{"kind":"import"%b}%b' % (namespace_json, place, source, tags_json)
    canonical = b'%b,"meta":{%b}}' % (head, meta[1:])
    fingerprint = sha256(canonical).hexdigest()[:_FINGERPRINT_DIGITS]
    at = _instant(record.created_at)
    return StoredItem(
        -1,
        -1,
        record.id,
        None if fingerprint == record.id else fingerprint,
        record.content_hash,
        "document" if confidence is None else "learning",
        text,
        title,
        None,
        None,
        None if confidence is None else "fact",
        confidence,
        None,
        namespace,
        None,
        None,
        path,
        None,
        None,
        None,
        url,
        None,
        None,
        None,
        None,
        None,
        None,
        "import",
        identifier or None,
        tags,
        None if at is None else at.seconds,
        None if at is None else at.nanos,
        record.created_at,
        _expiry(record),
        False,
        record_to_column(record),
    )


def _member(key: bytes, value: str | None) -> bytes:
    return b',"%b":%b' % (key, _json(value)) if value else b""


def _finite(value: float) -> float | str:
    # JSON has no infinity; its text reads back with float().
    return value if math.isfinite(value) else str(value)


@lru_cache(maxsize=4096)
def _confidence(importance: float) -> tuple[float, bytes]:
    """Give an importance as a confidence in single precision, and as canonical JSON."""
    confidence = F32(min(max(importance, 0.0), 1.0))
    return float(confidence), f32_json(confidence).encode()


@lru_cache(maxsize=4096)
def _namespace_path(text: str) -> tuple[str, bytes]:
    """Give a namespace as an item has it, and as a member of its canonical JSON."""
    namespace = _namespace(text)
    path = "" if namespace.is_root else str(namespace)
    return path, _member(b"namespace", path)


def _namespace(text: str) -> Namespace:
    try:
        return Namespace.parse(text)
    except InvalidRequest:
        return Namespace.from_segments([Segment.sanitized(SegmentKind.WORKSPACE, text)])


def _item_tags(tags_json: str) -> tuple[list[str], bytes]:
    """Give the string tags, less those that no UTF-8 text can hold, and their canonical JSON."""
    if tags_json == "[]":
        return [], b""
    # The items of a snapshot share these lists; nobody changes them.
    known = _short_tags if len(tags_json) <= _SHORT_CHARS else _tags
    return known(tags_json)


def _tags(tags_json: str) -> tuple[list[str], bytes]:
    tags = [tag for tag in json.loads(tags_json) if isinstance(tag, str) and _is_encodable(tag)]
    return tags, b',"tags":%b' % _json(tags) if tags else b""


_short_tags = lru_cache(maxsize=4096)(_tags)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(source_uri: str) -> tuple[str | None, str | None]:
    """Tell a local source from any other: (file_path, url), one of them None."""
    if source_uri.startswith("file://"):
        return source_uri.removeprefix("file://"), None
    if "://" in source_uri:
        return None, source_uri
    return source_uri, None


@lru_cache(maxsize=4096)
def _instant(text: str) -> Timestamp | None:
    try:
        return Timestamp.parse(text)
    except InvalidRequest:
        return None


def _expiry(record: Record) -> int | None:
    """Give the second a record expires at, within 64 bits; None without a time to live or birth."""
    ttl = record.ttl_seconds
    if ttl is None:
        return None
    born = _instant(record.created_at)
    if born is None:
        return None
    return max(-_INT64_MAX, min(born.seconds + ttl, _INT64_MAX))
