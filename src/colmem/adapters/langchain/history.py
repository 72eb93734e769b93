"""LangChain's chat history over a memory engine: one conversation item for each message.

An item holds the text as a turn, so that other surfaces find it; what a turn does not hold of a
message (tool calls, usage, content blocks) is kept beside it as JSON, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, messages_from_dict

import colmem
from colmem import (
    Conversation,
    Facet,
    Hit,
    InvalidRequest,
    MemoryEngine,
    MemoryMeta,
    MetaFilter,
    Reach,
    Role,
    SourceKind,
    SourceRef,
    Timestamp,
    Turn,
    TurnRange,
    is_blank,
)
from colmem.adapters import foreign
from colmem.adapters.framework_items import BATCH_ITEMS, FrameworkItems
from colmem.adapters.langchain.documents import FRAMEWORK

_TAG: Final = "message"
_TYPES: Final = {Role.USER: "human", Role.ASSISTANT: "ai", Role.SYSTEM: "system"}
_ROLES: Final = {
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


class ColmemChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session, in the order they were added.

    session_id : the thread of the items; meta : metadata of every message, such as its namespace.
    """

    def __init__(
        self, engine: MemoryEngine, session_id: str, *, meta: MemoryMeta | None = None
    ) -> None:
        self._items = FrameworkItems(engine, FRAMEWORK)
        source = SourceRef(SourceKind.CONVERSATION, FRAMEWORK)
        self._base = (meta or MemoryMeta()).replace(thread_id=session_id, source=source)
        self._filter = MetaFilter(
            reach=Reach.exact(self._base.namespace),
            thread_id=session_id,
            sources=[SourceKind.CONVERSATION],
            source_id=FRAMEWORK,
        )

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # a property there too
        """The messages as they were added."""
        return messages_from_dict([_fields(hit) for hit in self._items.list(self._filter)])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages; up to 100 at a time in one atomic write."""
        items = [*self._made(messages)]
        for start in range(0, len(items), BATCH_ITEMS):
            self._items.engine.store_many(items[start : start + BATCH_ITEMS])

    def clear(self) -> None:
        """Forget the session's messages."""
        self._items.engine.forget(filter=self._filter)

    def _made(self, messages: Sequence[BaseMessage]) -> Iterator[Conversation]:
        engine = self._items.engine
        number = engine.explore(facet=Facet.KIND, filter=self._filter, limit=1).total
        now = Timestamp.now()
        for place, message in enumerate(messages):
            text, tags = _parts(message, f"messages[{place}]")
            role = _ROLES.get(message.type.removesuffix("MessageChunk").lower(), Role.USER)
            span = TurnRange(number + place, number + place)
            meta = self._base.replace(turns=span, observed_at=now, tags=[*self._base.tags, *tags])
            yield colmem.conversation([Turn(role, text, now)], meta=meta)


def _parts(message: BaseMessage, path: str) -> tuple[str, list[str]]:
    """The text of a message's turn, and the tag with the rest of it, if there is any."""
    if not isinstance(message, BaseMessage):
        raise InvalidRequest(f"{path}: expected a message, got {type(message).__name__}", path=path)
    data = message.model_dump(mode="json", exclude_defaults=True)
    data.pop("type", None)
    text = str(message.text)
    if data.get("content") == text and not is_blank(text):
        del data["content"]
    if is_blank(text):
        calls = getattr(message, "tool_calls", None) or []
        text = ", ".join(f"calls {call['name']}" for call in calls) or f"({message.type})"
    role = _ROLES.get(message.type)
    if not data and role is not None and _TYPES.get(role) == message.type:
        return text, []
    kept = foreign.json_text({"type": message.type, "data": data}, path)
    return text, [foreign.named_tag(FRAMEWORK, _TAG, kept)]


def _fields(hit: Hit) -> dict[str, Any]:
    """A message as LangChain's own dictionary."""
    role, _, text = hit.text.partition(": ")
    kept = foreign.named_value(hit.meta, FRAMEWORK, _TAG)
    if kept is None:
        return {"type": _TYPES[Role(role)], "data": {"content": text}}
    fields: dict[str, Any] = foreign.json_value(kept)
    fields["data"].setdefault("content", text)
    return fields
