"""The few items stored since the lexical index was last committed, searched beside it.

A commit of the index costs several syncs of the disk; a read that follows a write need not wait for
it. Scores are BM25 as tantivy computes it, over the frequencies of the index and the tail together;
only the average length of a text stays that of the index, a hundredth off at most (the tail is no
larger than that).
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tantivy import Query, Schema

from colmem.index.analyser import analyse_items
from colmem.index.lexical_rank import (
    NO_CANDIDATES,
    ROW_FIELD,
    SINGLES_FIELD,
    TEXT_FIELD,
    Term,
    View,
)
from colmem.schema import Candidates, Mask

_K1: Final = 1.2
_B: Final = 0.75
_EXACT_LENGTHS: Final = 24  # lengths up to this one are kept as they are


class Tail:
    """Items behind a committed state of the index, in order of storing.

    One thread at a time adds; searches may go on meanwhile.

    Parameters
    ----------
    view
        The committed state.
    """

    def __init__(self, schema: Schema, view: View) -> None:
        self.view = view
        self.end = view.watermark
        self._schema = schema
        self.n_bytes = 0
        self._n_items = 0
        self._lengths: dict[tuple[str, int], int] = {}  # of a field in a row
        self._postings: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self._averages: dict[str, float] = {}  # length of each field

    def add(self, batch: pa.RecordBatch, end: int) -> None:
        """Add the items of a batch, the last ones before row ``end``."""
        rows = batch.column(ROW_FIELD).to_pylist()
        terms, singles = analyse_items(batch.column("text"))
        for field, texts in ((TEXT_FIELD, terms), (SINGLES_FIELD, singles)):
            for row, text in zip(rows, texts, strict=True):
                words = text.split()
                self._lengths[field, row] = kept_length(len(words))
                for word, count in Counter(words).items():
                    self._postings[field, word].append((row, count))
        self.n_bytes += batch.nbytes
        self._n_items += batch.num_rows
        self.end = end

    def frequency(self, field: str, term: str) -> int:
        """In how many items of the index and the tail a field holds a term."""
        held = self._postings.get((field, term), ())
        return int(self.view.searcher.doc_freq(field, term)) + len(held)

    def weights(self, terms: Sequence[Term]) -> list[Term]:
        """Terms with the weights by which a search of the index alone gives these frequencies."""
        n_index = self.view.n_held
        weighed = []
        for field, term, weight in terms:
            n = self.view.searcher.doc_freq(field, term)
            change = self._idf(field, term) / idf(n, n_index) if n else 1.0
            weighed.append((field, term, weight * change))
        return weighed

    def search(self, terms: Sequence[Term], mask: Mask) -> Candidates:
        """The items that hold a term and that a mask of rows admits, best first."""
        scores: dict[int, float] = {}
        for field, term, weight in terms:
            held = self._postings.get((field, term))
            if not held:
                continue
            scale = weight * self._idf(field, term) * (1 + _K1)
            average = self._average(field)
            for row, count in held:
                length = self._lengths[field, row]
                norm = _K1 * (1 - _B + _B * length / average)
                scores[row] = scores.get(row, 0.0) + scale * count / (count + norm)
        rows = np.array([row for row in scores if row < len(mask) and mask[row]], np.int64)
        if len(rows) == 0:
            return NO_CANDIDATES
        held_scores = np.array([scores[row] for row in rows.tolist()], np.float32)
        order = np.lexsort((rows, -held_scores))
        return Candidates(rows[order], held_scores[order])

    def _idf(self, field: str, term: str) -> float:
        return idf(self.frequency(field, term), self.view.n_held + self._n_items)

    def _average(self, field: str) -> float:
        """Mean length of a field in the index, as tantivy explains it."""
        if field not in self._averages:
            self._averages[field] = self._explained_average(field)
        return self._averages[field]

    def _explained_average(self, field: str) -> float:
        searcher = self.view.searcher
        for held_field, term in list(self._postings):
            if held_field == field and searcher.doc_freq(field, term):
                query = Query.term_query(self._schema, field, term, "freq")
                hits = searcher.search(query, 1, count=False).hits
                if hits:
                    explained = json.loads(query.explain(searcher, hits[0][1]).to_json())
                    return float(
                        next(
                            part["value"]
                            for part in _parts(explained)
                            if part["description"].startswith("avgdl")
                        )
                    )
        # No word of the tail stands in the index: it is compared with nothing but itself.
        lengths = [length for (name, _), length in self._lengths.items() if name == field]
        return max(1.0, sum(lengths) / len(lengths))


def idf(n_holding: int, n_docs: int) -> float:
    """How much a term counts that so many of all documents hold (BM25, as Lucene and tantivy)."""
    return math.log(1 + (n_docs - n_holding + 0.5) / (n_holding + 0.5))


def kept_length(length: int) -> int:
    """A text's length in words as an index keeps it, in one byte: rounded down, to 4 bits."""
    above = length - _EXACT_LENGTHS
    if above < 0:
        return length
    shift = max(0, above.bit_length() - 4)
    return _EXACT_LENGTHS + (above >> shift << shift)


def _parts(explained: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield explained
    for part in explained.get("details", ()):
        yield from _parts(part)
