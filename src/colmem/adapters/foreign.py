"""Ids and free metadata of other frameworks, kept in the contract's metadata.

A key that MemoryMeta has as a text is that field. Any other becomes a tag, ``meta.<key>=<JSON>``,
so that nothing is lost and it can be filtered by; an id is the tag ``<framework>.id=<id>``. Knows
no framework and no engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from colmem import (
    ColmemError,
    Hit,
    InvalidRequest,
    ItemKind,
    MemoryMeta,
    MetaFilter,
    SourceKind,
    Timestamp,
)

TEXT_FIELDS: Final = (
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
"""Keys of free metadata that are fields of MemoryMeta of the same name."""

_FREE: Final = "meta."


def free_tag(key: str, value: Any) -> str:
    """The tag that keeps a key of free metadata.

    Raises
    ------
    InvalidRequest
        When the key is no string, or the value is not JSON.
    """
    if not isinstance(key, str):
        raise InvalidRequest(f"metadata key {key!r} must be a string, got {type(key).__name__}")
    escaped = key.replace("%", "%25").replace("=", "%3D")
    return f"{_FREE}{escaped}={json_text(value, f'metadata.{key}')}"


def json_text(value: Any, path: str) -> str:
    """A value as JSON, the same for equal values; ``path`` is where it stands.

    Raises
    ------
    InvalidRequest
        When it is not JSON.
    """
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(
            f"{path}: {error}; expected text, numbers, booleans, null, lists and objects",
            path=path,
        ) from error


def json_value(text: str) -> Any:
    """What :func:`json_text` wrote."""
    return json.loads(text)


def named_tag(framework: str, name: str, value: str) -> str:
    """The tag by which a framework finds what is its own, such as an id."""
    return f"{framework}.{name}={value}"


def named_value(meta: MemoryMeta, framework: str, name: str) -> str | None:
    """What the first tag of that framework and name holds."""
    prefix = named_tag(framework, name, "")
    return next((tag[len(prefix) :] for tag in meta.tags if tag.startswith(prefix)), None)


def with_metadata(base: MemoryMeta, metadata: Mapping[str, Any], tags: Iterable[str]) -> MemoryMeta:
    """The base's fields, those that free metadata names, and one tag for every other key.

    tags : further tags of the framework itself.
    """
    fields: dict[str, Any] = {}
    kept = list(base.tags)
    for key, value in metadata.items():
        if key in TEXT_FIELDS and isinstance(value, str):
            fields[key] = value
        elif key == "tags" and _are_plain(value):
            kept += value
        elif key == "observed_at" and _is_instant(value):
            fields[key] = value
        else:
            kept.append(free_tag(key, value))
    return base.replace(**fields, tags=[*kept, *tags])


def metadata_of(hit: Hit, framework: str) -> dict[str, Any]:
    """Free metadata of an item; of one the framework did not write, also what else is known."""
    meta = hit.meta
    found: dict[str, Any] = {
        name: value for name in TEXT_FIELDS if (value := getattr(meta, name)) is not None
    }
    if meta.observed_at is not None:
        found["observed_at"] = str(meta.observed_at)
    plain, free = [], {}
    for tag in meta.tags:
        key, value = _read(tag)
        if key is not None:
            free[key] = value
        elif not tag.startswith(f"{framework}."):
            plain.append(tag)
    if plain:
        found["tags"] = plain
    return found | _standing(hit, framework) | free


def filter_of(wanted: MetaFilter | Mapping[str, Any] | None) -> MetaFilter:
    """A filter as it is, or made of keys and the values they must have.

    Paths admit what lies below them too, as everywhere. At most one key can be free metadata.
    """
    if wanted is None:
        return MetaFilter()
    if isinstance(wanted, MetaFilter):
        return wanted
    if not isinstance(wanted, Mapping):
        raise InvalidRequest(
            f"filter must be a MetaFilter or a mapping, got {type(wanted).__name__}", path="filter"
        )
    made = MetaFilter()
    for key, value in wanted.items():
        made = both(made, equal(key, value))
    return made


def equal(key: str, value: Any) -> MetaFilter:
    """What admits items whose metadata has that value under that key."""
    return one_of(key, [value])


def one_of(key: str, values: Sequence[Any]) -> MetaFilter:
    """What admits items whose metadata has one of the values under that key.

    Raises
    ------
    InvalidRequest
        For several values of a field that a filter can hold only one of.
    """
    if key in TEXT_FIELDS:
        if len(values) != 1:
            raise InvalidRequest(
                f"a filter takes one `{key}`, got {len(values)}; search for each of them"
            )
        return MetaFilter(**{key: values[0]})
    if key == "kind":
        return MetaFilter(kinds=values)
    if key == "tags":
        return MetaFilter(tags_any=[tag for value in values for tag in _as_list(value)])
    return MetaFilter(tags_any=[free_tag(key, value) for value in values])


def both(first: MetaFilter, second: MetaFilter) -> MetaFilter:
    """What admits the items that both filters admit.

    Raises
    ------
    InvalidRequest
        When they set one field to different values, which one filter cannot say.
    """
    changes = {}
    for name in MetaFilter.__struct_fields__:
        wanted, held = getattr(second, name), getattr(first, name)
        if wanted in (None, []) or wanted == held:
            continue
        if held not in (None, []):
            raise InvalidRequest(
                f"two conditions on `{name}`, which one filter cannot hold; keep one of them"
                + (" (tags and free metadata count as `tags_any`)" if name == "tags_any" else ""),
                path=f"filter.{name}",
            )
        changes[name] = wanted
    return first.replace(**changes)


def union_of_tags(filters: Sequence[MetaFilter]) -> MetaFilter:
    """What admits the items that any of some filters admits, as far as tags can say it.

    Raises
    ------
    InvalidRequest
        When one of several filters is about anything but tags and free metadata.
    """
    if len(filters) == 1:
        return filters[0]
    tags = [tag for filter in filters for tag in filter.tags_any]
    if any(filter != MetaFilter(tags_any=filter.tags_any) for filter in filters):
        raise InvalidRequest(
            "only conditions on tags and free metadata can be joined by OR; search for each"
        )
    return MetaFilter(tags_any=tags)


def _standing(hit: Hit, framework: str) -> dict[str, Any]:
    """What an item is and where it stands, when that is not as the framework stores."""
    meta, found = hit.meta, dict[str, Any]()
    if hit.kind is not ItemKind.DOCUMENT:
        found["kind"] = str(hit.kind)
    if hit.confidence is not None:
        found["confidence"] = float(hit.confidence)
    if not meta.namespace.is_root:
        found["namespace"] = str(meta.namespace)
    if meta.turns is not None:
        found |= {"turn_first": meta.turns.first, "turn_last": meta.turns.last}
    if meta.tool_call is not None:
        found["tool_name"] = meta.tool_call.name
    if meta.source.id is not None and meta.source.id != framework:
        found |= {"source_kind": str(meta.source.kind), "source_id": meta.source.id}
    elif meta.source.kind not in (SourceKind.AGENT, SourceKind.IMPORT):
        found["source_kind"] = str(meta.source.kind)
    return found


def _read(tag: str) -> tuple[str | None, Any]:
    """Key and value of a tag that keeps free metadata, else (None, None)."""
    if not tag.startswith(_FREE) or "=" not in tag:
        return None, None
    key, _, text = tag[len(_FREE) :].partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        return None, None
    return key.replace("%3D", "=").replace("%25", "%"), value


def _are_plain(tags: Any) -> bool:
    """Whether the store gives a list back as it is when it keeps it as tags."""
    if not isinstance(tags, list) or not tags:
        return False
    return all(isinstance(tag, str) and _read(tag)[0] is None for tag in tags)


def _is_instant(value: Any) -> bool:
    """Whether the store gives a text back as it is when it keeps it as an instant."""
    if not isinstance(value, str):
        return False
    try:
        return str(Timestamp.parse(value)) == value
    except ColmemError:
        return False


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
