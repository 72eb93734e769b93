"""mem0: memories as ``get_all`` and exports give them, and its history when that is all there is.

A memory is a learning in its user's namespace, else its agent's. A history says what became of each
memory; its last text counts, and what was deleted stays away.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from colmem import (
    ColmemError,
    InvalidRequest,
    MemoryMeta,
    Namespace,
    Segment,
    SegmentKind,
    StoreItem,
    Timestamp,
    learning,
)
from colmem.adapters import foreign
from colmem.adapters.importing import exports
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.reading import Items, Problem, Reading, unreadable

FRAMEWORK: Final = "mem0"
_SQLITE: Final = b"SQLite format 3\0"
_KEPT: Final = ("app_id", "actor_id", "role", "expiration_date")
_HISTORY: Final = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted")
_DELETED: Final = "DELETE"


class _Last(NamedTuple):
    """When a memory was last changed, and at which place of the history that stands."""

    at: Timestamp | None
    number: int
    is_deleted: bool


def read_memories(path: Path, origin: Origin, reading: Reading, shape: exports.Shape) -> Items:
    """A learning for each memory of a JSON export."""
    for element in exports.read(path, shape, reading.consumed):
        yield _made(element, lambda value: _memory(value, origin))


def read_history(path: Path, origin: Origin, reading: Reading, shape: exports.Shape) -> Items:
    """A learning for each memory that a history in JSON leaves standing."""

    def rows() -> Iterator[exports.Element]:
        return exports.read(path, shape, reading.consumed)

    return _standing(rows, path, origin, reading)


def is_history(path: Path) -> bool:
    """Whether a file is an SQLite database with mem0's table of changes."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return False
    try:
        with closing(_connected(path)) as database:
            columns = {row[1] for row in database.execute("PRAGMA table_info(history)")}
    except sqlite3.Error:
        return False
    return {"memory_id", "new_memory", "event"} <= columns


def read_database(path: Path, origin: Origin, reading: Reading) -> Items:
    """A learning for each memory that mem0's ``history.db`` leaves standing."""

    def rows() -> Iterator[exports.Element]:
        with closing(_connected(path)) as database:
            database.row_factory = sqlite3.Row
            for row in database.execute("SELECT rowid AS number, * FROM history ORDER BY rowid"):
                yield exports.Element(f"{path} row {row['number']}", "", dict(row))

    try:
        yield from _standing(rows, path, origin, reading)
    except sqlite3.Error as error:
        yield unreadable(path, error)


def _standing(
    rows: Callable[[], Iterator[exports.Element]], path: Path, origin: Origin, reading: Reading
) -> Items:
    """The memories that a history leaves standing, in order of their last change.

    The history is read twice, so that one entry for each memory is held, and no text.
    """
    last: dict[str, _Last] = {}
    bad = set()
    for number, element in enumerate(rows()):
        try:
            if element.problem:
                raise InvalidRequest(element.problem)
            id, change = _change(element.value, number)
        except ColmemError as error:
            bad.add(number)
            yield Problem(element.place, error.message)
            continue
        held = last.get(id)
        if held is None or held.at is None or change.at is None or held.at <= change.at:
            last[id] = change
    n_deleted = sum(change.is_deleted for change in last.values())
    if n_deleted:
        reading.note(f"{path}: left out, as deleted in mem0: {n_deleted:,}")
    for number, element in enumerate(rows()):
        if number in bad or element.problem:
            continue
        change = last[element.value["memory_id"]]
        if change.number == number and not change.is_deleted:
            yield _made(element, lambda value: _memory(_as_memory(value), origin))


def _change(row: Any, number: int) -> tuple[str, _Last]:
    """Whose change a row of a history is, and when and how."""
    if not isinstance(row, dict):
        raise InvalidRequest(f"expected an object, got {type(row).__name__}")
    id, event = row.get("memory_id"), row.get("event")
    for name, value in (("memory_id", id), ("event", event)):
        if not isinstance(value, str):
            raise InvalidRequest(f"`{name}` must be a string, got {type(value).__name__}")
    is_deleted = event == _DELETED or row.get("is_deleted") in (True, 1)
    return str(id), _Last(_time(row), number, is_deleted)


def _as_memory(row: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in row.items() if name not in _HISTORY}
    return fields | {
        "id": row["memory_id"],
        "memory": row.get("new_memory"),
        "created_at": row.get("created_at"),
        "updated_at": row.get("updated_at"),
    }


def _made(element: exports.Element, make: Callable[[Any], StoreItem]) -> StoreItem | Problem:
    if element.problem:
        return Problem(element.place, element.problem)
    try:
        item = make(element.value)
        item.validate()
    except ColmemError as error:
        return Problem(element.place, error.message)
    return item


def _memory(value: Any, origin: Origin) -> StoreItem:
    if not isinstance(value, dict):
        raise InvalidRequest(f"expected a memory, got {type(value).__name__}")
    text = value.get("memory")
    if not isinstance(text, str):
        raise InvalidRequest(f"`memory` must be a string, got {type(text).__name__}")
    return learning(text, meta=_meta(value, origin))


def _meta(value: Mapping[str, Any], origin: Origin) -> MemoryMeta:
    user, agent = _text(value, "user_id"), _text(value, "agent_id")
    fields = origin.fields()
    if user or agent:
        kind = SegmentKind.USER if user else SegmentKind.AGENT
        segment = Segment.sanitized(kind, user or agent or "")
        fields["namespace"] = Namespace.from_segments([segment])
    changes = {"agent_id": agent, "thread_id": _text(value, "run_id"), "observed_at": _time(value)}
    fields |= {name: given for name, given in changes.items() if given is not None}
    free = _object(value, "metadata")
    free = free | {name: value[name] for name in _KEPT if value.get(name) is not None}
    categories = value.get("categories") or []
    if not isinstance(categories, list):
        raise InvalidRequest(f"`categories` must be a list, got {type(categories).__name__}")
    id = _text(value, "id")
    named = [foreign.named_tag(FRAMEWORK, "id", id)] if id else []
    base = MemoryMeta(**fields)
    base = base.replace(tags=[*base.tags, *(name for name in categories if name not in base.tags)])
    return foreign.with_metadata(base, free, named)


def _time(value: Mapping[str, Any]) -> Timestamp | None:
    """When a memory got its present text."""
    name = "updated_at" if value.get("updated_at") else "created_at"
    text = _text(value, name)
    if not text:
        return None
    try:
        return Timestamp.parse(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"`{name}`: {error.message}") from error


def _text(value: Mapping[str, Any], name: str) -> str | None:
    held = value.get(name)
    if held is not None and not isinstance(held, str):
        raise InvalidRequest(f"`{name}` must be a string, got {type(held).__name__}")
    return held


def _object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    held = value.get(name)
    if held is not None and not isinstance(held, dict):
        raise InvalidRequest(f"`{name}` must be an object, got {type(held).__name__}")
    return held or {}


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
