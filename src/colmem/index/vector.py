"""The embeddings of the items: appended, read back exactly, and searched by dot product.

Row i of the file is the embedding of row i of the table; a row counts when the table says so, and
is searchable once :meth:`VectorIndex.publish` was called. Must not know what an item is.
Readers take one immutable view and then no lock; appends come from one thread at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, cast

import numpy as np

from colmem.contract.errors import CorruptStore, EngineError, InvalidRequest
from colmem.files import AppendFile, fsync_folder
from colmem.index.vector_checksums import Checksums
from colmem.index.vector_search import Found, SearchView, Workers, compares_all, search_view
from colmem.schema import Admitted, Candidates, RowIds, Scores, Vectors
from colmem_kernels.similarity import dot_rows

EMBEDDINGS_NAME = "embeddings.f32"
CODED_ROWS_MIN = 4097
"""Below this many rows every search is exact and no codes are kept."""
CODED_DIM_MIN = 48
"""Below this dimension a code is no shorter than the embedding."""
CODED_DIM_MAX = 1 << 13
"""Above this dimension a query's tables would be too coarse."""

if TYPE_CHECKING:
    from colmem.index.codes import Codes


class VectorIndex:
    """Embeddings of one dimension, exact and approximate search under a mask of admitted rows.

    Scores are dot products of the stored float32 rows; ties are in order of rows.
    """

    def __init__(
        self,
        folder: Path | None,
        dim: int,
        *,
        n_rows: int,
        read_only: bool = False,
        is_exact: bool = False,
    ) -> None:
        self.dim = dim
        self.is_exact = is_exact  # every search compares all admitted rows, without codes
        self._folder = folder
        self._read_only = read_only
        self._path = None if folder is None else folder / EMBEDDINGS_NAME
        if folder is None and n_rows:
            raise ValueError(f"n_rows is {n_rows}, but vectors kept in memory start empty")
        self._checksums: Checksums | None = None
        if folder is not None:
            self._check_folder(folder, n_rows)
        self._file = self._open_file(n_rows)
        self._codes: Codes | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._executor_lock = Lock()
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

    def _check_folder(self, folder: Path, n_rows: int) -> None:
        checksums = Checksums(folder, self.dim, n_rows)
        if checksums.file_dim not in (None, self.dim):
            raise CorruptStore(
                f"{self._path} holds embeddings of dimension {checksums.file_dim}, the store says "
                f"{self.dim}; restore the file or the store's settings from a backup"
            )
        held = self.n_file_rows(folder, self.dim)
        if held < n_rows:
            raise CorruptStore(
                f"{self._path} holds {held} whole embeddings of {self.dim} float32, the table "
                f"refers to {n_rows}; restore the file from a backup"
            )
        self._checksums = checksums

    def _open_file(self, n_rows: int) -> AppendFile:
        path = self._path
        if self._read_only and path is not None and not path.exists():
            path = None  # Nothing was stored yet, and a reader creates nothing.
        try:
            is_new = path is not None and not path.exists()
            file = AppendFile(path, length=n_rows * self._row_bytes, read_only=self._read_only)
            if is_new and path is not None:
                fsync_folder(path.parent)
        except OSError as error:
            raise CorruptStore(f"{path} cannot be opened: {error.strerror}") from error
        return file

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
        try:
            self._file.append(np.ascontiguousarray(vectors).reshape(-1).data, sync=sync)
        except OSError as error:
            raise EngineError(
                f"{self._path} cannot be written: {error.strerror}; nothing was stored"
            ) from error
        return first

    def discard(self) -> None:
        """Forget the rows appended but not published: the next append takes their place."""
        self._file.length = self._view.n_rows * self._row_bytes

    def publish(self, n_rows: int) -> None:
        """Make the rows below ``n_rows`` searchable."""
        assert self._view.n_rows <= n_rows <= self._file.length // self._row_bytes
        self._view = self._make_view(n_rows)

    def flush(self) -> None:
        """Make everything appended durable, and write codes and checksums beside it.

        Called by the writing thread.
        """
        if self._read_only:
            return
        view = self._view
        try:
            self._file.sync()
            if self._codes is not None:
                self._codes.flush()
            if self._checksums is not None:
                self._checksums.extend(view.vectors)
        except OSError as error:
            raise EngineError(
                f"{self._path} or a file beside it cannot be written: {error.strerror}"
            ) from error

    def verify(self) -> bool:
        """Read everything and compare it with its checksums; called by the writing thread.

        Returns False when the codes did not fit the embeddings; they were made again.

        Raises
        ------
        CorruptStore
            The embeddings file is damaged.
        """
        view = self._view
        damaged = self._checksums.first_damaged(view.vectors) if self._checksums else None
        if damaged is not None:
            raise CorruptStore(
                f"{self._path} is damaged in the embeddings of rows {damaged[0]} to "
                f"{damaged[1] - 1}; restore the file from a backup"
            )
        if self._codes is None or self._codes.fits(view.vectors):
            return True
        self._codes.close()
        self._codes = self._make_codes(view.n_rows, is_fresh=True)
        self._codes.extend(view.vectors)
        self._view = view._replace(codes=self._codes.view())
        return False

    def close(self) -> None:
        """Release the files; searches still running finish."""
        with self._executor_lock:
            if self._executor is not None:
                self._executor.shutdown()
        self._file.close()
        if self._codes is not None:
            self._codes.close()

    def _make_view(self, n_rows: int) -> SearchView:
        held = cast(Vectors, self._file.array(np.float32, n_rows * self.dim))
        vectors = held.reshape(n_rows, self.dim)
        if n_rows < CODED_ROWS_MIN or not CODED_DIM_MIN <= self.dim <= CODED_DIM_MAX:
            return SearchView(n_rows, vectors, None)
        if self._codes is None:
            self._codes = self._make_codes(n_rows, is_fresh=False)
        self._codes.extend(vectors)
        return SearchView(n_rows, vectors, self._codes.view())

    def _make_codes(self, n_rows: int, *, is_fresh: bool) -> Codes:
        # Compiled only in stores large enough to use codes.
        from colmem.index.codes import Codes  # noqa: PLC0415

        # A reader remakes codes in memory.
        folder = None if is_fresh and self._read_only else self._folder
        return Codes(folder, self.dim, n_rows=n_rows, read_only=self._read_only, is_fresh=is_fresh)

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
        """Find the k best admitted rows, best first; ``exact`` compares every admitted one."""
        return self._search(
            query, k, admitted, exact=exact, threads=threads, needs_bounds=False
        ).best

    def compares_all(self, k: int, admitted: Admitted) -> bool:
        """Whether a search for k rows compares every admitted embedding, without codes."""
        return self.is_exact or compares_all(self._view, k, admitted.count)

    def score_bounds(
        self, query: Vectors, admitted: Admitted, *, exact: bool = False, threads: int = 1
    ) -> tuple[float, float]:
        """Lowest and highest score of the admitted rows; (0, 0) when none is admitted.

        Exact when few are admitted or ``exact`` is set, else a close, deterministic estimate.
        """
        found = self._search(query, 1, admitted, exact=exact, threads=threads)
        return found.lowest, found.highest

    def search_with_bounds(
        self, query: Vectors, k: int, admitted: Admitted, *, exact: bool = False, threads: int = 1
    ) -> tuple[Candidates, float, float]:
        """Do :meth:`search` and :meth:`score_bounds` in one pass."""
        return self._search(query, k, admitted, exact=exact, threads=threads)

    def _search(
        self,
        query: Vectors,
        k: int,
        admitted: Admitted,
        *,
        exact: bool,
        threads: int,
        needs_bounds: bool = True,
    ) -> Found:
        query = self._checked_query(query)
        workers = Workers(self._executor_of(threads), threads)
        return search_view(
            self._view,
            query,
            k,
            admitted,
            workers,
            exact=exact or self.is_exact,
            needs_bounds=needs_bounds,
        )

    def _executor_of(self, threads: int) -> ThreadPoolExecutor | None:
        if threads <= 1:
            return None
        with self._executor_lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(threads - 1, "colmem-vectors")
            return self._executor

    def _checked_query(self, query: Vectors) -> Vectors:
        query = np.ascontiguousarray(query, np.float32)
        if query.shape != (self.dim,):
            raise InvalidRequest(f"query embedding has shape {query.shape}, expected ({self.dim},)")
        if not np.isfinite(query).all():
            raise InvalidRequest(
                f"query embedding holds NaN or infinity, expected {self.dim} finite numbers"
            )
        return query
