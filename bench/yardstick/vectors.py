"""Seeded unit vectors with clusters inside clusters, as embeddings of texts have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

TOPICS, CLUSTERS = 100, 4_000
CLUSTER_SPREAD, ITEM_SPREAD, QUERY_SPREAD = 0.8, 0.9, 0.6


class Cloud:
    """A distribution of unit vectors: float32 (n, dim), rows L2-normalised."""

    def __init__(self, seed: int, dim: int) -> None:
        rng = np.random.default_rng([seed, 1])
        # Some directions vary more than others, by a factor of five.
        self._scale = np.geomspace(1, 0.2, dim, dtype=np.float32)
        topics = self._noise(TOPICS, rng)
        self._centres = topics[rng.integers(0, TOPICS, CLUSTERS)]
        self._centres += np.float32(CLUSTER_SPREAD) * self._noise(CLUSTERS, rng)
        # Clusters differ in size, as subjects do.
        weights = (np.arange(CLUSTERS) + 10.0) ** -0.7
        self._table = np.cumsum(weights / weights.sum())

    def items(self, n: int, rng: np.random.Generator) -> Vectors:
        picks = np.searchsorted(self._table, rng.random(n), "right").clip(max=CLUSTERS - 1)
        return _unit(self._centres[picks] + np.float32(ITEM_SPREAD) * self._noise(n, rng))

    def queries(self, items: Vectors, rng: np.random.Generator) -> Vectors:
        """Vectors near those of given items."""
        length = np.float32(QUERY_SPREAD / np.sqrt((self._scale**2).sum()))
        return _unit(items + length * self._noise(len(items), rng))

    def _noise(self, n: int, rng: np.random.Generator) -> Vectors:
        made: Vectors = rng.standard_normal((n, len(self._scale)), dtype=np.float32)
        made *= self._scale
        return made


def _unit(rows: Vectors) -> Vectors:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
