"""Defers near-identical candidates: of several, the best keeps its place; pure.

The others follow after every other candidate of the head, so that they stay reachable by paging
and the order stays one order for pages of any size.
"""

from __future__ import annotations

import numpy as np

from colmem.schema import Candidates, Vectors

COMPARED_MAX = 200  # of the best; bounds the comparison of all pairs


def defer_near_duplicates(ranking: Candidates, vectors: Vectors, threshold: float) -> Candidates:
    """Move each candidate that is near-identical to a better one to the end.

    vectors : float32 (k, dim), rows L2-normalised, of the ranking's first k rows; near-identical is
    a cosine of at least ``threshold``. Scores fall: a deferred one is capped at the last kept.
    """
    k = len(vectors)
    near = vectors @ vectors.T >= threshold
    is_kept = np.ones(len(ranking.rows), np.bool_)
    for i in range(1, k):
        is_kept[i] = not (near[i, :i] & is_kept[:i]).any()
    if is_kept.all():
        return ranking
    kept, deferred = np.flatnonzero(is_kept), np.flatnonzero(~is_kept)
    scores = ranking.scores[np.concatenate([kept, deferred])]
    scores[len(kept) :] = np.minimum(scores[len(kept) :], scores[len(kept) - 1])
    return Candidates(ranking.rows[np.concatenate([kept, deferred])], scores)
