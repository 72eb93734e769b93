"""The memory tools over the Model Context Protocol, on stdio or streamable HTTP.

The scope is fixed when the server starts; nothing a model sends can widen it. A tool's failure is
its result, in the words of the engine, so that the model can read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.types import ASGIApp

from colmem.adapters.http.access import Access, Accesses
from colmem.adapters.http.errors import as_colmem
from colmem.adapters.http.gate import Gate
from colmem.adapters.http.metrics import Metrics
from colmem.adapters.http.settings import ServerSettings
from colmem.contract import MemoryEngine
from colmem.tools import MemoryTools, ToolScope
from colmem.tools.specs import READ_TOOLS, ToolSpec
from colmem.version import __version__

NAME: Final = "colmem"
HTTP_PATH: Final = "/mcp"

_INSTRUCTIONS: Final = (
    "A long-term memory. Look before answering from memory: memory_recall answers a question with "
    "citations, memory_fetch finds items, memory_explore shows what there is. Keep what will "
    "matter later with memory_store."
)


def tools_of(engine: MemoryEngine, scope: ToolScope) -> MemoryTools:
    """The tools of an engine under a scope, with the engine itself confined to it as well."""
    return MemoryTools(Access(engine, scope).engine, scope)


def make_server(engine: MemoryEngine, scope: ToolScope) -> Server[Any]:
    """An MCP server of the tools that the engine and the scope offer."""
    tools = tools_of(engine, scope)

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(spec) for spec in tools.specs()])

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await anyio.to_thread.run_sync(_called, tools, params.name, params.arguments)

    return Server(
        NAME,
        version=__version__,
        title="colmem memory",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(engine: MemoryEngine, scope: ToolScope) -> None:
    """Serve on standard input and output until the input ends."""

    async def run() -> None:
        server = make_server(engine, scope)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def http_app(engine: MemoryEngine, scope: ToolScope, settings: ServerSettings) -> ASGIApp:
    """The tools as an ASGI application, behind the gate that checks host, origin and token.

    Raises
    ------
    ConfigError
        When the settings would let other machines in without tokens.
    """
    settings.check()
    app = make_server(engine, scope).streamable_http_app(
        streamable_http_path=HTTP_PATH,
        max_request_body_size=settings.limits.body_bytes_max,
        # The gate checks the host and the origin of every request.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Gate(app, settings, Accesses(engine, settings.tokens), Metrics())


def _tool(spec: ToolSpec) -> Tool:
    reads = spec.name in READ_TOOLS
    return Tool(
        name=spec.name,
        description=spec.description,
        input_schema=spec.parameters,
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=spec.name == "memory_forget",
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _called(tools: MemoryTools, name: str, arguments: Mapping[str, Any] | None) -> CallToolResult:
    try:
        result = tools.call(name, arguments)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a call
        text = TextContent(text=str(as_colmem(error, name)))
        return CallToolResult(content=[text], is_error=True)
    text = TextContent(text=json.dumps(result, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=result)
