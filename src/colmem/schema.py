"""The Arrow schema of the item table, and the values that pass between the engine's workers.

One row is one item. ``row`` is its physical position, dense from 0 in order of storing: the
embedding, the codes and the encoded row of an item stand at that position in their files.
``seq`` is the same order for ever (compaction renumbers rows, never sequence numbers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RowIds = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Vectors = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

ITEMS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("fingerprint", pa.string()),  # 40 hex digits; null: the id is the fingerprint
        pa.field("content_hash", pa.string(), nullable=False),  # "" only for foreign records
        pa.field("kind", pa.string(), nullable=False),
        pa.field(
            "text", pa.string(), nullable=False
        ),  # render_text(): what is indexed and returned
        # Shape columns: with `text` and the metadata they give the item back exactly.
        pa.field("title", pa.string()),
        pa.field("mime", pa.string()),
        pa.field("turns", pa.string()),  # conversation: canonical JSON array of the turns
        pa.field("learning_kind", pa.string()),
        pa.field("confidence", pa.float32()),
        pa.field("evidence", pa.string()),
        # Metadata, one typed column per field of MemoryMeta.
        pa.field("namespace", pa.string(), nullable=False),  # path; "" is the root
        pa.field("workspace", pa.string()),
        pa.field("folder", pa.string()),
        pa.field("file_path", pa.string()),
        pa.field("language", pa.string()),
        pa.field("repo", pa.string()),
        pa.field("commit", pa.string()),
        pa.field("url", pa.string()),
        pa.field("thread_id", pa.string()),
        pa.field("turn_first", pa.uint32()),
        pa.field("turn_last", pa.uint32()),
        pa.field("agent_id", pa.string()),
        pa.field("tool_name", pa.string()),
        pa.field("tool_id", pa.string()),
        pa.field("source_kind", pa.string(), nullable=False),
        pa.field("source_id", pa.string()),
        pa.field("tags", pa.list_(pa.string()), nullable=False),
        pa.field("observed_s", pa.int64()),  # seconds since 1970 (of the :59 for a leap second)
        pa.field("observed_ns", pa.int32()),  # nanoseconds; 1e9 + fraction for a leap second
        # Snapshot side.
        pa.field("created_at", pa.string(), nullable=False),  # kept verbatim
        pa.field("expires_s", pa.int64()),  # seconds since 1970; null: never
        pa.field("has_vector", pa.bool_(), nullable=False),
        pa.field("record", pa.string()),  # JSON of what only a foreign record has; null otherwise
    ]
)


class View(NamedTuple):
    """The rows of the store at one moment: uint8 (n_rows,), 1 where live."""

    live: Mask
    n_live: int
    version: int

    @property
    def n_rows(self) -> int:
        """Rows ever used in this generation, forgotten ones included."""
        return len(self.live)


class Candidates(NamedTuple):
    """One leg's answer: rows with their scores, best first, ties in order of storing.

    rows : int64 (n,); scores : float32 (n,)
    """

    rows: RowIds
    scores: Scores


class Admitted(NamedTuple):
    """The rows a read may see: live, not expired, and matching its filter.

    mask : uint8 (n_rows,), 1 where admitted; count : how many ones; is_all : the filter did not
    constrain anything (every live row is admitted).
    """

    mask: Mask
    count: int  # type: ignore[assignment] # a tuple's own count() is of no use here
    is_all: bool
