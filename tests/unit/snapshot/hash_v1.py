"""A plain reading of the ``hotmem-hash-v1`` formula, the oracle of the snapshot tests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

KEY = "hotmem-hash-v1"
DIM = 64


def vector(text: str) -> bytes:
    low = text.lower()
    acc = [0] * DIM
    for i in range(max(1, len(low) - 2)):
        digest = hashlib.md5(low[i : i + 3].encode(), usedforsecurity=False).digest()
        acc[digest[15] % DIM] += 1 if digest[7] % 2 == 0 else -1
    squares = sum(value * value for value in acc)
    scaled = [value / math.sqrt(squares) for value in acc] if squares else acc
    return np.asarray(scaled, np.float64).astype("<f4").tobytes()


def embed(texts: Sequence[str]) -> np.ndarray:
    return np.frombuffer(b"".join(vector(t) for t in texts), "<f4").reshape(-1, DIM)
