"""nDCG@k and Recall@k as trec_eval computes them, over one ranked list of ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def ndcg(ranking: Sequence[str], relevance: Mapping[str, int], k: int) -> float:
    """Normalised discounted cumulative gain at k, gains linear in the judgement."""
    gains = [max(relevance.get(id, 0), 0) for id in ranking[:k]]
    ideal = sorted((g for g in relevance.values() if g > 0), reverse=True)[:k]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def recall(ranking: Sequence[str], relevance: Mapping[str, int], k: int) -> float:
    """Share of the relevant ids among the first k."""
    relevant = {id for id, grade in relevance.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))
