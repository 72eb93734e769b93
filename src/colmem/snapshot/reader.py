"""Opening whatever a path holds as a stream of records, verified and checked before the first.

``open_source`` reads everything once: digests, and whether each line can be read at all. What it
returns reads again and yields batches of normalised, settled records in bounded memory; it raises
only when the files changed in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from colmem.snapshot import annotations as envelopes
from colmem.snapshot import columnar, layout, lines, sqlite_source, verify
from colmem.snapshot.errors import SnapshotMissingError, SnapshotReadError, refuse
from colmem.snapshot.limits import DEFAULT_LIMITS, Limits
from colmem.snapshot.parse import LineReader
from colmem.snapshot.record import (
    Record,
    UnstorableError,
    annotations_of,
    has_valid_annotations,
    normalise,
    settle,
    utc_now,
)
from colmem.snapshot.verify import Blocks, Progress

# `memory_id` stands in a line as it is, or with letters escaped that nobody needs to escape.
_ESCAPED_ASCII = re.compile(rb"\\u00[4-7]")
_SEAM_BYTES = 16


class Batch(NamedTuple):
    """Some records in file order, how many were invalid among them, and bytes read so far."""

    records: list[Record]
    n_invalid: int
    bytes_done: int


class DeltaHead(NamedTuple):
    """What a delta is about: the state it belongs to, the one it leads to, and what is gone.

    ``gone`` : (id, content hash) of each row to forget.
    """

    base_snapshot_id: str
    snapshot_id: str
    gone: list[tuple[str, str]]


class Source(NamedTuple):
    """A verified snapshot, ready to be read.

    ``local_ids`` holds those ids of its own records that its annotations name as evidence; None
    where the format does not check evidence. ``bytes_total`` is what ``bytes_done`` grows to.
    """

    format: str
    bytes_total: int
    local_ids: frozenset[str] | None
    delta: DeltaHead | None
    batches: Callable[[], Iterator[Batch]]


def open_source(
    path: str | Path, *, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> Source:
    """Verify what stands at a path and make it readable.

    ``progress`` is told the bytes of this first reading.

    Raises
    ------
    SnapshotChecksumError
        When a manifest's promise does not hold.
    SnapshotReadError
        When there is nothing to read, a line cannot be read, or a limit is exceeded.
    """
    place = Path(path)
    if place.is_dir():
        return _open_folder(place, limits, progress)
    if not place.exists():
        raise SnapshotMissingError(
            f"{place} does not exist; give a snapshot directory, a .jsonl or .jsonl.gz file, or a "
            "HotMem database",
            file=str(place),
        )
    if not place.is_file():
        raise SnapshotReadError(f"{place} is not a regular file", file=str(place))
    if place.suffix.lower() in sqlite_source.SUFFIXES:
        return _open_database(place)
    return _open_legacy(place, limits, progress)


def _open_folder(folder: Path, limits: Limits, progress: Progress | None) -> Source:
    if layout.is_regular(folder / layout.MANIFEST):
        named = layout.format_of(folder, limits)
        if named == layout.PACKAGE:
            return _open_package(folder, limits, progress)
        if named == layout.COLUMNAR:
            return _open_columnar(folder, limits, progress)
        if named == layout.DELTA:
            return _open_delta(folder, limits, progress)
        return _open_v2(folder, limits, progress)
    if layout.is_regular(folder / layout.MEMORIES):
        return _open_legacy(folder / layout.MEMORIES, limits, progress)
    layout.read_manifest(folder, limits)
    raise AssertionError("a missing manifest is refused")


def _open_v2(folder: Path, limits: Limits, progress: Progress | None) -> Source:
    payload = _Payload(folder / layout.MEMORIES, source="snapshot", limits=limits)
    verify.verify_v2(folder, limits=limits, look=payload.look, progress=progress)
    if not payload.was_seen:
        raise refuse("missing_file", layout.MEMORIES, f"{layout.MEMORIES} is missing")
    return payload.source("v2", checks_evidence=True)


def _open_package(folder: Path, limits: Limits, progress: Progress | None) -> Source:
    name = layout.MEMORIES
    if not os.path.lexists(folder / name):
        name = layout.MEMORIES_GZ
    payload = _Payload(folder / name, source="interchange", limits=limits)
    report = verify.verify_package(folder, limits=limits, look=payload.look, progress=progress)
    if report.payload != name:  # a stray plain payload beside the listed one
        payload = _Payload(folder / report.payload, source="interchange", limits=limits)
        verify.verify_package(folder, limits=limits, look=payload.look)
    return payload.source("package", checks_evidence=True)


def _open_delta(folder: Path, limits: Limits, progress: Progress | None) -> Source:
    payload = _Payload(folder / layout.MEMORIES, source="snapshot", limits=limits)
    report = verify.verify_own(
        folder, layout.DELTA, limits=limits, look=payload.look, progress=progress
    )
    if not payload.was_seen:
        raise refuse("missing_file", layout.MEMORIES, f"{layout.MEMORIES} is missing")
    gone = layout.read_gone(folder, limits)
    head = DeltaHead(report.base_snapshot_id or "", report.snapshot_id or "", gone)
    return payload.source("delta", checks_evidence=False)._replace(delta=head)


def _open_columnar(folder: Path, limits: Limits, progress: Progress | None) -> Source:
    verify.verify_own(folder, layout.COLUMNAR, limits=limits, progress=progress)
    parts = columnar.parts(folder, limits)
    loaded_at = utc_now()

    def batches() -> Iterator[Batch]:
        for read, done in columnar.read(folder, parts, loaded_at=loaded_at):
            yield _valid(read, done)

    total = sum(part.size for part in parts)
    return Source("columnar", total, None, None, batches)


def _open_legacy(path: Path, limits: Limits, progress: Progress | None) -> Source:
    payload = _Payload(path, source="swap", limits=limits)
    with payload.open() as file:
        source = lines.blocks(file, name=payload.name, is_gzip=payload.is_gzip, limits=limits)
        payload.look(lines.advancing(source, progress))
    return payload.source("legacy", checks_evidence=False)


def _open_database(path: Path) -> Source:
    loaded_at = utc_now()

    def batches() -> Iterator[Batch]:
        done = 0
        for rows in sqlite_source.rows(path):
            done += len(rows)
            yield _valid((_settled(raw, loaded_at) for raw in rows), done)

    return Source("database", sqlite_source.count(path), None, None, batches)


class _Payload:
    """One file of lines: looked through once while it is verified, then read for good."""

    def __init__(self, path: Path, *, source: str, limits: Limits) -> None:
        self.path = path
        self.name = path.name
        self.is_gzip = path.name.lower().endswith(".gz")
        self.was_seen = False
        self._limits = limits
        self._reader = LineReader(source=source, name=path.name, limits=limits)
        self._fault: SnapshotReadError | None = None
        self._evidence: set[str] = set()
        self._identity = _identity(path)

    def open(self) -> IO[bytes]:
        """Open the file, or say why that is not possible."""
        try:
            return self.path.open("rb")
        except OSError as error:
            raise SnapshotReadError(
                f"{self.path} cannot be read: {error.strerror}", file=str(self.path)
            ) from error

    def look(self, blocks: Blocks) -> int | None:
        """Check every line and note the ids named as evidence; count the records.

        The first fault is kept, not raised: the digests have the first word. None is returned when
        the lines could not even be told apart.
        """
        self.was_seen = True
        n_records = 0
        number = 1
        try:
            groups = lines.line_groups(self._watched(blocks), name=self.name, limits=self._limits)
            for group, is_hot in groups:
                n_records += self._check(group, number, is_hot=bool(is_hot))
                number += len(group)
        except SnapshotReadError as error:
            self._fault = self._fault or error
            return None
        return n_records

    @staticmethod
    def _watched(blocks: Blocks) -> Iterator[tuple[bytes, int]]:
        """Tell with each block whether it, or the one before it, may name evidence."""
        last = b""
        was_hot = False
        for block in blocks:
            seam = last[-_SEAM_BYTES:] + block[:_SEAM_BYTES]
            is_hot = any(
                b"memory_id" in part or (b"\\u00" in part and _ESCAPED_ASCII.search(part))
                for part in (seam, block)
            )
            yield block, is_hot or was_hot
            was_hot, last = is_hot, block

    def _check(self, group: lines.Lines, number: int, *, is_hot: bool) -> int:
        if self._fault is None:
            try:
                n_records = self._reader.check(group, number)
                if is_hot:
                    self._note_evidence(group, number)
            except SnapshotReadError as error:
                self._fault = error
            else:
                return n_records
        return lines.count_filled(group)

    def source(self, named: str, *, checks_evidence: bool) -> Source:
        """Make the source once everything has been verified."""
        if self._fault is not None:
            raise self._fault
        local_ids = self._local_ids() if checks_evidence else None
        size = self.path.stat().st_size
        return Source(named, size, local_ids, None, self._batches)

    def _batches(self) -> Iterator[Batch]:
        for group, number, done in self._groups():
            yield _valid(self._reader.lines(group, number), done)

    def _groups(self) -> Iterator[tuple[lines.Lines, int, int]]:
        number = 1
        self._check_unchanged()
        with self.open() as file:
            blocks = lines.blocks(file, name=self.name, is_gzip=self.is_gzip, limits=self._limits)
            for group, done in lines.line_groups(blocks, name=self.name, limits=self._limits):
                yield group, number, done
                number += len(group)
        self._check_unchanged()

    def _note_evidence(self, group: lines.Lines, number: int) -> None:
        for record in self._reader.lines(group, number):
            envelope = None if record is None else annotations_of(record)
            if isinstance(envelope, dict) and envelopes.is_valid(envelope):
                self._evidence.update(envelopes.evidence_ids(envelope))

    def _local_ids(self) -> frozenset[str]:
        """Find which of the ids named as evidence are those of lines."""
        wanted = self._evidence
        if not wanted:
            return frozenset()
        found: set[str] = set()
        for group, first, _ in self._groups():
            for line, number in self._reader.filled(group, first):
                name = self._reader.id(line, number)
                if name in wanted:
                    found.add(name)
        return frozenset(found)

    def _check_unchanged(self) -> None:
        if _identity(self.path) != self._identity:
            raise refuse(
                "mismatch", self.name, f"{self.name} changed while it was read; hydrate it again"
            )


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        held = path.stat()
    except OSError:
        return None
    return held.st_dev, held.st_ino, held.st_size, held.st_mtime_ns


def _valid(read: Iterable[Record | None], done: int) -> Batch:
    """Make a batch of settled records, less those whose annotations are malformed."""
    records: list[Record] = []
    n_invalid = 0
    for record in read:
        if record is None or (record.metadata_json != "{}" and not has_valid_annotations(record)):
            n_invalid += 1
        else:
            records.append(record)
    return Batch(records, n_invalid, done)


def _settled(raw: dict[str, object], loaded_at: str) -> Record | None:
    try:
        record = normalise(raw, source="snapshot")
    except UnstorableError:
        return None
    return record if settle(record, loaded_at=loaded_at) else None
