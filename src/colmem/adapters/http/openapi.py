"""The OpenAPI description of a server, complete enough to test it by."""

from __future__ import annotations

from typing import Any, Final

from colmem.adapters.http.schemas import REF, Schema, contract_schemas, schema_of
from colmem.adapters.http.settings import ServerSettings
from colmem.client.operations import ARROW, JSON, NDJSON, OPERATIONS, Operation
from colmem.client.reports import HydrateReport
from colmem.contract import VARIANTS
from colmem.tools.specs import TOOL_NAMES
from colmem.version import __version__

FORMATS: Final = ("v2", "jsonl", "jsonl.gz", "package", "package.gz", "columnar")

_SUMMARIES: Final = {
    "store": "Keep an item, or replay the receipt of one already held",
    "store_many": "Keep 1 to 100 items; when one of them is invalid, none",
    "fetch": "Rank items by a query, best first",
    "recall": "Answer a question from items, citing them",
    "list": "Page through items",
    "get": "Read items by id",
    "forget": "Remove items by id or by filter",
    "explore": "Count items along a facet",
    "health": "Whether the engine serves",
    "descriptor": "What the engine is and offers",
}
_ERRORS: Final = {
    "400": "The request breaks a rule",
    "401": "No token, or an unknown one",
    "403": "The token's scope does not cover the request",
    "404": "Nothing is there",
    "413": "The body is too large",
    "415": "The body is of another media type",
    "422": "The engine does not offer what is asked",
    "500": "The engine failed",
    "503": "Not now; the same call may work later",
}
_OBJECT: Final[Schema] = {"type": "object"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}


def document(settings: ServerSettings) -> dict[str, Any]:
    """The description of a server with these settings."""
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "colmem",
            "version": __version__,
            "description": "A memory engine: store, find again, count and move items.",
        },
        "paths": _paths(),
        "components": {
            "schemas": contract_schemas() | _own_schemas(),
            "responses": {status: _error(text) for status, text in _ERRORS.items()}
            | {"409": _verification_failed()},
        },
    }
    if settings.tokens:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in OPERATIONS.values():
        paths[operation.path] = _operation(operation)
    counters = {"200": {"description": "Counters", "content": {"text/plain": {"schema": _TEXT}}}}
    paths["/v1/stats"] = {"get": _described("stats", "Counts of the store", _json_answer(_OBJECT))}
    paths["/metrics"] = {"get": _described("metrics", "Counters for Prometheus", counters)}
    also = {"type": "object", "properties": {"id": {"anyOf": [_TEXT, {"type": "null"}]}}}
    paths["/v1/explain"] = {
        "post": _described(
            "explain",
            "How each hit of a fetch came to its place; of an `id` that did not come, why not",
            _json_answer({"$ref": REF + "Explanation"}),
            body={JSON: {"schema": {"allOf": [{"$ref": REF + "FetchRequest"}, also]}}},
        )
    }
    paths["/v1/openapi.json"] = {
        "get": _described("openapi", "This description", _json_answer(_OBJECT))
    }
    paths["/v1/tools"] = {
        "get": _described("tools", "The tools a model may call", _json_answer(_OBJECT))
    }
    paths["/v1/tools/{name}"] = {
        "post": _described(
            "tool",
            "Call a tool with a model's arguments, which `GET /v1/tools` describes",
            _json_answer(_OBJECT),
            body={JSON: {"schema": _OBJECT}},
            parameters=[_parameter("name", "path", {"type": "string", "enum": [*TOOL_NAMES]})],
        )
    }
    for name, answer in (("snapshot", "Snapshot"), ("hydrate", "Hydrated"), ("verify", "Verified")):
        asked = "SnapshotRequest" if name == "snapshot" else "PathRequest"
        paths[f"/v1/{name}"] = {
            "post": _described(
                name,
                f"{name.capitalize()} a snapshot below the server's snapshot folder",
                _json_answer({"$ref": REF + answer}) | {"409": _ref("409")},
                body={JSON: {"schema": {"$ref": REF + asked}}},
            )
        }
    paths["/v1/ingest"] = {"post": _ingest()}
    paths["/v1/export"] = {"get": _export()}
    return paths


_TEXT: Final[Schema] = {"type": "string"}


