"""The store: the files of one generation, what is resident of them, and the path of every write.

A write goes: embeddings appended and synced, then one frame of the row log appended and synced
(from here it counts), then the resident columns. The table and the lexical index are brought level
from the log in batches, on demand and on close. Concurrent writes share one frame and its sync.
Readers take a :class:`View`, which never changes.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from colmem import stored
from colmem.arrow_columns import array_of_numpy
from colmem.contract import (
    ColmemError,
    Conflict,
    CorruptStore,
    EngineError,
    MetaFilter,
    Unavailable,
    Unsupported,
    encode,
)
from colmem.index.attributes import Attributes
from colmem.index.growing import GrowingArray
from colmem.index.keys import KeyIndex, keys_of_rows
from colmem.index.lexical import LexicalIndex
from colmem.index.masks import count_ones
from colmem.index.pieces import PieceIndex
from colmem.index.vector import VectorIndex
from colmem.lexical_level import LexicalLevel
from colmem.schema import Admitted, Mask, RowIds, Vectors, View
from colmem.storage import resident
from colmem.storage.rowlog import Forget, Put, RowLog
from colmem.storage.table import Table
from colmem.stored import Columns, StoredHead, StoredItem

if TYPE_CHECKING:
    from colmem.long_items import LongItems

FLUSH_ROWS = 20_000  # rows the table may lag behind the log before it is brought level
FLUSH_ROWS_MAX = 100_000  # and before writes wait for that
MASKS_MAX = 16  # filter masks remembered, one byte a row each
RECENT_ROWS_MAX = 2 * FLUSH_ROWS  # written rows kept in columns until the table has them
RESIDENT_TAIL_ROWS = 50_000  # rows replayed at open before the resident file is written anew


Pieces = tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]  # flat ids, (n + 1,) offsets
PiecesOf = Callable[[Sequence[str]], Pieces]


class StoreReplaced(Unavailable):
    """A call came to a generation that another one has replaced; the engine makes it again."""

    def __init__(self) -> None:
        super().__init__("the store was compacted or re-embedded meanwhile; call again")


class Written(msgspec.Struct, frozen=True, gc=False):
    """What became of one item of a write: the id it is held under, and whether it was there."""

    id: str
    replayed: bool


class _Recent(NamedTuple):
    # A frame of a bulk write as columns: what the table would else read back from the log.
    batch: pa.RecordBatch
    put: Put


@dataclass
class Write:
    """Items to be stored together: rows without their place, and their embeddings.

    vectors : float32 (len(rows), dim); pieces : their word pieces where these are known already;
    is_bulk : more is to come, so the indexes are fed at once; keeps_seq : the rows come from
    another generation with their sequence numbers, and are known to be new; replaces : each row
    takes the place of the live row that has its id.

    missing : positions without an embedding, of items that were held when the write was made; embed
    makes it for those that are not held any more.
    """

    rows: list[StoredItem]
    vectors: Vectors
    pieces: Pieces | None = None
    is_bulk: bool = False
    keeps_seq: bool = False
    replaces: bool = False
    missing: frozenset[int] = frozenset()
    embed: Callable[[Sequence[str]], Vectors] | None = None
    written: list[Written] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False

    def embed_missing(self, at: npt.NDArray[np.int64]) -> None:
        """Make the embeddings of the rows at these positions that have none."""
        wanted = [i for i in at.tolist() if i in self.missing]
        if wanted:
            assert self.embed is not None
            self.vectors[wanted] = self.embed([self.rows[i].text for i in wanted])


class Store:
    """One open generation of a store; ``folder=None`` keeps everything in memory.

    Parameters
    ----------
    folder, generation
        The store's directory and which generation of its files to open.
    dim
        Dimension of the embeddings.
    pieces_of, n_piece_ids
        The word pieces of texts and the size of their vocabulary; none when the embedder has none.
    """

    def __init__(
        self,
        folder: Path | None,
        generation: int,
        dim: int,
        *,
        table: Table | None,
        pieces_of: PiecesOf | None = None,
        n_piece_ids: int = 0,
        read_only: bool = False,
        threads: int = 2,
        exact: bool = False,
    ) -> None:
        self.folder = folder
        self.generation = generation
        self.dim = dim
        self._table = table
        self.threads = threads
        self.problem = ""  # what keeps the store from its full service, for health
        self.is_replaced = False  # another generation took this one's place
        self.long_items: LongItems | None = None  # set once open, where passages are searched
        self.read_only = read_only
        self._write_lock = threading.RLock()
        self._queue_lock = threading.Lock()
        self._queue: list[Write] = []
        self._masks: dict[tuple[int, bytes], Admitted] = {}
        for name in ("vectors", "rows", "lexical"):
            if folder is not None and not read_only:
                self._part(name).mkdir(parents=True, exist_ok=True)
        self._pieces_of = pieces_of
        self.view = View(np.empty(0, np.uint8), 0, 0)
        self._table_lock = threading.Lock()
        self._background = ThreadPoolExecutor(1, "colmem-table")
        self._flushing: Future[None] | None = None
        self._recent: dict[int, _Recent] = {}  # by the position of the frame in the log
        self._load(n_piece_ids)
        self._replay()
        self.vectors = VectorIndex(
            self._path("vectors"),
            dim,
            n_rows=self.view.n_rows,
            read_only=read_only,
            is_exact=exact,
        )
        lexical = self._path("lexical")
        self.lexical = LexicalIndex(lexical, read_only=read_only, threads=threads)
        # Weak, so that a replaced generation goes, with its files, when its last reader has.
        rows = weakref.proxy(self)
        self.lexical_level = LexicalLevel(
            self.lexical, lambda: rows.view, lambda at: rows.read(at), self._lexical_gone
        )

    @property
    def table(self) -> Table:
        """The item table."""
        assert self._table is not None
        return self._table

    def take_table(self, table: Table) -> None:
        """Adopt the table, which the caller has brought level with this store's row log."""
        self._table = table
        self._table_rows = self.view.n_rows

    def replace_table(self, batches: Iterator[pa.RecordBatch], new: Store) -> None:
        """Hand the table over to another generation, with all its rows, in one transaction."""
        with self._table_lock:
            self.table.replace(batches, (new.generation, new.log.length, new.view.n_rows))
            self.is_replaced = True
            new.take_table(self.table)

    # Reading.

    @property
    def n_live(self) -> int:
        """Items held, expired ones included."""
        return self.view.n_live

    def admitted(self, filter: MetaFilter, view: View) -> Admitted:
        """The rows of a view that a filter admits and whose time to live has not passed."""
        key = view.version, encode(filter)
        cached = self._masks.get(key)
        if cached is not None:
            return cached
        mask = view.live.copy()
        expiring = self.attributes.keep_unexpired(mask, int(time.time()))
        is_all = filter.is_empty() and not expiring
        if not filter.is_empty():
            self.attributes.keep(filter, mask)
        admitted = Admitted(mask, count_ones(mask), is_all)
        if not expiring:
            if len(self._masks) >= MASKS_MAX:
                self._masks.clear()
            self._masks[key] = admitted
        return admitted

    def read(self, rows: Sequence[int] | RowIds) -> list[StoredItem]:
        """Whole rows, in the order named."""
        at = np.asarray(rows, np.int64)
        blobs = self.log.read_many(self._offsets.values()[at], self._lengths.values()[at])
        try:
            return list(map(stored.from_bytes, blobs))
        except msgspec.MsgspecError as error:
            raise self._damaged_item(error) from error

    def rows_of(
        self, names: Sequence[str], view: View, name_of: Callable[[StoredHead], str]
    ) -> list[int | None]:
        """For each name the live row that has it as its id, content hash or fingerprint."""
        first = self.keys.find_first(names, view.live)
        found: list[int | None] = [None] * len(names)
        for i in np.flatnonzero(first >= 0).tolist():
            name, row = names[i], int(first[i])
            if name_of(self._head(row)) == name:
                found[i] = row
            else:  # another row has the same key
                held = self._find(name, view, partial(_is_named, name_of, name))
                found[i] = None if held is None else held[0]
        return found

    def seqs(self, n_rows: int) -> RowIds:
        """Sequence numbers of the first rows, ascending: int64 (n_rows,)."""
        return self._seqs.values(n_rows)

    def record_bytes(self, first: int, last: int) -> npt.NDArray[np.uint32]:
        """Sizes of the stored forms of rows ``first`` to ``last``: uint32 (last - first,)."""
        return self._lengths.values(last)[first:]

    # Writing.

    def may_be_new(self, names: Sequence[str]) -> list[int]:
        """Positions of ids or hashes that no live row carries, as far as the key index can tell."""
        found = self.keys.find_first(names, self.view.live)
        return np.flatnonzero(found < 0).tolist()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold off every write."""
        with self._write_lock:
            self._refuse_when_replaced()
            yield

    def write(self, job: Write) -> list[Written]:
        """Store items that are not held yet; durable on return.

        Writes that wait for the same lock go out as one frame with one sync.

        Raises
        ------
        Unavailable
            When the files could not be written; nothing of the call is stored then.
        """
        with self._queue_lock:
            self._queue.append(job)
        with self._write_lock:
            if not job.done:
                with self._queue_lock:
                    jobs, self._queue = self._queue, []
                try:
                    self._refuse_when_replaced()
                    self._write(jobs)
                except BaseException as error:
                    for waiting in jobs:
                        waiting.error = error
                    if not isinstance(error, Exception):
                        raise
                finally:
                    for waiting in jobs:
                        waiting.done = True
        cause = job.error.__cause__ if isinstance(job.error, EngineError) else job.error
        if isinstance(cause, OSError):
            raise Unavailable(
                f"the store could not be written: {cause.strerror or cause}; nothing of "
                "this call was stored, free some space or check the disk, then call again"
            ) from job.error
        if job.error is not None:
            raise job.error
        return job.written

    def forget(self, choose: Callable[[View], RowIds]) -> RowIds:
        """Forget the live rows chosen from the current view; durable on return."""
        with self._write_lock:
            self._refuse_when_replaced()
            rows = choose(self.view)
            if len(rows) == 0:
                return rows
            try:
                self.log.forget(rows)
            except OSError as error:
                raise Unavailable(
                    f"the store could not be written: {error.strerror or error}; nothing was "
                    "forgotten, free some space or check the disk, then call again"
                ) from error
            self._forget_rows(rows)
            self.lexical_level.level_soon()
            return rows

    def flush_table(self) -> None:
        """Bring the table level with the row log, in bounded transactions."""
        if self._table is None:
            return
        with self._table_lock:
            if self.is_replaced:
                return
            end, n_rows = self._published
            _, start, _ = self.table.state()
            if self.read_only and start < end:
                raise Unavailable(
                    f"the table of {self.folder} lags behind its row log, as after a crash, and "
                    "a reader cannot bring it level; open the store once without read_only"
                )
            at, live = start, self.view.live
            rows: list[StoredItem] = []
            batches: list[pa.RecordBatch] = []
            gone: list[RowIds] = []
            while at < end:
                recent = self._recent.pop(at, None)
                frame = next(self.log.frames(at, end)) if recent is None else recent.put
                at = frame.end
                if isinstance(frame, Forget):
                    gone.append(frame.rows)
                else:
                    gone.append(frame.gone)
                    alive = live[frame.first_row : frame.first_row + len(frame.lengths)]
                    if recent is not None:
                        batches.append(_alive(recent.batch, alive))
                    else:
                        held = zip(alive, frame.blobs, strict=True)
                        rows += [stored.from_bytes(blob) for is_alive, blob in held if is_alive]
                n_pending = len(rows) + sum(batch.num_rows for batch in batches)
                if n_pending >= FLUSH_ROWS or at == end:
                    batches += [stored.to_batch(stored.columns_of(rows))] if rows else []
                    forgotten = np.concatenate(gone)
                    self.table.apply(batches, forgotten, (self.generation, at, n_rows))
                    rows, batches, gone = [], [], []
            self._table_rows = n_rows

    @contextmanager
    def level_table(self) -> Iterator[Table]:
        """The table, level with the log; while the context lasts, its rows are this store's.

        Raises
        ------
        StoreReplaced
            When the table is another generation's by now.
        """
        self.flush_table()
        with self._table_lock:
            if self.is_replaced:
                raise StoreReplaced
            yield self.table

    def save_resident(self) -> None:
        """Save the resident columns, so that the next open maps them instead of replaying."""
        if self.folder is None or self.read_only:
            return
        with self._write_lock:
            self.log.sync()
            arrays = {
                "live": self.view.live,
                "offsets": self._offsets.values(),
                "lengths": self._lengths.values(),
                "seqs": self._seqs.values(),
                **{f"attributes/{k}": v for k, v in self.attributes.arrays().items()},
            }
            arrays["slot_keys"], arrays["slot_rows"] = self.keys.arrays()
            if self.pieces is not None:
                self.pieces.sync()
                arrays |= self.pieces.arrays()
            header = {
                "generation": self.generation,
                "log_bytes": self.log.length,
                "dictionaries": self.attributes.dictionaries(),
                "lexical_gone": self._lexical_gone,
            }
            resident.save(self._part("rows"), header, arrays)
            self._replayed_rows = 0

    def damaged_parts(self) -> list[str]:
        """What of the derived files is not what was saved at the last close."""
        if self.folder is None:
            return []
        rows, vectors = self._part("rows"), self._part("vectors")
        if not resident.is_whole(rows):
            return [f"{rows / resident.FILE_NAME} is damaged"]
        saved = resident.load(rows)
        if saved is None or self.pieces is None:
            return []
        if not PieceIndex.fits(vectors, saved[1], all_bytes=True):
            return [f"the word pieces in {vectors} are damaged"]
        return []

    def close(self) -> None:
        """Bring the table and the lexical index level, save the resident columns, let go."""
        problems: list[Exception] = []
        with self._write_lock:
            try:
                if self.folder is not None and not self.read_only:
                    self._bring_level(problems)
            finally:
                self._background.shutdown()
                self.lexical_level.close()
                self.lexical.close()
                self.vectors.close()
                if self.long_items is not None:
                    self.long_items.close()
                if self.pieces is not None:
                    self.pieces.close()
                self.log.close()
        if problems:
            raise Unavailable(
                f"the store is closed, but an index is not level with it: {problems[0]}; nothing "
                "is lost, the next open makes up for it"
            ) from problems[0]

    # Inside.

    def _bring_level(self, problems: list[Exception]) -> None:
        """Bring everything derived level; what fails is added to the problems."""
        steps = [
            self.lexical_level.level,
            self.flush_table,
            self.table.checkpoint,
            self.vectors.flush,
        ]
        if self.long_items is not None:
            steps.append(self.long_items.flush)
        if self._changed:
            steps.append(self.save_resident)
        for step in steps:
            try:
                step()
            except (ColmemError, OSError) as error:
                problems.append(error)

    def _part(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / name / str(self.generation)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self._part(name)

    def _load(self, n_piece_ids: int) -> None:
        """Take the resident columns from their file, or start them empty."""
        saved = None if self.folder is None else resident.load(self._part("rows"))
        if saved is not None and n_piece_ids:
            saved = saved if PieceIndex.fits(self._part("vectors"), saved[1]) else None
        if saved is None and self.folder is not None and not self.read_only:
            resident.remove(self._part("rows"))
        header, arrays = ({}, {}) if saved is None else saved
        at = int(header.get("log_bytes", 0))
        self.log = RowLog(self._path("rows"), length=at, read_only=self.read_only)
        get = arrays.get
        self._offsets = GrowingArray(np.int64, get("offsets"))
        self._lengths = GrowingArray(np.uint32, get("lengths"))
        self._seqs = GrowingArray(np.int64, get("seqs"))
        self._live = GrowingArray(np.uint8, get("live"))
        if saved is None:
            self.attributes, self.keys = Attributes(), KeyIndex()
        else:
            columns = {
                name.removeprefix("attributes/"): array
                for name, array in arrays.items()
                if name.startswith("attributes/")
            }
            self.attributes = Attributes.restore(columns, header["dictionaries"])
            self.keys = KeyIndex((arrays["slot_keys"], arrays["slot_rows"]))
        self.pieces = (
            PieceIndex(
                self._path("vectors"),
                n_piece_ids,
                offsets=get("piece_offsets"),
                document_frequency=get("piece_frequency"),
                read_only=self.read_only,
            )
            if n_piece_ids
            else None
        )
        self._lexical_gone: list[int] = list(header.get("lexical_gone", []))
        self._changed = saved is None
        self._replayed_rows = 0
        live = self._live.values()
        self.view = View(live, count_ones(live), 0)
        # Bytes of the log and rows that the view shows: what the table may be brought level with
        # while another frame is being written.
        self._published = at, len(live)

    def _replay(self) -> None:
        """Apply what the row log holds past the resident columns."""
        _, applied, self._table_rows = (0, 0, 0) if self._table is None else self._table.state()
        for frame in self.log.recover():
            self._changed = True
            if isinstance(frame, Forget):
                gone = frame.rows[self.view.live[frame.rows] != 0]
                self._forget_rows(gone)
            else:
                items = [stored.from_bytes(blob) for blob in frame.blobs]
                self._add_rows(items, stored.columns_of(items), frame)
                self._replayed_rows += len(items)
        if applied > self.log.length:
            raise CorruptStore(
                f"{self.log.path} holds {self.log.length} whole bytes, the table was built from "
                f"{applied}; run `colmem check --repair` to rebuild the log from the table"
            )

    def _write(self, jobs: Sequence[Write]) -> None:
        view = self.view
        rows, picked, gone = self._choose(jobs, view)
        if not rows:
            return
        self._number(rows, view, keeps_seq=jobs[0].keeps_seq)
        for job, at in zip(jobs, picked, strict=True):
            job.embed_missing(at)
        vectors = np.concatenate([job.vectors[at] for job, at in zip(jobs, picked, strict=True)])
        columns = stored.columns_of(rows)
        batch = stored.to_batch(columns) if any(job.is_bulk for job in jobs) else None
        start = self.log.length
        try:
            self.vectors.append(np.ascontiguousarray(vectors, np.float32), sync=True)
            self._append_pieces(jobs, picked)
            # Last: what follows the frame in memory cannot fail.
            put = self.log.put(view.n_rows, [stored.to_bytes(row) for row in rows], gone)
        except BaseException:
            self.vectors.discard()
            if self.pieces is not None:
                self.pieces.discard(view.n_rows)
            raise
        self.vectors.publish(view.n_rows + len(rows))
        self._add_rows(rows, columns, put)
        if batch is not None:
            n_recent = sum(recent.batch.num_rows for recent in list(self._recent.values()))
            if self._table is not None and n_recent < RECENT_ROWS_MAX:
                self._recent[start] = _Recent(batch, put._replace(blobs=[]))
            self.lexical_level.feed_soon(batch, rows[0].row)
        else:
            self.lexical_level.level_soon()
        self._flush_when_due()

    def _choose(
        self, jobs: Sequence[Write], view: View
    ) -> tuple[list[StoredItem], list[npt.NDArray[np.int64]], RowIds]:
        """The rows to be written, their positions within each write, and the rows they replace.

        Sets what became of each item of each write.
        """
        taken: dict[str, str] = {}  # fingerprint or content hash -> id, of this frame
        rows: list[StoredItem] = []
        picked: list[npt.NDArray[np.int64]] = []
        gone: list[int] = []
        for job in jobs:
            fresh: list[int] = []
            try:
                held_rows = self._held_rows(job, view)
            except Conflict as error:
                job.error = error  # the other writes of the group go on
                picked.append(np.array(fresh, np.int64))
                continue
            if len(jobs) == 1 and held_rows is None:
                job.written = [Written(row.id, replayed=False) for row in job.rows]
                return job.rows, [np.arange(len(job.rows))], np.empty(0, np.int64)
            held_rows = held_rows or [None] * len(job.rows)
            for i, (row, held) in enumerate(zip(job.rows, held_rows, strict=True)):
                held_id = taken.get(_name(row))
                if held_id is None and held is not None:
                    if job.replaces or self.attributes.is_expired(held[0], self._now_s()):
                        gone.append(held[0])
                    else:
                        held_id = held[1].id
                if held_id is None:
                    fresh.append(i)
                    rows.append(row)
                    taken[_name(row)] = taken[row.id] = row.id
                job.written.append(Written(held_id or row.id, held_id is not None))
            picked.append(np.array(fresh, np.int64))
        return rows, picked, np.array(gone, np.int64)

    def _held_rows(self, job: Write, view: View) -> list[tuple[int, StoredHead] | None] | None:
        """For each row of a write the live row that already holds it; None when all are new.

        An item is held by fingerprint; a foreign record by content hash, or by id; a row that
        replaces, by id.
        """
        ids = [row.id for row in job.rows]
        names = ids if job.replaces else [_name(row) for row in job.rows]
        distinct = set(names)
        is_plain = len(distinct) == len(names) and (names == ids or distinct.isdisjoint(ids))
        if job.keeps_seq:
            return None if is_plain else [None] * len(job.rows)
        by_name = self.keys.find_first(names, view.live)
        by_id = by_name if names == ids else self.keys.find_first(ids, view.live)
        if is_plain and by_name.max(initial=-1) < 0 and by_id.max(initial=-1) < 0:
            return None
        held: list[tuple[int, StoredHead] | None] = []
        for row, name, a, b in zip(job.rows, names, by_name, by_id, strict=True):
            found = None if a < 0 else self._find(name, view, _same(row, job))
            if found is None and b >= 0:
                found = self._find(row.id, view, partial(_is_named, _id_of, row.id))
                if found is not None and not row.is_foreign:
                    raise Conflict(
                        f"id {row.id} is held by a record of other content; forget it first"
                    )
            held.append(found)
        return held

    def _number(self, rows: Sequence[StoredItem], view: View, *, keeps_seq: bool) -> None:
        next_seq = int(self._seqs.values()[-1]) + 1 if self._seqs.length else 0
        for i, row in enumerate(rows):
            row.row = view.n_rows + i
            if not keeps_seq:
                row.seq = next_seq + i

    @staticmethod
    def _now_s() -> int:
        return int(time.time())

    def _refuse_when_replaced(self) -> None:
        if self.read_only:
            raise Unsupported(
                f"store {self.folder} was opened read_only; open it without that to write"
            )
        if self.is_replaced:
            raise StoreReplaced

    def _add_rows(self, rows: Sequence[StoredItem], columns: Columns, put: Put) -> None:
        """Make written rows resident, then visible."""
        self._changed = True
        first = self.view.n_rows
        self._offsets.append(put.offsets)
        self._lengths.append(put.lengths)
        self._seqs.append(columns["seq"])
        self.attributes.append(columns)
        ids, fingerprints = columns["id"], columns["fingerprint"]
        keys, at = keys_of_rows(
            ids,
            columns["content_hash"],
            [id if held is None else held for id, held in zip(ids, fingerprints, strict=True)],
        )
        self.keys.add(keys, first + at, self.view.live)
        if self.pieces is not None and self.pieces.n_rows < first + len(rows):
            self.pieces.append(*self._texts_pieces(rows))
        view = self.view
        if len(put.gone):
            self._take_out(put.gone)
        self._live.append(np.ones(len(rows), np.uint8))
        n_live = view.n_live + len(rows) - len(put.gone)
        self.view = View(self._live.values(), n_live, view.version + 1)
        self._published = self.log.length, self.view.n_rows

    def _append_pieces(
        self, jobs: Sequence[Write], picked: Sequence[npt.NDArray[np.int64]]
    ) -> None:
        if self.pieces is None:
            return
        for job, at in zip(jobs, picked, strict=True):
            pieces = job.pieces or self._texts_pieces(job.rows)
            self.pieces.append(*_take_ragged(*pieces, at))

    def _texts_pieces(self, rows: Sequence[StoredItem]) -> Pieces:
        assert self._pieces_of is not None
        return self._pieces_of([row.text for row in rows])

    def _flush_when_due(self) -> None:
        """Keep the table near the log: in the background, or at once when it falls far behind."""
        if self._table is None:
            return
        lag = self.view.n_rows - self._table_rows
        if lag >= FLUSH_ROWS_MAX:
            self._flush_quietly()
        elif lag >= FLUSH_ROWS and (self._flushing is None or self._flushing.done()):
            self._flushing = self._background.submit(self._flush_quietly)

    def _flush_quietly(self) -> None:
        try:
            self.flush_table()
            self.problem = ""
        except (ColmemError, OSError) as error:
            # The row log holds everything; the next flush tries again.
            self.problem = f"the table lags behind the row log: {error}"

    def _forget_rows(self, rows: RowIds) -> None:
        self._changed = True
        self._take_out(rows)
        view = self.view
        self.view = View(self._live.values(), view.n_live - len(rows), view.version + 1)
        self._published = self.log.length, self.view.n_rows

    def _take_out(self, rows: RowIds) -> None:
        """Mark rows as gone in a new live mask, which readers see with the next view."""
        live = self._live.values().copy()
        live[rows] = 0
        self._live = GrowingArray(np.uint8, live)
        self._lexical_gone.extend(rows.tolist())  # which the lexical level takes out of its index
        if self.pieces is not None:
            self.pieces.forget(rows)

    def _find(
        self, name: str, view: View, is_it: Callable[[StoredHead], bool]
    ) -> tuple[int, StoredHead] | None:
        for row in self.keys.find(name, view.live):
            head = self._head(row)
            if is_it(head):
                return row, head
        return None

    def _head(self, row: int) -> StoredHead:
        offset, length = self._offsets.values()[row], self._lengths.values()[row]
        try:
            return stored.head_from_bytes(self.log.read(int(offset), int(length)))
        except msgspec.MsgspecError as error:
            raise self._damaged_item(error) from error

    def _damaged_item(self, error: Exception) -> CorruptStore:
        return CorruptStore(
            f"{self.log.path} holds an item that cannot be read ({error}); run `colmem check "
            "--repair` to rebuild the log from the table"
        )


def _alive(batch: pa.RecordBatch, alive: Mask) -> pa.RecordBatch:
    return batch if alive.all() else batch.filter(array_of_numpy(alive != 0))


def _name(row: StoredItem) -> str:
    """What tells an item from others: its fingerprint, or its content hash as a foreign record."""
    return row.content_hash if row.is_foreign else row.own_fingerprint


def _id_of(head: StoredHead) -> str:
    return head.id


def _is_named(name_of: Callable[[StoredHead], str], name: str, head: StoredHead) -> bool:
    return name_of(head) == name


def _same(row: StoredItem, job: Write) -> Callable[[StoredHead], bool]:
    if job.replaces:
        return lambda head: head.id == row.id
    if row.is_foreign:
        return lambda head: head.content_hash == row.content_hash
    return lambda head: head.own_fingerprint == row.own_fingerprint


def _take_ragged(
    flat: npt.NDArray[np.uint16], offsets: npt.NDArray[np.int64], at: RowIds
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    if len(at) == len(offsets) - 1:
        return flat, offsets
    parts = [flat[offsets[i] : offsets[i + 1]] for i in at]
    ends = np.cumsum([0, *map(len, parts)])
    return np.concatenate([flat[:0], *parts]), ends.astype(np.int64)
