"""The context.md compiler: a page of briefs and learnings that fits a budget of tokens.

Briefs are answers to standing questions, learnings the newest statements. What the engine cannot
answer is left out; only a wrong spec is an error. Nothing here knows more than the contract.
"""

from __future__ import annotations

import math
import re
from typing import ClassVar, Final

import msgspec

from colmem.contract import (
    WHITE_SPACE,
    ColmemError,
    Hit,
    ItemKind,
    ListRequest,
    MemoryEngine,
    MetaFilter,
    Reach,
    RecallRequest,
    Timestamp,
    is_blank,
    trim,
)

BUDGET_TOKENS_DEFAULT: Final = 1500
LEARNINGS_LIMIT_DEFAULT: Final = 20

_RECALL_LIMIT: Final = 8
_INSTRUCTIONS: Final = "Answer as brief markdown bullets, without a heading or an introduction."
_PAGE_LIMIT: Final = 100
_PAGES_MAX: Final = 50
_CHARS_PER_TOKEN: Final = 4
_ELLIPSIS: Final = "…"
_BRIEF_CHARS_MIN: Final = 40
_FIXED_POINT_ROUNDS: Final = 8
_WHITE_RUN: Final = re.compile(f"[{WHITE_SPACE}]+")


class ContextSpecError(ColmemError):
    """A context spec breaks a rule."""

    prefix = "invalid context spec: "
    variant = "invalid_request"
    code = "invalid_context_spec"


class Brief(msgspec.Struct, frozen=True):
    """A standing question and the heading of its answer."""

    heading: str
    question: str
    filter: MetaFilter = msgspec.field(default_factory=lambda: MetaFilter())


DEFAULT_BRIEFS: Final = (
    Brief(
        "About the user",
        "Who is the user: their identity, their role, and how they like to work?",
    ),
    Brief(
        "Active work",
        "What are the user's current projects, workspaces and repositories?",
    ),
    Brief(
        "Preferences and standing instructions",
        "What preferences and standing instructions has the user given?",
    ),
    Brief("Recent important events", "What important events happened recently?"),
)


class ContextSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a context page holds: its budget, its briefs, its learnings, and how far it sees."""

    required_on_wire: ClassVar[tuple[str, ...]] = ("budget_tokens", "briefs", "learnings_limit")

    budget_tokens: int = msgspec.field(default_factory=lambda: BUDGET_TOKENS_DEFAULT)
    briefs: list[Brief] = msgspec.field(default_factory=lambda: list(DEFAULT_BRIEFS))
    learnings_limit: int = msgspec.field(default_factory=lambda: LEARNINGS_LIMIT_DEFAULT)
    reach: Reach | None = None

    def validate(self) -> None:
        """Refuse a budget of 0, and a brief without heading or question (ContextSpecError)."""
        if self.budget_tokens <= 0:
            raise ContextSpecError("budget_tokens must be positive")
        for brief in self.briefs:
            if is_blank(brief.heading) or is_blank(brief.question):
                raise ContextSpecError("every brief needs a heading and a question")
        if self.learnings_limit < 0:
            raise ContextSpecError("learnings_limit must not be negative")


class ContextDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled page: its text, its tokens, and the ids of the items it rests on."""

    markdown: str
    tokens: int
    generated_at: Timestamp
    engine: str
    refs: list[str]


class _Section(msgspec.Struct):
    heading: str
    body: str
    refs: list[str]


def compile(
    engine: MemoryEngine,
    spec: ContextSpec | None = None,
    generated_at: Timestamp | None = None,
) -> ContextDocument:
    """Compile a context page.

    Raises
    ------
    ContextSpecError
        When the spec breaks a rule; a failing engine only leaves things out.
    """
    spec = spec or ContextSpec()
    spec.validate()
    page = _Page(engine.descriptor().id, generated_at or Timestamp.now())
    for brief in spec.briefs:
        section = _answer(engine, brief, spec.reach)
        if section is not None:
            page.briefs.append(section)
    page.learnings = _learnings(engine, spec)
    markdown, tokens = page.fit(spec.budget_tokens)
    return ContextDocument(
        markdown=markdown,
        tokens=tokens,
        generated_at=page.generated_at,
        engine=page.engine_id,
        refs=page.refs(),
    )


