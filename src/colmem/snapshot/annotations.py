"""Annotation envelopes (``metadata.annotations``): validation, evidence and merging.

Pure functions over parsed JSON. Items are compared by their canonical JSON text, so ``1``, ``1.0``
and ``true`` differ and key order does not matter.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

DEPTH_MAX = 8
ITEMS_MAX = 1000
ENVELOPE_BYTES_MAX = 131_072
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")


class Merge(NamedTuple):
    """What a merge gives: the new envelope or None for no change, items added, conflicts."""

    merged: dict[str, Any] | None
    n_items: int
    conflicts: list[tuple[str, str]]


def is_valid(envelope: object) -> bool:
    """Whether a value may stand as ``metadata.annotations``; evidence ids are not looked up."""
    if not isinstance(envelope, dict) or envelope.get("schema_version") != 1:
        return False
    if not isinstance(envelope.get("producers"), dict | None):
        return False
    namespaces = envelope.get("namespaces")
    if namespaces is not None and not (
        isinstance(namespaces, dict)
        and all(_is_valid_namespace(name, items) for name, items in namespaces.items())
    ):
        return False
    return is_within_limits(envelope)


def is_within_limits(envelope: Mapping[str, Any]) -> bool:
    """Whether an envelope keeps the bounds on items, depth and bytes."""
    if sum(len(items) for items in _lists(envelope).values()) > ITEMS_MAX:
        return False
    if _is_deeper(envelope, DEPTH_MAX):
        return False
    return len(_canonical(envelope)) <= ENVELOPE_BYTES_MAX


def evidence_ids(envelope: Mapping[str, Any]) -> Iterator[str]:
    """Every record id a valid envelope names as evidence."""
    for items in _lists(envelope).values():
        for item in items:
            for entry in item.get("evidence") or ():
                if isinstance(entry, dict) and "memory_id" in entry:
                    yield entry["memory_id"]


def merge(target: Mapping[str, Any] | None, incoming: Mapping[str, Any] | None) -> Merge:
    """Merge the valid envelope of a duplicate into the stored one.

    Items with a new id are appended; other content under a known id is a conflict and the stored
    item stays; producers merge with the incoming winning. Unknown keys of the envelope come along
    only when items or producers changed. A result beyond the limits is dropped.
    """
    if incoming is None:
        return Merge(None, 0, [])
    if not target:
        n_items = sum(len(items) for items in _lists(incoming).values())
        return Merge(dict(incoming), n_items, [])
    namespaces = {name: list(items) for name, items in _lists(target).items()}
    n_items = 0
    conflicts: list[tuple[str, str]] = []
    for name, items in _lists(incoming).items():
        held = namespaces.setdefault(name, [])
        by_id = {item["id"]: item for item in held}
        for item in items:
            known = by_id.get(item["id"])
            if known is None:
                held.append(item)
                n_items += 1
            elif _canonical(known) != _canonical(item):
                conflicts.append((name, item["id"]))
    held_producers = target.get("producers") or {}
    producers = {**held_producers, **(incoming.get("producers") or {})}
    if not n_items and _canonical(producers) == _canonical(held_producers):
        return Merge(None, 0, conflicts)
    merged = {**incoming, **target, "namespaces": namespaces}
    if producers:
        merged["producers"] = producers
    if not is_within_limits(merged):
        return Merge(None, 0, conflicts)
    return Merge(merged, n_items, conflicts)


def _is_valid_namespace(name: str, items: object) -> bool:
    if not isinstance(items, list) or _NAME.fullmatch(name) is None:
        return False
    seen: set[str] = set()
    for item in items:
        if not isinstance(item, dict) or not _is_valid_item(item) or item["id"] in seen:
            return False
        seen.add(item["id"])
    return True


def _is_valid_item(item: dict[str, Any]) -> bool:
    if not _is_filled(item.get("id")):
        return False
    confidence = item.get("confidence")
    if confidence is not None:
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            return False
        if not 0 <= confidence <= 1 or math.isnan(confidence):
            return False
    evidence = item.get("evidence")
    if evidence is None:
        return True
    return isinstance(evidence, list) and all(_is_valid_evidence(entry) for entry in evidence)


def _is_valid_evidence(entry: object) -> bool:
    if not isinstance(entry, dict):
        return _is_filled(entry)
    return _is_filled(entry["memory_id"] if "memory_id" in entry else entry.get("uri"))


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _lists(envelope: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return envelope.get("namespaces") or {}


def _is_deeper(value: object, levels: int) -> bool:
    """Whether a value holds another more than ``levels`` levels below it."""
    if isinstance(value, dict):
        below: Iterable[object] = value.values()
    elif isinstance(value, list):
        below = value
    else:
        return False
    return bool(value) and (levels == 0 or any(_is_deeper(v, levels - 1) for v in below))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
