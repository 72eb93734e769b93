"""What is sent to a server and how its answers are read; no input or output happens here.

The synchronous and the asynchronous client share it, so that neither holds any rule of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

from colmem.client.operations import ARROW, JSON, NDJSON, OPERATIONS
from colmem.contract import (
    VARIANTS,
    ColmemError,
    ConfigError,
    EngineError,
    FetchRequest,
    InvalidRequest,
    MetaFilter,
    SnapshotChecksumError,
    StoreItem,
    Unavailable,
    as_request,
    decode,
    encode,
)
from colmem.explanation import Explanation

BATCH_ITEMS: Final = 1_000
"""Items encoded at a time by ``ingest``."""

TIMEOUT_SECONDS: Final = 60.0
"""How long a call may take, unless the caller says otherwise."""

_PACKAGE_FAILED: Final = "package_verification_failed"
_BY_STATUS: Final = {400: "invalid_request", 401: "unauthorized", 403: "unauthorized"} | {
    404: "not_found",
    409: "conflict",
    413: "invalid_request",
    503: "unavailable",
}
_EXCERPT_CHARS: Final = 200


class Call(NamedTuple):
    """One request: method, path, body, media type, query, and the type of the answer."""

    method: str
    path: str
    body: bytes = b""
    answer: Any = None
    media_type: str = JSON
    params: Mapping[str, str] = {}


def base_url(url: str) -> str:
    """The address of a server without a slash at its end.

    Raises
    ------
    ConfigError
        When it is no http or https address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address of a server, expected one like http://host:8711")
    return url.rstrip("/")


def headers(token: str | None) -> dict[str, str]:
    """Headers of every request."""
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or not token:
        raise ConfigError("the token must be printable ASCII; check where it was read from")
    return {"authorization": f"Bearer {token}"}


def operation(name: str, request: Any = None, fields: dict[str, Any] | None = None) -> Call:
    """Call an operation with its request, or with the request's fields."""
    described = OPERATIONS[name]
    if described.request is None:
        return Call("GET", described.path, answer=described.answer)
    if isinstance(described.request, type) and fields is not None:
        request = as_request(described.request, request, fields)
    return Call("POST", described.path, encode(request), described.answer)


def explain(request: Any, fields: dict[str, Any], id: str | None) -> Call:
    """Ask how a fetch comes about, and why an item is not among its hits."""
    body = json.loads(encode(as_request(FetchRequest, request, fields)))
    if id is not None:
        body["id"] = id
    return Call("POST", "/v1/explain", encode(body), Explanation)


def posted(name: str, **fields: Any) -> Call:
    """Call a route of the server that is no operation; unset fields are left out."""
    body = {key: value for key, value in fields.items() if value is not None}
    return Call("POST", f"/v1/{name}", json.dumps(body).encode())


def snapshot(path: str, *, format: str | None, filter: MetaFilter | None) -> Call:
    """Ask for a snapshot."""
    chosen = None if filter is None else json.loads(encode(filter))
    return posted("snapshot", path=path, format=format, filter=chosen)


def stats() -> Call:
    """Ask for the counts of the store."""
    return Call("GET", "/v1/stats")


def export(filter: MetaFilter | None, media_type: str, *, embeddings: bool = False) -> Call:
    """Ask for all admitted items as a stream."""
    params = {"format": "arrow" if media_type == ARROW else "ndjson"}
    if filter is not None:
        params["filter"] = encode(filter).decode()
    if embeddings:
        params["embeddings"] = "true"
    return Call("GET", "/v1/export", params=params, media_type=media_type)


def ingest(media_type: str = NDJSON, batch_size: int | None = None) -> Call:
    """Send a stream of items."""
    params = {} if batch_size is None else {"batch_size": str(batch_size)}
    return Call("POST", "/v1/ingest", params=params, media_type=media_type)


def lines(items: Iterable[StoreItem]) -> Iterator[bytes]:
    """Items as lines, some at a time."""
    source = iter(items)
    while batch := list(islice(source, BATCH_ITEMS)):
        yield b"".join(encode(item) + b"\n" for item in batch)


def answer(call: Call, status: int, body: bytes) -> Any:
    """Read the answer to a call.

    Raises
    ------
    ColmemError
        The error the server answered with, in its own class and words.
    """
    if status >= 300:
        raise_error(status, body)
    try:
        return json.loads(body) if call.answer is None else decode(body, call.answer)
    except (ValueError, InvalidRequest) as error:
        raise EngineError(f"the server's answer to {call.path} cannot be read: {error}") from error


def raise_error(status: int, body: bytes) -> NoReturn:
    """Raise what a failed request says."""
    raise _read_error(status, body)


def _read_error(status: int, body: bytes) -> ColmemError:
    try:
        fields = json.loads(body)
        return error_of(fields["error"], fields["message"], fields)
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace")[:_EXCERPT_CHARS]
        return VARIANTS[_BY_STATUS.get(status, "engine")](f"the server answered {status}: {text}")


def error_of(code: str, message: str, fields: Mapping[str, Any]) -> ColmemError:
    """The exception of an error's fields."""
    if code in (SnapshotChecksumError.code, _PACKAGE_FAILED):
        from colmem.snapshot.errors import refuse  # noqa: PLC0415 - snapshots only

        return refuse(
            fields["reason"],
            fields.get("file"),
            message,
            expected=fields.get("expected"),
            actual=fields.get("actual"),
            package=code == _PACKAGE_FAILED,
        )
    variant = VARIANTS[code]
    if variant is InvalidRequest:
        return InvalidRequest(message, path=fields.get("path"))
    return variant(message)


def progress_line(line: str) -> dict[str, Any]:
    """Read a line of progress.

    Raises
    ------
    ColmemError
        When it says that the work failed.
    """
    fields: dict[str, Any] = json.loads(line)
    if "error" in fields:
        raise error_of(fields["error"], fields["message"], fields)
    return fields


def unreachable(url: str, error: Exception) -> Unavailable:
    """The error of a request that got no answer."""
    reason = str(error) or type(error).__name__
    return Unavailable(f"no answer from {url}: {reason}; the same call may work later")
