"""Whole stores in and out: snapshots written from a store, and hydrated into one.

The formats are the snapshot package's; here a store becomes a stream of records in order of id, and
takes the rows of a verified source in bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from colmem.contract import Embedder, InvalidRequest, MetaFilter
from colmem.embedding import embed_texts
from colmem.opening import Opened
from colmem.schema import RowIds, Vectors
from colmem.settings import EmbedderRecord
from colmem.snapshot import delta, hydrate, writer
from colmem.snapshot.mapping import record_of_row
from colmem.snapshot.record import Record
from colmem.storage.sql_filter import condition
from colmem.store import Store, Write
from colmem.stored import StoredItem

BATCH_ROWS = 2_000


def record_batches(
    store: Store, made_with: EmbedderRecord, filter: MetaFilter
) -> Iterator[list[Record]]:
    """The records of all items a filter admits, expired ones included, in order of id."""
    with store.level_table() as table:
        rows = table.rows(condition(filter, now_s=None), order="id")
    for start in range(0, len(rows), BATCH_ROWS):
        part = rows[start : start + BATCH_ROWS]
        vectors = np.ascontiguousarray(store.vectors.take(part), "<f4")
        yield [
            record_of_row(
                row,
                vector=vector.tobytes() if row.has_vector else None,
                model=made_with.key,
                dim=made_with.dim,
            )
            for row, vector in zip(store.read(part), vectors, strict=True)
        ]


def write_snapshot(
    opened: Opened,
    path: str | Path,
    *,
    format: str | None,
    attach: bool,
    base_dir: str | Path | None,
    filter: MetaFilter | None,
    since: str | Path | None,
    progress: Callable[[int], object] | None,
) -> writer.SnapshotReport:
    """Write a snapshot of an open store; see ``Engine.snapshot``."""
    store = opened.store
    made_with = opened.settings.embedder(store.generation)
    batches = record_batches(store, made_with, filter or MetaFilter())
    if since is None:
        return writer.write(
            path,
            batches,
            format=format,
            dim=made_with.dim,
            attach=attach,
            base_dir=base_dir,
            progress=progress,
        )
    if format is not None or attach:
        raise InvalidRequest(
            "a snapshot since another has a format of its own; leave format and attach out"
        )
    return delta.write_delta(path, batches, since, dim=made_with.dim, progress=progress)


def load_snapshot(
    opened: Opened, path: str | Path, progress: hydrate.Progress | None
) -> hydrate.HydrateReport:
    """Hydrate a snapshot into an open store; see ``Engine.hydrate``."""
    return hydrate.hydrate(path, StoreSink(opened), progress=progress)


class StoreSink:
    """An open store as the hydrator writes to it."""

    def __init__(self, opened: Opened) -> None:
        made_with = opened.settings.embedder(opened.store.generation)
        self.embedder_key = made_with.key
        self.dim = made_with.dim
        self._store = opened.store
        self._embedder: Embedder | None = opened.embedder
        self._problem = opened.embedder_problem

    def held_hashes(self, hashes: Sequence[str]) -> set[str]:
        """Content hashes that live rows have."""
        found = self._store.rows_of(hashes, self._store.view, lambda head: head.content_hash)
        return _held(hashes, found)

    def held_fingerprints(self, fingerprints: Sequence[str]) -> set[str]:
        """Item fingerprints that live rows have."""
        view = self._store.view
        found = self._store.rows_of(fingerprints, view, lambda head: head.own_fingerprint)
        return _held(fingerprints, found)

    def held_ids(self, ids: Sequence[str]) -> set[str]:
        """Ids that live rows have."""
        return _held(ids, self._rows_of_ids(ids))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts: float32 (n, dim)."""
        if self._embedder is None:
            raise InvalidRequest(self._problem)
        return embed_texts(self._embedder, texts).vectors

    def insert(self, rows: Sequence[StoredItem], vectors: Vectors) -> None:
        """Store rows with their vectors; durable on return."""
        self._store.write(Write(list(rows), vectors, is_bulk=True))

    def records(self, hashes: Sequence[str]) -> list[Record]:
        """Records of the live rows with these content hashes."""
        found = self._store.rows_of(hashes, self._store.view, lambda head: head.content_hash)
        rows = np.array([row for row in found if row is not None], np.int64)
        vectors = np.ascontiguousarray(self._store.vectors.take(rows), "<f4")
        return [
            record_of_row(
                row,
                vector=vector.tobytes() if row.has_vector else None,
                model=self.embedder_key,
                dim=self.dim,
            )
            for row, vector in zip(self._store.read(rows), vectors, strict=True)
        ]

    def replace(self, rows: Sequence[StoredItem]) -> None:
        """Put rows in the place of the live rows with their ids; vectors stay."""
        found = self._rows_of_ids([row.id for row in rows])
        pairs = [(row, at) for row, at in zip(rows, found, strict=True) if at is not None]
        held: RowIds = np.array([at for _, at in pairs], np.int64)
        vectors = self._store.vectors.take(held)
        self._store.write(Write([row for row, _ in pairs], vectors, replaces=True))

    def content_hashes(self) -> Iterable[Sequence[str]]:
        """Content hashes of all live rows, in batches."""
        everything = condition(MetaFilter(), now_s=None)
        with self._store.level_table() as table:
            batches = table.read(everything, columns=["content_hash"])
        for batch in batches:
            yield batch.column(0).to_pylist()

    def forget(self, ids: Sequence[str]) -> int:
        """Forget rows by id; gives how many there were."""
        return len(
            self._store.forget(
                lambda view: np.array(
                    [row for row in self._rows_of_ids(ids) if row is not None], np.int64
                )
            )
        )

    def _rows_of_ids(self, ids: Sequence[str]) -> list[int | None]:
        return self._store.rows_of(ids, self._store.view, lambda head: head.id)


def records(opened: Opened, filter: MetaFilter | None) -> Iterator[dict[str, Any]]:
    """The record view of every admitted item, in order of id; see ``Engine.records``."""
    made_with = opened.settings.embedder(opened.store.generation)
    for batch in record_batches(opened.store, made_with, filter or MetaFilter()):
        for record in batch:
            yield record.view()


def _held(names: Sequence[str], found: Sequence[int | None]) -> set[str]:
    return {name for name, row in zip(names, found, strict=True) if row is not None}
