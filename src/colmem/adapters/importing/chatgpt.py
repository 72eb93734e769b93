"""ChatGPT's export: ``conversations.json``, or the whole archive that holds it.

A conversation is a tree of messages, of which the branch of ``current_node`` is read. It becomes an
item for each exchange (a message of the user and what follows up to the next one), so that a search
finds the passage and not the whole talk.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from colmem import (
    ColmemError,
    InvalidRequest,
    MemoryMeta,
    Role,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    conversation,
    is_blank,
)
from colmem.adapters import foreign
from colmem.adapters.importing import exports
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.reading import Items, Problem, Reading, unreadable

_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_URL: Final = "https://chatgpt.com/c/"
_SHAPE: Final = exports.Shape(exports.Export.CHATGPT, "item")
_UNSAID: Final = ("thoughts", "reasoning_recap")  # what the model thought, and told nobody
_ATTACHED: Final = {"image_asset_pointer": "image", "audio_asset_pointer": "audio"}
_TEXTS: Final = ("text", "result", "user_profile", "user_instructions")
MEMBERS_SHOWN: Final = 5


def read_conversations(path: Path, origin: Origin, reading: Reading, shape: exports.Shape) -> Items:
    """The exchanges of every conversation of a JSON file."""
    for element in exports.read(path, shape, reading.consumed):
        yield from _items(element, origin)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive with conversations in it."""
    try:
        return bool(_members(path))
    except zipfile.BadZipFile:
        return False


def read_archive(path: Path, origin: Origin, reading: Reading) -> Items:
    """The exchanges of every conversation of an export as it was downloaded."""
    try:
        names = _members(path)
        if not names:
            yield Problem(str(path), f"no conversations.json in it; it holds {_content(path)}")
            return
        with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            for name in names:
                with archive.open(name) as file:
                    for element in exports.elements(file, _SHAPE, f"{path}/{name}"):
                        reading.consumed(raw.tell())
                        yield from _items(element, origin)
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        yield unreadable(path, error)


def _members(path: Path) -> list[str]:
    """The files of conversations in an archive, in order of their names."""
    with zipfile.ZipFile(path) as archive:
        return sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))


def _content(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    shown = ", ".join(names[:MEMBERS_SHOWN]) or "nothing"
    return shown + (f" and {len(names) - MEMBERS_SHOWN} more" if names[MEMBERS_SHOWN:] else "")


def _items(element: exports.Element, origin: Origin) -> Iterable[StoreItem | Problem]:
    if element.problem:
        return [Problem(element.place, element.problem)]
    try:
        return _exchanges(element.value, origin)
    except ColmemError as error:
        return [Problem(element.place, error.message)]


def _exchanges(value: Any, origin: Origin) -> list[StoreItem]:
    """A conversation's items, all of them or an error."""
    talk = _object(value, "the conversation")
    turns = [turn for message in _branch(talk) if (turn := _turn(message)) is not None]
    base = _meta(talk, origin)
    items: list[StoreItem] = []
    for first, last in _spans(turns):
        part = turns[first : last + 1]
        at = next((turn.at for turn in reversed(part) if turn.at is not None), base.observed_at)
        item = conversation(part, meta=base.replace(turns=TurnRange(first, last), observed_at=at))
        item.validate()
        items.append(item)
    return items


def _meta(talk: Mapping[str, Any], origin: Origin) -> MemoryMeta:
    fields = origin.fields()
    id = talk.get("conversation_id") or talk.get("id")
    if id is not None:
        fields |= {"thread_id": id, "url": f"{_URL}{id}"}
    at = _time(talk, "update_time") or _time(talk, "create_time")
    if at is not None:
        fields["observed_at"] = at
    title = talk.get("title")
    return foreign.with_metadata(MemoryMeta(**fields), {"title": title} if title else {}, ())


def _spans(turns: list[Turn]) -> Iterator[tuple[int, int]]:
    """First and last turn of each exchange; what is said before the user belongs to the first."""
    first, has_user = 0, False
    for number, turn in enumerate(turns):
        if turn.role is Role.USER:
            if has_user:
                yield first, number - 1
                first = number
            has_user = True
    if turns:
        yield first, len(turns) - 1


def _branch(talk: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages from the root to the current node."""
    nodes = _object(talk.get("mapping"), "mapping")
    at = talk.get("current_node")
    if nodes and at is None:
        raise InvalidRequest("current_node is missing, so it is unknown which branch was read last")
    found: list[dict[str, Any]] = []
    seen: set[Any] = set()
    while at is not None:
        if not isinstance(at, str) or at not in nodes:
            raise InvalidRequest(f"mapping has no node {at!r}, which the branch leads to")
        if at in seen:
            raise InvalidRequest(f"the branch comes back to node {at!r}; it has no beginning")
        seen.add(at)
        node = _object(nodes[at], f"mapping[{at!r}]")
        if node.get("message") is not None:
            found.append(_object(node["message"], f"mapping[{at!r}].message"))
        at = node.get("parent")
    return found[::-1]


def _turn(message: Mapping[str, Any]) -> Turn | None:
    """What a message says, or None for what was not shown, or says nothing."""
    hidden = _object(message.get("metadata") or {}, "message.metadata")
    if hidden.get("is_visually_hidden_from_conversation"):
        return None
    content = _object(message.get("content") or {}, "message.content")
    text = _text(content)
    if is_blank(text):
        return None
    author = _object(message.get("author"), "message.author")
    role, name = author.get("role"), author.get("name")
    if role not in list(Role):
        raise InvalidRequest(f"message.author.role is {role!r}, expected one of {', '.join(Role)}")
    called = name if role == Role.TOOL else message.get("recipient")
    calls = [ToolCallRef(called)] if isinstance(called, str) and called != "all" else []
    return Turn(Role(role), text, _time(message, "create_time"), calls)


def _text(content: Mapping[str, Any]) -> str:
    if content.get("content_type") in _UNSAID:
        return ""
    parts = content.get("parts")
    if parts is None:
        parts = [content[name] for name in _TEXTS if content.get(name)]
    if not isinstance(parts, list):
        raise InvalidRequest(f"message.content.parts must be a list, got {type(parts).__name__}")
    return "\n".join(text for part in parts if not is_blank(text := _part(part)))


def _part(part: Any) -> str:
    """A text, the text of an object, or what kind of thing is attached."""
    if isinstance(part, str):
        return part
    if part is None:
        return ""
    held = _object(part, "a part of message.content")
    text = held.get("text")
    if isinstance(text, str):
        return text
    kind = held.get("content_type")
    return f"[{_ATTACHED.get(str(kind), kind)}]" if kind else ""


def _time(value: Mapping[str, Any], name: str) -> Timestamp | None:
    """Seconds since 1970 as an instant."""
    seconds = value.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, Decimal)):
        raise InvalidRequest(f"{name} must be seconds since 1970, got {type(seconds).__name__}")
    whole = int(seconds // 1)
    return Timestamp(whole, int((seconds - whole) * 10**9))


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{what} must be an object, got {type(value).__name__}")
    return value
