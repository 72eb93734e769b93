"""Cursors: opaque texts that carry a position and what they were made for.

A cursor holds one integer and a digest of the operation, its mode, query and filter; passed with
anything else, or altered, it is unknown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct

from colmem.contract import InvalidRequest, MetaFilter, encode

_FORM = struct.Struct("<8sq")


def digest(operation: str, filter: MetaFilter, query: str = "") -> bytes:
    """What a cursor is bound to: 8 bytes."""
    parts = (operation.encode(), encode(filter), query.encode("utf-8", "surrogatepass"))
    return hashlib.blake2b(b"\0".join(parts), digest_size=8).digest()


def encode_position(bound_to: bytes, position: int) -> str:
    """A cursor for a position of 0 or more."""
    return base64.urlsafe_b64encode(_FORM.pack(bound_to, position)).decode().rstrip("=")


def decode_position(cursor: str, bound_to: bytes) -> int:
    """The position of a cursor.

    Raises
    ------
    InvalidRequest
        When the cursor was not made here, or for another operation, mode, query or filter.
    """
    try:
        raw = base64.b64decode(cursor + "=="[: -len(cursor) % 4], b"-_", validate=True)
        made_for, position = _FORM.unpack(raw)
    except (binascii.Error, struct.error, ValueError) as error:
        raise _unknown(cursor) from error
    if made_for != bound_to or position < 0:
        raise _unknown(cursor)
    return int(position)


def _unknown(cursor: str) -> InvalidRequest:
    shown = cursor[:64].encode("utf-8", "backslashreplace").decode()
    return InvalidRequest(
        f"unknown cursor `{shown}`; pass next_cursor of the page before, with the same "
        "filter, query and mode"
    )
