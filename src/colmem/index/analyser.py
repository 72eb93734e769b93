"""From text to the terms of the lexical index, the same way for items and for queries.

A word is indexed by its stem, and a plural also as it stands, which a query weighs less: of all
inflections it gains most by it (CoSQA nDCG@10 +.007) and costs least (a tenth more terms).
A change of any rule or of the table needs a new ``ANALYSER_VERSION``: a store's index made by
another version is rebuilt when it is opened. Native code does the work once it is compiled; until
then, for the first texts of a new installation, its twin in Python does the same.
"""

from __future__ import annotations

import threading
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from colmem.function_words import FUNCTION_WORDS
from colmem_kernels import analysis_state, reference_analysis

ANALYSER_VERSION: Final = 4

SURFACE_WEIGHT: Final = 0.3
"""Weight of a plural as it stands beside that of its stem, chosen on the development sets."""

_COMPILE_AFTER_BYTES: Final = 1 << 20
"""Text after which compiling for a few seconds is cheaper than going on in Python."""
_CHUNK_BYTES: Final = 1 << 18
_ASCII_MAX: Final = 0x7F


class QueryTerms(NamedTuple):
    """The distinct terms of a query, each list in order of first mention.

    terms : stems, and whatever has no stem; surfaces : plurals as they stand; singles : characters
    that stand alone in a run without spaces, to be looked for among single characters
    """

    terms: list[str]
    surfaces: list[str]
    singles: list[str]


def analyse_items(texts: pa.StringArray) -> tuple[list[str], list[str]]:
    """Terms, and single characters of runs without spaces, of each text, separated by spaces."""
    data, offsets = _utf8(texts)
    if _native.is_on(len(data)):
        return _analyse_native(data, offsets)
    terms, singles = [], []
    for i in range(len(offsets) - 1):
        surfaces, stems, chars = _analyse_twin(data[offsets[i] : offsets[i + 1]].tobytes().decode())
        pairs = zip(stems, surfaces, strict=True)
        terms.append(" ".join(f"{s} {w}" if _is_plural(w, s) else s for s, w in pairs))
        singles.append(" ".join(chars))
    return terms, singles


def analyse_query(query: str, *, keep_function_words: bool = False) -> QueryTerms:
    """Terms to search for; none when the query has neither letters, digits nor symbols.

    Function words are left out, unless nothing is left or the whole query is quoted.
    """
    analyse = _known_query if len(query) <= _KNOWN_QUERY_CHARS_MAX else _query_terms
    return analyse(query, keep_function_words)


def _query_terms(query: str, keep_function_words: bool) -> QueryTerms:
    surfaces, stems, singles = _analyse_one(_normal(query))
    pairs = list(dict.fromkeys(zip(stems, surfaces, strict=True)))
    if not (keep_function_words or _is_quoted(query)):
        pairs = [pair for pair in pairs if pair[1] not in FUNCTION_WORDS] or pairs
    lone = set(surfaces).intersection(singles)
    return QueryTerms(
        list(dict.fromkeys(stem for stem, _ in pairs)),
        list(dict.fromkeys(word for stem, word in pairs if _is_plural(word, stem))),
        [char for char in dict.fromkeys(singles) if char in lone],
    )


_known_query: Final = lru_cache(maxsize=1024)(_query_terms)
_KNOWN_QUERY_CHARS_MAX: Final = 1000


def has_terms(query: str) -> bool:
    """Whether a query analyses to anything; a query of punctuation does not."""
    return bool(analyse_query(query).terms)


def _is_plural(word: str, stem: str) -> bool:
    return word.endswith("s") and not word.endswith("ss") and len(stem) < len(word)


