"""What a ranking knows about words: an index to search them by, and how common each is.

Of the whole store, or of the part of it that a reach sees, as if nothing else were stored: then
neither scores nor their order tell anything of what lies elsewhere.
"""

from __future__ import annotations

import threading
import time
import weakref
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from colmem import stored
from colmem.contract import MetaFilter, Reach
from colmem.index.lexical import LexicalIndex
from colmem.lexical_level import BATCH_ROWS, STALE_SHARE
from colmem.schema import Candidates, RowIds, View
from colmem.store import Store


class Words(Protocol):
    """Words of some items."""

    @property
    def lexical(self) -> LexicalIndex:
        """The index, for what it knows of terms."""

    @property
    def n_items(self) -> int:
        """How many items there are."""

    def ready(self) -> None:
        """Make `search` find all that is stored."""

    def level(self) -> None:
        """Bring the index level with the store, for what only the index can tell."""

    def search(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        """The k best rows that hold a term of a query and match the filter, best first.

        view : of the store, taken after `ready`; rows behind it and forgotten ones may be found.
        """

    def piece_frequency(self) -> npt.NDArray[np.int64]:
        """In how many of the items each word piece stands: int64 (n_piece_ids,)."""


class StoreWords:
    """Words of all items of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lexical = store.lexical

    @property
    def n_items(self) -> int:
        """Items of the store."""
        return self._store.n_live

    def ready(self) -> None:
        """As :class:`Words`."""
        self._store.lexical_level.ready()

    def level(self) -> None:
        """As :class:`Words`."""
        self._store.lexical_level.level()

    def search(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        """As :class:`Words`."""
        admitted = partial(self._store.admitted, filter, view)
        return self._store.lexical_level.search(query, k, filter, admitted)

    def piece_frequency(self) -> npt.NDArray[np.int64]:
        """As :class:`Words`."""
        assert self._store.pieces is not None
        return self._store.pieces.document_frequency()


class PartWords:
    """Words of the items that a reach sees, in an index of their own, which is kept in memory."""

    def __init__(self, store: Store, reach: Reach) -> None:
        self.lexical = LexicalIndex(None)
        self._store: Store = weakref.proxy(store)
        self._filter = MetaFilter(reach=reach)
        self._lock = threading.Lock()
        self._version = -1  # of the view that the index is level with
        self._start_anew()

    @property
    def n_items(self) -> int:
        """Items within reach."""
        return len(self._rows)

    def ready(self) -> None:
        """As :class:`Words`; the first time, all items within reach are indexed."""
        with self._lock:
            view = self._store.view
            if view.version == self._version:
                return
            self._bring_level(view)
            if self.lexical.deleted_share > STALE_SHARE:
                self.lexical.clear()
                self._start_anew()
                self._bring_level(view)
            self._version = view.version

    def level(self) -> None:
        """As :class:`Words`."""
        self.ready()

    def search(self, query: str, k: int, filter: MetaFilter, view: View) -> Candidates:
        """As :class:`Words`."""
        del view
        return self.lexical.search(query, k, filter=filter, now_s=int(time.time()))

    def piece_frequency(self) -> npt.NDArray[np.int64]:
        """As :class:`Words`."""
        return self._frequency

    def _start_anew(self) -> None:
        pieces = self._store.pieces
        self._n_seen = 0  # rows of the store looked at
        self._rows: RowIds = np.empty(0, np.int64)  # those within reach
        self._frequency = np.zeros(0 if pieces is None else pieces.n_piece_ids, np.int64)

    def _bring_level(self, view: View) -> None:
        is_gone = view.live[self._rows] == 0
        gone = self._rows[is_gone]
        mask = self._store.admitted(self._filter, view).mask
        fresh = self._n_seen + np.flatnonzero(mask[self._n_seen :])
        is_first, self._n_seen = self._n_seen == 0, view.n_rows
        if not is_first and len(gone) == len(fresh) == 0:
            return  # what others do leaves no trace here, not even a commit
        self.lexical.delete(gone)
        self._count(gone, -1)
        for start in range(0, len(fresh), BATCH_ROWS):
            rows = fresh[start : start + BATCH_ROWS]
            self.lexical.add(stored.to_batch(stored.columns_of(self._store.read(rows))))
        self._count(fresh, 1)
        self.lexical.commit(view.n_rows)
        if self.lexical.deleted_share:
            # Forgotten items count until a merge drops them: that must not be left to chance.
            self.lexical.flush()
        self._rows = np.concatenate([self._rows[~is_gone], fresh])

    def _count(self, rows: RowIds, by: int) -> None:
        if self._store.pieces is None:
            return
        frequency = self._frequency.copy()  # a ranking may be reading the other
        for start in range(0, len(rows), BATCH_ROWS):
            self._store.pieces.count(rows[start : start + BATCH_ROWS], by, frequency)
        self._frequency = frequency
