"""Threads in which engine calls run, and streams of progress about the long ones."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from colmem.adapters.http.errors import TooLarge, as_colmem, body_of
from colmem.adapters.http.settings import Limits
from colmem.client.operations import NDJSON
from colmem.contract import ColmemError, InvalidRequest, Unavailable

Value = TypeVar("Value")
Fields = dict[str, Any]
Report = Callable[[Fields], None]

_BULK_THREADS: Final = 2
_DRAIN_SECONDS: Final = 5
_DRAIN_BYTES: Final = 64 << 20
_REPORT_SECONDS: Final = 0.5
_REPORT_SHARE: Final = (
    0.01  # of the time so far, which bounds the lines of any run to some hundreds
)


class Worker:
    """Runs engine calls beside the event loop: short ones with a time limit, long ones without."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._short = ThreadPoolExecutor(limits.threads, thread_name_prefix="colmem-http")
        self._long = ThreadPoolExecutor(_BULK_THREADS, thread_name_prefix="colmem-bulk")

    async def run(self, function: Callable[..., Value], *args: Any) -> Value:
        """Call a function in a thread.

        Raises
        ------
        Unavailable
            When it takes too long; it goes on all the same, as an engine call cannot be broken off.
        """
        call = functools.partial(function, *args)
        try:
            async with asyncio.timeout(self.limits.timeout_seconds) as limit:
                return await asyncio.get_running_loop().run_in_executor(self._short, call)
        except TimeoutError:
            if not limit.expired():
                raise
            raise Unavailable(
                f"no answer within {self.limits.timeout_seconds:g} seconds; a write may still be "
                "done, and sending it again is safe"
            ) from None

    async def run_long(self, function: Callable[..., Value], *args: Any) -> Value:
        """Call a function in a thread, for as long as it takes."""
        call = functools.partial(function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._long, call)

    async def reported(self, function: Callable[[Report], Fields]) -> Response:
        """Answer with the progress of long work as lines, the last of which is its result.

        Work that fails before it has reported raises its error; later, its error is the last line.
        """
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[Fields | None] = asyncio.Queue()

        def put(fields: Fields) -> None:
            loop.call_soon_threadsafe(lines.put_nowait, fields)

        work = asyncio.ensure_future(self.run_long(function, _throttled(put)))
        work.add_done_callback(lambda _: lines.put_nowait(None))
        first = await lines.get()
        if first is None:
            work.result()

        async def stream() -> AsyncIterator[bytes]:
            line = first
            while line is not None:
                yield _line(line)
                line = await lines.get()
            try:
                yield _line(work.result())
            except Exception as error:  # noqa: BLE001 - the answer has begun, so it is its last line
                yield _line(body_of(as_colmem(error, "the request")))

        return Stream(stream(), NDJSON)

    def close(self) -> None:
        """Wait for the calls that run."""
        self._short.shutdown(wait=True)
        self._long.shutdown(wait=True)


class Stream(Response):
    """A body sent chunk by chunk; it never reads the request, whose body may still be coming."""

    def __init__(self, chunks: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(None, media_type=media_type)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all chunks."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        async for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read_body(receive: Receive, headers: Any, limits: Limits) -> bytes:
    """The whole body of a request.

    Raises
    ------
    TooLarge
        When it is larger than the server takes, by its header or in fact.
    InvalidRequest
        When it does not come, or breaks off.
    """
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body_bytes_max:
        raise _too_large(limits.body_bytes_max)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await _next(receive, limits)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.body_bytes_max:
            raise _too_large(limits.body_bytes_max)
        if not message.get("more_body", False):
            return b"".join(parts)


class BodyChunks:
    """A body chunk by chunk, for a thread that is not the event loop's."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._is_over = False

    def __iter__(self) -> Iterator[bytes]:
        while not self._is_over:
            chunk = asyncio.run_coroutine_threadsafe(self._chunk(), self._loop).result()
            if chunk:
                yield chunk

    async def drain(self) -> None:
        """Read on for a while, so that a client still sending gets to see the answer."""
        size = 0
        with contextlib.suppress(TimeoutError, ColmemError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._is_over and size < _DRAIN_BYTES:
                    size += len(await self._chunk())

    async def _chunk(self) -> bytes:
        try:
            message = await _next(self._receive, self._limits)
        except ColmemError:
            self._is_over = True
            raise
        self._is_over = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body


def body_lines(chunks: Iterable[bytes], limits: Limits) -> Iterator[bytes]:
    """The lines of a body, without those that are blank."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(rest) > limits.body_bytes_max:
            raise _too_large(limits.body_bytes_max)
    if rest.strip():
        yield rest


async def _next(receive: Receive, limits: Limits) -> Any:
    try:
        async with asyncio.timeout(limits.idle_seconds):
            message = await receive()
    except TimeoutError:
        raise InvalidRequest(
            f"the body did not go on within {limits.idle_seconds} seconds"
        ) from None
    if message["type"] == "http.disconnect":
        raise InvalidRequest("the connection ended before the body did")
    return message


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"the body is larger than {limit} bytes; send less at a time, or use /v1/ingest"
    )


def _throttled(send: Report) -> Report:
    started = last = time.monotonic()

    def report(fields: Fields) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= max(_REPORT_SECONDS, _REPORT_SHARE * (now - started)):
            last = now
            send(fields)

    return report


def _line(fields: Fields) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode(errors="replace") + b"\n"
