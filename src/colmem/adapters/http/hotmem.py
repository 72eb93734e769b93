"""HotMem's routes in HotMem's shapes, so that its client works against a store of ours.

A memory is a snapshot record: it is added by hydrating one, and read as the engine's record of it.
What the client does not use (bundles, events, promotion, handoff) is not here.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from colmem.adapters.http.access import Access
from colmem.adapters.http.folder import SnapshotFolder
from colmem.adapters.http.routes import access_of, guarded, json_body, json_response
from colmem.adapters.http.work import Worker
from colmem.contract import (
    ColmemError,
    Conflict,
    FetchMode,
    InvalidRequest,
    NotFound,
    SourceKind,
    decode,
)
from colmem.schema import ITEMS
from colmem.snapshot.mapping import record_of_row
from colmem.snapshot.record import content_hash, file_content_hash
from colmem.stored import from_batch

TOP_K_MAX: Final = 100
LIST_MAX: Final = 1_000

Fields = dict[str, Any]

_METADATA_KEYS: Final = (
    "id",
    "identifier",
    "memory_type",
    "fact_text",
    "fact_summary",
    "embedding_dim",
    "embedding_model",
    "source",
    "importance",
    "metadata",
    "content_hash",
    "source_uri",
    "byte_offset",
    "byte_length",
    "source_checksum",
    "source_format",
    "provenance",
    "created_at",
)


class AddRequest(msgspec.Struct, kw_only=True):
    """A fact, or a reference to a range of a file: exactly one of ``fact`` and ``file_uri``."""

    identifier: str
    fact: str | None = None
    file_uri: str | None = None
    byte_offset: int | None = None
    byte_length: int | None = None
    source_format: str | None = None
    source_checksum: str | None = None
    summary: str | None = None
    source: str = ""
    importance: float = 0.5
    metadata: dict[str, Any] = {}
    ttl_seconds: int | None = None

    def validate(self) -> None:
        """Refuse what HotMem's own server refuses (InvalidRequest)."""
        if (self.fact is None) == (self.file_uri is None):
            raise InvalidRequest("provide exactly one of `fact` and `file_uri`", path="$")
        if self.file_uri is not None and (self.byte_offset is None or self.byte_length is None):
            raise InvalidRequest(
                "`byte_offset` and `byte_length` are required with `file_uri`", path="$"
            )
        if min(self.byte_offset or 0, self.byte_length or 0) < 0:
            raise InvalidRequest("`byte_offset` and `byte_length` must be 0 or more", path="$")
        if not 0.0 <= self.importance <= 1.0:
            raise InvalidRequest("`importance` must be from 0 to 1", path="$.importance")
        if self.ttl_seconds is not None and self.ttl_seconds < 1:
            raise InvalidRequest("`ttl_seconds` must be 1 or more", path="$.ttl_seconds")


class SearchRequest(msgspec.Struct, kw_only=True):
    """A query, how many memories at most, and how many characters in all."""

    query: str
    top_k: int = 5
    max_chars: int | None = None


