"""A server's engine as a MemoryEngine: every method is one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import httpx

from colmem.client import exchange
from colmem.client.exchange import Call
from colmem.client.operations import ARROW, NDJSON
from colmem.client.reports import HydrateReport, IngestReport, SnapshotReport
from colmem.client.streams import BytesReader
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


class HttpEngine:
    """An engine behind ``colmem serve``. Safe to use from many threads; close it after use."""

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = exchange.TIMEOUT_SECONDS
    ) -> None:
        self.url = exchange.base_url(url)
        self._descriptor: EngineDescriptor | None = None
        self._http = httpx.Client(
            base_url=self.url,
            headers=exchange.headers(token),
            timeout=timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            trust_env=False,
        )

    # The contract.

    def descriptor(self) -> EngineDescriptor:
        """What the engine is and offers; asked once."""
        if self._descriptor is None:
            self._descriptor = self._send(exchange.operation("descriptor"))
        return self._descriptor

    def health(self) -> EngineHealth:
        """Whether the engine serves; a server that does not answer is down."""
        try:
            health: EngineHealth = self._send(exchange.operation("health"))
        except ColmemError as error:
            return EngineHealth.down(error.message)
        return health

    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item, or replay the receipt of one already held."""
        receipt: StoreReceipt = self._send(exchange.operation("store", item))
        return receipt

    def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep 1 to 100 items; when one of them is invalid, none."""
        receipts: Receipts = self._send(exchange.operation("store_many", [*items]))
        return receipts

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank admitted items by a query, best first."""
        page: FetchPage = self._send(exchange.operation("fetch", request, fields))
        return page

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer a question from admitted items, citing them."""
        answer: RecallAnswer = self._send(exchange.operation("recall", request, fields))
        return answer

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through admitted items."""
        page: ListPage = self._send(exchange.operation("list", request, fields))
        return page

    def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Read items by id, in the order the ids are first named."""
        hits: Hits = self._send(exchange.operation("get", request, fields))
        return hits

    def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by id or by filter."""
        report: ForgetReport = self._send(exchange.operation("forget", target, fields))
        return report

    def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count admitted items along a facet."""
        page: ExplorePage = self._send(exchange.operation("explore", request, fields))
        return page

    def explain(
        self, request: FetchRequest | None = None, /, id: str | None = None, **fields: Any
    ) -> Explanation:
        """How each hit of a fetch came to its place; of an id that did not come, why not."""
        explanation: Explanation = self._send(exchange.explain(request, fields, id))
        return explanation

    # Bulk and snapshots.

    def ingest(
        self,
        items: Iterable[StoreItem],
        *,
        batch_size: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> IngestReport:
        """Store any number of items in bounded memory; ``progress`` gets the number read."""
        return self._ingest(exchange.ingest(NDJSON, batch_size), exchange.lines(items), progress)

    def ingest_arrow(
        self, data: Any, *, progress: Callable[[int], None] | None = None
    ) -> IngestReport:
        """Store the rows of Arrow data: columns named as fields, as ``Engine.ingest_arrow``."""
        from colmem.client.streams import arrow_chunks  # noqa: PLC0415 - needs pyarrow

        return self._ingest(exchange.ingest(ARROW), arrow_chunks(data), progress)

    def items(self, filter: MetaFilter | None = None) -> Iterator[StoreItem]:
        """Every admitted item, whole, in order of storing."""
        with self._stream(exchange.export(filter, NDJSON)) as response:
            for line in response.iter_lines():
                yield decode(line, StoreItem)

    def to_arrow(self, filter: MetaFilter | None = None, *, embeddings: bool = False) -> Any:
        """Stream the admitted items as a pyarrow.RecordBatchReader; read it to its end."""
        import pyarrow as pa  # noqa: PLC0415 - only here

        call = exchange.export(filter, ARROW, embeddings=embeddings)

        def chunks() -> Iterator[bytes]:
            with self._stream(call) as response:
                yield from response.iter_bytes()

        return pa.ipc.open_stream(BytesReader(chunks()))

    def snapshot(
        self,
        path: str,
        *,
        format: str | None = None,
        filter: MetaFilter | None = None,
    ) -> SnapshotReport:
        """Write a snapshot to a path below the server's snapshot folder."""
        call = exchange.snapshot(path, format=format, filter=filter)
        return SnapshotReport.of(self._send(call, timeout=None))

    def hydrate(self, path: str) -> HydrateReport:
        """Load a snapshot from a path below the server's snapshot folder."""
        return HydrateReport.of(self._send(exchange.posted("hydrate", path=path), timeout=None))

    def verify(self, path: str) -> dict[str, Any]:
        """Verify a snapshot below the server's snapshot folder without loading it."""
        report: dict[str, Any] = self._send(exchange.posted("verify", path=path), timeout=None)
        return report

    def stats(self) -> dict[str, Any]:
        """Counts and sizes of the store."""
        facts: dict[str, Any] = self._send(exchange.stats())
        return facts

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> HttpEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Inside.

    def _send(self, call: Call, **options: Any) -> Any:
        try:
            response = self._http.request(
                call.method,
                call.path,
                content=call.body or None,
                headers={"content-type": call.media_type} if call.body else None,
                **options,
            )
        except httpx.HTTPError as error:
            raise exchange.unreachable(self.url, error) from error
        return exchange.answer(call, response.status_code, response.content)

    @contextmanager
    def _stream(self, call: Call, content: Iterator[bytes] | None = None) -> Iterator[Any]:
        try:
            with self._http.stream(
                call.method,
                call.path,
                params=dict(call.params),
                content=content,
                headers={"content-type": call.media_type} if content is not None else None,
                timeout=None,
            ) as response:
                if response.status_code >= 300:
                    exchange.raise_error(response.status_code, response.read())
                yield response
        except httpx.HTTPError as error:
            raise exchange.unreachable(self.url, error) from error

    def _ingest(
        self, call: Call, content: Iterator[bytes], progress: Callable[[int], None] | None
    ) -> IngestReport:
        last: dict[str, Any] = {}
        with self._stream(call, content) as response:
            for line in response.iter_lines():
                last = exchange.progress_line(line)
                if progress is not None:
                    progress(last["total"])
        return IngestReport.of(last)
