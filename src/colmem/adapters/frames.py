"""Items as frames and frames as items: pandas, Polars, DuckDB and Arrow.

Columns are named as the fields that ``ingest`` takes, so what comes out goes in again as the same
items; ``id`` stands beside them and is not read back. pandas and Polars are extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from colmem import InvalidRequest, MetaFilter, MissingExtra, is_blank
from colmem.adapters import frame_input
from colmem.schema import ITEMS

if TYPE_CHECKING:
    from colmem.bulk import IngestReport

BATCH_ROWS: Final = 5_000
EMBEDDING: Final = "embedding"
_OWN: Final = ("row", "seq", "fingerprint", "content_hash", "observed_s", "observed_ns", "record")
_MICROS: Final = pa.timestamp("us", "UTC")
_NEEDS: Final = {"text": ("kind", "text", "title"), "observed_at": ("observed_s", "observed_ns")}

COLUMNS: Final = (*(name for name in ITEMS.names if name not in _OWN), "observed_at")
"""Columns of a frame. ``observed_at`` is in microseconds, ``turns`` a JSON text."""


class ArrowEngine(Protocol):
    """What is asked of an engine: a store's, or one connected to over HTTP."""

    def to_arrow(self, filter: MetaFilter | None = None, *, embeddings: bool = False) -> Any:
        """Stream the admitted items."""

    def ingest_arrow(
        self, data: Any, *, progress: Callable[[int], None] | None = None
    ) -> IngestReport:
        """Store the rows of Arrow data."""


def arrow_reader(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> pa.RecordBatchReader:
    """Stream the admitted items as record batches, in order of storing; read once.

    columns : some of COLUMNS, in this order (default all); embeddings : add a column ``embedding``
    of float32 lists.

    Raises
    ------
    InvalidRequest
        When a column is unknown.
    """
    names = list(COLUMNS if columns is None else columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise InvalidRequest(
            f"columns: unknown {', '.join(unknown)}; known are {', '.join(COLUMNS)}"
        )
    source = _stored_columns(engine, filter, names, embeddings=embeddings)
    fields = [_field(name) for name in names]
    if embeddings:
        fields.append(source.schema.field(EMBEDDING))
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source:
            arrays = [_column(batch, field.name) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def to_arrow(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> pa.Table:
    """The admitted items as one table; arguments as of ``arrow_reader``."""
    return arrow_reader(engine, filter, columns, embeddings=embeddings).read_all()


def to_pandas(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> Any:
    """The admitted items as a pandas DataFrame; arguments as of ``arrow_reader``."""
    _extra("pandas")
    return to_arrow(engine, filter, columns, embeddings=embeddings).to_pandas()


def to_polars(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> Any:
    """The admitted items as a Polars DataFrame; arguments as of ``arrow_reader``."""
    polars = _extra("polars")
    return polars.from_arrow(to_arrow(engine, filter, columns, embeddings=embeddings))


def to_duckdb(
    engine: ArrowEngine,
    connection: Any,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
    stream: bool = False,
) -> Any:
    """The admitted items as a relation of a DuckDB connection; arguments as of ``arrow_reader``.

    stream : hold a batch at a time; such a relation can be read once, and is empty after.
    """
    reader = arrow_reader(engine, filter, columns, embeddings=embeddings)
    return connection.from_arrow(reader if stream else reader.read_all())


def pandas_batches(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> Iterator[Any]:
    """The admitted items as pandas DataFrames, one batch in memory at a time."""
    _extra("pandas")
    reader = arrow_reader(engine, filter, columns, embeddings=embeddings)
    return (batch.to_pandas() for batch in reader)


def polars_batches(
    engine: ArrowEngine,
    filter: MetaFilter | None = None,
    columns: Sequence[str] | None = None,
    *,
    embeddings: bool = False,
) -> Iterator[Any]:
    """The admitted items as Polars DataFrames, one batch in memory at a time."""
    polars = _extra("polars")
    reader = arrow_reader(engine, filter, columns, embeddings=embeddings)
    return (polars.from_arrow(batch) for batch in reader)


def ingest(
    engine: ArrowEngine,
    frame: Any,
    mapping: dict[str, str] | None = None,
    *,
    batch_size: int = BATCH_ROWS,
    progress: Callable[[int], None] | None = None,
) -> IngestReport:
    """Store the rows of a frame as items, in batches; rows that are held already change nothing.

    Parameters
    ----------
    frame
        A pandas or Polars DataFrame, a Polars LazyFrame, a DuckDB relation, or Arrow data.
    mapping
        Column -> field (``text``, ``title``, ``kind``, ``embedding``, any field of MemoryMeta …); a
        column named like a field needs no entry, other columns and an index are left out.
    progress
        Called after each batch with the number of rows read so far.

    Raises
    ------
    InvalidRequest
        Names the row (from 0) and the column that cannot be read; earlier batches stay stored.
    """
    data = frame_input.arrow_of(frame, mapping or {}, batch_size)
    options: dict[str, Any] = {}
    if _is_local(engine):
        options = {"mapping": mapping, "batch_size": batch_size}
    elif mapping:
        data = frame_input.renamed(data, mapping)
    return engine.ingest_arrow(data, progress=progress, **options)


def _stored_columns(
    engine: ArrowEngine, filter: MetaFilter | None, names: Sequence[str], *, embeddings: bool
) -> pa.RecordBatchReader:
    """The table's columns that the named ones are made of, or all of them."""
    options: dict[str, Any] = {}
    if _is_local(engine):
        needed = [part for name in names for part in _NEEDS.get(name, (name,))]
        options["columns"] = [*dict.fromkeys(needed)]
    return engine.to_arrow(filter, embeddings=embeddings, **options)


def _field(name: str) -> pa.Field:
    return pa.field(name, _MICROS) if name == "observed_at" else ITEMS.field(name)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name == "observed_at":
        parts = zip(*(batch.column(part).to_pylist() for part in _NEEDS[name]), strict=True)
        micros = [None if s is None else s * 10**6 + (ns or 0) // 1000 for s, ns in parts]
        return pa.array(micros, pa.int64()).cast(_MICROS)
    column = batch.column(name)
    if name != "text" or batch.column("title").null_count == batch.num_rows:
        return column
    pairs = zip(column.to_pylist(), batch.column("title").to_pylist(), strict=True)
    return pa.array([_body(text, title) for text, title in pairs], pa.string())


def _body(text: str, title: str | None) -> str:
    """The text that was stored: what is held has the title on top."""
    return text if title is None or is_blank(title) else text[len(f"# {title}\n\n") :]


def _is_local(engine: ArrowEngine) -> bool:
    from colmem.engine import Engine  # noqa: PLC0415 - only when a frame is asked for

    return isinstance(engine, Engine)


def _extra(name: str) -> ModuleType:
    try:
        return __import__(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{name} is not installed; install it with `pip install 'colmem[{name}]'`"
        ) from error
