"""Making values in Python: what is taken, what is refused, what is derived."""

import copy
import pickle
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone

import pytest

from colmem.contract import (
    F32,
    ColmemError,
    Conversation,
    CorruptStore,
    Document,
    DocumentBody,
    EngineError,
    Facet,
    FetchMode,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    InvalidRequest,
    ItemKind,
    Learning,
    ListRequest,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    Segment,
    SegmentKind,
    SnapshotChecksumError,
    SourceKind,
    SourceRef,
    StoreLocked,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    Unavailable,
    as_request,
    conversation,
    document,
    encode,
    learning,
    path_admits,
    path_prefix,
    validate_batch,
)


def test_plain_python_values_become_the_contract_s() -> None:
    meta = MemoryMeta(
        namespace="agent:a/ws:b",
        source="github",
        tags=("x", "y"),
        observed_at=datetime(2026, 1, 1, 2, 0, 0, 5, tzinfo=timezone(timedelta(hours=2))),
    )
    assert meta.namespace == Namespace.parse("agent:a/ws:b")
    assert meta.source == SourceRef(SourceKind.GITHUB)
    assert meta.tags == ["x", "y"]
    assert str(meta.observed_at) == "2026-01-01T00:00:00.000005Z"
    assert Reach(at="agent:a").at == Namespace("agent:a")
    assert MetaFilter(kinds=["document"]).kinds == [ItemKind.DOCUMENT]
    assert FetchRequest(query="q").mode is FetchMode.HYBRID
    assert FetchRequest(query="q", mode="vector").mode is FetchMode.VECTOR
    assert FetchRequest(query="q", filter=None).filter == MetaFilter()
    assert (FetchRequest(query="q").limit, ListRequest().limit) == (10, 100)
    assert document("x", meta=None).meta == MemoryMeta()
    turns = [("user", "a"), Turn("tool", "b"), {"role": "system", "text": "c"}]
    assert [turn.role for turn in conversation(turns).turns] == ["user", "tool", "system"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: MemoryMeta(tags="rust"),
        lambda: MemoryMeta(tags=["a", 5]),
        lambda: MemoryMeta(folder=5),
        lambda: MemoryMeta(namespace=5),
        lambda: MemoryMeta(source="nowhere"),
        lambda: MemoryMeta(turns=(1, 2)),
        lambda: MemoryMeta(tool_call="grep"),
        lambda: MetaFilter(kinds=["note"]),
        lambda: MetaFilter(kinds="document"),
        lambda: MetaFilter(reach="agent:a"),
        lambda: MetaFilter(url=5),
        lambda: MetaFilter(observed_after="yesterday"),
        lambda: TurnRange(-1, 2),
        lambda: TurnRange(0, 2**32),
        lambda: TurnRange(True, 2),
        lambda: SourceRef("agent", 5),
        lambda: ToolCallRef(None),
        lambda: Turn("nobody", "x"),
        lambda: Turn("user", None),
        lambda: Turn("user", "x", tool_calls=["grep"]),
        lambda: document(None),
        lambda: document("x", title=5),
        lambda: Document(body=None),
        lambda: DocumentBody(),
        lambda: DocumentBody(text="a", uri="b"),
        lambda: conversation(["hello"]),
        lambda: conversation([("user", "a", None, [], 5)]),
        lambda: conversation([{"role": "user", "content": "a"}]),
        lambda: Conversation(turns="hello"),
        lambda: learning("x", kind="guess"),
        lambda: learning("x", confidence=True),
        lambda: learning("x", confidence="high"),
        lambda: document("x", meta={"folder": "/"}),
        lambda: Reach(inherit=1),
        lambda: FetchRequest(query="q", mode="magic"),
        lambda: FetchRequest(query=None),
        lambda: FetchRequest(query="q", limit=-1),
        lambda: FetchRequest(query="q", limit=1.0),
        lambda: FetchRequest(query="q", filter={"folder": "/"}),
        lambda: GetRequest("abc"),
        lambda: ForgetTarget(),
        lambda: ForgetTarget(ids=["a"], filter=MetaFilter()),
        lambda: Timestamp(0, -1),
    ],
)
def test_values_of_another_type_are_refused(make) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make()
    assert caught.value.message


