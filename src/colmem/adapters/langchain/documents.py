"""Hits as LangChain's documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from langchain_core.documents import Document

from colmem import Hit
from colmem.adapters.framework_items import FrameworkItems

FRAMEWORK: Final = "langchain"


def document_of(hit: Hit, items: FrameworkItems) -> Document:
    """The document of an item, with the id it was given."""
    return Document(id=items.id_of(hit), page_content=hit.text, metadata=items.metadata_of(hit))


def documents_of(hits: Iterable[Hit], items: FrameworkItems) -> list[Document]:
    """The documents of items, in order."""
    return [document_of(hit, items) for hit in hits]
