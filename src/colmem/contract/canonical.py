"""The one encoder of canonical JSON: key order of the declarations, no spaces, raw UTF-8."""

from __future__ import annotations

from typing import Any

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.contract.namespaces import Namespace
from colmem.contract.scalars import F32, f32_json
from colmem.contract.timestamps import Timestamp


def _hook(value: Any) -> Any:
    if type(value) is F32:
        return msgspec.Raw(f32_json(value).encode())
    if type(value) is Namespace:
        return str.__str__(value)
    if type(value) is Timestamp:
        return value.text()
    if isinstance(value, str):  # another subclass of str, such as a NumPy string
        return str.__str__(value)
    raise NotImplementedError


_encoder = msgspec.json.Encoder(enc_hook=_hook)


def canonical(value: Any) -> bytes:
    """Canonical JSON bytes of a contract value.

    Raises
    ------
    InvalidRequest
        When a string holds a lone surrogate, or a value has a type that JSON cannot hold.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"a string holds the lone surrogate U+{ord(error.object[error.start]):04X}; "
            "decode the text properly or replace it"
        ) from error
    except (TypeError, NotImplementedError) as error:
        raise InvalidRequest(
            f"{type(value).__name__} holds a value JSON cannot: {error}"
        ) from error
