"""MetaFilter, which items a read admits, and Facet, what items are counted by.

A filter is the AND of its set fields. What compiles filters to another language reads the fields;
the tables below say which rule each follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.contract.metadata import (
    MemoryMeta,
    TurnRange,
    check_optional_text,
    set_field,
    to_list,
    to_texts,
    to_timestamp,
    wrong_type,
)
from colmem.contract.namespaces import Namespace, Reach
from colmem.contract.scalars import is_blank
from colmem.contract.timestamps import Timestamp
from colmem.contract.vocabulary import ItemKind, SourceKind, member

EXACT_FIELDS: Final = (
    "workspace",
    "language",
    "repo",
    "commit",
    "url",
    "thread_id",
    "agent_id",
)
"""Fields of a filter that hold when the item's field of the same name is the identical string."""

PATH_FIELDS: Final = ("folder", "file_path")
"""Fields of a filter that hold by the path rule (`path_admits`)."""


def path_prefix(wanted: str) -> str:
    """Return what a held path at or below the wanted one starts with; empty for the top."""
    return wanted.rstrip("/")


def path_admits(wanted: str, held: str | None) -> bool:
    """Whether a held path is the wanted one or lies below it; no path never does."""
    if held is None:
        return False
    if held == wanted:
        return True
    prefix = wanted.rstrip("/")
    return held.startswith(prefix) and held[len(prefix) : len(prefix) + 1] in ("", "/")


