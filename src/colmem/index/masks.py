"""Counting and reading masks of rows: uint8 arrays of zeros and ones.

NumPy does this as fast as a kernel, which a command line would first have to load.
"""

from __future__ import annotations

import numpy as np

from colmem.schema import Mask, RowIds

_BLOCK_ROWS = 1 << 14


def count_ones(mask: Mask) -> int:
    """Number of rows in a mask."""
    return int(np.count_nonzero(mask.view(np.bool_)))


def next_rows(mask: Mask, start: int, n: int) -> RowIds:
    """The first rows of a mask from ``start`` on, at most n: int64, ascending."""
    parts: list[RowIds] = []
    while start < len(mask) and n > 0:
        found = start + np.flatnonzero(mask[start : start + _BLOCK_ROWS])[:n]
        parts.append(found)
        n -= len(found)
        start += _BLOCK_ROWS
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
