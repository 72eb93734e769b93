"""Routes that move much at once: snapshots, and items in and out as streams."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import colmem
from colmem import stored
from colmem.adapters.http.access import Access
from colmem.adapters.http.confine import ConfinedEngine
from colmem.adapters.http.errors import WrongMediaType
from colmem.adapters.http.folder import DEFAULT_NAME, SnapshotFolder
from colmem.adapters.http.routes import access_of, guarded, json_body, json_response
from colmem.adapters.http.work import BodyChunks, Report, Stream, Worker, body_lines
from colmem.client.operations import ARROW, NDJSON
from colmem.client.streams import BytesReader
from colmem.contract import (
    ColmemError,
    InvalidRequest,
    MetaFilter,
    Namespace,
    StoreItem,
    decode,
    encode,
)
from colmem.schema import ITEMS
from colmem.snapshot.errors import SnapshotMissingError

FORMATS: Final = ("v2", "jsonl", "jsonl.gz", "package", "package.gz", "columnar")
BATCH_SIZE: Final = 1_000
EXPORTED: Final = tuple(name for name in ITEMS.names if name not in ("row", "seq"))
"""Columns of an Arrow export: all but the store's own numbering, which counts other items."""


class PathRequest(msgspec.Struct, kw_only=True):
    """Names a snapshot; ``file`` is an older spelling of ``path``."""

    path: str | None = None
    file: str | None = None


class SnapshotRequest(PathRequest, kw_only=True):
    """Where and how to write a snapshot; ``package`` and ``gz`` are an older spelling of format."""

    format: str | None = None
    filter: MetaFilter = msgspec.field(default_factory=MetaFilter)
    package: bool = False
    gz: bool = False

    def chosen_format(self) -> str | None:
        """The format asked for, or None to go by the path."""
        if self.format is not None and self.format not in FORMATS:
            raise InvalidRequest(
                f"`{self.format[:60]}` is no format; expected one of {', '.join(FORMATS)}",
                path="$.format",
            )
        if self.format is None and self.package:
            return "package.gz" if self.gz else "package"
        return self.format


def snapshot_routes(worker: Worker, folder: SnapshotFolder) -> list[Route]:
    """Write, load and verify snapshots below the server's folder."""

    async def snapshot(request: Request) -> Response:
        access = access_of(request)
        access.need_all("snapshot")
        access.need_writes("snapshot")
        asked = decode(await json_body(request, worker), SnapshotRequest)
        chosen, name = asked.chosen_format(), _name(asked)
        path = folder.path(name)

        def work(report: Report) -> dict[str, Any]:
            done = 0

            def progress(count: int) -> None:
                nonlocal done
                done += count
                report({"exported": done})

            write = access.method("snapshot")
            made = write(path, format=chosen, filter=asked.filter, progress=progress)
            return {"exported": made.exported, "path": name, "snapshot_id": made.snapshot_id}

        return await _reported(request, worker, folder, work)

    async def hydrate(request: Request) -> Response:
        access = access_of(request)
        access.need_all("hydrate")
        access.need_writes("hydrate")
        name = _name(decode(await json_body(request, worker), PathRequest))
        path = _existing(folder, name)

        def work(report: Report) -> dict[str, Any]:
            load = access.method("hydrate")
            made = load(path, progress=lambda done, total: report({"done": done, "total": total}))
            return {**msgspec.structs.asdict(made), "path": name}

        return await _reported(request, worker, folder, work)

    async def verify(request: Request) -> Response:
        access_of(request).need_all("verify")
        path = _existing(folder, _name(decode(await json_body(request, worker), PathRequest)))

        def work(_: Report) -> dict[str, Any]:
            return msgspec.structs.asdict(colmem.verify(path))

        return await _reported(request, worker, folder, work)

    return [
        Route("/v1/snapshot", guarded("snapshot", snapshot), methods=["POST"]),
        Route("/v1/hydrate", guarded("hydrate", hydrate), methods=["POST"]),
        Route("/v1/verify", guarded("verify", verify), methods=["POST"]),
    ]


def bulk_routes(worker: Worker) -> list[Route]:
    """Items in and out as streams."""

    async def ingest(request: Request) -> Response:
        access = access_of(request)
        access.need_writes("ingest")
        batch_size = _batch_size(request, worker)
        media_type = _media_type(request)
        chunks = BodyChunks(request.receive, worker.limits)

        def work(report: Report) -> dict[str, Any]:
            def progress(total: int) -> None:
                report({"total": total})

            if media_type == ARROW:
                made = _ingest_arrow(access, iter(chunks), worker, progress)
            else:
                items = _items(body_lines(chunks, worker.limits))
                if access.confined is not None:
                    items = access.confined.placed_all(items)
                take = access.method("ingest")
                made = take(items, batch_size=batch_size, progress=progress)
            return {
                "total": made.total,
                "stored": made.stored,
                "replayed": made.replayed,
                "seconds": made.seconds,
            }

        try:
            return await worker.reported(work)
        except ColmemError:
            await chunks.drain()
            raise

    async def export(request: Request) -> Response:
        access = access_of(request)
        params = request.query_params
        form = params.get("format", "ndjson")
        if form not in ("ndjson", "arrow"):
            raise InvalidRequest(f"`{form[:60]}` is no format; expected ndjson or arrow")
        filter = decode(params.get("filter", "{}"), MetaFilter)
        if access.confined is not None:
            filter = access.confined.confined(filter, "$.reach")
        with_embeddings = _flag(params.get("embeddings", "false"))
        chunks = _lines(access, filter)
        if form == "arrow":
            chunks = _batches(access, filter, embeddings=with_embeddings)
        return Stream(await _begun(request, worker, chunks), ARROW if form == "arrow" else NDJSON)

    return [
        Route("/v1/ingest", guarded("ingest", ingest), methods=["POST"]),
        Route("/v1/export", guarded("export", export), methods=["GET"]),
    ]


