"""Frames as Arrow data: the columns that are fields, and which row cannot be converted.

Frames are known by the name of their class, so that neither pandas nor Polars is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from colmem import InvalidRequest
from colmem.adapters.importing.items import FIELDS

_TAKEN: Final = frozenset({*FIELDS, "embedding"})
_NOT_TEXT: Final = frozenset(
    {"tags", "confidence", "turn_first", "turn_last", "observed_at", "embedding"}
)


def arrow_of(frame: Any, mapping: Mapping[str, str], batch_size: int) -> Any:
    """Arrow data of the columns that are fields; what is no frame is passed on as it is.

    Raises
    ------
    InvalidRequest
        When a column cannot be converted; the message names it, and the row where that shows.
    """
    match type(frame).__module__.partition(".")[0], type(frame).__name__:
        case "pandas", "DataFrame":
            return _of_pandas(frame, mapping)
        case "polars", "DataFrame":
            return _of_polars(frame, mapping, frame.iter_slices(batch_size))
        case "polars", "LazyFrame":
            names = frame.collect_schema().names()
            part = frame.select(_taken(names, mapping))
            batches = part.collect_batches(chunk_size=batch_size, lazy=True)
            return _of_polars(frame.head(0).collect(), mapping, batches)
    return frame


def renamed(data: Any, mapping: Mapping[str, str]) -> pa.RecordBatchReader:
    """Arrow data with columns named as their fields, for a server, which is told no mapping.

    Raises
    ------
    InvalidRequest
        When the mapping names a column that is not there.
    """
    reader = pa.RecordBatchReader.from_stream(data)
    names = reader.schema.names
    for name in mapping:
        if name not in names:
            raise InvalidRequest(f"mapping names column {name!r}; the data has {', '.join(names)}")
    hidden = {*mapping.values()}
    kept = [i for i, name in enumerate(names) if name in mapping or name not in hidden]
    fields = (reader.schema.field(i) for i in kept)
    schema = pa.schema([field.with_name(mapping.get(field.name, field.name)) for field in fields])
    batches = (
        pa.RecordBatch.from_arrays([batch.column(i) for i in kept], schema=schema)
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _taken(columns: Sequence[Any], mapping: Mapping[str, str]) -> list[str]:
    """The columns that are fields."""
    return [name for name in columns if name in mapping or name in _TAKEN]


def _whole(table: pa.Table, columns: Sequence[Any]) -> pa.Table:
    """The other columns too, without values, so that an error can say which there are."""
    for name in columns:
        if name not in table.column_names:
            table = table.append_column(str(name), pa.nulls(table.num_rows))
    return table


def _of_pandas(frame: Any, mapping: Mapping[str, str]) -> pa.Table:
    names = list(frame.columns)
    taken = _taken(names, mapping)
    twice = [name for name in taken if names.count(name) > 1]
    if twice:
        raise InvalidRequest(f"two columns are named {twice[0]!r}; rename one of them")
    arrays = {name: _array(frame[name], name, mapping.get(name, name)) for name in taken}
    return _whole(pa.table(arrays), names)


def _array(column: Any, name: str, field: str) -> Any:
    """A pandas column as an Arrow array."""
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        row, said = _first_bad(column, field)
        raise InvalidRequest(f"$[{row}].{name}: {said}", path=f"$[{row}].{name}") from error


def _first_bad(column: Any, field: str) -> tuple[int, str]:
    """The first row that cannot be converted, and why."""
    values = column.tolist()
    if field not in _NOT_TEXT:
        for row, value in enumerate(values):
            if not (value is None or value != value or isinstance(value, str)):
                return row, f"got a {type(value).__name__}, expected a string for `{field}`"
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _converts(values[:middle]):
            good = middle
        else:
            bad = middle
    kind = type(values[bad - 1]).__name__
    return bad - 1, f"a {kind} does not fit the values above it, expected one type in a column"


def _converts(values: list[Any]) -> bool:
    try:
        pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _of_polars(frame: Any, mapping: Mapping[str, str], parts: Any) -> pa.RecordBatchReader:
    """Batches of a Polars frame, in Arrow types that every kernel knows."""
    from polars import CompatLevel, Object  # noqa: PLC0415 - there, as the frame is its own

    taken = _taken(frame.columns, mapping)
    for name in taken:
        if frame.schema[name] == Object:
            raise InvalidRequest(f"column {name!r} holds Python objects; convert them to text")

    def table_of(part: Any) -> pa.Table:
        table = part.select(taken).to_arrow(compat_level=CompatLevel.oldest())
        return _whole(table, frame.columns)

    schema = table_of(frame.clear()).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from table_of(part).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
