"""Bulk in and out: any number of items, in batches, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmem.arrow_columns import array_of_numpy, numbers_of, strings_of
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
    Namespace,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
    decode,
)
from colmem.contract.vocabulary import member
from colmem.embedding import normalised
from colmem.schema import ITEMS, Vectors
from colmem.storage.sql_filter import condition
from colmem.store import Store, Written
from colmem.stored import new_meta, set_trusted

BATCH_ROWS = 5_000
_CONFIDENCE_DEFAULT = 0.8
_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ARROW_TYPES = {
    "tags": pa.list_(pa.string()),
    "turn_first": pa.uint32(),
    "turn_last": pa.uint32(),
    "confidence": pa.float64(),
}
_META_FIELDS = (
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
        "namespace",
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


def check_item(item: object, path: str = "$") -> None:
    """Refuse what is no item (InvalidRequest)."""
    if not isinstance(item, StoreItem):
        raise InvalidRequest(
            f"{path}: expected a Document, Conversation or Learning, got {type(item).__name__}",
            path=path,
        )


def ingest_batches(
    write: WriteBatch, batches: Iterable[Batch], *, progress: Callable[[int], None] | None
) -> IngestReport:
    """Store prepared batches."""
    start = time.perf_counter()
    total = replayed = 0
    for items, vectors in batches:
        for i, item in enumerate(items):
            check_item(item, f"$[{total + i}]")
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
            values = {
                field: _values(part.column(name), field, name, done)
                for field, name in names.items()
                if field != "embedding"
            }
            items = list(_items(values, part.num_rows, done))
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
    with store.level_table() as table:
        read = table.read(where, columns=read_names)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in read:
            arrays = [batch.column(name) for name in names]
            if embeddings:
                vectors = store.vectors.take(numbers_of(batch.column("row")))
                flat = array_of_numpy(vectors.reshape(-1))
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
    problem = ""
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:
            problem = f" ({error})"
    raise InvalidRequest(
        f"ingest_arrow got a {type(data).__name__}{problem}; expected a pyarrow Table, RecordBatch "
        "or RecordBatchReader, or an object with an Arrow stream (DuckDB, Polars, pandas)"
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


def _values(column: pa.Array, field: str, name: str, position: int) -> list[Any]:
    """A column as Python values of its field's type."""
    if field == "observed_at":
        return _times(column, name, position)
    try:
        column = column.cast(_ARROW_TYPES.get(field, pa.string()))
        if pa.types.is_string(column.type):
            return strings_of(column)
        if field == "tags" and column.null_count == 0:
            flat = strings_of(column.flatten())
            ends = np.cumsum(numbers_of(column.value_lengths())).tolist()
            values: list[Any] = [flat[start:end] for start, end in pairwise([0, *ends])]
        else:
            values = column.to_pylist()
        if field == "tags":
            _refuse_null_tags(values, name, position)
        return values
    except pa.ArrowException as error:
        raise InvalidRequest(
            f"column {name!r} is {column.type} and cannot be read as {field}: {error}"
        ) from error


def _refuse_null_tags(values: list[list[str | None] | None], name: str, position: int) -> None:
    for i, tags in enumerate(values):
        if tags and None in tags:
            raise InvalidRequest(f"$[{position + i}].{name}: a tag is null, expected a string")


