"""The seven tools over any engine: read arguments strictly, call one operation, shape the answer.

The scope is the host's. A forget by ids reads the ids back under the scope's reach first, and every
filter gets the scope's reach, so that a confined model cannot touch what it cannot see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from colmem.contract import (
    ExploreRequest,
    FetchMode,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    InvalidRequest,
    LearningKind,
    ListRequest,
    MemoryEngine,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    RecallRequest,
    Role,
    StoreItem,
    Timestamp,
    Turn,
    Unsupported,
    conversation,
    document,
    learning,
)
from colmem.tools.arguments import Arguments
from colmem.tools.results import (
    Result,
    citation_result,
    explore_result,
    hit_result,
    page_result,
)
from colmem.tools.scope import ToolScope
from colmem.tools.specs import (
    CONFIDENCE_DEFAULT,
    FACETS,
    TOOL_NAMES,
    WRITE_TOOLS,
    ToolSpec,
    default_mode,
    tool_specs,
)

_SHAPES: Final = ("learning", "document", "conversation")
_KEYS: Final = {
    "memory_recall": ("question", "filter", "limit", "instructions"),
    "memory_fetch": ("query", "mode", "filter", "limit", "cursor"),
    "memory_list": ("filter", "limit", "cursor"),
    "memory_get": ("ids",),
    "memory_explore": ("facet", "filter", "limit"),
    "memory_store": (*_SHAPES, "tags"),
    "memory_forget": ("ids", "filter"),
}


class MemoryTools:
    """The tools of one engine under one scope; ``now`` dates what is stored."""

    def __init__(
        self,
        engine: MemoryEngine,
        scope: ToolScope | None = None,
        *,
        now: Callable[[], Timestamp] = Timestamp.now,
    ) -> None:
        self.engine = engine
        self.scope = scope or ToolScope()
        self._now = now
        self._handlers: dict[str, Callable[[Arguments], Result]] = {
            "memory_recall": self._recall,
            "memory_fetch": self._fetch,
            "memory_list": self._list,
            "memory_get": self._get,
            "memory_explore": self._explore,
            "memory_store": self._store,
            "memory_forget": self._forget,
        }

    def placed_at(self, place: Namespace | str) -> MemoryTools:
        """Write at a node and read from it and its ancestors, dropping any other reach."""
        scope = ToolScope(place=place, reach=Reach.of(place), writes=self.scope.writes)
        return MemoryTools(self.engine, scope, now=self._now)

    def reach(self, reach: Reach | None) -> MemoryTools:
        """Read as far as a reach; none is everything."""
        return MemoryTools(self.engine, replace(self.scope, reach=reach), now=self._now)

    def read_only(self) -> MemoryTools:
        """Offer no tool that writes."""
        return MemoryTools(self.engine, replace(self.scope, writes=False), now=self._now)

    def specs(self) -> list[ToolSpec]:
        """Describe the tools this engine and scope offer, in their order."""
        return tool_specs(self._modes(), writes=self.scope.writes)

    def call(self, name: str, args: Any = None) -> Result:
        """Call a tool with the arguments a model gave, a decoded JSON value.

        Raises
        ------
        InvalidRequest
            For an unknown tool or for arguments that are not as its schema says.
        Unsupported
            For a tool that writes on read-only tools, and a fetch of an engine without modes.
        ColmemError
            What the engine raises passes through.
        """
        if name not in TOOL_NAMES:
            expected = ", ".join(TOOL_NAMES)
            raise InvalidRequest(f"unknown memory tool `{name}`; expected one of {expected}")
        if name in WRITE_TOOLS and not self.scope.writes:
            raise Unsupported(f"{name} is not offered: these memory tools are read-only")
        if name == "memory_fetch" and not self._modes():
            id = self.engine.descriptor().id
            raise Unsupported(f"memory_fetch: engine `{id}` serves no fetch mode")
        arguments = Arguments.of(name, args)
        arguments.allow(*_KEYS[name])
        return self._handlers[name](arguments)

    def _modes(self) -> list[FetchMode]:
        return self.engine.descriptor().fetch_modes

    def _confined(self, filter: MetaFilter) -> MetaFilter:
        return filter.replace(reach=self.scope.reach)

    def _recall(self, args: Arguments) -> Result:
        filter = self._confined(args.filter())
        question = args.required_text("question")
        request = RecallRequest(
            question=question,
            filter=filter,
            limit=args.limit(),
            instructions=args.text("instructions"),
        )
        answer = self.engine.recall(request)
        return {
            "answer": answer.answer,
            "citations": [citation_result(citation) for citation in answer.citations],
        }

    def _fetch(self, args: Arguments) -> Result:
        modes = self._modes()
        filter = self._confined(args.filter())
        query = args.required_text("query")
        mode = args.text("mode")
        if mode is None:
            mode = default_mode(modes)
        elif mode not in modes:
            raise args.error("mode", f"must be one of {', '.join(modes)}")
        request = FetchRequest(
            query=query, mode=mode, filter=filter, limit=args.limit(), cursor=args.text("cursor")
        )
        page = self.engine.fetch(request)
        return page_result("hits", page.hits, page.next_cursor)

    def _list(self, args: Arguments) -> Result:
        filter = self._confined(args.filter())
        request = ListRequest(filter=filter, limit=args.limit(), cursor=args.text("cursor"))
        page = self.engine.list(request)
        return page_result("items", page.items, page.next_cursor)

    def _get(self, args: Arguments) -> Result:
        ids = args.ids()
        hits = self.engine.get(GetRequest(ids, reach=self.scope.reach))
        found = {hit.id for hit in hits}
        return {
            "items": [hit_result(hit) for hit in hits],
            "missing": [id for id in ids if id not in found],
        }

    def _explore(self, args: Arguments) -> Result:
        facet = args.required_text("facet")
        if facet not in FACETS:
            raise args.error("facet", f"must be one of {', '.join(FACETS)}")
        limit = args.limit()
        filter = self._confined(args.filter())
        page = self.engine.explore(ExploreRequest(facet=facet, filter=filter, limit=limit))
        return explore_result(page)

    def _store(self, args: Arguments) -> Result:
        shapes = [shape for shape in _SHAPES if args.has(shape)]
        if len(shapes) != 1:
            raise InvalidRequest(
                "memory_store: pass exactly one of `learning`, `document` or `conversation`"
            )
        tags = args.strings("tags")
        meta = MemoryMeta(namespace=self.scope.place, tags=tags, observed_at=self._now())
        readers = {"learning": _learning, "document": _document, "conversation": _conversation}
        receipt = self.engine.store(readers[shapes[0]](args, meta))
        return {"id": receipt.id, "replayed": receipt.replayed}

    def _forget(self, args: Arguments) -> Result:
        if args.has("ids") == args.has("filter"):
            raise InvalidRequest("memory_forget: pass exactly one of `ids` or `filter`")
        if args.has("filter"):
            filter = args.filter()
            if filter.is_empty():
                raise args.error(
                    "filter",
                    "must set at least one field; an empty filter would mean everything",
                )
            report = self.engine.forget(ForgetTarget(filter=self._confined(filter)))
            return {"forgotten": report.forgotten, "skipped": []}
        ids = args.ids()
        found = {hit.id for hit in self.engine.get(GetRequest(ids, reach=self.scope.reach))}
        seen = [id for id in ids if id in found]
        forgotten = self.engine.forget(ForgetTarget(ids=seen)).forgotten if seen else 0
        return {"forgotten": forgotten, "skipped": [id for id in ids if id not in found]}


def _learning(args: Arguments, meta: MemoryMeta) -> StoreItem:
    inner = args.object("learning", "text", "learning_kind", "confidence", "evidence")
    kind = inner.text("learning_kind")
    text = inner.required_text("text")
    if kind is not None and kind not in list(LearningKind):
        raise inner.error("learning_kind", f"must be one of {', '.join(LearningKind)}")
    return learning(
        text,
        kind=kind or LearningKind.FACT,
        confidence=inner.unit("confidence", CONFIDENCE_DEFAULT),
        evidence=inner.text("evidence"),
        meta=meta,
    )


def _document(args: Arguments, meta: MemoryMeta) -> StoreItem:
    inner = args.object("document", "title", "text")
    title = inner.text("title")
    return document(inner.required_text("text"), title=title, meta=meta)


def _conversation(args: Arguments, meta: MemoryMeta) -> StoreItem:
    inner = args.object("conversation", "turns")
    turns = inner.value.get("turns")
    if turns is not None and not isinstance(turns, list):
        raise inner.error("turns", "must be an array")
    if not turns:
        raise inner.error("turns", "must hold at least one turn")
    return conversation([_turn(inner, turn) for turn in turns], meta=meta)


def _turn(args: Arguments, turn: Any) -> Turn:
    if not isinstance(turn, dict):
        raise args.error("turns", "must hold only objects")
    inner = Arguments(args.tool, turn, prefix=f"{args.prefix}turns[].")
    inner.allow("role", "text")
    role = inner.required_text("role")
    if role not in list(Role):
        raise inner.error("role", f"must be one of {', '.join(Role)}")
    return Turn(role, inner.required_text("text"))