def _is_quoted(query: str) -> bool:
    text = query.strip()
    return len(text) > 2 and text[0] == text[-1] == '"'


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _utf8(texts: pa.StringArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The texts in NFKC as UTF-8 behind one another: uint8 (n_bytes,), int64 (n + 1,)."""
    _, offset_bytes, data_bytes = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    held = np.frombuffer(offset_bytes, width)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_bytes or b"", np.uint8)[held[0] : held[-1]]
    offsets = held.astype(np.int64) - held[0]
    if data.size == 0 or data.max() <= _ASCII_MAX:
        return data, offsets
    encoded = [_normal(text).encode() for text in texts.to_pylist()]
    offsets[1:] = np.cumsum([len(text) for text in encoded])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


# The twin in Python.


@cache
def _table() -> reference_analysis.Table:
    data = files("colmem.index").joinpath("analysis_table.npz").read_bytes()
    with np.load(BytesIO(data)) as arrays:
        return reference_analysis.Table.of(arrays)


@cache
def _stemmer() -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer("english")).build()


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    if not (word.isascii() and word.isalpha()):
        return word
    stems: list[str] = _stemmer().analyze(word)
    return stems[0]


def _analyse_twin(text: str) -> tuple[list[str], list[str], list[str]]:
    surfaces, singles = reference_analysis.analyse(text, _table())
    return surfaces, [_stem(word) for word in surfaces], singles


# The native code.


class _Native:
    """Decides between the twin and native code, which may first have to be compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_bytes_by_twin = 0
        self._is_on = False

    def is_on(self, n_bytes: int) -> bool:
        """Whether to use native code for so much text: when compiled, or when much was to do."""
        if not self._is_on:
            with self._lock:
                self._n_bytes_by_twin += n_bytes
                is_much = self._n_bytes_by_twin > _COMPILE_AFTER_BYTES
                self._is_on = is_much or analysis_state.are_compiled()
        return self._is_on


_native: Final = _Native()


class _Scratch(threading.local):
    """The kernels with their working memory, kept by each thread for texts up to a chunk in all."""

    n_bytes = 0

    def grow(self, n_bytes: int) -> None:
        """Make room for texts of so many bytes."""
        from colmem_kernels import analysis, stemming  # noqa: PLC0415 - compiles them at first

        self.decode_texts, self.find_terms = analysis.decode_texts, analysis.find_terms
        self.write_terms, self.stem_terms = analysis.write_terms, stemming.stem_terms
        n_folded = analysis.FOLDED_PER_BYTE * n_bytes
        self.kinds = np.empty(n_bytes, np.uint8)
        self.places = np.empty(n_bytes + 1, np.int32)
        self.folded = np.empty(n_folded, np.uint8)
        self.spans = np.empty(analysis.SPANS_PER_CHAR * n_bytes, np.int64)
        self.surfaces = np.empty(analysis.OUT_PER_FOLDED * n_folded, np.uint8)
        self.singles = np.empty(analysis.OUT_PER_FOLDED * n_folded, np.uint8)
        self.memo = np.zeros((stemming.MEMO_WORDS, 4), np.uint64)
        self.stems = np.empty(2 * len(self.surfaces) + stemming.SPARE_BYTES, np.uint8)
        self.n_bytes = n_bytes


_scratch: Final = _Scratch()


class _Written(NamedTuple):
    """Terms of texts as bytes: those of text i end where those of text i + 1 begin."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    def texts(self) -> list[str]:
        """The terms of each text, separated by spaces."""
        data = self.data[: self.offsets[-1]].tobytes()
        bounds = self.offsets.tolist()
        pairs = pairwise(bounds)
        if data.isascii():
            text = data.decode()
            return [text[first : last - 1] if last > first else "" for first, last in pairs]
        return [data[first : last - 1].decode() if last > first else "" for first, last in pairs]


def _write_native(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], *, with_plurals: bool
) -> tuple[_Written, _Written, _Written]:
    """Surfaces, stems (with the plurals between them if asked for) and singles of texts.

    They stand in the thread's scratch, until the next call.
    """
    scratch, table = _scratch, _table()
    if scratch.n_bytes < len(data) or (scratch.n_bytes > _CHUNK_BYTES >= len(data)):
        scratch.grow(max(len(data), _CHUNK_BYTES))
    chars, spans, surface_ends, single_ends, stem_ends = np.empty((5, len(offsets)), np.int64)
    kinds, places, folded = scratch.kinds, scratch.places, scratch.folded
    scratch.decode_texts(data, offsets, *table, kinds, places, folded, chars)
    scratch.find_terms(kinds, places, folded, chars, scratch.spans, spans)
    surfaces = _Written(scratch.surfaces, surface_ends)
    singles = _Written(scratch.singles, single_ends)
    scratch.write_terms(kinds, places, folded, scratch.spans, spans, *surfaces, *singles)
    stems = _Written(scratch.stems, stem_ends)
    scratch.stem_terms(*surfaces, with_plurals, scratch.memo, *stems)
    return surfaces, stems, singles


def _analyse_native(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[list[str], list[str]]:
    terms: list[str] = []
    singles: list[str] = []
    first = 0
    while first < len(offsets) - 1:
        # As many texts as fit in a chunk, and at least one.
        last = int(np.searchsorted(offsets, offsets[first] + _CHUNK_BYTES, "right")) - 1
        last = max(last, first + 1)
        chunk = data[offsets[first] : offsets[last]]
        bounds = offsets[first : last + 1] - offsets[first]
        _, stems, chars = _write_native(chunk, bounds, with_plurals=True)
        terms += stems.texts()
        singles += chars.texts() if chars.offsets[-1] else [""] * (last - first)
        first = last
    return terms, singles


def _analyse_one(text: str) -> tuple[list[str], list[str], list[str]]:
    """Surfaces, their stems and the singles of one text."""
    data = text.encode()
    if not _native.is_on(len(data)):
        return _analyse_twin(text)
    bounds = np.array([0, len(data)])
    written = _write_native(np.frombuffer(data, np.uint8), bounds, with_plurals=False)
    surfaces, stems, singles = (each.texts()[0].split() for each in written)
    return surfaces, stems, singles
