"""What a text is found by."""

import unicodedata

import pyarrow as pa
import pytest

from colmem.index import analyser
from colmem.index.analyser import analyse_items, analyse_query, has_terms


@pytest.fixture(params=["twin", "native"])
def form(request, monkeypatch):
    """Both ways to analyse."""
    analyser._known_query.cache_clear()
    monkeypatch.setattr(analyser._native, "is_on", lambda n_bytes: request.param == "native")
    yield request.param
    analyser._known_query.cache_clear()


def finds(query, text):
    """Whether an item of this text holds a term of the query."""
    terms, singles = analyse_items(pa.array([text]))
    wanted = analyse_query(query)
    held = set(terms[0].split())
    return not (
        held.isdisjoint(wanted.terms + wanted.surfaces)
        and set(singles[0].split()).isdisjoint(wanted.singles)
    )


FOUND = [
    # Identifiers: the whole and each part.
    ("getUserName", "call getUserName() first"),
    ("user", "call getUserName() first"),
    ("name", "call getUserName() first"),
    ("getusername", "call getUserName() first"),
    ("get_user_name", "call getUserName() first"),
    ("getUserName", "def get_user_name(self):"),
    ("snake_case", "a snake_case name"),
    ("snake", "a snake_case name"),
    ("HTTPServer", "class HTTPServer:"),
    ("server", "class HTTPServer:"),
    ("http", "class HTTPServer:"),
    ("GPU", "two GPUs here"),
    ("GPUs", "one GPU here two GPUs"),
    ("multi-agent", "a multi-agent system"),
    ("agent", "a multi-agent system"),
    ("multi", "a multi-agent system"),
    ("multiagent", "a multi-agent system"),
    ("src/colmem/engine.py", "see src/colmem/engine.py"),
    ("engine.py", "see src/colmem/engine.py"),
    ("colmem", "see src/colmem/engine.py"),
    ("node.js", "runs on node.js"),
    ("node", "runs on node.js"),
    ("s3Bucket", "the s3Bucket is full"),
    ("bucket", "the s3Bucket is full"),
    # Numbers and versions.
    ("20.04", "ubuntu 20.04 was used"),
    ("ubuntu 20.04", "ubuntu 20.04 was used"),
    ("v1.2.3", "release v1.2.3"),
    ("1000000", "1,000,000 rows"),
    ("1,000,000", "1,000,000 rows"),
    ("GB/s", "reads 14 GB/s"),
    ("C++", "written in C++ and C"),
    ("C#", "written in C# and F#"),
    ("AT&T", "AT&T sells phones"),
    # Ordinary words with marks.
    ("don't", "I don't know"),
    ("dont", "I don't know"),
    ("don’t", "I don't know"),
    ("John", "John's house"),
    ("John's", "the house of John"),
    ("TODO: fix", "# TODO: fix this"),
    ('a"b', 'say a"b now'),
    ("(x", "f(x, y)"),
    ("field:value", "set field:value"),
    ("NOT x", "is NOT x"),
    ("AND", "this AND that"),
    ("~2", "take 2"),
    ("^3", "take 3"),
    # Inflections.
    ("running", "he runs"),
    ("stores", "store it"),
    ("store", "two stores"),
    # Accents and case, in either normal form.
    ("café", "the café"),
    ("cafe\u0301", "the café"),
    ("café", "the cafe\u0301"),
    ("cafe", "the café"),
    ("CAFÉ", "the café"),
    ("naïve", "a naive one"),
    ("STRASSE", "die Straße"),
    ("straße", "DIE STRASSE"),
    ("ΟΔΟΣ", "η οδος"),
    ("οδός", "Η ΟΔΟΣ"),
    ("istanbul", "İstanbul"),
    ("ISTANBUL", "ıstanbul"),
    ("Łódź", "lodz"),
    ("ﬁnd", "find"),
    ("ｆｕｌｌ", "full width"),
    ("x²", "x2"),
    ("елка", "ёлка"),
    ("ΰ", "υ"),
    # Scripts without spaces: words inside a run, single characters, mixed runs.
    ("權威事實", "系统把機器推論洗成權威事實了"),
    ("機器推論", "系统把機器推論洗成權威事實了"),
    ("事實", "系统把機器推論洗成權威事實了"),
    ("權", "系统把機器推論洗成權威事實了"),
    ("系", "系统把機器推論洗成權威事實了"),
    ("你好", "hello tantivy你好world"),
    ("tantivy", "hello tantivy你好world"),
    ("world", "hello tantivy你好world"),
    ("都庁", "東京都庁舎"),
    ("東京", "東京都庁舎"),
    ("プログラム", "新しいプログラムを書く"),
    ("ｶﾞ", "ガラス"),
    ("か\u3099", "がっこう"),
    ("데이터베이스", "데이터베이스를 만든다"),
    ("데이터", "데이터베이스를 만든다"),
    (unicodedata.normalize("NFD", "데이터"), "데이터베이스를 만든다"),
    ("ไทย", "ภาษาไทยง่าย"),
    ("ລາວ", "ພາສາລາວ"),
    ("ខ្មែរ", "ភាសាខ្មែរ"),
    ("年", "2024年"),
    ("2024", "2024年"),
    # Other scripts.
    ("भाषा", "हिन्दी भाषा"),
    ("العربية", "اللغة العَرَبِيَّة"),
    ("שלום", "שָׁלוֹם"),
    ("язык", "русский ЯЗЫК"),
    ("২০২৪", "সাল 2024"),
    ("🚀", "go 🚀 now"),
    ("→", "a → b"),
]


