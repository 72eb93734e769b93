"""What is known about an item beside its content: MemoryMeta and its parts.

The order of the fields is the order of the canonical JSON, so it may never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.contract.limits import U32_MAX
from colmem.contract.namespaces import ROOT, Namespace
from colmem.contract.timestamps import Timestamp
from colmem.contract.vocabulary import SourceKind, member

set_field = msgspec.structs.force_setattr
"""Sets a field of a frozen struct while it is being made."""

U32 = Annotated[int, msgspec.Meta(ge=0, le=U32_MAX)]


def wrong_type(owner: object, field: str, value: object, expected: str) -> InvalidRequest:
    """Make the error for a field that was given a value of another type."""
    return InvalidRequest(
        f"{type(owner).__name__}.{field} must be {expected}, got {type(value).__name__}",
        path=field,
    )


def check_text(owner: object, *fields: str) -> None:
    """Refuse fields that hold anything but a string."""
    for field in fields:
        if not isinstance(getattr(owner, field), str):
            raise wrong_type(owner, field, getattr(owner, field), "a string")


def check_optional_text(owner: object, *fields: str) -> None:
    """Refuse fields that hold anything but a string or nothing."""
    for field in fields:
        value = getattr(owner, field)
        if value is not None and not isinstance(value, str):
            raise wrong_type(owner, field, value, "a string or None")


def to_list(owner: object, field: str, value: Any) -> list[Any]:
    """Take a list, or a tuple as one; a single string is a mistake worth naming."""
    if isinstance(value, (list, tuple)):
        return list(value)
    raise wrong_type(owner, field, value, "a list")


def to_texts(owner: object, field: str, value: Any) -> list[str]:
    """Take a list of strings."""
    texts = value if type(value) is list else to_list(owner, field, value)
    for text in texts:
        if not isinstance(text, str):
            raise wrong_type(owner, field, text, "a list of strings")
    return texts


def to_timestamp(owner: object, field: str, value: Any) -> Timestamp:
    """Take an instant in any accepted form; the error names the field."""
    try:
        return Timestamp.of(value)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"{type(owner).__name__}.{field}: {error.message}", path=field
        ) from error


class ToolCallRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool call: the tool's name, and the call's id when known."""

    name: str
    id: str | None = None

    def __post_init__(self) -> None:
        check_text(self, "name")
        check_optional_text(self, "id")


class TurnRange(msgspec.Struct, frozen=True, gc=False):
    """Turns of a thread, both ends included; no order between them is enforced."""

    first: U32
    last: U32

    def __post_init__(self) -> None:
        for field in ("first", "last"):
            value = getattr(self, field)
            if type(value) is not int or not 0 <= value <= U32_MAX:
                raise wrong_type(self, field, value, f"an integer from 0 to {U32_MAX}")


class SourceRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where an item came from: the kind of source, and which one when known."""

    kind: SourceKind
    id: str | None = None

    if TYPE_CHECKING:

        def __init__(self, kind: SourceKind | str, id: str | None = ...) -> None: ...

    def __post_init__(self) -> None:
        if type(self.kind) is not SourceKind:
            set_field(self, "kind", member(SourceKind, self.kind, "source.kind"))
        if self.id is not None:
            check_optional_text(self, "id")


AGENT_SOURCE = SourceRef(SourceKind.AGENT)
"""The source of an item whose metadata names none."""


class MemoryMeta(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Metadata of an item; every field is optional, and an empty string is a value.

    ``namespace`` may be given as text, ``source`` as its kind, ``observed_at`` as RFC 3339 text or
    a datetime with a time zone.
    """

    namespace: Namespace = ROOT
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
    tool_call: ToolCallRef | None = None
    # A factory of our own, unlike a plain default, is never left out of the output.
    source: SourceRef = msgspec.field(default_factory=lambda: AGENT_SOURCE)
    tags: list[str] = []
    observed_at: Timestamp | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            namespace: Namespace | str = ...,
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
            tool_call: ToolCallRef | None = ...,
            source: SourceRef | str = ...,
            tags: Sequence[str] = ...,
            observed_at: Timestamp | str | datetime | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.namespace) is not Namespace:
            namespace: Any = self.namespace
            set_field(self, "namespace", ROOT if namespace is None else Namespace(namespace))
        elif self.namespace == "root" and self.namespace is not ROOT:
            set_field(self, "namespace", ROOT)  # the encoder leaves out this very object
        if type(self.source) is not SourceRef:
            source: Any = self.source
            set_field(self, "source", AGENT_SOURCE if source is None else SourceRef(source))
        if self.observed_at is not None and type(self.observed_at) is not Timestamp:
            set_field(self, "observed_at", to_timestamp(self, "observed_at", self.observed_at))
        if type(self.tags) is not list:
            set_field(self, "tags", to_list(self, "tags", self.tags))
        for tag in self.tags:
            if type(tag) is not str:
                to_texts(self, "tags", self.tags)
        for value in (
            self.workspace,
            self.folder,
            self.file_path,
            self.language,
            self.repo,
            self.commit,
            self.url,
            self.thread_id,
            self.agent_id,
        ):
            if value is not None and type(value) is not str:
                check_optional_text(self, *TEXT_FIELDS)
        if self.turns is not None and type(self.turns) is not TurnRange:
            raise wrong_type(self, "turns", self.turns, "a TurnRange or None")
        if self.tool_call is not None and type(self.tool_call) is not ToolCallRef:
            raise wrong_type(self, "tool_call", self.tool_call, "a ToolCallRef or None")

    def replace(self, **changes: Any) -> MemoryMeta:
        """Return a copy with other values in some fields."""
        return msgspec.structs.replace(self, **changes)


TEXT_FIELDS = (
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
"""The plain string fields of MemoryMeta, in their order."""
