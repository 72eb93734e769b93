"""The key index: from an id, a fingerprint or a content hash to the live rows that may carry it.

Keys are 64-bit digests in one open-addressing table, so a hit is a candidate: the caller compares
the stored text. Derived, and rebuilt from the rows at any time. One thread adds; readers take the
slots as one immutable reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.schema import Mask, RowIds
from colmem_kernels import keys as kernels

_SLOTS_MIN = 1 << 12
_LOAD_MAX = 0.6
_CANDIDATES_MAX = 64


def key_of(text: str) -> int:
    """The 64-bit key of an id or hash: the leading digits of one written in hex, else a digest.

    So a fingerprint and the content hash it is cut from share one key.
    """
    if len(text) in (40, 64):
        try:
            return int(text[:16], 16)
        except ValueError:
            pass  # not hex after all
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


def keys_of(id: str, content_hash: str, fingerprint: str) -> list[int]:
    """Distinct keys of the three names of one row."""
    if id is fingerprint and content_hash.startswith(id):
        return [key_of(content_hash)]
    return list(dict.fromkeys(map(key_of, (id, content_hash, fingerprint))))


class _Slots(NamedTuple):
    keys: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]


def _empty(size: int) -> _Slots:
    return _Slots(np.zeros(size, np.uint64), np.full(size, -1, np.int64))


class KeyIndex:
    """Rows by key; ``slots`` as saved by :meth:`arrays`."""

    def __init__(self, slots: Sequence[npt.NDArray[np.generic]] | None = None) -> None:
        if slots is None:
            self._slots, self._taken = _empty(_SLOTS_MIN), 0
        else:
            keys, rows = slots
            self._slots = _Slots(keys.astype(np.uint64), rows.astype(np.int64))
            self._taken = int((self._slots.rows >= 0).sum())

    def add(self, keys: Sequence[int], rows: Sequence[int], live: Mask) -> None:
        """Add pairs; slots of rows that ``live`` no longer holds are reused where they match."""
        if self._taken + len(keys) > _LOAD_MAX * len(self._slots.keys):
            self._grow(self._taken + len(keys), live)
        pairs = np.array(keys, np.uint64), np.array(rows, np.int64)
        self._taken += kernels.insert(*self._slots, *pairs, live)

    def find(self, text: str, live: Mask) -> list[int]:
        """Live rows that may carry a name, at most 64."""
        out = np.empty(_CANDIDATES_MAX, np.int64)
        n = kernels.find(*self._slots, np.uint64(key_of(text)), live, out)
        return [int(row) for row in out[:n]]

    def find_first(self, texts: Sequence[str], live: Mask) -> RowIds:
        """For each name one live row that may carry it, or -1: int64 (len(texts),)."""
        out = np.empty(len(texts), np.int64)
        keys = np.fromiter(map(key_of, texts), np.uint64, len(texts))
        kernels.find_first(*self._slots, keys, live, out)
        return out

    def arrays(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The slots: keys uint64 (m,), rows int64 (m,)."""
        return self._slots

    def _grow(self, taken: int, live: Mask) -> None:
        size = _SLOTS_MIN
        while taken > _LOAD_MAX / 2 * size:
            size *= 2
        slots = _empty(size)
        held = self._slots.rows >= 0
        known = self._slots.rows < len(live)
        alive = live[np.where(held & known, self._slots.rows, 0)] != 0 if len(live) else held
        kept = held & (~known | alive)
        keys, rows = self._slots.keys[kept], self._slots.rows[kept]
        self._taken = kernels.insert(*slots, keys, rows, live)
        self._slots = slots
