"""Result files: one line of JSON for each contender, the last one of a contender counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from yardstick.contender import MODULES

Line = dict[str, Any]


def read(path: Path) -> dict[str, Line]:
    """Contender -> its last line, in the order of the contenders."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    held = {line["contender"]: line for line in lines}
    return {name: held[name] for name in MODULES if name in held}


def finished(path: Path) -> set[str]:
    """Contenders that were measured, to the end or as far as they went."""
    return set(read(path))


def figure(line: Line, *names: str) -> Any:
    """A figure below its names, or None."""
    found: Any = line
    for name in names:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def print_summary(line: Line) -> None:
    """A few figures for who watches the run."""
    shown = {
        "items/s": figure(line, "load", "items_per_s"),
        "bytes": figure(line, "load", "bytes_per_item"),
        "open": figure(line, "open", "open_ms"),
        "first": figure(line, "open", "first_ms"),
    }
    for mode in ("keyword", "vector", "hybrid"):
        shown[mode] = figure(line, "search", mode, "none", "p50_ms")
    shown["recall"] = figure(line, "search", "vector", "none", "recall")
    shown["overlap"] = figure(line, "search", "keyword", "none", "overlap")
    shown["store"] = figure(line, "store", "p50_ms")
    words = ", ".join(f"{name} {value:g}" for name, value in shown.items() if value is not None)
    print(f"{line['contender']}: {words}", flush=True)
    if line["stopped"]:
        print(f"{line['contender']} stopped: {line['stopped']}", flush=True)
