"""LlamaIndex's vector store and retriever over a memory engine (extra: llamaindex)."""

from colmem.adapters.llamaindex.embedding import ColmemEmbedding
from colmem.adapters.llamaindex.retriever import ColmemRetriever
from colmem.adapters.llamaindex.vectorstore import ColmemVectorStore

__all__ = ["ColmemEmbedding", "ColmemRetriever", "ColmemVectorStore"]
