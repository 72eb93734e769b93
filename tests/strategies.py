"""Random items and filters that meet: small pools of values, awkward ones among them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from colmem.contract import (
    ROOT,
    Conversation,
    Document,
    DocumentBody,
    ItemKind,
    Learning,
    LearningKind,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    Role,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
)

WORDS = ["owl", "zephyr", "tide", "multi-agent", "café", "系統把機器", "naïve", "x"]
# NUL, a zero-width space, a combining accent, a quote, SQL, an astral character, line separators.
VALUES = [
    "",
    " ",
    "a",
    "A",
    "a ",
    "é",
    "e\u0301",
    "\0",
    "a\0b",
    "%",
    "_",
    "'; DROP TABLE items",
    "😀",
]
VALUES += ["\u200b", "\u2028\n", '"\\', "a" * 300]
PATHS = [
    "",
    "/",
    "//",
    "/a",
    "/a/",
    "/a/b",
    "/a/b/",
    "/a/bc",
    "/a/b/c.md",
    "a",
    "a/b",
    "a//b",
    "/a//",
]
PATHS += ["/é/x", "/e\u0301/x", "\\a\\b", "/a/./b", "/A/b", "\0/", "/%/x", "/ "]
NAMESPACES = [
    "root",
    "agent:a",
    "agent:a/agent:b",
    "agent:a/agent:b/team:c",
    "agent:ab",
    "team:a",
    "ws:a",
    "ws:a/project:p",
    "user:u/agent:a",
    "/".join(f"agent:d{i}" for i in range(8)),
]
# Around one second: fractions, its leap second, and the ends of time.
_AT = 1_483_228_799  # 2016-12-31T23:59:59Z, the last leap second so far
TIMES = [
    Timestamp(_AT - 1, 999_999_999),
    Timestamp(_AT),
    Timestamp(_AT, 1),
    Timestamp(_AT, 999_999_999),
    Timestamp(_AT, 1_000_000_000),
    Timestamp(_AT, 1_500_000_000),
    Timestamp(_AT, 1_999_999_999),
    Timestamp(_AT + 1),
    Timestamp(_AT + 1, 500_000_000),
    Timestamp(0),
    Timestamp(-1, 1),
    Timestamp.parse("0001-01-01T00:00:00Z"),
    Timestamp.parse("9999-12-31T23:59:60.999999999Z"),
]
TURNS = [TurnRange(0, 0), TurnRange(1, 2), TurnRange(2, 1), TurnRange(0, 4294967295)]

TEXT_FIELDS = ("workspace", "language", "repo", "commit", "url", "thread_id", "agent_id")


def maybe(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    """One of the values, or (about half the time) nothing."""
    return st.one_of(st.none(), st.sampled_from(values))


def sparse(fields: dict[str, st.SearchStrategy[Any]], n_max: int) -> st.SearchStrategy[Any]:
    """A dictionary with a few of the fields."""
    names = st.lists(st.sampled_from(sorted(fields)), max_size=n_max, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({n: fields[n] for n in chosen}))


tags = st.lists(st.sampled_from(["x", "y", "night", *VALUES[:8]]), max_size=4)
namespaces = st.sampled_from(NAMESPACES).map(
    lambda text: ROOT if text == "root" else Namespace.parse(text)
)

metas = sparse(
    {
        **{field: st.sampled_from(VALUES) for field in TEXT_FIELDS},
        "namespace": namespaces,
        "folder": st.sampled_from(PATHS),
        "file_path": st.sampled_from(PATHS),
        "turns": st.sampled_from(TURNS),
        "tool_call": st.builds(ToolCallRef, st.sampled_from(VALUES), maybe(["", "1"])),
        "source": st.builds(SourceRef, st.sampled_from(list(SourceKind)), maybe(VALUES[:6])),
        "tags": tags,
        "observed_at": st.sampled_from(TIMES),
    },
    n_max=8,
).map(lambda fields: MemoryMeta(**fields))

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
turns = st.builds(
    Turn,
    role=st.sampled_from(list(Role)),
    text=texts,
    at=maybe(TIMES),
    tool_calls=st.lists(st.builds(ToolCallRef, st.sampled_from(VALUES), maybe(["7"])), max_size=2),
)
items: st.SearchStrategy[StoreItem] = st.one_of(
    st.builds(
        Document,
        title=maybe(["", " ", "Ownership", "a\nb"]),
        body=texts.map(lambda text: DocumentBody(text=text)),
        mime=maybe(["text/plain"]),
        meta=metas,
    ),
    st.builds(Conversation, turns=st.lists(turns, min_size=1, max_size=2), meta=metas),
    st.builds(
        Learning,
        text=texts,
        learning_kind=st.sampled_from(list(LearningKind)),
        confidence=st.sampled_from([0.0, 0.1, 0.8, 1.0, -0.0]),
        evidence=maybe(["", "seen"]),
        meta=metas,
    ),
)

reaches = st.builds(Reach, at=namespaces, inherit=st.booleans(), descendants=st.booleans())
filters = sparse(
    {
        **{field: st.sampled_from(VALUES) for field in TEXT_FIELDS},
        "reach": reaches,
        "folder": st.sampled_from(PATHS),
        "file_path": st.sampled_from(PATHS),
        "turns": st.sampled_from(TURNS),
        "tool_call": st.sampled_from(VALUES),
        "source_id": st.sampled_from(VALUES[:6]),
        "kinds": st.lists(st.sampled_from(list(ItemKind)), max_size=3),
        "sources": st.lists(st.sampled_from(list(SourceKind)), max_size=4),
        "tags_any": tags,
        "observed_after": st.sampled_from(TIMES),
        "observed_before": st.sampled_from(TIMES),
    },
    n_max=3,
).map(lambda fields: MetaFilter(**fields))


def filters_near(meta: MemoryMeta, kind: ItemKind) -> st.SearchStrategy[MetaFilter]:
    """Filters made of an item's own values, so that they admit something."""
    own: dict[str, Any] = {
        field: value
        for field in (*TEXT_FIELDS, "folder", "file_path", "turns")
        if (value := getattr(meta, field)) is not None
    }
    own["kinds"] = [kind]
    own["sources"] = [meta.source.kind]
    own["reach"] = Reach.of(meta.namespace)
    if meta.source.id is not None:
        own["source_id"] = meta.source.id
    if meta.tool_call is not None:
        own["tool_call"] = meta.tool_call.name
    if meta.tags:
        own["tags_any"] = meta.tags[-1:]
    if meta.observed_at is not None:
        own["observed_after"] = meta.observed_at
    names = st.lists(st.sampled_from(sorted(own)), max_size=4, unique=True)
    return names.map(lambda chosen: MetaFilter(**{name: own[name] for name in chosen}))
