"""Every line of the golden tool and context files, compared with what colmem does."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from scripted_engine import ScriptedEngine

from colmem import context
from colmem.context import ContextSpec, ContextSpecError
from colmem.contract import ColmemError, Hit, Reach, StoreItem, Timestamp, decode, encode
from colmem.reference import ReferenceEngine
from colmem.tools import MemoryTools

FOLDER = Path(__file__).parents[1] / "golden" / "contract"
NOW = Timestamp.parse("2026-11-05T06:07:08.987654321Z")

Case = dict[str, Any]


def golden_cases(name: str) -> list[Case]:
    plain = FOLDER / f"{name}.jsonl"
    packed = FOLDER / f"{name}.jsonl.gz"
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return [json.loads(line) for line in data.split(b"\n") if line]


def of_json(value: Any, type_: Any) -> Any:
    return decode(json.dumps(value), type_)


def with_items(engine: ScriptedEngine, items: list[Any]) -> ScriptedEngine:
    for item in items:
        engine.store(of_json(item, StoreItem))
    return engine


def outcome(call: Callable[[], Any]) -> Case:
    try:
        return {"ok": call()}
    except ColmemError as error:
        return {
            "error": {
                "variant": error.variant,
                "message": error.message,
                "display": str(error),
                "transient": error.is_transient,
            }
        }


def dated(value: Any, at: str) -> Any:
    """A golden value with the time of the call in place of its name."""
    if isinstance(value, dict):
        return {key: dated(inner, at) for key, inner in value.items()}
    if isinstance(value, list):
        return [dated(inner, at) for inner in value]
    return at if value == "$NOW" else value


def judge_tools(case: Case) -> None:
    engine = ScriptedEngine(
        fetch_modes=case["fetch_modes"],
        recall=case["scripted_recall"],
        fetch=case["scripted_fetch"],
    )
    tools = MemoryTools(with_items(engine, case["items"]), now=lambda: NOW)
    for step in case["build"]:
        match step["do"]:
            case "placed_at":
                tools = tools.placed_at(step["arg"])
            case "reach":
                tools = tools.reach(of_json(step["arg"], Reach))
            case "read_only":
                tools = tools.read_only()
            case other:
                pytest.fail(f"build step {other} is not known")
    assert json.loads(encode(tools.scope)) == case["scope"]
    for call in case["calls"]:
        got = outcome(lambda call=call: tools.call(call["tool"], call["args"]))
        assert got == dated(call["expect"], NOW.text(whole_seconds=True)), call
    held = sorted(engine.list(limit=10_000).items, key=lambda hit: hit.id)
    assert [held_form(hit) for hit in held] == case["held_after"]


def held_form(hit: Hit) -> Case:
    return {
        "id": hit.id,
        "text": hit.text,
        "namespace": str(hit.meta.namespace),
        "source": json.loads(encode(hit.meta.source)),
        "tags": hit.meta.tags,
        "has_observed_at": hit.meta.observed_at is not None,
        "confidence": None if hit.confidence is None else encode(hit.confidence).decode(),
    }


def without_descriptions(value: Any, *, are_names: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: without_descriptions(inner, are_names=key == "properties")
            for key, inner in value.items()
            if key != "description" or are_names
        }
    if isinstance(value, list):
        return [without_descriptions(inner) for inner in value]
    return value


def judge_tool_specs(case: Case) -> None:
    tools = MemoryTools(ScriptedEngine(fetch_modes=case["fetch_modes"], recall={}))
    if not case["writes"]:
        tools = tools.read_only()
    specs = tools.specs()
    assert all(spec.description for spec in specs)
    got = json.loads(json.dumps(without_descriptions(specs)))
    assert got == without_descriptions(case["specs"])


def judge_context(case: Case) -> None:
    engine = with_items(ScriptedEngine(recall=case["scripted_recall"]), case["items"])
    engine.list_fails = case["list_fails"]
    spec = None if case["spec"] is None else of_json(case["spec"], ContextSpec)
    try:
        document = context.compile(engine, spec, Timestamp.parse(case["generated_at"]))
    except ContextSpecError as error:
        got = {"error": str(error)}
    else:
        got = {"ok": json.loads(encode(document))}
    assert engine.descriptor().id == case["engine_id"]
    assert got == case["expect"]


JUDGES = {
    "tools": (judge_tools, 41),
    "tool_specs": (judge_tool_specs, 16),
    "context": (judge_context, 155),
}


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
            failures.append(f"{case['id']} ({case.get('note')}): {error}")
    assert not failures, f"{len(failures)} of {n_lines} failed\n" + "\n".join(failures[:5])


def test_the_reference_engine_works_with_the_tools() -> None:
    tools = MemoryTools(ReferenceEngine()).placed_at("agent:a")
    receipt = tools.call("memory_store", {"learning": {"text": "prefers tea"}})
    found = tools.call("memory_fetch", {"query": "tea"})
    assert [hit["id"] for hit in found["hits"]] == [receipt["id"]]
    outside = MemoryTools(tools.engine, replace(tools.scope, reach=Reach.exact("agent:b")))
    assert outside.call("memory_forget", {"ids": [receipt["id"]]}) == {
        "forgotten": 0,
        "skipped": [receipt["id"]],
    }
