"""Kernels of the key index: an open-addressing hash table from 64-bit keys to rows.

``slots_key`` uint64 (m,), ``slots_row`` int64 (m,), m a power of two, -1 an empty slot. Several
slots may hold one key (an id and a content hash of other rows, or a forgotten and a later row);
the caller tells them apart. Linear probing from a multiplicative hash (Knuth, TAOCP 3, 6.4).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from colmem_kernels._jit import kernel

_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_ROWS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_LIVE = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_OUT_KEYS = nb.types.Array(nb.uint64, 1, "C")
_OUT_ROWS = nb.types.Array(nb.int64, 1, "C")

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@kernel(nb.int64(_OUT_KEYS, _OUT_ROWS, _KEYS, _ROWS, _LIVE))
def insert(slots_key: Any, slots_row: Any, keys: Any, rows: Any, live: Any) -> int:
    """Insert pairs; a slot of the same key whose row is no longer live is reused.

    live : uint8 (n_live,), rows at or past its end count as live. Returns slots newly taken.
    """
    m = np.uint64(slots_key.shape[0] - 1)
    taken = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        at = (key * _MULTIPLIER >> np.uint64(20)) & m
        while True:
            row = slots_row[at]
            if row < 0:
                taken += 1
                break
            if slots_key[at] == key and row < live.shape[0] and live[row] == 0:
                break
            at = (at + np.uint64(1)) & m
        slots_key[at] = key
        slots_row[at] = rows[i]
    return taken


@kernel(nb.int64(_KEYS, _ROWS, nb.uint64, _LIVE, _OUT_ROWS))
def find(slots_key: Any, slots_row: Any, key: Any, live: Any, out: Any) -> int:
    """Live rows held under a key, at most ``len(out)``; returns how many."""
    m = np.uint64(slots_key.shape[0] - 1)
    at = (key * _MULTIPLIER >> np.uint64(20)) & m
    n = 0
    while slots_row[at] >= 0:
        row = slots_row[at]
        if slots_key[at] == key and row < live.shape[0] and live[row] and n < out.shape[0]:
            out[n] = row
            n += 1
        at = (at + np.uint64(1)) & m
    return n


@kernel(nb.void(_KEYS, _ROWS, _KEYS, _LIVE, _OUT_ROWS))
def find_first(slots_key: Any, slots_row: Any, keys: Any, live: Any, out: Any) -> None:
    """For each key a live row held under it, or -1."""
    m = np.uint64(slots_key.shape[0] - 1)
    for i in range(keys.shape[0]):
        at = (keys[i] * _MULTIPLIER >> np.uint64(20)) & m
        out[i] = -1
        while slots_row[at] >= 0:
            row = slots_row[at]
            if slots_key[at] == keys[i] and row < live.shape[0] and live[row]:
                out[i] = row
                break
            at = (at + np.uint64(1)) & m
