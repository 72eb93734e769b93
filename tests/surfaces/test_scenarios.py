"""One table of steps through Python, the command line, HTTP and MCP: same answers, same errors."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import anyio.from_thread
import httpx
import pytest
from click.testing import CliRunner
from mcp import Client
from surface_parts import serving

import colmem
from colmem import ColmemError, decode, encode
from colmem.adapters.cli import cli
from colmem.adapters.mcp_server import make_server
from colmem.client.operations import OPERATIONS
from colmem.contract import VARIANTS
from colmem.tools import MemoryTools, ToolScope
from colmem.tools.results import rounded

Answer = Any
OWL = colmem.document("Owls hunt at night.", title="Owls", meta=colmem.MemoryMeta(tags=["bird"]))
LIKES = colmem.learning("The user likes owls.", kind="preference", confidence=0.75)
TALK = colmem.conversation([("user", "Any owls?"), ("assistant", "Two owls.")])


class Failed(NamedTuple):
    """An error as a surface prints it."""

    text: str


class Step(NamedTuple):
    """An operation with its request; ``cursor_of`` takes the cursor of an earlier step."""

    operation: str
    request: Any
    cursor_of: int | None = None


STEPS = [
    Step("list", {"limit": 5}),
    Step("store", OWL),
    Step("store", OWL),
    Step("store", LIKES),
    Step("store", TALK),
    Step("store", colmem.document("  ")),
    Step("list", {"limit": 2}),
    Step("list", {"limit": 2}, cursor_of=6),
    Step("list", {"limit": 2, "cursor": "nonsense"}),
    Step("list", {"limit": 2, "filter": {"kinds": ["conversation"]}}, cursor_of=6),
    Step("list", {"limit": 9, "filter": {"tags_any": ["bird", "fish"]}}),
    Step("fetch", {"query": "night owls", "mode": "hybrid", "limit": 3}),
    Step("fetch", {"query": "night owls", "mode": "keyword", "limit": 1}),
    Step("fetch", {"query": "night owls", "mode": "vector", "limit": 3}),
    Step("fetch", {"query": "owls", "mode": "keyword", "limit": 3, "filter": {"folder": "/x"}}),
    Step("fetch", {"query": "  ", "mode": "keyword", "limit": 3}),
    Step("recall", {"question": "what does the user like?", "limit": 2}),
    Step("recall", {"question": "", "limit": 2}),
    Step("explore", {"facet": "kind", "limit": 5}),
    Step("explore", {"facet": "tag", "limit": 5, "filter": {"kinds": ["document"]}}),
    Step("explore", {"facet": "kind", "limit": 0}),
    Step("get", {"ids": [LIKES.fingerprint(), "unknown", OWL.fingerprint()]}),
    Step("get", {"ids": [" "]}),
    Step("forget", {"ids": [OWL.fingerprint(), "unknown"]}),
    Step("forget", {"filter": {"kinds": ["conversation"]}}),
    Step("list", {"limit": 9}),
]
# A model's arguments are read by the tool itself, in its own words, before the engine sees them.
TOOLS_OWN_WORDS = {
    5: "invalid request: memory_store: `document.text` is required and must not be blank",
    15: "invalid request: memory_fetch: `query` is required and must not be blank",
    17: "invalid request: memory_recall: `question` is required and must not be blank",
    20: "invalid request: memory_explore: `limit` must be an integer from 1 to 50",
    22: "invalid request: memory_get: `ids` must not hold a blank id",
}


def python(folder: Path, stack: ExitStack) -> Callable[[Step], Answer]:
    engine = stack.enter_context(colmem.open(folder / "python"))

    def run(step: Step) -> Answer:
        kind = OPERATIONS[step.operation].request
        request = step.request
        if isinstance(request, dict):
            request = decode(json.dumps(request), kind)
        return json.loads(encode(getattr(engine, step.operation)(request)))

    return lambda step: attempt(run, step)


def http(folder: Path, stack: ExitStack) -> Callable[[Step], Answer]:
    engine = stack.enter_context(colmem.open(folder / "http"))
    server = stack.enter_context(serving(engine))
    client = stack.enter_context(httpx.Client(base_url=server.url))

    def run(step: Step) -> Answer:
        body = step.request
        data = json.dumps(body).encode() if isinstance(body, dict) else encode(body)
        response = client.post(f"/v1/{step.operation}", content=data)
        answer = response.json()
        if response.status_code == 200:
            return answer
        return Failed(VARIANTS[answer["error"]].prefix + answer["message"])

    return run


def command_line(folder: Path, stack: ExitStack) -> Callable[[Step], Answer]:
    store = folder / "cli"
    with colmem.open(store):
        pass

    def run(step: Step) -> Answer:
        arguments = [step.operation, str(store), "--json", *_arguments(step)]
        ran = CliRunner().invoke(cli, arguments)
        printed = [json.loads(line) for line in ran.stdout.splitlines()]
        beside = [json.loads(line) for line in ran.stderr.splitlines()]
        if ran.exit_code:
            return Failed(beside[-1]["message"])
        cursors = {k: v for line in beside for k, v in line.items() if k == "next_cursor"}
        if step.operation in ("list", "fetch"):
            return {"items" if step.operation == "list" else "hits": printed, **cursors}
        return printed if step.operation == "get" else printed[0]

    return run


def _arguments(step: Step) -> list[str]:
    request = step.request
    if step.operation == "store":
        options = ["--kind", request.kind.value]
        options += [word for tag in request.meta.tags for word in ("--tag", tag)]
        if isinstance(request, colmem.Learning):
            options += ["--learning-kind", request.learning_kind.value]
            return [request.text, *options, "--confidence", str(request.confidence)]
        if isinstance(request, colmem.Conversation):
            return [request.render_text(), *options]
        title = ["--title", request.title] if request.title else []
        return [request.body.content, *options, *title]
    named = [request[key] for key in ("query", "question", "facet") if key in request]
    named += request.get("ids", [])
    flags = {key: request[key] for key in ("mode", "limit", "cursor") if key in request}
    options = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    if "filter" in request:
        options += ["--filter", json.dumps(request["filter"])]
    if step.operation == "forget":
        options.append("--yes")
    return [*options, "--", *named]


def tools(folder: Path, stack: ExitStack) -> Callable[[Step], Answer]:
    engine = stack.enter_context(colmem.open(folder / "mcp"))
    portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
    client = stack.enter_context(
        portal.wrap_async_context_manager(Client(make_server(engine, ToolScope())))
    )

    def run(step: Step) -> Answer:
        name, arguments = f"memory_{step.operation}", step.request
        if step.operation == "store":
            arguments = _tool_item(step.request)
        answer = portal.call(client.call_tool, name, arguments)
        return Failed(answer.content[0].text) if answer.is_error else answer.structured_content

    return run


def _tool_item(item: Any) -> dict[str, Any]:
    tags = {"tags": item.meta.tags} if item.meta.tags else {}
    if isinstance(item, colmem.Learning):
        kind = item.learning_kind.value
        learning = {"text": item.text, "learning_kind": kind, "confidence": item.confidence}
        return {"learning": learning, **tags}
    if isinstance(item, colmem.Conversation):
        turns = [{"role": turn.role.value, "text": turn.text} for turn in item.turns]
        return {"conversation": {"turns": turns}, **tags}
    title = {"title": item.title} if item.title else {}
    return {"document": {"text": item.body.content, **title}, **tags}


def attempt(run: Callable[[Step], Answer], step: Step) -> Answer:
    try:
        return run(step)
    except ColmemError as error:
        return Failed(str(error))


SURFACES = {"python": python, "http": http, "cli": command_line, "mcp": tools}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Answer]]:
    """What every surface answers to every step, each over a store of its own."""
    folder = tmp_path_factory.mktemp("surfaces")
    found: dict[str, list[Answer]] = {}
    for name, make in SURFACES.items():
        with ExitStack() as stack:
            run = make(folder, stack)
            found[name] = []
            for step in STEPS:
                request = step.request
                if step.cursor_of is not None:
                    request = request | {"cursor": found[name][step.cursor_of]["next_cursor"]}
                found[name].append(run(Step(step.operation, request)))
    return found


@pytest.mark.parametrize("surface", ["http", "cli"])
@pytest.mark.parametrize("n", range(len(STEPS)), ids=lambda n: f"{n}-{STEPS[n].operation}")
def test_the_same_answer_everywhere(answers: dict[str, list[Answer]], n: int, surface: str) -> None:
    assert answers[surface][n] == answers["python"][n]


@pytest.mark.parametrize("n", range(len(STEPS)), ids=lambda n: f"{n}-{STEPS[n].operation}")
def test_the_same_answer_for_models(answers: dict[str, list[Answer]], n: int) -> None:
    got, expected = answers["mcp"][n], answers["python"][n]
    if n in TOOLS_OWN_WORDS:
        assert isinstance(expected, Failed)
        assert got == Failed(TOOLS_OWN_WORDS[n])
    elif isinstance(expected, Failed):
        assert got == expected
    else:
        assert _as_told(STEPS[n].operation, got) == _as_told(STEPS[n].operation, expected)


def test_the_table_holds_errors_and_answers(answers: dict[str, list[Answer]]) -> None:
    failed = [n for n, answer in enumerate(answers["python"]) if isinstance(answer, Failed)]
    assert failed == [5, 8, 9, 15, 17, 20, 22]


def _as_told(operation: str, answer: Any) -> Any:
    """What a tool tells of an answer: no namespace, no times of its own, rounded numbers."""
    if operation in ("list", "fetch", "get"):
        hits = answer if isinstance(answer, list) else answer.get("items", answer.get("hits"))
        cursor = None if isinstance(answer, list) else answer.get("next_cursor")
        keys = ("id", "kind", "text")
        return [[*(h[k] for k in keys), rounded(h["score"])] for h in hits], cursor
    if operation == "recall":
        return answer["answer"], [[c["id"], c["snippet"]] for c in answer["citations"]]
    if operation == "forget":
        return answer["forgotten"]
    return answer


CALLS: list[tuple[str, Any]] = [
    ("memory_store", {"learning": {"text": "The user rows.", "confidence": 0.123456}}),
    ("memory_store", {"learning": {"text": "The user rows."}, "tags": ["sport"]}),
    ("memory_store", {"learning": {"text": "x"}, "document": {"text": "y"}}),
    ("memory_store", {"learning": {"text": "x", "colour": "red"}}),
    ("memory_list", None),
    ("memory_list", {"limit": 0}),
    ("memory_list", {"limit": True}),
    ("memory_list", {"filter": {"namespace": None}}),
    ("memory_list", {"cursor": "nonsense"}),
    ("memory_fetch", {"query": "rows", "mode": "keyword"}),
    ("memory_fetch", {"query": "rows", "mode": "fuzzy"}),
    ("memory_explore", {"facet": "namespace"}),
    ("memory_explore", {"facet": "tag"}),
    ("memory_recall", {"question": "what does the user do"}),
    ("memory_get", {"ids": ["a", "a", "b"]}),
    ("memory_forget", {"filter": {}}),
    ("memory_forget", {"filter": {"kinds": ["learning"]}}),
    ("memory_nothing", {}),
]


def test_the_tools_are_the_same_everywhere(tmp_path: Path) -> None:
    scope = ToolScope.at("user:ann")
    expected: list[Answer] = []
    with colmem.open(tmp_path / "python") as engine:
        for name, arguments in CALLS:
            try:
                expected.append(MemoryTools(engine, scope).call(name, arguments))
            except ColmemError as error:
                expected.append(Failed(str(error)))
    for make in (_tools_of_http, _tools_of_the_command_line, _tools_of_mcp):
        with ExitStack() as stack:
            call = make(tmp_path, scope, stack)
            for (name, arguments), wanted in zip(CALLS, expected, strict=True):
                got = call(name, arguments)
                if name == "memory_list" and wanted == expected[8]:
                    continue  # the cursor is named in the message, cut or sealed
                assert _untimed(got) == _untimed(wanted), (make.__name__, name, arguments)


Caller = Callable[[str, Any], Answer]


def _tools_of_http(folder: Path, scope: ToolScope, stack: ExitStack) -> Caller:
    from surface_parts import token

    secret = "token-of-ann-for-tests"
    engine = stack.enter_context(colmem.open(folder / "http"))
    tokens = (token(secret, place=scope.place, reach=scope.reach),)
    server = stack.enter_context(serving(engine, tokens=tokens))
    headers = {"authorization": f"Bearer {secret}"}
    client = stack.enter_context(httpx.Client(base_url=server.url, headers=headers))

    def call(name: str, arguments: Any) -> Answer:
        response = client.post(f"/v1/tools/{name}", content=json.dumps(arguments))
        answer = response.json()
        if response.status_code == 200:
            return answer
        return Failed(VARIANTS[answer["error"]].prefix + answer["message"])

    return call


def _tools_of_the_command_line(folder: Path, scope: ToolScope, stack: ExitStack) -> Caller:
    store = folder / "cli"
    with colmem.open(store):
        pass

    def call(name: str, arguments: Any) -> Answer:
        words = ["tools", str(store), "--place", str(scope.place), "--call", name]
        ran = CliRunner().invoke(cli, [*words, "--args", "-", "--json"], json.dumps(arguments))
        if ran.exit_code:
            return Failed(json.loads(ran.stderr)["message"])
        return json.loads(ran.stdout)

    return call


def _tools_of_mcp(folder: Path, scope: ToolScope, stack: ExitStack) -> Caller:
    engine = stack.enter_context(colmem.open(folder / "mcp"))
    portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
    client = stack.enter_context(
        portal.wrap_async_context_manager(Client(make_server(engine, scope)))
    )

    def call(name: str, arguments: Any) -> Answer:
        answer = portal.call(client.call_tool, name, arguments)
        return Failed(answer.content[0].text) if answer.is_error else answer.structured_content

    return call


def _untimed(answer: Answer) -> Any:
    """An answer without the times of storing."""
    if isinstance(answer, Failed):
        return answer
    text = json.dumps(answer)
    for hit in [*answer.get("items", ()), *answer.get("hits", ()), *answer.get("citations", ())]:
        text = text.replace(json.dumps(hit["meta"].get("observed_at")), '"then"')
    return json.loads(text)
