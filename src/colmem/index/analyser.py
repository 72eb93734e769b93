"""From text to the terms of the lexical index, the same way for items and for queries.

A change of any rule or of the table needs a new ``ANALYSER_VERSION``: a store's index made by
another version is rebuilt when it is opened.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from colmem.function_words import FUNCTION_WORDS
from colmem_kernels import reference_analysis

ANALYSER_VERSION: Final = 1

QUERY_TERMS_MAX: Final = 256
"""Distinct terms of a query that are searched for: those held by the fewest items."""


class QueryTerms(NamedTuple):
    """The distinct terms of a query, in order of first mention.

    terms : analysed terms; singles : characters that stand alone in a run without spaces, to be
    looked for among single characters
    """

    terms: list[str]
    singles: list[str]


@cache
def _table() -> reference_analysis.Table:
    data = files("colmem.index").joinpath("analysis_table.npz").read_bytes()
    with np.load(BytesIO(data)) as arrays:
        return reference_analysis.Table.of(arrays)


@cache
def _stemmer() -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer("english")).build()


@lru_cache(maxsize=1 << 18)
def _stem(word: str) -> str:
    if not (word.isascii() and word.isalpha()):
        return word
    stems: list[str] = _stemmer().analyze(word)
    return stems[0]


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def analyse_items(texts: pa.StringArray) -> tuple[list[str], list[str]]:
    """Terms, and single characters of scripts without spaces, of each text, separated by spaces."""
    terms, singles = [], []
    for text in texts.to_pylist():
        words, chars = reference_analysis.analyse(_normal(text), _table(), _stem)
        terms.append(" ".join(words))
        singles.append(" ".join(chars))
    return terms, singles


def analyse_query(query: str, *, keep_function_words: bool = False) -> QueryTerms:
    """Terms to search for; none when the query has neither letters, digits nor symbols.

    Function words are left out, unless nothing is left or the whole query is quoted.
    """
    text = _normal(query)
    terms, singles = reference_analysis.analyse(text, _table(), _stem)
    if not (keep_function_words or _is_quoted(query)):
        plain, _ = reference_analysis.analyse(text, _table())
        kept = [term for term, word in zip(terms, plain, strict=True) if word not in FUNCTION_WORDS]
        terms = kept or terms
    lone = [char for char in singles if char in terms]
    return QueryTerms(list(dict.fromkeys(terms)), list(dict.fromkeys(lone)))


def _is_quoted(query: str) -> bool:
    text = query.strip()
    return len(text) > 2 and text[0] == text[-1] == '"'


def has_terms(query: str) -> bool:
    """Whether a query analyses to anything; a query of punctuation does not."""
    return bool(analyse_query(query, keep_function_words=True).terms)
