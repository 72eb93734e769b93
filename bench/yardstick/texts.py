"""Seeded texts of about 60 words: a made-up Zipf vocabulary, and real sentences between its words.

A text is a run of pieces, each a made-up word or a real sentence, so that texts are made batch by
batch from arrays and the terms of every text are known without reading it. Made-up words end in
letters that no English stemmer strips: they are one term in every contender.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

N_WORDS = 50_000
ZIPF_EXPONENT, ZIPF_SHIFT = 1.07, 2.7  # Mandelbrot's form, as fitted to English
REAL_SHARE = 0.25
REAL_SENTENCES, WORDS_BESIDE = 2, 14
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
_ENDINGS = "kpbvzx"
_TOKEN = re.compile(r"[^\W_]+")
BUNDLED = Path(__file__).parents[2] / "data" / "xquad-en" / "paragraphs.jsonl.gz"


@dataclass(frozen=True)
class Pieces:
    """What texts are made of: texts, and the terms of each.

    terms : int32, flat; offsets : int64 (n_pieces + 1,); n_terms counts distinct terms
    """

    texts: list[str]
    vocabulary: list[str]
    terms: npt.NDArray[np.int32]
    offsets: Ints

    @property
    def n_sentences(self) -> int:
        return len(self.texts) - N_WORDS


@dataclass(frozen=True)
class TextBatch:
    """Texts and their terms: term_ids int32, flat; offsets int64 (n_texts + 1,)."""

    texts: list[str]
    term_ids: npt.NDArray[np.int32]
    offsets: Ints


def made_up_words(rng: np.random.Generator) -> list[str]:
    """Distinct words, the frequent ones shorter, as in a language."""
    words: dict[str, None] = {}
    while len(words) < N_WORDS:
        ranks = np.arange(len(words), 2 * N_WORDS)
        extra = rng.integers(0, 2, len(ranks)) + np.log2(ranks + 1).astype(int) // 6
        sizes = (1 + np.minimum(3, extra)).tolist()
        syllables = rng.integers(0, len(_SYLLABLES), (len(ranks), 4)).tolist()
        endings = rng.integers(0, len(_ENDINGS), len(ranks)).tolist()
        for size, picks, ending in zip(sizes, syllables, endings, strict=True):
            stem = "".join([_SYLLABLES[at] for at in picks[:size]])
            words[stem + _ENDINGS[ending]] = None
    return list(words)[:N_WORDS]


def real_sentences(path: Path) -> list[str]:
    """Sentences of the texts in JSON lines, of 5 to 40 words each."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    texts = [item["text"] if "text" in item else item["body"]["text"] for item in items]
    sentences = [s for text in texts for s in re.split(r"(?<=[.!?])\s+", text)]
    return list(dict.fromkeys(s for s in sentences if 5 <= len(s.split()) <= 40))


def terms_of(text: str) -> list[str]:
    """Lower-case runs of letters and digits, in order."""
    return _TOKEN.findall(text.lower())


def make_pieces(seed: int, path: Path = BUNDLED) -> Pieces:
    words = made_up_words(np.random.default_rng([seed, 0]))
    sentences = real_sentences(path)
    number = {word: i for i, word in enumerate(words)}
    flat, sizes = list(range(N_WORDS)), [1] * N_WORDS
    for sentence in sentences:
        terms = [number.setdefault(term, len(number)) for term in terms_of(sentence)]
        flat += terms
        sizes.append(len(terms))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Pieces(words + sentences, list(number), np.array(flat, np.int32), offsets)


def zipf_table() -> npt.NDArray[np.float64]:
    """Cumulative probabilities of the made-up words, most frequent first."""
    weights = (np.arange(1, N_WORDS + 1) + ZIPF_SHIFT) ** -ZIPF_EXPONENT
    return np.cumsum(weights / weights.sum())


def make_texts(
    pieces: Pieces, table: npt.NDArray[np.float64], n: int, words: int, rng: np.random.Generator
) -> TextBatch:
    """``n`` texts of about ``words`` words; a quarter of them hold real sentences."""
    sizes = np.clip(np.rint(rng.normal(words, words / 5, n)), max(3, words // 3), 2 * words)
    is_real = (rng.random(n) < REAL_SHARE) & (words > WORDS_BESIDE)
    sizes = np.where(is_real, REAL_SENTENCES + WORDS_BESIDE, sizes).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    flat = np.searchsorted(table, rng.random(starts[-1]), "right").clip(max=N_WORDS - 1)
    for place in range(REAL_SENTENCES):
        at = starts[:-1][is_real] + place
        flat[at] = N_WORDS + rng.integers(0, pieces.n_sentences, len(at))
    texts = [""] * n
    listed, ends = flat.tolist(), starts.tolist()
    for i in range(n):
        texts[i] = " ".join(map(pieces.texts.__getitem__, listed[ends[i] : ends[i + 1]]))
    term_ids, piece_ends = _gather(pieces, flat)
    return TextBatch(texts, term_ids, np.concatenate([[0], piece_ends])[starts])


def _gather(pieces: Pieces, flat: Ints) -> tuple[npt.NDArray[np.int32], Ints]:
    """The terms of a run of pieces, and where each piece ends among them."""
    sizes = pieces.offsets[flat + 1] - pieces.offsets[flat]
    ends = np.cumsum(sizes)
    shift = pieces.offsets[flat] - (ends - sizes)
    return pieces.terms[np.arange(ends[-1]) + np.repeat(shift, sizes)], ends
