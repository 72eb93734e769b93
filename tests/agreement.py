"""Whether every way of reading a store sees the same items."""

from collections.abc import Iterator
from typing import Any

from colmem.contract import Facet, Hit, MetaFilter, encode

_PAGE = 200


def listed(engine: Any, filter: MetaFilter | None = None, limit: int = _PAGE) -> list[Hit]:
    """All items a filter admits, by following the cursors of list."""
    hits: list[Hit] = []
    cursor = None
    while True:
        page = engine.list(filter=filter or MetaFilter(), limit=limit, cursor=cursor)
        hits += page.items
        cursor = page.next_cursor
        if cursor is None:
            return hits


def fetched(engine: Any, limit: int = _PAGE, **request: Any) -> Iterator[Hit]:
    """All hits of a fetch, by following its cursors."""
    cursor = None
    while True:
        page = engine.fetch(**request, limit=limit, cursor=cursor)
        assert len(page.hits) <= limit
        yield from page.hits
        cursor = page.next_cursor
        if cursor is None:
            return


def assert_agreement(engine: Any, word: str, filter: MetaFilter | None = None) -> list[str]:
    """List, get, explore and fetch (every declared mode) agree; returns the ids in order.

    word : one that stands in every item's text.
    """
    filter = filter or MetaFilter()
    hits = listed(engine, filter)
    ids = [hit.id for hit in hits]
    assert len(ids) == len(set(ids))
    for start in range(0, len(ids), _PAGE):
        part = ids[start : start + _PAGE]
        assert encode(engine.get(ids=part)) == encode(hits[start : start + _PAGE])
    for facet in (Facet.KIND, Facet.NAMESPACE):
        page = engine.explore(facet=facet, filter=filter)
        assert page.total == len(ids)
        assert sum(bucket.count for bucket in page.buckets) == len(ids)
    texts = {hit.id: (hit.text, encode(hit.meta)) for hit in hits}
    for mode in engine.descriptor().fetch_modes:
        found = {
            hit.id: (hit.text, encode(hit.meta))
            for hit in fetched(engine, 1000, query=word, mode=mode, filter=filter)
        }
        assert found == texts, f"{mode} fetch differs from list"
    return ids
