"""Upkeep of a store: rewriting it as a new generation, checking it, repairing it, its sizes.

A rewrite builds a whole new generation beside the old one through the ordinary path of writes; the
table's transaction then switches to it. Until that commit the old generation is the store, after it
the new one is; the other one's files are removed at the next open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from colmem import settings as store_settings
from colmem import stored
from colmem.contract import ColmemError, CorruptStore, Embedder, MetaFilter, Unavailable
from colmem.embedding import embed_texts
from colmem.opening import (
    Opened,
    Options,
    new_store,
    open_store,
    remove_other_generations,
    search_passages,
)
from colmem.schema import RowIds, Vectors
from colmem.settings import EmbedderRecord
from colmem.storage.lock import StoreLock
from colmem.storage.rowlog import Put
from colmem.storage.sql_filter import condition
from colmem.storage.table import FILE_NAME as TABLE_FILE
from colmem.storage.table import Table
from colmem.store import Store, Write
from colmem.stored import StoredItem

BATCH_ROWS = 5_000
Progress = Callable[[int], None]


class CheckReport(msgspec.Struct, frozen=True):
    """What a check found: ``ok`` when ``problems`` is empty."""

    ok: bool
    items: int
    problems: list[str]


def rewrite(opened: Opened, embedder: Embedder | None, progress: Progress | None) -> Opened:
    """Rewrite a store without what was forgotten or has expired; with another embedder if given.

    The caller holds off nothing: writers wait, readers go on with the old generation.
    """
    old = opened.store
    with old.exclusive(), _refusal_of_disk():
        made_with = embedder or opened.embedder
        old_record = opened.settings.embedder(old.generation)
        record = old_record if embedder is None else EmbedderRecord(embedder.key, embedder.dim)
        generations = {str(old.generation): old_record, str(old.generation + 1): record}
        settings = msgspec.structs.replace(opened.settings, generations=generations)
        if old.folder is not None:
            remove_other_generations(old.folder, old.generation)
            store_settings.write(old.folder, settings)
        options = Options(threads=old.threads, exact=old.vectors.is_exact)
        new = new_store(old.folder, old.generation + 1, record.dim, made_with, options)
        search_passages(new, made_with, opened.ranking)
        kept = _live_row_ids(old)
        for rows, vectors in _live_rows(old, kept):
            if embedder is not None:
                vectors, pieces = embed_texts(embedder, [row.text for row in rows])
                new.write(Write(rows, vectors, pieces, is_bulk=True, keeps_seq=True))
            else:
                new.write(Write(rows, vectors, is_bulk=True, keeps_seq=True))
            if progress is not None:
                progress(new.view.n_rows)
        new.lexical_level.level()
        if old.long_items is not None and new.long_items is not None:
            # Readers of the old generation go on: nothing of theirs may still wait for its files.
            old.long_items.ready()
            if embedder is None:
                new.long_items.adopt(old.long_items, kept)
            new.long_items.ready()
            new.long_items.flush()
        new.save_resident()
        old.lexical_level.level()
        old.replace_table(_table_batches(new), new)
    settings = msgspec.structs.replace(settings, generations={str(new.generation): record})
    if old.folder is not None:
        # The new generation is the store already; what fails here, the next open does.
        with suppress(OSError):
            remove_other_generations(old.folder, new.generation)
            store_settings.write(old.folder, settings)
    problem = opened.embedder_problem if embedder is None else ""
    return opened._replace(
        store=new, settings=settings, embedder=made_with, embedder_problem=problem
    )


@contextmanager
def _refusal_of_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"the store could not be rewritten: {error.strerror or error}; it is as it was, free "
            "some space or check the disk, then call again"
        ) from error


def check(store: Store) -> CheckReport:
    """Compare log, table, resident columns, vectors and lexical index, row by row."""
    problems: list[str] = []
    store.flush_table()
    store.lexical_level.level()
    view = store.view
    try:
        if not store.vectors.verify():
            problems.append("the vector codes did not fit the embeddings; they were made again")
    except CorruptStore as error:
        problems.append(error.message)
    problems += store.damaged_parts()
    if store.long_items is not None and not store.long_items.verify():
        problems.append("the passages of long items were damaged; they were made again")
    live = np.flatnonzero(view.live)
    try:
        n_logged = sum(
            len(f.blobs) for f in store.log.frames(0, store.log.length) if isinstance(f, Put)
        )
        if n_logged != view.n_rows:
            problems.append(f"the row log holds {n_logged} rows, {view.n_rows} were written")
    except CorruptStore as error:
        problems.append(error.message)
    seen = 0
    for batch in store.table.read(condition(MetaFilter(), now_s=None)):
        rows = stored.from_batch(batch)
        expected = live[seen : seen + len(rows)]
        seen += len(rows)
        if [row.row for row in rows] != expected.tolist():
            problems.append(f"the table's rows around {rows[0].row} are not the live rows")
            break
        problems += _compare(store, rows)
        if len(problems) > 20:
            break
    if not problems and seen != len(live):
        problems.append(f"the table holds {seen} items, {len(live)} are live")
    matching = store.lexical.matching_rows(MetaFilter(), 0)
    expired = store.attributes.expired(view.n_rows, 0)
    if not np.array_equal(np.sort(matching), np.setdiff1d(live, expired)):
        problems.append(f"the lexical index holds {len(matching)} items, {len(live)} are live")
    return CheckReport(not problems, len(live), problems)


def repair(path: Path) -> CheckReport:
    """Open a store that refuses to open by rebuilding its damaged half from the other one.

    A table that cannot be opened is set aside and rebuilt from the row log; a damaged row log is
    rebuilt from the table. Derived indexes are rebuilt in any case.

    Raises
    ------
    ColmemError
        When both halves are damaged, or the vectors are.
    """
    settings = store_settings.read(path)
    with _locked(path):
        try:
            Table(path).close()
        except CorruptStore:
            _rebuild_table(path, settings)
    try:
        opened = open_store(path, Options(create=False))
    except CorruptStore:
        with _locked(path):
            _rebuild_log(path, settings)
        opened = open_store(path, Options(create=False))
    try:
        report = check(opened.store)
        if not report.ok:
            opened = rewrite(opened, None, None)
            report = check(opened.store)
        return report
    finally:
        opened.store.close()
        opened.release()


def stats(opened: Opened, path: object) -> dict[str, Any]:
    """Counts and sizes."""
    store = opened.store
    record = opened.settings.embedder(store.generation)
    facts: dict[str, Any] = {
        "path": str(path),
        "items": store.n_live,
        "rows": store.view.n_rows,
        "forgotten_rows": store.view.n_rows - store.n_live,
        "generation": store.generation,
        "embedder": record.key,
        "dim": record.dim,
        "analyser": opened.settings.analyser,
    }
    if store.folder is not None:
        facts["bytes"] = {
            name: _size(store.folder / name) for name in (TABLE_FILE, "rows", "vectors", "lexical")
        }
        facts["bytes_total"] = sum(facts["bytes"].values())
    return facts


def _live_row_ids(store: Store) -> RowIds:
    """Rows neither forgotten nor expired: int64, ascending."""
    mask = store.view.live.copy()
    store.attributes.keep_unexpired(mask, int(time.time()))
    return np.flatnonzero(mask)


def _live_rows(store: Store, rows: RowIds) -> Iterator[tuple[list[StoredItem], Vectors]]:
    for start in range(0, len(rows), BATCH_ROWS):
        part = rows[start : start + BATCH_ROWS]
        yield store.read(part), store.vectors.take(part)


def _table_batches(store: Store) -> Iterator[pa.RecordBatch]:
    for frame in store.log.frames(0, store.log.length):
        if isinstance(frame, Put):
            yield stored.to_batch(
                stored.columns_of([stored.from_bytes(blob) for blob in frame.blobs])
            )


def _compare(store: Store, rows: Sequence[StoredItem]) -> list[str]:
    problems = []
    logged = store.read([row.row for row in rows])
    for row, other in zip(rows, logged, strict=True):
        if row != other:
            problems.append(f"item {row.id} differs between the table and the row log")
            continue
        try:
            digest = stored.item_of(row).content_digest()
        except (ColmemError, msgspec.MsgspecError, ValueError) as error:
            problems.append(f"item {row.id} cannot be read: {error}")
            continue
        if digest[:40] != row.own_fingerprint:
            problems.append(f"item {row.id} does not match its fingerprint")
    return problems


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else has the store open: what looks damaged then may be in use."""
    lock = StoreLock(path, exclusive=True)
    try:
        yield
    finally:
        lock.release()


