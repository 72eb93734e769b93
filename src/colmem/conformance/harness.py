"""One run of the suite: its identity, its error, and the helpers every check uses.

All items of a run carry its workspace and its marker word, so that a run finds its own items among
whatever else the engine holds, and leaves the rest alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

from colmem.contract import (
    ColmemError,
    Document,
    Hit,
    InvalidRequest,
    ListRequest,
    MemoryEngine,
    MemoryMeta,
    MetaFilter,
    StoreItem,
    StoreReceipt,
    document,
)

PAGE_LIMIT: Final = 2
PAGES_MAX: Final = 10_000

_counter = itertools.count(1)


class ConformanceError(ColmemError):
    """A check failed: the engine answered wrongly (``detail``) or raised (``source``)."""

    code = "conformance"

    def __init__(
        self, check: str, *, detail: str | None = None, source: Exception | None = None
    ) -> None:
        what = detail if source is None else f"the engine returned an error: {source}"
        super().__init__(f"conformance check `{check}` failed: {what}")
        self.check = check
        self.detail = detail
        self.source = source


class Run:
    """The engine under test and the names of this run."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine
        self.check = ""
        nonce = f"{time.time_ns():x}{next(_counter):x}"
        self.marker = f"tmconf{nonce}"
        self.workspace = f"tinymemory-conformance/{nonce}"
        self.probe_workspace = f"{self.workspace}/probes"
        self.filter = MetaFilter(workspace=self.workspace)
        self.probe_filter = MetaFilter(workspace=self.probe_workspace)

    def fail(self, detail: str) -> NoReturn:
        """Report a wrong answer."""
        raise ConformanceError(self.check, detail=detail)

    def require(self, holds: bool, detail: str) -> None:
        """Report a wrong answer unless something holds."""
        if not holds:
            self.fail(detail)

    def same(self, got: object, expected: object, what: str) -> None:
        """Report a wrong answer unless two values are equal."""
        if got != expected:
            self.fail(f"{what} is {got!r}, expected {expected!r}")

    def refused(self, error: type[ColmemError], call: Callable[[], object], what: str) -> None:
        """Report a wrong answer unless a call is refused with an error of this class."""
        try:
            call()
        except error:
            return
        except ColmemError as other:
            self.fail(f"{what} was refused with `{other}`, expected {error.__name__}")
        self.fail(f"{what} was accepted, expected {error.__name__}")

    def refused_request(self, call: Callable[[], object], what: str) -> None:
        """Report a wrong answer unless a call is refused as an invalid request."""
        self.refused(InvalidRequest, call, what)

    def meta(self, **fields: Any) -> MemoryMeta:
        """Metadata within the run's workspace."""
        return MemoryMeta(**{"workspace": self.workspace, **fields})

    def doc(self, label: str, **fields: Any) -> Document:
        """Make a document of the run, ``<marker> <label> note``."""
        return document(f"{self.marker} {label} note", meta=self.meta(**fields))

    def store(self, item: StoreItem) -> StoreReceipt:
        """Store an item the engine does not hold yet."""
        receipt = self.engine.store(item)
        self.require(not receipt.replayed, "a new item's receipt says it was replayed")
        return receipt

    def list_all(self, filter: MetaFilter) -> list[Hit]:
        """List everything a filter admits, in small pages."""
        hits: list[Hit] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = self.engine.list(ListRequest(filter=filter, limit=PAGE_LIMIT, cursor=cursor))
            self.require(
                len(page.items) <= PAGE_LIMIT,
                f"a page of limit {PAGE_LIMIT} holds {len(page.items)} items",
            )
            for hit in page.items:
                self.require(hit.score == 0, f"a listed item has score {hit.score}, expected 0")
            hits.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return hits
            self.require(cursor not in seen, f"the listing cursor `{cursor}` repeats")
            seen.add(cursor)
        detail = f"the listing does not end within {PAGES_MAX} pages"
        raise ConformanceError(self.check, detail=detail)

    def list_ids(self, filter: MetaFilter) -> list[str]:
        """List the ids a filter admits; one listed twice is a wrong answer."""
        ids = [hit.id for hit in self.list_all(filter)]
        self.require(len(ids) == len(set(ids)), "an item is listed twice")
        return ids

    def held(self) -> list[Hit]:
        """List the run's items, storing one first when there is none."""
        hits = self.list_all(self.filter)
        if not hits:
            self.store(self.doc("seed"))
            hits = self.list_all(self.filter)
        self.require(bool(hits), "a stored item is not listed")
        return hits

    def lists_exactly(self, filter: MetaFilter, ids: list[str], what: str) -> None:
        """Report a wrong answer unless a filter lists these ids, in any order."""
        self.same(sorted(self.list_ids(filter)), sorted(ids), f"the listing with {what}")
