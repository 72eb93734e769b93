"""Explains a page of fetch: the same ranking again, with each stage watched.

A :class:`Ranker` that keeps what passes through it does the ranking, so that what is explained is
what fetch answers; nothing is ranked here.
"""

from __future__ import annotations

from colmem.contract import FetchMode, FetchRequest
from colmem.explaining.absent import why_not
from colmem.explaining.filters import filter_plan
from colmem.explaining.watched import Watched
from colmem.explanation import Explanation
from colmem.opening import Opened
from colmem.words import Words


def explain(
    opened: Opened, request: FetchRequest, offset: int, id: str | None, words: Words
) -> Explanation:
    """Explain the hits at places ``offset`` to ``offset + limit``, and why an item is not there."""
    watched = Watched(opened, words)
    page = watched.page(request, offset)
    store, view = opened.store, opened.store.view
    with watched.stage("read"):
        items = store.read(page.rows)
    ranks = range(offset + 1, offset + 1 + len(items))
    hits = watched.explained(request, items, ranks, page.scores.tolist())
    absent = None
    if id is not None and all(hit.id != id for hit in hits):
        absent = why_not(opened, request, offset, id, words)
    by_words = request.mode is not FetchMode.VECTOR
    return Explanation(
        mode=request.mode,
        terms=store.lexical.explain_terms(request.query) if by_words else [],
        weights=watched.weights(),
        extremes=watched.extremes(),
        filter=filter_plan(opened, request, view),
        stages_ms={name: round(1e3 * s, 3) for name, s in watched.stages.items()},
        hits=hits,
        why_not=absent,
    )
