"""Exact answers by brute force, gathered while the workload is made, in bounded memory.

Vector search: cosines of every item, in blocks. Keyword search: BM25 (Robertson and Zaragoza 2009,
k1 1.2, b 0.75, Lucene's idf) over the terms of the query alone. Filters, facets: masks, counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from yardstick.metadata import FACETS, FILTERS, TABLES, Columns, mask_of
from yardstick.texts import TextBatch
from yardstick.vectors import Vectors

K = 10
K1, B = 1.2, 0.75
TIE = 1e-5
"""Relative difference of scores below which either of two items may come first."""
Rows = npt.NDArray[np.int64]


_RANKINGS = ("keyword", "rounded")
_NAMES = (
    "vector",
    "keyword",
    "keyword_offsets",
    "keyword_sizes",
    "rounded",
    "rounded_offsets",
)


@dataclass
class Truth:
    """Answers for each filter, by its name.

    vector : int64 (n_queries, K), rows best first, -1 where fewer are admitted
    keyword : rows of the ten best and of all tied with the last, flat, with offsets; rounded : the
    same when lengths are rounded to a byte, as Lucene and tantivy keep them
    keyword_sizes : int64 (n_queries,), matches of each query, at most K
    counts : for each facet, int64 counts by code
    """

    vector: dict[str, Rows] = field(default_factory=dict)
    keyword: dict[str, Rows] = field(default_factory=dict)
    keyword_offsets: dict[str, Rows] = field(default_factory=dict)
    rounded: dict[str, Rows] = field(default_factory=dict)
    rounded_offsets: dict[str, Rows] = field(default_factory=dict)
    keyword_sizes: dict[str, Rows] = field(default_factory=dict)
    counts: dict[str, dict[str, Rows]] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)

    def keyword_rows(self, filter: str, query: int, *, rounded: bool) -> set[int]:
        held, offsets = self.keyword[filter], self.keyword_offsets[filter]
        if rounded:
            held, offsets = self.rounded[filter], self.rounded_offsets[filter]
        first, last = offsets[query : query + 2]
        return set(held[first:last].tolist())

    def arrays(self) -> dict[str, npt.NDArray[np.int64]]:
        """Everything as named arrays, to be kept in one file."""
        made: dict[str, npt.NDArray[np.int64]] = {}
        for name in _NAMES:
            made |= {f"{name}|{filter}": rows for filter, rows in getattr(self, name).items()}
        for filter, facets in self.counts.items():
            made |= {f"counts|{filter}|{facet}": found for facet, found in facets.items()}
        made |= {f"admitted|{name}": np.array(n) for name, n in self.admitted.items()}
        return made

    @classmethod
    def of(cls, arrays: dict[str, npt.NDArray[np.int64]]) -> Truth:
        truth = cls()
        for key, rows in arrays.items():
            name, filter, *facet = key.split("|")
            if name == "counts":
                truth.counts.setdefault(filter, {})[facet[0]] = rows
            elif name == "admitted":
                truth.admitted[filter] = int(rows)
            else:
                getattr(truth, name)[filter] = rows
        return truth


class TruthMaker:
    """Takes the items batch by batch and answers at the end.

    vectors : float32 (n_queries, dim), the queries' vectors
    queries : the queries' terms, as numbers
    """

    def __init__(self, vectors: Vectors, queries: list[list[int]], n_terms: int) -> None:
        self._vectors = vectors
        self._queries = queries
        self._terms = sorted({term for query in queries for term in query})
        self._place = np.full(n_terms, -1, np.int32)
        self._place[self._terms] = np.arange(len(self._terms))
        n = len(vectors)
        self._best = {f.name: np.full((n, K), -np.inf, np.float32) for f in FILTERS}
        self._truth = Truth(
            vector={f.name: np.full((n, K), -1, np.int64) for f in FILTERS},
            counts={
                f.name: {t: np.zeros(len(TABLES[t]), np.int64) for t in FACETS} for f in FILTERS
            },
            admitted={f.name: 0 for f in FILTERS},
        )
        self._postings: list[tuple[Rows, Rows, Rows]] = []
        self._lengths: list[Rows] = []
        self._masks: dict[str, list[npt.NDArray[np.bool_]]] = {f.name: [] for f in FILTERS}

    def add(self, first: int, texts: TextBatch, vectors: Vectors, columns: Columns) -> None:
        scores = self._vectors @ vectors.T
        for filter in FILTERS:
            mask = mask_of(filter, columns)
            self._masks[filter.name].append(mask)
            self._truth.admitted[filter.name] += int(mask.sum())
            self._keep_nearest(filter.name, first, scores, np.flatnonzero(mask))
            self._count(filter.name, columns, mask)
        self._add_postings(first, texts)

    def done(self) -> Truth:
        self._rank_keywords()
        return self._truth

    def mask(self, filter: str) -> npt.NDArray[np.bool_]:
        """Which of the items a filter admits."""
        return np.concatenate(self._masks[filter])

    def _keep_nearest(self, name: str, first: int, scores: Vectors, rows: Rows) -> None:
        if not len(rows):
            return
        held = scores if len(rows) == scores.shape[1] else scores[:, rows]
        if len(rows) > K:
            top = np.argpartition(held, -K, axis=1)[:, -K:]
        else:
            top = np.broadcast_to(np.arange(len(rows)), (len(scores), len(rows)))
        best = np.hstack([self._best[name], np.take_along_axis(held, top, 1)])
        found = np.hstack([self._truth.vector[name], first + rows[top]])
        order = np.argsort(-best, axis=1, kind="stable")[:, :K]
        self._best[name] = np.take_along_axis(best, order, 1)
        self._truth.vector[name] = np.take_along_axis(found, order, 1)

    def _count(self, name: str, columns: Columns, mask: npt.NDArray[np.bool_]) -> None:
        for facet, counts in self._truth.counts[name].items():
            if facet == "tag":
                within = np.repeat(mask, np.diff(columns.tag_offsets))
                codes = columns.tags[within]
            else:
                codes = columns.codes[facet][mask]
            counts += np.bincount(codes[codes >= 0], minlength=len(counts))

    def _add_postings(self, first: int, texts: TextBatch) -> None:
        sizes = np.diff(texts.offsets)
        places = self._place[texts.term_ids].astype(np.int64)
        at = np.flatnonzero(places >= 0)
        rows = first + np.searchsorted(texts.offsets, at, "right") - 1
        keys, frequencies = np.unique(places[at] * (1 << 40) + rows, return_counts=True)
        self._postings.append((keys >> 40, keys & ((1 << 40) - 1), frequencies))
        self._lengths.append(sizes)

    def _rank_keywords(self) -> None:
        lengths = np.concatenate(self._lengths)
        places, rows, frequencies = map(np.concatenate, zip(*self._postings, strict=True))
        order = np.argsort(places, kind="stable")
        places, rows, frequencies = places[order], rows[order], frequencies[order]
        starts = np.searchsorted(places, np.arange(len(self._terms) + 1))
        n_with = np.diff(starts)
        idf = np.log1p((len(lengths) - n_with + 0.5) / (n_with + 0.5))
        for ranking, of in zip(_RANKINGS, (lengths, rounded(lengths)), strict=True):
            norm = K1 * (1 - B + B * of[rows] / lengths.mean())
            gains = idf[places] * frequencies * (K1 + 1) / (frequencies + norm)
            self._rank(ranking, rows, gains, starts)

    def _rank(self, ranking: str, rows: Rows, gains: npt.NDArray[Any], starts: Rows) -> None:
        masks = {name: self.mask(name) for name in self._masks}
        found: dict[str, list[Rows]] = {name: [] for name in masks}
        sizes: dict[str, list[int]] = {name: [] for name in masks}
        for query in self._queries:
            spans = [slice(*starts[p : p + 2]) for p in self._place[query].tolist()]
            matched, at = np.unique(np.concatenate([rows[s] for s in spans]), return_inverse=True)
            scores = np.bincount(at, np.concatenate([gains[s] for s in spans]), len(matched))
            for name, mask in masks.items():
                is_in = mask[matched]
                found[name].append(_best_with_ties(matched[is_in], scores[is_in]))
                sizes[name].append(min(K, int(is_in.sum())))
        for name, lists in found.items():
            ends = np.cumsum([0, *map(len, lists)]).astype(np.int64)
            getattr(self._truth, ranking)[name] = np.concatenate(lists)
            getattr(self._truth, f"{ranking}_offsets")[name] = ends
            self._truth.keyword_sizes[name] = np.array(sizes[name], np.int64)


def rounded(lengths: Rows) -> Rows:
    """Lengths as one byte keeps them: exact to 40, then eight steps each of 2, 4, 8 and so on."""
    steps = np.repeat(2 ** np.arange(1, 25), 8)
    levels = np.concatenate([np.arange(41), 40 + np.cumsum(steps)])
    kept: Rows = levels[np.searchsorted(levels, lengths, "right") - 1]
    return kept


def _best_with_ties(rows: Rows, scores: npt.NDArray[np.float64]) -> Rows:
    if len(rows) <= K:
        return rows
    last = np.partition(scores, -K)[-K]
    best: Rows = rows[scores >= last * (1 - TIE)]
    return best