def _operation(operation: Operation) -> dict[str, Any]:
    answer = _json_answer(schema_of(operation.answer))
    summary = _SUMMARIES[operation.name]
    if operation.request is None:
        return {
            "get": _described(operation.name, summary, answer),
            "post": _described(f"{operation.name}_posted", summary, answer),
        }
    body = {JSON: {"schema": schema_of(operation.request)}}
    return {"post": _described(operation.name, summary, answer, body=body)}


def _ingest() -> dict[str, Any]:
    line = {"$ref": REF + "Progress"}
    return _described(
        "ingest",
        "Store a stream of items: one a line, or Arrow with columns named as fields",
        {"200": {"description": "Progress, a line each", "content": {NDJSON: {"schema": line}}}},
        body={
            NDJSON: {"schema": {"type": "string", "contentMediaType": NDJSON}},
            ARROW: {"schema": {"type": "string", "contentMediaType": ARROW}},
        },
        parameters=[
            _parameter("batch_size", "query", {"type": "integer", "minimum": 1, "maximum": 5000})
        ],
    )


def _export() -> dict[str, Any]:
    content = {NDJSON: {"schema": _TEXT}, ARROW: {"schema": _TEXT}}
    filter = {
        "name": "filter",
        "in": "query",
        "required": False,
        "content": {JSON: {"schema": {"$ref": REF + "MetaFilter"}}},
    }
    return _described(
        "export",
        "All admitted items as a stream, in order of storing",
        {"200": {"description": "An item a line, or an Arrow IPC stream", "content": content}},
        parameters=[
            _parameter("format", "query", {"type": "string", "enum": ["ndjson", "arrow"]}),
            _parameter("embeddings", "query", {"type": "string", "enum": ["true", "false"]}),
            filter,
        ],
    )


def _described(
    name: str,
    summary: str,
    answers: dict[str, Any],
    *,
    body: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": answers | {status: _ref(status) for status in _ERRORS},
    }
    if body is not None:
        described["requestBody"] = {"required": True, "content": body}
    if parameters:
        described["parameters"] = parameters
    return described


def _parameter(name: str, place: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _ref(status: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{status}"}


def _json_answer(schema: Schema) -> dict[str, Any]:
    return {"200": {"description": "Done", "content": {JSON: {"schema": schema}}}}


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": {JSON: {"schema": {"$ref": REF + "Error"}}}}


def _verification_failed() -> dict[str, Any]:
    schema = {"$ref": REF + "SnapshotError"}
    return {
        "description": "The snapshot does not verify, or clashes with what is held",
        "content": {JSON: {"schema": {"anyOf": [schema, {"$ref": REF + "Error"}]}}},
    }


def _own_schemas() -> dict[str, Schema]:
    optional_text = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    path = {"type": "string", "description": "Relative to the server's snapshot folder"}
    return {
        "Error": _struct(
            error={"type": "string", "enum": [*VARIANTS]},
            message=_TEXT,
            optional={"path": _TEXT, "detail": _TEXT},
        ),
        "SnapshotError": _struct(
            error={
                "type": "string",
                "enum": ["snapshot_checksum_mismatch", "package_verification_failed"],
            },
            reason=_TEXT,
            file=optional_text,
            expected={},
            actual={},
            message=_TEXT,
        ),
        "PathRequest": _struct(optional={"path": path, "file": path}),
        "SnapshotRequest": _struct(
            optional={
                "path": path,
                "file": path,
                "format": {"type": "string", "enum": [*FORMATS]},
                "filter": {"$ref": REF + "MetaFilter"},
                "package": {"type": "boolean"},
                "gz": {"type": "boolean"},
            }
        ),
        "Snapshot": _struct(exported=_COUNT, path=_TEXT, snapshot_id=_TEXT),
        "Hydrated": _struct(path=_TEXT, **dict.fromkeys(HydrateReport._fields, _COUNT)),
        "Verified": _struct(
            format=_TEXT, valid={"type": "boolean"}, record_count=_COUNT, payload=_TEXT
        ),
        "Progress": _struct(
            total=_COUNT,
            optional={"stored": _COUNT, "replayed": _COUNT, "seconds": {"type": "number"}},
        ),
    }


def _struct(*, optional: dict[str, Schema] | None = None, **required: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        schema["required"] = [*required]
    return schema
