"""Names, formats and manifests of the directory formats, and the confinement of listed names."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from colmem.contract.errors import SnapshotChecksumError
from colmem.snapshot.errors import refuse
from colmem.snapshot.limits import Limits

MANIFEST = "manifest.json"
METADATA = "metadata.json"
MEMORIES = "memories.jsonl"
MEMORIES_GZ = "memories.jsonl.gz"
ATTACHMENTS = "attachments"
V2 = "hotmem-snapshot-v2"
PACKAGE = "hotmem-interchange-v1"
COLUMNAR = "colmem-columnar-v1"
GONE = "gone.jsonl"
DELTA = "colmem-delta-v1"
_GONE = msgspec.json.Decoder(tuple[str, str])
V2_SCHEMA_VERSION = 2
PACKAGE_SCHEMA_VERSION = 1


class Listed(NamedTuple):
    """A file as its manifest lists it; a foreign package may say anything of the size."""

    name: str
    sha256: str
    size: Any
    decompressed_sha256: str | None = None


def read_manifest(folder: Path, limits: Limits) -> Any:
    """Read ``manifest.json`` as JSON; repeated keys: the last one counts.

    Raises
    ------
    SnapshotChecksumError
        ``missing_manifest`` when it is not a regular file, ``malformed`` when it is not JSON.
    """
    path = folder / MANIFEST
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file")
        with path.open("rb") as file:
            data = file.read(limits.manifest_bytes_max + 1)
    except OSError as error:
        raise refuse(
            "missing_manifest", str(path), f"{path} is missing or not a readable file"
        ) from error
    if len(data) > limits.manifest_bytes_max:
        raise malformed(f"is larger than {limits.manifest_bytes_max} bytes (manifest_bytes_max)")
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise malformed(f"is not JSON ({type(error).__name__})") from error


def malformed(what: str, file: str = MANIFEST) -> SnapshotChecksumError:
    """Make the error of a manifest that is not in its form."""
    subject = file if file == MANIFEST else f"{MANIFEST}: {file!r}"
    return refuse("malformed", file, f"{subject} {what}")


def format_of(folder: Path, limits: Limits) -> str | None:
    """Peek at the format a directory's manifest names; None when there is no telling."""
    try:
        manifest = read_manifest(folder, limits)
    except SnapshotChecksumError:
        return None
    named = manifest.get("format") if isinstance(manifest, dict) else None
    return named if isinstance(named, str) else None


def read_gone(folder: Path, limits: Limits) -> list[tuple[str, str]]:
    """Read the rows a verified delta takes away, as (id, content hash).

    Raises
    ------
    SnapshotChecksumError
        ``malformed`` when a line is not ``[id, content hash]``.
    """
    try:
        data = (folder / GONE).read_bytes()
    except OSError as error:
        raise refuse("missing_file", GONE, f"{GONE} is missing") from error
    try:
        return list(_GONE.decode_lines(data))
    except (msgspec.DecodeError, ValueError) as error:
        raise malformed("holds a line that is not [id, content hash]", GONE) from error


def confine(folder: Path, names: Iterable[str], *, package: bool = False) -> None:
    """Refuse names that lead out of the directory, before any listed file is opened.

    Raises
    ------
    SnapshotChecksumError
        ``path_escape`` for the first such name.
    """
    root = Path(os.path.realpath(folder))
    for name in names:
        if not _is_confined(root, name):
            raise refuse(
                "path_escape",
                name,
                f"listed name {name!r} leads out of the snapshot; it was not opened",
                package=package,
            )


def is_payload(name: str) -> bool:
    """Whether a listed name is that of the payload, in whatever spelling."""
    return [part for part in name.split("/") if part not in ("", ".")] == [MEMORIES]


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file; what cannot be looked at is not."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _is_confined(root: Path, name: str) -> bool:
    if not name or "\\" in name or "\0" in name or name.startswith("/"):
        return False
    parts = name.split("/")
    if ":" in parts[0] or ".." in parts:
        return False
    try:
        path = root / name
        if path.is_symlink():
            return False
        resolved = Path(os.path.realpath(path, strict=False))
        # A loop resolves to itself when not strict; statting it tells.
        path.exists()
        return resolved.is_relative_to(root) and not _is_loop(path)
    except (OSError, ValueError, RuntimeError):
        return False


def _is_loop(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
