"""Requests with their validation, answers, receipts, the engine's descriptor and its health.

What has a default for Python callers only is named in ``required_on_wire``; ``wire`` heeds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from colmem.contract.errors import InvalidRequest, Unsupported
from colmem.contract.filters import Facet, MetaFilter
from colmem.contract.items import StoreItem, to_f32
from colmem.contract.limits import (
    BUCKETS_MAX,
    EXPLORE_LIMIT_DEFAULT,
    FETCH_LIMIT_DEFAULT,
    IDS_PER_GET_MAX,
    ITEMS_PER_STORE_MANY_MAX,
    LIST_LIMIT_DEFAULT,
    SCAN_LIMIT_DEFAULT,
    SCAN_LIMIT_MAX,
    U64_MAX,
)
from colmem.contract.metadata import (
    MemoryMeta,
    check_optional_text,
    check_text,
    set_field,
    to_texts,
    wrong_type,
)
from colmem.contract.namespaces import Reach
from colmem.contract.scalars import is_blank
from colmem.contract.vocabulary import FetchMode, HealthState, ItemKind, member

U64 = Annotated[int, msgspec.Meta(ge=0)]


def _check_count(owner: object, *fields: str) -> None:
    for field in fields:
        value = getattr(owner, field)
        if type(value) is not int or not 0 <= value <= U64_MAX:
            raise wrong_type(owner, field, value, f"an integer from 0 to {U64_MAX}")


def _check_filter(owner: Any) -> None:
    if owner.filter is None:
        set_field(owner, "filter", MetaFilter())
    elif type(owner.filter) is not MetaFilter:
        raise wrong_type(owner, "filter", owner.filter, "a MetaFilter")


class RecallRequest(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A question to be answered from the items a filter admits."""

    required_on_wire: ClassVar[tuple[str, ...]] = ("limit",)

    question: str
    filter: MetaFilter = msgspec.field(default_factory=lambda: MetaFilter())
    limit: U64 = msgspec.field(default_factory=lambda: FETCH_LIMIT_DEFAULT)
    instructions: str | None = None

    def __post_init__(self) -> None:
        check_text(self, "question")
        check_optional_text(self, "instructions")
        _check_filter(self)
        _check_count(self, "limit")

    def validate(self) -> None:
        """Refuse a blank question, or a limit of 0 (InvalidRequest)."""
        if is_blank(self.question):
            raise InvalidRequest("recall question must not be empty")
        if self.limit == 0:
            raise InvalidRequest("recall limit must be positive")


