"""The analysis kernels against their twin, and the stemmer against tantivy's."""

import gzip
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from colmem.index import analyser
from colmem_kernels import analysis, analysis_state, reference_analysis, stemming

TABLE = analyser._table()
AWKWARD = [*"aAbBsSzZé09_-./\\',’&+#:( ", *"ßİς水東가나ไท😀ي٣ﬁ𝐀が"]
AWKWARD += ["\u0301", "\u00ad", "\u200d", "\u094d", "\0", "\u3099"]
TEXTS = [
    "",
    " ",
    "x",
    "getUserName HTTPServer GPUs iPhone15Pro s3Bucket XMLHttpRequest2",
    "multi-agent snake_case kebab-case-word a.b/c\\d AT&T",
    "20.04 v1.2.3 1,000,000 3.14, 1,a 12,34.5",
    "C++ C# F#x c+ +c ++ #",
    "don't John's we'll rock'n'roll l’homme O'Brien 's",
    "a" * 1000,
    "é" * 500,
    "水" * 300,
    "a-" * 100,
    "東京都庁舎 hello你好world 1水2",
    "-leading trailing- dou--ble _",
    "e\u0301té cafe\u0301 \u0301x",
]


def analyse(texts):
    """Surfaces, singles and stems of texts in NFKC, as the kernels make them."""
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    data = np.frombuffer(b"".join(encoded), np.uint8)
    data.flags.writeable = False
    n, n_bytes = len(texts), len(data)
    ends = np.empty((5, n + 1), np.int64)
    kinds, places = np.empty(n_bytes, np.uint8), np.empty(n_bytes + 1, np.int32)
    folded = np.empty(analysis.FOLDED_PER_BYTE * n_bytes, np.uint8)
    spans = np.empty(analysis.SPANS_PER_CHAR * n_bytes, np.int64)
    n_chars = analysis.decode_texts(data, offsets, *TABLE, kinds, places, folded, ends[0])
    assert n_chars == ends[0, -1] <= n_bytes
    n_folded = int(places[n_chars])
    assert n_folded <= len(folded)
    n_spans = analysis.find_terms(kinds, places, folded, ends[0], spans, ends[1])
    assert n_spans == ends[1, -1] <= analysis.SPANS_PER_CHAR * n_chars
    surfaces = np.empty(analysis.OUT_PER_FOLDED * n_folded, np.uint8)
    singles = np.empty(analysis.OUT_PER_FOLDED * n_folded, np.uint8)
    analysis.write_terms(kinds, places, folded, spans, ends[1], surfaces, ends[2], singles, ends[3])
    assert max(ends[2, -1], ends[3, -1]) <= len(surfaces)
    stems = np.empty(2 * len(surfaces) + stemming.SPARE_BYTES, np.uint8)
    memo = np.zeros((stemming.MEMO_WORDS, 4), np.uint64)
    stemming.stem_terms(surfaces, ends[2], False, memo, stems, ends[4])
    return [
        [_terms(surfaces, ends[2], i), _terms(singles, ends[3], i), _terms(stems, ends[4], i)]
        for i in range(n)
    ]


def _terms(data, ends, i):
    text = data[ends[i] : ends[i + 1]].tobytes().decode()
    assert text == "" or text.endswith(" ")
    return text.split(" ")[:-1]


def twin(text):
    surfaces, singles = reference_analysis.analyse(text, TABLE)
    return [surfaces, singles, [analyser._stem(word) for word in surfaces]]


def test_kernels_equal_their_twin_on_awkward_texts():
    texts = [unicodedata.normalize("NFKC", text) for text in TEXTS]
    assert analyse(texts) == [twin(text) for text in texts]


@settings(max_examples=200)
@given(st.lists(st.text(st.sampled_from(AWKWARD), max_size=30), min_size=1, max_size=20))
def test_kernels_equal_their_twin(texts):
    texts = [unicodedata.normalize("NFKC", text) for text in texts]
    assert analyse(texts) == [twin(text) for text in texts]


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_kernels_equal_their_twin_on_any_text(text):
    text = unicodedata.normalize("NFKC", text)
    assert analyse([text]) == [twin(text)]


def test_every_code_point_folds_within_its_room():
    text = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    surfaces, singles, _ = analyse([text])[0]
    assert surfaces
    assert singles
    assert max(len(term.encode()) for term in surfaces) <= reference_analysis.TERM_BYTES_MAX


def test_a_long_word_is_cut_between_characters():
    ((surfaces, _, _),) = analyse(["a" + "é" * 200])
    assert surfaces == [("a" + "e" * 200)[: reference_analysis.TERM_BYTES_MAX]]
    ((surfaces, _, _),) = analyse(["x" + "ж" * 200])
    assert surfaces == ["x" + "ж" * ((reference_analysis.TERM_BYTES_MAX - 1) // 2)]


def test_a_writable_or_strided_text_is_told_apart():
    strided = np.zeros(8, np.uint8)[::2]
    with pytest.raises(TypeError):
        analysis.decode_texts(
            strided, np.array([0, 4]), *TABLE, strided, strided, strided, np.zeros(2, np.int64)
        )


def _words():
    """Words of the bundled texts, and every rule of the stemmer on roots of several lengths."""
    words = set()
    for path in sorted((Path(__file__).parents[2] / "data").glob("*.jsonl*")):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = json.dumps(json.loads(line), ensure_ascii=False).casefold()
                words.update("".join(c if "a" <= c <= "z" else " " for c in text).split())
    roots = ["", "a", "b", "ab", "ba", "bab", "y", "day", "sky", "toy", "add", "hop", "past"]
    roots += ["gener", "commun", "arsen", "univers", "later", "emerg", "organ", "inter", "yell"]
    roots += ["relat", "ration", "happ", "lux", "box", "cry", "skiing", "troubl", "falling"]
    for suffix, _, condition in stemming._RULES:
        words.update(root + suffix.lower() for root in roots)
        if condition != stemming._WHOLE_WORD:
            ends = ("s", "ed", "ly")
            words.update(root + suffix.lower() + end for root in roots for end in ends)
    return sorted(word for word in words if word)


def test_the_stemmer_equals_tantivys():
    words = _words()
    assert len(words) > 1000
    stem = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer("english")).build()
    expected = stem.analyze(" ".join(words))
    # Twice over, so that the second half comes from the memo.
    found = analyse([" ".join(words), " ".join(words)])
    assert found[0][2] == expected
    assert found[1][2] == expected


def test_kernels_say_when_they_are_compiled():
    assert analysis_state.are_compiled() is True  # imported above
