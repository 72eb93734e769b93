"""Batches of items for tests of an index, most columns left at their defaults."""

import pyarrow as pa

from colmem.schema import ITEMS

_DEFAULTS = {
    "seq": 0,
    "id": "id",
    "content_hash": "",
    "kind": "document",
    "text": "",
    "namespace": "",
    "source_kind": "agent",
    "tags": [],
    "created_at": "2026-01-01T00:00:00Z",
    "has_vector": True,
}


def batch_of(items, first_row=0):
    """A batch of items given as texts, or as dicts of the columns that matter."""
    rows = []
    for i, item in enumerate(items):
        given = {"text": item} if isinstance(item, str) else item
        rows.append(dict.fromkeys(ITEMS.names) | _DEFAULTS | {"row": first_row + i} | given)
    return pa.RecordBatch.from_pylist(rows, schema=ITEMS)
