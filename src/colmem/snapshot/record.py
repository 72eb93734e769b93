"""One record: its fields, its reading from a parsed line, its validation and its content hash.

Pure. ``normalise`` applies the defaults and coercions of the format; ``settle`` decides whether the
record can be stored and gives every field its stored form. JSON columns are held as text in the
format's own spelling (``", "`` and ``": "``, ASCII, keys in order of input).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from math import isnan
from typing import Any

import msgspec

from colmem.snapshot import annotations as envelopes
from colmem.snapshot.nesting import COLUMN_DEPTH_MAX, is_deeper

UNKNOWN_KEYS = "_interchange_unknown"
_INT64_MAX = 2**63 - 1
_HEX_DIGITS = frozenset("0123456789abcdef")


class Record(msgspec.Struct, gc=False):
    """The fields of a record, with the values they have when a line says nothing.

    ``embedding`` is what the line holds (base64 text, or anything) until the hydrator has judged
    it; stored records have the float32 little-endian bytes or None. The pass-through fields may
    hold odd JSON values before ``settle``, and text or None after it.
    """

    id: str = ""
    identifier: str = ""
    fact_text: str = ""
    fact_summary: Any = None
    memory_type: str = "fact"
    embedding: Any = None
    embedding_dim: int | None = None
    embedding_model: Any = None
    source: str = ""
    importance: float = 0.5
    metadata_json: str = "{}"
    content_hash: str = ""
    ttl_seconds: int | None = None
    created_at: Any = None
    namespace: str = ""
    tier: str = "hot"
    tags_json: str = "[]"
    source_uri: str = ""
    source_format: str = ""
    source_checksum: Any = ""
    byte_offset: int | None = None
    byte_length: int | None = None
    provenance_json: str | None = None
    promotion_state: Any = "HOT"
    promotion_candidate: Any = 0
    updated_at: Any = None
    snapshot_id: str = ""
    parent_memory: str = ""
    related_json: str = "[]"
    schema_version: int = 1

    def metadata(self) -> dict[str, Any]:
        """Parse the free metadata of the record."""
        value = json.loads(self.metadata_json)
        return value if isinstance(value, dict) else {}

    def view(self) -> dict[str, Any]:
        """Give the record as a dict of its fields, JSON columns as values, embedding as stored."""
        provenance = self.provenance_json
        return {
            "id": self.id,
            "identifier": self.identifier,
            "fact_text": self.fact_text,
            "fact_summary": self.fact_summary,
            "memory_type": self.memory_type,
            "embedding": self.embedding,
            "embedding_dim": self.embedding_dim,
            "embedding_model": self.embedding_model,
            "source": self.source,
            "importance": self.importance,
            "metadata": json.loads(self.metadata_json),
            "content_hash": self.content_hash,
            "ttl_seconds": self.ttl_seconds,
            "created_at": self.created_at,
            "namespace": self.namespace,
            "tier": self.tier,
            "tags": json.loads(self.tags_json),
            "source_uri": self.source_uri,
            "source_format": self.source_format,
            "source_checksum": self.source_checksum,
            "byte_offset": self.byte_offset,
            "byte_length": self.byte_length,
            "provenance": None if provenance is None else json.loads(provenance),
            "promotion_state": self.promotion_state,
            "promotion_candidate": self.promotion_candidate,
            "updated_at": self.updated_at,
            "snapshot_id": self.snapshot_id,
            "parent_memory": self.parent_memory,
            "related_memories": json.loads(self.related_json),
            "schema_version": self.schema_version,
        }

    def embedded_text(self) -> str:
        """Give the text an embedding is made from; empty when there is none."""
        if self.memory_type == "file":
            return self.fact_summary or ""
        return self.fact_text or self.fact_summary or ""


KNOWN_KEYS = frozenset(
    {
        *Record.__struct_fields__,
        "metadata",
        "provenance",
        "tags",
        "related_memories",
        "embedding_b64",
    }
    - {"tags_json", "related_json"}
)


class UnstorableError(ValueError):
    """A value parses as JSON but has no stored form."""


def content_hash(identifier: str, fact_text: str) -> str:
    """Hash an inline record: SHA-256 of ``identifier:fact_text`` as 64 hex digits."""
    return hashlib.sha256(f"{identifier}:{fact_text}".encode()).hexdigest()


def file_content_hash(
    identifier: str,
    source_uri: str,
    byte_offset: int,
    byte_length: int,
    source_checksum: str = "",
) -> str:
    """Hash a reference to a range of a file, as it is when the reference is added."""
    text = f"{identifier}:{source_uri}:{byte_offset}:{byte_length}:{source_checksum or ''}"
    return hashlib.sha256(text.encode()).hexdigest()


def utc_now() -> str:
    """Give the present in the spelling of ``created_at``: ``YYYY-MM-DDTHH:MM:SSZ``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def normalise(raw: dict[str, Any], *, source: str) -> Record:
    """Apply the defaults and coercions of the format to one parsed line.

    ``source`` is the reader's default for that field. The id stays empty when the line has none.

    Raises
    ------
    UnstorableError
        When a number or text has no stored form (an infinite integer, a lone surrogate hashed).
    """
    identifier = _text(raw.get("identifier"), "")
    fact_text = _text(raw.get("fact_text"), "")
    metadata = _object(raw["metadata"] if "metadata" in raw else raw.get("metadata_json")) or {}
    unknown = {key: value for key, value in raw.items() if key not in KNOWN_KEYS}
    if unknown:
        held = metadata.get(UNKNOWN_KEYS)
        merged = {**held, **unknown} if isinstance(held, dict) else unknown
        metadata = {**metadata, UNKNOWN_KEYS: merged}
    provenance = _object(raw["provenance"] if "provenance" in raw else raw.get("provenance_json"))
    return Record(
        id=_text(raw.get("id"), ""),
        identifier=identifier,
        fact_text=fact_text,
        fact_summary=raw.get("fact_summary"),
        memory_type="file" if raw.get("memory_type") == "file" else "fact",
        embedding=raw.get("embedding") or raw.get("embedding_b64") or None,
        embedding_dim=_integer(raw.get("embedding_dim")),
        embedding_model=raw.get("embedding_model"),
        source=_text(raw.get("source"), source),
        importance=_float(raw.get("importance")),
        metadata_json=json_column(metadata),
        content_hash=_hash_of(raw.get("content_hash"), identifier, fact_text),
        ttl_seconds=_integer(raw.get("ttl_seconds")),
        created_at=raw.get("created_at"),
        namespace=_text(raw.get("namespace"), ""),
        tier=_text(raw.get("tier"), "hot"),
        tags_json=json_column(_list(raw.get("tags"))),
        source_uri=_text(raw.get("source_uri"), ""),
        source_format=_text(raw.get("source_format"), ""),
        source_checksum=raw.get("source_checksum"),
        byte_offset=_integer(raw.get("byte_offset")),
        byte_length=_integer(raw.get("byte_length")),
        provenance_json=None if provenance is None else json_column(provenance),
        promotion_state=raw.get("promotion_state"),
        promotion_candidate=raw.get("promotion_candidate"),
        updated_at=raw.get("updated_at"),
        snapshot_id=_text(raw.get("snapshot_id"), ""),
        parent_memory=_text(raw.get("parent_memory"), ""),
        related_json=json_column(_list(raw.get("related_memories"))),
        schema_version=_integer(raw.get("schema_version")) or 1,
    )


