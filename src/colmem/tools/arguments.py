"""Strict reading of a model's arguments: exact types, no unknown keys, nothing the host fixes.

Every failure is an InvalidRequest that names the tool and the argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from colmem.contract import (
    InvalidRequest,
    ItemKind,
    MetaFilter,
    SourceKind,
    Timestamp,
    is_blank,
)
from colmem.contract.limits import IDS_PER_GET_MAX
from colmem.tools.specs import LIMIT_DEFAULT, LIMIT_MAX

HOST_KEYS: Final = frozenset({"namespace", "reach"})

_FILTER_TEXTS: Final = (
    "workspace",
    "folder",
    "file_path",
    "repo",
    "url",
    "thread_id",
    "agent_id",
)
_FILTER_TIMES: Final = ("observed_after", "observed_before")
_FILTER_KEYS: Final = ("kinds", "sources", "tags_any", *_FILTER_TEXTS, *_FILTER_TIMES)

Enum = TypeVar("Enum", bound=StrEnum)


class Arguments:
    """One object of arguments; ``prefix`` is its path within the whole."""

    def __init__(self, tool: str, value: Mapping[str, Any], *, prefix: str = "") -> None:
        self.tool = tool
        self.value = value
        self.prefix = prefix

    @classmethod
    def of(cls, tool: str, value: Any) -> Arguments:
        """Take the arguments of a call; none at all is an empty object."""
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise InvalidRequest(f"{tool}: arguments must be a json object")
        arguments = cls(tool, value)
        path = _host_key(value, "")
        if path is not None:
            problem = "is fixed by the host and cannot be passed to a memory tool"
            raise arguments.error(path, problem)
        return arguments

    def error(self, key: str, problem: str) -> InvalidRequest:
        """Make the error for an argument."""
        path = f"{self.prefix}{key}"
        return InvalidRequest(f"{self.tool}: `{path}` {problem}", path=path)

    def allow(self, *keys: str) -> None:
        """Refuse any other key; the first in order of code points is named."""
        unknown = sorted(set(self.value) - set(keys))
        if unknown:
            raise self.error(unknown[0], "is not an argument of this tool")

    def has(self, key: str) -> bool:
        """Whether an argument is there and not null."""
        return self.value.get(key) is not None

    def text(self, key: str) -> str | None:
        """Read an optional string."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def required_text(self, key: str) -> str:
        """Read a string that is not blank."""
        value = self.text(key)
        if value is None or is_blank(value):
            raise self.error(key, "is required and must not be blank")
        return value

    def limit(self) -> int:
        """Read the ``limit``."""
        value = self.value.get("limit")
        if value is None:
            return LIMIT_DEFAULT
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LIMIT_MAX:
            raise self.error("limit", f"must be an integer from 1 to {LIMIT_MAX}")
        return value

    def unit(self, key: str, default: float) -> float:
        """Read a number from 0 to 1."""
        value = self.value.get(key)
        if value is None:
            return default
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0.0 <= value <= 1.0:
            raise self.error(key, "must be a number from 0 to 1")
        return float(value)

    def strings(self, key: str) -> list[str]:
        """Read an array of strings; absent is empty."""
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.error(key, "must be an array of strings")
        return value

    def ids(self) -> list[str]:
        """Read the ``ids``, dropping repeats."""
        ids = self.strings("ids")
        if not 1 <= len(ids) <= IDS_PER_GET_MAX:
            raise self.error("ids", f"must list from 1 to {IDS_PER_GET_MAX} ids")
        if any(map(is_blank, ids)):
            raise self.error("ids", "must not hold a blank id")
        return list(dict.fromkeys(ids))

    def object(self, key: str, *keys: str) -> Arguments:
        """Read an object with no other keys than these; absent is empty."""
        value = self.value.get(key)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise self.error(key, "must be an object")
        inner = Arguments(self.tool, value, prefix=f"{self.prefix}{key}.")
        inner.allow(*keys)
        return inner

    def filter(self) -> MetaFilter:
        """Read the ``filter``; absent is empty."""
        inner = self.object("filter", *_FILTER_KEYS)
        fields: dict[str, Any] = {
            "kinds": inner.enums("kinds", ItemKind, "an item kind"),
            "sources": inner.enums("sources", SourceKind, "a source kind"),
            "tags_any": inner.strings("tags_any"),
        }
        for key in _FILTER_TEXTS:
            fields[key] = inner.text(key)
        for key in _FILTER_TIMES:
            fields[key] = inner.time(key)
        return MetaFilter(**fields)

    def enums(self, key: str, enum: type[Enum], noun: str) -> list[Enum]:
        """Read an array of an enum's names."""
        found: list[Enum] = []
        for name in self.strings(key):
            if name not in list(enum):
                raise self.error(key, f"`{name}` is not {noun}")
            found.append(enum(name))
        return found

    def time(self, key: str) -> Timestamp | None:
        """Read an RFC 3339 time, in its strict form."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return Timestamp.parse(text, strict=True)
        except InvalidRequest as error:
            raise self.error(key, "must be an rfc 3339 timestamp") from error


def _host_key(value: Any, path: str) -> str | None:
    # Depth first, keys in order of code points: the path of the first key the host fixes.
    if isinstance(value, Mapping):
        for key in sorted(value):
            inner = f"{path}.{key}" if path else key
            if key in HOST_KEYS:
                return inner
            found = _host_key(value[key], inner)
            if found is not None:
                return found
    elif isinstance(value, list):
        for element in value:
            found = _host_key(element, f"{path}[]")
            if found is not None:
                return found
    return None
