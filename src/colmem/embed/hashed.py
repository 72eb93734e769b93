"""``hotmem-hash-v1``: signed hashing of character trigrams, for exchange of vectors with HotMem.

Bit-exact with that format (lower-casing included, which is Python's ``str.lower``). It knows no
words: two texts are near when they share trigrams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colmem.embed.texts import code_points

_BATCH = 4096  # texts per kernel call: bounds the 512 bytes of sums each of them needs


class HashEmbedder:
    """The embedder ``hotmem-hash-v1``: 64 components, no model, any language."""

    key = "hotmem-hash-v1"
    dim = 64

    def __init__(self) -> None:
        self._cache: npt.NDArray[np.int64] | None = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, 64), rows L2-normalised; zero where all signs cancel.

        Raises
        ------
        InvalidRequest
            When a text holds a lone surrogate.
        """
        from colmem_kernels import hashing  # noqa: PLC0415 - numba only with the first text

        if self._cache is None:
            self._cache = np.zeros(hashing.CACHE_SIZE, np.int64)
        vectors = np.empty((len(texts), self.dim), np.float32)
        for start in range(0, len(texts), _BATCH):
            points, offsets = code_points([text.lower() for text in texts[start : start + _BATCH]])
            hashing.hash_texts(points, offsets, self._cache, vectors[start : start + _BATCH])
        return vectors
