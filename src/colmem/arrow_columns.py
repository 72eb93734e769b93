"""Python values as Arrow arrays, from buffers made here.

``pyarrow.array`` imports pandas, where it is installed, before it looks at its first value: half a
second in the middle of a read or write.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_OFFSET_MAX = 2**31 - 1


def array_of(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Make an array of strings, numbers, booleans or lists of strings; None is null.

    Raises
    ------
    OverflowError
        When the texts have more than 2 GB together.
    """
    if is_one_value(values) and values[0] != 0:  # zeros may differ in sign
        if values[0] is None:
            return pa.nulls(len(values), type)
        return pa.repeat(_array(values[:1], type)[0], len(values))
    return _array(values, type)


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_string(type):
        return _strings(values)
    if pa.types.is_list(type):
        return pa.ListArray.from_arrays(_offsets(values), _flat(values))
    return _numbers(values, type)


def is_one_value(values: Sequence[object]) -> bool:
    """Whether all values are equal, and there are any."""
    return bool(values) and values[0] == values[-1] and values.count(values[0]) == len(values)


def array_of_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Make an array of numbers or booleans, over the same memory but for booleans."""
    type = pa.from_numpy_dtype(values.dtype)
    held = np.packbits(values, bitorder="little") if pa.types.is_boolean(type) else values
    data = pa.py_buffer(np.ascontiguousarray(held))
    return pa.Array.from_buffers(type, len(values), [None, data])


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """Give the values of an array of integers or floats, over the same memory.

    There must be no nulls; booleans, which Arrow packs into bits, are no numbers here.
    """
    n = len(column)
    dtype = np.dtype(column.type.to_pandas_dtype())
    data = column.buffers()[1]
    if n == 0 or data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype)[column.offset : column.offset + n]


def codes_of(column: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Give the codes of a dictionary-coded array, -1 for null: int32 (n,)."""
    indices = column.indices
    codes = numbers_of(indices)
    if not indices.null_count:
        return codes
    bits = np.frombuffer(indices.buffers()[0], np.uint8)
    is_there = np.unpackbits(bits, bitorder="little")[indices.offset :][: len(indices)]
    return np.where(is_there, codes, np.int32(-1))


def strings_of(column: pa.StringArray) -> list[Any]:
    """Give the values of an array of strings, None for null."""
    n = len(column)
    _, offset_bytes, data_bytes = column.buffers()
    if n == 0 or offset_bytes is None:
        return [None] * n
    wide = pa.types.is_large_string(column.type)
    offsets = np.frombuffer(offset_bytes, np.int64 if wide else np.int32)
    offsets = offsets[column.offset : column.offset + n + 1]
    data = (data_bytes or pa.py_buffer(b""))[int(offsets[0]) : int(offsets[-1])].to_pybytes()
    bounds = pairwise((offsets - offsets[0]).tolist())
    values: list[Any]
    if data.isascii():
        text = data.decode()
        values = [text[start:end] for start, end in bounds]
    else:
        values = [data[start:end].decode() for start, end in bounds]
    if column.null_count:
        for at, is_there in enumerate(column.is_valid().to_pylist()):
            if not is_there:
                values[at] = None
    return values


def _flat(values: Sequence[Sequence[str]]) -> pa.Array:
    return _strings(list(chain.from_iterable(values)))


def _strings(values: Sequence[str | None]) -> pa.Array:
    valid = None
    try:
        text = "".join(values)  # type: ignore[arg-type]
    except TypeError:
        valid = _validity(values)
        values = [value or "" for value in values]
        text = "".join(values)  # type: ignore[arg-type]
    data = text.encode()
    if len(data) != len(text):
        values = [value.encode() for value in values]  # type: ignore[union-attr, misc]
    offsets = _offsets(values)  # type: ignore[arg-type]
    buffers = [valid, offsets.buffers()[1], pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _numbers(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    valid = None
    if None in values:
        valid = _validity(values)
        values = [0 if value is None else value for value in values]
    made: npt.NDArray[Any] = np.array(values, type.to_pandas_dtype())
    if pa.types.is_boolean(type):
        made = np.packbits(made, bitorder="little")
    return pa.Array.from_buffers(type, len(values), [valid, pa.py_buffer(made)])


def _validity(values: Sequence[Any]) -> pa.Buffer:
    is_there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))


def _offsets(values: Sequence[Sized]) -> pa.Array:
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    if ends[-1] > _OFFSET_MAX:
        raise OverflowError(f"texts of {ends[-1]} bytes in one batch, the most is {_OFFSET_MAX}")
    return pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends.astype(np.int32))])
