"""LangChain's vector store over a memory engine.

Texts are documents of the store, embedded by the store's own embedder. A document's id is kept as a
tag and its metadata as ``colmem.adapters.foreign`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

import colmem
from colmem import FetchMode, Hit, InvalidRequest, MemoryEngine, MemoryMeta, MetaFilter
from colmem.adapters.framework_items import FrameworkItems
from colmem.adapters.langchain.documents import FRAMEWORK, document_of, documents_of
from colmem.adapters.langchain.embeddings import ColmemEmbeddings, LangChainEmbedder

K: Final = 4
Filter = MetaFilter | Mapping[str, Any]
Scored = list[tuple[Document, float]]


class ColmemVectorStore(VectorStore):
    """A vector store over an engine, which stays the caller's to close.

    Parameters
    ----------
    engine
        A memory engine: ``colmem.open(path)``, or ``colmem.connect(url)``, which is not searched by
        vector.
    mode
        How queries in words are ranked: hybrid, vector or keyword.
    meta
        Metadata of everything added, such as its namespace.
    filter
        Confines all that is read and deleted; by default to what is seen from ``meta.namespace``.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        *,
        mode: FetchMode | str = FetchMode.HYBRID,
        meta: MemoryMeta | None = None,
        filter: MetaFilter | None = None,
    ) -> None:
        self._items = FrameworkItems(engine, FRAMEWORK, meta, filter)
        self._mode = FetchMode(mode)

    @property
    def engine(self) -> MemoryEngine:
        """The engine behind it."""
        return self._items.engine

    @property
    def embeddings(self) -> Embeddings | None:
        """The store's embedder, where it is at hand."""
        embedder = getattr(self.engine, "embedder", None)
        return None if embedder is None else ColmemEmbeddings(embedder)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts, replacing those that have the same ids; gives the ids.

        Without an id of its own a text is named by its content, so that adding it again with the
        same metadata changes nothing. Metadata is JSON.
        """
        _refuse(kwargs)
        texts = list(texts)
        _check_length("metadatas", metadatas, len(texts))
        _check_length("ids", ids, len(texts))
        parts = zip(texts, metadatas or repeat({}), ids or repeat(None), strict=False)
        items = []
        for place, (text, metadata, id) in enumerate(parts):
            try:
                item = colmem.document(text, meta=self._items.meta(metadata, id))
                item.validate()
            except InvalidRequest as error:
                raise InvalidRequest(f"texts[{place}]: {error.message}") from error
            items.append((id, item))
        return self._items.put(items)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents by id, in order, each once; unknown ids are left out."""
        return documents_of(self._items.get(ids), self._items)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by id; with no ids, all that LangChain stored here."""
        _refuse(kwargs)
        if ids is None:
            self._items.clear()
        else:
            self._items.forget(self._items.get(ids))
        return True

    def similarity_search(
        self,
        query: str,
        k: int = K,
        filter: Filter | None = None,
        *,
        mode: FetchMode | str | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """The k documents that fit a query best.

        filter : a MetaFilter, or keys and values of metadata; mode : other than the store's.
        """
        found = self.similarity_search_with_score(query, k, filter, mode=mode, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = K,
        filter: Filter | None = None,
        *,
        mode: FetchMode | str | None = None,
        **kwargs: Any,
    ) -> Scored:
        """The k best with their scores, higher is better.

        Hybrid scores lie in 0 to 1, vector scores are cosines, keyword scores are BM25.
        """
        _refuse(kwargs)
        wanted = self._items.confined(filter)
        return self._scored(self._items.fetch(query, mode or self._mode, k, wanted))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = K, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents nearest to an embedding of the store's space."""
        found = self.similarity_search_with_score_by_vector(embedding, k, filter, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = K, filter: Filter | None = None, **kwargs: Any
    ) -> Scored:
        """The k nearest with their cosines."""
        _refuse(kwargs)
        return self._scored(self._items.nearest(embedding, k, self._items.confined(filter)))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path = ":memory:",
        embedder_key: str | None = None,
        **kwargs: Any,
    ) -> ColmemVectorStore:
        """Open or make the store at a path with embeddings of LangChain, and add texts.

        embedder_key : the name of the embeddings in the store, by default their class and model;
        further arguments are the constructor's. Close ``.engine`` when done.
        """
        embedder = _embedder(embedding, embedder_key)
        store = cls(colmem.open(path, embedder=embedder), **kwargs)
        if texts:
            store.add_texts(texts, metadatas, ids=ids)
        return store

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self._mode is FetchMode.KEYWORD:
            return lambda score: score / (1.0 + score)  # BM25 has no upper bound
        return lambda score: min(1.0, max(0.0, score))

    def _scored(self, hits: Iterable[Hit]) -> Scored:
        return [(document_of(hit, self._items), float(hit.score)) for hit in hits]


def _embedder(embedding: Embeddings, key: str | None) -> Any:
    if isinstance(embedding, ColmemEmbeddings):
        return embedding.embedder
    if key is None:
        model = getattr(embedding, "model", None) or getattr(embedding, "model_name", None)
        key = f"{FRAMEWORK}:{type(embedding).__name__}" + (f":{model}" if model else "")
    return LangChainEmbedder(embedding, key)


def _check_length(name: str, values: Sequence[Any] | None, n_texts: int) -> None:
    if values is not None and len(values) != n_texts:
        raise InvalidRequest(f"{len(values)} {name} for {n_texts} texts; give one for each")


def _refuse(unknown: Mapping[str, Any]) -> None:
    if unknown:
        raise TypeError(f"unknown arguments: {', '.join(unknown)}")