class MetaFilter(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Conditions on an item's kind and metadata; unset fields and empty lists do not constrain."""

    reach: Reach | None = None
    workspace: str | None = None
    folder: str | None = None
    file_path: str | None = None
    language: str | None = None
    repo: str | None = None
    commit: str | None = None
    url: str | None = None
    thread_id: str | None = None
    turns: TurnRange | None = None
    agent_id: str | None = None
    tool_call: str | None = None
    source_id: str | None = None
    kinds: list[ItemKind] = []
    sources: list[SourceKind] = []
    tags_any: list[str] = []
    observed_after: Timestamp | None = None
    observed_before: Timestamp | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            reach: Reach | None = ...,
            workspace: str | None = ...,
            folder: str | None = ...,
            file_path: str | None = ...,
            language: str | None = ...,
            repo: str | None = ...,
            commit: str | None = ...,
            url: str | None = ...,
            thread_id: str | None = ...,
            turns: TurnRange | None = ...,
            agent_id: str | None = ...,
            tool_call: str | None = ...,
            source_id: str | None = ...,
            kinds: Sequence[ItemKind | str] = ...,
            sources: Sequence[SourceKind | str] = ...,
            tags_any: Sequence[str] = ...,
            observed_after: Timestamp | str | datetime | None = ...,
            observed_before: Timestamp | str | datetime | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.reach is not None and type(self.reach) is not Reach:
            raise wrong_type(self, "reach", self.reach, "a Reach or None")
        if self.turns is not None and type(self.turns) is not TurnRange:
            raise wrong_type(self, "turns", self.turns, "a TurnRange or None")
        check_optional_text(self, *EXACT_FIELDS, *PATH_FIELDS, "tool_call", "source_id")
        kinds = to_list(self, "kinds", self.kinds)
        set_field(self, "kinds", [member(ItemKind, kind, "kinds") for kind in kinds])
        sources = to_list(self, "sources", self.sources)
        set_field(self, "sources", [member(SourceKind, source, "sources") for source in sources])
        set_field(self, "tags_any", to_texts(self, "tags_any", self.tags_any))
        for field in ("observed_after", "observed_before"):
            value = getattr(self, field)
            if value is not None and type(value) is not Timestamp:
                set_field(self, field, to_timestamp(self, field, value))

    def is_empty(self) -> bool:
        """Whether nothing is set; even a default reach is something."""
        return self == _EMPTY

    def admits_kind(self, kind: ItemKind | str) -> bool:
        """Whether the filter's kinds, looked at alone, admit a kind."""
        return not self.kinds or kind in self.kinds

    def matches(self, kind: ItemKind | str, meta: MemoryMeta) -> bool:
        """Whether an item of this kind with this metadata is admitted."""
        return (
            self.admits_kind(kind)
            and (self.reach is None or self.reach.admits(meta.namespace))
            and self._admits_strings(meta)
            and (self.turns is None or self.turns == meta.turns)
            and self._admits_source(meta)
            and (not self.tags_any or not set(self.tags_any).isdisjoint(meta.tags))
            and self._admits_time(meta.observed_at)
        )

    def replace(self, **changes: Any) -> MetaFilter:
        """Return a copy with other values in some fields."""
        return msgspec.structs.replace(self, **changes)

    def _admits_strings(self, meta: MemoryMeta) -> bool:
        # Spelled out, for this runs for every item of a brute-force read.
        return (
            (self.workspace is None or self.workspace == meta.workspace)
            and (self.language is None or self.language == meta.language)
            and (self.repo is None or self.repo == meta.repo)
            and (self.commit is None or self.commit == meta.commit)
            and (self.url is None or self.url == meta.url)
            and (self.thread_id is None or self.thread_id == meta.thread_id)
            and (self.agent_id is None or self.agent_id == meta.agent_id)
            and (self.folder is None or path_admits(self.folder, meta.folder))
            and (self.file_path is None or path_admits(self.file_path, meta.file_path))
            and (
                self.tool_call is None
                or (meta.tool_call is not None and meta.tool_call.name == self.tool_call)
            )
        )

    def _admits_source(self, meta: MemoryMeta) -> bool:
        if self.source_id is not None and meta.source.id != self.source_id:
            return False
        return not self.sources or meta.source.kind in self.sources

    def _admits_time(self, at: Timestamp | None) -> bool:
        if self.observed_after is None and self.observed_before is None:
            return True
        if at is None or (self.observed_after is not None and at < self.observed_after):
            return False
        return self.observed_before is None or at < self.observed_before


_EMPTY: Final = MetaFilter()


class Facet(StrEnum):
    """What items can be counted by, and a filter narrowed by."""

    KIND = "kind"
    SOURCE = "source"
    SOURCE_ID = "source_id"
    WORKSPACE = "workspace"
    FOLDER = "folder"
    FILE_PATH = "file_path"
    LANGUAGE = "language"
    REPO = "repo"
    URL = "url"
    THREAD = "thread"
    AGENT = "agent"
    TOOL_CALL = "tool_call"
    TAG = "tag"
    NAMESPACE = "namespace"

    @property
    def field(self) -> str:
        """The metadata field behind the facet, where it is a field of its own."""
        return _FACET_FIELDS.get(self, self.value)

    def values(self, kind: ItemKind | str, meta: MemoryMeta) -> list[str]:
        """Return an item's values along the facet: none, one, or all its tags with repeats."""
        match self:
            case Facet.KIND:
                return [str(member(ItemKind, kind, "kind"))]
            case Facet.SOURCE:
                return [str(meta.source.kind)]
            case Facet.TAG:
                return list(meta.tags)
            case Facet.NAMESPACE:
                return [str(meta.namespace)]
            case Facet.SOURCE_ID:
                value = meta.source.id
            case Facet.TOOL_CALL:
                value = meta.tool_call.name if meta.tool_call is not None else None
            case _:
                value = getattr(meta, self.field)
        return [] if value is None else [value]

    def narrow(self, filter: MetaFilter, value: str) -> MetaFilter:
        """Return the filter with the facet's field set to one value; the other fields stay.

        Raises
        ------
        InvalidRequest
            For a blank value, or one that is no kind, no source or no namespace.
        """
        if not isinstance(value, str):
            raise InvalidRequest(
                f"a `{self.value}` value must be a string, got {type(value).__name__}"
            )
        if is_blank(value):
            raise InvalidRequest(f"a `{self.value}` value must not be blank")
        match self:
            case Facet.KIND:
                if value not in list(ItemKind):
                    raise InvalidRequest(f"`{value}` is not an item kind")
                return filter.replace(kinds=[ItemKind(value)])
            case Facet.SOURCE:
                if value not in list(SourceKind):
                    raise InvalidRequest(f"`{value}` is not a source kind")
                return filter.replace(sources=[SourceKind(value)])
            case Facet.TAG:
                return filter.replace(tags_any=[value])
            case Facet.NAMESPACE:
                return filter.replace(reach=Reach.exact(Namespace.parse(value)))
        return filter.replace(**{self.field: value})


_FACET_FIELDS: Final = {Facet.THREAD: "thread_id", Facet.AGENT: "agent_id", Facet.TAG: "tags"}
