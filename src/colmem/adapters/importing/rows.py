"""Files of many items: JSON lines, CSV and Parquet. A bad row is a Problem that names its line."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from colmem import ColmemError, StoreItem, decode
from colmem.adapters.importing import exports
from colmem.adapters.importing.items import FIELDS, Origin, item_of
from colmem.adapters.importing.reading import (
    Items,
    Problem,
    Reading,
    not_utf8,
    opened,
    unreadable,
)

LINE_BYTES_MAX: Final = 64 * 2**20
PARQUET_ROWS: Final = 5_000
_BOM: Final = b"\xef\xbb\xbf"
_NUMBERS: Final[dict[str, Callable[[str], Any]]] = {
    "confidence": float,
    "turn_first": int,
    "turn_last": int,
}


def read_jsonl(path: Path, origin: Origin, reading: Reading) -> Items:
    """Items of JSON lines: the contract's items as they are, or objects of flat fields."""
    left_out: dict[str, None] = {}
    try:
        with opened(path) as (file, raw):
            number = 0
            while line := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                place = f"{path}:{number}"
                if len(line) > LINE_BYTES_MAX:
                    yield Problem(place, f"the line is longer than {LINE_BYTES_MAX} bytes")
                    return
                reading.consumed(raw.tell() if raw.seekable() else 0)
                line = line.removeprefix(_BOM) if number == 1 else line
                if line.strip():
                    yield _json_row(line, place, origin, reading.mapping, left_out)
    except (OSError, EOFError, zlib.error) as error:
        yield unreadable(path, error)
    if left_out:
        reading.note(f"{path}: keys left out: {', '.join(left_out)} (--map)")


def read_csv(path: Path, origin: Origin, reading: Reading) -> Items:
    """Items of a table with a header line; ``.tsv`` is separated by tabs."""
    csv.field_size_limit(LINE_BYTES_MAX)
    try:
        with opened(path) as (file, raw):
            text = io.TextIOWrapper(file, "utf-8-sig", newline="")
            delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
            table = csv.reader(text, delimiter=delimiter, strict=True)
            header = next(table, None)
            if header is None:
                return
            names = _columns(header, reading, path)
            if isinstance(names, Problem):
                yield names
                return
            for row in _csv_rows(table, names, path, origin):
                reading.consumed(raw.tell())
                yield row
    except UnicodeDecodeError as error:
        yield Problem(f"{path}:1", not_utf8(error))
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        yield unreadable(path, error)


