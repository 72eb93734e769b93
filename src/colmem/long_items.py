"""Search by meaning in a store that holds long items: an item is as near as its best passage.

Keeps the passage index level with a store's rows: it reads the rows that may be long, cuts them,
embeds the passages. Nothing waits for it but searches by meaning. With no long item in the store
every search is the plain vector index's.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from colmem import stored
from colmem.contract import ColmemError, Conversation, EngineError, ItemKind, Unavailable
from colmem.explanation import Span
from colmem.index import spans
from colmem.index.passages import PassageIndex
from colmem.schema import Admitted, Candidates, RowIds, Scores, Vectors
from colmem.store import Store
from colmem.stored import StoredItem

PASSAGE_SHARE = 0.5
"""A passage's vector is its own by this share, its item's by the rest: it keeps what the item is
about. Chosen on SciFact, see bench/results/quality.md."""

_RECORD_BYTES_MIN = 800  # of the stored form of an item that may be long
_SCAN_ROWS = 50_000
_EMBED_ROWS = 256
_FLUSH_PASSAGES = 50_000


class LongItems:
    """A store's vectors together with those of its passages.

    embed : texts -> float32 (n, dim), rows L2-normalised.
    """

    def __init__(
        self, store: Store, folder: Path | None, embed: Callable[[Sequence[str]], Vectors]
    ) -> None:
        # Weak, for the store holds this: a replaced one goes when its last reader has.
        self._store: Store = weakref.proxy(store)
        self._embed = embed
        self._index = PassageIndex(
            folder, store.dim, read_only=store.read_only, is_exact=store.vectors.is_exact
        )
        if self._index.n_rows > store.view.n_rows:
            self._index.clear()
        self._lock = threading.Lock()
        self._n_read = 0  # rows read since the last flush
        self._n_flushed = self._index.n_passages

    @property
    def n_passages(self) -> int:
        """Passages searchable."""
        return self._index.n_passages

    # Searching, as the vector index does.

    def search(self, query: Vectors, k: int, admitted: Admitted) -> Candidates:
        """The k best admitted rows, best first."""
        found = self._store.vectors.search(query, k, admitted)
        return self._merged(query, k, admitted, found)

    def search_with_bounds(
        self, query: Vectors, k: int, admitted: Admitted
    ) -> tuple[Candidates, float, float]:
        """The k best, and the lowest and highest score of all admitted rows."""
        found, low, high = self._store.vectors.search_with_bounds(query, k, admitted)
        merged = self._merged(query, k, admitted, found)
        return merged, low, max(high, float(merged.scores[0])) if len(merged.rows) else high

    def scores(self, query: Vectors, rows: RowIds) -> Scores:
        """Scores of rows: float32 (n,)."""
        scores = self._store.vectors.scores(query, rows)
        if self._index.n_passages:
            self._index.raise_scores(query, rows, scores)
        return scores

    def span_of(self, query: Vectors, item: StoredItem) -> Span | None:
        """The passage of an item that is nearest to a query; None for an item without any."""
        scores = self._index.passage_scores(query, item.row)
        if len(scores) == 0:
            return None
        start, end = _spans(item)[int(np.argmax(scores))]
        return Span(start=start, end=end, text=item.text[start:end])

    # Keeping level.

    def ready(self) -> None:
        """Bring the passages level with the rows.

        Raises
        ------
        Unavailable
            When their files cannot be written.
        """
        if self._index.n_rows >= self._store.view.n_rows:
            return
        with self._lock:
            try:
                self._bring_level()
            except (OSError, EngineError) as error:
                cause = error.__cause__ if isinstance(error, EngineError) else error
                if not isinstance(cause, OSError):
                    raise
                raise Unavailable(
                    f"the passages of long items could not be written: {cause.strerror or cause}; "
                    "nothing is lost, free some space or check the disk, then call again"
                ) from error

    def ready_quietly(self) -> None:
        """Do as :meth:`ready`; what fails is left to the next search, which says so."""
        with suppress(ColmemError):
            self.ready()

    def adopt(self, old: LongItems, rows: RowIds) -> None:
        """Take the passages of another generation, whose ``rows`` are this one's, in order."""
        with self._lock:
            owners = old._index.owners()
            kept = np.flatnonzero(np.isin(owners, rows))
            new = np.searchsorted(rows, owners)
            for start in range(0, len(kept), _FLUSH_PASSAGES):
                part = kept[start : start + _FLUSH_PASSAGES]
                self._index.add(new[part], old._index.take(part), int(new[part[-1]]))
            n_done = int(np.searchsorted(rows, old._index.n_rows))
            self._index.add(np.empty(0, np.int64), self._none(), n_done)
            self._n_read += n_done

    def verify(self) -> bool:
        """Whether the passages are what was written; if not, they are made again."""
        self.ready()
        with self._lock:
            if self._index.verify():
                return True
            self._index.clear()
        self.ready()
        return False

    def flush(self) -> None:
        """Make the passages durable, if there is anything worth keeping since the last time."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Release the files."""
        self._index.close()

    def _bring_level(self) -> None:
        store, index = self._store, self._index
        view = store.view
        while index.n_rows < view.n_rows:
            end = min(index.n_rows + _SCAN_ROWS, view.n_rows)
            may_be_long = store.record_bytes(index.n_rows, end) >= _RECORD_BYTES_MIN
            rows = index.n_rows + np.flatnonzero(may_be_long & (view.live[index.n_rows : end] != 0))
            for start in range(0, len(rows), _EMBED_ROWS):
                part = rows[start : start + _EMBED_ROWS]
                owners, vectors = self._passages(store.read(part))
                index.add(owners, vectors, int(part[-1]) + 1)
                self._n_read += len(part)
                if index.n_passages - self._n_flushed >= _FLUSH_PASSAGES:
                    self._flush()
            index.add(np.empty(0, np.int64), self._none(), end)

    def _passages(self, items: Sequence[StoredItem]) -> tuple[RowIds, Vectors]:
        owners: list[int] = []
        texts: list[str] = []
        for item in items:
            if item.has_vector:
                cut = _spans(item)
                owners += [item.row] * len(cut)
                texts += [item.text[start:end] for start, end in cut]
        rows = np.array(owners, np.int64)
        if not texts:
            return rows, self._none()
        whole = self._store.vectors.take(rows)
        mixed = PASSAGE_SHARE * self._embed(texts) + (1 - PASSAGE_SHARE) * whole
        return rows, np.ascontiguousarray(mixed, np.float32)

    def _merged(self, query: Vectors, k: int, admitted: Admitted, found: Candidates) -> Candidates:
        if self._index.n_passages == 0:
            return found
        return self._index.merge(query, k, admitted, found, lambda rows: self.scores(query, rows))

    def _none(self) -> Vectors:
        return np.empty((0, self._store.dim), np.float32)

    def _flush(self) -> None:
        if self._n_read:
            self._index.flush()
            self._n_read, self._n_flushed = 0, self._index.n_passages


def _spans(item: StoredItem) -> list[spans.Span]:
    turns: list[spans.Span] = []
    if item.kind == ItemKind.CONVERSATION:
        conversation = stored.item_of(item)
        assert isinstance(conversation, Conversation)
        at = 0
        for turn in conversation.turns:
            end = at + len(turn.render())
            turns.append(spans.Span(at, end))
            at = end + 1  # a line break stands between
    return spans.passage_spans(item.text, turns)
