"""The ranked reads of an engine for somebody who must learn nothing beyond a reach."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from colmem.contract import (
    FetchPage,
    FetchRequest,
    Reach,
    RecallAnswer,
    RecallRequest,
    as_request,
)
from colmem.explanation import Explanation
from colmem.store import Store
from colmem.words import PartWords, Words

WordsOf = Callable[[Store], Words]


class Reads(NamedTuple):
    """An engine's ranked reads, told which words to weigh by."""

    fetch: Callable[[FetchRequest, WordsOf], FetchPage]
    explain: Callable[[FetchRequest, str | None, WordsOf], Explanation]
    recall: Callable[[RecallRequest, WordsOf], RecallAnswer]


class Within:
    """``fetch``, ``explain`` and ``recall`` as if a reach held all there is.

    How rare a word is, is measured among the items within reach only, so scores and order do not
    change with what is stored elsewhere. The first read indexes those items, in memory; later ones
    add what is new.
    """

    def __init__(self, reads: Reads, reach: Reach) -> None:
        self.reach = reach
        self._reads = reads
        self._lock = threading.Lock()
        self._words: PartWords | None = None
        self._store: weakref.ref[Store] | None = None

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank the admitted items within reach."""
        return self._reads.fetch(self._within(as_request(FetchRequest, request, fields)), self._of)

    def explain(
        self, request: FetchRequest | None = None, /, id: str | None = None, **fields: Any
    ) -> Explanation:
        """How each hit of a fetch came to its place."""
        request = as_request(FetchRequest, request, fields)
        return self._reads.explain(self._within(request), id, self._of)

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer a question from the admitted items within reach."""
        request = as_request(RecallRequest, request, fields)
        return self._reads.recall(self._within(request), self._of)

    def close(self) -> None:
        """Let go of the index."""
        with self._lock:
            words, self._words, self._store = self._words, None, None
        if words is not None:
            words.lexical.close()

    def _within(self, request: Any) -> Any:
        if request.filter.reach is not None:
            return request
        filter = request.filter.replace(reach=self.reach)
        return msgspec.structs.replace(request, filter=filter)

    def _of(self, store: Store) -> Words:
        """The words of a store; of another one than before, compacted say, they are read anew."""
        with self._lock:
            held = None if self._store is None else self._store()
            if self._words is None or held is not store:
                self._words, self._store = PartWords(store, self.reach), weakref.ref(store)
            return self._words
