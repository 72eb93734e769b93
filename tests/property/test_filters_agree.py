"""Table, lexical index and mask admit exactly the items that ``MetaFilter.matches`` admits."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colmem import stored
from colmem.contract import MetaFilter, StoreItem
from colmem.index.attributes import Attributes
from colmem.index.lexical import LexicalIndex
from colmem.storage.sql_filter import condition
from colmem.storage.table import Table
from colmem.stored import StoredItem
from strategies import filters, filters_near, items

NOW_S = 1_700_000_000


def check_filters_agree(held: Sequence[StoreItem], wanted: Sequence[MetaFilter]) -> None:
    rows = _rows(held)
    batch = stored.to_batch(stored.columns_of(rows))
    table = Table(None)
    lexical = LexicalIndex(None)
    attributes = Attributes()
    try:
        table.apply([batch], np.empty(0, np.int64), (0, 0, len(rows)))
        lexical.add(batch)
        lexical.commit(len(rows))
        attributes.append(stored.columns_of(rows))
        for filter in wanted:
            truth = [i for i, item in enumerate(held) if filter.matches(item.kind, item.meta)]
            mask = np.ones(len(rows), np.uint8)
            attributes.keep(filter, mask)
            where = condition(filter, now_s=NOW_S)
            admitted = {
                "table": table.rows(where).tolist(),
                "lexical": lexical.matching_rows(filter, NOW_S).tolist(),
                "mask": np.flatnonzero(mask).tolist(),
            }
            assert admitted == dict.fromkeys(admitted, truth), filter
            assert table.count(where) == len(truth)
    finally:
        table.close()
        lexical.close()


def _rows(held: Sequence[StoreItem]) -> list[StoredItem]:
    rows = [stored.stored(item, item.content_digest(), "2026-01-01T00:00:00Z") for item in held]
    for i, row in enumerate(rows):
        row.row = row.seq = i
        assert stored.item_of(row) == held[i]
        assert stored.from_bytes(stored.to_bytes(row)) == row
    return rows


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[StoreItem], list[MetaFilter]]:
    held = draw(st.lists(items, min_size=1, max_size=30))
    wanted = draw(st.lists(filters, min_size=1, max_size=10))
    for item in held[:10]:
        wanted.append(draw(filters_near(item.meta, item.kind)))
    return held, wanted


@given(worlds())
@settings(max_examples=15)
def test_every_form_of_a_filter_admits_the_same_items(world) -> None:
    check_filters_agree(*world)


@pytest.mark.slow
@given(worlds())
@settings(max_examples=1_000)
def test_every_form_of_a_filter_admits_the_same_items_at_length(world) -> None:
    check_filters_agree(*world)


def test_expired_items_are_left_out_by_every_form() -> None:
    from colmem.contract import document

    held = [document(f"note {i}") for i in range(4)]
    rows = _rows(held)
    for row, expires in zip(rows, (None, NOW_S - 1, NOW_S, NOW_S + 1), strict=True):
        row.expires_s = expires
    batch = stored.to_batch(stored.columns_of(rows))
    table, lexical, attributes = Table(None), LexicalIndex(None), Attributes()
    table.apply([batch], np.empty(0, np.int64), (0, 0, 4))
    lexical.add(batch)
    lexical.commit(4)
    attributes.append(stored.columns_of(rows))
    mask = np.ones(4, np.uint8)
    assert attributes.keep_unexpired(mask, NOW_S)
    assert np.flatnonzero(mask).tolist() == [0, 3]
    assert table.rows(condition(MetaFilter(), now_s=NOW_S)).tolist() == [0, 3]
    assert table.rows(condition(MetaFilter(), now_s=None)).tolist() == [0, 1, 2, 3]
    assert lexical.matching_rows(MetaFilter(), NOW_S).tolist() == [0, 3]
    assert attributes.expired(4, NOW_S).tolist() == [1, 2]
    table.close()
    lexical.close()
