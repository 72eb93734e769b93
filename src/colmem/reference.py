"""The contract over a dictionary and brute force: obvious by reading, not fast.

It keeps items in the order of storing, uses offsets as cursors, and inherits the listing-based
defaults. The conformance suite is calibrated on it, and other engines are compared with it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from colmem.contract import (
    Citation,
    EngineDescriptor,
    EngineHealth,
    FetchMode,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    Hit,
    InvalidRequest,
    ListingDefaults,
    ListPage,
    ListRequest,
    MetaFilter,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
    as_request,
    fnv1a_32,
)

_VECTOR_DIM: Final = 64
_WINDOW_CHARS: Final = 3
_VECTOR_SCORE_MIN: Final = 0.2

Score = Callable[[str], float | None]

DESCRIPTOR: Final = EngineDescriptor(
    id="reference",
    label="Reference (in-memory)",
    description="An in-memory engine with toy keyword and vector scoring, for tests.",
    fetch_modes=[FetchMode.KEYWORD, FetchMode.VECTOR, FetchMode.HYBRID],
)


class ReferenceEngine(ListingDefaults):
    """An engine in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._held: dict[str, Hit] = {}
        self._lock = threading.RLock()

    def descriptor(self) -> EngineDescriptor:
        """Say what the engine is and offers."""
        return DESCRIPTOR

    def health(self) -> EngineHealth:
        """Say it serves."""
        return EngineHealth.ok()

    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item under its fingerprint; the first copy stays."""
        item.validate()
        id = item.fingerprint()
        with self._lock:
            is_held = id in self._held
            self._held.setdefault(id, as_hit(id, item))
        return StoreReceipt(id=id, replayed=is_held)

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Score every admitted item; ties keep the order of storing."""
        request = as_request(FetchRequest, request, fields)
        self.descriptor().ensure_mode(request.mode)
        request.validate()
        ranked = self._rank(request.query, request.mode, request.filter)
        hits, cursor = _page(ranked, request.limit, request.cursor)
        return FetchPage(hits=hits, next_cursor=cursor)

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Cite the best hybrid hits, and join their texts."""
        request = as_request(RecallRequest, request, fields)
        request.validate()
        best = self._rank(request.question, FetchMode.HYBRID, request.filter)[: request.limit]
        citations = [
            Citation(id=hit.id, kind=hit.kind, snippet=hit.text, meta=hit.meta, score=hit.score)
            for hit in best
        ]
        answer = "Nothing stored answers this question."
        if best:
            snippets = " | ".join(hit.text for hit in best)
            answer = f"From {len(best)} stored items: {snippets}"
        return RecallAnswer(answer=answer, citations=citations, model="reference")

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through admitted items in the order of storing."""
        request = as_request(ListRequest, request, fields)
        request.validate()
        items, cursor = _page(self._admitted(request.filter), request.limit, request.cursor)
        return ListPage(items=items, next_cursor=cursor)

    def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by id, wherever they live, or by filter."""
        target = as_request(ForgetTarget, target, fields)
        target.validate()
        with self._lock:
            if isinstance(target.filter, MetaFilter):
                ids = [hit.id for hit in self._admitted(target.filter)]
            else:
                ids = target.ids or []
            removed = [id for id in ids if self._held.pop(id, None) is not None]
        return ForgetReport(forgotten=len(removed))

    def _admitted(self, filter: MetaFilter) -> Hits:
        with self._lock:
            held = [*self._held.values()]
        return [hit for hit in held if filter.matches(hit.kind, hit.meta)]

    def _rank(self, query: str, mode: FetchMode, filter: MetaFilter) -> Hits:
        score = _SCORERS[mode](query)
        scored = [(score(hit.text), hit) for hit in self._admitted(filter)]
        matching = [(value, hit) for value, hit in scored if value is not None]
        matching.sort(key=lambda pair: -pair[0])
        return [replace(hit, score=value) for value, hit in matching]


# Inside the class, whose method is named `list`, that name is not the type.
Hits = list[Hit]


def as_hit(id: str, item: StoreItem) -> Hit:
    """Show an item as a listing does."""
    return Hit(
        id=id,
        kind=item.kind,
        text=item.render_text(),
        meta=item.meta,
        score=0.0,
        confidence=item.confidence,
    )


def _page(hits: Hits, limit: int, cursor: str | None) -> tuple[Hits, str | None]:
    # A cursor is the decimal offset of the page; one past the end gives an empty last page.
    offset = 0
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdecimal()):
            raise InvalidRequest(f"unknown cursor `{cursor}`")
        offset = int(cursor)
    end = offset + limit
    return hits[offset:end], str(end) if end < len(hits) else None


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text).lower().split()


def _vector(text: str) -> list[float]:
    counts = [0.0] * _VECTOR_DIM
    for word in _words(text):
        padded = f" {word} "
        for start in range(len(padded) - _WINDOW_CHARS + 1):
            window = padded[start : start + _WINDOW_CHARS]
            counts[_fnv1a_code_points(window) % _VECTOR_DIM] += 1.0
    norm = math.sqrt(sum(count * count for count in counts))
    return [count / norm for count in counts] if norm else counts


def _fnv1a_code_points(text: str) -> int:
    if text.isascii():
        return fnv1a_32(text.encode())
    value = 0x811C9DC5
    for char in text:
        value = (value ^ ord(char)) * 0x01000193 & 0xFFFFFFFF
    return value


def _keyword_score(query: str) -> Score:
    wanted = set(_words(query))

    def score(text: str) -> float | None:
        found = len(wanted.intersection(_words(text)))
        return found / len(wanted) if found else None

    return score


def _vector_score(query: str) -> Score:
    wanted = _vector(query)

    def score(text: str) -> float | None:
        cosine = sum(a * b for a, b in zip(wanted, _vector(text), strict=True))
        return cosine if cosine >= _VECTOR_SCORE_MIN else None

    return score


def _hybrid_score(query: str) -> Score:
    keyword, vector = _keyword_score(query), _vector_score(query)

    def score(text: str) -> float | None:
        parts = keyword(text), vector(text)
        if parts == (None, None):
            return None
        return ((parts[0] or 0.0) + (parts[1] or 0.0)) / 2

    return score


_SCORERS: Final[dict[FetchMode, Callable[[str], Score]]] = {
    FetchMode.KEYWORD: _keyword_score,
    FetchMode.VECTOR: _vector_score,
    FetchMode.HYBRID: _hybrid_score,
}
