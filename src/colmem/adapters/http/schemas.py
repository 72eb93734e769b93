"""JSON Schemas of the contract's types: their shape, and the rules beyond it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect

from colmem.client.operations import OPERATIONS
from colmem.contract import WHITE_SPACE, Namespace, Timestamp
from colmem.contract.limits import (
    BUCKETS_MAX,
    IDS_PER_GET_MAX,
    ITEMS_PER_STORE_MANY_MAX,
    SCAN_LIMIT_MAX,
    U64_MAX,
)
from colmem.explanation import Explanation

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"

_SEGMENT = "(agent|team|user|ws|project):[A-Za-z0-9_-]{1,128}"
_NAMESPACE: Final = f"^[{WHITE_SPACE}]*(root|{_SEGMENT}(/{_SEGMENT}){{0,7}})?[{WHITE_SPACE}]*$"
_NOT_BLANK: Final = f"[^{WHITE_SPACE}]"
_COUNT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": U64_MAX}


def contract_schemas() -> dict[str, Schema]:
    """A schema for each type of the operations, by its name."""
    schemas: dict[str, Schema] = {}
    for operation in OPERATIONS.values():
        for type in (operation.request, operation.answer):
            if type is not None:
                _schema(inspect.type_info(type), schemas)
    _schema(inspect.type_info(Explanation), schemas)
    _tighten(schemas)
    return schemas


def schema_of(type: Any) -> Schema:
    """The schema of a request or an answer, which refers to those of its parts."""
    schema = _schema(inspect.type_info(type), {})
    if type == OPERATIONS["store_many"].request:
        schema |= {"minItems": 1, "maxItems": ITEMS_PER_STORE_MANY_MAX}
    return schema


def _schema(info: inspect.Type, schemas: dict[str, Schema]) -> Schema:
    """The schema of a type; those of structs and enums are added by name and referred to."""
    match info:
        case inspect.StructType():
            if info.cls.__name__ not in schemas:
                schemas[info.cls.__name__] = {}  # a type may hold itself
                schemas[info.cls.__name__] = _struct(info, schemas)
            return {"$ref": REF + info.cls.__name__}
        case inspect.EnumType():
            values = [member.value for member in info.cls]
            schemas[info.cls.__name__] = {"type": "string", "enum": values}
            return {"$ref": REF + info.cls.__name__}
        case inspect.UnionType():
            return {"anyOf": [_schema(option, schemas) for option in info.types]}
        case inspect.ListType():
            return {"type": "array", "items": _schema(info.item_type, schemas)}
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _schema(info.value_type, schemas)}
        case inspect.TupleType():
            items = [_schema(item, schemas) for item in info.item_types]
            return {"type": "array", "prefixItems": items, "minItems": len(items)}
        case inspect.IntType():
            return {"type": "integer", "minimum": info.ge or 0, "maximum": U64_MAX}
        case inspect.CustomType(cls=cls):
            return dict(_CUSTOM[cls])
    return {"type": _PLAIN[type(info)]}


def _struct(info: inspect.StructType, schemas: dict[str, Schema]) -> Schema:
    properties = {field.encode_name: _schema(field.type, schemas) for field in info.fields}
    needed = [field.encode_name for field in info.fields if field.required]
    needed += getattr(info.cls, "required_on_wire", ())
    if info.tag_field is not None:
        properties = {info.tag_field: {"const": info.tag}, **properties}
        needed.insert(0, info.tag_field)
    schema: Schema = {"type": "object", "properties": properties}
    if needed:
        schema["required"] = needed
    return schema


_PLAIN: Final = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
    inspect.NoneType: "null",
}
_CUSTOM: Final[dict[Any, Schema]] = {
    Namespace: {
        "type": "string",
        "pattern": _NAMESPACE,
        "description": "A path such as `ws:acme/user:ann`, or `root`.",
    },
    Timestamp: {"type": "string", "format": "date-time"},
}


def _tighten(schemas: dict[str, Schema]) -> None:
    """Add what validation demands beyond the shape."""
    text = {"type": "string", "pattern": _NOT_BLANK}
    schemas["DocumentBody"] = {
        "type": "object",
        "properties": {"text": text},
        "required": ["text"],
        "additionalProperties": False,
        "description": "The text of a document. One that is still a uri is not stored.",
    }
    schemas["Turn"]["properties"]["text"] |= text
    schemas["Conversation"]["properties"]["turns"]["minItems"] = 1
    schemas["Learning"]["properties"]["text"] |= text
    schemas["Learning"]["properties"]["confidence"] |= {"minimum": 0, "maximum": 1}
    schemas["TurnRange"]["properties"] |= {
        name: {"type": "integer", "minimum": 0, "maximum": 2**32 - 1} for name in ("first", "last")
    }
    for name, field in (("FetchRequest", "query"), ("RecallRequest", "question")):
        schemas[name]["properties"][field] |= text
    for name in ("FetchRequest", "RecallRequest", "ListRequest"):
        schemas[name]["properties"]["limit"] = dict(_COUNT)
    explore = schemas["ExploreRequest"]["properties"]
    explore["limit"] = {**_COUNT, "maximum": BUCKETS_MAX}
    explore["scan_limit"] |= {"minimum": 1, "maximum": SCAN_LIMIT_MAX}
    ids = {"minItems": 1, "maxItems": IDS_PER_GET_MAX, "items": text}
    schemas["GetRequest"]["properties"]["ids"] |= ids
    schemas["ForgetTarget"] = {
        "oneOf": [
            _exactly("ids", {"type": "array", "items": {"type": "string"}, "minItems": 1}),
            _exactly("filter", {"allOf": [{"$ref": REF + "MetaFilter"}, {"anyOf": _set_fields()}]}),
        ],
        "description": "Exactly one of ids, and a filter that sets something.",
    }


def _exactly(key: str, schema: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {key: schema},
        "required": [key],
        "additionalProperties": False,
    }


def _set_fields() -> list[Schema]:
    strings = ("workspace", "folder", "file_path", "language", "repo", "url", "thread_id")
    return [{"required": [name], "properties": {name: {"type": "string"}}} for name in strings]
