"""Fuses the keyword and the vector leg into one ranking; pure and deterministic.

A convex blend of both legs, each mapped to 0..1 over all admitted items: BM25 from its minimum
(0 unless every item matches) to its maximum, cosines between theirs. Reciprocal rank fusion was
measured worse on most sets, as was counting a cosine outside the leg's best as the minimum: it is
asked for instead. Scores are 0..1; ties in order of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.retrieval.settings import RankingSettings
from colmem.schema import Candidates, Mask, RowIds, Scores

Rows = npt.NDArray[np.int64]


class Pool(NamedTuple):
    """The candidates of a hybrid ranking with their scores in each leg.

    rows : int64 (n,), ascending; lexical : float32 (n,), BM25, 0 without a match;
    vector : float32 (n,), cosines, NaN where the leg did not return the row.
    """

    rows: RowIds
    lexical: Scores
    vector: Scores

    def without_vector(self) -> npt.NDArray[np.bool_]:
        """Which rows still need their cosine: bool (n,)."""
        return np.isnan(self.vector)


class Weights(NamedTuple):
    """Shares of the parts of a score, summing to 1 for one query.

    ``distinct`` is that of the cosine with an item's distinct pieces; before the pieces are looked
    at, and for items that are not rescored, the plain cosine stands for it.
    """

    lexical: float
    vector: float
    maxsim: float
    distinct: float = 0.0

    @classmethod
    def of(cls, settings: RankingSettings, fit: float = 1.0, *, is_code: bool = False) -> Weights:
        """Shares for a query that the embedder's vocabulary fits by ``fit`` (0..1)."""
        vector = settings.code_weight_vector if is_code else settings.weight_vector
        maxsim = settings.code_weight_maxsim if is_code else settings.weight_maxsim
        distinct = settings.code_weight_distinct if is_code else 0.0
        trust = _trust(fit, settings.fit_full, settings.fit_min)
        vector, distinct = vector * trust, distinct * trust
        maxsim *= _trust(fit, settings.fit_full_maxsim, settings.fit_min)
        return cls(1.0 - vector - distinct - maxsim, vector, maxsim, distinct)

    def without_maxsim(self) -> Weights:
        """The same proportion of both legs, for an embedder without word pieces."""
        total = self.lexical + self.vector
        if total == 0:
            return Weights(0.5, 0.5, 0.0)
        return Weights(self.lexical / total, self.vector / total, 0.0)


def pool(lexical: Candidates, vector: Candidates, extra: RowIds | None = None) -> Pool:
    """Join the legs' candidates, and further rows if any, by row."""
    parts = [lexical.rows, vector.rows] if extra is None else [lexical.rows, vector.rows, extra]
    rows = np.unique(np.concatenate(parts))
    by_words = np.zeros(len(rows), np.float32)
    by_words[np.searchsorted(rows, lexical.rows)] = lexical.scores
    by_meaning = np.full(len(rows), np.nan, np.float32)
    by_meaning[np.searchsorted(rows, vector.rows)] = vector.scores
    return Pool(rows, by_words, by_meaning)


def fuse(
    candidates: Pool,
    *,
    vector_bounds: tuple[float, float],
    lexical_bounds: tuple[float, float],
    weights: Weights,
) -> Candidates:
    """Blend both legs of the candidates into one ranking, best first, scores 0..1.

    vector_bounds, lexical_bounds : lowest and highest score of all admitted rows in each leg.
    """
    scores = blend(
        candidates.lexical,
        candidates.vector,
        vector_bounds=vector_bounds,
        lexical_bounds=lexical_bounds,
        weights=weights,
    )
    return ranked(candidates.rows, scores)


def blend(
    lexical: Scores,
    vector: Scores,
    *,
    vector_bounds: tuple[float, float],
    lexical_bounds: tuple[float, float],
    weights: Weights,
) -> Scores:
    """Convex blend of two legs' scores of the same rows: float32 (n,), 0..1."""
    by_words, by_meaning = blend_parts(
        lexical,
        vector,
        vector_bounds=vector_bounds,
        lexical_bounds=lexical_bounds,
        weights=weights,
    )
    blended: Scores = by_words + by_meaning
    return blended


def blend_parts(
    lexical: Scores,
    vector: Scores,
    *,
    vector_bounds: tuple[float, float],
    lexical_bounds: tuple[float, float],
    weights: Weights,
) -> tuple[Scores, Scores]:
    """What each leg adds to the blend: float32 (n,) each."""
    by_meaning = weights.vector + weights.distinct
    total = weights.lexical + by_meaning
    if total == 0:  # MaxSim alone decides.
        return np.zeros(len(lexical), np.float32), np.zeros(len(lexical), np.float32)
    return (
        unit(lexical, lexical_bounds) * np.float32(weights.lexical / total),
        unit(vector, vector_bounds) * np.float32(by_meaning / total),
    )


def ranked(rows: RowIds, scores: Scores) -> Candidates:
    """Rows and scores best first, ties in order of rows; a NaN counts as 0."""
    scores = scores.astype(np.float32)
    scores[scores != scores] = 0
    order = np.lexsort((rows, -scores))
    return Candidates(rows[order], scores[order])


def tail(
    admitted: Mask,
    head: RowIds,
    lexical: Candidates,
    vector: Scores,
    *,
    vector_bounds: tuple[float, float],
    weights: Weights,
    ceiling: float,
) -> Candidates:
    """Rank every admitted row outside the head, scores at most ``ceiling`` (the head's last).

    admitted : uint8 (n_rows,); head : int64 (h,); lexical : the keyword leg of all matching rows;
    vector : float32 (n_rows,), cosines of all rows (any value where not admitted).
    """
    n_rows = len(admitted)
    keep = admitted.astype(bool)
    keep[head] = False
    rows = np.flatnonzero(keep)
    by_words = np.zeros(n_rows, np.float32)
    by_words[lexical.rows] = lexical.scores
    n_matching = len(lexical.rows)
    bounds = lexical_bounds(lexical, is_whole=n_matching == np.count_nonzero(admitted))
    scores = blend(
        by_words[rows],
        vector[rows],
        vector_bounds=vector_bounds,
        lexical_bounds=bounds,
        weights=weights,
    )
    # Scaled by the share the head's unrescored candidates keep, so that the two meet evenly.
    scores *= np.float32(1.0 - weights.maxsim)
    ordered = ranked(rows, scores)
    return Candidates(ordered.rows, np.minimum(ordered.scores, np.float32(ceiling)))


def lexical_bounds(leg: Candidates, *, is_whole: bool) -> tuple[float, float]:
    """Lowest and highest BM25 of the admitted rows.

    ``is_whole`` says that the leg holds every admitted row; else one has no match: 0 is lowest.
    """
    if len(leg.scores) == 0:
        return 0.0, 0.0
    return (float(leg.scores.min()) if is_whole else 0.0), float(leg.scores.max())


def _trust(fit: float, full: float, least: float) -> float:
    return 1.0 if fit >= full else max(least, fit / full)


def unit(scores: Scores, bounds: tuple[float, float]) -> Scores:
    """Scores mapped to 0..1 between two bounds: float32 (n,)."""
    low, high = bounds
    if not high > low:
        return np.zeros(len(scores), np.float32)
    mapped: Scores = np.clip((scores - np.float32(low)) / np.float32(high - low), 0, 1)
    return mapped
