"""Rows of a HotMem database file, read only, as the dicts its lines would parse to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from colmem.snapshot.errors import SnapshotReadError

SUFFIXES = (".sqlite", ".db")
_COLUMNS = (
    "id",
    "identifier",
    "fact_text",
    "embedding",
    "embedding_dim",
    "embedding_model",
    "source",
    "importance",
    "metadata_json",
    "content_hash",
    "ttl_seconds",
    "created_at",
    "namespace",
    "tier",
    "memory_type",
    "source_uri",
    "source_format",
    "source_checksum",
    "byte_offset",
    "byte_length",
    "updated_at",
    "snapshot_id",
    "promotion_state",
    "promotion_candidate",
    "parent_memory",
    "related_memories",
    "tags",
    "schema_version",
    "fact_summary",
    "provenance_json",
)
_FETCH_ROWS = 1000


def rows(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Read the memories of a HotMem database in order of id, a batch at a time.

    Raises
    ------
    SnapshotReadError
        When the file is not such a database, or is damaged.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as con:
            held = {row[1] for row in con.execute("PRAGMA table_info(memories)")}
            if not {"identifier", "fact_text"} <= held:
                raise SnapshotReadError(
                    f"{path} has no table of memories; give the database file of a HotMem store",
                    file=str(path),
                )
            names = [name for name in _COLUMNS if name in held]
            order = "ORDER BY id" if "id" in held else ""
            cursor = con.execute(f"SELECT {', '.join(names)} FROM memories {order}")
            while batch := cursor.fetchmany(_FETCH_ROWS):
                yield [_raw(dict(zip(names, values, strict=True))) for values in batch]
    except sqlite3.Error as error:
        raise SnapshotReadError(
            f"{path} cannot be read as a HotMem database: {error}", file=str(path)
        ) from error


def count(path: Path) -> int:
    """Count the memories of a HotMem database; 0 when it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as con:
            return int(con.execute("SELECT count(*) FROM memories").fetchone()[0])
    except sqlite3.Error:
        return 0


def _raw(row: dict[str, Any]) -> dict[str, Any]:
    # A BLOB in a text column would be taken for an embedding's bytes, or printed as Python.
    for name, value in row.items():
        if isinstance(value, bytes) and name != "embedding":
            row[name] = value.decode("utf-8", "replace")
    row.setdefault("metadata_json", None)
    for name in ("metadata_json", "tags", "related_memories"):
        if isinstance(row.get(name), str) and not _is_json(row[name]):
            row[name] = None
    return row


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
