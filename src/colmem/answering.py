"""recall: from a question to an answer with citations, over the engine's own fetch."""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from colmem.arrow_columns import array_of
from colmem.contract import (
    Citation,
    ConfigError,
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
from colmem.recall.extractive import MODEL, Question, Source, answer
from colmem.recall.llm import Answered, Endpoint, answer_with_model

URL_VARIABLE, MODEL_VARIABLE = "COLMEM_LLM_URL", "COLMEM_LLM_MODEL"
HITS_MAX = 50  # evidence is looked for in the best hits only, however many citations are allowed


def recall(
    request: RecallRequest,
    fetch: Callable[[FetchRequest], FetchPage],
    lexical: LexicalIndex,
    embedder: Embedder | None,
    endpoint: Endpoint | None,
) -> RecallAnswer:
    """Answer from the best hits, citing them by number.

    Sentences are quoted exactly; with an endpoint its model writes the answer, and ``model`` of the
    answer tells which it was.
    """
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
    answered = Answered(extract.answer, extract.cited, MODEL)
    if endpoint is not None:
        answered = answer_with_model(
            endpoint,
            request.question,
            sources,
            instructions=request.instructions,
            otherwise=extract,
        )
    citations = [_citation(found[place]) for place in answered.cited]
    return RecallAnswer(answer=answered.answer, citations=citations, model=answered.model)


def endpoint_from_environment() -> Endpoint | None:
    """The language model that ``COLMEM_LLM_URL`` and ``COLMEM_LLM_MODEL`` name, if any.

    Raises
    ------
    ConfigError
        When only one of them is set, or the address is none.
    """
    url, model = os.environ.get(URL_VARIABLE), os.environ.get(MODEL_VARIABLE)
    if not url and not model:
        return None
    if not url or not model:
        missing = MODEL_VARIABLE if url else URL_VARIABLE
        raise ConfigError(f"{missing} is not set; name both the language model and its address")
    return Endpoint(base_url=url, model=model)


def _citation(hit: Hit) -> Citation:
    return Citation(id=hit.id, kind=hit.kind, snippet=hit.text, meta=hit.meta, score=hit.score)


def _terms(text: str) -> list[str]:
    analysed, _ = analyse_items(array_of([text], pa.string()))
    return analysed[0].split()