class FetchRequest(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A query to rank the items a filter admits by."""

    required_on_wire: ClassVar[tuple[str, ...]] = ("mode", "limit")

    query: str
    mode: FetchMode = msgspec.field(default_factory=lambda: FetchMode.HYBRID)
    filter: MetaFilter = msgspec.field(default_factory=lambda: MetaFilter())
    limit: U64 = msgspec.field(default_factory=lambda: FETCH_LIMIT_DEFAULT)
    cursor: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            query: str,
            mode: FetchMode | str = ...,
            filter: MetaFilter = ...,
            limit: int = ...,
            cursor: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_text(self, "query")
        if type(self.mode) is not FetchMode:
            set_field(self, "mode", member(FetchMode, self.mode, "mode"))
        check_optional_text(self, "cursor")
        _check_filter(self)
        _check_count(self, "limit")

    def validate(self) -> None:
        """Refuse a blank query, or a limit of 0 (InvalidRequest); the mode gate comes before."""
        if is_blank(self.query):
            raise InvalidRequest("fetch query must not be empty")
        if self.limit == 0:
            raise InvalidRequest("fetch limit must be positive")


class ListRequest(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One page of the items a filter admits."""

    required_on_wire: ClassVar[tuple[str, ...]] = ("limit",)

    filter: MetaFilter = msgspec.field(default_factory=lambda: MetaFilter())
    limit: U64 = msgspec.field(default_factory=lambda: LIST_LIMIT_DEFAULT)
    cursor: str | None = None

    def __post_init__(self) -> None:
        check_optional_text(self, "cursor")
        _check_filter(self)
        _check_count(self, "limit")

    def validate(self) -> None:
        """Refuse a limit of 0 (InvalidRequest)."""
        if self.limit == 0:
            raise InvalidRequest("list limit must be positive")


class ForgetTarget(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """What to forget: exactly one of ids and a filter."""

    ids: list[str] | UnsetType = UNSET
    filter: MetaFilter | UnsetType = UNSET

    if TYPE_CHECKING:

        def __init__(
            self,
            ids: Sequence[str] | UnsetType | None = ...,
            filter: MetaFilter | UnsetType | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        for field in ("ids", "filter"):
            if getattr(self, field) is None:
                set_field(self, field, UNSET)
        if (self.ids is UNSET) == (self.filter is UNSET):
            raise InvalidRequest("a forget target must have exactly one of `ids` and `filter`")
        if self.ids is not UNSET:
            set_field(self, "ids", to_texts(self, "ids", self.ids))
        elif type(self.filter) is not MetaFilter:
            raise wrong_type(self, "filter", self.filter, "a MetaFilter")

    def validate(self) -> None:
        """Refuse an empty list of ids and an empty filter (InvalidRequest)."""
        if isinstance(self.filter, MetaFilter):
            if self.filter.is_empty():
                raise InvalidRequest("forget refuses an empty filter, which would mean everything")
        elif not self.ids:
            raise InvalidRequest("forget needs at least one id")


class ExploreRequest(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Count the items a filter admits along a facet."""

    required_on_wire: ClassVar[tuple[str, ...]] = ("limit",)

    facet: Facet
    filter: MetaFilter = msgspec.field(default_factory=lambda: MetaFilter())
    limit: U64 = EXPLORE_LIMIT_DEFAULT
    scan_limit: U64 = SCAN_LIMIT_DEFAULT

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            facet: Facet | str,
            filter: MetaFilter = ...,
            limit: int = ...,
            scan_limit: int = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.facet) is not Facet:
            set_field(self, "facet", member(Facet, self.facet, "facet"))
        _check_filter(self)
        _check_count(self, "limit", "scan_limit")

    def validate(self) -> None:
        """Refuse limits out of their range (InvalidRequest)."""
        if not 1 <= self.limit <= BUCKETS_MAX:
            raise InvalidRequest(f"explore limit must be between 1 and {BUCKETS_MAX}")
        if not 1 <= self.scan_limit <= SCAN_LIMIT_MAX:
            raise InvalidRequest(f"explore scan_limit must be between 1 and {SCAN_LIMIT_MAX}")


class GetRequest(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Items by id, as far as a reach sees them."""

    ids: list[str]
    reach: Reach | None = None

    if TYPE_CHECKING:

        def __init__(self, ids: Sequence[str], reach: Reach | None = ...) -> None: ...

    def __post_init__(self) -> None:
        set_field(self, "ids", to_texts(self, "ids", self.ids))
        if self.reach is not None and type(self.reach) is not Reach:
            raise wrong_type(self, "reach", self.reach, "a Reach or None")

    def validate(self) -> None:
        """Refuse no ids, too many of them, and blank ones (InvalidRequest)."""
        if not 1 <= len(self.ids) <= IDS_PER_GET_MAX:
            raise InvalidRequest(f"get takes between 1 and {IDS_PER_GET_MAX} ids")
        if any(map(is_blank, self.ids)):
            raise InvalidRequest("an id must not be blank")


def validate_batch(items: Sequence[StoreItem]) -> None:
    """Refuse a ``store_many`` of a wrong size, or with an invalid item: the first one's error."""
    if not 1 <= len(items) <= ITEMS_PER_STORE_MANY_MAX:
        raise InvalidRequest(f"store_many takes between 1 and {ITEMS_PER_STORE_MANY_MAX} items")
    for item in items:
        item.validate()


class Hit(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An item as reads return it; ``confidence`` is set for learnings only."""

    id: str
    kind: ItemKind
    text: str
    meta: MemoryMeta
    score: float
    confidence: float | None = None

    def __post_init__(self) -> None:
        if type(self.kind) is not ItemKind:
            set_field(self, "kind", member(ItemKind, self.kind, "kind"))
        set_field(self, "score", to_f32(self, "score", self.score))
        if self.confidence is not None:
            set_field(self, "confidence", to_f32(self, "confidence", self.confidence))


class Citation(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An item an answer rests on, with the part of its text that was used."""

    id: str
    kind: ItemKind
    snippet: str
    meta: MemoryMeta
    score: float | None = None

    def __post_init__(self) -> None:
        if type(self.kind) is not ItemKind:
            set_field(self, "kind", member(ItemKind, self.kind, "kind"))
        if self.score is not None:
            set_field(self, "score", to_f32(self, "score", self.score))


class StoreReceipt(msgspec.Struct, frozen=True, gc=False):
    """The id of a stored item, and whether it was held already."""

    id: str
    replayed: bool


class RecallAnswer(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An answer with what it cites; ``model`` only when a model wrote it."""

    answer: str
    citations: list[Citation] = msgspec.field(default_factory=lambda: list[Citation]())
    model: str | None = None


class FetchPage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Hits, best first; ``next_cursor`` when more remain."""

    hits: list[Hit]
    next_cursor: str | None = None


class ListPage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Items with score 0; ``next_cursor`` when more remain."""

    items: list[Hit]
    next_cursor: str | None = None


class ForgetReport(msgspec.Struct, frozen=True, gc=False):
    """How many items were removed."""

    forgotten: U64


class FacetBucket(msgspec.Struct, frozen=True, gc=False):
    """A value of a facet and how often it occurs."""

    value: str
    count: U64


class ExplorePage(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Buckets by count descending, then value by code point; how much they leave out."""

    facet: Facet
    buckets: list[FacetBucket]
    total: U64
    missing: U64
    more_buckets: U64
    truncated: bool


class EngineDescriptor(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What an engine is and offers; never changes while it lives."""

    id: str
    label: str
    description: str
    hosted: bool = False
    needs_endpoint: bool = False
    needs_key: bool = False
    default_endpoint: str | None = None
    fetch_modes: list[FetchMode]

    def __post_init__(self) -> None:
        modes = [member(FetchMode, mode, "fetch_modes") for mode in self.fetch_modes]
        set_field(self, "fetch_modes", modes)

    def supports(self, mode: FetchMode | str) -> bool:
        """Whether the engine offers a fetch mode."""
        return mode in self.fetch_modes

    def ensure_mode(self, mode: FetchMode | str) -> None:
        """Refuse a fetch mode the engine does not declare (Unsupported)."""
        if mode not in self.fetch_modes:
            raise Unsupported(f"engine `{self.id}` does not offer {mode} fetch")


class EngineHealth(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Whether an engine serves, and what ails it."""

    state: HealthState
    reason: str | None = None

    @classmethod
    def ok(cls) -> EngineHealth:
        """Say all is well."""
        return cls(HealthState.OK)

    @classmethod
    def degraded(cls, reason: str) -> EngineHealth:
        """Say it serves, with a fault."""
        return cls(HealthState.DEGRADED, reason)

    @classmethod
    def down(cls, reason: str) -> EngineHealth:
        """Say it does not serve."""
        return cls(HealthState.DOWN, reason)

    @property
    def is_serving(self) -> bool:
        """Whether calls can succeed."""
        return self.state is not HealthState.DOWN
