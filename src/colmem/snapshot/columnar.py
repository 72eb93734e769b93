"""The columnar twin of a snapshot: the same records as Parquet (zstd) files of bounded row groups.

One column a field; embeddings as fixed-size lists of float32; JSON columns as their text. Made for
moving millions of records between stores, and for reading memories with any Parquet reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from colmem.arrow_columns import array_of, array_of_numpy, codes_of, numbers_of, strings_of
from colmem.snapshot import layout
from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.layout import Listed
from colmem.snapshot.limits import Limits
from colmem.snapshot.record import Record, json_column, settle_typed

ROW_GROUP_ROWS = 16_384
PART_ROWS = 64 * ROW_GROUP_ROWS
_READ_ROWS = 4096
_ZSTD_LEVEL = 1
_ANY_DIM = 1
_JSON = {
    "metadata": "metadata_json",
    "tags": "tags_json",
    "provenance": "provenance_json",
    "related_memories": "related_json",
}
_JSON_KINDS = {"metadata": dict, "tags": list, "provenance": dict, "related_memories": list}
_INTEGERS = (
    "embedding_dim",
    "ttl_seconds",
    "byte_offset",
    "byte_length",
    "promotion_candidate",
    "schema_version",
)
_FIELD_OF_COLUMN = {attribute: column for column, attribute in _JSON.items()}
_NAMES = [_FIELD_OF_COLUMN.get(name, name) for name in Record.__struct_fields__]
_DISTINCT = ("id", "identifier", "fact_text", "content_hash", "fact_summary")
_REPEATED = [
    name for name in _NAMES if name not in (*_DISTINCT, *_INTEGERS, "importance", "embedding")
]


def schema(dim: int) -> pa.Schema:
    """Give the Arrow schema of the files of a store with embeddings of ``dim``."""
    types: dict[str, pa.DataType] = {
        "importance": pa.float64(),
        "embedding": pa.list_(pa.float32(), dim),
    }
    types.update(dict.fromkeys(_INTEGERS, pa.int64()))
    return pa.schema([pa.field(name, types.get(name, pa.string())) for name in _NAMES])


class PartWriter:
    """Writes records into numbered Parquet files of a directory, each of bounded length."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.names: list[str] = []
        self._folder = folder
        self._dim = dim
        self._schema = schema(dim)
        self._writer: pq.ParquetWriter | None = None
        self._n_rows = 0
        self._pending: list[Record] = []

    def write(self, records: Sequence[Record]) -> None:
        """Add records with their stored embeddings."""
        self._pending.extend(records)
        while len(self._pending) >= ROW_GROUP_ROWS:
            self._write_group(self._pending[:ROW_GROUP_ROWS])
            del self._pending[:ROW_GROUP_ROWS]

    def close(self) -> None:
        """Write what is left; an empty snapshot has one file without rows."""
        if self._pending or not self.names:
            self._write_group(self._pending)
        self._close_part()

    def _write_group(self, records: list[Record]) -> None:
        if self._writer is None:
            name = f"memories-{len(self.names):05d}.parquet"
            self.names.append(name)
            self._writer = pq.ParquetWriter(
                self._folder / name,
                self._schema,
                compression="zstd",
                compression_level=_ZSTD_LEVEL,
                use_dictionary=_REPEATED,
                write_statistics=["id", "created_at", "namespace", "importance"],
            )
        self._writer.write_batch(to_batch(records, self._dim), row_group_size=ROW_GROUP_ROWS)
        self._n_rows += len(records)
        if self._n_rows >= PART_ROWS:
            self._close_part()

    def _close_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._n_rows = 0


