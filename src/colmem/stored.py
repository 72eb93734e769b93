"""The stored form of an item: one value per column of the item table, and its conversions.

item -> StoredItem -> bytes of the row log, or an Arrow batch for the table and the lexical index;
and back to the item or to the Hit that reads answer with. The fields are schema.ITEMS, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from colmem.arrow_columns import array_of
from colmem.contract import (
    F32,
    Conversation,
    Document,
    DocumentBody,
    Hit,
    ItemKind,
    Learning,
    LearningKind,
    MemoryMeta,
    Namespace,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    decode,
    encode,
    is_blank,
)
from colmem.schema import ITEMS

_FINGERPRINT_DIGITS = 40


class StoredItem(msgspec.Struct, array_like=True, gc=False):
    """One row. ``row`` and ``seq`` are given when it is written."""

    row: int
    seq: int
    id: str
    fingerprint: str | None
    content_hash: str
    kind: str
    text: str
    title: str | None
    mime: str | None
    turns: str | None
    learning_kind: str | None
    confidence: float | None
    evidence: str | None
    namespace: str
    workspace: str | None
    folder: str | None
    file_path: str | None
    language: str | None
    repo: str | None
    commit: str | None
    url: str | None
    thread_id: str | None
    turn_first: int | None
    turn_last: int | None
    agent_id: str | None
    tool_name: str | None
    tool_id: str | None
    source_kind: str
    source_id: str | None
    tags: list[str]
    observed_s: int | None
    observed_ns: int | None
    created_at: str
    expires_s: int | None
    has_vector: bool
    record: str | None

    @property
    def own_fingerprint(self) -> str:
        """The item's fingerprint, which is also the id of an item stored through the contract."""
        return self.id if self.fingerprint is None else self.fingerprint

    @property
    def is_foreign(self) -> bool:
        """Whether it is another system's record, told apart by content hash, not by fingerprint."""
        return not self.content_hash.startswith(self.own_fingerprint)


Columns = dict[str, list[Any]]
"""Values of rows by the name of their field."""


class StoredHead(msgspec.Struct, array_like=True, gc=False):
    """The leading fields of a row: what tells it from others, decoded without the rest."""

    row: int
    seq: int
    id: str
    fingerprint: str | None
    content_hash: str

    @property
    def own_fingerprint(self) -> str:
        """As of :class:`StoredItem`."""
        return self.id if self.fingerprint is None else self.fingerprint


_TEXT_FIELDS = (
    "workspace",
    "folder",
    "file_path",
    "language",
    "repo",
    "commit",
    "url",
    "thread_id",
    "agent_id",
)
_texts_of = attrgetter(*_TEXT_FIELDS)
_KINDS = {kind.value: kind for kind in ItemKind}
_NO_META = MemoryMeta()
_NO_HIT = Hit(id="", kind=ItemKind.DOCUMENT, text="", meta=_NO_META, score=0.0)
# Copies, as msgspec makes them in C, of structs whose every field is set afterwards.
new_meta: Callable[[], MemoryMeta] = _NO_META.__copy__  # type: ignore[attr-defined]
_new_hit: Callable[[], Hit] = _NO_HIT.__copy__  # type: ignore[attr-defined]
set_trusted = msgspec.structs.force_setattr
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(StoredItem)
_HEAD_DECODER = msgspec.msgpack.Decoder(StoredHead)


def stored(
    item: StoreItem, digest: str, created_at: str, *, foreign_id: str | None = None
) -> StoredItem:
    """Lay an item out in columns; its id is the fingerprint unless a record brought its own.

    digest : the item's content digest, 64 hex digits.
    """
    meta = item.meta
    fingerprint = digest[:_FINGERPRINT_DIGITS]
    own_id = foreign_id is None or foreign_id == fingerprint
    title = mime = turns = learning_kind = confidence = evidence = None
    if isinstance(item, Document):
        title, mime = item.title, item.mime
    elif isinstance(item, Learning):
        learning_kind, confidence = item.learning_kind.value, float(item.confidence)
        evidence = item.evidence
    else:
        turns = encode(item.turns).decode()
    at, call, span = meta.observed_at, meta.tool_call, meta.turns
    return StoredItem(
        -1,
        -1,
        fingerprint if foreign_id is None else foreign_id,
        None if own_id else fingerprint,
        digest,
        item.kind.value,
        item.render_text(),
        title,
        mime,
        turns,
        learning_kind,
        confidence,
        evidence,
        "" if meta.namespace.is_root else str(meta.namespace),
        meta.workspace,
        meta.folder,
        meta.file_path,
        meta.language,
        meta.repo,
        meta.commit,
        meta.url,
        meta.thread_id,
        None if span is None else span.first,
        None if span is None else span.last,
        meta.agent_id,
        None if call is None else call.name,
        None if call is None else call.id,
        meta.source.kind.value,
        meta.source.id,
        meta.tags,
        None if at is None else at.seconds,
        None if at is None else at.nanos,
        created_at,
        None,
        True,
        None,
    )


