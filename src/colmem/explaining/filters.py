"""What a filter does to a ranking, clause by clause."""

from __future__ import annotations

from colmem.contract import FetchMode, FetchRequest, MetaFilter
from colmem.explanation import FilterPlan
from colmem.opening import Opened
from colmem.schema import View


def filter_plan(opened: Opened, request: FetchRequest, view: View) -> FilterPlan:
    """What a request's filter admits, clause by clause, and how the legs apply it."""
    store, filter = opened.store, request.filter
    reach = MetaFilter(reach=filter.reach)
    admitted = store.admitted(filter, view)
    alone = {clause: clause_of(filter, clause) for clause in clauses_of(filter)}
    depth = max(opened.ranking.pool_per_leg, request.limit)
    keyword = vector = ""
    if request.mode is not FetchMode.VECTOR:
        keyword = "each clause is a condition of the keyword query" if alone else "no condition"
    if request.mode is not FetchMode.KEYWORD:
        how = "compared one by one"
        if not store.vectors.compares_all(depth, admitted):
            how = "scanned by their codes, the best of them compared exactly"
        vector = f"a mask over all rows; the admitted embeddings are {how}"
    return FilterPlan(
        admitted=admitted.count,
        within=store.admitted(reach, view).count,
        clauses={
            clause: store.admitted(one.replace(reach=filter.reach), view).count
            for clause, one in alone.items()
        },
        keyword=keyword,
        vector=vector,
    )


def clauses_of(filter: MetaFilter) -> list[str]:
    """The fields that a filter sets."""
    empty = MetaFilter()
    names = MetaFilter.__struct_fields__
    return [name for name in names if getattr(filter, name) != getattr(empty, name)]


def clause_of(filter: MetaFilter, clause: str) -> MetaFilter:
    """The filter that one clause of another makes."""
    return MetaFilter(**{clause: getattr(filter, clause)})
