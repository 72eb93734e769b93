"""What every request passes before any route: host, origin, token, number of requests; and counts.

Plain ASGI, outermost, so that nothing is read or routed for a request that is turned away.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from colmem.adapters.http.access import Accesses
from colmem.adapters.http.errors import Busy, Forbidden, as_colmem, error_response
from colmem.adapters.http.metrics import Metrics
from colmem.adapters.http.settings import ServerSettings
from colmem.contract import ColmemError, InvalidRequest

ACCESS: Final = "colmem.access"
"""Key of a request's scope that holds its Access."""

ROUTE: Final = "colmem.route"
"""Key of a request's scope that holds the name its counts go under."""

_ORIGIN = re.compile(rb"[a-z]+://(.*)")


class Gate:
    """Lets in the requests that may go on to the routes.

    ``public`` : paths that need no token, and get no Access.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        accesses: Accesses,
        metrics: Metrics,
        public: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._public = public
        self._settings = settings
        self._accesses = accesses
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on, one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.begin()
        try:
            try:
                scope[ACCESS] = self._admit(scope["path"], dict(scope["headers"]))
            except ColmemError as error:
                await error_response(error)(scope, receive, counted)
                return
            await self._app(scope, receive, counted)
        except Exception as error:  # noqa: BLE001 - the outermost frame of a request
            if status == 500:
                await error_response(as_colmem(error, "the request"))(scope, receive, counted)
        finally:
            route = scope.get(ROUTE, "other")
            self._metrics.end(route, status, time.perf_counter() - started)

    def _admit(self, path: str, headers: dict[bytes, bytes]) -> Any:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._settings.serves_host(host):
            raise InvalidRequest(
                f"host `{host[:100]}` is not served here; use an address or localhost, or start "
                "the server with --allow-host"
            )
        origin = headers.get(b"origin")
        if origin is not None and not _is_own(origin, headers[b"host"]):
            raise Forbidden("requests from pages of another origin are not served")
        access = None if path in self._public else self._accesses.of(headers)
        if self._metrics.in_flight > self._settings.limits.requests_max:
            raise Busy(f"{self._settings.limits.requests_max} requests are being answered")
        return access


def _is_own(origin: bytes, host: bytes) -> bool:
    match = _ORIGIN.fullmatch(origin.lower())
    return match is not None and match[1] == host.lower()
