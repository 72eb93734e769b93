"""Plain twin of :mod:`colmem_kernels.hashing`: the definition of ``hotmem-hash-v1``, by hashlib."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

DIM = 64


def hash_texts(
    points: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    cache: npt.NDArray[np.int64],
    vectors: npt.NDArray[np.float32],
) -> None:
    """Write the trigram hash vector of every text; see the kernel (no use of the cache)."""
    for t in range(len(offsets) - 1):
        text = points[offsets[t] : offsets[t + 1]].astype("<u4").tobytes().decode("utf-32-le")
        sums = [0] * DIM
        for i in range(max(1, len(text) - 2)):
            gram = text[i : i + 3].encode()
            digest = hashlib.md5(gram, usedforsecurity=False).digest()
            sums[digest[15] % DIM] += 1 if digest[7] % 2 == 0 else -1
        squares = sum(value * value for value in sums)
        vectors[t] = np.array(sums, np.float64) / (np.sqrt(squares) if squares else 1.0)
