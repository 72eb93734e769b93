"""The engines that quality.py ranks judged sets with: colmem itself, and any peer of peers.py.

A peer gets the same texts, and the vectors of colmem's default embedder, in its own environment;
where it has no filters, sets whose questions are confined to a scope are beyond it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

import colmem
from colmem import settings
from colmem.contract import FetchRequest
from colmem.retrieval.settings import RankingSettings
from quality_sets import JudgedSet, Question, path_of

OURS = "colmem"


class Ranks(Protocol):
    """An engine that a set was loaded into."""

    modes: frozenset[str]

    def ranked(self, question: Question, mode: str, k: int) -> list[str]:
        """Ids of the k best documents, best first."""


class Colmem:
    """colmem with the set in a store on disk; other weights are taken by opening it again."""

    modes = frozenset({"keyword", "vector", "hybrid"})

    def __init__(self, judged: JudgedSet, folder: Path) -> None:
        self._folder = folder
        self._ids = {path_of(document["id"]): document["id"] for document in judged.documents}
        self._engine = colmem.open(folder)
        self._engine.ingest(judged.items())
        self._engine.fetch(query="warm up", mode="hybrid", limit=1)

    def ranked(self, question: Question, mode: str, k: int) -> list[str]:
        request = FetchRequest(query=question.text, mode=mode, filter=question.filter, limit=k)
        hits = self._engine.fetch(request).hits
        return [self._ids[hit.meta.file_path or ""] for hit in hits]

    def with_ranking(self, **changes: Any) -> None:
        """Open the store with other weights than the default ones."""
        self._engine.close()
        recorded = settings.read(self._folder)
        ranking = RankingSettings(**changes).to_dict()
        settings.write(self._folder, msgspec.structs.replace(recorded, ranking=ranking))
        self._engine = colmem.open(self._folder)

    def close(self) -> None:
        self._engine.close()


class Peer:
    """A contender of peers.py behind a pipe, which adds a fifth of a millisecond to a search."""

    def __init__(self, name: str, judged: JudgedSet) -> None:
        from yardstick.remote import RemoteContender

        self._embedder = colmem.embedder("static-s256")
        self._ids = [document["id"] for document in judged.documents]
        self._contender = RemoteContender(name, self._embedder.dim)
        self.modes = self._contender.modes
        texts = [item.render_text() for item in judged.items()]
        scopes = [document.get("scope") for document in judged.documents]
        items = [{"text": t, "scope": s} for t, s in zip(texts, scopes, strict=True)]
        self._contender.load(items, self._embedder.embed(texts))

    def ranked(self, question: Question, mode: str, k: int) -> list[str]:
        vector = self._embedder.embed([question.text])[0]
        places = self._contender.search(question.text, vector, k, mode=mode, scope=question.scope)
        return [self._ids[place] for place in dict.fromkeys(places) if place >= 0]

    def close(self) -> None:
        self._contender.close()


@contextmanager
def loaded(name: str, judged: JudgedSet) -> Iterator[Any]:
    """An engine by name, with a set loaded."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Colmem(judged, Path(folder)) if name == OURS else Peer(name, judged)
        try:
            yield engine
        finally:
            engine.close()
