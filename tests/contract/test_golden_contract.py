"""Every line of the golden contract files, compared with what colmem does."""

import json
import struct
from typing import Any

import msgspec
import pytest
from golden_lines import FOLDER, Case, error_form, golden_cases, golden_names, outcome

import colmem.contract as contract
from colmem.contract import (
    F32,
    VARIANTS,
    ColmemError,
    EngineDescriptor,
    EngineHealth,
    Facet,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    InvalidRequest,
    ListRequest,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    RecallRequest,
    Segment,
    SegmentKind,
    StoreItem,
    Timestamp,
    Turn,
    decode,
    encode,
    f32_display,
    f32_json,
    is_blank,
    validate_batch,
)
from colmem.contract.requests import ExploreRequest
from colmem.reference import ReferenceEngine

OPTIONAL_CLASSES = {"struct_as_array", "enum_as_map"}
NOT_OURS = {"tools", "tool_specs", "context"}  # read by tests/tools


def of_json(value: Any, type_: Any) -> Any:
    return decode(json.dumps(value), type_)


def read(text: str, type_: Any) -> Any:
    """A decoded value, or the error that refused it."""
    try:
        return decode(text, type_)
    except InvalidRequest as error:
        return error


def judge_items(case: Case) -> None:
    item = read(case["input"], StoreItem)
    assert isinstance(item, ColmemError) is not case["accepted"]
    if not case["accepted"]:
        return
    assert item.kind == case["kind"]
    assert outcome(item.validate) == case["validate"]
    if "wire" not in case:  # a huge confidence, whose spelling is not fixed
        return
    assert encode(item).decode() == case["wire"]
    confidence = None if item.confidence is None else encode(item.confidence).decode()
    assert confidence == case["confidence"]
    assert item.render_text() == case["render_text"]
    assert item.fingerprint() == case["fingerprint"]
    assert len(item.content_digest()) == 64
    assert item.replace(meta=item.meta.replace(observed_at=None)) == read(case["hashed"], StoreItem)


def judge_wire(case: Case) -> None:
    if case["class"] in OPTIONAL_CLASSES:
        assert isinstance(read(case["input"], getattr(contract, case["type"])), InvalidRequest)
        return
    value = read(case["input"], getattr(contract, case["type"]))
    assert isinstance(value, ColmemError) is not case["accepted"], value
    if not case["accepted"]:
        assert value.path
        if "namespace_error" in case:
            assert str(value) == case["namespace_error"]
        return
    assert encode(value).decode() == case["wire"]
    if "validate" in case:
        assert outcome(value.validate) == case["validate"]
    if "is_empty" in case:
        assert value.is_empty() is case["is_empty"]
    if "render" in case:
        assert value.render() == case["render"]
    if "path_prefix" in case:
        assert value.path_prefix == case["path_prefix"]


def judge_timestamps(case: Case) -> None:
    for strict, accepts in ((False, case["contract_accepts"]), (True, case["tools_accept"])):
        try:
            text = Timestamp.parse(case["text"], strict=strict).text()
        except InvalidRequest:
            assert not accepts
        else:
            assert accepts
            assert text == case["canonical"]


def judge_f32(case: Case) -> None:
    hit = read(
        f'{{"id":"a","kind":"learning","text":"t","meta":{{}},"score":{case["input"]}}}',
        contract.Hit,
    )
    assert isinstance(hit, ColmemError) is not case["accepted"]
    if not case["accepted"] or case["class"] == "reader_one_ulp":
        return
    score = hit.score
    assert isinstance(score, F32)
    assert struct.pack("<f", score) == struct.pack("<I", case["bits"])
    assert f32_display(score) == case["display"]
    if case["class"] != "large_exponent":
        assert f32_json(score) == case["json"]


def judge_blank_text(case: Case) -> None:
    assert is_blank(case["text"]) is case["blank"]


def judge_filter_match(case: Case) -> None:
    filter_ = of_json(case["filter"], MetaFilter)
    assert filter_.is_empty() is case["filter_is_empty"]
    assert filter_.matches(case["kind"], of_json(case["meta"], MemoryMeta)) is case["matches"]


def judge_namespace(case: Case) -> None:
    if case["op"] == "sanitize":
        segment = Segment.sanitized(case["segment_kind"], case["raw"])
        assert str(segment) == case["segment"]
        assert segment.id == case["segment_id"]
        assert Segment.is_valid_id(case["raw"]) is case["raw_is_already_valid"]
    elif case["op"] == "agent_namespace":
        assert Namespace.agent(case["raw"]) == case["ok"]
    else:
        try:
            if case["op"] == "parse":
                namespace = Namespace.parse(case["text"])
            else:
                pairs = [(SegmentKind(kind), id_) for kind, id_ in case["segments"]]
                namespace = Namespace.from_segments(pairs)
        except InvalidRequest as error:
            refused = error_form(error)
        else:
            refused = None
            assert namespace == case["ok"]
        assert refused == case.get("error")
        if case["op"] == "parse" and not refused:
            assert namespace.depth == case["depth"]
            assert namespace.is_root is case["is_root"]
            segments = [{"kind": s.kind.path_prefix, "id": s.id} for s in namespace.segments]
            assert segments == case["segments"]


