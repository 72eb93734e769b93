"""LangChain's retriever, vector store and chat history over a memory engine (extra: langchain)."""

from colmem.adapters.langchain.embeddings import ColmemEmbeddings, LangChainEmbedder
from colmem.adapters.langchain.history import ColmemChatMessageHistory
from colmem.adapters.langchain.retriever import ColmemRetriever
from colmem.adapters.langchain.vectorstore import ColmemVectorStore

__all__ = [
    "ColmemChatMessageHistory",
    "ColmemEmbeddings",
    "ColmemRetriever",
    "ColmemVectorStore",
    "LangChainEmbedder",
]
