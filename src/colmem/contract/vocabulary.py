"""The enums of the contract, with their exact wire spellings, in declaration order."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from colmem.contract.errors import InvalidRequest


class ItemKind(StrEnum):
    """The three shapes of an item."""

    DOCUMENT = "document"
    CONVERSATION = "conversation"
    LEARNING = "learning"


class LearningKind(StrEnum):
    """What a learning states."""

    PREFERENCE = "preference"
    FACT = "fact"
    PROCEDURE = "procedure"
    CORRECTION = "correction"
    OTHER = "other"


class Role(StrEnum):
    """Who speaks a turn."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class SourceKind(StrEnum):
    """Where an item came from; ``agent`` when nothing says otherwise."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    GITHUB = "github"
    RSS = "rss"
    COMPOSIO = "composio"
    CONVERSATION = "conversation"
    AGENT = "agent"
    IMPORT = "import"


class FetchMode(StrEnum):
    """How a fetch ranks."""

    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"


class SegmentKind(StrEnum):
    """Kind of a namespace segment; as a path prefix ``workspace`` is written ``ws``."""

    AGENT = "agent"
    TEAM = "team"
    USER = "user"
    WORKSPACE = "workspace"
    PROJECT = "project"

    @property
    def path_prefix(self) -> str:
        """The spelling inside a path."""
        return "ws" if self is SegmentKind.WORKSPACE else self.value


class HealthState(StrEnum):
    """How an engine is doing."""

    OK = "ok"
    DEGRADED = "degraded"
    DOWN = "down"


Enum = TypeVar("Enum", bound=StrEnum)


def member(enum: type[Enum], value: object, field: str) -> Enum:
    """Turn a plain string into its enum member; a member passes through.

    Raises
    ------
    InvalidRequest
        When the value is not one of the enum's spellings.
    """
    if type(value) is enum:
        return value
    if isinstance(value, str):
        try:
            return enum(value)
        except ValueError:
            pass
    expected = ", ".join(enum)
    raise InvalidRequest(f"`{field}` is {value!r}, expected one of {expected}", path=field)
