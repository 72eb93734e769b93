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
_DIGEST_DIGITS = 64


def key_of(text: str) -> int:
    """The 64-bit key of an id or hash: the leading digits of one written in hex, else a digest.

    So a fingerprint and the content hash it is cut from share one key. Of 32 digits, as a UUID has,
    both halves count: such an id may be a number.
    """
    try:
        if len(text) in (40, 64):
            return _number(text[:16])
        if len(text) == 32:
            return _number(text[:16]) ^ _number(text[16:])
    except ValueError:
        pass  # not hex after all
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


def _number(digits: str) -> int:
    """The number that 16 hex digits write; unlike int(), without signs, spaces and underscores."""
    data = bytes.fromhex(digits)
    if len(data) != 8:
        raise ValueError("white space among the digits")
    return int.from_bytes(data, "big")


def keys_of(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """:func:`key_of` of every text: uint64 (len(texts),)."""
    n = len(texts)
    lengths = set(map(len, texts))
    try:
        # White space, which fromhex skips, would leave fewer bytes.
        if lengths and lengths <= {40, 64}:
            digits = bytes.fromhex("".join([text[:16] for text in texts]))
            if len(digits) == 8 * n:
                return np.frombuffer(digits, ">u8").astype(np.uint64)
        elif lengths == {32}:
            digits = bytes.fromhex("".join(texts))
            if len(digits) == 16 * n:
                halves = np.frombuffer(digits, ">u8").astype(np.uint64)
                return halves[::2] ^ halves[1::2]
    except ValueError:
        pass  # one of them is not hex
    return np.fromiter(map(key_of, texts), np.uint64, n)


def keys_of_rows(
    ids: Sequence[str], content_hashes: Sequence[str], fingerprints: Sequence[str]
) -> tuple[npt.NDArray[np.uint64], RowIds]:
    """Distinct keys of the three names of each row, and the position of the row: uint64, int64.

    A row whose id is its fingerprint, cut from its content hash, has one key.
    """
    names = zip(ids, content_hashes, fingerprints, strict=True)
    others = [
        i
        for i, (id, digest, fingerprint) in enumerate(names)
        if not (id is fingerprint and digest.startswith(id) and len(digest) == _DIGEST_DIGITS)
    ]
    by_hash = keys_of(content_hashes)
    rows = np.arange(len(ids), dtype=np.int64)
    if not others:
        return by_hash, rows
    at = np.array(others, np.int64)
    by_id = keys_of([ids[i] for i in others])
    by_fingerprint = keys_of([fingerprints[i] for i in others])
    new_id = by_id != by_hash[at]
    new_fingerprint = (by_fingerprint != by_hash[at]) & (by_fingerprint != by_id)
    keys = np.concatenate([by_hash, by_id[new_id], by_fingerprint[new_fingerprint]])
    return keys, np.concatenate([rows, at[new_id], at[new_fingerprint]])


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

    def add(self, keys: npt.NDArray[np.uint64], rows: RowIds, live: Mask) -> None:
        """Add pairs; slots of rows that ``live`` no longer holds are reused where they match."""
        if self._taken + len(keys) > _LOAD_MAX * len(self._slots.keys):
            self._grow(self._taken + len(keys), live)
        self._taken += kernels.insert(*self._slots, keys, rows, live)

    def find(self, text: str, live: Mask) -> list[int]:
        """Live rows that may carry a name, at most 64."""
        out = np.empty(_CANDIDATES_MAX, np.int64)
        n = kernels.find(*self._slots, np.uint64(key_of(text)), live, out)
        return [int(row) for row in out[:n]]

    def find_first(self, texts: Sequence[str], live: Mask) -> RowIds:
        """For each name one live row that may carry it, or -1: int64 (len(texts),)."""
        out = np.empty(len(texts), np.int64)
        kernels.find_first(*self._slots, keys_of(texts), live, out)
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
