"""Items and embedders that tests make up: many, cheap and always the same."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from colmem.contract import Document, MemoryMeta, document

WORD = "common"
"""Stands in every sample item's text."""


def make(n: int, name: str = "item", **meta: Any) -> list[Document]:
    """Documents of a few words, each with one of its own (`<name>7x`)."""
    held = MemoryMeta(**meta)
    return [document(f"{WORD} {name} {name}{i}x", meta=held) for i in range(n)]


class SampleEmbedder:
    """A unit vector for each text, from a digest of it: no meaning, but always the same."""

    def __init__(self, key: str = "sample-32", dim: int = 32) -> None:
        self.key = key
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> Any:
        """float32 (n, dim), rows of length 1."""
        out = np.empty((len(texts), self.dim), np.float32)
        for row, text in zip(out, texts, strict=True):
            seed = blake2b(f"{self.key} {text}".encode(), digest_size=8).digest()
            row[:] = np.random.default_rng(int.from_bytes(seed, "little")).normal(size=self.dim)
        return out / np.linalg.norm(out, axis=1, keepdims=True) if len(texts) else out


def arrow_items(n: int, embeddings: Any = None, **columns: Any) -> pa.Table:
    """Rows for ``ingest_arrow``: a text each, the columns given, and embeddings (n, dim)."""
    held: dict[str, Any] = {"text": [f"{WORD} row{i}x" for i in range(n)], **columns}
    table = pa.table(held)
    if embeddings is None:
        return table
    flat = pa.array(np.ascontiguousarray(embeddings, np.float32).reshape(-1))
    column = pa.FixedSizeListArray.from_arrays(flat, embeddings.shape[1])
    return table.append_column("embedding", column)


def folder_bytes(path: Path) -> int:
    """Size of all files below a folder."""
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
