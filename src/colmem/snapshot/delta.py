"""Incremental snapshots: what a store has that a base snapshot lacks, and what the base had more.

Base and store come in order of id and are walked side by side, so the size of either does not
matter. A row that changed under one content hash counts as gone and added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from colmem.snapshot import digests, json_form, layout, publish
from colmem.snapshot.embedding import decoded
from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.layout import Listed
from colmem.snapshot.limits import DEFAULT_LIMITS, Limits
from colmem.snapshot.reader import Source, open_source
from colmem.snapshot.record import Record
from colmem.snapshot.verify import seal
from colmem.snapshot.writer import (
    Counted,
    LineFile,
    Progress,
    SnapshotReport,
    file_digest,
    file_entries,
    now,
    overall,
    writer_version,
)

_LINES = 1000


def write_delta(
    path: str | Path,
    batches: Iterable[Sequence[Record]],
    base: str | Path,
    *,
    dim: int,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> SnapshotReport:
    """Write what turns the state of the snapshot at ``base`` into that of the records.

    Both come in order of id. ``exported`` of the report counts the records written.

    Raises
    ------
    SnapshotChecksumError, SnapshotReadError
        When the base does not verify, cannot be read, is a delta itself or is not in order of id.
    """
    source = open_source(base, limits=limits)
    if source.delta is not None:
        raise SnapshotReadError(
            f"{base} is a delta itself; give the full snapshot it was made from", file=str(base)
        )
    stream = Counted(batches, progress)
    walk = _Walk(source, str(base), dim)
    n_added = n_gone = 0
    with publish.new_folder(Path(path)) as folder:
        added = LineFile(folder / layout.MEMORIES)
        gone = LineFile(folder / layout.GONE)
        with added, gone:
            for lines, names in walk.differences(record for batch in stream for record in batch):
                n_added += len(lines)
                n_gone += len(names)
                added.write("".join(lines))
                gone.write("".join(names))
        listed = [
            Listed(name, file_digest(folder / name), (folder / name).stat().st_size)
            for name in (layout.GONE, layout.MEMORIES)
        ]
        manifest = {
            "base_snapshot_id": walk.base_ids.hexdigest(),
            "colmem_version": writer_version(),
            "created_at": now(),
            "files": file_entries(listed),
            "format": layout.DELTA,
            "gone_count": n_gone,
            "memory_count": n_added,
            "overall_sha256": overall(listed),
            "schema_version": 1,
            "snapshot_id": stream.ids.hexdigest(),
        }
        manifest["manifest_sha256"] = seal(manifest)
        (folder / layout.MANIFEST).write_bytes(json_form.manifest_text(manifest))
    return SnapshotReport(exported=n_added, path=str(path), snapshot_id=stream.ids.hexdigest())


class _Walk:
    """Walks a base and a stream of records side by side."""

    def __init__(self, source: Source, name: str, dim: int) -> None:
        self.base_ids = digests.SnapshotId()
        self._source = source
        self._name = name
        self._dim = dim

    def differences(self, records: Iterable[Record]) -> Iterator[tuple[list[str], list[str]]]:
        """Yield lines that are new or changed, and rows that are gone, some at a time."""
        added: list[str] = []
        gone: list[str] = []
        base = self._base()
        old = next(base, None)
        for new in records:
            while old is not None and old.id < new.id:
                gone.append(_name(old))
                old = next(base, None)
            line = json_form.v2_line(new)
            if old is None or old.id != new.id:
                added.append(line)
            else:
                if not self._is_same(old, new, line):
                    gone.append(_name(old))
                    added.append(line)
                old = next(base, None)
            if len(added) + len(gone) >= _LINES:
                yield added, gone
                added, gone = [], []
        while old is not None:
            gone.append(_name(old))
            old = next(base, None)
            if len(gone) >= _LINES:
                yield added, gone
                added, gone = [], []
        yield added, gone

    def _base(self) -> Iterator[Record]:
        last = ""
        for batch in self._source.batches():
            for record in batch.records:
                if record.id < last:
                    raise SnapshotReadError(
                        f"{self._name} is not in order of id; take a snapshot of its store and "
                        "give that as the base",
                        file=self._name,
                    )
                last = record.id
                self.base_ids.add(record.content_hash)
                yield record

    def _is_same(self, old: Record, new: Record, line: str) -> bool:
        if old.content_hash != new.content_hash:
            return False
        # The base has its embedding as it was read; only a usable one has a stored form.
        old.embedding = decoded(old.embedding, self._dim)
        old.embedding_model = old.embedding_model or ""
        return json_form.v2_line(old) == line


def _name(record: Record) -> str:
    return msgspec.json.encode([record.id, record.content_hash]).decode() + "\n"
