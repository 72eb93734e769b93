"""The one JSON codec, used by every adapter: contract values to bytes and back.

Reading is strict: no coercion, no repeated known keys, no lone surrogates, no numbers beyond JSON's
grammar. Unknown keys are ignored. An error carries the path of the value at fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from types import NoneType
from typing import Any, Final, TypeVar, overload

import msgspec

from colmem.contract.canonical import canonical
from colmem.contract.errors import InvalidRequest
from colmem.contract.namespaces import Namespace
from colmem.contract.timestamps import Timestamp

Value = TypeVar("Value")

_MINUS_ZERO = re.compile(rb"-0(?:[\s,\]}]|$)")  # may also find text, which costs time only
_PATH = re.compile(r"(?s)(.*) - at `(.*)`")


_JSON_NAMES: Final = {
    bool: "bool",
    int: "int",
    float: "float",
    list: "array",
    dict: "object",
    NoneType: "null",
}


class _NamespaceError(InvalidRequest):
    """The contract fixes the words of this error, so its path stands beside them."""


def encode(value: Any) -> bytes:
    """Write a contract value, or a list of them, as canonical JSON."""
    return canonical(value)


@overload
def decode(data: bytes | bytearray | memoryview | str, type: type[Value]) -> Value: ...


@overload
def decode(data: bytes | bytearray | memoryview | str, type: Any) -> Any: ...


def decode(data: bytes | bytearray | memoryview | str, type: Any) -> Any:
    """Read JSON as a contract type (``StoreItem`` and ``list[...]`` too).

    Raises
    ------
    InvalidRequest
        When the text is not JSON or not of the type; ``path`` leads to the value at fault.
    """
    raw, text = _utf8(data)
    value = _read(raw, type)
    try:
        tree = _unrepeated.decode(text)
    except _RepeatedKeyError:
        tree = json.loads(text, object_pairs_hook=_Pairs)
        _refuse_repeats(tree, msgspec.inspect.type_info(type), "$")
        tree = dict(tree) if isinstance(tree, _Pairs) else tree
    except RecursionError as error:
        raise InvalidRequest("JSON nests too deep", path="$") from error
    for key in getattr(type, "required_on_wire", ()):
        if key not in tree:
            raise InvalidRequest(f"object missing required field `{key}` - at `$`", path="$")
    return value


@overload
def decode_stored(data: bytes, type: type[Value]) -> Value: ...


@overload
def decode_stored(data: bytes, type: Any) -> Any: ...


def decode_stored(data: bytes, type: Any) -> Any:
    """Read what ``encode`` wrote, without looking for repeated keys.

    Raises
    ------
    InvalidRequest
        When the bytes are not of the type.
    """
    return _read(data, type)


def _utf8(data: bytes | bytearray | memoryview | str) -> tuple[bytes, str]:
    # msgspec does not look into the strings it skips, so the whole text is checked here.
    try:
        if isinstance(data, str):
            return data.encode(), data
        raw = bytes(data)
        return raw, raw.decode()
    except UnicodeError as error:
        raise InvalidRequest(f"JSON must be UTF-8 without lone surrogates: {error}") from error


def _read(raw: bytes, type: Any) -> Any:
    try:
        value = _decoder(type).decode(raw)
        if _MINUS_ZERO.search(raw):  # msgspec reads the number -0 as plus zero
            value = msgspec.convert(_with_minus_zero(raw), type, dec_hook=_hook)
    except msgspec.ValidationError as error:
        raise _from_validation(error) from error
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"not valid JSON: {error}", path="$") from error
    except RecursionError as error:
        raise InvalidRequest("JSON nests too deep", path="$") from error
    return value


def _hook(type: Any, value: Any) -> Any:
    if not isinstance(value, str):
        raise InvalidRequest(f"expected `str`, got `{_JSON_NAMES[value.__class__]}`")
    if type is Timestamp:
        return Timestamp.parse(value)
    try:
        return Namespace.parse(value)
    except InvalidRequest as error:
        raise _NamespaceError(error.message) from error


@lru_cache(maxsize=256)
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type, dec_hook=_hook)


def _from_validation(error: msgspec.ValidationError) -> InvalidRequest:
    text = str(error)
    match = _PATH.fullmatch(text)
    path = match[2] if match else "$"
    cause = error.__cause__
    if isinstance(cause, _NamespaceError):
        return InvalidRequest(cause.message, path=path)
    if isinstance(cause, InvalidRequest):
        return InvalidRequest(f"{cause.message} - at `{path}`", path=path)
    if match is None:
        text = f"{text} - at `$`"
    return InvalidRequest(text[:1].lower() + text[1:], path=path)


def _with_minus_zero(raw: bytes) -> Any:
    return json.loads(raw, parse_int=lambda text: -0.0 if text == "-0" else int(text))


class _RepeatedKeyError(Exception):
    """Some object repeats a key, known or not."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise _RepeatedKeyError
    return keys


_unrepeated = json.JSONDecoder(object_pairs_hook=_object, parse_float=str, parse_int=str)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys."""


def _refuse_repeats(tree: Any, info: msgspec.inspect.Type, path: str) -> None:
    # Unknown keys may repeat, so the walk follows the type.
    if isinstance(info, msgspec.inspect.UnionType):
        for option in info.types:
            if not isinstance(option, msgspec.inspect.StructType) or _has_tag(tree, option):
                _refuse_repeats(tree, option, path)
    elif isinstance(info, msgspec.inspect.ListType) and not isinstance(tree, _Pairs):
        for index, element in enumerate(tree or ()):
            _refuse_repeats(element, info.item_type, f"{path}[{index}]")
    elif isinstance(info, msgspec.inspect.StructType) and isinstance(tree, _Pairs):
        fields = {field.encode_name: field.type for field in info.fields}
        counts = Counter(key for key, _ in tree)
        for key, value in tree:
            if counts[key] > 1 and (key in fields or key == info.tag_field):
                raise InvalidRequest(f"key `{key}` is repeated - at `{path}`", path=path)
            if key in fields:
                _refuse_repeats(value, fields[key], f"{path}.{key}")


def _has_tag(tree: Any, info: msgspec.inspect.StructType) -> bool:
    if not isinstance(tree, _Pairs):
        return False
    return info.tag_field is None or (info.tag_field, info.tag) in tree
