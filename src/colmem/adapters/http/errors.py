"""Which error becomes which answer: one table from the contract's variants to statuses.

The body is ``{error, message, path?}``; that of a snapshot that does not verify names the reason,
the file and the digests as well.
"""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any, Final

from starlette.responses import Response

from colmem.client.operations import JSON
from colmem.contract import (
    ColmemError,
    EngineError,
    InvalidRequest,
    NotFound,
    SnapshotChecksumError,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from colmem.snapshot.errors import SnapshotReadError

STATUS: Final = {
    "unsupported": 422,
    "invalid_request": 400,
    "unauthorized": 401,
    "not_found": 404,
    "conflict": 409,
    "unavailable": 503,
    "engine": 500,
    "config": 500,
}
"""Contract variant -> status."""

HTTP_STATUS: Final = {"forbidden": 403, "method": 405, "too_large": 413, "media_type": 415}
"""Code of an error that only HTTP has -> status; its variant is still what the body names."""

_log = logging.getLogger("colmem.http")


class Forbidden(Unauthorized):
    """The token is known, and its scope does not cover the request."""

    code = "forbidden"

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class MethodNotAllowed(Unsupported):
    """The route is there, for another method."""

    code = "method"


class TooLarge(InvalidRequest):
    """A body is beyond the server's limit."""

    code = "too_large"


class WrongMediaType(InvalidRequest):
    """A body is of a media type the route does not read."""

    code = "media_type"


class Busy(Unavailable):
    """The server has as many requests as it takes."""

    code = "busy"


def body_of(error: ColmemError) -> dict[str, Any]:
    """The fields of an error's answer."""
    if isinstance(error, SnapshotChecksumError):
        return {
            "error": error.code,
            "reason": error.reason,
            "file": error.file,
            "expected": error.expected,
            "actual": error.actual,
            "message": error.message,
        }
    fields: dict[str, Any] = {"error": error.variant, "message": error.message}
    if isinstance(error, SnapshotReadError):
        fields["detail"] = error.message  # what the format's own surface calls it
    path = getattr(error, "path", None)
    return fields if path is None else fields | {"path": path}


def status_of(error: ColmemError) -> int:
    """The status of an error's answer."""
    return HTTP_STATUS.get(error.code) or STATUS[error.variant]


def as_colmem(error: Exception, what: str) -> ColmemError:
    """The error to answer with; one that is no ColmemError is logged without its text.

    A foreign text may quote what was stored, so only its place is kept.
    """
    if isinstance(error, ColmemError):
        return error
    if isinstance(error, OSError) and error.strerror:
        return EngineError(f"{what} failed: {error.strerror}")
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s failed with %s\n%s", what, type(error).__name__, place)
    return EngineError(f"{what} failed with {type(error).__name__}; see the server's log")


def error_response(error: ColmemError, **headers: str) -> Response:
    """Answer with an error."""
    status = status_of(error)
    if status == 401:
        headers |= {"www-authenticate": "Bearer"}
    if status == 503:
        headers |= {"retry-after": "1"}
    data = json.dumps(body_of(error), ensure_ascii=False).encode(errors="replace")
    return Response(data, status, headers, JSON)


def no_route(path: str) -> NotFound:
    """The error of an address that is not served."""
    return NotFound(f"nothing is served at {path}; see /v1/openapi.json")
