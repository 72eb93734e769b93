"""MetaFilter -> SQL: a condition over the item table with bound parameters, and facets as columns.

Admits exactly what ``MetaFilter.matches`` admits (contract, section 7); nothing of a value ever
becomes SQL text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from colmem.contract import PATH_FIELDS, MetaFilter, Namespace, Reach, Timestamp, path_prefix

_EQUAL = {  # filter field -> column
    "workspace": "workspace",
    "language": "language",
    "repo": "repo",
    "commit": '"commit"',
    "url": "url",
    "thread_id": "thread_id",
    "agent_id": "agent_id",
    "tool_call": "tool_name",
    "source_id": "source_id",
}


class Condition(NamedTuple):
    """A WHERE condition and the values of its question marks, in order."""

    sql: str
    params: list[Any]


def condition(filter: MetaFilter, *, now_s: int | None) -> Condition:
    """Compile a filter; rows whose time to live has passed at ``now_s`` are left out.

    With ``now_s=None`` they are kept (snapshots write expired items too).
    """
    parts: list[Condition] = []
    if now_s is not None:
        parts.append(Condition("expires_s IS NULL OR expires_s > ?", [now_s]))
    if filter.kinds:
        parts.append(_one_of("kind", [str(kind) for kind in filter.kinds]))
    if filter.sources:
        parts.append(_one_of("source_kind", [str(kind) for kind in filter.sources]))
    if filter.reach is not None:
        parts.append(_reach(filter.reach))
    parts += [
        Condition(f"{column} = ?", [wanted])
        for name, column in _EQUAL.items()
        if (wanted := getattr(filter, name)) is not None
    ]
    parts += [
        _path(name, wanted) for name in PATH_FIELDS if (wanted := getattr(filter, name)) is not None
    ]
    if filter.turns is not None:
        turns = [filter.turns.first, filter.turns.last]
        parts.append(Condition("turn_first = ? AND turn_last = ?", turns))
    if filter.tags_any:
        parts.append(Condition("list_has_any(tags, ?::VARCHAR[])", [list(filter.tags_any)]))
    return _all([*parts, *_time(filter)])


def _all(parts: Sequence[Condition]) -> Condition:
    if not parts:
        return Condition("TRUE", [])
    sql = " AND ".join(f"({part.sql})" for part in parts)
    return Condition(sql, [value for part in parts for value in part.params])


def _one_of(column: str, values: list[str]) -> Condition:
    return Condition(f"{column} IN ({', '.join('?' * len(values))})", list(values))


def _path(column: str, wanted: str) -> Condition:
    bare = path_prefix(wanted)
    return Condition(
        f"{column} = ? OR {column} = ? OR starts_with({column}, ?)", [wanted, bare, bare + "/"]
    )


def _reach(reach: Reach) -> Condition:
    at = namespace_column(reach.at)
    parts = [_one_of("namespace", [namespace_column(node) for node in reach.nodes()])]
    if reach.descendants:
        below = Condition("starts_with(namespace, ?)", [f"{at}/"]) if at else Condition("TRUE", [])
        parts.append(below)
    sql = " OR ".join(part.sql for part in parts)
    return Condition(sql, [value for part in parts for value in part.params])


def _time(filter: MetaFilter) -> list[Condition]:
    bounds = []
    if filter.observed_after is not None:
        bounds.append(_at_or_after(filter.observed_after))
    if filter.observed_before is not None:
        bounds.append(_before(filter.observed_before))
    return bounds


def _at_or_after(at: Timestamp) -> Condition:
    sql = "observed_s > ? OR (observed_s = ? AND observed_ns >= ?)"
    return Condition(sql, [at.seconds, at.seconds, at.nanos])


def _before(at: Timestamp) -> Condition:
    sql = "observed_s < ? OR (observed_s = ? AND observed_ns < ?)"
    return Condition(sql, [at.seconds, at.seconds, at.nanos])


def namespace_column(namespace: Namespace) -> str:
    """A namespace as the table holds it: its path, empty for the root."""
    return "" if namespace.is_root else str(namespace)