def _answer(engine: MemoryEngine, brief: Brief, reach: Reach | None) -> _Section | None:
    filter = brief.filter if reach is None else brief.filter.replace(reach=reach)
    request = RecallRequest(
        question=brief.question, filter=filter, limit=_RECALL_LIMIT, instructions=_INSTRUCTIONS
    )
    try:
        answer = engine.recall(request)
    except Exception:  # noqa: BLE001 - an engine's failure only leaves the brief out
        return None
    if not answer.citations or is_blank(answer.answer):
        return None
    refs = [citation.id for citation in answer.citations]
    return _Section(brief.heading, trim(answer.answer), refs)


def _learnings(engine: MemoryEngine, spec: ContextSpec) -> list[Hit]:
    if spec.learnings_limit == 0:
        return []
    filter = MetaFilter(kinds=[ItemKind.LEARNING], reach=spec.reach)
    found: list[Hit] = []
    cursor: str | None = None
    try:
        for _ in range(_PAGES_MAX):
            page = engine.list(ListRequest(filter=filter, limit=_PAGE_LIMIT, cursor=cursor))
            found.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
    except Exception:  # noqa: BLE001 - an engine's failure only leaves the learnings out
        return []
    found.sort(key=_newest_first)
    return found[: spec.learnings_limit]


def _newest_first(hit: Hit) -> tuple[bool, int, int, float]:
    at = hit.meta.observed_at
    seconds, nanos = (0, 0) if at is None else (at.seconds, at.nanos)
    return at is None, -seconds, -nanos, -(hit.confidence or 0.0)


class _Page:
    """The sections of a page while it is cut to its budget."""

    def __init__(self, engine_id: str, generated_at: Timestamp) -> None:
        self.engine_id = engine_id
        self.generated_at = generated_at
        self.briefs: list[_Section] = []
        self.learnings: list[Hit] = []

    def refs(self) -> list[str]:
        """Ids the page rests on, in the order of first citation."""
        cited = [ref for brief in self.briefs for ref in brief.refs]
        return list(dict.fromkeys([*cited, *(hit.id for hit in self.learnings)]))

    def fit(self, budget_tokens: int) -> tuple[str, int]:
        """Cut from the end until the page fits; return its text and its tokens."""
        while True:
            markdown, tokens = self._compose()
            if tokens <= budget_tokens:
                return markdown, tokens
            if self.learnings:
                self.learnings.pop()
                continue
            last = self.briefs[-1]
            # The ellipsis counts by its bytes, as the contract has it.
            over = (tokens - budget_tokens) * _CHARS_PER_TOKEN + len(_ELLIPSIS.encode())
            keep = max(0, len(last.body) - over)
            if keep < _BRIEF_CHARS_MIN:
                self.briefs.pop()
            else:
                last.body = _shorten(last.body, keep)

    def _compose(self) -> tuple[str, int]:
        if not self.briefs and not self.learnings:
            return "", 0
        sections = [f"\n## {brief.heading}\n\n{brief.body}\n" for brief in self.briefs]
        if self.learnings:
            lines = [f"- {_one_line(hit.text)}\n" for hit in self.learnings]
            sections.append("\n## Learnings\n\n" + "".join(lines))
        body = "\n# Context\n" + "".join(sections)
        # The number of tokens is part of the text it counts.
        tokens = _tokens(self._front(0) + body)
        for _ in range(_FIXED_POINT_ROUNDS):
            markdown = self._front(tokens) + body
            counted = _tokens(markdown)
            if counted == tokens:
                break
            tokens = counted
        return self._front(tokens) + body, tokens

    def _front(self, tokens: int) -> str:
        at = self.generated_at.text(whole_seconds=True)
        refs = ", ".join(self.refs())
        return (
            f"---\ngenerated_at: {at}\nengine: {self.engine_id}\n"
            f"tokens: {tokens}\nrefs: [{refs}]\n---\n"
        )


def _tokens(text: str) -> int:
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


def _one_line(text: str) -> str:
    return trim(_WHITE_RUN.sub(" ", text))


def _shorten(text: str, keep_chars: int) -> str:
    cut = text[:keep_chars]
    space = max((index for index, char in enumerate(cut) if char in WHITE_SPACE), default=-1)
    # Both lengths are of the UTF-8 text.
    if space >= 0 and len(cut[:space].encode()) * 2 > len(cut.encode()):
        cut = cut[:space]
    return cut.rstrip(WHITE_SPACE) + _ELLIPSIS