def _times(column: pa.Array, name: str, position: int) -> list[Timestamp | None]:
    """Instants of a timestamp column with a time zone, or of RFC 3339 texts."""
    if pa.types.is_timestamp(column.type):
        if column.type.tz is None:
            raise InvalidRequest(
                f"column {name!r} holds times without a time zone; give it one, such as UTC"
            )
        per_second = _UNITS_PER_SECOND[column.type.unit]
        counts = column.cast(pa.int64()).to_pylist()
        nanos = 10**9 // per_second
        return [
            None if n is None else Timestamp(n // per_second, n % per_second * nanos)
            for n in counts
        ]
    times = []
    for i, text in enumerate(column.cast(pa.string()).to_pylist()):
        try:
            times.append(None if text is None else Timestamp.parse(text))
        except InvalidRequest as error:
            raise InvalidRequest(f"$[{position + i}].{name}: {error.message}") from error
    return times


def _items(values: dict[str, list[Any]], n_rows: int, position: int) -> Iterator[StoreItem]:
    """Items of the rows of one batch, from columns whose types were checked already."""
    nothing = [None] * n_rows
    kinds = values.get("kind", nothing)
    metas = _metas(values, n_rows, position)
    names = ("text", "title", "mime", "turns", "learning_kind", "confidence", "evidence")
    shapes = zip(*(values.get(name, nothing) for name in names), strict=True)
    for i, (meta, kind, shape) in enumerate(zip(metas, kinds, shapes, strict=True)):
        try:
            yield _item(member(ItemKind, kind or ItemKind.DOCUMENT, "kind"), meta, *shape)
        except (ColmemError, ValueError, TypeError) as error:
            text = error.message if isinstance(error, ColmemError) else str(error)
            raise InvalidRequest(f"$[{position + i}]: {text}") from error


def _item(
    kind: ItemKind,
    meta: MemoryMeta,
    text: str | None,
    title: str | None,
    mime: str | None,
    turns: str | None,
    learning_kind: str | None,
    confidence: float | None,
    evidence: str | None,
) -> StoreItem:
    if kind is ItemKind.CONVERSATION:
        if turns is None:
            raise InvalidRequest("a conversation needs its turns as a JSON array in `turns`")
        return Conversation(turns=decode(turns, list[Turn]), meta=meta)
    if text is None:
        raise InvalidRequest("text is null, expected a string")
    if kind is ItemKind.DOCUMENT:
        return Document(title=title, body=DocumentBody(text=text), mime=mime, meta=meta)
    return Learning(
        text=text,
        learning_kind=member(LearningKind, learning_kind or LearningKind.FACT, "learning_kind"),
        confidence=_CONFIDENCE_DEFAULT if confidence is None else confidence,
        evidence=evidence,
        meta=meta,
    )


def _metas(values: dict[str, list[Any]], n_rows: int, position: int) -> Iterator[MemoryMeta]:
    plain = [(name, values[name]) for name in _META_FIELDS if name in values]
    nothing = [None] * n_rows
    names = ("namespace", "turn_first", "turn_last", "tool_name", "tool_id")
    columns = (values.get(name, nothing) for name in (*names, "source_kind", "source_id"))
    parts = zip(*columns, strict=True)
    for i, (namespace, first, last, tool, call, kind, source_id) in enumerate(parts):
        meta = new_meta()
        try:
            for name, column in plain:
                if column[i] is not None:
                    set_trusted(meta, name, column[i])
            if namespace:
                set_trusted(meta, "namespace", _namespace(namespace))
            if first is not None:
                set_trusted(meta, "turns", TurnRange(first, last))
            if tool is not None:
                set_trusted(meta, "tool_call", ToolCallRef(tool, call))
            if kind is not None or source_id is not None:
                set_trusted(meta, "source", _source(kind or SourceKind.IMPORT, source_id))
        except (ColmemError, ValueError, TypeError) as error:
            text = error.message if isinstance(error, ColmemError) else str(error)
            raise InvalidRequest(f"$[{position + i}]: {text}") from error
        yield meta


@lru_cache(maxsize=4096)
def _namespace(path: str) -> Namespace:
    return Namespace.parse(path)


@lru_cache(maxsize=4096)
def _source(kind: str, id: str | None) -> SourceRef:
    return SourceRef(kind, id)


def _vectors(column: pa.Array, dim: int, name: str) -> Vectors:
    """Embeddings of a list column, L2-normalised: float32 (n, dim)."""
    if column.null_count:
        raise InvalidRequest(f"column {name!r} has {column.null_count} rows without an embedding")
    try:
        flat = column.cast(pa.list_(pa.float32())).flatten()
    except pa.ArrowException as error:
        raise InvalidRequest(
            f"column {name!r} is {column.type}, expected lists of {dim} floats as embeddings"
        ) from error
    if pc.any(pc.not_equal(pc.list_value_length(column), dim)).as_py():
        raise InvalidRequest(
            f"column {name!r} holds embeddings of other lengths than the store's {dim} dimensions"
        )
    if flat.null_count:
        raise InvalidRequest(f"column {name!r} holds an embedding with a null in it")
    vectors = numbers_of(flat).reshape(len(column), dim)
    if not np.isfinite(vectors).all():
        raise InvalidRequest(f"column {name!r} holds an embedding that is not finite")
    return normalised(vectors)