def test_a_naive_datetime_is_refused_with_advice() -> None:
    with pytest.raises(InvalidRequest, match="no time zone; give it one") as caught:
        MemoryMeta(observed_at=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused
    assert caught.value.path == "observed_at"
    with pytest.raises(InvalidRequest, match=r"MetaFilter\.observed_before"):
        MetaFilter(observed_before=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


def test_values_do_not_change() -> None:
    for value in (MemoryMeta(), MetaFilter(), document("x"), Reach()):
        with pytest.raises(AttributeError):
            value.workspace = "w"  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        Timestamp(0).seconds = 1


def test_values_can_be_copied_and_pickled() -> None:
    meta = MemoryMeta(namespace="agent:a", observed_at="2026-01-01T00:00:60.5Z", tags=["x"])
    items = [learning("x", confidence=0.8, meta=meta), conversation([("user", "x")], meta=meta)]
    for item in [*items, MemoryMeta(), F32(-0.0), Namespace.root()]:
        for twin in (copy.deepcopy(item), pickle.loads(pickle.dumps(item))):
            assert type(twin) is type(item)
            assert encode(twin) == encode(item)


def test_an_item_s_kind_is_its_shape_and_a_learning_s_kind_has_its_own_name() -> None:
    item = learning("x", kind="preference")
    assert (item.kind, item.learning_kind) == ("learning", "preference")
    assert (document("x").kind, conversation([]).kind) == ("document", "conversation")
    assert document("x").confidence is None
    assert isinstance(item, Learning)


def test_observed_at_is_the_only_thing_outside_the_fingerprint() -> None:
    at = "2026-01-01T00:00:00.123Z"
    turns = [Turn("user", "hi", at=at)]
    for item in (document("x"), learning("x"), conversation(turns)):
        dated = item.replace(meta=item.meta.replace(observed_at=at))
        assert dated.content_digest() == item.content_digest()
        assert dated.fingerprint() == item.content_digest()[:40]
        assert encode(dated) != encode(item)
    assert conversation(turns).fingerprint() != conversation([("user", "hi")]).fingerprint()
    trap = ',"observed_at":"2026'
    plain = conversation([Turn("user", trap)])
    assert plain.replace(meta=MemoryMeta(observed_at=at)).fingerprint() == plain.fingerprint()


def test_a_batch_is_judged_by_its_size_first() -> None:
    with pytest.raises(InvalidRequest, match="between 1 and 100"):
        validate_batch([document(" ")] * 101)
    with pytest.raises(InvalidRequest, match="body must not be empty"):
        validate_batch([document("x"), document(" ")])


def test_requests_come_whole_or_as_fields() -> None:
    request = ListRequest(limit=3)
    assert as_request(ListRequest, request, {}) is request
    assert as_request(ListRequest, None, {"limit": 3}) == request
    with pytest.raises(TypeError, match="not both"):
        as_request(ListRequest, request, {"limit": 3})
    with pytest.raises(TypeError):
        as_request(ListRequest, None, {"size": 3})
    with pytest.raises(InvalidRequest, match="expected a ListRequest, got MetaFilter"):
        as_request(ListRequest, MetaFilter(), {})  # type: ignore[arg-type]


def test_narrowing_returns_another_filter() -> None:
    filter_ = MetaFilter(folder="/a")
    narrowed = Facet.TAG.narrow(filter_, "x")
    assert narrowed == MetaFilter(folder="/a", tags_any=["x"])
    assert filter_ == MetaFilter(folder="/a")
    with pytest.raises(InvalidRequest, match="must be a string"):
        Facet.TAG.narrow(filter_, 5)  # type: ignore[arg-type]


def test_paths() -> None:
    assert path_prefix("/a/b//") == "/a/b"
    assert path_admits("/a/b", "/a/b/c")
    assert not path_admits("/a/b", "/a/bc")
    assert not path_admits("", None)


def test_namespaces_are_strings() -> None:
    node = Namespace.from_segments([("team", "acme"), (SegmentKind.WORKSPACE, "w")])
    assert node == "team:acme/ws:w"
    assert node.segments == (Segment(SegmentKind.TEAM, "acme"), Segment.of("workspace", "w"))
    assert node.ancestors() == ["root", "team:acme"]
    assert node.child("project", "p") == "team:acme/ws:w/project:p"
    assert Namespace.root().ancestors() == []
    assert (Namespace.root().depth, node.depth) == (0, 2)
    assert Namespace() == Namespace.parse(" root ") == Namespace.root()


def test_timestamps_order_as_instants() -> None:
    texts = [
        "-0001-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "1969-12-31T23:59:59.9Z",
        "1970-01-01T00:00:00Z",
        "2016-12-31T23:59:59.999999999Z",
        "2016-12-31T23:59:60Z",
        "2016-12-31T23:59:60.5Z",
        "2017-01-01T00:00:00Z",
        "+10000-01-01T00:00:00Z",
    ]
    times = [Timestamp.parse(text) for text in texts]
    assert sorted(times) == times
    assert len(set(times)) == len(times)
    assert times[0] <= times[1]
    assert times[1] >= times[0]
    assert times[1] > times[0]
    assert times[0] != "x"
    assert Timestamp.now() > times[-2]


def test_timestamps_and_datetimes() -> None:
    at = datetime(2026, 10, 4, 9, 30, 0, 250_000, tzinfo=UTC)
    assert Timestamp.of(at).to_datetime() == at
    assert Timestamp.parse("2016-12-31T23:59:60Z").to_datetime().second == 59
    with pytest.raises(OverflowError):
        Timestamp.parse("+10000-01-01T00:00:00Z").to_datetime()
    for wrong in ("24:00:00", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", 5, None):
        with pytest.raises(InvalidRequest):
            Timestamp.of(wrong)  # type: ignore[arg-type]


def test_errors_have_codes_and_parents() -> None:
    error = StoreLocked("held by 1")
    assert isinstance(error, Unavailable)
    assert error.is_transient
    assert str(error) == "unavailable: held by 1"
    assert (error.code, error.variant) == ("store_locked", "unavailable")
    assert isinstance(CorruptStore("x"), EngineError)
    assert InvalidRequest("a") == InvalidRequest("a", path="$")
    assert InvalidRequest("a") != InvalidRequest("b")
    assert len({InvalidRequest("a"), InvalidRequest("a")}) == 1
    assert isinstance(InvalidRequest("a"), ValueError)
    mismatch = SnapshotChecksumError(
        "differs", reason="mismatch", file="a.jsonl", expected="1", actual="2"
    )
    assert isinstance(mismatch, ColmemError)
    fields = (mismatch.reason, mismatch.file, mismatch.expected, mismatch.actual)
    assert fields == ("mismatch", "a.jsonl", "1", "2")
    twin = pickle.loads(pickle.dumps(InvalidRequest("a", path="$.x")))
    assert (twin.message, twin.path) == ("a", "$.x")


def test_the_contract_imports_nothing_heavy() -> None:
    code = (
        "import sys, colmem.contract, colmem.reference, colmem.conformance, colmem.tools;"
        "print([m for m in ('numpy', 'numba', 'duckdb', 'pyarrow', 'tantivy', 'orjson')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_item_of_many_megabytes_is_hashed_without_many_copies() -> None:
    item = document("x" * 8_000_000)
    tracemalloc.start()
    try:
        item.fingerprint()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40_000_000
