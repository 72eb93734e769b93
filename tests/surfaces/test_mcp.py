"""The MCP server under the official client: over a real stdio process, and over HTTP."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from surface_parts import COLMEM, token

import colmem
from colmem import MemoryMeta, Reach
from colmem.adapters.http.server import running_app
from colmem.adapters.http.settings import ServerSettings
from colmem.adapters.mcp_server import http_app, make_server
from colmem.adapters.serving import ReachText
from colmem.tools import MemoryTools, ToolScope
from colmem.tools.specs import READ_TOOLS

TOKEN = "a-token-for-the-mcp-tests"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.colmem"
    with colmem.open(path) as engine:
        engine.store(colmem.document("The root knows of apples.", title="Root"))
        engine.store(colmem.learning("Ann likes pears.", meta=MemoryMeta(namespace="user:ann")))
        engine.store(colmem.learning("Bob likes plums.", meta=MemoryMeta(namespace="user:bob")))
    return path


def result(answer: Any) -> Any:
    assert not answer.is_error, answer
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


def test_a_host_over_a_real_stdio_process(store: Path) -> None:
    with colmem.open(store) as engine:
        expected = MemoryTools(engine).specs()

    async def run() -> None:
        command = ["mcp", str(store), "--place", "user:ann"]
        server = StdioServerParameters(command=COLMEM, args=command)
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            info = await session.initialize()
            assert info.server_info.name == "colmem"
            tools = (await session.list_tools()).tools
            got = [(tool.name, tool.description, tool.input_schema) for tool in tools]
            assert got == [(spec.name, spec.description, spec.parameters) for spec in expected]
            assert tools[0].annotations.read_only_hint
            assert tools[-1].annotations.destructive_hint
            await use_as_ann(session)

    anyio.run(run)
    with colmem.open(store) as engine:
        assert engine.stats()["items"] == 3


async def use_as_ann(session: ClientSession) -> None:
    learning = {"learning": {"text": "Ann rows."}}
    stored = result(await session.call_tool("memory_store", learning))
    assert stored["replayed"] is False
    listed = result(await session.call_tool("memory_list", {}))
    assert {hit["text"] for hit in listed["items"]} == {
        "# Root\n\nThe root knows of apples.",
        "Ann likes pears.",
        "Ann rows.",
    }
    found = result(await session.call_tool("memory_fetch", {"query": "plums", "limit": 5}))
    assert "Bob likes plums." not in {hit["text"] for hit in found["hits"]}
    answer = result(await session.call_tool("memory_recall", {"question": "what does Ann do"}))
    assert answer["citations"]
    page = result(await session.call_tool("memory_list", {"limit": 1}))
    page = result(await session.call_tool("memory_list", {"cursor": page["next_cursor"]}))
    assert len(page["items"]) == 2
    refused = await session.call_tool("memory_list", {"reach": {"at": "user:bob"}})
    assert refused.is_error
    assert refused.content[0].text == (
        "invalid request: memory_list: `reach` is fixed by the host and cannot be passed to a "
        "memory tool"
    )
    unknown = await session.call_tool("memory_nothing", {})
    assert unknown.content[0].text.startswith("invalid request: unknown memory tool")
    gone = result(await session.call_tool("memory_forget", {"ids": [stored["id"], "unknown"]}))
    assert gone == {"forgotten": 1, "skipped": ["unknown"]}


def test_read_only_with_a_reach_of_its_own(store: Path) -> None:
    async def run(server: Any) -> None:
        async with Client(server) as session:
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert names == [*READ_TOOLS]
            listed = result(await session.call_tool("memory_list", {}))
            assert [hit["text"] for hit in listed["items"]] == ["Bob likes plums."]
            refused = await session.call_tool("memory_store", {"learning": {"text": "x"}})
            assert refused.content[0].text == (
                "unsupported: memory_store is not offered: these memory tools are read-only"
            )

    with colmem.open(store, read_only=True) as engine:
        scope = ToolScope(reach=Reach.exact("user:bob"), writes=False)
        anyio.run(run, make_server(engine, scope))


def test_streamable_http_with_a_token(store: Path) -> None:
    async def run(url: str) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            await use_as_ann(session)

    settings = ServerSettings(port=0, tokens=(token(TOKEN),))
    with colmem.open(store) as engine:
        app = http_app(engine, ToolScope.at("user:ann"), settings)
        with running_app(app, settings) as url:
            anyio.run(run, f"{url}/mcp")
            assert httpx.post(f"{url}/mcp", json={}).status_code == 401
            rebound = {"host": "evil.example", "authorization": f"Bearer {TOKEN}"}
            assert httpx.post(f"{url}/mcp", json={}, headers=rebound).status_code == 400


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("all", "all"),
        ("user:ann", Reach.of("user:ann")),
        ("of:user:ann", Reach.of("user:ann")),
        ("exact:user:ann", Reach.exact("user:ann")),
        ("subtree:root", Reach.subtree("root")),
        ('{"at":"user:ann","descendants":true}', Reach(at="user:ann", descendants=True)),
    ],
)
def test_how_a_reach_is_written(text: str, reach: Any) -> None:
    assert ReachText().convert(text, None, None) == reach
