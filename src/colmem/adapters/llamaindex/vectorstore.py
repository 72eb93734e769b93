"""LlamaIndex's vector store over a memory engine.

The store embeds texts and queries by itself, so an index over it needs no embedding model of its
own. Nodes are kept as ``colmem.adapters.llamaindex.nodes`` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from colmem import FetchMode, Hit, InvalidRequest, MemoryEngine, MemoryMeta, MetaFilter, Unsupported
from colmem.adapters import foreign
from colmem.adapters.framework_items import FrameworkItems
from colmem.adapters.llamaindex.filters import filter_of
from colmem.adapters.llamaindex.nodes import FRAMEWORK, REF_DOC, item_of, node_of

_MODES: Final = {
    VectorStoreQueryMode.HYBRID: FetchMode.HYBRID,
    VectorStoreQueryMode.SEMANTIC_HYBRID: FetchMode.HYBRID,
    VectorStoreQueryMode.SPARSE: FetchMode.KEYWORD,
    VectorStoreQueryMode.TEXT_SEARCH: FetchMode.KEYWORD,
}


class ColmemVectorStore(BasePydanticVectorStore):
    """A vector store over an engine, which stays the caller's to close.

    Parameters
    ----------
    engine
        A memory engine: ``colmem.open(path)``, or ``colmem.connect(url)``, which is not searched by
        vector.
    mode
        How a query of the default mode is ranked: hybrid, vector or keyword.
    meta
        Metadata of every node added, such as its namespace.
    filter
        Confines all that is read and deleted; by default to what is seen from ``meta.namespace``.
    is_embedding_query
        Have LlamaIndex embed queries of the default mode; its model must then be the store's.
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    _items: FrameworkItems = PrivateAttr()
    _mode: FetchMode = PrivateAttr()

    def __init__(
        self,
        engine: MemoryEngine,
        *,
        mode: FetchMode | str = FetchMode.HYBRID,
        meta: MemoryMeta | None = None,
        filter: MetaFilter | None = None,
        is_embedding_query: bool = False,
    ) -> None:
        super().__init__(stores_text=True, is_embedding_query=is_embedding_query)
        self._items = FrameworkItems(engine, FRAMEWORK, meta, filter)
        self._mode = FetchMode(mode)

    @classmethod
    def class_name(cls) -> str:
        """Name of the class in LlamaIndex's own files."""
        return "ColmemVectorStore"

    @property
    def client(self) -> MemoryEngine:
        """The engine behind it."""
        return self._items.engine

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes, replacing those that have the same ids; gives the ids."""
        pairs = [(node.node_id, item_of(node, self._items, i)) for i, node in enumerate(nodes)]
        return self._items.put(pairs)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        self._items.forget(self._items.tagged(REF_DOC, [ref_doc_id]))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes by id, by filters, or by both."""
        if node_ids is None and filters is None:
            raise InvalidRequest("delete_nodes needs node_ids or filters; clear() deletes all")
        self._items.forget(self._chosen(node_ids, filters))

    def clear(self) -> None:
        """Delete all that LlamaIndex stored here."""
        self._items.clear()

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes by id, by filters, or all; the readable items of other surfaces included."""
        return [node_of(hit, self._items) for hit in self._chosen(node_ids, filters)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that fit a query best, with their scores, higher is better.

        Raises
        ------
        Unsupported
            For a mode other than default, hybrid, semantic_hybrid, sparse and text_search.
        InvalidRequest
            When the filters cannot be said as a filter of the contract.
        """
        hits = self._found(query, self._wanted(query))
        return VectorStoreQueryResult(
            nodes=[node_of(hit, self._items) for hit in hits],
            similarities=[float(hit.score) for hit in hits],
            ids=[self._items.id_of(hit) for hit in hits],
        )

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As ``add``, in a thread."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As ``delete``, in a thread."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """As ``delete_nodes``, in a thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """As ``clear``, in a thread."""
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As ``get_nodes``, in a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As ``query``, in a thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    def _wanted(self, query: VectorStoreQuery) -> MetaFilter:
        """Which items a query looks at."""
        wanted = self._items.confined(filter_of(query.filters))
        for name, values in ((REF_DOC, query.doc_ids), ("id", query.node_ids)):
            if values:
                tags = [self._items.tag(name, value) for value in values]
                wanted = foreign.both(wanted, MetaFilter(tags_any=tags))
        return wanted

    def _found(self, query: VectorStoreQuery, wanted: MetaFilter) -> Sequence[Hit]:
        k = query.similarity_top_k
        if query.mode is VectorStoreQueryMode.DEFAULT:
            if query.query_embedding is not None and (
                self.is_embedding_query or query.query_str is None
            ):
                return self._items.nearest(query.query_embedding, k, wanted)
            return self._items.fetch(_text(query), self._mode, k, wanted)
        mode = _MODES.get(query.mode)
        if mode is None:
            offered = ", ".join(["default", *(mode.value for mode in _MODES)])
            raise Unsupported(f"query mode {query.mode.value}; offered are {offered}")
        if mode is FetchMode.HYBRID:
            mode, k = _weighed(query.alpha), query.hybrid_top_k or k
        else:
            k = query.sparse_top_k or k
        return self._items.fetch(_text(query), mode, k, wanted)

    def _chosen(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> list[Hit]:
        wanted = filter_of(filters)
        if node_ids is None:
            return list(self._items.list(self._items.confined(wanted)))
        return [hit for hit in self._items.get(node_ids) if wanted.matches(hit.kind, hit.meta)]


def _weighed(alpha: float | None) -> FetchMode:
    """Hybrid; its extremes are keyword (0) and vector (1)."""
    modes = {None: FetchMode.HYBRID, 0.0: FetchMode.KEYWORD, 1.0: FetchMode.VECTOR}
    if alpha not in modes:
        raise InvalidRequest(
            f"alpha is {alpha}; the store has weights of its own, so leave alpha out, or take 0 "
            "for keyword and 1 for vector"
        )
    return modes[alpha]


def _text(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise InvalidRequest(f"a query of mode {query.mode.value} needs query_str")
    return query.query_str
