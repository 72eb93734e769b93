"""colmem: an embedded memory engine.

The names below are loaded when first used, so that ``import colmem`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colmem.contract import *  # noqa: F403
from colmem.contract import __all__ as _contract_names
from colmem.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from colmem.client import HttpEngine
    from colmem.contract import Embedder
    from colmem.embed import register as register_embedder
    from colmem.engine import Engine
    from colmem.snapshot.verify import VerifyReport

__all__ = [
    *_contract_names,
    "Engine",
    "__version__",
    "connect",
    "content_hash",
    "embedder",
    "open",
    "register_embedder",
    "verify",
]


def open(
    path: str | Path,
    *,
    embedder: Embedder | str | None = None,
    create: bool = True,
    read_only: bool = False,
    threads: int | None = None,
    memory_limit: str | None = None,
    exact: bool = False,
) -> Engine:
    """Open a store, creating it when absent; ``":memory:"`` keeps nothing.

    Parameters
    ----------
    path
        The store's directory.
    embedder
        Key of an embedder, or an object with ``key``, ``dim`` and ``embed``. A new store records it
        (default ``static-s256``); an existing one must have been made with it.
    create
        Whether an absent store is created.
    read_only
        Open beside other readers; every write is refused.
    threads
        Threads that the indexes may use.
    memory_limit
        Bound of the table's memory, such as ``"1GB"``.
    exact
        Compare every admitted embedding with the query instead of scanning codes of them: the
        oracle for the fast path, many times slower in a large store.

    Raises
    ------
    ConfigError
        When the path cannot be a store, or the embedder is unknown or not the recorded one.
    StoreLocked
        When another process has the store open; names it.
    CorruptStore, VersionUnsupported
        When a file of the store is damaged, or a newer version wrote it.
    """
    from colmem.engine import Engine  # noqa: PLC0415 - keeps the import light
    from colmem.opening import Options  # noqa: PLC0415

    return Engine(path, Options(embedder, create, read_only, threads, memory_limit, exact))


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
    from colmem.client import connect as connect_to  # noqa: PLC0415 - keeps the import light

    return connect_to(url, token=token, timeout=timeout)


def embedder(key: str) -> Embedder:
    """The embedder of a key: ``static-s256``, ``hotmem-hash-v1``, or one registered before.

    Raises
    ------
    ConfigError
        When no embedder has that key.
    """
    from colmem.embed import embedder as find  # noqa: PLC0415 - keeps the import light

    return find(key)


def verify(path: str | Path) -> VerifyReport:
    """Verify a snapshot directory of any format without loading it.

    Raises
    ------
    SnapshotChecksumError
        At the first thing that is not as the manifest says.
    ColmemError
        When the path is no snapshot directory.
    """
    from colmem.snapshot.verify import verify as verify_snapshot  # noqa: PLC0415 - light import

    return verify_snapshot(path)


def content_hash(identifier: str, fact_text: str) -> str:
    """The content hash of an inline snapshot record: 64 hex digits."""
    from colmem.snapshot.record import content_hash as of_record  # noqa: PLC0415 - light import

    return of_record(identifier, fact_text)


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from colmem.engine import Engine  # noqa: PLC0415 - keeps the import light

        return Engine
    if name == "register_embedder":
        from colmem.embed import register  # noqa: PLC0415 - keeps the import light

        return register
    raise AttributeError(f"module 'colmem' has no attribute {name!r}")
