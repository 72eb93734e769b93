"""How a server is set up: where it listens, who may use it, and every limit."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from colmem.adapters.http.tokens import Token
from colmem.contract import ConfigError

HOST_DEFAULT: Final = "127.0.0.1"
PORT_DEFAULT: Final = 8711

LOCAL_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


@dataclass(frozen=True)
class Limits:
    """Bounds of what a client can take from the server.

    ``requests_max`` : requests at the same time, more are told to come again. ``threads`` : engine
    calls that run at the same time. ``batch_items_max`` : items of one batch of an ingest.
    """

    body_bytes_max: int = 32 << 20
    message_bytes_max: int = 256 << 20
    requests_max: int = 256
    threads: int = 4
    timeout_seconds: float = 30.0
    idle_seconds: int = 30
    shutdown_seconds: int = 30
    batch_items_max: int = 5_000


@dataclass(frozen=True)
class ServerSettings:
    """Everything ``colmem serve`` decides before it listens.

    ``store`` : path of the store, which no snapshot may touch. ``snapshots`` : the folder that
    snapshots, and files that memories refer to, are confined to; without it there are none.
    ``hosts`` : names of this server that a Host header may have, beside loopback and addresses.
    """

    host: str = HOST_DEFAULT
    port: int = PORT_DEFAULT
    tokens: tuple[Token, ...] = ()
    store: Path | None = None
    snapshots: Path | None = None
    hosts: frozenset[str] = frozenset()
    hotmem: bool = False
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse to serve other machines without tokens (ConfigError)."""
        if not self.tokens and not is_loopback(self.host):
            raise ConfigError(
                f"serving on {self.host} needs tokens, for others can reach it; pass --tokens FILE "
                "or set COLMEM_TOKEN, or serve on 127.0.0.1"
            )

    def serves_host(self, header: str) -> bool:
        """Whether a Host header names this server.

        A page that rebinds its own name to this address sends that name; it cannot send an address
        or a name it does not own.
        """
        name = host_name(header)
        return (
            name in LOCAL_NAMES
            or _is_address(name)
            or name in self.hosts
            or name == self.host.lower()
        )


def host_name(header: str) -> str:
    """The name in a Host header, without the port, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    name, colon, port = text.rpartition(":")
    return name if colon and port.isdecimal() else text


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine only."""
    if host.lower() in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
