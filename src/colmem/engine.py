"""The engine: every operation of the contract over one open store.

Each method validates its request, takes one view of the store, calls the workers in order and
answers with the contract's types. Locks, files and recovery are the store's; ranking is ranked.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from colmem import answering, bulk, cursors, explaining, maintenance, stored, transfer
from colmem.contract import (
    ConfigError,
    Embedder,
    EngineDescriptor,
    EngineHealth,
    ExplorePage,
    ExploreRequest,
    FacetBucket,
    FetchMode,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    GetRequest,
    Hit,
    InvalidRequest,
    ListPage,
    ListRequest,
    MetaFilter,
    Reach,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
    Unavailable,
    as_request,
    encode,
    validate_batch,
)
from colmem.embed import embedder as embedder_of
from colmem.embedding import embed_texts, query_vector
from colmem.explanation import Explanation
from colmem.index.lexical_files import LexicalDamagedError
from colmem.index.masks import next_rows
from colmem.opening import Opened, Options, open_store
from colmem.ranked import Page, Ranker
from colmem.schema import RowIds, Vectors, View
from colmem.snapshot.hydrate import HydrateReport
from colmem.snapshot.writer import SnapshotReport
from colmem.store import Store, StoreReplaced, Write, Written
from colmem.stored import StoredHead
from colmem.within import Reads, Within, WordsOf
from colmem.words import StoreWords

ENGINE_ID = "colmem"
# The method `list` hides the type of that name inside the class.
Receipts = list[StoreReceipt]
Hits = list[Hit]
WrittenItems = list[Written]
Answer = TypeVar("Answer")


class Engine:
    """An open store. Safe to use from many threads; close it, or use it as a context manager."""

    def __init__(self, path: Any, options: Options) -> None:
        self._path = path
        self._options = options
        self._endpoint = answering.endpoint_from_environment()
        self._state = open_store(path, options)
        self._rewriting = threading.Lock()
        self._closed = False
        self._withins: dict[bytes, Within] = {}
        self._withins_lock = threading.Lock()

    @property
    def _opened(self) -> Opened:
        if self._closed:
            raise Unavailable("the engine is closed; open the store again")
        return self._state

    # Identity.

    @property
    def embedder(self) -> Embedder | None:
        """The store's embedder, or None when it is not available here."""
        return self._state.embedder

    def descriptor(self) -> EngineDescriptor:
        """What the engine is and which fetch modes it serves."""
        modes = [FetchMode.KEYWORD]
        if self.embedder is not None:
            modes += [FetchMode.VECTOR, FetchMode.HYBRID]
        return EngineDescriptor(
            id=ENGINE_ID,
            label="colmem",
            description="Embedded columnar memory engine with keyword, vector and hybrid fetch",
            hosted=False,
            needs_endpoint=False,
            needs_key=False,
            default_endpoint=None,
            fetch_modes=modes,
        )

    def health(self) -> EngineHealth:
        """Whether the engine serves; never fails."""
        if self._closed:
            return EngineHealth.down("the engine is closed")
        problem = self._opened.embedder_problem or self._opened.store.problem
        return EngineHealth.degraded(problem) if problem else EngineHealth.ok()

    # Writing.

    def store(self, item: StoreItem, /) -> StoreReceipt:
        """Keep an item; durable and readable on return. An identical one held is a replay."""
        bulk.check_item(item)
        item.validate()
        return self._write([item])[0]

    def store_many(self, items: Sequence[StoreItem], /) -> Receipts:
        """Keep 1 to 100 items in one atomic write; receipts in item order."""
        items = list(items)
        for i, item in enumerate(items):
            bulk.check_item(item, f"$[{i}]")
        validate_batch(items)
        return self._write(items)

    def forget(self, target: ForgetTarget | None = None, /, **fields: Any) -> ForgetReport:
        """Remove items by ids, wherever they live, or all that a filter admits."""
        target = as_request(ForgetTarget, target, fields)
        target.validate()
        chosen = target.filter
        if isinstance(chosen, MetaFilter):
            return ForgetReport(
                self._forget_rows(lambda s, view: np.flatnonzero(s.admitted(chosen, view).mask))
            )
        ids = [*dict.fromkeys(target.ids or ())]
        return ForgetReport(self._forget_rows(lambda s, view: _visible_rows(s, ids, view)))

    # Reading.

    def list(self, request: ListRequest | None = None, /, **fields: Any) -> ListPage:
        """Page through the admitted items in order of storing; every score is 0."""
        request = as_request(ListRequest, request, fields)
        request.validate()
        store = self._opened.store
        view = store.view
        key = cursors.digest("list", request.filter)
        after = -1 if request.cursor is None else cursors.decode_position(request.cursor, key)
        admitted = store.admitted(request.filter, view)
        seqs = store.seqs(view.n_rows)
        start = int(np.searchsorted(seqs, after, "right"))
        rows = next_rows(admitted.mask, start, request.limit + 1)
        page, has_more = rows[: request.limit], len(rows) > request.limit
        cursor = cursors.encode_position(key, int(seqs[page[-1]])) if has_more else None
        return ListPage([stored.hit_of(row) for row in store.read(page)], cursor)

    def get(self, request: GetRequest | None = None, /, **fields: Any) -> Hits:
        """Items by id in the order named, each once; unknown and unreachable ids are left out."""
        request = as_request(GetRequest, request, fields)
        request.validate()
        store = self._opened.store
        view = store.view
        admitted = store.admitted(MetaFilter(reach=request.reach), view)
        found = store.rows_of([*dict.fromkeys(request.ids)], view, _id_of)
        rows = [row for row in found if row is not None and admitted.mask[row]]
        return [stored.hit_of(row) for row in store.read(rows)]

    def explore(self, request: ExploreRequest | None = None, /, **fields: Any) -> ExplorePage:
        """Count the admitted items along a facet, aggregated whole: never truncated."""
        request = as_request(ExploreRequest, request, fields)
        request.validate()
        store = self._opened.store
        admitted = store.admitted(request.filter, store.view)
        counts, missing = store.attributes.count(request.facet, admitted.mask)
        top, n_values = store.attributes.most_frequent(request.facet, counts, request.limit)
        return ExplorePage(
            facet=request.facet,
            buckets=[FacetBucket(value, count) for value, count in top],
            total=admitted.count,
            missing=missing,
            more_buckets=n_values - len(top),
            truncated=False,
        )

    def fetch(self, request: FetchRequest | None = None, /, **fields: Any) -> FetchPage:
        """Rank the admitted items by words, by meaning, or by both; best first."""
        return self._fetch(as_request(FetchRequest, request, fields), StoreWords)

    def nearest(self, vector: Any, *, filter: MetaFilter | None = None, limit: int = 10) -> Hits:
        """The admitted items whose embeddings are nearest to a vector, best first, by cosine.

        vector : numbers (dim,) in the space of the store's embedder; their length does not count.
        """
        request = ListRequest(filter=filter or MetaFilter(), limit=limit)
        request.validate()
        opened = self._opened
        wanted = query_vector(vector, opened.store.dim)
        store = opened.store
        ranker = Ranker(store, opened.embedder, opened.ranking, StoreWords(store))
        rows, scores = ranker.nearest(wanted, request.limit, request.filter)
        found = zip(opened.store.read(rows), scores.tolist(), strict=True)
        return [stored.hit_of(row, score) for row, score in found]

    def recall(self, request: RecallRequest | None = None, /, **fields: Any) -> RecallAnswer:
        """Answer a question from the admitted items, citing at most ``limit`` of them."""
        return self._recall(as_request(RecallRequest, request, fields), StoreWords)

    def explain(
        self, request: FetchRequest | None = None, /, id: str | None = None, **fields: Any
    ) -> Explanation:
        """How each hit of a fetch came to its place; of an ``id`` that did not come, why not.

        Takes what fetch takes. The parts of a hit add up to the score that fetch answers with.
        """
        return self._explain(as_request(FetchRequest, request, fields), id, StoreWords)

    def within(self, reach: Reach) -> Within:
        """The ranked reads for somebody who must learn nothing beyond a reach.

        Their scores are measured among the items within reach only, as if nothing else were stored.
        """
        key = encode(reach)
        with self._withins_lock:
            if key not in self._withins:
                reads = Reads(self._fetch, self._explain, self._recall)
                self._withins[key] = Within(reads, reach)
            return self._withins[key]

    # Bulk.

    def ingest(
        self,
        items: Iterable[StoreItem],
        *,
        batch_size: int = bulk.BATCH_ROWS,
        progress: Callable[[int], None] | None = None,
    ) -> bulk.IngestReport:
        """Store any number of items in bounded memory; idempotent.

        ``progress`` is called after each batch with the number of items read so far. Batches stored
        before an invalid item stay stored; the error names its position.
        """
        return bulk.ingest(self._write_bulk, items, batch_size=batch_size, progress=progress)

    def ingest_arrow(
        self,
        data: Any,
        *,
        mapping: dict[str, str] | None = None,
        batch_size: int = bulk.BATCH_ROWS,
        progress: Callable[[int], None] | None = None,
    ) -> bulk.IngestReport:
        """Store the rows of Arrow data: a table, a reader, or anything with an Arrow stream.

        mapping : column of the data -> field (``text``, ``embedding``, ``title``, ``kind``, any
        field of MemoryMeta …); a column named like a field needs no entry.
        """
        batches = bulk.arrow_batches(data, mapping, self._opened.store.dim, batch_size)
        return bulk.ingest_batches(self._write_bulk, batches, progress=progress)

    def to_arrow(
        self,
        filter: MetaFilter | None = None,
        columns: Sequence[str] | None = None,
        embeddings: bool = False,
    ) -> Any:
        """Stream the admitted items as Arrow record batches, in order of storing.

        columns : names of schema.ITEMS (default all); embeddings : add a column ``embedding`` of
        float32 fixed-size lists. Returns a pyarrow.RecordBatchReader.
        """
        while True:
            store = self._opened.store
            try:
                return bulk.to_arrow(store, filter or MetaFilter(), columns, embeddings=embeddings)
            except StoreReplaced:
                self._await_rewrite()

    def sql(self, query: str, params: Sequence[Any] | None = None) -> Any:
        """Answer one SELECT over the table ``items`` as a pyarrow.Table, expired rows included."""
        store = self._opened.store
        store.flush_table()
        return store.table.query(query, params)

    # Snapshots.

    def snapshot(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        attach: bool = False,
        base_dir: str | Path | None = None,
        filter: MetaFilter | None = None,
        since: str | Path | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> SnapshotReport:
        """Write the store, or what a filter admits of it, as a snapshot.

        Parameters
        ----------
        format
            ``v2``, ``jsonl``, ``jsonl.gz``, ``package``, ``package.gz`` or ``columnar``; by default
            a path ending in ``.jsonl`` or ``.jsonl.gz`` is that, anything else v2.
        attach, base_dir
            Copy small ranges of referenced files into a v2 snapshot; relative references are
            looked up below ``base_dir`` (default: the working directory).
        since
            An earlier full snapshot: only what it lacks is written, and what is gone is named.
        progress
            Called with the number of records written since the last call.
        """
        with self._rewriting:  # compaction waits
            return transfer.write_snapshot(
                self._opened,
                path,
                format=format,
                attach=attach,
                base_dir=base_dir,
                filter=filter,
                since=since,
                progress=progress,
            )

    def hydrate(
        self, path: str | Path, *, progress: Callable[[int, int], object] | None = None
    ) -> HydrateReport:
        """Verify a snapshot of any format, then load what the store does not hold.

        ``progress`` is called with the bytes done and in all. Nothing is written before the whole
        of it has verified; running an interrupted hydrate again completes it.

        Raises
        ------
        SnapshotChecksumError
            When it does not verify; the store is as it was.
        """
        with self._rewriting:  # compaction waits
            return transfer.load_snapshot(self._opened, path, progress)

    def records(self, filter: MetaFilter | None = None) -> Iterator[dict[str, Any]]:
        """The snapshot record of every admitted item, in order of id; embeddings as bytes."""
        return transfer.records(self._opened, filter)

    # Maintenance.

    def reembed(
        self, embedder: Embedder | str, progress: Callable[[int], None] | None = None
    ) -> None:
        """Change the store's embedder: every item is embedded anew, while reads go on."""
        wanted = embedder_of(embedder) if isinstance(embedder, str) else embedder
        self._rewrite(wanted, progress)

    def compact(self, progress: Callable[[int], None] | None = None) -> None:
        """Reclaim the space of forgotten and expired items; ids and cursors stay valid."""
        self._rewrite(None, progress)

    def check(self, repair: bool = False) -> maintenance.CheckReport:
        """Whether log, table, vectors and lexical index agree; every fingerprint is recomputed."""
        report = maintenance.check(self._opened.store)
        if repair and not report.ok:
            self._rewrite(None, None)
            report = maintenance.check(self._opened.store)
        return report

    def stats(self) -> dict[str, Any]:
        """Counts and sizes of the store, by part."""
        return maintenance.stats(self._opened, self._path)

    def close(self) -> None:
        """Bring every index level and let go of the store; idempotent."""
        with self._rewriting:
            if self._closed:
                return
            self._closed = True
            try:
                for within in self._withins.values():
                    within.close()
                self._state.store.close()
            finally:
                self._state.release()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Inside.

    def _checked_fetch(self, request: FetchRequest) -> tuple[bytes, int]:
        """Refuse what fetch cannot serve; what its cursors are bound to, and its first place."""
        self.descriptor().ensure_mode(request.mode)
        request.validate()
        _check_unicode(request.query, "query")
        key = cursors.digest(request.mode, request.filter, request.query)
        return key, 0 if request.cursor is None else cursors.decode_position(request.cursor, key)

    def _fetch(self, request: FetchRequest, words_of: WordsOf) -> FetchPage:
        key, offset = self._checked_fetch(request)

        def answer(opened: Opened) -> tuple[Store, Page]:
            words = words_of(opened.store)
            ranker = Ranker(opened.store, opened.embedder, opened.ranking, words)
            return opened.store, ranker.page(request, offset)

        store, (rows, scores, has_more) = self._answered(answer)
        cursor = cursors.encode_position(key, offset + len(rows)) if has_more else None
        found = zip(store.read(rows), scores.tolist(), strict=True)
        return FetchPage([stored.hit_of(row, score) for row, score in found], cursor)

    def _explain(self, request: FetchRequest, id: str | None, words_of: WordsOf) -> Explanation:
        _, offset = self._checked_fetch(request)
        return self._answered(
            lambda opened: explaining.explain(opened, request, offset, id, words_of(opened.store))
        )

    def _recall(self, request: RecallRequest, words_of: WordsOf) -> RecallAnswer:
        request.validate()
        _check_unicode(request.question, "question")
        opened = self._opened
        return answering.recall(
            request,
            lambda fetched: self._fetch(fetched, words_of),
            opened.store.lexical,
            opened.embedder,
            self._endpoint,
        )

    def _answered(self, answer: Callable[[Opened], Answer]) -> Answer:
        """Answer from the store as it is now; a damaged lexical index is built anew."""
        opened = self._opened
        try:
            return answer(opened)
        except LexicalDamagedError:
            opened.store.lexical_level.distrust()
        except StoreReplaced:
            self._await_rewrite()
            return self._answered(answer)
        return answer(opened)

    def _write(self, items: Sequence[StoreItem]) -> Receipts:
        written = self._write_rows(items, None, is_bulk=False)
        return [StoreReceipt(w.id, w.replayed) for w in written]

    def _write_bulk(self, items: Sequence[StoreItem], vectors: Vectors | None) -> WrittenItems:
        return self._write_rows(items, vectors, is_bulk=True)

    def _write_rows(
        self, items: Sequence[StoreItem], vectors: Vectors | None, *, is_bulk: bool
    ) -> WrittenItems:
        while True:
            opened = self._opened
            job = self._prepared(opened, items, vectors)
            job.is_bulk = is_bulk
            try:
                written = opened.store.write(job)
                if is_bulk and opened.store.long_items is not None:
                    opened.store.long_items.ready_quietly()
                return written
            except StoreReplaced:
                self._await_rewrite()

    def _forget_rows(self, choose: Callable[[Store, View], RowIds]) -> int:
        while True:
            store = self._opened.store
            try:
                return len(store.forget(partial(choose, store)))
            except StoreReplaced:
                self._await_rewrite()

    def _await_rewrite(self) -> None:
        """Wait until compaction or re-embedding, which replaced the store, has ended."""
        with self._rewriting:
            return

    @staticmethod
    def _prepared(opened: Opened, items: Sequence[StoreItem], vectors: Vectors | None) -> Write:
        """Lay valid items out as rows; only those not held yet are embedded."""
        embedder = opened.embedder
        if embedder is None:
            raise ConfigError(opened.embedder_problem)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows = [stored.stored(item, item.content_digest(), now) for item in items]
        if vectors is not None:
            return Write(rows, vectors)
        fresh = opened.store.may_be_new([row.id for row in rows])
        made, pieces = embed_texts(embedder, [rows[i].text for i in fresh])
        if len(fresh) == len(rows):
            return Write(rows, made, pieces)
        vectors = np.zeros((len(rows), embedder.dim), np.float32)
        vectors[fresh] = made
        missing = frozenset(range(len(rows))).difference(fresh)
        return Write(
            rows,
            vectors,
            missing=missing,
            embed=lambda texts: embed_texts(embedder, texts).vectors,
        )

    def _rewrite(self, embedder: Embedder | None, progress: Callable[[int], None] | None) -> None:
        with self._rewriting:
            self._state = maintenance.rewrite(self._opened, embedder, progress)


def _check_unicode(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{field} holds the lone surrogate U+{ord(text[error.start]):X} at character "
            f"{error.start}; decode the text properly or replace it",
            path=field,
        ) from error


def _visible_rows(store: Store, ids: Sequence[str], view: View) -> RowIds:
    admitted = store.admitted(MetaFilter(), view)
    found = store.rows_of(ids, view, _id_of)
    return np.array([row for row in found if row is not None and admitted.mask[row]], np.int64)


def _id_of(head: StoredHead) -> str:
    return head.id
