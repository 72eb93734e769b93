"""The application: routes behind the gate, over one engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from colmem.adapters.http.access import Access, Accesses
from colmem.adapters.http.errors import MethodNotAllowed, error_response, no_route
from colmem.adapters.http.explorer.routes import ADDRESSES, explorer_routes
from colmem.adapters.http.folder import SnapshotFolder
from colmem.adapters.http.gate import Gate
from colmem.adapters.http.hotmem import HotMem
from colmem.adapters.http.metrics import Metrics
from colmem.adapters.http.openapi import document
from colmem.adapters.http.routes import contract_routes, guarded, json_response, own_routes
from colmem.adapters.http.settings import ServerSettings
from colmem.adapters.http.transfers import bulk_routes, snapshot_routes
from colmem.adapters.http.work import Worker


def create_app(engine: Any, settings: ServerSettings | None = None) -> ASGIApp:
    """The ASGI application that serves an engine; the engine stays the caller's to close.

    Raises
    ------
    ConfigError
        When the settings would let other machines in without tokens.
    """
    settings = settings or ServerSettings()
    settings.check()
    worker, metrics, folder = Worker(settings.limits), Metrics(), SnapshotFolder(settings)
    hotmem = HotMem(worker, folder) if settings.hotmem else None
    extra_health: Callable[[Access], Any] = lambda _: {}  # noqa: E731
    if hotmem is not None:
        extra_health = hotmem.health
    frequent = [*contract_routes(worker), *own_routes(worker, metrics, extra_health)]
    routes = [
        *frequent,
        *snapshot_routes(worker, folder),
        *bulk_routes(worker),
        *explorer_routes(),
        *(hotmem.routes() if hotmem is not None else ()),
    ]
    described = document(settings)

    async def openapi(request: Request) -> Response:
        return json_response(described)

    routes.append(Route("/v1/openapi.json", guarded("openapi", openapi), methods=["GET"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        worker.close()

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _wrong_method},
    )
    app.router.redirect_slashes = False
    direct = _Direct(app, frequent)
    return Gate(direct, settings, Accesses(engine, settings.tokens), metrics, ADDRESSES)


class _Direct:
    """Goes straight to the addresses that are asked for most; the rest is Starlette's.

    Trying every route in turn, within its layers, took more time than a whole fetch.
    """

    def __init__(self, app: ASGIApp, routes: list[Route]) -> None:
        self._app = app
        self._endpoints: dict[tuple[str, str], Any] = {
            (method, route.path): route.endpoint
            for route in routes
            if "{" not in route.path
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get((scope.get("method", ""), scope.get("path", "")))
        if endpoint is None:
            await self._app(scope, receive, send)
        else:
            response = await endpoint(Request(scope, receive))
            await response(scope, receive, send)


async def _not_found(request: Request, error: Exception) -> Response:
    return error_response(no_route(request.url.path[:200]))


async def _wrong_method(request: Request, error: Exception) -> Response:
    headers = getattr(error, "headers", None) or {}
    allowed = headers.get("Allow", "")
    message = f"{request.url.path} is served for {allowed}, not for {request.method[:20]}"
    return error_response(MethodNotAllowed(message), allow=allowed)
