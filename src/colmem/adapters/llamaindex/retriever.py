"""LlamaIndex's retriever over a memory engine: any item of the store, ranked for a query."""

from __future__ import annotations

from typing import Any, Final

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from colmem import FetchMode, MemoryEngine, MetaFilter
from colmem.adapters.framework_items import FrameworkItems
from colmem.adapters.llamaindex.nodes import FRAMEWORK, node_of

TOP_K: Final = 4


class ColmemRetriever(BaseRetriever):
    """Fetches from an engine.

    engine : a memory engine, local or connected; mode : how items are ranked; filter : which are
    looked at.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        *,
        similarity_top_k: int = TOP_K,
        mode: FetchMode | str = FetchMode.HYBRID,
        filter: MetaFilter | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.similarity_top_k = similarity_top_k
        self._mode = FetchMode(mode)
        self._items = FrameworkItems(engine, FRAMEWORK, filter=filter)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        items = self._items
        hits = items.fetch(query_bundle.query_str, self._mode, self.similarity_top_k, items.filter)
        return [NodeWithScore(node=node_of(hit, items), score=float(hit.score)) for hit in hits]
