"""Metadata filters of LlamaIndex as filters of the contract, as far as these can say them.

Equality and lists of values of any key, tags, kinds, and bounds of ``observed_at``; conditions
joined by AND, or by OR when all are about tags and free metadata. Anything else is refused.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from colmem import InvalidRequest, MetaFilter
from colmem.adapters import foreign
from colmem.adapters.llamaindex.nodes import FRAMEWORK, REF_DOC

_REF_DOC_KEYS: Final = ("ref_doc_id", "doc_id", "document_id")
_EQUAL: Final = (FilterOperator.EQ, FilterOperator.IN)
_IN_LIST: Final = (*_EQUAL, FilterOperator.CONTAINS, FilterOperator.ANY)
_TIME_BOUNDS: Final = {
    FilterOperator.GTE: "observed_after",
    FilterOperator.LT: "observed_before",
}


def filter_of(filters: MetadataFilters | None) -> MetaFilter:
    """The filter that admits the same items.

    Raises
    ------
    InvalidRequest
        When no filter of the contract does.
    """
    if filters is None or not filters.filters:
        return MetaFilter()
    parts = [
        filter_of(part) if isinstance(part, MetadataFilters) else _condition(part)
        for part in filters.filters
    ]
    condition = filters.condition or FilterCondition.AND
    if condition is FilterCondition.AND:
        return reduce(foreign.both, parts)
    if condition is FilterCondition.OR:
        return foreign.union_of_tags(parts)
    raise InvalidRequest(f"a filter cannot say {condition.name}; check it on the nodes instead")


def _condition(part: MetadataFilter) -> MetaFilter:
    key, operator = part.key, part.operator
    values = part.value if isinstance(part.value, list) else [part.value]
    if key in _REF_DOC_KEYS and operator in _EQUAL:
        return MetaFilter(
            tags_any=[foreign.named_tag(FRAMEWORK, REF_DOC, str(value)) for value in values]
        )
    if key == "tags" and operator in _IN_LIST:
        return foreign.one_of(key, values)
    if key == "observed_at" and operator in _TIME_BOUNDS:
        bound: dict[str, Any] = {_TIME_BOUNDS[operator]: part.value}
        return MetaFilter(**bound)
    if operator is FilterOperator.EQ:
        return foreign.equal(key, part.value)
    if operator is FilterOperator.IN:
        return foreign.one_of(key, values)
    raise InvalidRequest(
        f"a filter cannot say `{key} {operator.value}`; it takes == and in for any key, also "
        "contains and any for tags, >= and < for observed_at"
    )
