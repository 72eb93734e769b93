"""Properties of the contract over generated values."""

import json
import struct

from hypothesis import given
from hypothesis import strategies as st

from colmem.contract import (
    F32,
    Facet,
    FetchRequest,
    ItemKind,
    LearningKind,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    Role,
    SegmentKind,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    conversation,
    decode,
    document,
    encode,
    f32_json,
    learning,
)
from colmem.contract.metadata import TEXT_FIELDS

texts = st.text(max_size=8)
optional = st.none() | texts
segments = st.tuples(
    st.sampled_from(SegmentKind), st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
)
namespaces = st.lists(segments, max_size=8).map(Namespace.from_segments)
timestamps = st.builds(
    Timestamp,
    st.integers(-62_167_219_200, 253_402_300_799),
    st.integers(0, 999_999_999),
)
reaches = st.builds(
    lambda at, inherit, descendants: Reach(at=at, inherit=inherit, descendants=descendants),
    namespaces,
    st.booleans(),
    st.booleans(),
)
turn_ranges = st.builds(TurnRange, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
tool_calls = st.builds(ToolCallRef, texts, optional)
strings = dict.fromkeys(TEXT_FIELDS, optional)
metas = st.fixed_dictionaries(
    {},
    optional={
        **strings,
        "namespace": namespaces,
        "turns": turn_ranges,
        "tool_call": tool_calls,
        "source": st.builds(SourceRef, st.sampled_from(SourceKind), optional),
        "tags": st.lists(texts, max_size=3),
        "observed_at": timestamps,
    },
).map(lambda fields: MemoryMeta(**fields))
filters = st.fixed_dictionaries(
    {},
    optional={
        **strings,
        "reach": reaches,
        "turns": turn_ranges,
        "tool_call": texts,
        "source_id": texts,
        "kinds": st.lists(st.sampled_from(ItemKind), max_size=2),
        "sources": st.lists(st.sampled_from(SourceKind), max_size=2),
        "tags_any": st.lists(texts, max_size=2),
        "observed_after": timestamps,
        "observed_before": timestamps,
    },
).map(lambda fields: MetaFilter(**fields))
turns = st.builds(
    Turn, st.sampled_from(Role), texts, st.none() | timestamps, st.lists(tool_calls, max_size=2)
)
items = st.one_of(
    st.builds(
        lambda t, title, mime, meta: document(t, title=title, mime=mime, meta=meta),
        texts,
        optional,
        optional,
        metas,
    ),
    st.builds(
        lambda t, kind, confidence, evidence, meta: learning(
            t, kind=kind, confidence=confidence, evidence=evidence, meta=meta
        ),
        texts,
        st.sampled_from(LearningKind),
        st.floats(0, 1, width=32),
        optional,
        metas,
    ),
    st.builds(lambda ts, meta: conversation(ts, meta=meta), st.lists(turns, max_size=3), metas),
)


@given(items)
def test_items_survive_the_wire(item: StoreItem) -> None:
    data = encode(item)
    twin = decode(data, StoreItem)
    assert twin == item
    assert encode(twin) == data
    assert twin.fingerprint() == item.fingerprint()
    # The same bytes as Python's own writer gives for the same keys in the same order.
    loaded = json.loads(data, parse_float=lambda text: F32(float(text)))
    assert json.dumps(loaded, ensure_ascii=False, separators=(",", ":"), default=str)


@given(filters, metas, st.sampled_from(ItemKind))
def test_filters_survive_the_wire_and_match_the_same(
    filter_: MetaFilter, meta: MemoryMeta, kind: ItemKind
) -> None:
    twin = decode(encode(filter_), MetaFilter)
    assert twin == filter_
    assert twin.matches(kind, meta) == filter_.matches(kind, meta)
    assert twin.is_empty() == (encode(filter_) == b"{}")


@given(metas, st.sampled_from(ItemKind), st.sampled_from(Facet))
def test_a_filter_narrowed_to_an_item_s_value_admits_the_item(
    meta: MemoryMeta, kind: ItemKind, facet: Facet
) -> None:
    for value in facet.values(kind, meta):
        if value.strip():
            try:
                narrowed = facet.narrow(MetaFilter(), value)
            except ValueError:
                continue  # blank by the contract's rule only
            assert narrowed.matches(kind, meta)


@given(reaches, namespaces)
def test_a_reach_admits_its_nodes_and_nothing_beside_them(reach: Reach, node: Namespace) -> None:
    assert all(map(reach.admits, reach.nodes()))
    above = node in reach.at.ancestors()
    below = reach.at in node.ancestors()
    expected = node == reach.at or (reach.inherit and above) or (reach.descendants and below)
    assert reach.admits(node) == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_f32_text_reads_back_as_the_same_bits(value: float) -> None:
    text = f32_json(F32(value))
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    digits = text.lstrip("-").split("e")[0].replace(".", "").strip("0")
    assert len(digits) <= 9


@given(timestamps)
def test_timestamps_survive_their_text(at: Timestamp) -> None:
    assert Timestamp.parse(at.text(), strict=True) == at


@given(texts, st.integers(0, 2**64 - 1), optional, filters)
def test_requests_survive_the_wire(
    query: str, limit: int, cursor: str | None, filter_: MetaFilter
) -> None:
    request = FetchRequest(query=query, limit=limit, cursor=cursor, filter=filter_)
    assert decode(encode(request), FetchRequest) == request


@given(st.text(max_size=30))
def test_any_text_is_a_namespace_or_refused(text: str) -> None:
    try:
        node = Namespace.parse(text)
    except ValueError:
        return
    assert Namespace.parse(str(node)) == node
    assert Namespace.from_segments(node.segments) == node


@given(st.text(max_size=200))
def test_any_raw_id_makes_a_node(raw: str) -> None:
    node = Namespace.agent(raw)
    assert node.depth == 1
    assert Namespace.parse(node) == node