async def _reported(
    request: Request,
    worker: Worker,
    folder: SnapshotFolder,
    work: Callable[[Report], dict[str, Any]],
) -> Response:
    """Do long work; a client that accepts lines gets its progress as well."""

    def hiding(report: Report) -> dict[str, Any]:
        try:
            return work(report)
        except ColmemError as error:
            raise folder.hide(error) from None

    if NDJSON in request.headers.get("accept", ""):
        return await worker.reported(hiding)
    return json_response(await worker.run_long(hiding, lambda _: None))


def _name(asked: PathRequest) -> str:
    name = asked.file if asked.path is None else asked.path
    return DEFAULT_NAME if name is None else name


def _existing(folder: SnapshotFolder, name: str) -> Path:
    path = folder.path(name)
    if not path.exists():
        raise SnapshotMissingError(f"there is no snapshot `{name[:200]}`")
    return path


def _items(lines: Iterator[bytes]) -> Iterator[StoreItem]:
    for index, line in enumerate(lines):
        try:
            yield decode(line, StoreItem)
        except InvalidRequest as error:
            path = f"$[{index}]{(error.path or '$')[1:]}"
            raise InvalidRequest(f"$[{index}]: {error.message}", path=path) from error


def _ingest_arrow(
    access: Access, chunks: Iterator[bytes], worker: Worker, progress: Callable[[int], None]
) -> Any:
    try:
        source = BytesReader(chunks, worker.limits.message_bytes_max)
        reader = pa.ipc.open_stream(source)
        if access.confined is not None:
            reader = _placed(reader, access.confined)
        return access.method("ingest_arrow")(reader, progress=progress)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise InvalidRequest(f"the body is no Arrow IPC stream: {type(error).__name__}") from error


def _placed(reader: Any, confined: ConfinedEngine) -> Any:
    """The batches of a reader, with the namespaces that a scope gives them."""
    names = reader.schema.names
    kept = [i for i, name in enumerate(names) if name != "namespace"]
    field = pa.field("namespace", pa.string())
    schema = pa.schema([*(reader.schema.field(i) for i in kept), field])

    def batches() -> Iterator[Any]:
        done = 0
        for batch in reader:
            given = [None] * batch.num_rows
            if "namespace" in names:
                given = batch.column("namespace").to_pylist()
            places = [
                str(confined.place_of(Namespace(text or ""), f"$[{done + i}].namespace"))
                for i, text in enumerate(given)
            ]
            columns = [*(batch.column(i) for i in kept), pa.array(places, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            done += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, batches())


def _lines(access: Access, filter: MetaFilter) -> Iterator[bytes]:
    for batch in access.method("to_arrow")(filter):
        rows = stored.from_batch(batch)
        yield b"".join(encode(stored.item_of(row)) + b"\n" for row in rows)


def _batches(access: Access, filter: MetaFilter, *, embeddings: bool) -> Iterator[bytes]:
    reader = access.method("to_arrow")(filter, columns=EXPORTED, embeddings=embeddings)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


async def _begun(request: Request, worker: Worker, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """A stream whose first chunk is there already, so that an error still gets its own status."""
    first = await worker.run_long(next, chunks, None)

    async def rest() -> AsyncIterator[bytes]:
        gone = asyncio.ensure_future(_disconnected(request))
        chunk = first
        try:
            while chunk is not None and not gone.done():
                yield chunk
                chunk = await worker.run_long(next, chunks, None)
        finally:
            gone.cancel()

    return rest()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _media_type(request: Request) -> str:
    declared = request.headers.get("content-type", NDJSON).partition(";")[0].strip().lower()
    if declared not in (NDJSON, ARROW):
        raise WrongMediaType(
            f"content-type `{declared[:60]}` is not read here, send {NDJSON} or {ARROW}"
        )
    return declared


def _batch_size(request: Request, worker: Worker) -> int:
    text = request.query_params.get("batch_size", str(BATCH_SIZE))
    limit = worker.limits.batch_items_max
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= limit:
        raise InvalidRequest(f"batch_size must be an integer from 1 to {limit}")
    return int(text[:9])


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidRequest("embeddings must be true or false")
    return text == "true"
