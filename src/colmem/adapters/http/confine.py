"""An engine seen through a scope: reads within its reach, writes at or below its place.

Whatever a request asks for is cut down to the scope before the engine sees it. Cursors are sealed,
for their positions count what others store. Nothing here ranks, reads or writes by itself.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256, shake_256
from typing import Any, Final

import msgspec

from colmem.adapters.http.errors import Forbidden
from colmem.contract import (
    ROOT,
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
    InvalidRequest,
    ListPage,
    ListRequest,
    MemoryEngine,
    MetaFilter,
    Namespace,
    Reach,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
    Timestamp,
    as_request,
    is_blank,
    validate_batch,
)
from colmem.contract.limits import IDS_PER_GET_MAX
from colmem.explanation import Explanation, WhyNot
from colmem.tools import ToolScope

_TAG_BYTES: Final = 16
_NEVER: Final = Timestamp.parse("1970-01-01T00:00:00Z")

# The method `list` hides the type of that name inside the class.
Receipts = list[StoreReceipt]
Hits = list[Hit]


class ConfinedEngine:
    """A MemoryEngine that can do no more than a scope allows."""

    def __init__(self, engine: MemoryEngine, scope: ToolScope) -> None:
        self.engine = engine
        self.scope = scope
        self._seal = Seal()
        # Ranked as if nothing were stored elsewhere, where the engine can do so.
        self._ranked: Any = engine
        if scope.reach is not None and hasattr(engine, "within"):
            self._ranked = engine.within(scope.reach)

    def descriptor(self) -> EngineDescriptor:
        """What the engine is and offers."""
        return self.engine.descriptor()

    def health(self) -> EngineHealth:
        """Whether the engine serves."""
        return self.engine.health()

    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item at the place."""
        self._need_writes("store")
        item.validate()
        return self.engine.store(self.placed(item))

    def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep items at the place."""
        self._need_writes("store_many")
        validate_batch(items)
        return self.engine.store_many(
            [self.placed(item, f"$[{index}]") for index, item in enumerate(items)]
        )

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank what is admitted and within reach."""
        request = as_request(FetchRequest, request, fields)
        self.engine.descriptor().ensure_mode(request.mode)
        request.validate()
        page = self._ranked.fetch(self._opened(request))
        return FetchPage(page.hits, self._sealed(page.next_cursor))

    def explain(
        self, request: FetchRequest | None = None, /, id: str | None = None, **fields: Any
    ) -> Explanation:
        """Explain a fetch of what is within reach; an id outside it is as one not stored."""
        request = as_request(FetchRequest, request, fields)
        self.engine.descriptor().ensure_mode(request.mode)
        request.validate()
        engine: Any = self.engine
        own = self.scope.reach
        known = id is not None and not is_blank(id) and engine.get(GetRequest([id], own))
        explained: Explanation = self._ranked.explain(self._opened(request), id if known else None)
        if id is not None and not known:
            explained = msgspec.structs.replace(explained, why_not=WhyNot.not_stored(id))
        if self._reach(request.filter.reach, "$.filter.reach") is NOWHERE:
            plan = msgspec.structs.replace(explained.filter, within=0, clauses={})
            explained = msgspec.structs.replace(explained, filter=plan)
        return explained

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer from what is admitted and within reach."""
        request = as_request(RecallRequest, request, fields)
        request.validate()
        confined = msgspec.structs.replace(request, filter=self.confined(request.filter))
        answer: RecallAnswer = self._ranked.recall(confined)
        return answer

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through what is admitted and within reach."""
        request = as_request(ListRequest, request, fields)
        request.validate()
        page = self.engine.list(self._opened(request))
        return ListPage(page.items, self._sealed(page.next_cursor))

    def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Read items by id, as far as they are within reach."""
        request = as_request(GetRequest, request, fields)
        request.validate()
        reach = self._reach(request.reach, "$.reach")
        return [] if reach is NOWHERE else self.engine.get(GetRequest(request.ids, reach))

    def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by id or filter, as far as they are within reach."""
        self._need_writes("forget")
        target = as_request(ForgetTarget, target, fields)
        target.validate()
        if isinstance(target.filter, MetaFilter):
            return self.engine.forget(ForgetTarget(filter=self.confined(target.filter)))
        ids = [id for id in dict.fromkeys(target.ids or ()) if not is_blank(id)]
        seen: Any = []
        for start in range(0, len(ids), IDS_PER_GET_MAX):
            asked = GetRequest(ids[start : start + IDS_PER_GET_MAX], self.scope.reach)
            seen += [hit.id for hit in self.engine.get(asked)]
        return self.engine.forget(ForgetTarget(ids=seen)) if seen else ForgetReport(0)

    def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count what is admitted and within reach."""
        request = as_request(ExploreRequest, request, fields)
        request.validate()
        return self.engine.explore(
            msgspec.structs.replace(request, filter=self.confined(request.filter))
        )

    def placed(self, item: StoreItem, path: str = "$") -> StoreItem:
        """An item as the scope stores it; see ``place_of``."""
        at = item.meta.namespace
        place = self.place_of(at, f"{path}.meta.namespace")
        if place == at:
            return item
        meta = msgspec.structs.replace(item.meta, namespace=place)
        placed: StoreItem = item.replace(meta=meta)
        return placed

    def place_of(self, at: Namespace, path: str) -> Namespace:
        """Where an item of a namespace is stored; one that names none goes to the place.

        Raises
        ------
        Forbidden
            When it names one that is not the place, nor below it and within reach.
        """
        place, reach = self.scope.place, self.scope.reach
        if at.is_root or at == place:
            return place
        if place.contains(at) and (reach is None or reach.admits(at)):
            return at
        raise Forbidden(f"namespace `{at}` is not within this token's place `{place}`", path=path)

    def placed_all(self, items: Iterable[StoreItem]) -> Iterator[StoreItem]:
        """Items as the scope stores them."""
        for index, item in enumerate(items):
            yield self.placed(item, f"$[{index}]")

    def confined(self, filter: MetaFilter, path: str = "$.filter.reach") -> MetaFilter:
        """A filter cut down to the reach; where they share nothing, one that admits nothing."""
        reach = self._reach(filter.reach, path)
        if reach is NOWHERE:
            # No instant is both at or after another and before it.
            return filter.replace(observed_after=_NEVER, observed_before=_NEVER)
        return filter.replace(reach=reach)

    def _reach(self, asked: Reach | None, path: str) -> Reach | None:
        own = self.scope.reach
        if own is None:
            return asked
        return own if asked is None else intersection(asked, own, path)

    def _need_writes(self, operation: str) -> None:
        if not self.scope.writes:
            raise Forbidden(f"{operation} is not offered: this token is read-only")

    def _opened(self, request: Any) -> Any:
        cursor = None if request.cursor is None else self._seal.open(request.cursor)
        filter = self.confined(request.filter)
        return msgspec.structs.replace(request, cursor=cursor, filter=filter)

    def _sealed(self, cursor: str | None) -> str | None:
        return None if cursor is None else self._seal.close(cursor)


NOWHERE: Final = Reach(at=ROOT, inherit=False)
"""Stands for no node at all, by identity: a reach always sees some node."""


def intersection(asked: Reach, own: Reach, path: str = "$.reach") -> Reach:
    """The nodes that both see, NOWHERE when there are none.

    Raises
    ------
    InvalidRequest
        When they are some, but not all, of a node's ancestors: no reach says that.
    """
    if asked.at == own.at:
        return Reach(
            at=own.at,
            inherit=asked.inherit and own.inherit,
            descendants=asked.descendants and own.descendants,
        )
    if own.at.contains(asked.at):
        upper, lower = own, asked
    elif asked.at.contains(own.at):
        upper, lower = asked, own
    elif asked.inherit and own.inherit:
        return Reach.of(_shared(asked.at, own.at))
    else:
        return NOWHERE
    # The lower node lies below the upper one.
    if not upper.descendants:
        return Reach(at=upper.at, inherit=upper.inherit) if lower.inherit else NOWHERE
    if not lower.inherit or upper.inherit or upper.at.is_root:
        return Reach(at=lower.at, inherit=lower.inherit, descendants=lower.descendants)
    raise InvalidRequest(
        f"a reach from `{asked.at}` that inherits goes beyond `{upper.at}`, where this token's "
        "ends; set `inherit` to false",
        path=path,
    )


def _shared(one: Namespace, other: Namespace) -> Namespace:
    chains = zip([*one.ancestors(), one], [*other.ancestors(), other], strict=False)
    return [a for a, b in chains if a == b][-1]


class Seal:
    """Encrypts and signs cursors under a key that lives as long as the process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def close(self, cursor: str) -> str:
        """Seal a cursor; the same one always gives the same text."""
        data = cursor.encode()
        tag = self._tag(data)
        return base64.urlsafe_b64encode(tag + self._mix(tag, data)).decode().rstrip("=")

    def open(self, text: str) -> str:
        """The cursor of a sealed text.

        Raises
        ------
        InvalidRequest
            When it was not sealed here.
        """
        try:
            raw = base64.b64decode(text + "=="[: -len(text) % 4], b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        tag, data = raw[:_TAG_BYTES], self._mix(raw[:_TAG_BYTES], raw[_TAG_BYTES:])
        if not hmac.compare_digest(tag, self._tag(data)):
            raise InvalidRequest(
                f"unknown cursor `{text[:64]}`; pass next_cursor of the page before, with the same "
                "filter, query and mode"
            )
        return data.decode()

    def _tag(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, sha256)[:_TAG_BYTES]

    def _mix(self, tag: bytes, data: bytes) -> bytes:
        stream = shake_256(self._key + tag).digest(len(data))
        return bytes(a ^ b for a, b in zip(data, stream, strict=True))
