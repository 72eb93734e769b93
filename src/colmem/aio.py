"""Engines whose operations are coroutines: a store of this process, or one behind a server.

A store's calls run in threads of their own; the engine is safe for that. Both kinds can be awaited,
or entered with ``async with``, and open on first use otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import colmem
from colmem.client import client
from colmem.contract import (
    EngineDescriptor,
    EngineHealth,
    ExplorePage,
    FetchPage,
    ForgetReport,
    Hit,
    ListPage,
    MetaFilter,
    RecallAnswer,
    StoreItem,
    StoreReceipt,
)
from colmem.explanation import Explanation

if TYPE_CHECKING:
    from colmem.client.asynchronous import AsyncHttpEngine
    from colmem.engine import Engine

THREADS: Final = 4
"""Calls of one engine that run at the same time."""

Value = TypeVar("Value")
# The method `list` hides the type of that name inside the class.
Receipts = list[StoreReceipt]
Hits = list[Hit]


class AsyncEngine:
    """A store of this process; ``engine`` is the engine itself, once open."""

    def __init__(self, opener: Callable[[], Engine]) -> None:
        self._opener = opener
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="colmem-aio")
        self._opening: asyncio.Task[Engine] | None = None

    async def opened(self) -> Engine:
        """The engine itself, opened when it was not."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def descriptor(self) -> EngineDescriptor:
        """What the engine is and which fetch modes it serves."""
        return await self._call(lambda engine: engine.descriptor())

    async def health(self) -> EngineHealth:
        """Whether the engine serves; never fails."""
        return await self._call(lambda engine: engine.health())

    async def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item; durable and readable on return."""
        return await self._call(lambda engine: engine.store(item))

    async def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep 1 to 100 items in one atomic write; receipts in item order."""
        return await self._call(lambda engine: engine.store_many(items))

    async def fetch(self, *request: Any, **fields: Any) -> FetchPage:
        """Rank the admitted items; takes a FetchRequest or its fields."""
        return await self._call(lambda engine: engine.fetch(*request, **fields))

    async def recall(self, *request: Any, **fields: Any) -> RecallAnswer:
        """Answer a question with citations; takes a RecallRequest or its fields."""
        return await self._call(lambda engine: engine.recall(*request, **fields))

    async def list(self, *request: Any, **fields: Any) -> ListPage:
        """Page through the admitted items; takes a ListRequest or its fields."""
        return await self._call(lambda engine: engine.list(*request, **fields))

    async def get(self, *request: Any, **fields: Any) -> Hits:
        """Read items by id; takes a GetRequest or its fields."""
        return await self._call(lambda engine: engine.get(*request, **fields))

    async def forget(self, *target: Any, **fields: Any) -> ForgetReport:
        """Remove items; takes a ForgetTarget or its fields."""
        return await self._call(lambda engine: engine.forget(*target, **fields))

    async def explore(self, *request: Any, **fields: Any) -> ExplorePage:
        """Count the admitted items along a facet; takes an ExploreRequest or its fields."""
        return await self._call(lambda engine: engine.explore(*request, **fields))

    async def explain(self, *request: Any, **fields: Any) -> Explanation:
        """How each hit of a fetch came to its place; see ``Engine.explain``."""
        return await self._call(lambda engine: engine.explain(*request, **fields))

    async def ingest(self, items: Iterable[StoreItem], **options: Any) -> Any:
        """Store any number of items in bounded memory; see ``Engine.ingest``."""
        return await self._call(lambda engine: engine.ingest(items, **options))

    async def ingest_arrow(self, data: Any, **options: Any) -> Any:
        """Store the rows of Arrow data; see ``Engine.ingest_arrow``."""
        return await self._call(lambda engine: engine.ingest_arrow(data, **options))

    async def to_arrow(self, *args: Any, **options: Any) -> Any:
        """A reader of the admitted items; see ``Engine.to_arrow``."""
        return await self._call(lambda engine: engine.to_arrow(*args, **options))

    async def sql(self, query: str, params: Sequence[Any] | None = None) -> Any:
        """Answer one SELECT as a pyarrow.Table; see ``Engine.sql``."""
        return await self._call(lambda engine: engine.sql(query, params))

    async def snapshot(self, path: str | Path, **options: Any) -> Any:
        """Write a snapshot; see ``Engine.snapshot``."""
        return await self._call(lambda engine: engine.snapshot(path, **options))

    async def hydrate(self, path: str | Path, **options: Any) -> Any:
        """Verify and load a snapshot; see ``Engine.hydrate``."""
        return await self._call(lambda engine: engine.hydrate(path, **options))

    async def records(self, filter: MetaFilter | None = None) -> AsyncIterator[dict[str, Any]]:
        """The snapshot record of every admitted item, in order of id."""
        source = await self._call(lambda engine: engine.records(filter))
        end = object()
        while (record := await self._run(next, source, end)) is not end:
            yield record

    async def reembed(self, embedder: Any, **options: Any) -> None:
        """Change the store's embedder; see ``Engine.reembed``."""
        await self._call(lambda engine: engine.reembed(embedder, **options))

    async def compact(self, **options: Any) -> None:
        """Reclaim the space of forgotten and expired items."""
        await self._call(lambda engine: engine.compact(**options))

    async def check(self, *, repair: bool = False) -> Any:
        """Whether the parts of the store agree; see ``Engine.check``."""
        return await self._call(lambda engine: engine.check(repair))

    async def stats(self) -> dict[str, Any]:
        """Counts and sizes of the store, by part."""
        return await self._call(lambda engine: engine.stats())

    async def close(self) -> None:
        """Let go of the store; idempotent."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._opening.exception() is None:
                await self._run(self._opening.result().close)
            self._opening = None
        self._threads.shutdown(wait=False)

    def __await__(self) -> Generator[Any, None, AsyncEngine]:
        """Open the store and give this engine."""
        yield from self.opened().__await__()
        return self

    async def __aenter__(self) -> AsyncEngine:
        await self.opened()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open(self) -> Engine:
        return await self._run(self._opener)

    async def _call(self, function: Callable[[Engine], Value]) -> Value:
        engine = await self.opened()
        return await self._run(function, engine)

    async def _run(self, function: Callable[..., Value], *args: Any) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


def open(path: str | Path, **options: Any) -> AsyncEngine:
    """Open a store as ``colmem.open`` does, with coroutines for operations."""
    return AsyncEngine(partial(colmem.open, path, **options))


def connect(url: str, *, token: str | None = None, timeout: float | None = None) -> AsyncHttpEngine:
    """Use the engine behind ``colmem serve`` as ``colmem.connect`` does, with coroutines."""
    options = {} if timeout is None else {"timeout": timeout}
    made: AsyncHttpEngine = client("AsyncHttpEngine")(url, token=token, **options)
    return made
