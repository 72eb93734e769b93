"""Takes scores apart into what adds up to them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from colmem.ranked import Legs
from colmem.retrieval import dialogue
from colmem.retrieval.fuse import blend_parts, unit
from colmem.retrieval.hybrid import Head
from colmem.retrieval.settings import RankingSettings
from colmem.schema import RowIds, Scores


class HeadParts:
    """Takes scores of a hybrid ranking's head apart, stage by stage."""

    def __init__(self, head: Head, legs: Legs, settings: RankingSettings) -> None:
        self._head = head
        self._legs = legs
        self._fused = places(head.fused.rows)
        self._rescored = places(head.rescored.rows)
        self._lent = places(head.lent.rows)
        self._keep = 1.0 - head.weights.maxsim if len(head.maxsim) else 1.0
        self._most = 1.0
        self._shares: dict[str, Scores] = {}
        if head.turns is not None:
            self._most, self._shares = dialogue.shares(head.rescored, head.turns, settings)

    def bm25(self, row: int) -> float:
        """A candidate's BM25 as it counted."""
        rows = self._head.candidates.rows
        at = int(np.searchsorted(rows, row))
        held = at < len(rows) and rows[at] == row
        return float(self._head.candidates.lexical[at]) if held else 0.0

    def blended(
        self, bm25: float, cosine: float, bounds: tuple[float, float], keep: float
    ) -> dict[str, float]:
        """What both legs add to a score, of which rescoring keeps a share."""
        by_words, by_meaning = blend_parts(
            np.array([bm25], np.float32),
            np.array([cosine], np.float32),
            vector_bounds=self._legs.vector_bounds,
            lexical_bounds=bounds,
            weights=self._head.weights,
        )
        return {"lexical": keep * float(by_words[0]), "vector": keep * float(by_meaning[0])}

    def parts(
        self, row: int, bm25: float, cosine: float, score: float
    ) -> tuple[float | None, dict[str, float]]:
        """A candidate's MaxSim, and what adds up to its score."""
        head = self._head
        parts = self.blended(bm25, cosine, self._legs.lexical_bounds, self._keep)
        place, maxsim = self._fused[row] - 1, None
        if place < len(head.maxsim):
            maxsim = float(head.maxsim[place])
            parts["maxsim"] = head.weights.maxsim * maxsim
            if len(head.distinct):
                by_meaning = head.weights.vector + head.weights.distinct
                parts["vector"] *= head.weights.vector / by_meaning
                of_set = unit(head.distinct[place : place + 1], self._legs.vector_bounds)
                parts["distinct"] = head.weights.distinct * float(of_set[0])
        elif len(head.maxsim):
            at = self._rescored[row] - 1
            parts = lowered(parts, float(head.rescored.scores[at]), "ceiling")
        parts = {name: part / self._most for name, part in parts.items()}
        for name, added in self._shares.items():
            share = float(added[self._rescored[row] - 1])
            if share:
                parts[name] = share
        lent = float(head.lent.scores[self._lent[row] - 1])
        if score < lent:
            parts["near_duplicates"] = score - lent
        return maxsim, parts


def facts_of(
    *,
    ranks: Mapping[str, int | None],
    parts: dict[str, float],
    bm25: float | None = None,
    cosine: float | None = None,
    maxsim: float | None = None,
) -> dict[str, Any]:
    """The fields of an explained hit that rest on its mode."""
    return {"bm25": bm25, "cosine": cosine, "maxsim": maxsim, "ranks": ranks, "parts": parts}


def lowered(parts: dict[str, float], score: float, name: str) -> dict[str, float]:
    """Parts with what the score was lowered by, when it is below their sum."""
    difference = score - sum(parts.values())
    return {**parts, name: difference} if difference < -1e-6 else parts


def places(rows: RowIds) -> dict[int, int]:
    """Place of each row of a ranking, from 1."""
    return {row: place for place, row in enumerate(rows.tolist(), 1)}
