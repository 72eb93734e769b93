"""Bulk in and out: any number of items, in batches, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from colmem.contract import (
    ColmemError,
    Conversation,
    Document,
    DocumentBody,
    InvalidRequest,
    ItemKind,
    Learning,
    LearningKind,
    MemoryMeta,
    MetaFilter,
    SourceRef,
    StoreItem,
    ToolCallRef,
    Turn,
    TurnRange,
    decode,
)
from colmem.embedding import normalised
from colmem.schema import ITEMS, Vectors
from colmem.storage.sql_filter import condition
from colmem.store import Store, Written

BATCH_ROWS = 5_000
_CONFIDENCE_DEFAULT = 0.8
_META_FIELDS = (
    "namespace",
    "workspace",
    "folder",
    "file_path",
    "language",
    "repo",
    "commit",
    "url",
    "thread_id",
    "agent_id",
    "tags",
    "observed_at",
)
_FIELDS = frozenset(
    {
        *_META_FIELDS,
        "text",
        "embedding",
        "kind",
        "title",
        "mime",
        "turns",
        "learning_kind",
        "confidence",
        "evidence",
        "turn_first",
        "turn_last",
        "tool_name",
        "tool_id",
        "source_kind",
        "source_id",
    }
)
# Items with their embeddings (float32 (n, dim)), or None to have them embedded.
Batch = tuple[list[StoreItem], Vectors | None]
WriteBatch = Callable[[Sequence[StoreItem], Vectors | None], list[Written]]


class IngestReport(NamedTuple):
    """What an ingest did: items stored, items that were held already, and seconds taken."""

    stored: int
    replayed: int
    seconds: float

    @property
    def total(self) -> int:
        """Items read."""
        return self.stored + self.replayed


def ingest(
    write: WriteBatch,
    items: Iterable[StoreItem],
    *,
    batch_size: int,
    progress: Callable[[int], None] | None,
) -> IngestReport:
    """Store items batch by batch, each batch one atomic write."""
    if batch_size < 1:
        raise InvalidRequest(f"batch_size is {batch_size}, expected 1 or more")

    def batches() -> Iterator[Batch]:
        source = iter(items)
        while batch := list(islice(source, batch_size)):
            yield batch, None

    return ingest_batches(write, batches(), progress=progress)


def ingest_batches(
    write: WriteBatch, batches: Iterable[Batch], *, progress: Callable[[int], None] | None
) -> IngestReport:
    """Store prepared batches."""
    start = time.perf_counter()
    total = replayed = 0
    for items, vectors in batches:
        for i, item in enumerate(items):
            try:
                item.validate()
            except ColmemError as error:
                raise type(error)(f"$[{total + i}]: {error.message}") from error
        written = write(items, vectors)
        total += len(written)
        replayed += sum(w.replayed for w in written)
        if progress is not None:
            progress(total)
    return IngestReport(total - replayed, replayed, time.perf_counter() - start)


def arrow_batches(
    data: Any, mapping: dict[str, str] | None, dim: int, batch_size: int
) -> Iterator[Batch]:
    """Items and embeddings of Arrow data.

    Raises
    ------
    InvalidRequest
        When a mapping names no field or no column, ``text`` (or ``turns``) is absent, or a value
        does not fit its field; the message names column and row.
    """
    reader = _reader(data)
    names = _field_columns(reader.schema.names, mapping or {})
    if "text" not in names and "turns" not in names:
        raise InvalidRequest(
            "ingest_arrow needs a column `text` (or `turns`), or a mapping of one to it; the data "
            f"has {', '.join(reader.schema.names) or 'no columns'}"
        )
    done = 0
    for chunk in reader:
        for start in range(0, chunk.num_rows, batch_size):
            part = chunk.slice(start, batch_size)
            columns = {
                field: part.column(name) for field, name in names.items() if field != "embedding"
            }
            values = {field: column.to_pylist() for field, column in columns.items()}
            items = [_item(values, i, done + i) for i in range(part.num_rows)]
            vectors = None
            if "embedding" in names:
                vectors = _vectors(part.column(names["embedding"]), dim, names["embedding"])
            yield items, vectors
            done += part.num_rows


def to_arrow(
    store: Store, filter: MetaFilter, columns: Sequence[str] | None, *, embeddings: bool
) -> pa.RecordBatchReader:
    """Stream admitted items, in order of storing."""
    names = list(ITEMS.names if columns is None else columns)
    unknown = [name for name in names if name not in ITEMS.names]
    if unknown:
        raise InvalidRequest(
            f"columns: unknown {', '.join(unknown)}; known are {', '.join(ITEMS.names)}"
        )
    schema = pa.schema([ITEMS.field(name) for name in names])
    if embeddings:
        schema = schema.append(pa.field("embedding", pa.list_(pa.float32(), store.dim)))
    where = condition(filter, now_s=int(time.time()))
    read_names = names if "row" in names or not embeddings else [*names, "row"]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in store.table.read(where, columns=read_names):
            arrays = [batch.column(name) for name in names]
            if embeddings:
                vectors = store.vectors.take(batch.column("row").to_numpy())
                flat = pa.array(vectors.reshape(-1), pa.float32())
                arrays.append(pa.FixedSizeListArray.from_arrays(flat, store.dim))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.Table):
        return data.to_reader(max_chunksize=BATCH_ROWS)
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise InvalidRequest(
        f"ingest_arrow got a {type(data).__name__}; expected a pyarrow Table, RecordBatch or "
        "RecordBatchReader, or an object with an Arrow stream (DuckDB, Polars, pandas)"
    )


def _field_columns(names: Sequence[str], mapping: dict[str, str]) -> dict[str, str]:
    """Field -> column; named in the mapping, or of the field's own name."""
    for column, field in mapping.items():
        if column not in names:
            raise InvalidRequest(
                f"mapping names column {column!r}; the data has {', '.join(names)}"
            )
        if field not in _FIELDS:
            known = ", ".join(sorted(_FIELDS))
            raise InvalidRequest(f"mapping gives {column!r} to {field!r}; fields are {known}")
    fields = {name: name for name in names if name in _FIELDS and name not in mapping}
    return fields | {field: column for column, field in mapping.items()}


