"""The commands serve, tools and context, and a server process that is stopped or killed."""

import concurrent.futures
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from surface_parts import process

import colmem
from colmem import Unavailable, encode
from colmem.adapters.cli import cli
from colmem.context import compile

TOKEN = "a-token-for-the-serve-tests"


def run(*args: object, **options: Any) -> Any:
    return CliRunner().invoke(cli, [*map(str, args)], **options)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serving") / "s.colmem"
    with colmem.open(path) as engine:
        engine.store(colmem.learning("The user likes owls.", confidence=0.9))
        engine.store(colmem.document("Owls hunt at night.", title="Owls"))
    return path


def test_a_server_is_stopped_without_losing_what_it_took(tmp_path: Path) -> None:
    store = tmp_path / "new.colmem"
    with process("serve", store) as (server, url), colmem.connect(url) as engine:
        assert engine.health().is_serving
        receipts = engine.store_many([colmem.document(f"note {n}") for n in range(20)])
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (0, -signal.SIGTERM)
        with pytest.raises(Unavailable):
            engine.list(limit=1)
    with colmem.open(store, create=False) as held:
        assert {hit.id for hit in held.list(limit=50).items} == {r.id for r in receipts}


@pytest.mark.crash
def test_a_killed_server_loses_no_write_it_answered(tmp_path: Path) -> None:
    store = tmp_path / "s.colmem"
    answered: list[str] = []
    with process("serve", store, COLMEM_TOKEN=TOKEN) as (server, url):

        def write(writer: int) -> None:
            with colmem.connect(url, token=TOKEN) as engine:
                for n in range(10_000):
                    try:
                        answered.append(engine.store(colmem.document(f"{writer} wrote {n}")).id)
                    except Unavailable:
                        return

        with concurrent.futures.ThreadPoolExecutor(4) as writers:
            futures = [writers.submit(write, n) for n in range(4)]
            while len(answered) < 100:
                concurrent.futures.wait(futures, timeout=0.01)
            server.kill()
            for future in futures:
                future.result()
    with colmem.open(store, create=False) as held:
        ids = [*answered]
        for start in range(0, len(ids), 200):
            part = ids[start : start + 200]
            assert [hit.id for hit in held.get(ids=part)] == part
        assert held.check().ok


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "needs tokens"),
        (["--tokens", "{tokens}"], "holds no token"),
    ],
)
def test_what_serve_refuses(store: Path, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "tokens.json").write_text("[]")
    words = [word.format(tokens=tmp_path / "tokens.json") for word in words]
    ran = run("serve", store, *words)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert message in ran.stderr


def test_a_short_token_is_refused(store: Path) -> None:
    ran = run("serve", store, env={"COLMEM_TOKEN": "short"})
    assert ran.exit_code == 1
    assert "16 or more printable ASCII characters" in ran.stderr
    assert "short" not in ran.stderr


def test_tools_are_listed_and_called(store: Path) -> None:
    specs = [json.loads(line) for line in run("tools", store, "--json").stdout.splitlines()]
    assert [spec["name"] for spec in specs][:2] == ["memory_recall", "memory_fetch"]
    reading = run("tools", store, "--json", "--read-only").stdout.splitlines()
    assert len(reading) == len(specs) - 2
    called = run("tools", store, "--call", "memory_list", "--json")
    assert len(json.loads(called.stdout)["items"]) == 2
    called = run("tools", store, "--call", "memory_list", "--reach", "exact:user:x", "--args", "{}")
    assert json.loads(called.stdout) == {"items": []}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--call", "memory_list", "--args", "["], 1, "not valid JSON"),
        (["--call", "memory_list", "--args", "[]"], 1, "arguments must be a json object"),
        (["--args", "{}"], 2, "--args belongs to --call"),
        (["--call", "memory_store", "--read-only"], 1, "these memory tools are read-only"),
        (["--place", "nowhere"], 2, "must be written kind:id"),
        (["--reach", "exact:nowhere"], 2, "expected all, PATH"),
    ],
)
def test_tools_that_fail(store: Path, words: list[str], code: int, message: str) -> None:
    ran = run("tools", store, *words)
    assert (ran.exit_code, ran.stdout) == (code, "")
    assert message in ran.stderr


def test_context(store: Path, tmp_path: Path) -> None:
    page = run("context", store).stdout
    assert page.startswith("---\ngenerated_at: ")
    assert page.endswith("## Learnings\n\n- The user likes owls.\n")
    made = json.loads(run("context", store, "--json").stdout)
    with colmem.open(store, read_only=True) as engine:
        expected = json.loads(encode(compile(engine)))
    assert made["refs"] == expected["refs"]
    assert made["engine"] == "colmem"
    assert run("context", store, "--reach", "exact:user:x").stdout == ""
    assert "## Learnings" not in run("context", store, "--learnings", "0").stdout
    spec = {
        "budget_tokens": 99,
        "briefs": [{"heading": "Birds", "question": "what hunts at night"}],
        "learnings_limit": 0,
    }
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    assert "## Birds\n" in run("context", store, "--spec", path).stdout
    for words, message in (
        (["--budget", "0"], "budget_tokens must be positive"),
        (["--learnings", "-1"], "learnings_limit must not be negative"),
    ):
        ran = run("context", store, *words)
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert f"invalid context spec: {message}" in ran.stderr


def test_the_server_of_a_store_that_is_only_read(store: Path) -> None:
    with process("serve", store, "--read-only", "--json") as (_, url):
        listed = httpx.post(f"{url}/v1/list", json={"limit": 5}).json()
        assert len(listed["items"]) == 2
        refused = httpx.post(f"{url}/v1/store", content=encode(colmem.document("x")))
        assert refused.status_code >= 400
