"""The stored unit in its three shapes, what is derived from it, and the makers of items.

The order of the fields is the order of the canonical JSON that fingerprints are taken of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from colmem.contract.canonical import canonical
from colmem.contract.errors import InvalidRequest
from colmem.contract.limits import FINGERPRINT_HEX_DIGITS
from colmem.contract.metadata import (
    MemoryMeta,
    ToolCallRef,
    check_optional_text,
    check_text,
    set_field,
    to_list,
    to_timestamp,
    wrong_type,
)
from colmem.contract.scalars import F32, f32_display, is_blank
from colmem.contract.timestamps import Timestamp
from colmem.contract.vocabulary import ItemKind, LearningKind, Role, member


class Turn(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One utterance of a conversation."""

    role: Role
    text: str
    at: Timestamp | None = None
    tool_calls: list[ToolCallRef] = []

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Role | str,
            text: str,
            at: Timestamp | str | datetime | None = ...,
            tool_calls: Sequence[ToolCallRef] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.role) is not Role:
            set_field(self, "role", member(Role, self.role, "role"))
        if type(self.text) is not str:
            check_text(self, "text")
        if self.at is not None and type(self.at) is not Timestamp:
            set_field(self, "at", to_timestamp(self, "at", self.at))
        if type(self.tool_calls) is not list:
            set_field(self, "tool_calls", to_list(self, "tool_calls", self.tool_calls))
        for call in self.tool_calls:
            if type(call) is not ToolCallRef:
                raise wrong_type(self, "tool_calls", call, "a list of ToolCallRef")

    def render(self) -> str:
        """``role: text`` with the tool calls, if any, in brackets behind."""
        line = f"{self.role.value}: {self.text}"
        if not self.tool_calls:
            return line
        calls = ", ".join(
            call.name if call.id is None else f"{call.name} ({call.id})" for call in self.tool_calls
        )
        return f"{line} [tools: {calls}]"


class DocumentBody(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """A document's text, or the uri it has to be fetched from first: exactly one of the two."""

    text: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.text is UNSET) == (self.uri is UNSET):
            raise InvalidRequest("a document body must have exactly one of `text` and `uri`")
        if not isinstance(self.content, str):
            raise wrong_type(self, "text", self.content, "a string")

    @property
    def content(self) -> str:
        """The text, or the uri of an unresolved body."""
        return self.uri if self.text is UNSET else self.text  # type: ignore[return-value]


_BLANK_TAIL: Final = b',"observed_at":""}}'


