"""Every weight of hybrid ranking, as recorded in the store.

The defaults were chosen by ``bench/quality.py`` on LoCoMo-a, SciFact, the development part of
CoSQA and four languages of XQuAD; the gain of each step is in bench/results/quality.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from colmem.contract.errors import ConfigError

# The upper bound of each setting that is a count; every other one is a share or weight in 0..1.
_COUNTS_MAX = {
    "pool_per_leg": 10_000,
    "rescore_top": 10_000,
    "rescore_pieces": 1_000_000,
    "dialogue_expand": 200,
    "opening_pieces": 10_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """Weights and depths of hybrid ranking.

    passages
        Whether an item of more than about 150 words is also searched by its passages: it is then as
        near to a query as the best of them.
    pool_per_leg
        How many of each leg's best are fused; independent of the page asked for.
    rescore_top, rescore_pieces
        How many of the fused best are rescored by MaxSim, and how many word pieces they may have in
        all: short items are rescored in greater number for the same time. 0 switches it off.
    weight_vector, weight_maxsim
        Shares of the cosine and of MaxSim in a score; the rest is BM25's.
    opening_pieces, opening_share
        Within MaxSim, that with an item's first pieces alone counts by this share: titles,
        signatures and first sentences say what a text is about. A share of 0 switches it off.
    code_weight_vector, code_weight_maxsim, code_share
        Both shares when the candidates are source code: when at least ``code_share`` of their
        pieces are punctuation. A question in prose seldom has the words of the code it is about.
    code_weight_distinct
        Share, for source code, of the cosine with an item's distinct pieces: a name or bracket
        that stands there twenty times says no more than once.
    fit_full, fit_full_maxsim, fit_min
        A query whose share of words known whole to the embedder is below ``fit_full`` gets the
        cosine's share reduced in proportion, at most to ``fit_min`` of it; and MaxSim's, which
        matches parts of foreign words too, below ``fit_full_maxsim``.
    dialogue
        Whether turns of a conversation lend each other their scores (the weights below).
    dialogue_previous, dialogue_next, dialogue_second
        Share of the score of the turn before, after, and two away on either side.
    dialogue_answer
        Further share of the turn before when it asks a question.
    dialogue_thread
        Share of the mean of the three best scores of the whole conversation.
    dialogue_named
        Bonus of a turn whose speaker the query names.
    dialogue_expand
        Turns beside this many of the best become candidates too.
    near_duplicates
        Cosine from which two candidates count as near-identical: the better one keeps its place,
        the rest follow after all other candidates; 0 (the default) defers none.
    """

    passages: bool = True
    pool_per_leg: int = 200
    rescore_top: int = 500
    rescore_pieces: int = 12_800
    weight_vector: float = 0.3
    weight_maxsim: float = 0.4
    opening_pieces: int = 32
    opening_share: float = 0.5
    code_weight_vector: float = 0.25
    code_weight_distinct: float = 0.25
    code_weight_maxsim: float = 0.45
    code_share: float = 0.3
    fit_full: float = 0.5
    fit_full_maxsim: float = 0.3
    fit_min: float = 0.3
    dialogue: bool = True
    dialogue_previous: float = 0.1
    dialogue_next: float = 0.05
    dialogue_second: float = 0.1
    dialogue_answer: float = 0.3
    dialogue_thread: float = 0.6
    dialogue_named: float = 0.25
    dialogue_expand: int = 25
    near_duplicates: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), type(field.default))
        _check_shares("weight_vector", "weight_maxsim", settings=self)
        code = ("code_weight_vector", "code_weight_distinct", "code_weight_maxsim")
        _check_shares(*code, settings=self)

    def to_dict(self) -> dict[str, Any]:
        """Name to value, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RankingSettings:
        """Settings from names and values; what is not named takes its default.

        Raises
        ------
        ConfigError
            When a name is unknown or a value is out of its range.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(
                f"ranking setting `{unknown[0]}` is unknown; expected one of "
                + ", ".join(sorted(known))
            )
        return cls(**values)


def _check(name: str, value: Any, kind: type) -> None:
    if kind is bool:
        if not isinstance(value, bool):
            raise ConfigError(f"ranking setting `{name}` is {value!r}, expected true or false")
        return
    most = _COUNTS_MAX.get(name)
    expected = f"an integer from 0 to {most}" if most else "a number from 0 to 1"
    is_number = isinstance(value, int if most else (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= (most or 1):
        raise ConfigError(f"ranking setting `{name}` is {value!r}, expected {expected}")


def _check_shares(*names: str, settings: RankingSettings) -> None:
    shares = [getattr(settings, name) for name in names]
    if sum(shares) > 1 + 1e-9:
        held = [f"{name} {share}" for name, share in zip(names, shares, strict=True)]
        raise ConfigError(
            f"ranking settings {' and '.join(held)} exceed 1 together; lower one of them"
        )
