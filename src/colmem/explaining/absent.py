"""Why an item is not on a page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np

from colmem import stored
from colmem.contract import FetchRequest, MemoryMeta, MetaFilter, encode
from colmem.explaining.filters import clause_of, clauses_of
from colmem.explaining.watched import Watched
from colmem.explanation import Reason, Refusal, WhyNot
from colmem.opening import Opened
from colmem.schema import View
from colmem.store import Store
from colmem.stored import StoredHead, StoredItem
from colmem.words import Words


def why_not(opened: Opened, request: FetchRequest, offset: int, id: str, words: Words) -> WhyNot:
    """Why the item of an id is not among the hits at ``offset`` to ``offset + limit``."""
    store, view = opened.store, opened.store.view
    row = _row(store, id, view)
    if row is None:
        everything = View(np.ones(view.n_rows, np.uint8), view.n_rows, view.version)
        if _row(store, id, everything) is None:
            return WhyNot.not_stored(id)
        return WhyNot(id=id, reason=Reason.FORGOTTEN, detail="the item was forgotten")
    if store.attributes.is_expired(row, int(time.time())):
        return WhyNot(id=id, reason=Reason.EXPIRED, detail="the item's time to live has passed")
    item = store.read([row])[0]
    refused = _refusals(request.filter, item)
    if refused:
        clauses = [refusal.clause for refusal in refused]
        reason = Reason.OUTSIDE_REACH if "reach" in clauses else Reason.FILTERED
        detail = f"refused by {' and '.join(clauses)}"
        return WhyNot(id=id, reason=reason, detail=detail, refused_by=refused)
    return _ranked_elsewhere(opened, request, offset, item, words)


def _ranked_elsewhere(
    opened: Opened, request: FetchRequest, offset: int, item: StoredItem, words: Words
) -> WhyNot:
    """An admitted item is ranked before or behind the page, or not at all without a term."""
    watched = Watched(opened, words)
    n_rows = max(1, opened.store.view.n_rows)
    ranking = watched.page(msgspec.structs.replace(request, limit=n_rows, cursor=None), 0)
    at = np.flatnonzero(ranking.rows == item.row)
    if len(at) == 0:
        terms = opened.store.lexical.explain_terms(request.query)
        detail = f"the text holds none of the terms {', '.join(terms)}"
        if not terms:
            detail = "the text does not hold the query as it stands"
        return WhyNot(id=item.id, reason=Reason.NO_TERM, detail=detail)
    rank = int(at[0]) + 1
    (hit,) = watched.explained(request, [item], [rank], [float(ranking.scores[at[0]])])
    if rank <= offset:
        reason, where = Reason.BEFORE_PAGE, f"before this page, which begins at {offset + 1}"
    else:
        reason, where = (
            Reason.BEHIND_LIMIT,
            f"behind this page, which ends at {offset + request.limit}",
        )
    detail = f"ranked at place {rank} of {len(ranking.rows)}, {where}"
    return WhyNot(id=item.id, reason=reason, detail=detail, hit=hit)


def _row(store: Store, id: str, view: View) -> int | None:
    return store.rows_of([id], view, _id_of)[0]


def _id_of(head: StoredHead) -> str:
    return head.id


_HELD: Final[dict[str, Callable[[str, MemoryMeta], Any]]] = {
    "reach": lambda kind, meta: meta.namespace,
    "turns": lambda kind, meta: meta.turns,
    "tool_call": lambda kind, meta: meta.tool_call,
    "source_id": lambda kind, meta: meta.source.id,
    "kinds": lambda kind, meta: kind,
    "sources": lambda kind, meta: meta.source.kind,
    "tags_any": lambda kind, meta: meta.tags,
    "observed_after": lambda kind, meta: meta.observed_at,
    "observed_before": lambda kind, meta: meta.observed_at,
}


def _refusals(filter: MetaFilter, item: StoredItem) -> list[Refusal]:
    meta = stored.meta_of(item)
    refused = []
    for clause in clauses_of(filter):
        if not clause_of(filter, clause).matches(item.kind, meta):
            held = _HELD[clause](item.kind, meta) if clause in _HELD else getattr(meta, clause)
            wanted = encode(getattr(filter, clause)).decode()
            refused.append(Refusal(clause=clause, wanted=wanted, held=encode(held).decode()))
    return refused
