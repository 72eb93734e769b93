"""The embeddings of the items: appended, read back exactly, and searched by dot product.

Row i of the file is the embedding of row i of the table; a row counts when the table says so, and
is searchable once :meth:`VectorIndex.publish` was called. Must not know what an item is.
Readers take one immutable view and then no lock; appends come from one thread at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from colmem.contract.errors import CorruptStore, InvalidRequest
from colmem.files import AppendFile
from colmem.schema import Admitted, Candidates, Mask, RowIds, Scores, Vectors
from colmem_kernels.similarity import dot_rows, dot_top

EMBEDDINGS_NAME = "embeddings.f32"


class _View(NamedTuple):
    """What a reader sees: vectors float32 (>= n_rows, dim)."""

    n_rows: int
    vectors: Vectors


class VectorIndex:
    """Embeddings of one dimension, exact and approximate search under a mask of admitted rows.

    Scores are dot products of the stored float32 rows; ties are in order of rows.
    """

    def __init__(
        self, folder: Path | None, dim: int, *, n_rows: int, read_only: bool = False
    ) -> None:
        self.dim = dim
        self._path = None if folder is None else folder / EMBEDDINGS_NAME
        if folder is None and n_rows:
            raise ValueError(f"n_rows is {n_rows}, but vectors kept in memory start empty")
        if folder is not None:
            held = self.n_file_rows(folder, dim)
            if held < n_rows:
                raise CorruptStore(
                    f"{self._path} holds {held} whole embeddings of {dim} float32, the table "
                    f"refers to {n_rows}; restore the file from a backup"
                )
        try:
            # A reader of a store that never held a vector finds no file.
            nothing = read_only and self._path is not None and not self._path.exists()
            self._file = AppendFile(
                None if nothing else self._path,
                length=n_rows * self._row_bytes,
                read_only=read_only,
            )
        except OSError as error:
            raise CorruptStore(f"{self._path} cannot be opened: {error.strerror}") from error
        self._view = self._make_view(n_rows)

    @property
    def n_rows(self) -> int:
        """Rows searchable."""
        return self._view.n_rows

    @property
    def _row_bytes(self) -> int:
        return 4 * self.dim

    @staticmethod
    def n_file_rows(folder: Path, dim: int) -> int:
        """Whole rows present in the embeddings file, those past the last commit included."""
        path = folder / EMBEDDINGS_NAME
        try:
            return path.stat().st_size // (4 * dim)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise CorruptStore(f"{path} cannot be read: {error.strerror}") from error

    # Writing -----------------------------------------------------------------------------------

    def append(self, vectors: Vectors, *, sync: bool = True) -> int:
        """Write rows at the end and return the first one's number; searchable after publish.

        vectors : float32 (n, dim), C-order, finite.
        ``sync`` returns after fdatasync.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dim or vectors.dtype != np.float32:
            raise InvalidRequest(
                f"embeddings are {vectors.dtype} of shape {vectors.shape}, "
                f"expected float32 of shape (n, {self.dim})"
            )
        if not np.isfinite(vectors).all():
            at = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise InvalidRequest(
                f"embeddings[{at}] holds NaN or infinity, expected {self.dim} finite numbers"
            )
        first = self._file.length // self._row_bytes
        self._file.append(np.ascontiguousarray(vectors).reshape(-1).data, sync=sync)
        return first

    def discard(self) -> None:
        """Forget the rows appended but not published: the next append takes their place."""
        self._file.length = self._view.n_rows * self._row_bytes

    def publish(self, n_rows: int) -> None:
        """Make the rows below ``n_rows`` searchable."""
        assert self._view.n_rows <= n_rows <= self._file.length // self._row_bytes
        self._view = self._make_view(n_rows)

    def flush(self) -> None:
        """Make everything appended durable."""
        self._file.sync()

    def close(self) -> None:
        """Release the file; searches still running finish."""
        self._file.close()

    def _make_view(self, n_rows: int) -> _View:
        held = self._file.array(np.float32, n_rows * self.dim)
        return _View(n_rows, cast(Vectors, held).reshape(n_rows, self.dim))

    # Reading -----------------------------------------------------------------------------------

    def take(self, rows: RowIds) -> Vectors:
        """Read stored embeddings, exactly: float32 (len(rows), dim), a copy."""
        return self._view.vectors[rows]

    def scores(self, query: Vectors, rows: RowIds) -> Scores:
        """Exact dot products of the query, float32 (dim,), with rows: float32 (len(rows),)."""
        query = self._checked_query(query)
        out = np.empty(len(rows), np.float32)
        dot_rows(self._view.vectors, query, np.ascontiguousarray(rows, np.int64), out)
        return out

    def search(
        self, query: Vectors, k: int, admitted: Admitted, *, exact: bool = False, threads: int = 1
    ) -> Candidates:
        """Find the k best admitted rows, best first; ``exact`` compares every admitted embedding."""
        return self.search_with_bounds(query, k, admitted, exact=exact, threads=threads)[0]

    def score_bounds(
        self, query: Vectors, admitted: Admitted, *, exact: bool = False, threads: int = 1
    ) -> tuple[float, float]:
        """Lowest and highest score of the admitted rows; (0, 0) when none is admitted."""
        _, lowest, highest = self.search_with_bounds(
            query, 1, admitted, exact=exact, threads=threads
        )
        return lowest, highest

    def search_with_bounds(
        self, query: Vectors, k: int, admitted: Admitted, *, exact: bool = False, threads: int = 1
    ) -> tuple[Candidates, float, float]:
        """:meth:`search` and :meth:`score_bounds` in one pass."""
        query = self._checked_query(query)
        view = self._view
        mask = _checked_mask(admitted, view.n_rows)
        n_rows = min(len(mask), view.n_rows)
        return _exact_top(view.vectors, query, mask, n_rows, min(k, admitted.count))

    def _checked_query(self, query: Vectors) -> Vectors:
        query = np.ascontiguousarray(query, np.float32)
        if query.shape != (self.dim,):
            raise InvalidRequest(f"query embedding has shape {query.shape}, expected ({self.dim},)")
        if not np.isfinite(query).all():
            raise InvalidRequest(
                f"query embedding holds NaN or infinity, expected {self.dim} finite numbers"
            )
        return query


def _checked_mask(admitted: Admitted, n_rows: int) -> Mask:
    mask = admitted.mask
    assert mask.dtype == np.uint8
    return np.ascontiguousarray(mask[:n_rows])


def _exact_top(
    vectors: Vectors, query: Vectors, mask: Mask, n_rows: int, k: int
) -> tuple[Candidates, float, float]:
    rows = np.empty(max(k, 0), np.int64)
    scores = np.empty(max(k, 0), np.float32)
    bounds = np.empty(2, np.float32)
    count = dot_top(vectors, query, mask, 0, n_rows, rows, scores, bounds)
    best = _ordered(rows[:count], scores[:count])
    if bounds[0] > bounds[1]:
        return best, 0.0, 0.0
    return best, float(bounds[0]), float(bounds[1])


def _ordered(rows: RowIds, scores: Scores) -> Candidates:
    order = np.lexsort((rows, -scores))
    return Candidates(rows[order], scores[order])
