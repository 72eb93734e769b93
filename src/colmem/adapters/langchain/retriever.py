"""LangChain's retriever over a memory engine: any item of the store, ranked for a query."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from colmem import FetchMode, MetaFilter
from colmem.adapters.framework_items import FrameworkItems
from colmem.adapters.langchain.documents import FRAMEWORK, documents_of


class ColmemRetriever(BaseRetriever):
    """Fetches from an engine: ``ColmemRetriever(engine=engine, k=8)``.

    engine : a memory engine, local or connected; k : how many documents; mode : how they are
    ranked; filter : which items are looked at.
    """

    engine: Any
    k: int = Field(default=4, ge=1)
    mode: FetchMode = FetchMode.HYBRID
    filter: MetaFilter | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        items = FrameworkItems(self.engine, FRAMEWORK, filter=self.filter)
        return documents_of(items.fetch(query, self.mode, self.k, items.filter), items)