class _Item(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    # What the three shapes have in common. Each ends with `meta`, and that with `observed_at`.

    kind: ClassVar[ItemKind]

    if TYPE_CHECKING:
        meta: MemoryMeta

    def content_digest(self) -> str:
        """SHA-256 of the canonical JSON without ``meta.observed_at``, as 64 hex digits.

        Raises
        ------
        InvalidRequest
            When a string of the item holds a lone surrogate.
        """
        return sha256(self._digested()).hexdigest()

    def fingerprint(self) -> str:
        """Return the first 40 hex digits of the content digest."""
        return self.content_digest()[:FINGERPRINT_HEX_DIGITS]

    def replace(self, **changes: Any) -> Any:
        """Return a copy with other values in some fields."""
        return msgspec.structs.replace(self, **changes)

    def _digested(self) -> bytes:
        # Only conversations hold instants that count, so here they need not be written out.
        data = canonical(self, blank_times=True)
        return data[: -len(_BLANK_TAIL)] + b"}}" if self.meta.observed_at is not None else data

    def _check_meta(self) -> None:
        if type(self.meta) is not MemoryMeta:
            meta: Any = self.meta
            if meta is not None:
                raise wrong_type(self, "meta", meta, "a MemoryMeta")
            set_field(self, "meta", MemoryMeta())


class Document(
    _Item, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="document"
):
    """A text with an optional title and media type."""

    kind: ClassVar[ItemKind] = ItemKind.DOCUMENT
    confidence: ClassVar[None] = None

    title: str | None = None
    body: DocumentBody
    mime: str | None = None
    meta: MemoryMeta = msgspec.field(default_factory=lambda: MemoryMeta())

    def __post_init__(self) -> None:
        if type(self.body) is not DocumentBody:
            if not isinstance(self.body, str):
                raise wrong_type(self, "body", self.body, "a DocumentBody")
            set_field(self, "body", DocumentBody(text=self.body))
        check_optional_text(self, "title", "mime")
        self._check_meta()

    def render_text(self) -> str:
        """Return the body, below its title when that is not blank."""
        if self.title is None or is_blank(self.title):
            return self.body.content
        return f"# {self.title}\n\n{self.body.content}"

    def validate(self) -> None:
        """Refuse a blank or unresolved body (InvalidRequest)."""
        if self.body.text is UNSET:
            raise InvalidRequest(
                "document body is an unresolved uri; resolve it through a source first"
            )
        if is_blank(self.body.content):
            raise InvalidRequest("document body must not be empty")


class Conversation(
    _Item,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    tag_field="type",
    tag="conversation",
):
    """Turns in their order."""

    kind: ClassVar[ItemKind] = ItemKind.CONVERSATION
    confidence: ClassVar[None] = None

    turns: list[Turn]
    meta: MemoryMeta = msgspec.field(default_factory=lambda: MemoryMeta())

    def __post_init__(self) -> None:
        if type(self.turns) is not list:
            set_field(self, "turns", to_list(self, "turns", self.turns))
        for turn in self.turns:
            if type(turn) is not Turn:
                raise wrong_type(self, "turns", turn, "a list of Turn")
        self._check_meta()

    def _digested(self) -> bytes:
        data = canonical(self)
        if self.meta.observed_at is None:
            return data
        return data[: data.rindex(b',"observed_at":"')] + b"}}"

    def render_text(self) -> str:
        """Return one line for each turn."""
        return "\n".join(turn.render() for turn in self.turns)

    def validate(self) -> None:
        """Refuse a conversation without turns, or with a blank one (InvalidRequest)."""
        if not self.turns:
            raise InvalidRequest("conversation must have at least one turn")
        for turn in self.turns:
            if is_blank(turn.text):
                raise InvalidRequest("conversation turns must not be empty")


class Learning(
    _Item, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="learning"
):
    """A statement and how sure it is; ``learning_kind`` is ``kind`` on the wire."""

    kind: ClassVar[ItemKind] = ItemKind.LEARNING

    text: str
    learning_kind: LearningKind = msgspec.field(name="kind")
    confidence: float
    evidence: str | None = None
    meta: MemoryMeta = msgspec.field(default_factory=lambda: MemoryMeta())

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            text: str,
            learning_kind: LearningKind | str,
            confidence: float,
            evidence: str | None = ...,
            meta: MemoryMeta = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_text(self, "text")
        check_optional_text(self, "evidence")
        if type(self.learning_kind) is not LearningKind:
            kind = member(LearningKind, self.learning_kind, "kind")
            set_field(self, "learning_kind", kind)
        set_field(self, "confidence", to_f32(self, "confidence", self.confidence))
        self._check_meta()

    def render_text(self) -> str:
        """Return the text, untouched."""
        return self.text

    def validate(self) -> None:
        """Refuse a blank text, or a confidence outside 0 to 1 (InvalidRequest)."""
        if is_blank(self.text):
            raise InvalidRequest("learning text must not be empty")
        if not 0.0 <= self.confidence <= 1.0:
            shown = f32_display(self.confidence)
            raise InvalidRequest(f"learning confidence {shown} is outside 0.0..=1.0")


StoreItem: TypeAlias = Document | Conversation | Learning
"""An item: the union of its three shapes."""


def to_f32(owner: object, field: str, value: Any) -> F32:
    """Round a number to single precision; a bool is not a number."""
    if type(value) is F32:
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        raise wrong_type(owner, field, value, "a number")
    return F32(float(value))


def document(
    text: str, *, title: str | None = None, mime: str | None = None, meta: MemoryMeta | None = None
) -> Document:
    """Make a document of its text."""
    return Document(title=title, body=DocumentBody(text=text), mime=mime, meta=meta or MemoryMeta())


def learning(
    text: str,
    *,
    kind: LearningKind | str = LearningKind.FACT,
    confidence: float = 0.8,
    evidence: str | None = None,
    meta: MemoryMeta | None = None,
) -> Learning:
    """Make a learning of its text."""
    return Learning(
        text=text,
        learning_kind=kind,
        confidence=confidence,
        evidence=evidence,
        meta=meta or MemoryMeta(),
    )


def conversation(
    turns: Iterable[Turn | tuple[Role | str, str] | Mapping[str, Any]],
    *,
    meta: MemoryMeta | None = None,
) -> Conversation:
    """Make a conversation of turns, of pairs of role and text, or of a turn's fields by name."""
    return Conversation(turns=[_to_turn(turn) for turn in turns], meta=meta or MemoryMeta())


def _to_turn(turn: Any) -> Turn:
    if isinstance(turn, Turn):
        return turn
    try:
        if isinstance(turn, Mapping):
            return Turn(**turn)
        if isinstance(turn, (tuple, list)):
            return Turn(*turn)
    except TypeError as error:
        raise InvalidRequest(f"a turn has role, text, at and tool_calls: {error}") from error
    raise InvalidRequest(
        f"a turn must be a Turn or a pair of role and text, got {type(turn).__name__}"
    )
