"""Engines behind a server, synchronous and asynchronous, over one httpx core.

httpx is loaded when a client is made; ``pip install colmem[client]`` brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colmem.contract import MissingExtra

if TYPE_CHECKING:
    from colmem.client.asynchronous import AsyncHttpEngine
    from colmem.client.synchronous import HttpEngine

__all__ = ["AsyncHttpEngine", "HttpEngine", "connect"]


def connect(url: str, *, token: str | None = None, timeout: float | None = None) -> HttpEngine:
    """Use the engine behind ``colmem serve`` at an address such as ``http://127.0.0.1:8711``.

    Parameters
    ----------
    token
        Bearer token, where the server asks for one.
    timeout
        Seconds a call may take (default 60).

    Raises
    ------
    ConfigError
        When the address is none, or httpx is not installed.
    """
    options = {} if timeout is None else {"timeout": timeout}
    made: HttpEngine = client("HttpEngine")(url, token=token, **options)
    return made


def client(name: str) -> Any:
    """A class of client; its library is imported here."""
    try:
        if name == "HttpEngine":
            from colmem.client.synchronous import HttpEngine  # noqa: PLC0415 - needs httpx

            return HttpEngine
        from colmem.client.asynchronous import AsyncHttpEngine  # noqa: PLC0415 - needs httpx

        return AsyncHttpEngine
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise MissingExtra(
            "connecting to a server needs httpx; install it with `pip install colmem[client]`"
        ) from error


def __getattr__(name: str) -> Any:
    if name in ("HttpEngine", "AsyncHttpEngine"):
        return client(name)
    raise AttributeError(f"module 'colmem.client' has no attribute {name!r}")
