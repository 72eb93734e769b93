"""Arrays and dictionaries that only grow: what the resident columns are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from colmem.arrow_columns import array_of, numbers_of

_CAPACITY_MIN = 1024


class GrowingArray:
    """A one-dimensional array with amortised appends.

    Values below ``length`` never change, so a reader may keep ``values(n)`` while it grows.
    """

    def __init__(self, dtype: npt.DTypeLike, values: npt.NDArray[Any] | None = None) -> None:
        self._buffer = np.empty(_CAPACITY_MIN, dtype) if values is None else values
        self.length = 0 if values is None else len(values)

    def append(self, values: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Add values at the end."""
        end = self.length + len(values)
        if end > len(self._buffer) or not self._buffer.flags.writeable:
            grown = np.empty(max(end, end * 3 // 2, _CAPACITY_MIN), self._buffer.dtype)
            grown[: self.length] = self._buffer[: self.length]
            self._buffer = grown
        self._buffer[self.length : end] = values
        self.length = end

    def values(self, n: int | None = None) -> npt.NDArray[Any]:
        """The first n values (default: all), not to be written to."""
        return self._buffer[: self.length if n is None else n]


class Dictionary:
    """Distinct strings of one field, numbered from 1 in order of first appearance; 0 is unset."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values: list[str] = ["", *values]
        self._codes: dict[str, int] = {v: i for i, v in enumerate(self.values) if i}
        self._ranks: npt.NDArray[np.int64] = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def code(self, value: str) -> int:
        """The value's code, 0 when no row ever had it."""
        return self._codes.get(value, 0)

    def encode(self, values: Sequence[str | None]) -> Sequence[int] | npt.NDArray[np.uint32]:
        """Codes of values, adding those not seen before; None is 0."""
        codes = self._codes
        if values and values.count(values[0]) == len(values):
            only = values[0]
            one = 0 if only is None else codes.get(only) or self._add(only)
            return np.full(len(values), one, np.uint32)
        out = []
        for value in values:
            if value is None:
                out.append(0)
                continue
            code = codes.get(value)
            out.append(self._add(value) if code is None else code)
        return out

    def _add(self, value: str) -> int:
        code = len(self.values)
        # The list first: a reader that sees the code finds its value.
        self.values.append(value)
        self._codes[value] = code
        return code

    def ranks(self, n: int) -> npt.NDArray[np.int64]:
        """Position of each of the first n codes in code-point order of the values."""
        if len(self._ranks) < n:
            values = self.values[:n]
            order = pc.sort_indices(array_of(values, pa.string()))  # UTF-8 byte order
            ranks = np.empty(n, np.int64)
            ranks[numbers_of(order)] = np.arange(n)
            self._ranks = ranks
        return self._ranks
