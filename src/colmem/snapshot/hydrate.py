"""The hydration loop: batches of a verified source into a store, counted as the format says.

The format counts in batches of 1000 valid records: a hash met twice within one is dropped at once,
one that the store or an earlier batch holds merges its annotations. Several such batches make one
group, for which the store is asked once and written to once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import msgspec
import numpy as np

from colmem.schema import Vectors
from colmem.snapshot import annotations as envelopes
from colmem.snapshot.digests import SnapshotId
from colmem.snapshot.embedding import reusable
from colmem.snapshot.errors import SnapshotMismatchError
from colmem.snapshot.limits import BATCH_RECORDS, DEFAULT_LIMITS, Limits
from colmem.snapshot.mapping import ForgedItemError, row_of_record
from colmem.snapshot.reader import DeltaHead, Source, open_source
from colmem.snapshot.record import Record, annotations_of
from colmem.stored import StoredItem

GROUP_BATCHES = 8  # the first groups are smaller, so that storing begins soon
GROUP_CHARS = 16 << 20


class HydrateReport(msgspec.Struct, kw_only=True):
    """The nine counters of a hydrate."""

    loaded: int = 0
    skipped_dupes: int = 0
    invalid: int = 0
    embedding_reused: int = 0
    embedding_rebuilt: int = 0
    embedding_missing: int = 0
    embedding_failed: int = 0
    annotations_merged: int = 0
    annotation_conflicts: int = 0


class DeltaReport(HydrateReport, kw_only=True):
    """The counters of a delta, and how many rows it took away."""

    forgotten: int = 0


class Sink(Protocol):
    """The store a snapshot is hydrated into; every call is one transaction.

    ``held_*`` give those of the asked values that live rows have. ``insert`` gets rows laid out by
    ``colmem.stored`` with ``has_vector`` set (``row`` and ``seq`` are the store's to give) and
    vectors float32 (n, dim), zeros where a row has none. ``records`` and ``replace`` serve the
    merging of annotations into stored rows: by content hash, and with the same id.
    """

    embedder_key: str
    dim: int

    def held_hashes(self, hashes: Sequence[str]) -> set[str]:
        """Give the content hashes that live rows have."""

    def held_fingerprints(self, fingerprints: Sequence[str]) -> set[str]:
        """Give the item fingerprints that live rows have."""

    def held_ids(self, ids: Sequence[str]) -> set[str]:
        """Give the ids that live rows have."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; float32 (n, dim). May raise: the rows are then stored without a vector."""

    def insert(self, rows: Sequence[StoredItem], vectors: Vectors) -> None:
        """Store rows and their vectors; durable on return."""

    def records(self, hashes: Sequence[str]) -> list[Record]:
        """Give the records of live rows with these content hashes, in any order."""

    def replace(self, rows: Sequence[StoredItem]) -> None:
        """Put these rows in the place of the live rows with their ids; vectors stay."""

    def content_hashes(self) -> Iterable[Sequence[str]]:
        """Yield the content hashes of all live rows, in any order."""

    def forget(self, ids: Sequence[str]) -> int:
        """Forget the rows with these ids; give how many there were."""


Progress = Callable[[int, int], object]
"""Told the bytes read so far and in total, of both readings together."""


def hydrate(
    path: str | Path,
    sink: Sink,
    *,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> HydrateReport:
    """Verify a snapshot of any format and load it.

    Nothing is written before the whole of it has been verified and every line could be read.

    Raises
    ------
    SnapshotChecksumError
        When it does not verify.
    SnapshotReadError
        When it cannot be read, or is a delta of another state.
    """
    if progress is None:
        return load(open_source(path, limits=limits), sink)
    size = size_bytes(Path(path))
    read = 0

    def verified(n_bytes: int) -> None:
        nonlocal read
        read += n_bytes
        progress(min(read, size), 2 * size)

    source = open_source(path, limits=limits, progress=verified)
    return load(source, sink, progress=lambda done, total: progress(size + done, size + total))


def size_bytes(path: Path) -> int:
    """Give the bytes a snapshot takes on disk, for progress bars."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def load(source: Source, sink: Sink, *, progress: Progress | None = None) -> HydrateReport:
    """Load an opened source into a store."""
    delta = source.delta
    report = (
        HydrateReport() if delta is None else DeltaReport(forgotten=_apply(source, delta, sink))
    )
    with _Group(sink, source.local_ids, report) as group:
        for batch in source.batches():
            group.n_invalid += batch.n_invalid
            group.add(batch.records)
            if progress is not None:
                progress(batch.bytes_done, source.bytes_total)
        group.flush()
    return report


class _Found(NamedTuple):
    # New records with their rows, whether each id is free, and the duplicates that merge.
    records: list[Record]
    rows: list[StoredItem]
    is_kept: list[bool]
    merges: list[Record]


class _Group:
    """Collects records until it is worth asking the store about them all at once.

    While one group is parted, embedded and stored by another thread, the next one is read and laid
    out. This thread counts in a report of its own, which is added at the end.
    """

    def __init__(self, sink: Sink, local_ids: frozenset[str] | None, report: HydrateReport) -> None:
        self._sink = sink
        self._local_ids = local_ids
        self._report = report
        self.n_invalid = 0  # among what was read
        self._n_repeated = 0
        self._records: list[Record] = []
        self._n_chars = 0
        self._in_batch: set[str] = set()
        self._n_batches = 1
        self._pool = ThreadPoolExecutor(1)
        self._stored: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._wait()
        finally:
            self._pool.shutdown()
            self._report.invalid += self.n_invalid
            self._report.skipped_dupes += self._n_repeated

    def add(self, records: Sequence[Record]) -> None:
        """Take settled records; the group is written when it is full."""
        for record in records:
            if record.metadata_json != "{}" and not self._has_evidence(record):
                self.n_invalid += 1
                continue
            hash_text = record.content_hash
            if hash_text in self._in_batch:
                self._n_repeated += 1
                continue
            self._in_batch.add(hash_text)
            self._records.append(record)
            self._n_chars += len(record.fact_text) + len(record.metadata_json)
            if len(self._in_batch) >= BATCH_RECORDS:
                self._in_batch = set()
                if len(self._records) >= self._n_batches * BATCH_RECORDS:
                    self._n_batches = min(2 * self._n_batches, GROUP_BATCHES)
                    self.flush()
            if self._n_chars > GROUP_CHARS:
                self.flush()

    def flush(self) -> None:
        """Have everything collected written."""
        records, self._records, self._n_chars = self._records, [], 0
        if not records:
            return
        held = self._sink.held_hashes([record.content_hash for record in records])
        rows = [self._laid_out(record, held) for record in records]
        self._wait()
        self._stored = self._pool.submit(self._store, records, rows, held)

    def _wait(self) -> None:
        if self._stored is not None:
            self._stored.result()
            self._stored = None

    @staticmethod
    def _laid_out(record: Record, held: set[str]) -> StoredItem | None:
        """Lay a record out as a row, unless the store holds it, or it is a forged item."""
        if record.content_hash in held:
            return None
        try:
            return row_of_record(record)
        except ForgedItemError:
            return None

    def _store(self, records: list[Record], rows: list[StoredItem | None], held: set[str]) -> None:
        found = self._choose(records, rows, held)
        n_kept = sum(found.is_kept)
        self._report.loaded += n_kept
        self._report.skipped_dupes += len(found.rows) - n_kept
        self._insert(found)
        if found.merges:
            self._merge(found.merges)

    def _choose(
        self, everything: list[Record], laid_out: list[StoredItem | None], held: set[str]
    ) -> _Found:
        """Part the records of a group into new ones and ones whose annotations merge.

        held : content hashes that the store had when the group was laid out, the group before still
        on its way
        """
        report, sink = self._report, self._sink
        seemed_new = [r for r in everything if r.content_hash not in held]
        if seemed_new:
            held |= sink.held_hashes([record.content_hash for record in seemed_new])
        new_ids = [record.id for record in seemed_new if record.content_hash not in held]
        taken = sink.held_ids(new_ids) if new_ids else set()
        found = _Found([], [], [], [])
        for record, row in zip(everything, laid_out, strict=True):
            if record.content_hash in held:
                report.skipped_dupes += 1
                if annotations_of(record) is not None:
                    found.merges.append(record)
                continue
            if row is None:
                report.invalid += 1
                continue
            is_kept = record.id not in taken
            if is_kept:
                held.add(record.content_hash)
                taken.add(record.id)
            found.records.append(record)
            found.rows.append(row)
            found.is_kept.append(is_kept)
        return self._without_replays(found)

    def _without_replays(self, found: _Found) -> _Found:
        """Drop contract items that a row with another content hash already is."""
        items = [row.own_fingerprint for row in found.rows if _is_contract(row)]
        if not items:
            return found
        held = self._sink.held_fingerprints(items)
        kept = _Found([], [], [], found.merges)
        for record, row, is_kept in zip(found.records, found.rows, found.is_kept, strict=True):
            if _is_contract(row) and row.own_fingerprint in held:
                self._report.skipped_dupes += 1
                continue
            held.add(row.own_fingerprint)
            kept.records.append(record)
            kept.rows.append(row)
            kept.is_kept.append(is_kept)
        return kept

    def _insert(self, found: _Found) -> None:
        """Embed new rows, and store those whose id is free."""
        if not found.rows:
            return
        vectors = self._embedded(found.records, found.rows)
        kept = [at for at, is_kept in enumerate(found.is_kept) if is_kept]
        if len(kept) == len(found.rows):
            self._sink.insert(found.rows, vectors)
        elif kept:
            self._sink.insert([found.rows[at] for at in kept], vectors[kept])

    def _embedded(self, records: list[Record], rows: list[StoredItem]) -> Vectors:
        report, sink = self._report, self._sink
        vectors, is_reusable = reusable(records, key=sink.embedder_key, dim=sink.dim)
        report.embedding_reused += int(is_reusable.sum())
        at: list[int] = []
        texts: list[str] = []
        for i, record in enumerate(records):
            rows[i].has_vector = bool(is_reusable[i])
            if not is_reusable[i]:
                text = record.embedded_text()
                if text:
                    at.append(i)
                    texts.append(text)
                else:
                    report.embedding_missing += 1
        for i, vector in zip(at, self._vectors_of(texts), strict=True):
            if vector is None:
                report.embedding_failed += 1
            else:
                report.embedding_rebuilt += 1
                vectors[i] = vector
                rows[i].has_vector = True
        return vectors

    def _vectors_of(self, texts: list[str]) -> Iterator[Vectors | None]:
        """Embed in one call; when that fails, by halves, so that one text spoils one row."""
        if not texts:
            return
        try:
            yield from np.ascontiguousarray(self._sink.embed(texts), np.float32)
        except Exception:  # noqa: BLE001 - an embedder may fail in any way; the row is stored
            if len(texts) == 1:
                yield None
                return
            half = len(texts) // 2
            yield from self._vectors_of(texts[:half])
            yield from self._vectors_of(texts[half:])

    def _merge(self, incoming: list[Record]) -> None:
        """Merge the annotations of duplicates into the stored rows, in file order."""
        report, sink = self._report, self._sink
        hashes = list(dict.fromkeys(record.content_hash for record in incoming))
        stored = {record.content_hash: record for record in sink.records(hashes)}
        changed: dict[str, Record] = {}
        for record in incoming:
            target = stored.get(record.content_hash)
            envelope = annotations_of(record)
            if target is None or not isinstance(envelope, dict):
                continue
            metadata = target.metadata()
            held = metadata.get("annotations")
            merged = envelopes.merge(held if isinstance(held, dict) else None, envelope)
            report.annotations_merged += merged.n_items
            report.annotation_conflicts += len(merged.conflicts)
            if merged.merged is not None:
                target.metadata_json = _sorted_text({**metadata, "annotations": merged.merged})
                changed[target.id] = target
        if changed:
            rows = [row_of_record(record) for record in changed.values()]
            for row, record in zip(rows, changed.values(), strict=True):
                row.has_vector = record.embedding is not None
            sink.replace(rows)

    def _has_evidence(self, record: Record) -> bool:
        """Whether every record an annotation names is in the snapshot or in the store."""
        envelope = annotations_of(record)
        if self._local_ids is None or not isinstance(envelope, dict):
            return True
        missing = set(envelopes.evidence_ids(envelope)) - self._local_ids
        return not missing or missing <= self._sink.held_ids(sorted(missing))


def _apply(source: Source, delta: DeltaHead, sink: Sink) -> int:
    """Check that a delta belongs to the store's state, and take away what is gone.

    A delta that was applied in part, or wholly, still belongs: what it adds is left out of the
    comparison and what it takes away is put back.
    """
    gone = {hash_text: id for id, hash_text in delta.gone}
    added = {record.content_hash for batch in source.batches() for record in batch.records}
    before, after = SnapshotId(), SnapshotId()
    for hashes in sink.content_hashes():
        for hash_text in hashes:
            if hash_text not in added and hash_text not in gone:
                before.add(hash_text)
                after.add(hash_text)
    for hash_text in gone:
        before.add(hash_text)
    for hash_text in added:
        after.add(hash_text)
    if before.hexdigest() != delta.base_snapshot_id or after.hexdigest() != delta.snapshot_id:
        raise SnapshotMismatchError(
            f"the delta belongs to the state {delta.base_snapshot_id[:12]} and this store is "
            "another; hydrate its base first, or a full snapshot",
        )
    held = sink.held_hashes(list(gone))
    return sink.forget([gone[hash_text] for hash_text in sorted(held)]) if held else 0


def _is_contract(row: StoredItem) -> bool:
    return row.content_hash.startswith(row.own_fingerprint)


def _sorted_text(metadata: dict[str, object]) -> str:
    return json.dumps(metadata, sort_keys=True)