@pytest.mark.parametrize(("query", "text"), FOUND)
def test_a_query_finds_the_text(form, query, text):
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cat", "concatenate"),
        ("事實", "事情實在"),
        ("user", "superuser"),
    ],
)
def test_a_query_does_not_find_the_text(form, query, text):
    assert not finds(query, text)


@pytest.mark.parametrize(
    "query", ["", " ", "*", "\\", "...", '""', '"' * 10_000, "()[]{}", "\0", "\u0301"]
)
def test_punctuation_has_no_terms(form, query):
    assert not has_terms(query)
    assert analyse_query(query).terms == []


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("getUserName", "getusernam"),
        ("multi-agent", "multiag"),
        ("snake_case", "snakecas"),
        ("ubuntu 20.04", "20.04"),
        ("C++", "c++"),
        ("F#", "f#"),
        ("1,000,000", "1000000"),
        ("don't", "dont"),
        ("GPUs", "gpus"),
        ("v1.2.3", "v1.2.3"),
    ],
)
def test_the_whole_is_a_term(form, text, term):
    assert term in analyse_items(pa.array([text]))[0][0].split()
    assert term in analyse_query(text).terms


def test_both_ways_make_the_same_terms(monkeypatch):
    texts = pa.array([text for _, text in FOUND] + [query for query, _ in FOUND])
    made = []
    for is_native in (False, True):
        monkeypatch.setattr(analyser._native, "is_on", lambda n_bytes, on=is_native: on)
        made.append(analyse_items(texts))
    assert made[0] == made[1]


def test_a_slice_and_a_large_text_are_read_right(form):
    texts = pa.array(["zero", "one", None, "two " * 100_000, "three"]).fill_null("")
    terms, singles = analyse_items(texts.slice(1, 4))
    assert terms[0] == "one"
    assert terms[1] == ""
    assert terms[2] == " ".join(["two"] * 100_000)
    assert terms[3] == "three"
    assert singles == [""] * 4


def test_function_words_are_dropped_unless_nothing_is_left(form):
    assert analyse_query("what is the name of the owl").terms == ["name", "owl"]
    assert analyse_query("what is it").terms == ["what", "is", "it"]
    assert analyse_query('"the name of it"').terms == ["the", "name", "of", "it"]
    assert analyse_query("the owl", keep_function_words=True).terms == ["the", "owl"]
    assert analyse_query("don't").terms == ["dont"]


def test_plurals_are_kept_beside_their_stem(form):
    assert analyse_items(pa.array(["owls owl class running"]))[0] == ["owl owls owl class run"]
    assert analyse_query("owls").surfaces == ["owls"]
    assert analyse_query("owl class running").surfaces == []


def test_terms_of_a_query_are_distinct(form):
    assert analyse_query("owl owl Owls OWL").terms == ["owl"]


def test_native_code_waits_for_enough_text(monkeypatch):
    monkeypatch.setattr(analyser.analysis_state, "are_compiled", lambda: False)
    native = analyser._Native()
    assert not native.is_on(1000)
    assert native.is_on(analyser._COMPILE_AFTER_BYTES)
    assert native.is_on(0)