def is_hydratable(record: Record) -> bool:
    """Whether a normalised record says enough to be stored (annotations are judged apart)."""
    if not (record.identifier or record.fact_text):
        return False
    if record.memory_type == "file":
        return bool(record.source_uri) and record.byte_length is not None
    return bool(record.fact_text or record.fact_summary)


def settle(record: Record, *, loaded_at: str) -> bool:
    """Give every field its stored form, in place; False when the record is invalid.

    Invalid is also what parses but cannot be stored: objects in text fields, integers beyond 64
    bits, lone surrogates outside the JSON columns. A NaN importance becomes 0.5.
    """
    if not is_hydratable(record):
        return False
    try:
        record.fact_summary = _column(record.fact_summary)
        record.created_at = (
            _column(record.created_at) if record.created_at is not None else loaded_at
        )
        record.updated_at = _column(record.updated_at)
        record.source_checksum = _column(record.source_checksum or "") or ""
        record.promotion_state = _column(record.promotion_state or "HOT")
        record.promotion_candidate = _flag(record.promotion_candidate or 0)
    except UnstorableError:
        return False
    return _is_encodable(record) and settle_typed(record, loaded_at=loaded_at)


def settle_typed(record: Record, *, loaded_at: str) -> bool:
    """Settle a record whose fields have the types and the encodable text of their columns.

    This is all a record needs that was read by a typed reader; ``settle`` ends with it.
    """
    if record.memory_type == "file":
        if record.byte_length is None or not record.source_uri:
            return False
        if not (record.identifier or record.fact_text):
            return False
    elif not record.fact_text and not (record.identifier and record.fact_summary):
        return False
    for number in (
        record.ttl_seconds,
        record.byte_offset,
        record.byte_length,
        record.schema_version,
        record.promotion_candidate,
    ):
        if number and not -_INT64_MAX - 1 <= number <= _INT64_MAX:
            return False
    if record.created_at is None:
        record.created_at = loaded_at
    record.source_checksum = record.source_checksum or ""
    record.promotion_state = record.promotion_state or "HOT"
    record.promotion_candidate = record.promotion_candidate or 0
    importance = record.importance
    # Adding zero takes the sign off a zero.
    record.importance = 0.5 if isnan(importance) else importance + 0.0
    if record.provenance_json == "{}":
        record.provenance_json = None
    if not record.id:
        record.id = generated_id(record.content_hash)
    return True


