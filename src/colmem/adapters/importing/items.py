"""Items from flat fields, as rows of tables and simple JSON objects have them.

The fields are those of ``Engine.ingest_arrow``. Nothing is known here of files but their origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from colmem import (
    InvalidRequest,
    ItemKind,
    Learning,
    LearningKind,
    MemoryMeta,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    conversation,
    decode,
    document,
    encode,
)

CONFIDENCE_DEFAULT: Final = 0.8
_META_FIELDS: Final = (
    "namespace",
    "workspace",
    "folder",
    "file_path",
    "language",
    "repo",
    "commit",
    "url",
    "thread_id",
    "agent_id",
    "tags",
    "observed_at",
)
FIELDS: Final = (
    "text",
    "title",
    "mime",
    "kind",
    "turns",
    "learning_kind",
    "confidence",
    "evidence",
    *_META_FIELDS,
    "turn_first",
    "turn_last",
    "tool_name",
    "tool_id",
    "source_kind",
    "source_id",
)
"""Fields of a flat row, in the order documentation names them."""


class Origin(NamedTuple):
    """Where an item comes from: metadata it gets unless it names its own."""

    source: SourceRef
    folder: str | None = None
    file_path: str | None = None
    language: str | None = None
    namespace: str | None = None
    workspace: str | None = None
    tags: tuple[str, ...] = ()
    observed_at: Timestamp | None = None

    def fields(self) -> dict[str, Any]:
        """The set ones, by the names of MemoryMeta."""
        values = {**self._asdict(), "tags": list(self.tags)}
        return {name: value for name, value in values.items() if value is not None}


def item_of(fields: Mapping[str, Any], origin: Origin) -> StoreItem:
    """The item of a row; fields that are None count as absent.

    Raises
    ------
    InvalidRequest
        When a value is not what its field takes, or nothing is there to be stored.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    turns = given.get("turns")
    kind = ItemKind(_choice(ItemKind, given, "kind", "conversation" if turns else "document"))
    if kind is not ItemKind.CONVERSATION and "text" not in given:
        raise InvalidRequest("`text` is missing")
    meta = _meta(given, origin)
    if kind is ItemKind.CONVERSATION:
        if turns is None:
            raise InvalidRequest("`turns` is missing, which a conversation needs")
        text = turns if isinstance(turns, str) else encode(turns)
        item: StoreItem = conversation(decode(text, list[Turn]), meta=meta)
    elif kind is ItemKind.LEARNING:
        item = Learning(
            text=given["text"],
            learning_kind=_choice(LearningKind, given, "learning_kind", "fact"),
            confidence=given.get("confidence", CONFIDENCE_DEFAULT),
            evidence=given.get("evidence"),
            meta=meta,
        )
    else:
        item = document(given["text"], title=given.get("title"), mime=given.get("mime"), meta=meta)
    item.validate()
    return item


def _meta(given: Mapping[str, Any], origin: Origin) -> MemoryMeta:
    fields = origin.fields() | {name: given[name] for name in _META_FIELDS if name in given}
    if "turn_first" in given:
        last = given.get("turn_last", given["turn_first"])
        fields["turns"] = TurnRange(given["turn_first"], last)
    if "tool_name" in given:
        fields["tool_call"] = ToolCallRef(given["tool_name"], given.get("tool_id"))
    if "source_kind" in given or "source_id" in given:
        kind = _choice(SourceKind, given, "source_kind", SourceKind.IMPORT)
        fields["source"] = SourceRef(kind, given.get("source_id"))
    return MemoryMeta(**fields)


def _choice(enum: Any, given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name, default)
    if value not in list(enum):
        raise InvalidRequest(f"`{name}` is {value!r}, expected one of {', '.join(enum)}")
    return str(value)
