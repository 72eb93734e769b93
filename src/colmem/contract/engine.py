"""The protocols an engine and an embedder keep, and the operations every engine can inherit.

``ListingDefaults`` builds ``store_many``, ``explore`` and ``get`` on ``store`` and ``list``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from colmem.contract.errors import InvalidRequest
from colmem.contract.filters import MetaFilter
from colmem.contract.items import StoreItem
from colmem.contract.limits import PAGE_ITEMS
from colmem.contract.requests import (
    EngineDescriptor,
    EngineHealth,
    ExplorePage,
    ExploreRequest,
    FacetBucket,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    GetRequest,
    Hit,
    ListPage,
    ListRequest,
    RecallAnswer,
    RecallRequest,
    StoreReceipt,
    validate_batch,
)

Request = TypeVar("Request")

# Inside a class with a method named `list`, that name is not the type.
Receipts: TypeAlias = list[StoreReceipt]
Hits: TypeAlias = list[Hit]


@runtime_checkable
class MemoryEngine(Protocol):
    """The ten operations; each takes its request, or the request's fields as keywords."""

    def descriptor(self) -> EngineDescriptor:
        """Say what the engine is and offers."""

    def health(self) -> EngineHealth:
        """Say whether it serves; never fails."""

    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item, or replay the receipt of one already held."""

    def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep 1 to 100 items; when one of them is invalid, none."""

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank admitted items by a query, best first."""

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer a question from admitted items, citing them."""

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through admitted items."""

    def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Read items by id, in the order the ids are first named."""

    def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by id or by filter."""

    def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count admitted items along a facet."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; ``key`` names the space, so equal keys mean comparable vectors."""

    @property
    def key(self) -> str:
        """Name of the vector space."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def embed(self, texts: Sequence[str], /) -> Any:
        """Embed texts: float32 (n, dim), C-order; one row for each text."""


def as_request(cls: type[Request], request: Request | None, fields: dict[str, Any]) -> Request:
    """Take a request as it is, or make it of its fields.

    Raises
    ------
    TypeError
        When both are given, a field is unknown, or a needed one is missing.
    InvalidRequest
        When the request is of another type, or a field's value is.
    """
    if request is None:
        return cls(**fields)
    if fields:
        raise TypeError(f"give a {cls.__name__} or its fields, not both")
    if not isinstance(request, cls):
        raise InvalidRequest(f"expected a {cls.__name__}, got {type(request).__name__}")
    return request


class ListingDefaults:
    """``store_many``, ``explore`` and ``get`` on top of ``store`` and ``list``."""

    @abstractmethod
    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item."""

    @abstractmethod
    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through admitted items."""

    def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Validate the whole batch, then store its items one by one."""
        validate_batch(items)
        return [self.store(item) for item in items]

    def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count along a facet over at most ``scan_limit`` listed items."""
        request = as_request(ExploreRequest, request, fields)
        request.validate()
        counts: Counter[str] = Counter()
        total = missing = 0
        cursor: str | None = None
        while True:
            limit = min(PAGE_ITEMS, request.scan_limit - total)
            page = self.list(ListRequest(filter=request.filter, limit=limit, cursor=cursor))
            for hit in page.items:
                values = request.facet.values(hit.kind, hit.meta)
                counts.update(values)
                missing += not values
            total += len(page.items)
            cursor = page.next_cursor
            if cursor is None or total >= request.scan_limit:
                break
        return explore_page(
            request, counts, total=total, missing=missing, truncated=cursor is not None
        )

    def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Page through the reach until every id is found."""
        request = as_request(GetRequest, request, fields)
        request.validate()
        wanted = dict.fromkeys(request.ids)
        found: dict[str, Hit] = {}
        filter = MetaFilter(reach=request.reach)
        cursor: str | None = None
        while True:
            page = self.list(ListRequest(filter=filter, limit=PAGE_ITEMS, cursor=cursor))
            found.update((hit.id, hit) for hit in page.items if hit.id in wanted)
            cursor = page.next_cursor
            if cursor is None or len(found) == len(wanted):
                return [found[id] for id in wanted if id in found]


def explore_page(
    request: ExploreRequest, counts: dict[str, int], *, total: int, missing: int, truncated: bool
) -> ExplorePage:
    """Order counted values as an explore answers them and cut them to the limit."""
    # Python compares strings by code point, which is the contract's tie order.
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ExplorePage(
        facet=request.facet,
        buckets=[FacetBucket(value, count) for value, count in ordered[: request.limit]],
        total=total,
        missing=missing,
        more_buckets=max(0, len(ordered) - request.limit),
        truncated=truncated,
    )