def _rebuild_table(path: Path, settings: store_settings.Settings) -> None:
    """Set the table aside; an empty one is filled from the whole row log at the next flush."""
    generation = min(int(name) for name in settings.generations)
    if (path / TABLE_FILE).exists():
        (path / TABLE_FILE).rename(path / f"{TABLE_FILE}.damaged")
    (path / f"{TABLE_FILE}.wal").unlink(missing_ok=True)
    table = Table(path)
    table.apply([], np.empty(0, np.int64), (generation, 0, 0))
    table.close()


def _rebuild_log(path: Path, settings: store_settings.Settings) -> None:
    """Write the table's rows and their vectors as a new generation."""
    from colmem.index.vector import VectorIndex  # noqa: PLC0415 - only damage needs it

    table = Table(path)
    try:
        generation, _, n_rows = table.state()
        record = settings.embedder(generation)
        vectors = VectorIndex(path / "vectors" / str(generation), record.dim, n_rows=n_rows)
        vectors.publish(n_rows)
        generations = {**settings.generations, str(generation + 1): record}
        store_settings.write(path, msgspec.structs.replace(settings, generations=generations))
        new = new_store(path, generation + 1, record.dim, None, Options())
        for batch in table.read(condition(MetaFilter(), now_s=None), batch_rows=BATCH_ROWS):
            rows = stored.from_batch(batch)
            taken: RowIds = np.array([row.row for row in rows], np.int64)
            new.write(Write(rows, vectors.take(taken), is_bulk=True, keeps_seq=True))
        new.lexical_level.level()
        state = (new.generation, new.log.length, new.view.n_rows)
        table.replace(_table_batches(new), state)
    finally:
        table.close()


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
