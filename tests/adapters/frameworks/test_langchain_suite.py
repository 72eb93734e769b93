"""LangChain's own suite for vector stores, run against ours in every way a query can be ranked."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

import colmem
from colmem.adapters.langchain import ColmemVectorStore, LangChainEmbedder


class TestWithTheStoresEmbedder(VectorStoreIntegrationTests):
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def vectorstore(self, colmem_engine: colmem.Engine) -> ColmemVectorStore:  # type: ignore[override]
        return ColmemVectorStore(colmem_engine)


class TestWithEmbeddingsOfLangChain(VectorStoreIntegrationTests):
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def vectorstore(self) -> Iterator[Any]:  # type: ignore[override]
        embedder = LangChainEmbedder(self.get_embeddings(), "langchain:fake")
        with colmem.open(":memory:", embedder=embedder) as engine:
            yield ColmemVectorStore(engine, mode="vector")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
