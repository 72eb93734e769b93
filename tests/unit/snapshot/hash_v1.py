"""A plain reading of the ``hotmem-hash-v1`` formula, the oracle of the snapshot tests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

import numpy as np

KEY = "hotmem-hash-v1"
DIM = 64


def vector(text: str) -> bytes:
    acc = [0] * DIM
    for gram, n in grams(text.lower()):
        digest = hashlib.md5(gram.encode(), usedforsecurity=False).digest()
        acc[digest[15] % DIM] += n if digest[7] % 2 == 0 else -n
    squares = sum(value * value for value in acc)
    scaled = [value / math.sqrt(squares) for value in acc] if squares else acc
    return np.asarray(scaled, np.float64).astype("<f4").tobytes()


def grams(low: str) -> Iterable[tuple[str, int]]:
    """Every gram with its number; a long text has few different ones."""
    if len(low) < 1000:
        return ((low[i : i + 3], 1) for i in range(max(1, len(low) - 2)))
    points = np.frombuffer(low.encode("utf-32-le"), "<u4").astype(np.uint64)
    keys = points[:-2] << np.uint64(42) | points[1:-1] << np.uint64(21) | points[2:]
    return (
        ("".join(chr(int(key) >> shift & 0x1FFFFF) for shift in (42, 21, 0)), int(n))
        for key, n in zip(*np.unique(keys, return_counts=True), strict=True)
    )


def embed(texts: Sequence[str]) -> np.ndarray:
    return np.frombuffer(b"".join(vector(t) for t in texts), "<f4").reshape(-1, DIM)
