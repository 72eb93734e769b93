"""Engines that are wrong in one way each, and the check meant to catch it.

FAULTS maps a name to the engine's class and the check; the suite must fail in that very check.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from colmem.contract import (
    EngineHealth,
    ExploreRequest,
    FacetBucket,
    FetchMode,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    GetRequest,
    Hit,
    InvalidRequest,
    ItemKind,
    ListPage,
    ListRequest,
    MetaFilter,
    Namespace,
    NotFound,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
    explore_page,
)
from colmem.reference import ReferenceEngine, _page, as_hit

FAULTS: dict[str, tuple[type[ReferenceEngine], str]] = {}
ERRORS = {"get errors on unknown ids", "store fails"}
"""Faults that show as an error of the engine rather than as a wrong answer."""

replace = msgspec.structs.replace


def fault(name: str, *, caught_by: str) -> Callable[[type[ReferenceEngine]], Any]:
    def register(cls: type[ReferenceEngine]) -> type[ReferenceEngine]:
        assert name not in FAULTS
        FAULTS[name] = (cls, caught_by)
        return cls

    return register


class Broken(ReferenceEngine):
    """A reference engine whose answers pass through hooks."""

    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return hits

    def change_filter(self, filter: MetaFilter) -> MetaFilter:
        return filter

    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        return filter.matches(kind, meta)

    def _admitted(self, filter: MetaFilter) -> list[Hit]:
        filter = self.change_filter(filter)
        hits = super()._admitted(MetaFilter())
        return self.change_hits([hit for hit in hits if self.admits(filter, hit.kind, hit.meta)])


# The faults of the contract's table.


@fault("fetch drops the filter", caught_by="fetch_filters")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        return super().fetch(replace(request, filter=MetaFilter()))


@fault("receipts never say replayed", caught_by="replay")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        return replace(super().store(item), replayed=False)


@fault("empty forgets answer 0", caught_by="empty_forget")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        try:
            return super().forget(target)
        except InvalidRequest:
            return ForgetReport(0)


@fault("declares only hybrid but serves every mode", caught_by="unsupported_modes")
class _(ReferenceEngine):
    def descriptor(self) -> Any:
        return replace(super().descriptor(), fetch_modes=[FetchMode.HYBRID])

    def fetch(self, request: FetchRequest) -> FetchPage:
        return super().fetch(replace(request, mode=FetchMode.HYBRID))


@fault("citations carry unknown ids", caught_by="recall")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        answer = super().recall(request)
        citations = [replace(citation, id="unknown") for citation in answer.citations]
        return replace(answer, citations=citations)


@fault("health says down", caught_by="health")
class _(ReferenceEngine):
    def health(self) -> EngineHealth:
        return EngineHealth.down("broken on purpose")


@fault("every bucket one short", caught_by="explore")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        page = super().explore(request)
        buckets = [FacetBucket(b.value, b.count - 1) for b in page.buckets]
        return replace(page, buckets=buckets)


@fault("get answers in its own order", caught_by="get")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        return sorted(super().get(request), key=lambda hit: list(self._held).index(hit.id))


@fault("store_many receipts reversed", caught_by="store_many")
class _(ReferenceEngine):
    def store_many(self, items: Any) -> Any:
        return super().store_many(items)[::-1]


@fault("list ignores the reach", caught_by="namespaces")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        return super().list(replace(request, filter=request.filter.replace(reach=None)))


@fault("get ignores the reach", caught_by="namespaces")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        return super().get(GetRequest(request.ids))


# Faults of listing.


@fault("a cursor that repeats", caught_by="round_trip")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        page = super().list(replace(request, cursor=None))
        return replace(page, next_cursor="again")


@fault("a listing score of 0.1", caught_by="round_trip")
class _(Broken):
    def list(self, request: ListRequest) -> ListPage:
        page = super().list(request)
        return replace(page, items=[replace(hit, score=0.1) for hit in page.items])


@fault("the same item listed twice", caught_by="round_trip")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        hits = [hit for hit in self._admitted(request.filter) for _ in range(2)]
        return ListPage(*_page(hits, request.limit, request.cursor))


@fault("a page longer than its limit", caught_by="list_pages")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        if request.limit == 3:
            return super().list(replace(request, limit=4))
        return super().list(request)


@fault("pages of three skip an item", caught_by="list_pages")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        page = super().list(request)
        return replace(page, items=page.items[:-1]) if request.limit == 3 else page


@fault("unknown cursors start over", caught_by="unknown_cursor")
class _(ReferenceEngine):
    def list(self, request: ListRequest) -> ListPage:
        try:
            return super().list(request)
        except InvalidRequest:
            if request.cursor is None:
                raise
            return super().list(replace(request, cursor=None))


@fault("a fetch takes unknown cursors", caught_by="unknown_cursor")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        if request.cursor is not None and not request.cursor.isdecimal():
            request = replace(request, cursor=None)
        return super().fetch(request)


# Faults of what is kept.


class Loses(Broken):
    changes: ClassVar[dict[str, Any]] = {}

    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [replace(hit, meta=hit.meta.replace(**self.changes)) for hit in hits]


@fault("metadata loses the tags", caught_by="round_trip")
class _(Loses):
    changes: ClassVar[dict[str, Any]] = {"tags": []}


@fault("metadata loses the commit", caught_by="metadata")
class _(Loses):
    changes: ClassVar[dict[str, Any]] = {"commit": None}


@fault("metadata loses the turns", caught_by="metadata")
class _(Loses):
    changes: ClassVar[dict[str, Any]] = {"turns": None}


@fault("metadata loses repeated tags", caught_by="metadata")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [
            replace(hit, meta=hit.meta.replace(tags=list(dict.fromkeys(hit.meta.tags))))
            for hit in hits
        ]


@fault("times are kept to the microsecond", caught_by="metadata")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        changed = []
        for hit in hits:
            at = hit.meta.observed_at
            if at is not None:
                at = type(at)(at.seconds, at.nanos // 1000 * 1000)
            changed.append(replace(hit, meta=hit.meta.replace(observed_at=at)))
        return changed


@fault("empty strings become unset", caught_by="metadata")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [replace(hit, meta=hit.meta.replace(folder=hit.meta.folder or None)) for hit in hits]


@fault("texts are stripped", caught_by="round_trip")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [replace(hit, text=hit.text.removeprefix("# Round trip")) for hit in hits]


@fault("texts end at a NUL", caught_by="metadata")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [replace(hit, text=hit.text.split("\x00")[0]) for hit in hits]


@fault("no confidence", caught_by="round_trip")
class _(Broken):
    def change_hits(self, hits: list[Hit]) -> list[Hit]:
        return [replace(hit, confidence=None) for hit in hits]


@fault("replay overwrites the first copy", caught_by="observed_at")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        receipt = super().store(item)
        self._held[receipt.id] = as_hit(receipt.id, item)
        return receipt


@fault("the fingerprint counts observed_at", caught_by="observed_at")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        item.validate()
        id = item.fingerprint()
        held = self._held.get(id)
        if held is not None and held.meta.observed_at != item.meta.observed_at:
            id = id[::-1]
        is_held = id in self._held
        self._held.setdefault(id, as_hit(id, item))
        return StoreReceipt(id, is_held)


@fault("the fingerprint forgets the title", caught_by="distinct")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        if item.kind == ItemKind.DOCUMENT and item.title == "":
            for id, held in self._held.items():
                if held.kind == ItemKind.DOCUMENT and held.text == item.render_text():
                    return StoreReceipt(id, True)
        return super().store(item)


@fault("invalid items are stored", caught_by="item_validation")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        if item.kind == ItemKind.LEARNING and item.text.strip():
            item = item.replace(confidence=min(1.0, max(0.0, item.confidence)))
        return super().store(item)


@fault("store_many stores a prefix of an invalid batch", caught_by="refused_batch")
class _(ReferenceEngine):
    def store_many(self, items: Any) -> Any:
        if not 1 <= len(items) <= 100:
            return super().store_many(items)
        return [self.store(item) for item in items]


@fault("store_many takes any number of items", caught_by="refused_batch")
class _(ReferenceEngine):
    def store_many(self, items: Any) -> Any:
        if not items:
            raise InvalidRequest("store_many takes between 1 and 100 items")
        for item in items:
            item.validate()
        return [self.store(item) for item in items]


@fault("a repeat in a batch is not a replay", caught_by="batch_repeats")
class _(ReferenceEngine):
    def store_many(self, items: Any) -> Any:
        held = set(self._held)
        return [replace(r, replayed=r.id in held) for r in super().store_many(items)]


@fault("store fails", caught_by="round_trip")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        raise OSError("the disk is full")


# Faults of forget.


@fault("forget by ids is confined to the root", caught_by="forget_ids")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        if isinstance(target.ids, list) and target.ids:
            ids = [i for i in target.ids if i in self._held]
            ids = [i for i in ids if self._held[i].meta.namespace.is_root]
            return super().forget(ForgetTarget(ids=ids)) if ids else ForgetReport(0)
        return super().forget(target)


@fault("forget counts every id it is given", caught_by="forget_by_id")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        report = super().forget(target)
        return ForgetReport(len(target.ids)) if isinstance(target.ids, list) else report


@fault("forget counts repeated ids", caught_by="forget_ids")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        held = set(self._held)
        report = super().forget(target)
        if isinstance(target.ids, list):
            return ForgetReport(sum(id in held for id in target.ids))
        return report


@fault("forget removes nothing", caught_by="forget_by_id")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        held = dict(self._held)
        report = super().forget(target)
        if isinstance(target.ids, list):
            self._held = held
        return report


class ForgetIgnores(ReferenceEngine):
    field = ""

    def forget(self, target: ForgetTarget) -> ForgetReport:
        if isinstance(target.filter, MetaFilter) and target.filter.workspace:
            default = getattr(MetaFilter(), self.field)
            target = ForgetTarget(filter=target.filter.replace(**{self.field: default}))
        return super().forget(target)


FORGET_FIELDS = [
    *("folder", "file_path", "language", "repo", "commit", "url", "thread_id", "turns"),
    *("agent_id", "tool_call", "source_id", "kinds", "sources"),
    *("observed_after", "observed_before"),
]
for _field in FORGET_FIELDS:
    fault(f"forget by filter ignores {_field}", caught_by="forget_filters")(
        type("_", (ForgetIgnores,), {"field": _field})
    )
fault("forget by filter ignores tags_any", caught_by="forget_by_filter")(
    type("_", (ForgetIgnores,), {"field": "tags_any"})
)
fault("forget by filter ignores the reach", caught_by="namespaces")(
    type("_", (ForgetIgnores,), {"field": "reach"})
)


@fault("a forgotten item is remembered as held", caught_by="forget_then_store")
class _(ReferenceEngine):
    def __init__(self) -> None:
        super().__init__()
        self.ever: set[str] = set()

    def store(self, item: StoreItem) -> StoreReceipt:
        receipt = super().store(item)
        was_known = receipt.id in self.ever
        self.ever.add(receipt.id)
        return replace(receipt, replayed=was_known)


# Faults of get.


@fault("get returns duplicates", caught_by="get_repeats")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        found = {hit.id: hit for hit in super().get(request)}
        return [found[id] for id in request.ids if id in found]


@fault("get errors on unknown ids", caught_by="get")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        for id in request.ids:
            if id not in self._held:
                raise NotFound(f"no item {id}")
        return super().get(request)


@fault("get answers the last mention", caught_by="get_repeats")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        request.validate()
        ids = list(dict.fromkeys(reversed(request.ids)))[::-1]
        return super().get(replace(request, ids=ids))


@fault("get takes blank ids", caught_by="request_validation")
class _(ReferenceEngine):
    def get(self, request: GetRequest) -> list[Hit]:
        ids = [id for id in request.ids if id.strip()]
        return super().get(replace(request, ids=ids))


# Faults of filters.


@fault("observed_before is inclusive", caught_by="time_bounds")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        if filter.observed_before is not None and meta.observed_at == filter.observed_before:
            filter = filter.replace(observed_before=None)
        return filter.matches(kind, meta)


@fault("observed_after is exclusive", caught_by="time_bounds")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        at = meta.observed_at
        return filter.matches(kind, meta) and (at is None or at != filter.observed_after)


@fault("undated items match a time", caught_by="fetch_filters")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        if meta.observed_at is None:
            filter = filter.replace(observed_after=None, observed_before=None)
        return filter.matches(kind, meta)


@fault("path prefix without the boundary", caught_by="paths")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        if filter.folder and (meta.folder or "").startswith(filter.folder.rstrip("/")):
            filter = filter.replace(folder=None)
        return filter.matches(kind, meta)


@fault("a path is matched exactly", caught_by="fetch_filters")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        wanted = filter.folder
        return filter.matches(kind, meta) and wanted in (None, meta.folder)


@fault("an empty path is no condition", caught_by="paths")
class _(Broken):
    def change_filter(self, filter: MetaFilter) -> MetaFilter:
        return filter.replace(folder=filter.folder or None)


@fault("strings match without regard to case", caught_by="filter_values")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        if filter.language and (meta.language or "").lower() == filter.language.lower():
            filter = filter.replace(language=None)
        return filter.matches(kind, meta)


@fault("tags_any wants all tags", caught_by="fetch_filters")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        return filter.matches(kind, meta) and set(filter.tags_any) <= set(meta.tags)


@fault("reach shows siblings", caught_by="namespaces")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        reach = filter.reach
        if reach is not None and reach.inherit and meta.namespace.depth == reach.at.depth:
            filter = filter.replace(reach=None)
        return filter.matches(kind, meta)


@fault("reach compares characters, not segments", caught_by="reach_edges")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        reach = filter.reach
        if reach is not None and reach.descendants and meta.namespace.startswith(reach.at):
            filter = filter.replace(reach=None)
        return filter.matches(kind, meta)


@fault("descendants without the node", caught_by="namespaces")
class _(Broken):
    def admits(self, filter: MetaFilter, kind: ItemKind, meta: Any) -> bool:
        reach = filter.reach
        is_at = reach is not None and reach.descendants and meta.namespace == reach.at
        return filter.matches(kind, meta) and not (is_at and not reach.inherit)


@fault("inherit and descendants exclude each other", caught_by="reach_edges")
class _(Broken):
    def change_filter(self, filter: MetaFilter) -> MetaFilter:
        if filter.reach is not None and filter.reach.inherit and filter.reach.descendants:
            return filter.replace(reach=replace(filter.reach, inherit=False))
        return filter


# Faults of explore.


@fault("explore never sets truncated", caught_by="explore_scan")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        return replace(super().explore(request), truncated=False)


@fault("explore counts past the scan limit", caught_by="explore_scan")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        page = super().explore(request)
        return replace(page, total=page.total + 1) if page.truncated else page


@fault("explore is truncated when it read everything", caught_by="explore_scan")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        page = super().explore(request)
        return replace(page, truncated=page.total >= request.scan_limit)


class Counts(ReferenceEngine):
    """Counts by itself; ``repeats`` and ``order`` say how."""

    repeats = True

    def order(self, pair: tuple[str, int]) -> Any:
        return -pair[1], pair[0]

    def explore(self, request: ExploreRequest) -> Any:
        request.validate()
        counts: dict[str, int] = {}
        missing = 0
        hits = self._admitted(request.filter)
        for hit in hits:
            values = request.facet.values(hit.kind, hit.meta)
            missing += not values
            for value in values if self.repeats else dict.fromkeys(values):
                counts[value] = counts.get(value, 0) + 1
        page = explore_page(request, counts, total=len(hits), missing=missing, truncated=False)
        ordered = sorted(counts.items(), key=self.order)[: request.limit]
        return replace(page, buckets=[FacetBucket(*pair) for pair in ordered])


@fault("tag repeats count once", caught_by="explore_counts")
class _(Counts):
    repeats = False


@fault("ties in the order of first sight", caught_by="explore_counts")
class _(Counts):
    def order(self, pair: tuple[str, int]) -> Any:
        return -pair[1]


@fault("ties without regard to case", caught_by="explore_counts")
class _(Counts):
    def order(self, pair: tuple[str, int]) -> Any:
        return -pair[1], pair[0].casefold()


@fault("buckets ascending", caught_by="explore")
class _(Counts):
    def order(self, pair: tuple[str, int]) -> Any:
        return pair[1], pair[0]


@fault("more_buckets is always 0", caught_by="explore_counts")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        return replace(super().explore(request), more_buckets=0)


@fault("missing is always 0", caught_by="explore_counts")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        return replace(super().explore(request), missing=0)


@fault("explore takes any limit above 0", caught_by="request_validation")
class _(ReferenceEngine):
    def explore(self, request: ExploreRequest) -> Any:
        return super().explore(replace(request, limit=min(request.limit, 500)))


# Faults of fetch and recall.


@fault("fetch checks the request before the mode", caught_by="mode_gate")
class _(ReferenceEngine):
    def descriptor(self) -> Any:
        return replace(super().descriptor(), fetch_modes=[FetchMode.KEYWORD])

    def fetch(self, request: FetchRequest) -> FetchPage:
        request.validate()
        return super().fetch(request)


@fault("fetch takes a blank query", caught_by="request_validation")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        if request.query.strip():
            return super().fetch(request)
        return FetchPage([])


@fault("recall takes limit 0", caught_by="request_validation")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        return super().recall(replace(request, limit=max(1, request.limit)))


@fault("fetch hits worst first", caught_by="fetch_pages")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        page = super().fetch(request)
        return replace(page, hits=page.hits[::-1])


@fault("fetch never pages", caught_by="fetch_pages")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        return replace(super().fetch(request), next_cursor=None)


@fault("the second page of a fetch repeats the first", caught_by="fetch_pages")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        page = super().fetch(request)
        if request.cursor is not None:
            return replace(page, hits=super().fetch(replace(request, cursor=None)).hits)
        return page


@fault("keyword fetch ignores the kinds", caught_by="fetch_filters")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        if request.mode == FetchMode.KEYWORD:
            request = replace(request, filter=request.filter.replace(kinds=[]))
        return super().fetch(request)


@fault("fetch filters the best only", caught_by="fetch_filters")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        ranked = super().fetch(replace(request, filter=MetaFilter(), limit=5)).hits
        return FetchPage([hit for hit in ranked if request.filter.matches(hit.kind, hit.meta)])


@fault("fetch hits carry no confidence", caught_by="fetch_hits")
class _(ReferenceEngine):
    def fetch(self, request: FetchRequest) -> FetchPage:
        page = super().fetch(request)
        return replace(page, hits=[replace(hit, confidence=None) for hit in page.hits])


@fault("fetch shows forgotten items", caught_by="fetch_hits")
class _(ReferenceEngine):
    def __init__(self) -> None:
        super().__init__()
        self.ghosts: list[Hit] = []

    def forget(self, target: ForgetTarget) -> ForgetReport:
        if isinstance(target.ids, list) and target.ids:
            held = [self._held[id] for id in target.ids if id in self._held]
            self.ghosts += [hit for hit in held if hit.meta.folder == "/hit"]
        return super().forget(target)

    def fetch(self, request: FetchRequest) -> FetchPage:
        page = super().fetch(request)
        ghosts = [hit for hit in self.ghosts if request.filter.matches(hit.kind, hit.meta)]
        return replace(page, hits=page.hits + ghosts)


@fault("recall ignores the reach", caught_by="recall_filter")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        return super().recall(replace(request, filter=request.filter.replace(reach=None)))


@fault("recall cites past its limit", caught_by="recall")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        return super().recall(replace(request, limit=request.limit + 1))


@fault("recall answers nothing", caught_by="recall")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        return replace(super().recall(request), answer=" ")


@fault("citations name another kind", caught_by="recall")
class _(ReferenceEngine):
    def recall(self, request: RecallRequest) -> RecallAnswer:
        answer = super().recall(request)
        other = {"document": "learning"}
        citations = [
            replace(c, kind=ItemKind(other.get(c.kind, "document"))) for c in answer.citations
        ]
        return replace(answer, citations=citations)


# Faults of the rest.


@fault("the descriptor changes", caught_by="descriptor")
class _(ReferenceEngine):
    calls = 0

    def descriptor(self) -> Any:
        self.calls += 1
        return replace(super().descriptor(), label=f"Reference {self.calls}")


@fault("forget by filter leaves the last item", caught_by="cleanup")
class _(ReferenceEngine):
    def forget(self, target: ForgetTarget) -> ForgetReport:
        filter = target.filter
        is_whole = isinstance(filter, MetaFilter) and filter == MetaFilter(
            workspace=filter.workspace
        )
        if is_whole and (filter.workspace or "").endswith("/probes"):
            return ForgetReport(0)
        return super().forget(target)


@fault("items below the root are kept at the root", caught_by="namespaces")
class _(ReferenceEngine):
    def store(self, item: StoreItem) -> StoreReceipt:
        if item.meta.namespace.depth == 1:
            item = item.replace(meta=item.meta.replace(namespace=Namespace.root()))
        return super().store(item)