def to_bytes(row: StoredItem) -> bytes:
    """Encode a row for the log (MessagePack array); an id that its digest repeats is left out."""
    if row.fingerprint is None and row.content_hash.startswith(row.id):
        row_id, row.id = row.id, ""
        try:
            return _ENCODER.encode(row)
        finally:
            row.id = row_id
    return _ENCODER.encode(row)


def from_bytes(data: bytes) -> StoredItem:
    """Decode what :func:`to_bytes` wrote."""
    row = _DECODER.decode(data)
    if row.id == "" and row.fingerprint is None:
        row.id = row.content_hash[:_FINGERPRINT_DIGITS]
    return row


def head_from_bytes(data: bytes) -> StoredHead:
    """Decode the leading fields of what :func:`to_bytes` wrote."""
    head = _HEAD_DECODER.decode(data)
    if head.id == "" and head.fingerprint is None:
        head.id = head.content_hash[:_FINGERPRINT_DIGITS]
    return head


def columns_of(rows: Sequence[StoredItem]) -> Columns:
    """The values of rows, field by field."""
    return {name: list(map(get, rows)) for name, get in _GETTERS.items()}


def to_batch(columns: Columns) -> pa.RecordBatch:
    """Columns as an Arrow batch of schema.ITEMS."""
    arrays = [array_of(columns[field.name], field.type) for field in ITEMS]
    return pa.RecordBatch.from_arrays(arrays, schema=ITEMS)


_GETTERS = {field.name: attrgetter(field.name) for field in ITEMS}


def from_batch(batch: pa.RecordBatch) -> list[StoredItem]:
    """Rows of an Arrow batch of schema.ITEMS."""
    return [StoredItem(*values) for values in zip(*(c.to_pylist() for c in batch), strict=True)]


def meta_of(row: StoredItem) -> MemoryMeta:
    """The metadata of a row, whole.

    Stored values were checked when they came in, so they are set on a copy, without the checks of
    the constructor.
    """
    meta = new_meta()
    if row.namespace:
        set_trusted(meta, "namespace", _namespace(row.namespace))
    for name, value in zip(_TEXT_FIELDS, _texts_of(row), strict=True):
        if value is not None:
            set_trusted(meta, name, value)
    if row.turn_first is not None:
        set_trusted(meta, "turns", TurnRange(row.turn_first, row.turn_last or 0))
    if row.tool_name is not None:
        set_trusted(meta, "tool_call", ToolCallRef(row.tool_name, row.tool_id))
    set_trusted(meta, "source", _source(row.source_kind, row.source_id))
    set_trusted(meta, "tags", row.tags)
    if row.observed_s is not None:
        set_trusted(meta, "observed_at", Timestamp(row.observed_s, row.observed_ns or 0))
    return meta


def hit_of(row: StoredItem, score: float = 0.0) -> Hit:
    """The answer form of a row; ``score`` must be a single-precision value."""
    hit = _new_hit()
    set_trusted(hit, "id", row.id)
    set_trusted(hit, "kind", _KINDS[row.kind])
    set_trusted(hit, "text", row.text)
    set_trusted(hit, "meta", meta_of(row))
    if score:
        set_trusted(hit, "score", F32(score))
    if row.confidence is not None:
        set_trusted(hit, "confidence", F32(row.confidence))
    return hit


def item_of(row: StoredItem) -> StoreItem:
    """The item as it was stored, ``observed_at`` included."""
    meta = meta_of(row)
    if row.kind == ItemKind.LEARNING:
        assert row.learning_kind is not None
        assert row.confidence is not None
        kind = LearningKind(row.learning_kind)
        return Learning(
            text=row.text,
            learning_kind=kind,
            confidence=row.confidence,
            evidence=row.evidence,
            meta=meta,
        )
    if row.kind == ItemKind.CONVERSATION:
        assert row.turns is not None
        return Conversation(turns=decode(row.turns, list[Turn]), meta=meta)
    body = row.text
    if row.title is not None and not is_blank(row.title):
        body = body[len(f"# {row.title}\n\n") :]
    return Document(title=row.title, body=DocumentBody(text=body), mime=row.mime, meta=meta)


def items_of(rows: Iterable[StoredItem]) -> list[StoreItem]:
    """Items of rows, in order."""
    return [item_of(row) for row in rows]


@lru_cache(maxsize=4096)
def _source(kind: str, id: str | None) -> SourceRef:
    return SourceRef(SourceKind(kind), id)


@lru_cache(maxsize=4096)
def _namespace(path: str) -> Namespace:
    return Namespace.parse(path)
