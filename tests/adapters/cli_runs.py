"""What a run of the command line gave, and the items its tests store."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import colmem
from colmem import MemoryMeta, StoreItem


class Ran(NamedTuple):
    """What a command line printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        """The objects printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


ITEMS: list[StoreItem] = [
    colmem.document(
        "Ownership moves values.",
        title="Ownership",
        meta=MemoryMeta(
            folder="/notes/rust",
            file_path="/notes/rust/own.md",
            language="en",
            tags=["rust", "memory"],
            observed_at="2026-01-01T00:00:00Z",
            repo="r1",
            commit="c1",
            workspace="w1",
        ),
    ),
    colmem.document(
        "Garbage collectors reclaim what nothing refers to.",
        meta=MemoryMeta(
            folder="/notes/go",
            namespace="agent:a",
            url="https://example.org",
            source="link",
            observed_at="2026-02-01T00:00:00Z",
        ),
    ),
    colmem.learning(
        "The user prefers short answers.",
        kind="preference",
        confidence=0.75,
        meta=MemoryMeta(namespace="agent:a/agent:b", agent_id="scout"),
    ),
    colmem.conversation(
        [("user", "hello there"), ("assistant", "general greeting")],
        meta=MemoryMeta(
            thread_id="t1",
            turns=colmem.TurnRange(4, 5),
            tool_call=colmem.ToolCallRef("search"),
            source=colmem.SourceRef("conversation", "c9"),
        ),
    ),
]