class HotMem:
    """The routes; memories are added, and files read, for scopes that see the whole store."""

    def __init__(self, worker: Worker, folder: SnapshotFolder) -> None:
        self._worker = worker
        self._folder = folder
        self._started = time.time()

    def routes(self) -> list[Route]:
        """What HotMem's client calls beside health, hydrate and snapshot."""
        one = "/v1/memory/{id}"
        return [
            Route("/v1/add", guarded("add", self._add), methods=["POST"]),
            Route("/v1/search", guarded("search", self._search), methods=["POST"]),
            Route("/v1/memories", guarded("memories", self._memories), methods=["GET"]),
            Route(one, guarded("memory", self._memory), methods=["GET"]),
            Route(f"{one}/hydrate", guarded("memory", self._payload), methods=["POST"]),
        ]

    def health(self, access: Access) -> Fields:
        """The fields that HotMem's health has and ours has not."""
        try:
            access.need_all("hotmem")
        except ColmemError:
            return {}
        facts = access.method("stats")()
        return {
            "status": "ok",
            "memory_count": facts["items"],
            "db_path": Path(facts["path"]).name,
            "uptime_s": round(time.time() - self._started, 1),
            "embedding": {"model": facts["embedder"], "dim": facts["dim"]},
        }

    async def _add(self, request: Request) -> Response:
        access = _whole(request)
        access.need_writes("add")
        asked = decode(await json_body(request, self._worker), AddRequest)
        asked.validate()
        return await self._timed(lambda: self._added(access, asked))

    async def _search(self, request: Request) -> Response:
        access = _whole(request)
        asked = decode(await json_body(request, self._worker), SearchRequest)
        if not 1 <= asked.top_k <= TOP_K_MAX:
            raise InvalidRequest(f"`top_k` must be from 1 to {TOP_K_MAX}", path="$.top_k")
        return await self._timed(lambda: _listed(_found(access, asked)))

    async def _memories(self, request: Request) -> Response:
        access = _whole(request)
        params = request.query_params
        if "identifier" not in params:
            raise InvalidRequest("the query parameter `identifier` is required")
        order, limit = params.get("order", "asc"), params.get("limit", "100")
        if order not in ("asc", "desc"):
            raise InvalidRequest("order must be 'asc' or 'desc'")
        if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= LIST_MAX:
            raise InvalidRequest(f"limit must be 1..{LIST_MAX}")

        def work() -> Fields:
            records = _of_identifier(access, params["identifier"], order)
            return _listed([_short(record) for record in records[: int(limit[:9])]])

        return await self._timed(work)

    async def _memory(self, request: Request) -> Response:
        access, id = _whole(request), request.path_params["id"]
        record = await self._worker.run(_record, access, id)
        return json_response({key: record[key] for key in _METADATA_KEYS})

    async def _payload(self, request: Request) -> Response:
        access, id = _whole(request), request.path_params["id"]
        started = time.perf_counter()
        record = await self._worker.run(_record, access, id)
        is_file = record["memory_type"] == "file"
        payload = (record["fact_text"] or "").encode()
        if is_file:
            payload = await self._worker.run(self._range, record)
        is_verified = is_file and bool(record["source_checksum"])
        headers = {
            "X-HotMem-Source-Format": record["source_format"] or "",
            "X-HotMem-Provenance": "verified" if is_verified else "unverified",
            "X-HotMem-Trace-Ms": f"{(time.perf_counter() - started) * 1000:.2f}",
        }
        return Response(payload, media_type="application/octet-stream", headers=headers)

    async def _timed(self, work: Callable[[], Fields]) -> Response:
        started = time.perf_counter()
        fields = await self._worker.run(work)
        spent_ms = round((time.perf_counter() - started) * 1000, 2)
        return json_response({**fields, "trace_ms": spent_ms})

    def _added(self, access: Access, asked: AddRequest) -> Fields:
        record: Fields = {
            "id": uuid.uuid4().hex,
            "identifier": asked.identifier,
            "source": asked.source,
            "importance": asked.importance,
            "metadata": asked.metadata,
            "ttl_seconds": asked.ttl_seconds,
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        if asked.file_uri is not None:
            if not self._file(asked.file_uri).is_file():
                raise InvalidRequest(f"backing file not found: {asked.file_uri[:200]}")
            offset, length = asked.byte_offset or 0, asked.byte_length or 0
            record |= {
                "memory_type": "file",
                "fact_summary": asked.summary,
                "source_uri": asked.file_uri,
                "source_format": asked.source_format or "",
                "source_checksum": asked.source_checksum or "",
                "byte_offset": offset,
                "byte_length": length,
                "content_hash": file_content_hash(
                    asked.identifier, asked.file_uri, offset, length, asked.source_checksum or ""
                ),
            }
        else:
            record |= {
                "memory_type": "fact",
                "fact_text": asked.fact,
                "content_hash": content_hash(asked.identifier, asked.fact or ""),
            }
        report = _hydrated(access, record)
        if report.loaded:
            return {"memory_id": record["id"], "content_hash": record["content_hash"]}
        for held in _of_identifier(access, asked.identifier):
            if held["content_hash"] == record["content_hash"]:
                return {"memory_id": held["id"], "content_hash": held["content_hash"]}
        raise InvalidRequest("the memory cannot be stored; a fact must not be empty", path="$")

    def _range(self, record: Fields) -> bytes:
        """The bytes a memory refers to; they must be what they were."""
        uri = record["source_uri"] or ""
        offset, length = record["byte_offset"] or 0, record["byte_length"] or 0
        path = self._file(uri)
        if not path.is_file():
            raise NotFound(f"the backing file {uri[:200]} is not there any more")
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(min(length, self._worker.limits.body_bytes_max + 1))
        if len(data) > self._worker.limits.body_bytes_max:
            raise InvalidRequest(f"the range of {uri[:200]} is larger than this server sends")
        if len(data) < length:
            raise Conflict(f"{uri[:200]} ends before the range does")
        if record["source_checksum"] and not _has_checksum(data, record["source_checksum"]):
            raise Conflict(f"the range of {uri[:200]} is not what its checksum says")
        return data

    def _file(self, uri: str) -> Path:
        return self._folder.path(uri.removeprefix("file://"), "file_uri")


def _whole(request: Request) -> Access:
    access = access_of(request)
    access.need_all("HotMem's interface")
    return access


def _has_checksum(data: bytes, expected: str) -> bool:
    return sha256(data).hexdigest() == expected.removeprefix("sha256:")


def _hydrated(access: Access, record: Fields) -> Any:
    with tempfile.TemporaryDirectory(prefix="colmem-add-") as folder:
        path = Path(folder) / "added.jsonl"
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        return access.method("hydrate")(path)


def _found(access: Access, asked: SearchRequest) -> Iterator[Fields]:
    engine = access.engine
    if not asked.query.strip():
        return
    modes = engine.descriptor().fetch_modes
    mode = FetchMode.HYBRID if FetchMode.HYBRID in modes else modes[0]
    left = asked.max_chars
    for hit in engine.fetch(query=asked.query, mode=mode, limit=asked.top_k).hits:
        if left is not None and left <= 0:
            return
        record = _record(access, hit.id)
        text = (record["fact_text"] or record["fact_summary"] or hit.text)[:left]
        left = None if left is None else left - len(text)
        yield {
            "role": "system",
            "content": text,
            "memory_id": hit.id,
            "identifier": record["identifier"],
            "score": round(float(hit.score), 4),
            "created_at": record["created_at"],
        }


def _of_identifier(access: Access, identifier: str, order: str = "asc") -> list[Fields]:
    """The records of an identifier, by time of adding."""
    is_one = f"source_kind = '{SourceKind.IMPORT}' AND source_id = ?"
    return _records(access, f"{is_one} ORDER BY created_at {order}, row {order}", identifier)


def _record(access: Access, id: str) -> Fields:
    """The record of an item.

    Raises
    ------
    NotFound
        When there is none of that id.
    """
    for record in _records(access, "id = ?", id):
        return record
    raise NotFound(f"there is no memory `{id[:100]}`")


def _records(access: Access, condition: str, value: str) -> list[Fields]:
    """The records, without embeddings, of rows that are not expired."""
    columns = ", ".join(f'"{name}"' for name in ITEMS.names)
    live = "(expires_s IS NULL OR expires_s > epoch(now()))"
    query = f"SELECT {columns} FROM items WHERE {live} AND {condition}"
    table = access.method("sql")(query, [value])
    facts = access.method("stats")()
    rows = [row for batch in table.to_batches() for row in from_batch(batch)]
    made_with = {"model": facts["embedder"], "dim": facts["dim"]}
    return [record_of_row(row, vector=None, **made_with).view() for row in rows]


def _short(record: Fields) -> Fields:
    return {
        "id": record["id"],
        "identifier": record["identifier"],
        "fact_text": record["fact_text"],
        "importance": record["importance"],
        "metadata_json": json.dumps(record["metadata"]),
        "source": record["source"],
        "created_at": record["created_at"],
    }


def _listed(memories: Any) -> Fields:
    memories = list(memories)
    return {"memories": memories, "count": len(memories)}
