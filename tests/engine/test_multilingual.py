"""A probe of many scripts, of code and of identifiers: found by each word, in any normal form."""

import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import colmem


class Probe(NamedTuple):
    """A text; the words it must be found by, all of them where none are listed."""

    language: str
    text: str
    words: str = ""
    parts: str = ""  # of its compound words


PROBES = [
    Probe("English", "The naïve façade of the café didn't fool anyone."),
    Probe("French", "L'été dernier, l'élève a mangé une crêpe à Besançon."),
    Probe("German", "Die größte Straßenbahn fährt über die Brücke nach Köln."),
    Probe("Spanish", "El niño pequeño comió jamón mañana por la mañana."),
    Probe("Portuguese", "A avó não trouxe pão nem maçãs à reunião."),
    Probe("Italian", "Perché la città più bella è così lontana?"),
    Probe("Polish", "Zażółć gęślą jaźń, powiedział źrebak z Łodzi."),
    Probe("Czech", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    Probe("Hungarian", "Árvíztűrő tükörfúrógép működik a műhelyben."),
    Probe("Turkish", "İstanbul'da ışık ılık; şoför çağrıldı."),
    Probe("Vietnamese", "Tiếng Việt có nhiều dấu thanh phức tạp."),
    Probe("Swedish", "Räksmörgås på sjön är väldigt gott."),
    Probe("Icelandic", "Kæmi ný öxi hér ykist þjófum nú bæði víl og ádrepa."),
    Probe("Latvian", "Glāžšķūņa rūķīši dzērumā čiepj."),
    Probe("Greek", "Ο γρήγορος ΣΚΎΛΟΣ πηδάει πάνω από τους τεμπέληδες."),
    Probe("Russian", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
    Probe("Ukrainian", "Її їжак з'їв ґрунтовну ковбасу."),
    Probe("Bulgarian", "Жълтата дюля беше щастлива."),
    Probe("Georgian", "გთხოვთ ახლავე გაიაროთ რეგისტრაცია."),
    Probe("Armenian", "Բել դղյակի ձախ ժամն օֆ ազգությանը."),
    Probe("Hebrew", "דג סקרן שט בים מאוכזב ולפתע מצא חברה."),
    Probe("Arabic", "نَصٌّ حكيمٌ له سِرٌّ قاطِعٌ وذو شأنٍ عظيم."),
    Probe("Persian", "بر اثر چنین تلقین و شستشوی مغزی جامع."),
    Probe("Urdu", "ٹھنڈ میں ایک قحط زدہ گاؤں سے گزرتے وقت."),
    Probe("Hindi", "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा।"),
    Probe("Bengali", "আষাঢ় মাসে ঈশান কোণে মেঘ জমেছে।"),
    Probe("Tamil", "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது."),
    Probe("Telugu", "దేశ భాషలందు తెలుగు లెస్స."),
    Probe("Amharic", "ሰማይ አይታረስ ንጉሥ አይከሰስ።"),
    Probe("Cherokee", "ᎣᏏᏲ ᏙᎯᏧ ᏣᎳᎩ."),
    Probe("Korean", "데이터베이스를 새로운 서버로 옮겼습니다.", parts="데이터베이스 서버"),
    Probe("Chinese", "系统把機器推論洗成權威事實了", "系统 機器 推論 權威 事實 機器推論 權威事實"),
    Probe("Chinese, mixed", "用户在GitHub上提交了3个补丁", "用户 GitHub 提交 3 补丁"),
    Probe("Japanese", "東京都庁舎でプログラムをかいた", "東京 都庁 庁舎 プログラム かいた"),
    Probe("Japanese, mixed", "ガラスのSQLiteファイル", "ガラス SQLite ファイル"),
    Probe("Thai", "ภาษาไทยไม่มีช่องว่าง", "ภาษา ไทย ไม่ ช่อง ว่าง"),
    Probe("Lao", "ພາສາລາວບໍ່ມີຍະຫວ່າງ", "ພາສາ ລາວ ຫວ່າງ"),
    Probe("Khmer", "ភាសាខ្មែរមិនមានដកឃ្លា", "ភាសា ខ្មែរ ឃ្លា"),
    Probe("Burmese", "မြန်မာစာသည် လှပသည်", "မြန်မာ"),
    Probe("Symbols", "Fly 🚀 from a → b at 20.04 °C"),
    Probe(
        "Python",
        "def get_user_name(self, userId: int) -> str: return HTTPServer.parseURL2(self)",
        "get_user_name userId HTTPServer parseURL2 HTTPServer.parseURL2",
        "get user name id http server parse url2",
    ),
    Probe(
        "Rust",
        "impl<T> BoxedSlice<T> { fn into_raw_parts(self) -> *mut T; }",
        "BoxedSlice into_raw_parts",
        "boxed slice raw parts",
    ),
    Probe(
        "Shell",
        "kubectl --dry-run=client apply -f ./config/prod-eu.v2.yaml && npm i left-pad@1.3.0",
        "kubectl dry-run config/prod-eu.v2.yaml left-pad 1.3.0",
        "dry run config prod eu yaml left pad",
    ),
    Probe(
        "Error",
        "java.lang.NullPointerException at com.acme.OrderServiceImpl.java:42",
        "java.lang.NullPointerException OrderServiceImpl com.acme 42",
        "null pointer exception order service impl acme",
    ),
]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(probe.text) for probe in PROBES)
        yield engine


def test_the_probe_is_wide() -> None:
    assert len(PROBES) >= 30
    scripts = {
        unicodedata.name(char).split()[0]
        for probe in PROBES
        for char in probe.text
        if char.isalpha()
    }
    assert len(scripts) >= 15


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.language)
def test_a_text_is_found_by_each_of_its_words(engine: Any, probe: Probe) -> None:
    words = (probe.words or probe.text).split() + probe.parts.split()
    words = [word for word in words if any(map(str.isalnum, word))]
    for word in words:
        for form in FORMS:
            for asked in (word, word.upper(), word.lower()):
                query = unicodedata.normalize(form, asked)
                hits = engine.fetch(query=query, mode="keyword", limit=len(PROBES)).hits
                assert probe.text in [hit.text for hit in hits], (query, form)


@pytest.mark.parametrize("form", FORMS)
def test_a_text_is_found_by_itself_and_comes_back_as_it_was(engine: Any, form: str) -> None:
    for probe in PROBES:
        query = unicodedata.normalize(form, probe.text)
        for mode in ("keyword", "hybrid"):
            hit = engine.fetch(query=query, mode=mode, limit=1).hits[0]
            assert hit.text == probe.text


def test_a_stored_decomposed_text_is_found_by_composed_words() -> None:
    with colmem.open(":memory:") as engine:
        texts = {unicodedata.normalize("NFD", probe.text): probe for probe in PROBES}
        engine.ingest(colmem.document(text) for text in texts)
        for text, probe in texts.items():
            for word in (probe.words or probe.text).split():
                if any(map(str.isalnum, word)):
                    hits = engine.fetch(query=word, mode="keyword", limit=len(PROBES)).hits
                    assert text in [hit.text for hit in hits], word