def read_parquet(path: Path, origin: Origin, reading: Reading) -> Items:
    """Items of a Parquet file, in batches; a column of embeddings is not among its fields."""
    import pyarrow as pa  # noqa: PLC0415 - only for Parquet
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(path) as file:
            header = file.schema_arrow.names
            names = _columns(header, reading, path)
            if isinstance(names, Problem):
                yield names
                return
            size, n_rows = path.stat().st_size, file.metadata.num_rows
            fields = {column: field for column, field in zip(header, names, strict=True) if field}
            number = 0
            for batch in file.iter_batches(PARQUET_ROWS, columns=list(fields)):
                for row in batch.to_pylist():
                    number += 1
                    values = {fields[column]: value for column, value in row.items()}
                    yield _row(values, f"{path}:{number}", origin)
                reading.consumed(size * number // max(n_rows, 1))
    except (OSError, pa.ArrowException) as error:
        yield unreadable(path, error)


def read_array(path: Path, origin: Origin, reading: Reading, shape: exports.Shape) -> Items:
    """Items of one JSON array, of elements as the lines of JSON lines are."""
    left_out: dict[str, None] = {}
    for element in exports.read(path, shape, reading.consumed):
        place, problem, value = element
        if problem:
            yield Problem(place, problem)
        elif _is_item(value, reading.mapping):
            yield _item(orjson.dumps(value), place)
        else:
            yield _flat(value, place, origin, reading.mapping, left_out)
    if left_out:
        reading.note(f"{path}: keys left out: {', '.join(left_out)} (--map)")


def _json_row(
    line: bytes,
    place: str,
    origin: Origin,
    mapping: Mapping[str, str],
    left_out: dict[str, None],
) -> StoreItem | Problem:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Problem(place, _not_json(line, error))
    if _is_item(value, mapping):
        return _item(line, place)
    return _flat(value, place, origin, mapping, left_out)


def _is_item(value: Any, mapping: Mapping[str, str]) -> bool:
    """Whether an object is an item of the contract; with a mapping it never is."""
    return isinstance(value, dict) and "type" in value and not mapping


def _item(text: bytes, place: str) -> StoreItem | Problem:
    try:
        item: StoreItem = decode(text, StoreItem)
        item.validate()
    except ColmemError as error:
        return Problem(place, error.message)
    return item


def _flat(
    value: Any,
    place: str,
    origin: Origin,
    mapping: Mapping[str, str],
    left_out: dict[str, None],
) -> StoreItem | Problem:
    if not isinstance(value, dict):
        return Problem(place, f"expected an object, got {type(value).__name__}")
    fields = {mapping.get(name, name): held for name, held in value.items()}
    if "text" not in fields and "turns" not in fields:
        keys = ", ".join(value) or "no keys"
        return Problem(
            place,
            "neither an item (`type`) nor an object with `text` or `turns`: it has "
            f"{keys}; name the key of the text with --map KEY=text",
        )
    left_out.update((name, None) for name in fields if name not in FIELDS)
    return _row(fields, place, origin)


def _not_json(line: bytes, error: ValueError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"byte {broken.start} of the line is not UTF-8"
    return f"not valid JSON: {error}"


def _csv_rows(table: Any, names: list[str], path: Path, origin: Origin) -> Items:
    while True:
        first = table.line_num + 1
        try:
            row = next(table, None)
        except csv.Error as error:
            yield Problem(f"{path}:{first}", str(error))
            continue
        except UnicodeDecodeError:
            yield Problem(f"{path}:{first}", "not UTF-8 from here on; convert the file to UTF-8")
            return
        if row is None:
            return
        place = f"{path}:{first}"
        if not any(row):
            continue
        if len(row) != len(names):
            yield Problem(place, f"{len(row)} cells, the header has {len(names)}")
            continue
        cells = {name: cell for name, cell in zip(names, row, strict=True) if name and cell}
        try:
            values = {name: _value(name, cell) for name, cell in cells.items()}
        except ValueError as error:
            yield Problem(place, str(error))
            continue
        yield _row(values, place, origin)


def _columns(header: list[str], reading: Reading, path: Path) -> list[str] | Problem:
    """The field of each column, empty where none takes it; says which columns are left out."""
    mapping = reading.mapping
    names = [mapping.get(name, name if name in FIELDS else "") for name in header]
    has = ", ".join(header)
    missing = [name for name in mapping if name not in header]
    if missing:
        return Problem(f"{path}:1", f"--map names {', '.join(missing)}; the columns are {has}")
    if "text" not in names and "turns" not in names:
        return Problem(
            f"{path}:1", f"no column `text`; the columns are {has}; name it with --map COLUMN=text"
        )
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        return Problem(f"{path}:1", f"two columns for {', '.join(sorted(twice))}")
    left_out = [column for column, name in zip(header, names, strict=True) if not name]
    if left_out:
        reading.note(f"{path}: columns left out: {', '.join(left_out)} (--map)")
    return names


def _value(name: str, cell: str) -> Any:
    """A cell's text as the value of a field."""
    if name in _NUMBERS:
        try:
            return _NUMBERS[name](cell)
        except ValueError:
            raise ValueError(f"`{name}` is {cell!r}, expected a number") from None
    if name == "tags":
        if cell.startswith("["):
            return json.loads(cell)
        return [tag for part in cell.split(",") if (tag := part.strip())]
    return cell


def _row(fields: Mapping[str, Any], place: str, origin: Origin) -> StoreItem | Problem:
    try:
        return item_of(fields, origin)
    except ColmemError as error:
        return Problem(place, error.message)
    except (TypeError, ValueError) as error:
        return Problem(place, str(error))
