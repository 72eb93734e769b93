"""The filter inside the query, over segments, deletions and expiry, against the filter itself."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colmem import stored
from colmem.contract import MetaFilter, StoreItem
from colmem.index.lexical import LexicalIndex
from colmem.stored import StoredItem
from strategies import filters, filters_near, items

NOW_S = 1_700_000_000
WORD = "everywhere"
EXPIRIES = [None, None, NOW_S - 1, NOW_S, NOW_S + 1]


def _row(item: StoreItem, row: int, expires_s: int | None) -> StoredItem:
    made = stored.stored(item, item.content_digest(), "2026-01-01T00:00:00Z")
    made.row = made.seq = row
    made.text = f"{WORD} {made.text}"
    made.expires_s = expires_s
    return made


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[StoreItem], list[int | None], list[bool], list[int]]:
    held = draw(st.lists(items, min_size=1, max_size=12))
    n = len(held)
    expiries = draw(st.lists(st.sampled_from(EXPIRIES), min_size=n, max_size=n))
    gone = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    cuts = draw(st.lists(st.integers(0, n), max_size=3))
    return held, expiries, gone, sorted({0, n, *cuts})


@settings(max_examples=60)
@given(worlds(), st.lists(filters, max_size=3), st.data())
def test_a_ranked_read_admits_what_the_filter_matches(
    world: tuple[list[StoreItem], list[int | None], list[bool], list[int]],
    anywhere: Sequence[MetaFilter],
    data: st.DataObject,
) -> None:
    held, expiries, gone, cuts = world
    rows = [_row(held[i], i, expiries[i]) for i in range(len(held))]
    near = [data.draw(filters_near(item.meta, item.kind)) for item in held[:3]]
    index = LexicalIndex(None)
    try:
        for first, last in pairwise(cuts):
            index.add(stored.to_batch(stored.columns_of(rows[first:last])))
            index.commit(last)
        index.delete(np.flatnonzero(gone))
        index.commit(len(rows))
        for filter in [MetaFilter(), *anywhere, *near]:
            truth = [
                i
                for i, item in enumerate(held)
                if not gone[i]
                and (expiries[i] is None or expiries[i] > NOW_S)
                and filter.matches(item.kind, item.meta)
            ]
            assert index.matching_rows(filter, NOW_S).tolist() == truth
            found = index.search(WORD, len(held), filter=filter, now_s=NOW_S)
            assert sorted(found.rows.tolist()) == truth
            order = np.lexsort((found.rows, -found.scores))
            assert order.tolist() == list(range(len(truth)))
            some = index.search(WORD, 2, filter=filter, now_s=NOW_S)
            assert some.rows.tolist() == found.rows[:2].tolist()
            assert some.scores.tolist() == found.scores[:2].tolist()
    finally:
        index.close()