def to_batch(records: Sequence[Record], dim: int) -> pa.RecordBatch:
    """Lay stored records out in columns."""
    arrays = []
    for attribute, field in zip(Record.__struct_fields__, schema(dim), strict=True):
        values: list[Any] = [getattr(record, attribute) for record in records]
        if attribute == "embedding":
            arrays.append(_embeddings(values, dim))
        else:
            arrays.append(array_of(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(dim))


def parts(folder: Path, limits: Limits) -> list[Listed]:
    """Give the files of a verified columnar snapshot, in order.

    Raises
    ------
    SnapshotReadError
        When a file is not Parquet of this schema, or the rows are not as many as promised.
    """
    manifest = layout.read_manifest(folder, limits)
    listed = [
        Listed(name, entry["sha256"], entry["size"])
        for name, entry in sorted(manifest["files"].items())
    ]
    n_rows = 0
    for entry in listed:
        try:
            with pq.ParquetFile(folder / entry.name) as file:
                held = {field.name: field.type for field in file.schema_arrow}
                n_rows += file.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(entry.name, error) from error
        for field in schema(_ANY_DIM):
            problem = f"has no column {field.name}"
            if field.name in held:
                # Embeddings of another kind or length are made anew.
                if field.name == "embedding" or held[field.name] == field.type:
                    continue
                problem = f"has {held[field.name]} in column {field.name}, expected {field.type}"
            raise SnapshotReadError(
                f"{entry.name} {problem}; write the snapshot again", file=entry.name
            )
    if n_rows != manifest.get("memory_count"):
        raise SnapshotReadError(
            f"the files hold {n_rows} rows, the manifest says {manifest.get('memory_count')}",
            file=layout.MANIFEST,
        )
    return listed


def read(
    folder: Path, files: Iterable[Listed], *, loaded_at: str
) -> Iterator[tuple[list[Record | None], int]]:
    """Read and settle the records of the files in order, None for rows that are no records.

    Yields each group with the bytes of whole files read so far.
    """
    done = 0
    for entry in files:
        try:
            with pq.ParquetFile(folder / entry.name, read_dictionary=_REPEATED) as file:
                n_rows = max(file.metadata.num_rows, 1)
                seen = 0
                for batch in file.iter_batches(_READ_ROWS, columns=_NAMES):
                    batch.validate(full=True)
                    seen += batch.num_rows
                    yield _records(batch, loaded_at), done + entry.size * seen // n_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(entry.name, error) from error
        done += entry.size


def _records(batch: pa.RecordBatch, loaded_at: str) -> list[Record | None]:
    columns = {name: _values(name, batch.column(name)) for name in _NAMES}
    invalid: set[int] = set()
    for name, kind in _JSON_KINDS.items():
        columns[name], wrong = _spelled(columns[name], kind)
        invalid.update(wrong)
    if any(batch.column(name).null_count for name in _REQUIRED):
        required = zip(*(columns[name] for name in _REQUIRED), strict=True)
        invalid.update(at for at, values in enumerate(required) if None in values)
    return [
        record if at not in invalid and settle_typed(record, loaded_at=loaded_at) else None
        for at, record in enumerate(map(Record, *columns.values()))
    ]


def _values(name: str, column: pa.Array) -> list[Any]:
    """Give a column as a list; values that repeat are made once."""
    if name == "embedding":
        return _embedding_bytes(column)
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_dictionary(column.type):
        made = strings_of(column.dictionary)
        if len(made) == 1 and not column.null_count:
            return [made[0]] * len(column)
        made.append(None)
        return [made[at] for at in codes_of(column).tolist()]
    if pa.types.is_string(column.type):
        return strings_of(column)
    values: list[Any] = column.to_pylist() if column.null_count else numbers_of(column).tolist()
    return values


def _spelled(texts: list[str | None], kind: Any) -> tuple[list[str | None], list[int]]:
    """Bring a JSON column into its spelling; also gives the rows that are not of its kind."""
    spelling = {text: None if text is None else _json_text(text, kind) for text in set(texts)}
    wrong = {text for text, spelled in spelling.items() if text is not None and spelled is None}
    invalid = [at for at, text in enumerate(texts) if text in wrong] if wrong else []
    return [spelling[text] for text in texts], invalid


# Columns without which there is no record; nulls elsewhere have a meaning or a default.
_REQUIRED = tuple(
    _FIELD_OF_COLUMN.get(name, name)
    for name in (
        "id",
        "identifier",
        "fact_text",
        "memory_type",
        "source",
        "importance",
        "metadata_json",
        "content_hash",
        "namespace",
        "tier",
        "tags_json",
        "source_uri",
        "source_format",
        "snapshot_id",
        "parent_memory",
        "related_json",
        "schema_version",
    )
)


def _json_text(text: str, kind: Any) -> str | None:
    # Short ones, such as tags, are mostly the same few.
    return (_short_text if len(text) <= _SHORT_CHARS else _any_text)(text, kind)


def _any_text(text: str, kind: Any) -> str | None:
    try:
        value: Any = json.loads(text)
        return json_column(value) if isinstance(value, kind) else None
    except (ValueError, RecursionError):
        return None


_SHORT_CHARS = 200
_short_text = lru_cache(maxsize=4096)(_any_text)


def _embeddings(values: Sequence[bytes | None], dim: int) -> pa.Array:
    missing = np.fromiter((not value for value in values), np.bool_, len(values))
    blank = bytes(4 * dim)
    data = np.frombuffer(b"".join(value or blank for value in values), "<f4")
    kind = pa.list_(pa.float32(), dim)
    return pa.FixedSizeListArray.from_arrays(
        array_of_numpy(data), type=kind, mask=array_of_numpy(missing)
    )


def _embedding_bytes(column: pa.Array) -> list[bytes | None]:
    if not pa.types.is_fixed_size_list(column.type) or column.type.value_type != pa.float32():
        return [None] * len(column)
    size = 4 * column.type.list_size
    flat = (
        column.flatten()
        if column.null_count == 0
        else column.fill_null([0.0] * column.type.list_size).flatten()
    )
    data = (
        numbers_of(flat.fill_null(math.nan) if flat.null_count else flat)
        .astype("<f4", copy=False)
        .tobytes()
    )
    valid = column.is_valid().to_pylist()
    return [
        data[i * size : (i + 1) * size] if is_valid else None for i, is_valid in enumerate(valid)
    ]


def _unreadable(name: str, error: Exception) -> SnapshotReadError:
    return SnapshotReadError(
        f"{name} is not a readable Parquet file ({type(error).__name__}); write the snapshot again",
        file=name,
    )
