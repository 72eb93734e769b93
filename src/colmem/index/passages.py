"""Embeddings of the passages of long items, and the row each passage belongs to.

A second vector index beside that of the items, derived from their texts: it may be thrown away at
any time and is made again from the rows. ``n_rows`` says how many rows were looked at; what was
added after the last flush is added again after a crash.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from colmem.contract.errors import CorruptStore
from colmem.files import AppendFile, fsync_folder
from colmem.index.masks import count_ones
from colmem.index.spans import SPANS_VERSION
from colmem.index.vector import VectorIndex
from colmem.index.vector_search import best_of
from colmem.schema import Admitted, Candidates, Mask, RowIds, Scores, Vectors

OWNERS_NAME = "owners.i64"
STATE_NAME = "passages.json"
_GROWTH = 4  # of the passages looked at when these belong to too few items


class _State(msgspec.Struct, frozen=True):
    version: int
    rows: int
    passages: int


class _View(NamedTuple):
    """Owners int64 (n,), ascending: the row of each passage searchable."""

    owners: RowIds


class PassageIndex:
    """Passages of rows, added in order of rows; ``folder=None`` keeps them in memory.

    A passage's score is the dot product of the query with its vector; a row's the best of its
    passages'. Readers take one immutable view; additions come from one thread at a time. A reader
    adds to a copy in memory.
    """

    n_rows: int
    """Rows below it were looked at."""

    def __init__(
        self, folder: Path | None, dim: int, *, read_only: bool = False, is_exact: bool = False
    ) -> None:
        self._dim = dim
        self._is_exact = is_exact
        self._folder = folder
        self._read_only = read_only
        state = None if folder is None else _read_state(folder)
        try:
            self._open(state)
        except (CorruptStore, ValueError, OSError):
            self.clear()

    @property
    def n_passages(self) -> int:
        """Passages searchable."""
        return len(self._view.owners)

    # Writing.

    def add(self, owners: RowIds, vectors: Vectors, n_rows: int) -> None:
        """Add passages of the rows up to ``n_rows``; searchable on return.

        owners : int64 (n,), ascending; vectors : float32 (n, dim).
        """
        if len(owners):
            self._settle()
            try:
                self._vectors.append(vectors, sync=False)
                self._owners.append(np.ascontiguousarray(owners, "<i8").data, sync=False)
            except BaseException:
                self._vectors.discard()
                self._owners.length = 8 * self.n_passages
                raise
            self._publish(self.n_passages + len(owners))
        self.n_rows = n_rows

    def flush(self) -> None:
        """Make everything durable, and record how far it goes."""
        if self._folder is None or self._read_only:
            return
        self._settle()
        self._vectors.flush()
        self._owners.sync()
        state = _State(SPANS_VERSION, self.n_rows, self.n_passages)
        temporary = self._folder / f"{STATE_NAME}.new"
        temporary.write_bytes(msgspec.json.encode(state))
        temporary.rename(self._folder / STATE_NAME)
        fsync_folder(self._folder)

    def clear(self) -> None:
        """Start anew, with nothing and no row looked at."""
        self._open(None)

    def verify(self) -> bool:
        """Whether the vectors are what was written; reads all of them."""
        try:
            return self._vectors.verify()
        except CorruptStore:
            return False

    def close(self) -> None:
        """Release the files."""
        self._vectors.close()
        self._owners.close()

    # Reading.

    def owners(self) -> RowIds:
        """The row of each passage: int64 (n,), ascending."""
        return self._view.owners

    def take(self, passages: RowIds) -> Vectors:
        """Vectors of passages: float32 (n, dim)."""
        return self._vectors.take(passages)

    def places(self, rows: RowIds) -> tuple[RowIds, RowIds]:
        """For each row its first passage and the one behind its last: int64 (n,) each."""
        owners = self._view.owners
        return np.searchsorted(owners, rows, "left"), np.searchsorted(owners, rows, "right")

    def raise_scores(self, query: Vectors, rows: RowIds, scores: Scores) -> None:
        """Raise scores of rows to those of their best passages, where these are higher.

        query : float32 (dim,); rows : int64 (n,); scores : float32 (n,), changed in place.
        """
        first, last = self.places(rows)
        counts = last - first
        has = np.flatnonzero(counts)
        if len(has) == 0:
            return
        first, counts = first[has], counts[has]
        starts = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) + np.repeat(first - starts, counts)
        best = np.maximum.reduceat(self._vectors.scores(query, at), starts)
        scores[has] = np.maximum(scores[has], best)

    def passage_scores(self, query: Vectors, row: int) -> Scores:
        """Scores of one row's passages, in order: float32 (n,)."""
        first, last = self.places(np.array([row], np.int64))
        return self._vectors.scores(query, np.arange(first[0], last[0]))

    def merge(
        self, query: Vectors, k: int, admitted: Admitted, base: Candidates, scores_of: Any
    ) -> Candidates:
        """The k best admitted rows by their best passage or by themselves.

        base : the k best by themselves; scores_of : rows -> float32 (n,), the rows' whole scores.
        No row left out can be better: by itself it is below those of ``base``, by its passages
        below the last passage looked at.
        """
        owners = self._view.owners
        owners = owners[: np.searchsorted(owners, len(admitted.mask))]
        mask: Mask = admitted.mask[owners]
        count = count_ones(mask)
        if count == 0 or k <= 0:
            return base
        if len(base.rows) < k:  # these are all there are
            return best_of(base.rows, scores_of(base.rows), k)
        among = Admitted(mask, count, is_all=False)
        n_wanted = min(2 * k, count)
        while True:
            found = self._vectors.search(query, n_wanted, among)
            rows = np.union1d(base.rows, owners[found.rows])
            best = best_of(rows, scores_of(rows), k)
            if n_wanted >= count or best.scores[-1] >= found.scores[-1]:
                return best
            n_wanted = min(_GROWTH * n_wanted, count)

    # Parts.

    def _open(self, state: _State | None) -> None:
        """Open what is there; without a state nothing is, and nothing is made on disk yet."""
        n_passages = 0 if state is None else state.passages
        self.n_rows = 0 if state is None else state.rows
        self._is_on_disk = state is not None
        self._open_files(self._folder if self._is_on_disk else None, n_passages, self._read_only)

    def _open_files(self, folder: Path | None, n_passages: int, read_only: bool) -> None:
        read_only = read_only and folder is not None
        self._owners = AppendFile(
            None if folder is None else folder / OWNERS_NAME,
            length=8 * n_passages,
            read_only=read_only,
        )
        self._vectors = VectorIndex(
            folder,
            self._dim,
            n_rows=n_passages,
            read_only=read_only,
            is_exact=self._is_exact,
        )
        self._view = _View(self._owners_held(n_passages))

    def _settle(self) -> None:
        """Be where additions go: on disk, or for a reader in memory with a copy of what is held."""
        if self._read_only and self._is_on_disk:
            owners, vectors = self._view.owners.copy(), self.take(np.arange(self.n_passages))
            n_rows = self.n_rows
            self._open(None)
            self.add(owners, vectors, n_rows)
        elif self._folder is not None and not (self._read_only or self._is_on_disk):
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            self._open_files(self._folder, 0, read_only=False)
            self._is_on_disk = True

    def _publish(self, n_passages: int) -> None:
        self._vectors.publish(n_passages)
        self._view = _View(self._owners_held(n_passages))

    def _owners_held(self, n: int) -> RowIds:
        held: npt.NDArray[Any] = self._owners.array("<i8", n)
        return held


def _read_state(folder: Path) -> _State | None:
    try:
        state = msgspec.json.decode((folder / STATE_NAME).read_bytes(), type=_State)
    except (OSError, msgspec.MsgspecError):
        return None
    return state if state.version == SPANS_VERSION else None
