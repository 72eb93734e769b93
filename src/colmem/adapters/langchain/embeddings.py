"""Embedders as LangChain's Embeddings, and Embeddings as the embedder of a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from colmem import Embedder
from colmem.schema import Vectors


class ColmemEmbeddings(Embeddings):
    """An embedder of colmem, such as ``engine.embedder`` or ``colmem.embedder(key)``."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        return [vector.tolist() for vector in self.embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query, as a text is."""
        return self.embed_documents([text])[0]


class LangChainEmbedder:
    """Embeddings as the embedder that a store is made and opened with.

    ``key`` names the vector space in the store; name the model, so that another one is refused.
    Queries are embedded as documents are.
    """

    def __init__(self, embeddings: Embeddings, key: str, dim: int | None = None) -> None:
        self._embeddings = embeddings
        self.key = key
        self.dim = len(embeddings.embed_query(key)) if dim is None else dim

    def embed(self, texts: Sequence[str], /) -> Vectors:
        """Embed texts: float32 (n, dim)."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return np.array(self._embeddings.embed_documents([*texts]), np.float32)
