"""The digests of a snapshot: of its files, of all its files together, and of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

EMPTY = hashlib.sha256().hexdigest()
_CHUNK = 1 << 16


class SnapshotId:
    """Collects content hashes, 32 bytes each, and gives the digest of their sorted text.

    The order of adding does not matter; repeats count. Hashes that are not 64 lower-case hex
    digits are kept as text beside the packed ones.
    """

    def __init__(self) -> None:
        self._pending: list[str] = []
        self._packed = bytearray()
        self._odd: list[str] = []

    def add(self, content_hash: str) -> None:
        """Count one row's content hash; an empty one is left out."""
        self.update((content_hash,))

    def update(self, content_hashes: Iterable[str]) -> None:
        """Count the content hashes of rows."""
        self._pending.extend(content_hashes)
        if len(self._pending) >= _CHUNK:
            self._pack()

    def hexdigest(self) -> str:
        """Give the snapshot id of what was added so far."""
        self._pack()
        # Sorting 32 raw bytes as a byte string gives the order of their hex text. NumPy drops
        # trailing NULs of an S32 only on the way out, so the buffer itself is sorted as words.
        words = np.frombuffer(bytes(self._packed), ">u8").reshape(-1, 4)
        order = np.lexsort((words[:, 3], words[:, 2], words[:, 1], words[:, 0]))
        digest = hashlib.sha256()
        odd = sorted(self._odd)
        at = 0
        for start in range(0, len(order), _CHUNK):
            text = words[order[start : start + _CHUNK]].tobytes().hex()
            if not odd:
                digest.update(text.encode())
                continue
            for i in range(0, len(text), 64):
                value = text[i : i + 64]
                while at < len(odd) and odd[at] < value:
                    digest.update(odd[at].encode())
                    at += 1
                digest.update(value.encode())
        for value in odd[at:]:
            digest.update(value.encode())
        return digest.hexdigest()

    def _pack(self) -> None:
        values = list(filter(None, self._pending))
        self._pending.clear()
        packed = _raw("".join(values)) if all(len(value) == 64 for value in values) else None
        if packed is not None:
            self._packed += packed
            return
        for value in values:
            packed = _raw(value) if len(value) == 64 else None
            if packed is None:
                self._odd.append(value)
            else:
                self._packed += packed


def _raw(text: str) -> bytes | None:
    """Give the bytes of lower-case hex, None for any other text."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return raw if raw.hex() == text else None


def overall(files: Mapping[str, str]) -> str:
    """Digest the digests: names in order of code points, their hex texts joined by nothing."""
    return hashlib.sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest()
