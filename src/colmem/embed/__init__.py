"""Embedders: texts -> float32 vectors, L2-normalised or zero.

``embedder(key)`` finds one; ``register(key, factory)`` adds a user's own. Nothing heavy is imported
here, and no table is read before the first text.
"""

from colmem.embed.registry import DEFAULT_KEY, embedder, known_keys, register

__all__ = ["DEFAULT_KEY", "embedder", "known_keys", "register"]
