"""Keeps the lexical index level with the rows of a store: fed on demand, in bulk by a thread.

The index is derived. What it lacks is fed and committed before a ranked read, what a failure left
behind is fed again, and an index that fails twice in a row is built anew. Of a large index the last
few rows are searched beside it meanwhile, so that a read need not wait for the commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
import pyarrow as pa

from colmem import stored
from colmem.contract import MetaFilter, Unavailable
from colmem.index.lexical import LexicalIndex
from colmem.index.lexical_files import LexicalDamagedError
from colmem.index.lexical_tail import Tail
from colmem.schema import Admitted, Candidates, RowIds, View
from colmem.stored import StoredItem

BATCH_ROWS = 5_000
STALE_SHARE = 0.3  # forgotten documents that may still count in the statistics of BM25
TAIL_ROWS_SOON = 128  # rows behind the index from which it is brought level in the background
TAIL_ROWS_MAX = 1024  # and from which reads wait for that
TAIL_BYTES_MAX = 1 << 20  # of stored items, likewise
TAIL_SHARE_MAX = 0.01  # of the index: fewer rows change its average length too little to matter
_NOT_LEVEL = -1


class LexicalLevel:
    """How far the lexical index of one store is, and the way to bring it further.

    Parameters
    ----------
    index
        The index; what it holds beyond the store's rows is thrown away.
    view
        Gives the rows of the store at the moment.
    read
        Gives whole rows.
    gone
        Rows forgotten that the index still holds: the store adds to it, here they are taken out.
    """

    def __init__(
        self,
        index: LexicalIndex,
        view: Callable[[], View],
        read: Callable[[RowIds], list[StoredItem]],
        gone: list[int],
    ) -> None:
        self._index = index
        self._view = view
        self._read = read
        self._gone = gone
        self._lock = threading.Lock()
        self._tail: Tail | None = None
        self._tail_lock = threading.Lock()
        n_rows = view().n_rows
        self._fed = min(index.watermark, n_rows)  # rows given to the index
        if index.watermark > n_rows:
            self._clear()
        self._level = self._fed  # rows that a search finds
        self._has_failed = False
        self._is_read = False  # since it was last brought level in the background
        self._feeder = ThreadPoolExecutor(1, "colmem-lexical")
        self._feeding: Future[None] | None = None

    def ready(self) -> None:
        """Make `search` find what was stored before.

        Raises
        ------
        Unavailable
            When the index has to be brought level and its files cannot be written.
        """
        self._is_read = True
        view = self._view()
        if not (self._is_level(view) or self._tail_reaches(view)):
            self.level()

    def search(
        self, query: str, k: int, filter: MetaFilter, admitted: Callable[[], Admitted]
    ) -> Candidates:
        """The k best rows that hold a term of a query and are admitted, best first.

        Forgotten ones may be among them still.

        admitted : gives what the filter admits, of a view taken after `ready` was called.
        """
        tail, now_s = self._tail, int(time.time())
        if tail is None or tail.end <= self._index.view.watermark:
            return self._index.search(query, k, filter=filter, now_s=now_s)
        mask = admitted().mask
        return self._index.search_with(tail, query, k, filter=filter, now_s=now_s, mask=mask)

    def level(self) -> None:
        """Bring the index level with the rows.

        Raises
        ------
        Unavailable
            When its files cannot be written.
        """
        if self._is_level(self._view()):
            return
        self._await_feeder()
        with self._lock:
            problem = self._bring_level()
            if problem and self._index.is_damaged():
                problem = self._bring_level()  # which now builds it anew
        if problem:
            raise Unavailable(
                f"{problem}; nothing is lost, free some space or check the disk, then call again"
            )

    def distrust(self) -> None:
        """Have the index, whose files cannot be read, built anew at the next read."""
        with self._lock:
            self._has_failed = True
            self._level = _NOT_LEVEL

    def feed_soon(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Have rows of a bulk write fed while the next ones come; one batch at a time."""
        self._await_feeder()
        self._feeding = self._feeder.submit(self._feed_batch, batch, first_row)

    def level_soon(self) -> None:
        """After a write, bring the index level in the background if there are readers.

        A read that comes a little later then waits for nothing; a store that is only written to
        does no such work, nor one whose readers find the few new rows beside the index.
        """
        if self._is_read and self._is_due() and (self._feeding is None or self._feeding.done()):
            self._feeding = self._feeder.submit(self._level_quietly)

    def close(self) -> None:
        """End the feeding thread."""
        self._feeder.shutdown()

    def _is_level(self, view: View) -> bool:
        return self._level == view.n_rows and not self._gone

    def _is_due(self) -> bool:
        """Whether reads would have to wait for the index, or soon."""
        view = self._view()
        if self._is_level(view):
            return False
        return not self._may_have_tail(view) or self._lag(view) >= TAIL_ROWS_SOON

    def _lag(self, view: View) -> int:
        return view.n_rows - self._index.view.watermark

    def _may_have_tail(self, view: View) -> bool:
        most = min(TAIL_ROWS_MAX, int(TAIL_SHARE_MAX * self._index.view.n_held))
        return self._lag(view) <= most and not self._gone and not self._has_failed

    def _tail_reaches(self, view: View) -> bool:
        """Add what the tail lacks, if it stays small."""
        with self._tail_lock:
            if not self._may_have_tail(view):
                return False
            tail = self._index.new_tail()
            if self._tail is not None and self._tail.view is tail.view:
                tail = self._tail
            rows = tail.end + np.flatnonzero(view.live[tail.end :])
            if len(rows):
                batch = stored.to_batch(stored.columns_of(self._read(rows)))
                if tail.n_bytes + batch.nbytes > TAIL_BYTES_MAX:
                    return False
                tail.add(batch, view.n_rows)
            self._tail = tail
        return True

    def _await_feeder(self) -> None:
        feeding = self._feeding
        if feeding is not None:
            wait([feeding])

    def _feed_batch(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Feed rows, when all before them were fed."""
        with self._lock:
            if self._fed != first_row:
                return
            try:
                self._index.add(batch)
                self._fed = first_row + batch.num_rows
            except Exception:  # noqa: BLE001 - as said below, and a thread has nobody to tell
                # The rows are stored; the next ranked read tries again, and says what is wrong.
                self._fall_behind()

    def _level_quietly(self) -> None:
        while self._is_read and self._is_due():
            self._is_read = False
            with self._lock:
                if self._bring_level():
                    self._has_failed = False  # the next read says so, if it is still so
                    return

    def _bring_level(self) -> str:
        """Feed and commit what the index lacks; says what failed, or nothing.

        A second failure in a row is taken for damage, and the index is built anew. The error itself
        is not passed on: it would keep a failed writer, and that writer's lock, alive.
        """
        view = self._view()
        if self._is_level(view):
            return ""
        # Writers only ever add at the end, so the first n are ours.
        gone = self._gone[:]
        try:
            if self._has_failed:
                self._clear()
            self._feed(view)
            if gone:
                self._index.delete(np.array(gone, np.int64))
            self._index.commit(view.n_rows)
            self._level = view.n_rows
            self._let_tail_go()
            del self._gone[: len(gone)]
            if gone and self._index.deleted_share > STALE_SHARE:
                self._clear()
                self._feed(view)
                self._index.commit(view.n_rows)
        except (LexicalDamagedError, OSError) as error:
            self._fall_behind()
            return str(error)
        self._has_failed = False
        return ""

    def _let_tail_go(self) -> None:
        with self._tail_lock:
            if self._tail is not None and self._tail.end <= self._index.view.watermark:
                self._tail = None

    def _feed(self, view: View) -> None:
        """Give the index the live rows it has not been given, in batches."""
        while self._fed < view.n_rows:
            end = min(self._fed + BATCH_ROWS, view.n_rows)
            rows = self._fed + np.flatnonzero(view.live[self._fed : end])
            if len(rows):
                self._index.add(stored.to_batch(stored.columns_of(self._read(rows))))
            self._fed = end

    def _clear(self) -> None:
        self._fed = 0
        self._index.clear()

    def _fall_behind(self) -> None:
        """After a failure the index is what its last commit made it."""
        self._has_failed = True
        self._fed = min(self._fed, self._index.watermark)
        self._level = _NOT_LEVEL
