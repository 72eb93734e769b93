"""The fifteen probes: one item for each field of a filter, and the filter that finds only it."""

from __future__ import annotations

from typing import Any, NamedTuple

from colmem.conformance.harness import Run
from colmem.contract import (
    MemoryMeta,
    MetaFilter,
    SourceRef,
    StoreItem,
    ToolCallRef,
    TurnRange,
    conversation,
    document,
    learning,
)


class Probe(NamedTuple):
    """A filter field, the item that satisfies it, and the filter."""

    field: str
    item: StoreItem
    filter: MetaFilter


def probes(run: Run, *, label: str = "probe") -> list[Probe]:
    """Make the probes; another label makes other items for the same filters."""
    m = run.marker
    made: list[Probe] = []

    def add(field: str, held: dict[str, Any], wanted: dict[str, Any], shape: str = "doc") -> None:
        text = f"{m} {label} {field} note"
        meta = MemoryMeta(workspace=run.probe_workspace, **held)
        item: StoreItem
        if shape == "conversation":
            item = conversation([("user", text), ("assistant", f"{m} reply")], meta=meta)
        elif shape == "learning":
            item = learning(text, meta=meta)
        else:
            item = document(text, meta=meta)
        filter = MetaFilter(workspace=run.probe_workspace, **wanted)
        made.append(Probe(field, item, filter))

    add("folder", {"folder": f"/{m}/src/app"}, {"folder": f"/{m}/src"})
    add("file_path", {"file_path": f"/{m}/docs/guide.md"}, {"file_path": f"/{m}/docs"})
    for field in ("language", "repo", "commit", "url", "agent_id"):
        add(field, {field: f"{m}-{field}"}, {field: f"{m}-{field}"})
    thread = f"{m}-thread"
    add("thread_id", {"thread_id": thread}, {"thread_id": thread}, "conversation")
    turns = TurnRange(4, 5)
    add("turns", {"turns": turns}, {"turns": turns}, "conversation")
    add("tool_call", {"tool_call": ToolCallRef(f"{m}-tool")}, {"tool_call": f"{m}-tool"})
    add("source_id", {"source": SourceRef("agent", f"{m}-source")}, {"source_id": f"{m}-source"})
    add("sources", {"source": SourceRef("composio")}, {"sources": ["composio"]})
    add("tags_any", {"tags": [f"{m}-tag"]}, {"tags_any": [f"{m}-absent", f"{m}-tag"]})
    add("kinds", {}, {"kinds": ["learning"]}, "learning")
    add(
        "observed_at",
        {"observed_at": "2001-01-01T00:00:00Z"},
        {"observed_after": "2000-01-01T00:00:00Z", "observed_before": "2002-01-01T00:00:00Z"},
    )
    return made
