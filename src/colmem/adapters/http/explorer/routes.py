"""Routes of the web explorer's files. They hold no data, so they are served without a token.

The page may load nothing but these files and talk to nothing but this server; its browser enforces
that by the policy sent with each.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from colmem.adapters.http.routes import Endpoint, guarded

_FOLDER: Final = Path(__file__).parent / "page"
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES: Final = sorted(path for path in _FOLDER.iterdir() if path.suffix in _MEDIA_TYPES)
_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    # Kept, but asked for again each time: a new version shows at the next load.
    "cache-control": "no-cache",
}


def _address(path: Path) -> str:
    return "/" if path.name == "index.html" else f"/explorer/{path.name}"


ADDRESSES: Final = frozenset(map(_address, _FILES))
"""What is served without a token."""


def explorer_routes() -> list[Route]:
    """A route for each file, read once."""
    return [
        Route(_address(path), guarded("explorer", _file(path)), methods=["GET"]) for path in _FILES
    ]


def _file(path: Path) -> Endpoint:
    content = path.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "etag": tag}
    media_type = _MEDIA_TYPES[path.suffix]

    async def file(request: Request) -> Response:
        shown = request.headers.get("if-none-match", "").replace("W/", "")
        if shown.strip() == "*" or tag in (part.strip() for part in shown.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(content, headers={**headers, "content-type": media_type})

    return file