def judge_reach(case: Case) -> None:
    reach = of_json(case["reach"], Reach)
    if case["op"] == "admits":
        assert reach.admits(Namespace.parse(case["namespace"])) is case["admits"]
    else:
        assert reach.nodes() == case["nodes"]


def judge_facets(case: Case) -> None:
    facet = Facet(case["facet"])
    if case["op"] == "values":
        assert facet.values(case["kind"], of_json(case["meta"], MemoryMeta)) == case["values"]
        return
    filter_ = of_json(case["filter"], MetaFilter)
    before = encode(filter_)
    try:
        after = facet.narrow(filter_, case["value"])
    except InvalidRequest as error:
        refused, after = error_form(error), filter_
    else:
        refused = None
    assert refused == case.get("error")
    assert json.loads(encode(after)) == case["filter_after"]
    assert encode(filter_) == before


def judge_small_rules(case: Case) -> None:
    given = case["given"]
    match case["check"]:
        case "store_many_batch":
            items = given["items"] if "items" in given else [given["item"]] * given["n"]
            batch = [of_json(item, StoreItem) for item in items]
            assert outcome(lambda: validate_batch(batch)) == case["validate"]
        case "fetch_mode_gate":
            descriptor = msgspec.structs.replace(
                ReferenceEngine().descriptor(), fetch_modes=given["fetch_modes"]
            )
            assert descriptor.supports(given["mode"]) is case["supports"]
            assert outcome(lambda: descriptor.ensure_mode(given["mode"])) == case["ensure"]
        case "health":
            makers = {
                "ok": lambda _: EngineHealth.ok(),
                "degraded": EngineHealth.degraded,
                "down": EngineHealth.down,
            }
            health = makers[given["state"]](given["reason"])
            assert encode(health).decode() == case["wire"]
            assert health.is_serving is case["is_serving"]
        case "error_text":
            error = VARIANTS[given["variant"]](given["message"])
            assert str(error) == case["display"]
            assert error.is_transient is case["transient"]
        case "descriptor":
            descriptor = ReferenceEngine().descriptor()
            assert encode(descriptor).decode() == case["wire"]
            assert decode(case["wire"], EngineDescriptor) == descriptor
        case other:
            pytest.fail(f"small rule {other} is not judged")


REQUESTS = {
    "store": StoreItem,
    "store_many": list[StoreItem],
    "list": ListRequest,
    "get": GetRequest,
    "explore": ExploreRequest,
    "forget": ForgetTarget,
    "fetch": FetchRequest,
    "recall": RecallRequest,
}


def judge_sessions(case: Case) -> None:
    engine = ReferenceEngine()
    for step in case["steps"]:
        expect = dict(step["expect"])
        how = expect.pop("compare", None)
        try:
            request = of_json(step["req"], REQUESTS[step["call"]])
            answer = json.loads(encode(getattr(engine, step["call"])(request)))
        except ColmemError as error:
            form = error_form(error)
            if how == "variant_only":
                form = {"variant": form["variant"]}
            answer = {"error": form}
        else:
            if how == "items_by_id_any_order":
                answer["items"].sort(key=lambda hit: hit["id"])
                answer.setdefault("next_cursor", None)
            answer = {"ok": answer}
        assert answer == expect
    assert len(engine.list(limit=10_000).items) == case["items_left"]


JUDGES = {
    "items": (judge_items, 661),
    "wire": (judge_wire, 324),
    "timestamps": (judge_timestamps, 87),
    "f32": (judge_f32, 252),
    "blank_text": (judge_blank_text, 35),
    "filter_match": (judge_filter_match, 2011),
    "namespace": (judge_namespace, 204),
    "reach": (judge_reach, 340),
    "facets": (judge_facets, 386),
    "small_rules": (judge_small_rules, 57),
    "sessions": (judge_sessions, 73),
}


def test_every_golden_file_is_read() -> None:
    assert golden_names() == set(JUDGES) | NOT_OURS
    assert (FOLDER / "README.md").exists()


@pytest.mark.parametrize("name", JUDGES)
def test_golden(name: str) -> None:
    judge, n_lines = JUDGES[name]
    cases = golden_cases(name)
    assert len(cases) == n_lines
    failures = []
    for case in cases:
        try:
            judge(case)
        except AssertionError as error:
            failures.append(f"{case['id']}: {case}\n{error}")
    assert not failures, f"{len(failures)} of {n_lines} failed\n" + "\n".join(failures[:5])


def test_a_turn_renders_its_tool_calls() -> None:
    call = contract.ToolCallRef("grep", "1")
    assert Turn("assistant", "ok", tool_calls=[call]).render() == "assistant: ok [tools: grep (1)]"
