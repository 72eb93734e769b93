"""Files and folders to import: which there are, what each is read by, where it stands.

A folder's files get a path below the folder's own name (``/notes/rust/box.md``), so the same folder
gives the same items from any working directory and on any machine.
"""

from __future__ import annotations

import fnmatch
import os
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from colmem import SourceKind, SourceRef
from colmem.adapters.importing import chatgpt, exports, mem0, rows, stores, texts
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.reading import Items, Problem, Reading, unreadable

STDIN: Final = Path("-")
_TEXTS: Final = (".md", ".markdown", ".txt")
_JSON: Final = (".json", ".json.gz")
_DATABASES: Final = (".db", ".sqlite", ".sqlite3")
_ROWS: Final = {
    ".jsonl": rows.read_jsonl,
    ".ndjson": rows.read_jsonl,
    ".jsonl.gz": rows.read_jsonl,
    ".csv": rows.read_csv,
    ".csv.gz": rows.read_csv,
    ".tsv": rows.read_csv,
    ".parquet": rows.read_parquet,
}
_EXPORTS: Final[dict[exports.Export, Callable[..., Items]]] = {
    exports.Export.CHATGPT: chatgpt.read_conversations,
    exports.Export.MEM0: mem0.read_memories,
    exports.Export.MEM0_HISTORY: mem0.read_history,
    exports.Export.ROWS: rows.read_array,
}


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
    mapped: tuple[str, ...] = ()
    """Keys that are read as fields, so that objects with them are rows."""


Read = Callable[[Path, Origin, Reading], Items]


class Source(NamedTuple):
    """A file or store to read, by what, and the metadata of what it holds."""

    path: Path
    origin: Origin
    size_bytes: int
    read: Read


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
            origin = _origin(SourceKind.IMPORT, None, options)
            found.sources.append(Source(path, origin, 0, rows.read_jsonl))
        elif stores.is_store(path):
            origin = _origin(SourceKind.IMPORT, None, options)
            size = stores.size_bytes(path)
            found.sources.append(Source(path, origin, size, stores.read_store))
        elif path.is_dir():
            _scan_folder(path, options, found)
        else:
            mount = PurePosixPath(options.mount or "/")
            place = mount / path.resolve().name
            source = SourceRef(SourceKind.FILE, str(place))
            _add(path, _placed(source, place, options), options, found)
    return found


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
            else:
                is_wanted = _suffix(path) in _TEXTS or _matches(inside, options.include)
                origin = _placed(source, mount / inside, options)
                _add(path, origin, options, found, is_text=is_wanted)


def _is_wanted_folder(path: Path, top: Path, options: Options) -> bool:
    if path.name.startswith(".") or stores.is_store(path):
        return False
    return not _matches(PurePosixPath(path.relative_to(top).as_posix()), options.exclude)


def _add(
    path: Path, origin: Origin, options: Options, found: Scan, *, is_text: bool = True
) -> None:
    """Take a file in, or count why not; ``is_text``: what is nothing else is read as a text."""
    try:
        if not path.is_file():
            found.skipped["not a regular file"] += 1
            return
        read = _reader(path, options, is_named=is_text)
        if read is None and not is_text:
            found.skipped["of another type"] += 1
        elif read is None and texts.is_binary(path):
            found.skipped["binary"] += 1
        else:
            source = Source(path, origin, path.stat().st_size, read or texts.read_text)
            found.sources.append(source)
    except (OSError, EOFError, zlib.error) as error:
        found.problems.append(unreadable(path, error))


def _reader(path: Path, options: Options, *, is_named: bool) -> Read | None:
    """What reads a file of many items; of a folder's own JSON only exports are taken."""
    suffix = _suffix(path)
    if suffix in _ROWS:
        return _ROWS[suffix]
    if suffix in _JSON:
        shape = exports.shape_of(path, options.mapped)
        if shape is None or (shape.export is exports.Export.ROWS and not is_named):
            return None
        return partial(_EXPORTS[shape.export], shape=shape)
    if suffix == ".zip":
        return chatgpt.read_archive if is_named or chatgpt.is_archive(path) else None
    if suffix in _DATABASES:
        return mem0.read_database if mem0.is_history(path) else None
    return None


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
