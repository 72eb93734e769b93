"""Verification: nothing of a snapshot counts until every listed byte has been hashed.

All listed names are confined before the first listed file is opened. A caller that wants the
payload's bytes looks at them while they are hashed, and must not act on them before this returns.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from colmem.contract.errors import SnapshotChecksumError
from colmem.snapshot import digests, layout, lines
from colmem.snapshot.errors import (
    PackageVerificationError,
    SnapshotMissingError,
    SnapshotReadError,
    refuse,
)
from colmem.snapshot.layout import Listed
from colmem.snapshot.limits import DEFAULT_LIMITS, Limits

Progress = Callable[[int], object]
"""Told how many bytes were read since the last call."""

_HASH_BYTES = 1 << 18
Blocks = Iterator[bytes]
Look = Callable[[Blocks], int | None]
"""Given the blocks of a payload while they are hashed; gives the number of its records."""


class VerifyReport(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a snapshot that verifies says of itself.

    ``snapshot_id`` names the content of v2, columnar and delta snapshots, ``logical_id`` that of
    packages. ``record_count`` is the manifest's for v2, counted for packages.
    """

    format: str
    valid: bool
    record_count: int
    payload: str
    snapshot_id: str | None = None
    logical_id: str | None = None
    base_snapshot_id: str | None = None


