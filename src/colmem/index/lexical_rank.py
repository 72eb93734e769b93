"""Hits of tantivy as rows, best first, equal scores in order of storing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from tantivy import DocAddress, Query, Searcher

from colmem.schema import Candidates, RowIds, Scores

ROW_FIELD: Final = "row"
TEXT_FIELD: Final = "text"
SINGLES_FIELD: Final = "singles"
QUERY_TERMS_MAX: Final = 256
"""Distinct terms of a query that are searched for: those held by the fewest items."""

_OVERFETCH_FACTOR: Final = 2
_LOOK_DOCS: Final = 50_000
NO_ROW: Final = int(np.iinfo(np.int64).max)

Term = tuple[str, str, float]
"""A field, a term in it and its weight."""
Frequency = Callable[[str, str], int]
"""In how many items a field holds a term."""


class Segment(NamedTuple):
    """What is known of a segment's rows: the least, and whether they ascend."""

    first_row: int
    is_ascending: bool


class View(NamedTuple):
    """A committed state of the index, and what is known about it as a whole.

    n_docs : documents that a search finds; n_held : with the deleted ones, which still count in the
    statistics; watermark : every row below it is in this state, or was deleted.
    """

    searcher: Searcher
    n_docs: int
    n_held: int
    segments: list[Segment]
    watermark: int


NO_CANDIDATES: Final = Candidates(np.empty(0, np.int64), np.empty(0, np.float32))


def rarest(frequency: Frequency, terms: list[Term]) -> list[Term]:
    """The terms held by the fewest items, of those any item holds, in the order given."""
    counts = [frequency(field, term) for field, term, _ in terms]
    ranked = sorted((count, at) for at, count in enumerate(counts) if count)
    return [terms[at] for at in sorted(at for _, at in ranked[:QUERY_TERMS_MAX])]


def rows_of(searcher: Searcher, addresses: Sequence[DocAddress]) -> RowIds:
    """The rows of documents. int64 (n,)."""
    return np.array(searcher.fast_field_values(ROW_FIELD, list(addresses)), np.int64)


def look_at(searcher: Searcher, segment: int, n_docs: int) -> Segment:
    """Read the rows of a segment of so many documents, the deleted included."""
    least, last, is_ascending = NO_ROW, -1, True
    for start in range(0, n_docs, _LOOK_DOCS):
        places = range(start, min(start + _LOOK_DOCS, n_docs))
        rows = rows_of(searcher, [DocAddress(segment, place) for place in places])
        is_ascending &= bool(rows[0] > last and (rows[1:] > rows[:-1]).all())
        least, last = min(least, int(rows.min())), int(rows[-1])
    return Segment(least, is_ascending)


def best(view: View, query: Query, k: int) -> Candidates:
    """The k best hits, equal scores by row.

    Tantivy breaks ties by segment, then by position in it; positions are in order of storing
    unless segments were merged, but segments are in order of size. So hits are fetched until none
    of the score at the last place that is still unseen can have a smaller row.
    """
    is_one_segment = len(view.segments) == 1 and view.segments[0].is_ascending
    # One more than wanted: mostly it scores less than the last, and no tie is open.
    limit = min(k if is_one_segment else k + 1, view.n_docs)
    while True:
        hits = view.searcher.search(query, limit, count=False).hits
        if not hits:
            return NO_CANDIDATES
        held, addresses = zip(*hits, strict=True)
        rows, scores = rows_of(view.searcher, addresses), np.array(held, np.float32)
        if is_one_segment:
            return Candidates(rows, scores)
        if (
            len(hits) < limit
            or limit == view.n_docs
            or not _ties_unseen(view, addresses[-1].segment_ord, rows, scores, k)
        ):
            break
        limit = min(limit * _OVERFETCH_FACTOR, view.n_docs)
    order = np.lexsort((rows, -scores))[:k]
    return Candidates(rows[order], scores[order])


def merged(found: Candidates, more: Candidates, k: int) -> Candidates:
    """The k best of both, equal scores by row."""
    if len(more.rows) == 0:
        return found
    rows = np.concatenate([found.rows, more.rows])
    scores = np.concatenate([found.scores, more.scores])
    order = np.lexsort((rows, -scores))[:k]
    return Candidates(rows[order], scores[order])


def _ties_unseen(view: View, last_segment: int, rows: RowIds, scores: Scores, k: int) -> bool:
    """Whether a hit not fetched may belong before one of the first k fetched."""
    if scores[-1] < scores[k - 1]:
        return False
    is_tied = scores == scores[-1]
    n_kept = k - int(np.count_nonzero(~is_tied))
    last_kept = np.partition(rows[is_tied], n_kept - 1)[n_kept - 1]
    here, *later = view.segments[last_segment:]
    unseen = int(rows[-1]) if here.is_ascending else here.first_row
    return bool(last_kept > min([unseen, *(segment.first_row for segment in later)]))