def annotations_of(record: Record) -> object:
    """Give ``metadata.annotations``, or None when the key is not there.

    A null under the key is returned as an (invalid) empty list, so that it is told from absence.
    """
    text = record.metadata_json
    # Keys are escaped as ASCII in this spelling, so the plain text is there when the key is.
    if '"annotations"' not in text:
        return None
    metadata = record.metadata()
    if "annotations" not in metadata:
        return None
    envelope = metadata["annotations"]
    return [] if envelope is None else envelope


def has_valid_annotations(record: Record) -> bool:
    """Whether the record's annotation envelope is absent or valid in itself."""
    envelope = annotations_of(record)
    return envelope is None or envelopes.is_valid(envelope)


def generated_id(hash_text: str) -> str:
    """Make the id of a record that has none: the first 40 digits of its content hash."""
    if len(hash_text) != 64 or not _HEX_DIGITS.issuperset(hash_text):
        hash_text = hashlib.sha256(hash_text.encode()).hexdigest()
    return hash_text[:40]


def _is_encodable(record: Record) -> bool:
    texts = (
        record.id,
        record.identifier,
        record.fact_text,
        record.fact_summary or "",
        record.source,
        record.content_hash,
        record.created_at or "",
        record.namespace,
        record.tier,
        record.source_uri,
        record.source_format,
        record.source_checksum,
        record.promotion_state,
        record.updated_at or "",
        record.snapshot_id,
        record.parent_memory,
    )
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _hash_of(value: object, identifier: str, fact_text: str) -> str:
    if value:
        return _text(value, "")
    try:
        return content_hash(identifier, fact_text)
    except UnicodeEncodeError as error:
        raise UnstorableError("text holds a lone surrogate") from error


def _text(value: object, default: str) -> str:
    if value is None:
        return default
    try:
        return value if isinstance(value, str) else str(value)
    except (ValueError, RecursionError) as error:
        raise UnstorableError("a value is too large to be text") from error


def _integer(value: object) -> int | None:
    if isinstance(value, float) and math.isinf(value):
        raise UnstorableError("an integer field is infinite")
    if value == "" or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _float(value: object) -> float:
    if not isinstance(value, int | float | str):
        return 0.5
    try:
        return float(value)
    except (ValueError, OverflowError):
        return 0.5


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        value = _parsed(value)
    if value is None or isinstance(value, dict):
        return value
    return {"value": value}


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = _parsed(value)
    return value if isinstance(value, list) else []


def json_column(value: dict[str, Any] | list[Any]) -> str:
    """Spell a JSON column.

    Raises
    ------
    UnstorableError
        When it nests too deep to be read back.
    """
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError) as error:
        raise UnstorableError("a JSON column nests too deep") from error
    if len(text) > COLUMN_DEPTH_MAX and is_deeper(text.encode(), COLUMN_DEPTH_MAX):
        raise UnstorableError("a JSON column nests too deep")
    return text


def _column(value: object) -> str | None:
    """Give a pass-through value the text it has in a text column."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int):
        return _text(int(value), "")
    if isinstance(value, float):
        return repr(value + 0.0)
    raise UnstorableError("an object stands in a text field")


def _flag(value: object) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else 0
    raise UnstorableError("an object stands in promotion_candidate")
