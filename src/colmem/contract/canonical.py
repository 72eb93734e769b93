"""The one encoder of canonical JSON: key order of the declarations, no spaces, raw UTF-8."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.contract.namespaces import Namespace
from colmem.contract.scalars import F32, f32_json
from colmem.contract.timestamps import Timestamp


@lru_cache(maxsize=8192)
def _f32_raw(value: F32) -> msgspec.Raw:
    return msgspec.Raw(f32_json(value).encode())


def _hook(value: Any) -> Any:
    if type(value) is F32:
        # Plus and minus zero are equal as keys of the cache, so they stay out of it.
        return _f32_raw(value) if value else msgspec.Raw(f32_json(value).encode())
    if type(value) is Namespace:
        return str.__str__(value)
    if type(value) is Timestamp:
        return value.text()
    if isinstance(value, str):  # another subclass of str, such as a NumPy string
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _digest_hook(value: Any) -> Any:
    return "" if type(value) is Timestamp else _hook(value)


_encoder = msgspec.json.Encoder(enc_hook=_hook)
_digest_encoder = msgspec.json.Encoder(enc_hook=_digest_hook)


def canonical(value: Any, *, blank_times: bool = False) -> bytes:
    """Write a contract value as canonical JSON; ``blank_times`` writes instants as ``""``.

    Raises
    ------
    InvalidRequest
        When a string holds a lone surrogate, or a value has a type that JSON cannot hold.
    """
    try:
        return (_digest_encoder if blank_times else _encoder).encode(value)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"a string holds the lone surrogate U+{ord(error.object[error.start]):04X}; "
            "decode the text properly or replace it"
        ) from error
    except TypeError as error:
        raise InvalidRequest(f"cannot write {type(value).__name__}: {error}") from error
