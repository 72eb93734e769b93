"""What ``engine.explain`` answers with: values only, which cross every surface as JSON.

The parts of a hit add up to its score. Everything is stated as it counted in the ranking.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from colmem.contract import FetchMode


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The passage of a long item that its cosine comes from: characters ``start`` to ``end``."""

    start: int
    end: int
    text: str


class ExplainedHit(msgspec.Struct, frozen=True, kw_only=True):
    """How one item came to its place.

    rank
        Its place in the whole ranking, from 1.
    terms
        What each term of the query adds to its BM25, of those it holds.
    bm25, cosine, maxsim
        As they counted: 0 BM25 for an item that was not among the keyword leg's best; None where
        the ranking did not ask for it.
    ranks
        Its place in the keyword leg, the vector leg and the blend of both before rescoring; None
        where it is not among the leg's best.
    parts
        What adds up to the score, named as the settings: ``lexical``, ``vector``, ``maxsim``,
        ``dialogue_…``; ``ceiling`` is what the score was lowered by to stay below better ones, and
        ``near_duplicates`` the same for an item that was deferred.
    span
        The passage that matched, of an item long enough to have several.
    """

    id: str
    rank: int
    score: float
    terms: dict[str, float]
    bm25: float | None
    cosine: float | None
    maxsim: float | None
    ranks: dict[str, int | None]
    parts: dict[str, float]
    span: Span | None = None


class FilterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the filter does.

    admitted
        Items it admits; within: items its reach admits.
    clauses
        How many of those within each clause admits alone.
    keyword, vector
        How either leg applies it; empty where the leg does not run.
    """

    admitted: int
    within: int
    clauses: dict[str, int]
    keyword: str
    vector: str


class Reason(StrEnum):
    """Why an item did not come."""

    NOT_STORED = "not_stored"
    FORGOTTEN = "forgotten"
    EXPIRED = "expired"
    OUTSIDE_REACH = "outside_reach"
    FILTERED = "filtered"
    NO_TERM = "no_term"
    BEFORE_PAGE = "before_page"
    BEHIND_LIMIT = "behind_limit"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A clause of the filter that refuses an item: what it wants and what the item has, as JSON."""

    clause: str
    wanted: str
    held: str


class WhyNot(msgspec.Struct, frozen=True, kw_only=True):
    """Why an item is not on the page; ``hit`` when it has a place in the ranking."""

    id: str
    reason: Reason
    detail: str
    refused_by: list[Refusal] = []
    hit: ExplainedHit | None = None

    @classmethod
    def not_stored(cls, id: str) -> WhyNot:
        """No item has this id, as far as the asker may know."""
        return cls(id=id, reason=Reason.NOT_STORED, detail="no item with this id is stored")


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How a page of fetch came about.

    terms
        What the query was searched by.
    weights
        Shares of the legs and of MaxSim for this query; empty outside hybrid mode.
    extremes
        Lowest and highest score of the admitted items in each leg, which the blend maps to 0 and 1.
    stages_ms
        Time of each stage.
    why_not
        Of the id asked for, when it is not among the hits.
    """

    mode: FetchMode
    terms: list[str]
    weights: dict[str, float]
    extremes: dict[str, tuple[float, float]]
    filter: FilterPlan
    stages_ms: dict[str, float]
    hits: list[ExplainedHit]
    why_not: WhyNot | None = None
