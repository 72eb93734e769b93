"""The lexical index: BM25 over analysed text, with the filter inside the query.

It is derived from the item table and may be thrown away at any time. What it promises: after
``commit(watermark)`` all rows below the watermark are in it or were deleted, also after a crash
between any two steps; hits come best first, equal scores in order of storing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from tantivy import (
    DocAddress,
    Document,
    Index,
    IndexWriter,
    Occur,
    Order,
    Query,
    Schema,
    SchemaBuilder,
    Searcher,
    TextAnalyzerBuilder,
    Tokenizer,
)

from colmem.contract.filters import MetaFilter
from colmem.index.analyser import SURFACE_WEIGHT, analyse_items, analyse_query, has_terms
from colmem.index.lexical_files import (
    LexicalDamagedError,
    State,
    check_files,
    committed_opstamp,
    damage_as_error,
    empty,
    linked_copy,
    read_state,
    segments_of,
    write_state,
)
from colmem.index.lexical_filter import (
    EVERY_ITEM_TERM,
    EXPIRES_FIELD,
    META_FIELD,
    NANOS_FIELD,
    SECONDS_FIELD,
    expired_query,
    filter_queries,
    meta_terms,
)
from colmem.index.lexical_rank import (
    NO_CANDIDATES,
    QUERY_TERMS_MAX,
    ROW_FIELD,
    SINGLES_FIELD,
    TEXT_FIELD,
    Frequency,
    Segment,
    Term,
    View,
    best,
    look_at,
    merged,
    rarest,
    rows_of,
)
from colmem.index.lexical_tail import Tail
from colmem.schema import Candidates, Mask, RowIds

_TOKENIZER: Final = "terms"
_NEVER_COMMITTED: Final = -1
_WRITER_BYTES: Final = 256 << 20
_WRITER_THREADS: Final = 1
"""Analysis keeps a second core busy, and one thread leaves each segment a run of rows."""
_SEGMENT_ROWS: Final = 160_000
_SEGMENT_ROWS_LESS: Final = 1000
"""A bulk load is cut into segments, so that one is written while the next is made, each so much
smaller than the one before. Tantivy ranks equal scores by size of segment first and merges in that
order too, so this makes its order that of storing."""
_QUERY_TERMS_WEIGHED_MAX: Final = 4096
"""Distinct terms of a very long query whose frequencies are looked up to choose among them."""


def _schema() -> Schema:
    builder = SchemaBuilder()
    builder.add_text_field(TEXT_FIELD, tokenizer_name=_TOKENIZER, index_option="freq")
    builder.add_text_field(SINGLES_FIELD, tokenizer_name=_TOKENIZER, index_option="freq")
    builder.add_text_field(META_FIELD, tokenizer_name=_TOKENIZER, index_option="basic")
    builder.add_unsigned_field(ROW_FIELD, indexed=True, fast=True)
    for name in (SECONDS_FIELD, NANOS_FIELD, EXPIRES_FIELD):
        builder.add_integer_field(name, fast=True)
    return builder.build()


class LexicalIndex:
    """BM25 search of the items of a store.

    Reads may come from any thread; adds, deletes and commits from one at a time. ``folder=None``
    keeps the index in memory. An index that is missing, damaged or of another version is started
    anew, with watermark 0.
    """

    watermark: int
    """Every row below it is in the committed index, or was deleted."""
    view: View
    """The committed state, which searches see."""
    _n_pending: int  # rows added to the segment being made
    _n_segments_cut: int

    def __init__(self, folder: Path | None, *, read_only: bool = False, threads: int = 2) -> None:
        del threads  # of the engine; indexing takes one beside the caller's
        self._writer: IndexWriter | None = None
        self._overlay: tempfile.TemporaryDirectory[str] | None = None
        self._known: dict[str, Segment] = {}  # of the segments on disk, by name
        self._expires_first: int | None = None  # the earliest time at which any item expires
        self._schema = _schema()
        self._folder = folder
        if folder is not None and read_only:
            # Rows the index lacks are added to a copy of one's own; the original stays untouched.
            self._overlay = tempfile.TemporaryDirectory(prefix="colmem-lexical-")
            self._folder = linked_copy(folder, Path(self._overlay.name))
        try:
            self._open()
        except LexicalDamagedError:
            if self._folder is not None:
                empty(self._folder)
            self._open()

    # Writing.

    def add(self, batch: pa.RecordBatch) -> None:
        """Index the rows of a batch of items; they are found after the next commit."""
        terms, singles = analyse_items(batch.column("text"))
        columns = [
            batch.column(name).to_pylist()
            for name in (ROW_FIELD, SECONDS_FIELD, NANOS_FIELD, EXPIRES_FIELD)
        ]
        cut = self._segment_rows() - self._n_pending
        with self._writing() as writer:
            for i, (text, chars, meta, row, seconds, nanos, expires) in enumerate(
                zip(terms, singles, meta_terms(batch), *columns, strict=True)
            ):
                if i == cut:
                    writer.commit()
                    self.watermark = row
                document = Document()
                document.add_unsigned(ROW_FIELD, row)
                document.add_text(TEXT_FIELD, text)
                document.add_text(META_FIELD, meta)
                if chars:
                    document.add_text(SINGLES_FIELD, chars)
                if seconds is not None:
                    document.add_integer(SECONDS_FIELD, seconds)
                    if nanos:
                        document.add_integer(NANOS_FIELD, nanos)
                if expires is not None:
                    document.add_integer(EXPIRES_FIELD, expires)
                writer.add_document(document)
        if batch.num_rows > cut:
            self._n_pending = batch.num_rows - cut
            self._n_segments_cut += 1
        else:
            self._n_pending += batch.num_rows
        expiry = pc.min(batch.column(EXPIRES_FIELD)).as_py()
        if expiry is not None and (self._expires_first is None or expiry < self._expires_first):
            self._expires_first = expiry

    def delete(self, rows: RowIds) -> None:
        """Take rows out; they are gone after the next commit. Unknown rows are no error."""
        if len(rows):
            # By query: a deletion by term takes a row for a signed integer and finds nothing.
            wanted = Query.term_set_query(self._schema, ROW_FIELD, rows.tolist())
            with self._writing() as writer:
                writer.delete_documents_by_query(wanted)

    def commit(self, watermark: int) -> None:
        """Make adds and deletes visible, and durable on disk.

        Raises
        ------
        LexicalDamagedError
            As `add` and `delete` do, when the disk is full or a file cannot be written. What was
            added and deleted since the last commit is then forgotten: go on from ``watermark``.
        """
        with self._writing() as writer:
            opstamp = writer.commit()
        self._n_pending = 0
        self.watermark = watermark
        self._refresh()
        if self._folder is not None:
            write_state(self._folder, State(opstamp, watermark, self._known))

    def clear(self) -> None:
        """Start anew with nothing in it and watermark 0; reads see the old state until a commit."""
        with suppress(LexicalDamagedError):  # what is dropped may be past saving
            self._drop_writer()
        if self._folder is not None:
            empty(self._folder)
        self._open(is_new=False)

    def flush(self) -> None:
        """Wait for merges in the background and remove the files they left."""
        if self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
            with self._writing() as writer:
                writer.garbage_collect_files()
            self._refresh()

    def close(self) -> None:
        """Finish merges and release the files; what was not committed is lost."""
        self._drop_writer()
        if self._overlay is not None:
            self._overlay.cleanup()
            self._overlay = None

    # Reading.

    @property
    def n_docs(self) -> int:
        """Items in the committed index."""
        return self.view.n_docs

    @property
    def deleted_share(self) -> float:
        """Deleted items that still count in the statistics of BM25, as a share of all."""
        n_held = self.view.n_held
        return 1.0 - self.view.n_docs / n_held if n_held else 0.0

    def is_damaged(self) -> bool:
        """Whether a file is missing, cut or changed; of a large index not every byte is read."""
        if self._folder is None:
            return False
        try:
            check_files(self._folder)
        except (LexicalDamagedError, OSError):
            return True
        return False

    def search(
        self,
        query: str,
        k: int,
        *,
        filter: MetaFilter,
        now_s: int,
        keep_function_words: bool = False,
    ) -> Candidates:
        """The k best rows that hold a term of the query, match the filter and have not expired.

        Scores are BM25. Rows of equal score come in order of storing, and of those at the last
        place the first stored are kept.
        """
        view = self.view
        terms = _terms_of(query, view.searcher.doc_freq, keep_function_words=keep_function_words)
        return self._best(view, terms, k, filter, now_s)

    def search_with(
        self, tail: Tail, query: str, k: int, *, filter: MetaFilter, now_s: int, mask: Mask
    ) -> Candidates:
        """As `search`, of the items of a tail too: of those, the ones a mask of rows admits."""
        terms = _terms_of(query, tail.frequency)
        found = self._best(tail.view, tail.weights(terms), k, filter, now_s)
        return merged(found, tail.search(terms, mask), k)

    def new_tail(self) -> Tail:
        """A tail, empty yet, of the committed index."""
        return Tail(self._schema, self.view)

    def matching_rows(self, filter: MetaFilter, now_s: int) -> RowIds:
        """All rows the filter alone admits that have not expired, ascending. int64 (n,)."""
        view = self.view
        if view.n_docs == 0:
            return NO_CANDIDATES.rows
        conditions = [(Occur.Must, Query.all_query()), *self._conditions(view, filter, now_s)]
        with damage_as_error("reading rows"):
            hits = view.searcher.search(Query.boolean_query(conditions), view.n_docs, count=False)
            rows = rows_of(view.searcher, [address for _, address in hits.hits])
        rows.sort()
        return rows

    def has_terms(self, query: str) -> bool:
        """Whether a query analyses to anything; a query of punctuation does not."""
        return has_terms(query)

    def explain_terms(self, query: str) -> list[str]:
        """The terms a query is searched by."""
        wanted = analyse_query(query)
        return wanted.terms + wanted.surfaces + wanted.singles

    def explain(
        self, query: str, rows: RowIds, *, keep_function_words: bool = False
    ) -> list[dict[str, float]]:
        """What each term of a query adds to the score of each row that holds it."""
        view = self.view
        parts: list[dict[str, float]] = [{} for _ in rows]
        if len(rows) == 0 or view.n_docs == 0:
            return parts
        place = {row: i for i, row in enumerate(rows.tolist())}
        those = Query.const_score_query(
            Query.term_set_query(self._schema, ROW_FIELD, rows.tolist()), 0.0
        )
        frequency = view.searcher.doc_freq
        for term in _terms_of(query, frequency, keep_function_words=keep_function_words):
            part = self._term_query(term)
            both = Query.boolean_query([(Occur.Must, part), (Occur.Must, those)])
            with damage_as_error("explaining"):
                found = best(view, both, len(rows))
            for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True):
                held = parts[place[row]]
                held[term[1]] = held.get(term[1], 0.0) + score
        return parts

    # Parts.

    def _best(
        self, view: View, terms: Sequence[Term], k: int, filter: MetaFilter, now_s: int
    ) -> Candidates:
        if not terms or view.n_docs == 0 or k <= 0:
            return NO_CANDIDATES
        parts = [self._term_query(term) for term in terms]
        text = (
            parts[0]
            if len(parts) == 1
            else Query.boolean_query([(Occur.Should, part) for part in parts])
        )
        conditions = self._conditions(view, filter, now_s)
        wanted = text if not conditions else Query.boolean_query([(Occur.Must, text), *conditions])
        with damage_as_error("searching"):
            return best(view, wanted, k)

    def _term_query(self, term: Term) -> Query:
        field, word, weight = term
        query = Query.term_query(self._schema, field, word, "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _conditions(self, view: View, filter: MetaFilter, now_s: int) -> list[tuple[Occur, Query]]:
        schema = self._schema
        conditions = [(Occur.Must, query) for query in filter_queries(schema, filter)]
        if self._expires_first is not None and self._expires_first <= now_s:
            conditions.append((Occur.MustNot, expired_query(schema, now_s)))
        return conditions

    def _open(self, *, is_new: bool = True) -> None:
        """Open what is there, or make an empty index where nothing is.

        Unless this object is new, reads go on in the state they know.
        """
        self.watermark = 0
        self._n_pending = 0
        self._n_segments_cut = 0
        state = None
        if self._folder is not None:
            state = read_state(self._folder)
            if state is None:
                empty(self._folder)
                write_state(self._folder, State(_NEVER_COMMITTED, 0, {}))
            elif state.opstamp != _NEVER_COMMITTED:
                check_files(self._folder)
            self._known = (
                {}
                if state is None
                else {name: Segment(*held) for name, held in state.segments.items()}
            )
        with damage_as_error("opening it"):
            path = None if self._folder is None else str(self._folder)
            # Rows come in order of storing, and only a merge on disk mixes them: what the segments
            # are like is known there. In memory it cannot be found out, so they are sorted.
            order = ROW_FIELD if path is None else None
            self._index = Index(self._schema, path=path, sort_by_field=order)
            self._index.config_reader("manual")
            self._index.register_tokenizer(
                _TOKENIZER, TextAnalyzerBuilder(Tokenizer.whitespace()).build()
            )
            if is_new:
                self._refresh()
            if state is not None and self._folder is not None:
                self.watermark = self._recover_watermark(self._folder, state)
                self.view = self.view._replace(watermark=self.watermark)
                self._expires_first = self._extreme(EXPIRES_FIELD, Order.Asc)

    def _recover_watermark(self, folder: Path, state: State) -> int:
        if committed_opstamp(folder) == state.opstamp:
            return state.watermark
        # A crash came between tantivy's commit and the record of it. Rows are added in order, so
        # the last one tells how far the index goes.
        last = self._extreme(ROW_FIELD, Order.Desc)
        return 0 if last is None else last + 1

    def _extreme(self, field: str, order: Order) -> int | None:
        """The least or greatest value of an integer field."""
        hits = self.view.searcher.search(
            Query.exists_query(field), 1, count=False, order_by_field=field, order=order
        ).hits
        return int(hits[0][0]) if hits else None

    def _refresh(self) -> None:
        if self._folder is None:
            self._index.reload()
            searcher = self._index.searcher()
            firsts = [DocAddress(segment, 0) for segment in range(searcher.num_segments)]
            segments = [Segment(row, True) for row in rows_of(searcher, firsts).tolist()]
        else:
            searcher, segments = self._searcher_and_segments(self._folder)
        n_held = searcher.doc_freq(META_FIELD, EVERY_ITEM_TERM)
        self.view = View(searcher, searcher.num_docs, n_held, segments, self.watermark)

    def _searcher_and_segments(self, folder: Path) -> tuple[Searcher, list[Segment]]:
        """The committed state, at a moment when no merge replaced its segments meanwhile."""
        while True:
            held = segments_of(folder)
            self._index.reload()
            searcher = self._index.searcher()
            if held == segments_of(folder):
                break
        for at, (name, n_docs) in enumerate(held):
            if name not in self._known:
                self._known[name] = look_at(searcher, at, n_docs)
        self._known = {name: self._known[name] for name, _ in held}
        return searcher, list(self._known.values())

    @contextmanager
    def _writing(self) -> Iterator[IndexWriter]:
        """The writer; after an error it goes on from the last commit."""
        with damage_as_error("writing"):
            if self._writer is None:
                writer = self._index.writer(_WRITER_BYTES, _WRITER_THREADS)
                # What a killed writer left may have the very name that a file is to get now.
                writer.garbage_collect_files()
                self._writer = writer
            try:
                yield self._writer
            except BaseException:
                writer, self._writer = self._writer, None
                self._n_pending = 0
                writer.rollback()
                self._writer = writer
                raise

    def _segment_rows(self) -> int:
        """Rows of the segment being made: its place in a bulk load decides."""
        return _SEGMENT_ROWS - _SEGMENT_ROWS_LESS * (self._n_segments_cut % 100)

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with damage_as_error("closing it"):
                writer.rollback()
                writer.wait_merging_threads()


def _terms_of(query: str, frequency: Frequency, *, keep_function_words: bool = False) -> list[Term]:
    """What a query is searched by."""
    wanted = analyse_query(query, keep_function_words=keep_function_words)
    terms = [(TEXT_FIELD, term, 1.0) for term in wanted.terms]
    terms += [(SINGLES_FIELD, char, 1.0) for char in wanted.singles]
    terms += [(TEXT_FIELD, word, SURFACE_WEIGHT) for word in wanted.surfaces]
    if len(terms) > QUERY_TERMS_MAX:
        terms = rarest(frequency, terms[:_QUERY_TERMS_WEIGHED_MAX])
    return terms
