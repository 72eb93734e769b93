"""Routes of the contract's operations, the tools, and what a server says of itself.

Each decodes, calls one method of the engine under the request's scope, and encodes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from colmem.adapters.http.access import Access
from colmem.adapters.http.errors import WrongMediaType, as_colmem, error_response
from colmem.adapters.http.gate import ACCESS, ROUTE
from colmem.adapters.http.metrics import TEXT, Metrics
from colmem.adapters.http.work import Worker, read_body
from colmem.client.operations import JSON, OPERATIONS, Operation
from colmem.contract import (
    ColmemError,
    Facet,
    FetchRequest,
    InvalidRequest,
    MetaFilter,
    StoreItem,
    decode,
    encode,
)
from colmem.tools import MemoryTools

Endpoint = Callable[[Request], Awaitable[Response]]


class _Batch(msgspec.Struct):
    # The other spelling of a store_many's items.
    items: list[StoreItem]


class _Asked(msgspec.Struct):
    # What explain takes beyond a FetchRequest: an item that may not have come.
    id: str | None = None


def guarded(name: str, endpoint: Endpoint) -> Endpoint:
    """An endpoint that answers with its errors, and is counted under a name."""

    async def answer(request: Request) -> Response:
        request.scope[ROUTE] = name
        try:
            return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - the outermost frame of a route
            return error_response(as_colmem(error, name))

    return answer


def access_of(request: Request) -> Access:
    """The access the gate has given a request."""
    access: Access = request.scope[ACCESS]
    return access


def json_response(value: Any) -> Response:
    """Answer with a value that is not the contract's."""
    return Response(json.dumps(value, ensure_ascii=False).encode(), media_type=JSON)


async def json_body(request: Request, worker: Worker) -> bytes:
    """The body of a request that is JSON.

    Raises
    ------
    WrongMediaType
        When it says that it is something else.
    """
    declared = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if declared != JSON:
        raise WrongMediaType(f"content-type `{declared[:60]}` is not read here, send {JSON}")
    return await read_body(request.receive, request.headers, worker.limits)


def contract_routes(worker: Worker) -> list[Route]:
    """A route for every operation."""
    return [
        Route(
            operation.path,
            guarded(operation.name, _operation(operation, worker)),
            methods=["POST"] if operation.request is not None else ["GET", "POST"],
        )
        for operation in OPERATIONS.values()
        if operation.name != "health"
    ]


def own_routes(
    worker: Worker, metrics: Metrics, extra_health: Callable[[Access], Any]
) -> list[Route]:
    """Health, counts, tools and explain; ``extra_health`` gives more fields of health."""

    async def health(request: Request) -> Response:
        access = access_of(request)

        def call() -> bytes:
            return encode(access.engine.health())[:-1] + _members(extra_health(access)) + b"}"

        return Response(await worker.run(call), media_type=JSON)

    async def explain(request: Request) -> Response:
        access = access_of(request)
        body = await json_body(request, worker)

        def call() -> bytes:
            asked, id = decode(body, FetchRequest), decode(body, _Asked).id
            access.method("explain")  # or the engine offers none
            engine: Any = access.engine
            return encode(engine.explain(asked, id))

        return Response(await worker.run(call), media_type=JSON)

    async def stats(request: Request) -> Response:
        return json_response(await worker.run(_stats, access_of(request)))

    async def counters(request: Request) -> Response:
        access = access_of(request)
        access.need_all("/metrics")
        has_stats = hasattr(access.whole, "stats")
        facts = await worker.run(_stats, access) if has_stats else {}
        return Response(metrics.text(facts), headers={"content-type": TEXT})

    async def tools(request: Request) -> Response:
        access = access_of(request)
        specs = await worker.run(MemoryTools(access.engine, access.scope).specs)
        return json_response({"tools": specs})

    async def tool(request: Request) -> Response:
        access = access_of(request)
        body = await json_body(request, worker)
        name = request.path_params["name"]

        def call() -> dict[str, Any]:
            arguments = decode(body, Any) if body.strip() else None
            return MemoryTools(access.engine, access.scope).call(name, arguments)

        return json_response(await worker.run(call))

    return [
        Route("/v1/health", guarded("health", health), methods=["GET", "POST"]),
        Route("/v1/explain", guarded("explain", explain), methods=["POST"]),
        Route("/v1/stats", guarded("stats", stats), methods=["GET"]),
        Route("/metrics", guarded("metrics", counters), methods=["GET"]),
        Route("/v1/tools", guarded("tools", tools), methods=["GET"]),
        Route("/v1/tools/{name}", guarded("tools", tool), methods=["POST"]),
    ]


def _operation(operation: Operation, worker: Worker) -> Endpoint:
    async def plain(request: Request) -> Response:
        method = getattr(access_of(request).engine, operation.name)
        data = await worker.run(lambda: encode(method()))
        return Response(data, media_type=JSON)

    async def endpoint(request: Request) -> Response:
        body = await json_body(request, worker)
        method = getattr(access_of(request).engine, operation.name)
        data = await worker.run(lambda: encode(method(_request(operation, body))))
        return Response(data, media_type=JSON)

    return plain if operation.request is None else endpoint


def _request(operation: Operation, body: bytes) -> Any:
    if not body:
        raise InvalidRequest(f"{operation.name} needs a JSON body", path="$")
    if operation.name == "store_many" and body.lstrip()[:1] == b"{":
        return decode(body, _Batch).items
    return decode(body, operation.request)


def _stats(access: Access) -> dict[str, Any]:
    """Counts of the store, or of the part of it that is within reach."""
    try:
        access.need_all("stats")
    except ColmemError:
        page = access.engine.explore(facet=Facet.KIND, filter=MetaFilter())
        return {"items": page.total, "kinds": {b.value: b.count for b in page.buckets}}
    facts: dict[str, Any] = access.method("stats")()
    return {key: value for key, value in facts.items() if key != "path"}


def _members(fields: dict[str, Any]) -> bytes:
    if not fields:
        return b""
    return b"," + json.dumps(fields, ensure_ascii=False).encode()[1:-1]
