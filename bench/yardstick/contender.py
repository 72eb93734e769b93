"""What a contender is: a store of items that is loaded, opened and searched.

A contender does what its package offers and leaves the rest out of ``modes``, ``can`` and
``prepare``; nothing is rebuilt for it in Python. Answers are in its own form, as it gives them;
``rows`` turns one into row numbers of the workload and is never timed.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from yardstick.metadata import Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Texts

MODULES = {
    "colmem": "colmem_engine:Colmem",
    "qdrant-edge": "qdrant_edge_shard:QdrantEdge",
    "lancedb": "lance:LanceDB",
    "sqlite": "sqlite:Sqlite",
    "chroma": "chroma:Chroma",
    "zvec": "zvec_collection:Zvec",
    "hotmem": "hotmem_db:HotMem",
    "tantivy": "tantivy_alone:Tantivy",
    "bm25s": "bm25s_index:Bm25s",
    "faiss-flat": "faiss_index:FaissFlat",
    "faiss-hnsw": "faiss_index:FaissHnsw",
    "faiss-ivf": "faiss_index:FaissIvf",
    "usearch": "usearch_index:Usearch",
}
"""Contender -> module and class below ``contenders``."""


def environment_of(name: str) -> str:
    """The environment a contender runs in."""
    return name.partition("-")[0] if name.startswith("faiss") else name


def contender(name: str, folder: Path, dim: int) -> Contender:
    """The contender of a name, over a folder; only in the environment that holds its package."""
    module, _, cls = MODULES[name].partition(":")
    made: type[Contender] = getattr(importlib.import_module(f"yardstick.contenders.{module}"), cls)
    return made(folder, dim)


class Contender(ABC):
    """A store in a folder. ``open`` comes first; a method it cannot do is not called."""

    packages: ClassVar[tuple[str, ...]]
    """Distributions whose versions are recorded."""
    imports: ClassVar[str]
    """The module a program imports to use it."""
    setup: ClassVar[str]
    """How it was set up, in one sentence."""
    modes: ClassVar[frozenset[str]] = frozenset({"keyword", "vector", "hybrid"})
    can: ClassVar[frozenset[str]] = frozenset()
    """Of: explore, get, page, store, store_many, threads (that read at once), writers (threads that
    write at once), forget, compact."""
    returns: ClassVar[str] = "ids"
    """What a search gives: ``ids`` or whole ``items``."""
    batch_rows: ClassVar[int] = 5_000
    """Items of one ``add``."""
    efforts: ClassVar[tuple[int, ...]] = ()
    """Settings of an approximate vector search, least effort first; the first to reach a recall of
    .99 is measured."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder = folder
        self.dim = dim
        self.effort = self.efforts[0] if self.efforts else 0

    @abstractmethod
    def open(self) -> None:
        """Open what the folder holds, or make it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it; what was added is kept."""

    @abstractmethod
    def add(self, batch: Batch) -> None:
        """Take items in."""

    @abstractmethod
    def finish(self, n: int) -> None:
        """Make all ``n`` items that were added searchable by every mode."""

    @abstractmethod
    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        """The ``k`` best, best first. ``filter`` is what ``prepare`` gave."""

    def rows(self, found: Any, texts: Texts) -> list[int]:
        """Row numbers of an answer, in its order."""
        return [int(id) for id in found]

    def prepare(self, filter: Filter) -> Any:
        """A filter in the contender's own language; None for no condition.

        Raises
        ------
        NotImplementedError
            When it cannot say so.
        """
        if filter.name == "none":
            return None
        raise NotImplementedError(f"{type(self).__name__} has no filters")

    def explore(self, facet: str, filter: Any, limit: int) -> Mapping[str, int]:
        """The most frequent values along a facet, with their counts."""
        raise NotImplementedError

    def ids(self, rows: Sequence[int]) -> Any:
        """What ``get`` takes for items at given rows; not timed."""
        return list(rows)

    def get(self, ids: Any) -> Sequence[Any]:
        """Whole items by id."""
        raise NotImplementedError

    def place(self, page: int, size: int, filter: Any) -> Any:
        """Where page ``page`` (from 0) of a listing begins; not timed."""
        return page * size

    def page(self, place: Any, size: int, filter: Any) -> Any:
        """Whole items from a place on, in order of storing."""
        raise NotImplementedError

    def store(self, batch: Batch) -> None:
        """Keep items, durable and searchable on return as far as the contender goes."""
        raise NotImplementedError

    def forget(self, filter: Any) -> int | None:
        """Remove what a filter admits; how many, where it says so."""
        raise NotImplementedError

    def compact(self) -> None:
        """Reclaim what was removed, and bring every index level."""
        raise NotImplementedError
