"""Writes an answer out of the hits' own sentences, each quoted exactly and followed by its number.

Sentences are chosen one by one: near the question in meaning and words, from a good hit, covering
words of the question no earlier one has, and not repeating one. When even the best evidence is weak
the answer says that nothing stored answers, and cites nothing. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.recall.instructions import Format, read_instructions
from colmem.recall.sentences import split_units

MODEL = "extractive-v1"
NO_ANSWER = "Nothing stored answers this question."
ANSWER_CHARS_MAX = 1_000
EVIDENCE_MIN = 0.38
"""Strength of evidence below which nothing answers. Chosen by bench/quality_recall.py: of questions
asked of a corpus that is not about them 91 % fall below it, of answerable ones 2 %."""

Floats = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]
Analyse = Callable[[str], Sequence[str]]
Rarity = Callable[[str], float]

_UNITS_MAX = 400  # of all hits together; bounds the time of one recall
_UNITS_PER_HIT_MAX = 60
_SENTENCES_MAX = 5
_TRIES = 12  # sentences that do not fit are passed over at most this often

# Shares of a sentence's worth: nearness in meaning, question words held, its hit's score. Chosen by
# bench/quality_recall.py so that the answer holds the evidence as often as the top hits' text does.
_MEANING, _WORDS, _HIT = 0.15, 0.1, 0.75
_STRENGTH_WORDS = 0.3
_NEW_WORDS = 0.05  # bonus for question words no chosen sentence has
_REPEATS = 0.1  # penalty times the cosine with the nearest chosen sentence
_SAME = 0.95  # cosine from which two sentences say the same
_WORTH_MIN = 0.35  # a sentence below this share of the first one's worth is left out


class Source(NamedTuple):
    """A hit as evidence: its text and its score, 0..1."""

    text: str
    score: float


class Extract(NamedTuple):
    """An answer and the places, in the sources, of what it cites; citation mark n is cited[n-1]."""

    answer: str
    cited: list[int]


class Question(NamedTuple):
    """A question with what judges sentences by it.

    text : as asked; terms : its analysed terms without function words, and their weights summing
    to 1; embed : texts -> float32 (n, dim), rows L2-normalised, None without an embedder;
    analyse : text -> analysed terms, as the index has them.
    """

    text: str
    terms: list[str]
    weights: Floats
    embed: Embed | None
    analyse: Analyse

    @classmethod
    def read(
        cls,
        text: str,
        *,
        analyse: Analyse,
        query_terms: Analyse | None = None,
        embed: Embed | None = None,
        rarity: Rarity | None = None,
    ) -> Question:
        """Analyse a question.

        query_terms : question -> its terms without function words, ``analyse`` when not given;
        rarity : term -> a positive weight, higher for terms in fewer items; all equal without it.
        """
        terms = list(dict.fromkeys((query_terms or analyse)(text)))
        rarities = [rarity(term) if rarity else 1.0 for term in terms]
        weights = np.maximum(np.array(rarities, np.float32), np.float32(1e-6))
        shares = (weights / max(float(weights.sum()), 1e-6)).astype(np.float32)
        return cls(text, terms, shares, embed, analyse)

    def held(self, text: str) -> npt.NDArray[np.bool_]:
        """Which of the terms a text holds: bool (n_terms,)."""
        present = set(self.analyse(text))
        return np.array([term in present for term in self.terms], np.bool_)


class _Units(NamedTuple):
    """Quotable sentences: source of each, text, vectors (n, dim), terms held (n, t), worth (n,)."""

    source: list[int]
    text: list[str]
    vectors: Floats
    held: npt.NDArray[np.bool_]
    worth: Floats
    meaning: Floats


def answer(
    question: Question,
    sources: Sequence[Source],
    *,
    instructions: str | None = None,
    evidence_min: float = EVIDENCE_MIN,
) -> Extract:
    """Answer a question from sources, best first.

    ``evidence_min`` is the strength of evidence (see :func:`evidence`) below which nothing is said
    to answer. The places cited are in order of their first mark.
    """
    units = _read_units(question, sources)
    if not units.text or _strength(question, units) < evidence_min:
        return Extract(NO_ANSWER, [])
    wanted = read_instructions(instructions)
    return _write(units, _choose(question, units, wanted), wanted)


def evidence(question: Question, sources: Sequence[Source]) -> float:
    """How strong the best evidence is, 0..1: the share of the question one sentence speaks to."""
    return _strength(question, _read_units(question, sources))


def _strength(question: Question, units: _Units) -> float:
    if not units.text:
        return 0.0
    words = units.held @ question.weights
    both = _STRENGTH_WORDS * words + (1 - _STRENGTH_WORDS) * np.maximum(units.meaning, 0)
    # A sentence with nearly all the words answers, whatever a vector makes of a name or a number.
    return float(np.max(np.maximum(both, 0.5 * words)))


def _read_units(question: Question, sources: Sequence[Source]) -> _Units:
    places: list[int] = []
    texts: list[str] = []
    seen: set[str] = set()
    for place, source in enumerate(sources):
        for span in split_units(source.text)[:_UNITS_PER_HIT_MAX]:
            text = source.text[span.start : span.end]
            if len(texts) < _UNITS_MAX and text not in seen:
                seen.add(text)
                places.append(place)
                texts.append(text)
    held = np.zeros((len(texts), len(question.terms)), np.bool_)
    for i, text in enumerate(texts):
        held[i] = question.held(text)
    if question.embed is None or not texts:
        vectors = np.zeros((len(texts), 1), np.float32)
        meaning = held @ question.weights
    else:
        embedded = question.embed([question.text, *texts])
        vectors = embedded[1:]
        meaning = vectors @ embedded[0]
    hits = np.array([sources[place].score for place in places], np.float32)
    best = max(float(hits.max()), 1e-6) if len(hits) else 1.0
    worth = _MEANING * meaning + _WORDS * (held @ question.weights) + _HIT * hits / best
    return _Units(places, texts, vectors, held, worth.astype(np.float32), meaning)


def _choose(question: Question, units: _Units, wanted: Format) -> list[int]:
    """Units to quote, best first, within the limits asked for."""
    chosen: list[int] = []
    covered = np.zeros(len(question.terms), np.bool_)
    nearest = np.zeros(len(units.text), np.float32)
    left = np.ones(len(units.text), np.bool_)
    chars, words = wanted.chars_max or ANSWER_CHARS_MAX, wanted.words_max
    sentences_max = wanted.sentences_max or _SENTENCES_MAX
    first_worth = 0.0
    for _ in range(sentences_max + _TRIES):
        fresh = (units.held & ~covered) @ question.weights
        worth = units.worth + _NEW_WORDS * fresh - _REPEATS * nearest
        left &= nearest < _SAME
        worth = np.where(left, worth, -np.inf)
        at = int(np.argmax(worth))
        if not left.any() or len(chosen) == sentences_max:
            break
        if chosen and worth[at] < _WORTH_MIN * first_worth:
            break
        left[at] = False
        size_chars = len(units.text[at]) + len(" [10] ")
        size_words = len(units.text[at].split()) + 1
        fits = size_chars <= chars and (words is None or size_words <= words)
        if chosen and not fits:
            continue
        if not chosen:
            first_worth = float(worth[at])
        chosen.append(at)
        if not fits:  # The best is quoted in part rather than a worse one whole.
            break
        chars -= size_chars
        words = None if words is None else words - size_words
        covered |= units.held[at]
        nearest = np.maximum(nearest, units.vectors @ units.vectors[at])
    return chosen


def _write(units: _Units, chosen: list[int], wanted: Format) -> Extract:
    cited: list[int] = []
    parts: list[str] = []
    for at in chosen:
        place = units.source[at]
        if place not in cited:
            cited.append(place)
        mark = f"[{cited.index(place) + 1}]"
        parts.append(_quote(units.text[at], mark, wanted))
    if wanted.bullets:
        return Extract("\n".join(f"- {part}" for part in parts), cited)
    return Extract(" ".join(parts), cited)


def _quote(text: str, mark: str, wanted: Format) -> str:
    """A unit and its mark; its beginning only where the limits ask for less."""
    words_max = None if wanted.words_max is None else wanted.words_max - 1 - wanted.bullets
    if words_max is not None and len(text.split()) > max(words_max, 1):
        text = _first_words(text, max(words_max, 1))
    chars_max = (wanted.chars_max or ANSWER_CHARS_MAX) - len(mark) - 1 - 2 * wanted.bullets
    if len(text) > max(chars_max, 1):
        text = text[: max(chars_max - 1, 1)].rstrip() + "…"
    separator = "" if words_max is not None and words_max < 1 else " "
    return f"{text}{separator}{mark}"


def _first_words(text: str, count: int) -> str:
    end = 0
    for _ in range(count):
        while end < len(text) and text[end].isspace():
            end += 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return text[:end] + "…"
