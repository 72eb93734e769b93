"""A server's engine with coroutines for methods: every one is one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import httpx

from colmem.client import exchange
from colmem.client.exchange import Call
from colmem.client.operations import NDJSON
from colmem.client.reports import HydrateReport, IngestReport, SnapshotReport
from colmem.contract import (
    ColmemError,
    EngineDescriptor,
    EngineHealth,
    ExplorePage,
    ExploreRequest,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    GetRequest,
    Hit,
    ListPage,
    ListRequest,
    MetaFilter,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
    decode,
)
from colmem.explanation import Explanation

# The method `list` hides the type of that name inside the class.
Receipts = list[StoreReceipt]
Hits = list[Hit]


class AsyncHttpEngine:
    """An engine behind ``colmem serve``, for one event loop; close it after use."""

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = exchange.TIMEOUT_SECONDS
    ) -> None:
        self.url = exchange.base_url(url)
        self._descriptor: EngineDescriptor | None = None
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=exchange.headers(token),
            timeout=timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
        )

    # The contract.

    async def descriptor(self) -> EngineDescriptor:
        """What the engine is and offers; asked once."""
        if self._descriptor is None:
            self._descriptor = await self._send(exchange.operation("descriptor"))
        return self._descriptor

    async def health(self) -> EngineHealth:
        """Whether the engine serves; a server that does not answer is down."""
        try:
            health: EngineHealth = await self._send(exchange.operation("health"))
        except ColmemError as error:
            return EngineHealth.down(error.message)
        return health

    async def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item, or replay the receipt of one already held."""
        receipt: StoreReceipt = await self._send(exchange.operation("store", item))
        return receipt

    async def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep 1 to 100 items; when one of them is invalid, none."""
        receipts: Receipts = await self._send(exchange.operation("store_many", [*items]))
        return receipts

    async def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank admitted items by a query, best first."""
        page: FetchPage = await self._send(exchange.operation("fetch", request, fields))
        return page

    async def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer a question from admitted items, citing them."""
        answer: RecallAnswer = await self._send(exchange.operation("recall", request, fields))
        return answer

    async def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through admitted items."""
        page: ListPage = await self._send(exchange.operation("list", request, fields))
        return page

    async def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Read items by id, in the order the ids are first named."""
        hits: Hits = await self._send(exchange.operation("get", request, fields))
        return hits

    async def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by id or by filter."""
        report: ForgetReport = await self._send(exchange.operation("forget", target, fields))
        return report

    async def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count admitted items along a facet."""
        page: ExplorePage = await self._send(exchange.operation("explore", request, fields))
        return page

    async def explain(
        self, request: FetchRequest | None = None, /, id: str | None = None, **fields: Any
    ) -> Explanation:
        """How each hit of a fetch came to its place; of an id that did not come, why not."""
        explanation: Explanation = await self._send(exchange.explain(request, fields, id))
        return explanation

    # Bulk and snapshots.

    async def ingest(
        self,
        items: Iterable[StoreItem],
        *,
        batch_size: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> IngestReport:
        """Store any number of items in bounded memory; ``progress`` gets the number read."""
        last: dict[str, Any] = {}
        call = exchange.ingest(NDJSON, batch_size)
        async with self._stream(call, exchange.lines(items)) as response:
            async for line in response.aiter_lines():
                last = exchange.progress_line(line)
                if progress is not None:
                    progress(last["total"])
        return IngestReport.of(last)

    async def items(self, filter: MetaFilter | None = None) -> AsyncIterator[StoreItem]:
        """Every admitted item, whole, in order of storing."""
        async with self._stream(exchange.export(filter, NDJSON)) as response:
            async for line in response.aiter_lines():
                yield decode(line, StoreItem)

    async def snapshot(
        self,
        path: str,
        *,
        format: str | None = None,
        filter: MetaFilter | None = None,
    ) -> SnapshotReport:
        """Write a snapshot to a path below the server's snapshot folder."""
        call = exchange.snapshot(path, format=format, filter=filter)
        return SnapshotReport.of(await self._send(call, timeout=None))

    async def hydrate(self, path: str) -> HydrateReport:
        """Load a snapshot from a path below the server's snapshot folder."""
        call = exchange.posted("hydrate", path=path)
        return HydrateReport.of(await self._send(call, timeout=None))

    async def verify(self, path: str) -> dict[str, Any]:
        """Verify a snapshot below the server's snapshot folder without loading it."""
        call = exchange.posted("verify", path=path)
        report: dict[str, Any] = await self._send(call, timeout=None)
        return report

    async def stats(self) -> dict[str, Any]:
        """Counts and sizes of the store."""
        facts: dict[str, Any] = await self._send(exchange.stats())
        return facts

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    def __await__(self) -> Generator[Any, None, AsyncHttpEngine]:
        """Give itself, so that it can be awaited like an engine that is being opened."""
        yield from ()
        return self

    async def __aenter__(self) -> AsyncHttpEngine:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Inside.

    async def _send(self, call: Call, **options: Any) -> Any:
        try:
            response = await self._http.request(
                call.method,
                call.path,
                content=call.body or None,
                headers={"content-type": call.media_type} if call.body else None,
                **options,
            )
        except httpx.HTTPError as error:
            raise exchange.unreachable(self.url, error) from error
        return exchange.answer(call, response.status_code, response.content)

    @asynccontextmanager
    async def _stream(
        self, call: Call, content: Iterator[bytes] | None = None
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream(
                call.method,
                call.path,
                params=dict(call.params),
                content=None if content is None else _each(content),
                headers={"content-type": call.media_type} if content is not None else None,
                timeout=None,
            ) as response:
                if response.status_code >= 300:
                    exchange.raise_error(response.status_code, await response.aread())
                yield response
        except httpx.HTTPError as error:
            raise exchange.unreachable(self.url, error) from error


async def _each(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