def _item(values: dict[str, list[Any]], i: int, position: int) -> StoreItem:
    def value(field: str) -> Any:
        column = values.get(field)
        return None if column is None else column[i]

    try:
        meta = _meta(value)
        kind = ItemKind(value("kind") or ItemKind.DOCUMENT)
        if kind is ItemKind.LEARNING:
            confidence = value("confidence")
            return Learning(
                text=value("text"),
                learning_kind=LearningKind(value("learning_kind") or LearningKind.FACT),
                confidence=_CONFIDENCE_DEFAULT if confidence is None else confidence,
                evidence=value("evidence"),
                meta=meta,
            )
        if kind is ItemKind.CONVERSATION:
            return Conversation(turns=decode(value("turns"), list[Turn]), meta=meta)
        body = DocumentBody(text=value("text"))
        return Document(title=value("title"), body=body, mime=value("mime"), meta=meta)
    except (ColmemError, ValueError, TypeError) as error:
        text = error.message if isinstance(error, ColmemError) else str(error)
        raise InvalidRequest(f"$[{position}]: {text}") from error


def _meta(value: Callable[[str], Any]) -> MemoryMeta:
    fields = {name: held for name in _META_FIELDS if (held := value(name)) is not None}
    if value("turn_first") is not None:
        fields["turns"] = TurnRange(value("turn_first"), value("turn_last"))
    if value("tool_name") is not None:
        fields["tool_call"] = ToolCallRef(value("tool_name"), value("tool_id"))
    if value("source_kind") is not None:
        fields["source"] = SourceRef(value("source_kind"), value("source_id"))
    elif value("source_id") is not None:
        fields["source"] = SourceRef("import", value("source_id"))
    return MemoryMeta(**fields)


def _vectors(column: pa.Array, dim: int, name: str) -> Vectors:
    """Embeddings of a list column, L2-normalised: float32 (n, dim)."""
    if column.null_count:
        raise InvalidRequest(f"column {name!r} has {column.null_count} rows without an embedding")
    flat = column.flatten()
    if len(flat) != len(column) * dim:
        raise InvalidRequest(
            f"column {name!r} holds embeddings of other lengths than the store's {dim} dimensions"
        )
    vectors = flat.cast(pa.float32()).to_numpy(zero_copy_only=False).reshape(len(column), dim)
    if not np.isfinite(vectors).all():
        raise InvalidRequest(f"column {name!r} holds an embedding that is not finite")
    return normalised(vectors)
