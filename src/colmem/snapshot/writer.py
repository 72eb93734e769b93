"""Writing snapshots: a stream of records in order of id to any of the formats.

Lines are made by the caller's thread and hashed and written by another. Whatever is written takes
its place only when it is complete and synced.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.snapshot import columnar, digests, json_form, layout, publish
from colmem.snapshot.attachments import References
from colmem.snapshot.layout import Listed
from colmem.snapshot.record import Record
from colmem.snapshot.verify import seal
from colmem.version import __version__

FORMATS = ("v2", "jsonl", "jsonl.gz", "package", "package.gz", "columnar")
_HASH_BYTES = 1 << 20
Progress = Callable[[int], object]
"""Told how many records were written since the last call."""


class SnapshotReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were written, where, and the digest of their content."""

    exported: int
    path: str
    snapshot_id: str


def default_format(path: str | Path) -> str:
    """Tell the format from a path: two endings are single files, anything else is v2."""
    name = Path(path).name.lower()
    if name.endswith(".jsonl.gz"):
        return "jsonl.gz"
    return "jsonl" if name.endswith(".jsonl") else "v2"


def write(
    path: str | Path,
    batches: Iterable[Sequence[Record]],
    *,
    format: str | None = None,
    dim: int,
    attach: bool = False,
    base_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> SnapshotReport:
    """Write the records, which come in order of id, as a snapshot.

    ``dim`` : of the store's embedder; ``attach`` : copy small ranges of referenced files (v2 only),
    relative ones below ``base_dir`` (the working directory when not given).

    Raises
    ------
    InvalidRequest
        When the format is unknown or cannot hold a value, or the place is taken by something else.
    """
    chosen = default_format(path) if format is None else format
    if chosen not in FORMATS:
        raise InvalidRequest(
            f"{chosen!r} is not a snapshot format; use one of {', '.join(FORMATS)}"
        )
    if attach and chosen != "v2":
        raise InvalidRequest(f"attachments are part of v2 snapshots only, not of {chosen}")
    place = Path(path)
    stream = Counted(batches, progress)
    if chosen == "v2":
        snapshot_id = _write_v2(place, stream, attach=attach, base_dir=Path(base_dir or "."))
    elif chosen == "columnar":
        snapshot_id = _write_columnar(place, stream, dim)
    elif chosen.startswith("package"):
        snapshot_id = _write_package(place, stream, dim, is_gzip=chosen.endswith(".gz"))
    else:
        snapshot_id = _write_legacy(place, stream, is_gzip=chosen.endswith(".gz"))
    return SnapshotReport(exported=stream.n_records, path=str(path), snapshot_id=snapshot_id)


class Counted:
    """Passes batches on, counting them and collecting what every format needs to know."""

    def __init__(
        self, batches: Iterable[Sequence[Record]], progress: Progress | None = None
    ) -> None:
        self.n_records = 0
        self.n_files = 0
        self.ids = digests.SnapshotId()
        self._batches = batches
        self._progress = progress

    def __iter__(self) -> Iterator[Sequence[Record]]:
        for batch in self._batches:
            self.ids.update(record.content_hash for record in batch)
            self.n_files += sum(record.memory_type == "file" for record in batch)
            yield batch
            self.n_records += len(batch)
            if self._progress is not None:
                self._progress(len(batch))


class LineFile:
    """A payload being written: another thread hashes and writes while the next lines are made."""

    def __init__(self, path: Path, *, is_gzip: bool = False) -> None:
        self.name = path.name
        self._content = hashlib.sha256()
        self._path = path
        self._file: IO[bytes] = path.open("wb")
        # Level 9, no time, no name: the same bytes wherever the same zlib is.
        self._stream = (
            cast("IO[bytes]", gzip.GzipFile("", "wb", 9, self._file, 0)) if is_gzip else self._file
        )
        self._is_gzip = is_gzip
        self._pool = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None

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
            if self._is_gzip:
                self._stream.close()
            self._file.close()

    def write(self, text: str) -> None:
        """Add whole lines."""
        data = text.encode()
        self._wait()
        self._written = self._pool.submit(self._put, data)

    def listed(self) -> Listed:
        """Describe the closed file as a manifest lists it."""
        size = self._path.stat().st_size
        if not self._is_gzip:
            return Listed(self.name, self._content.hexdigest(), size)
        return Listed(self.name, file_digest(self._path), size, self._content.hexdigest())

    def _put(self, data: bytes) -> None:
        self._content.update(data)
        self._stream.write(data)

    def _wait(self) -> None:
        if self._written is not None:
            self._written.result()
            self._written = None


def file_digest(path: Path) -> str:
    """Give the SHA-256 of a file as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def now() -> str:
    """Give the present as manifests write it: ISO 8601 with offset, microseconds when not zero."""
    return datetime.now(UTC).isoformat()


def writer_version() -> str:
    """Name this writer."""
    return f"colmem {__version__}"


def file_entries(listed: Iterable[Listed]) -> dict[str, dict[str, Any]]:
    """Give the ``files`` member of a manifest."""
    return {entry.name: {"sha256": entry.sha256, "size": entry.size} for entry in listed}


def overall(listed: Iterable[Listed]) -> str:
    """Give the ``overall_sha256`` member of a manifest."""
    return digests.overall({entry.name: entry.sha256 for entry in listed})


def _write_v2(place: Path, stream: Counted, *, attach: bool, base_dir: Path) -> str:
    created_at = now()
    with publish.new_folder(place) as folder:
        references = References(folder, attach=attach, base_dir=base_dir)
        with LineFile(folder / layout.MEMORIES) as payload:
            for batch in stream:
                payload.write("".join(map(json_form.v2_line, batch)))
                if stream.n_files:
                    for record in batch:
                        if record.memory_type == "file":
                            references.add(record)
        listed = [payload.listed(), *references.listed()]
        snapshot_id = stream.ids.hexdigest()
        n_inline = stream.n_records - stream.n_files
        manifest = {
            "attachments": [
                references.attachments[name] for name in sorted(references.attachments)
            ],
            "created_at": created_at,
            "file_backed_count": stream.n_files,
            "file_backed_references": references.entries,
            "files": file_entries(listed),
            "format": layout.V2,
            "hotmem_version": writer_version(),
            "inline_count": n_inline,
            "memory_count": stream.n_records,
            "overall_sha256": overall(listed),
            "schema_version": layout.V2_SCHEMA_VERSION,
            "snapshot_id": snapshot_id,
        }
        counts = {"file": stream.n_files, "inline": n_inline, "total": stream.n_records}
        # Where and on which machine it was made is nobody's business.
        metadata = {
            "counts": counts,
            "created_at": created_at,
            "db_path": "",
            "host": "",
            "hotmem_version": writer_version(),
        }
        (folder / layout.METADATA).write_bytes(json_form.manifest_text(metadata))
        (folder / layout.MANIFEST).write_bytes(json_form.manifest_text(manifest))
    return snapshot_id


def _write_package(place: Path, stream: Counted, dim: int, *, is_gzip: bool) -> str:
    models: set[str] = set()
    with publish.new_folder(place) as folder:
        name = layout.MEMORIES_GZ if is_gzip else layout.MEMORIES
        with LineFile(folder / name, is_gzip=is_gzip) as payload:
            for batch in stream:
                payload.write("".join(map(json_form.package_line, batch)))
                models.update(record.embedding_model for record in batch if record.embedding)
        listed = payload.listed()
        entry: dict[str, Any] = {"sha256": listed.sha256, "size": listed.size}
        if listed.decompressed_sha256 is not None:
            entry["decompressed_sha256"] = listed.decompressed_sha256
        snapshot_id = stream.ids.hexdigest()
        manifest = {
            "created_at": now(),
            "embedding": _package_embedding(models, dim),
            "files": {name: entry},
            "format": layout.PACKAGE,
            "hotmem_version": writer_version(),
            "logical_id": snapshot_id,
            "record_count": stream.n_records,
            "schema_version": layout.PACKAGE_SCHEMA_VERSION,
            "source": {"kind": "hotmem-dump"},
        }
        (folder / layout.MANIFEST).write_bytes(json_form.manifest_text(manifest))
    return snapshot_id


def _package_embedding(models: set[str], dim: int) -> dict[str, Any]:
    if len(models) > 1:
        return {"dim": 0, "model": "mixed"}
    return {"dim": dim, "model": models.pop()} if models else {"dim": 64, "model": "hotmem-hash-v1"}


def _write_legacy(place: Path, stream: Counted, *, is_gzip: bool) -> str:
    with publish.new_file(place) as draft, LineFile(draft, is_gzip=is_gzip) as payload:
        for batch in stream:
            payload.write("".join(map(json_form.legacy_line, batch)))
    return stream.ids.hexdigest()


def _write_columnar(place: Path, stream: Counted, dim: int) -> str:
    with publish.new_folder(place) as folder:
        parts = columnar.PartWriter(folder, dim)
        for batch in stream:
            parts.write(batch)
        parts.close()
        listed = [
            Listed(name, file_digest(folder / name), (folder / name).stat().st_size)
            for name in parts.names
        ]
        manifest = {
            "created_at": now(),
            "colmem_version": writer_version(),
            "embedding_dim": dim,
            "files": file_entries(listed),
            "format": layout.COLUMNAR,
            "memory_count": stream.n_records,
            "overall_sha256": overall(listed),
            "schema_version": 1,
            "snapshot_id": stream.ids.hexdigest(),
        }
        manifest["manifest_sha256"] = seal(manifest)
        (folder / layout.MANIFEST).write_bytes(json_form.manifest_text(manifest))
    return stream.ids.hexdigest()
