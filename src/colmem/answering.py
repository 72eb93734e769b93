"""recall: from a question to an answer with citations, over the engine's own fetch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from colmem.contract import (
    Citation,
    Embedder,
    FetchMode,
    FetchPage,
    FetchRequest,
    Hit,
    RecallAnswer,
    RecallRequest,
)
from colmem.embedding import embed_texts
from colmem.index.analyser import analyse_items
from colmem.index.lexical import LexicalIndex
from colmem.recall.extractive import Question, Source, answer

MODEL = "extractive-v1"
HITS_MAX = 50  # evidence is looked for in the best hits only, however many citations are allowed


def recall(
    request: RecallRequest,
    fetch: Callable[[FetchRequest], FetchPage],
    lexical: LexicalIndex,
    embedder: Embedder | None,
) -> RecallAnswer:
    """Answer from the best hits: sentences quoted exactly, each with the number of its citation."""
    mode = FetchMode.KEYWORD if embedder is None else FetchMode.HYBRID
    limit = min(request.limit, HITS_MAX)
    found = fetch(
        FetchRequest(query=request.question, mode=mode, filter=request.filter, limit=limit)
    ).hits
    question = Question.read(
        request.question,
        analyse=_terms,
        query_terms=lexical.explain_terms,
        embed=None if embedder is None else lambda texts: embed_texts(embedder, texts).vectors,
    )
    sources = [Source(hit.text, hit.score) for hit in found]
    extract = answer(question, sources, instructions=request.instructions)
    citations = [_citation(found[place]) for place in extract.cited]
    return RecallAnswer(answer=extract.answer, citations=citations, model=MODEL)


def _citation(hit: Hit) -> Citation:
    return Citation(id=hit.id, kind=hit.kind, snippet=hit.text, meta=hit.meta, score=hit.score)


def _terms(text: str) -> list[str]:
    analysed, _ = analyse_items(pa.array([text]))
    return analysed[0].split()
