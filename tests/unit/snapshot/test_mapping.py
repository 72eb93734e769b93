"""Items and records both ways: nothing is lost through a row, a line, or both."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colmem.contract import (
    Document,
    Learning,
    MemoryMeta,
    SourceRef,
    StoreItem,
    ToolCallRef,
    Turn,
    TurnRange,
    conversation,
    document,
    encode,
    learning,
)
from colmem.snapshot.json_form import legacy_line, v2_line
from colmem.snapshot.mapping import (
    ForgedItemError,
    foreign_item,
    item_of_record,
    record_of_item,
    record_of_row,
    record_to_column,
    row_of_record,
)
from colmem.snapshot.record import Record, content_hash, normalise, settle
from colmem.stored import columns_of, from_batch, from_bytes, item_of, stored, to_batch, to_bytes

META = MemoryMeta(
    namespace="agent:a/project:p",
    workspace="w",
    folder="/n",
    file_path="/n/x.md",
    language="en",
    repo="r",
    commit="c",
    url="https://example.org/",
    thread_id="t",
    turns=TurnRange(1, 4),
    agent_id="ag",
    tool_call=ToolCallRef("tool", "7"),
    source=SourceRef("github", "id:1"),
    tags=["b", "a", "b", ""],
    observed_at="2026-01-02T03:04:05.123456789Z",
)
ITEMS: list[StoreItem] = [
    document("body", title="Title", mime="text/plain", meta=META),
    document("body\x00 \u2028 é \U0001f600", meta=META),
    document("body", title=" "),
    learning("a claim", kind="procedure", confidence=0.3, evidence="seen", meta=META),
    learning("tiny", confidence=1e-7),
    conversation(
        [
            Turn("user", "hi", "2026-01-02T03:04:05Z", [ToolCallRef("f"), ToolCallRef("g", "")]),
            Turn("assistant", "there"),
        ],
        meta=META,
    ),
]


def through_line(record: Record, line: Any = v2_line) -> Record:
    made = normalise(json.loads(line(record)), source="snapshot")
    assert settle(made, loaded_at="now")
    return made


@pytest.mark.parametrize("line", [v2_line, legacy_line])
@pytest.mark.parametrize("item", ITEMS)
def test_items_come_back_exactly(item: StoreItem, line: Any) -> None:
    id, created_at = item.fingerprint(), "2026-07-01T00:00:00.5Z"
    record = record_of_item(
        item, id=id, created_at=created_at, vector=b"\0\0\x80\x3f", model="m", dim=1
    )
    assert record.content_hash == item.content_digest()
    assert record.fact_text == item.render_text()
    read = through_line(record, line)
    got, got_id = item_of_record(read)
    assert encode(got) == encode(item)
    assert got_id == id
    row = row_of_record(read)
    assert row.record is None
    assert row.fingerprint is None
    assert encode(item_of(row)) == encode(item)
    again = record_of_row(row, vector=b"\0\0\x80\x3f", model="m", dim=1)
    assert v2_line(again) == v2_line(record)


def test_item_record_fields() -> None:
    record = record_of_item(ITEMS[0], id="i", created_at="c", vector=None, model="m", dim=8)
    assert (record.identifier, record.source, record.namespace) == (
        "Title",
        "github:id:1",
        "agent:a/project:p",
    )
    assert json.loads(record.tags_json) == ["b", "a", "b", ""]
    assert (record.importance, record.tier, record.embedding_model) == (0.5, "hot", "")
    plain = record_of_item(learning("x"), id="i", created_at="c", vector=None, model="m", dim=8)
    assert (plain.identifier, plain.source) == ("learning", "agent")
    assert "text" not in plain.metadata()["colmem"]["item"]


def test_text_equal_to_fact_text_is_written_once() -> None:
    for item, is_kept in ((ITEMS[0], True), (ITEMS[1], False)):
        record = record_of_item(item, id="i", created_at="c", vector=None, model="m", dim=8)
        assert ("body" in record.metadata()["colmem"]["item"]) is is_kept


def test_changed_record_of_an_item_keeps_the_change() -> None:
    record = record_of_item(ITEMS[3], id="i", created_at="c", vector=None, model="m", dim=8)
    record.tier, record.importance, record.ttl_seconds = "cold", math.inf, 5
    metadata = record.metadata() | {"annotations": {"schema_version": 1}}
    record.metadata_json = json.dumps(metadata)
    row = row_of_record(record)
    assert row.record is not None
    assert encode(item_of(row)) == encode(ITEMS[3])
    assert v2_line(record_of_row(row, vector=None, model="m", dim=8)) == v2_line(record)


@dataclass
class Forgery:
    field: str
    value: Any


@pytest.mark.parametrize(
    "forgery",
    [
        Forgery("fact_text", "another text"),
        Forgery("content_hash", "0" * 64),
        Forgery("metadata_json", '{"colmem": {"item": 5}}'),
        Forgery("metadata_json", '{"colmem": {"item": {"type": "nothing"}}}'),
        Forgery("metadata_json", '{"colmem": {"item": {"type": "learning", "text": "\\ud800"}}}'),
    ],
)
def test_forged_items_are_refused(forgery: Forgery) -> None:
    record = record_of_item(ITEMS[3], id="i", created_at="c", vector=None, model="m", dim=8)
    setattr(record, forgery.field, forgery.value)
    with pytest.raises(ForgedItemError):
        row_of_record(record)


def test_a_member_without_an_item_is_foreign() -> None:
    record = Record(id="i", fact_text="t", created_at="c", metadata_json='{"colmem": {"x": 1}}')
    assert row_of_record(record).source_kind == "import"


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.builds(
    Record,
    id=TEXT.filter(bool),
    identifier=TEXT,
    fact_text=TEXT,
    fact_summary=st.none() | TEXT,
    memory_type=st.sampled_from(["fact", "file"]),
    source=TEXT,
    importance=st.floats(allow_nan=False),
    metadata_json=st.dictionaries(TEXT, JSON, max_size=3).map(json.dumps),
    content_hash=TEXT,
    ttl_seconds=st.none() | st.integers(-(2**63), 2**63 - 1),
    created_at=st.sampled_from(["2026-01-02T03:04:05Z", "x", "", "1999-12-31 23:59:60+01:00"]),
    namespace=st.sampled_from(["", "agent:a", "root", " ", "not one", "a/b"]) | TEXT,
    tier=TEXT,
    tags_json=st.lists(JSON, max_size=3).map(json.dumps),
    source_uri=st.sampled_from(["a/b.csv", "file:///x y", "https://e.org/", "C:\\x"]) | TEXT,
    source_format=TEXT,
    source_checksum=TEXT,
    byte_offset=st.none() | st.integers(0, 9),
    byte_length=st.none() | st.integers(0, 9),
    provenance_json=st.none() | st.dictionaries(TEXT, JSON, min_size=1, max_size=2).map(json.dumps),
    promotion_state=TEXT,
    promotion_candidate=st.integers(0, 3),
    updated_at=st.none() | TEXT,
    snapshot_id=TEXT,
    parent_memory=TEXT,
    related_json=st.lists(JSON, max_size=2).map(json.dumps),
    schema_version=st.integers(1, 3),
)


@settings(max_examples=60, deadline=None)
@given(RECORDS)
def test_foreign_records_come_back_exactly(record: Record) -> None:
    if not settle(record, loaded_at="now") or '"colmem"' in record.metadata_json:
        return
    vector = b"\0\0\x80\x3f"
    row = row_of_record(record)
    row.has_vector = True
    row = from_batch(to_batch(columns_of([from_bytes(to_bytes(row))])))[0]
    record.embedding, record.embedding_dim, record.embedding_model = vector, 1, "m"
    again = record_of_row(row, vector=vector, model="m", dim=1)
    assert again == record
    assert legacy_line(again) == legacy_line(record)
    assert row.record == record_to_column(record)


@settings(max_examples=60, deadline=None)
@given(RECORDS)
def test_foreign_row_is_that_of_its_item(record: Record) -> None:
    if not settle(record, loaded_at="now"):
        return
    item = foreign_item(record)
    row = row_of_record(record)
    expected = stored(item, item.content_digest(), record.created_at, foreign_id=record.id)
    expected.content_hash = record.content_hash
    expected.has_vector = False
    expected.record, expected.expires_s = row.record, row.expires_s
    assert row == expected
    assert encode(item_of(row)) == encode(item)
    assert isinstance(item, Document | Learning)


def test_foreign_views() -> None:
    record = Record(
        id="i",
        identifier="key",
        fact_text="text",
        importance=7.0,
        created_at="2026-01-02T03:04:05Z",
        ttl_seconds=10,
        tags_json='["a", 5, "\\ud800"]',
        namespace="some place",
        content_hash=content_hash("key", "text"),
    )
    row = row_of_record(record)
    assert (row.kind, row.text, row.confidence, row.tags) == ("learning", "text", 1.0, ["a"])
    assert row.namespace.startswith("ws:some-place-")
    assert row.expires_s == (row.observed_s or 0) + 10
    file = Record(id="i", source_uri="https://e.org/x", memory_type="file", byte_length=3)
    file.created_at = ""
    row = row_of_record(file)
    assert (row.kind, row.text, row.url) == ("document", "https://e.org/x", "https://e.org/x")
    file.source_uri, file.identifier = "file:///a%20b", "name"
    row = row_of_record(file)
    assert (row.text, row.file_path) == ("# name\n\nname", "/a%20b")