def verify(
    path: str | Path, *, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> VerifyReport:
    """Verify a snapshot directory of any format: v2, package, columnar or delta.

    Raises
    ------
    SnapshotChecksumError
        At the first thing that is not as the manifest says; ``reason`` tells which.
    SnapshotReadError
        When the path is no snapshot directory, or a limit is exceeded.
    """
    folder = Path(path)
    if not folder.exists():
        raise SnapshotMissingError(f"{folder} does not exist", file=str(folder))
    if not folder.is_dir():
        raise SnapshotReadError(
            f"{folder} is a single file, which carries no digests to verify; verify a snapshot "
            "directory or package",
            file=str(folder),
        )
    named = layout.format_of(folder, limits)
    if named == layout.PACKAGE:
        return verify_package(folder, limits=limits, progress=progress)
    if named in (layout.COLUMNAR, layout.DELTA):
        return verify_own(folder, named, limits=limits, progress=progress)
    return verify_v2(folder, limits=limits, progress=progress)


def verify_v2(
    folder: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    look: Look | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify a v2 directory; ``look`` sees the blocks of memories.jsonl."""
    manifest = layout.read_manifest(folder, limits)
    listed = _v2_listed(manifest)
    layout.confine(folder, (entry.name for entry in listed))
    payload = next((entry for entry in listed if layout.is_payload(entry.name)), None)
    if payload is None and layout.is_regular(folder / layout.MEMORIES):
        raise layout.malformed("is in the directory but not listed", layout.MEMORIES)
    found = {}
    for entry in listed:
        wanted = look if entry is payload else None
        found[entry.name] = _checked(folder, entry, look=wanted, progress=progress)
    _check_overall(manifest.get("overall_sha256"), found)
    return VerifyReport(
        format="v2",
        valid=True,
        record_count=_field(manifest, "memory_count", int, 0),
        snapshot_id=_field(manifest, "snapshot_id", str, ""),
        payload=layout.MEMORIES,
    )


def verify_package(
    folder: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    look: Look | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify an interchange package; ``look`` sees the unpacked blocks of its payload."""
    manifest = _package_manifest(folder, limits)
    listed = _package_listed(manifest)
    layout.confine(folder, (entry.name for entry in listed), package=True)
    names = {entry.name: entry for entry in listed}
    payload = names.get(layout.MEMORIES) or names.get(layout.MEMORIES_GZ)
    if payload is None:
        raise refuse(
            "missing_payload",
            layout.MANIFEST,
            "the manifest lists no payload",
            expected=f"{layout.MEMORIES} or {layout.MEMORIES_GZ}",
            package=True,
        )
    path = folder / payload.name
    if not layout.is_regular(path):
        raise _package_error("missing_file", payload.name, "is missing")
    size = path.stat().st_size
    if size != payload.size:
        raise _package_error("size_mismatch", payload.name, "has another size", payload.size, size)
    n_records = _package_payload(path, payload, limits, look, progress)
    expected = _package_number(manifest, "record_count", 0)
    if n_records is not None and n_records != expected:
        raise _package_error(
            "record_count_mismatch", payload.name, "holds another number", expected, n_records
        )
    return VerifyReport(
        format="package",
        valid=True,
        record_count=expected if n_records is None else n_records,
        logical_id=str(manifest.get("logical_id") or ""),
        payload=payload.name,
    )


def verify_own(
    folder: Path,
    named: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    look: Look | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify a columnar or delta snapshot: every file, and the manifest itself.

    ``look`` sees the blocks of a delta's payload.
    """
    manifest = layout.read_manifest(folder, limits)
    if not isinstance(manifest, dict):
        raise layout.malformed("is not an object")
    sealed = manifest.get("manifest_sha256")
    if sealed != seal(manifest):
        raise refuse(
            "mismatch",
            layout.MANIFEST,
            "manifest.json does not hash to its own digest",
            expected=sealed,
            actual=seal(manifest),
        )
    version = _field(manifest, "schema_version", int, 0)
    if version != 1:
        raise layout.malformed(f"has schema_version {version}; this version reads 1")
    listed = _v2_files(manifest)
    layout.confine(folder, (entry.name for entry in listed))
    found = {}
    for entry in listed:
        wanted = look if entry.name == layout.MEMORIES else None
        found[entry.name] = _checked(folder, entry, look=wanted, progress=progress)
    _check_overall(manifest.get("overall_sha256"), found)
    return VerifyReport(
        format="columnar" if named == layout.COLUMNAR else "delta",
        valid=True,
        record_count=_field(manifest, "memory_count", int, 0),
        snapshot_id=_field(manifest, "snapshot_id", str, ""),
        payload=", ".join(entry.name for entry in listed),
        base_snapshot_id=_field(manifest, "base_snapshot_id", str, "") or None,
    )


def seal(manifest: dict[str, Any]) -> str:
    """Digest a manifest of our own formats, less its field ``manifest_sha256``."""
    rest = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    try:
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    except RecursionError as error:
        raise layout.malformed("nests too deep") from error
    return hashlib.sha256(text.encode()).hexdigest()


def _v2_listed(manifest: Any) -> list[Listed]:
    if not isinstance(manifest, dict):
        raise layout.malformed("is not an object")
    named = _field(manifest, "format", str, layout.V2)
    if named != layout.V2:
        raise layout.malformed(f"names the format {named!r}, which this version does not read")
    if "manifest_sha256" in manifest:
        raise layout.malformed("is sealed as only columnar and delta snapshots are, and names none")
    version = _field(manifest, "schema_version", int, layout.V2_SCHEMA_VERSION)
    if version > layout.V2_SCHEMA_VERSION:
        raise layout.malformed(
            f"has schema_version {version}; this version reads up to {layout.V2_SCHEMA_VERSION}"
        )
    listed = _v2_files(manifest)
    _field(manifest, "memory_count", int, 0)
    _field(manifest, "snapshot_id", str, "")
    _field(manifest, "overall_sha256", str, "")
    references = manifest.get("file_backed_references") or manifest.get("file_references") or []
    for entry in _entries(references, "file_backed_references"):
        if not isinstance(entry, dict) or not {"memory_id", "source_uri"} <= entry.keys():
            raise layout.malformed("holds a malformed reference", "file_backed_references")
    for entry in _entries(manifest.get("attachments") or [], "attachments"):
        if not isinstance(entry, dict) or "name" not in entry:
            raise layout.malformed("holds an entry without a name", "attachments")
    return listed


def _entries(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise layout.malformed("is not an array", key)
    return value


def _v2_files(manifest: dict[str, Any]) -> list[Listed]:
    listed = []
    for name, entry in _field(manifest, "files", dict, {}).items():
        if not isinstance(entry, dict) or not {"size", "sha256"} <= entry.keys():
            raise layout.malformed("needs a size and a sha256", name)
        size, digest = entry["size"], entry["sha256"]
        if not isinstance(digest, str) or not isinstance(size, int) or isinstance(size, bool):
            raise layout.malformed("needs a whole size and a text sha256", name)
        listed.append(Listed(name, digest, size))
    return listed


def _field(manifest: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    """Give a field of the right type; null and absence give the default."""
    value = manifest.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise layout.malformed(f"has a {key} that is not {kind.__name__}")
    return value


def _checked(folder: Path, entry: Listed, *, look: Look | None, progress: Progress | None) -> str:
    path = folder / entry.name
    if not layout.is_regular(path):
        raise refuse("missing_file", entry.name, f"listed file {entry.name} is missing")
    size = path.stat().st_size
    if size != entry.size:
        raise refuse(
            "mismatch",
            entry.name,
            f"{entry.name} has {size} bytes, the manifest says {entry.size}",
            expected=f"size={entry.size}",
            actual=f"size={size}",
        )
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            if look is None:
                _hash(file, digest, progress)
            else:
                _drain(lines.hashed(_read(file, progress), digest.update), look)
    except OSError as error:
        raise refuse(
            "missing_file", entry.name, f"{entry.name} cannot be read: {error.strerror}"
        ) from error
    if digest.hexdigest() != entry.sha256:
        raise refuse(
            "mismatch",
            entry.name,
            f"{entry.name} does not hash to the digest in the manifest",
            expected=entry.sha256,
            actual=digest.hexdigest(),
        )
    return digest.hexdigest()


def _read(file: IO[bytes], progress: Progress | None) -> Blocks:
    while block := file.read(lines.BLOCK_BYTES):
        yield block
        if progress is not None:
            progress(len(block))


def _hash(file: IO[bytes], digest: hashlib._Hash, progress: Progress | None) -> None:
    """Feed a file to a digest through one small buffer, which stays in the cache."""
    buffer = memoryview(bytearray(_HASH_BYTES))
    read_into = cast("io.BufferedReader", file).raw.readinto
    while n_bytes := read_into(buffer):
        digest.update(buffer[:n_bytes])
        if progress is not None:
            progress(n_bytes)


def _drain(blocks: Blocks, look: Callable[[Blocks], object] | None) -> None:
    if look is not None:
        look(blocks)
    for _ in blocks:
        pass


def _check_overall(expected: Any, found: dict[str, str]) -> None:
    actual = digests.overall(found)
    if expected and expected != actual:
        raise refuse(
            "mismatch",
            "overall_sha256",
            "the files do not hash to overall_sha256",
            expected=expected,
            actual=actual,
        )


def _package_error(
    reason: str, file: str | None, what: str, expected: object = None, actual: object = None
) -> SnapshotChecksumError:
    detail = "" if expected is None else f": expected {expected}, found {actual}"
    return refuse(
        reason,
        file,
        f"{file or 'the package'} {what}{detail}",
        expected=None if expected is None else str(expected),
        actual=None if actual is None else str(actual),
        package=True,
    )


def _package_manifest(folder: Path, limits: Limits) -> dict[str, Any]:
    try:
        manifest = layout.read_manifest(folder, limits)
    except SnapshotChecksumError as error:
        reason = "malformed_manifest" if error.reason == "malformed" else error.reason
        raise PackageVerificationError(error.message, reason=reason, file=error.file) from error
    if not isinstance(manifest, dict):
        raise _package_error("malformed_manifest", layout.MANIFEST, "is not an object")
    if manifest.get("format") != layout.PACKAGE:
        raise _package_error("unsupported_format", layout.MANIFEST, "names another format")
    version = _package_number(manifest, "schema_version", layout.PACKAGE_SCHEMA_VERSION)
    if version > layout.PACKAGE_SCHEMA_VERSION:
        raise _package_error(
            "unsupported_schema",
            layout.MANIFEST,
            "has a newer schema_version",
            f"schema_version<={layout.PACKAGE_SCHEMA_VERSION}",
            version,
        )
    return manifest


def _package_number(manifest: dict[str, Any], key: str, default: int) -> int:
    """Give a number, also one that stands as text; null and absence give the default."""
    value = manifest.get(key)
    if value is None:
        return default
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        what = f"has a {key} that is no number"
        raise _package_error("malformed_manifest", layout.MANIFEST, what) from error


def _package_listed(manifest: dict[str, Any]) -> list[Listed]:
    files = manifest.get("files")
    if not isinstance(files, dict):
        return []
    listed = []
    for name, entry in files.items():
        if not isinstance(entry, dict):
            raise _package_error("malformed_manifest", layout.MANIFEST, "lists a malformed file")
        # What is missing or of another type equals no size and no digest.
        unpacked = entry.get("decompressed_sha256")
        digest = entry.get("sha256")
        listed.append(Listed(name, str(digest), entry.get("size"), unpacked and str(unpacked)))
    return listed


def _package_payload(
    path: Path, payload: Listed, limits: Limits, look: Look | None, progress: Progress | None
) -> int | None:
    """Hash the payload as it unpacks, and count its records unless its lines are out of bounds."""
    is_gzip = payload.name == layout.MEMORIES_GZ
    expected = payload.decompressed_sha256 if is_gzip else payload.sha256
    if not expected:
        raise _package_error(
            "missing_decompressed_digest", payload.name, "has no decompressed_sha256"
        )
    digest = hashlib.sha256()
    counter = _Counter(payload.name, limits, look)
    with path.open("rb") as file:
        source = lines.blocks(file, name=payload.name, is_gzip=is_gzip, limits=limits)
        try:
            unpacked = lines.advancing(source, progress)
            _drain(lines.hashed(unpacked, digest.update), counter.look)
        except SnapshotReadError as error:
            if error.__cause__ is None:  # a limit, not a broken stream
                raise
            raise _package_error(
                "corrupt_compression", payload.name, "is not whole", actual=error.__cause__
            ) from error
    if digest.hexdigest() != expected:
        reason = "decompressed_digest_mismatch" if is_gzip else "digest_mismatch"
        raise _package_error(
            reason, payload.name, "has another digest", expected, digest.hexdigest()
        )
    return counter.n_records


class _Counter:
    # Counts the records of a payload, or lets whoever looks at it do so.
    def __init__(self, name: str, limits: Limits, look: Look | None) -> None:
        self.n_records: int | None = None
        self._name, self._limits, self._look = name, limits, look

    def look(self, blocks: Blocks) -> None:
        if self._look is None:
            self.n_records = lines.count_records(blocks, name=self._name, limits=self._limits)
        else:
            self.n_records = self._look(blocks)
