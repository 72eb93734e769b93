"""Files and folders to import: which files there are, what each is read by, where it stands.

A folder's files get a path below the folder's own name (``/notes/rust/box.md``), so the same folder
gives the same items from any working directory and on any machine.
"""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from colmem import SourceKind, SourceRef, StoreItem
from colmem.adapters.importing import rows, texts
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.reading import Problem, Reading

STDIN: Final = Path("-")
_TEXTS: Final = (".md", ".markdown", ".txt")
_ROWS: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".csv", ".csv.gz", ".tsv", ".parquet")


@dataclass(frozen=True)
class Options:
    """How files are chosen, where they are placed, and metadata for all of them."""

    mount: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    namespace: str | None = None
    workspace: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()


class Source(NamedTuple):
    """A file to read, and the metadata of what it holds."""

    path: Path
    origin: Origin
    size_bytes: int


@dataclass
class Scan:
    """What there is to read, and how many files were passed over and why."""

    sources: list[Source] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(source.size_bytes for source in self.sources)


def scan(paths: Sequence[Path], options: Options) -> Scan:
    """Find the files below paths, in the order of their names; hidden ones are passed over."""
    found = Scan()
    for path in paths:
        if path == STDIN:
            found.sources.append(Source(path, _origin(SourceKind.IMPORT, None, options), 0))
        elif path.is_dir():
            _scan_folder(path, options, found)
        else:
            mount = PurePosixPath(options.mount or "/")
            place = mount / path.resolve().name
            source = SourceRef(SourceKind.FILE, str(place))
            _add(path, _placed(source, place, options), found)
    return found


def read(source: Source, reading: Reading) -> Iterator[StoreItem | Problem]:
    """The items of a file, in its order."""
    suffix = _suffix(source.path)
    if source.path == STDIN or suffix in (".jsonl", ".ndjson", ".jsonl.gz"):
        return rows.read_jsonl(source.path, source.origin, reading)
    if suffix in (".csv", ".csv.gz", ".tsv"):
        return rows.read_csv(source.path, source.origin, reading)
    if suffix == ".parquet":
        return rows.read_parquet(source.path, source.origin, reading)
    return texts.read_text(source.path, source.origin, reading)


def _scan_folder(top: Path, options: Options, found: Scan) -> None:
    mount = PurePosixPath(options.mount or f"/{top.resolve().name}")
    source = SourceRef(SourceKind.FOLDER, str(mount))

    def failed(error: OSError) -> None:
        found.problems.append(Problem(str(error.filename), error.strerror or str(error)))

    for folder, names, files in os.walk(top, onerror=failed):
        here = Path(folder)
        hidden = [name for name in (*names, *files) if name.startswith(".")]
        found.skipped["hidden"] += len(hidden)
        names[:] = sorted(name for name in names if _is_wanted_folder(here / name, top, options))
        for name in sorted(files):
            path = here / name
            inside = PurePosixPath(path.relative_to(top).as_posix())
            if name.startswith("."):
                continue
            if _matches(inside, options.exclude):
                found.skipped["excluded"] += 1
            elif _suffix(path) in (*_TEXTS, *_ROWS) or _matches(inside, options.include):
                _add(path, _placed(source, mount / inside, options), found)
            else:
                found.skipped["of another type"] += 1


def _is_wanted_folder(path: Path, top: Path, options: Options) -> bool:
    if path.name.startswith(".") or (path / "store.json").exists():
        return False
    return not _matches(PurePosixPath(path.relative_to(top).as_posix()), options.exclude)


def _add(path: Path, origin: Origin, found: Scan) -> None:
    try:
        is_table = _suffix(path) in _ROWS
        if not path.is_file():
            found.skipped["not a regular file"] += 1
        elif not is_table and texts.is_binary(path):
            found.skipped["binary"] += 1
        else:
            found.sources.append(Source(path, origin, path.stat().st_size))
    except OSError as error:
        found.problems.append(Problem(str(path), error.strerror or str(error)))


def _placed(source: SourceRef, place: PurePosixPath, options: Options) -> Origin:
    return _origin(source.kind, source.id, options)._replace(
        folder=str(place.parent), file_path=str(place)
    )


def _origin(kind: SourceKind, id: str | None, options: Options) -> Origin:
    return Origin(
        SourceRef(kind, id),
        namespace=options.namespace,
        workspace=options.workspace,
        language=options.language,
        tags=options.tags,
    )


def _matches(inside: PurePosixPath, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(inside.name, pattern) or fnmatch.fnmatchcase(str(inside), pattern)
        for pattern in patterns
    )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(".gz"):
        return path.with_suffix("").suffix.lower() + ".gz"
    return path.suffix.lower()
