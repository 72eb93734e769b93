"""Running the application under uvicorn: for the command line, or beside other work in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from colmem.adapters.http.app import create_app
from colmem.adapters.http.settings import ServerSettings
from colmem.contract import ColmemError, ConfigError, FetchRequest

_KEEP_ALIVE_SECONDS: Final = 30
_START_SECONDS: Final = 30
_BACKLOG: Final = 512
_CONNECTIONS_PER_REQUEST: Final = 4  # idle ones count too; beyond, uvicorn itself answers 503


def serve(engine: Any, settings: ServerSettings, ready: Callable[[str], None]) -> None:
    """Serve an engine until the process is told to stop; see ``serve_app``.

    The first ranked read loads native code, for a second or more: it is done before anybody waits.
    """
    with suppress(ColmemError):
        engine.fetch(FetchRequest(query="warm up", limit=1))
    serve_app(create_app(engine, settings), settings, ready)


def serve_app(app: ASGIApp, settings: ServerSettings, ready: Callable[[str], None]) -> None:
    """Serve until the process is told to stop (SIGINT, SIGTERM).

    Requests that run are finished first; ``ready`` gets the address once it listens.

    Raises
    ------
    ConfigError
        When the address cannot be listened on.
    """
    sock = _bound(settings)
    ready(_url(settings, sock.getsockname()[1]))
    _server(app, settings).run(sockets=[sock])


@contextmanager
def running(engine: Any, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve an engine in a thread while the block runs; gives the address."""
    settings = settings or ServerSettings(port=0)
    with running_app(create_app(engine, settings), settings) as url:
        yield url


@contextmanager
def running_app(app: ASGIApp, settings: ServerSettings) -> Iterator[str]:
    """Serve an application in a thread while the block runs; gives the address.

    Raises
    ------
    ConfigError
        When the address cannot be listened on.
    """
    server = _server(app, settings)
    sock = _bound(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)
        yield _url(settings, sock.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        sock.close()


def _server(app: ASGIApp, settings: ServerSettings) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS_PER_REQUEST * settings.limits.requests_max,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.limits.shutdown_seconds,
    )
    return uvicorn.Server(config)


def _bound(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        sock = socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; is another "
            "server running there? choose another --port"
        ) from error
    # Accepted connections inherit it. Without it, a head and a body sent one after the other wait
    # for the peer's delayed acknowledgement, 40 ms a request.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _url(settings: ServerSettings, port: int) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{port}"
