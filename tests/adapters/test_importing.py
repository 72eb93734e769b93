"""What the readers make of files: items, their origin metadata, and problems that name a line."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from colmem import (
    Conversation,
    Document,
    Learning,
    MemoryMeta,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    document,
    encode,
    learning,
)
from colmem.adapters.importing import Import, Options, Problem, scan
from colmem.adapters.importing.languages import language_of
from colmem.adapters.importing.markdown import take_apart


def run_import(
    *paths: Path, mapping: dict[str, str] | None = None, skip_bad: bool = True, **options: object
) -> tuple[list[StoreItem], list[str], Import]:
    notes: list[str] = []
    found = scan(paths, Options(**options))  # type: ignore[arg-type]
    run = Import(found, mapping or {}, notes.append, skip_bad=skip_bad)
    items = list(run.items(lambda n_bytes, n_items: None))
    run.finish()
    return items, notes, run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    top = tmp_path / "notes"
    (top / "rust").mkdir(parents=True)
    (top / "rust" / "box.md").write_text("# Boxes\n\nA box owns its value.\n")
    (top / "plain.txt").write_text("just a line")
    return top


# Folders and files.


def test_a_folder_gives_paths_below_its_own_name(notes: Path) -> None:
    items, _, run = run_import(notes)
    assert run.n_files == 2
    by_path = {item.meta.file_path: item for item in items}
    box = by_path["/notes/rust/box.md"]
    assert isinstance(box, Document)
    assert (box.title, box.body.text, box.mime) == (
        "Boxes",
        "A box owns its value.\n",
        "text/markdown",
    )
    assert box.meta.folder == "/notes/rust"
    assert box.meta.source == SourceRef(SourceKind.FOLDER, "/notes")
    plain = by_path["/notes/plain.txt"]
    assert isinstance(plain, Document)
    assert (plain.title, plain.mime, plain.meta.language) == (None, "text/plain", None)


def test_a_file_is_its_own_source(notes: Path) -> None:
    [item], _, _ = run_import(notes / "rust" / "box.md")
    assert item.meta.source == SourceRef(SourceKind.FILE, "/box.md")
    assert (item.meta.folder, item.meta.file_path) == ("/", "/box.md")


def test_mount_names_another_folder(notes: Path) -> None:
    items, _, _ = run_import(notes, mount="/team/notes")
    assert {item.meta.file_path for item in items} == {
        "/team/notes/rust/box.md",
        "/team/notes/plain.txt",
    }


def test_importing_twice_gives_the_same_fingerprints(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [item.fingerprint() for item in run_import(notes)[0]]
    (notes / "plain.txt").touch()  # the time of change is outside the fingerprint
    monkeypatch.chdir(notes.parent)
    assert [item.fingerprint() for item in run_import(Path("notes"))[0]] == first
    monkeypatch.chdir(notes)
    assert [item.fingerprint() for item in run_import(Path())[0]] == first


def test_observed_at_is_the_time_of_change(notes: Path) -> None:
    [item], _, _ = run_import(notes / "plain.txt")
    changed_ns = (notes / "plain.txt").stat().st_mtime_ns
    assert item.meta.observed_at == Timestamp(*divmod(changed_ns, 1_000_000_000))


def test_passed_over_files_are_counted(notes: Path) -> None:
    (notes / ".git").mkdir()
    (notes / ".git" / "HEAD.txt").write_text("hidden")
    (notes / ".hidden.md").write_text("hidden")
    (notes / "picture.png").write_bytes(b"\x89PNG\0")
    (notes / "zero.txt").write_bytes(b"abc\0def")
    (notes / "blank.md").write_text(" \n\n")
    (notes / "draft.md").write_text("draft")
    (notes / "code.py").write_text("print()")
    store = notes / "memory.colmem"
    store.mkdir()
    (store / "store.json").write_text("{}")
    (store / "inside.txt").write_text("a file of a store")
    items, _, run = run_import(notes, exclude=("draft*",))
    assert len(items) == 2
    assert {name: n for name, n in run.found.skipped.items() if n} == {
        "hidden": 2,
        "of another type": 2,
        "binary": 1,
        "excluded": 1,
        "empty": 1,
    }


def test_included_code_has_its_language(notes: Path) -> None:
    (notes / "code.py").write_text("def f(): ...\n")
    (notes / "tool.bin").write_bytes(b"\0\1")
    items, _, run = run_import(notes, include=("*.py", "*.bin"))
    [code] = [item for item in items if item.meta.file_path == "/notes/code.py"]
    assert isinstance(code, Document)
    assert (code.meta.language, code.body.text, code.title) == ("python", "def f(): ...\n", None)
    assert run.found.skipped["binary"] == 1


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.py", "python"), ("A.RS", "rust"), ("Makefile", "make"), ("x.unknown", None), ("x", None)],
)
def test_language_of_a_name(name: str, language: str | None) -> None:
    assert language_of(Path(name)) == language


def test_metadata_for_all_items(notes: Path) -> None:
    items, _, _ = run_import(
        notes, namespace="ws:acme", workspace="w", language="en", tags=("imported",)
    )
    assert {
        (item.meta.namespace, item.meta.workspace, item.meta.language, *item.meta.tags)
        for item in items
    } == {("ws:acme", "w", "en", "imported")}


# Encodings.


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9")
    [item], _, _ = run_import(tmp_path / "a.txt")
    assert item.render_text() == "café"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"caf\xe9", "byte 3 is not UTF-8"),
        ("caf\xe9".encode("utf-16"), "the file is UTF-16"),
    ],
)
def test_another_encoding_is_a_problem_with_its_cure(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    items, notes, run = run_import(path)
    assert (items, run.n_bad) == ([], 1)
    assert notes[0].startswith(f"skipped {path}: {said}")
    assert "iconv" in notes[0]


# Markdown.


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("# A title\n\nbody", "A title", "body"),
        ("\n\n## Deep #\nbody", "Deep", "body"),
        ("Title\n=====\n\nbody", "Title", "body"),
        ("first words\n\n# Later\nbody", "Later", "first words\n\n# Later\nbody"),
        ("```\n# no heading\n```\n# Real\nx", "Real", "```\n# no heading\n```\n# Real\nx"),
        ("# Only a title\n", "Only a title", "# Only a title\n"),
        ("no heading", None, "no heading"),
        ("#hashtag is no heading", None, "#hashtag is no heading"),
        ("# \n\ntext", None, "# \n\ntext"),
        ("", None, ""),
    ],
)
def test_title_and_body(text: str, title: str | None, body: str) -> None:
    parts = take_apart(text)
    assert (parts.title, parts.body) == (title, body)


def test_front_matter() -> None:
    parts = take_apart(
        '---\ntitle: "Named: so"\ntags: [a, "b c"]\nlang: de\n---\n\n# Heading\n\nText\n'
    )
    assert parts == ("Named: so", "# Heading\n\nText\n", ["a", "b c"], "de")
    assert take_apart("---\ntags:\n  - x\n  - y\n---\nbody").tags == ["x", "y"]
    assert take_apart("---\nnot closed").body == "---\nnot closed"


# Rows.


def test_contract_items_are_kept_as_they_are(tmp_path: Path) -> None:
    items = [
        document("body", title="t", meta=MemoryMeta(folder="/elsewhere", source="link")),
        learning("knows", confidence=0.25),
    ]
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\n".join(map(encode, items)) + b"\n\n")
    read, notes, _ = run_import(path, tags=("not added",))
    assert read == items
    assert notes == []


def test_flat_objects(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "one", "title": "T", "tags": ["a"], "language": "fr", "author": "x"},
        {"text": "two", "kind": "learning", "confidence": 0.5, "learning_kind": "preference"},
        {"turns": [{"role": "user", "text": "hi"}], "thread_id": "t1"},
        {"text": "three", "source_kind": "link", "source_id": "s", "turn_first": 4, "turn_last": 5},
    ]
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    items, notes, _ = run_import(path)
    one, two, talk, three = items
    assert isinstance(one, Document)
    assert (one.title, one.meta.tags, one.meta.language) == ("T", ["a"], "fr")
    assert one.meta.file_path == "/rows.jsonl.gz"
    assert isinstance(two, Learning)
    assert (float(two.confidence), two.learning_kind) == (0.5, "preference")
    assert isinstance(talk, Conversation)
    assert (talk.turns[0].text, talk.meta.thread_id) == ("hi", "t1")
    assert three.meta.source == SourceRef("link", "s")
    assert three.meta.turns is not None
    assert (three.meta.turns.first, three.meta.turns.last) == (4, 5)
    assert notes == [f"{path}: keys left out: author (--map)"]


def test_mapping_names_the_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"type": "note", "content": "hello"}\n')
    [item], _, _ = run_import(path, mapping={"content": "text"})
    assert item.render_text() == "hello"


def test_bad_lines_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"text": "good"}\n'
        b"{broken\n"
        b"[1]\n"
        b'{"content": "x"}\n'
        b'{"type": "document", "body": {"text": " "}}\n'
        b'{"text": 5}\n'
        b'{"text": "x", "kind": "poem"}\n'
        b'{"text": "caf\xe9"}\n'
        b'{"text": "also good"}\n'
    )
    items, notes, run = run_import(path)
    assert [item.render_text() for item in items] == ["good", "also good"]
    assert run.n_bad == 7
    said = [note.removeprefix(f"skipped {path}:") for note in notes]
    assert [note.partition(":")[0] for note in said] == [str(n) for n in range(2, 9)]
    assert "not valid JSON" in said[0]
    assert "expected an object, got list" in said[1]
    assert "--map KEY=text" in said[2]
    assert "document body must not be empty" in said[3]
    assert "must be a string, got int" in said[4]
    assert "`kind` is 'poem', expected one of document, conversation, learning" in said[5]
    assert "not UTF-8" in said[6]


def test_without_skip_bad_the_import_stops_there(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "good"}\n{broken\n{"text": "never read"}\n')
    items, _, run = run_import(path, skip_bad=False)
    assert len(items) == 1
    assert run.stopped_by is not None
    assert run.stopped_by.place == f"{path}:2"


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(
        "\ufefftext,title,tags,confidence,kind\r\n"
        '"two\r\nlines",T,"a, b",,\r\n'
        "sure,,,0.5,learning\r\n"
        '"x","","[""c,d""]",,\r\n'.encode()
    )
    one, two, three = run_import(path)[0]
    assert isinstance(one, Document)
    assert (one.body.text, one.title, one.meta.tags) == ("two\r\nlines", "T", ["a", "b"])
    assert isinstance(two, Learning)
    assert three.meta.tags == ["c,d"]


def test_csv_problems_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('text,confidence\n"two\nlines",\ntoo,many,cells\nok,high\nlast,\n')
    items, notes, _ = run_import(path)
    assert [item.render_text() for item in items] == ["two\nlines", "last"]
    assert notes == [
        f"skipped {path}:4: 3 cells, the header has 2",
        f"skipped {path}:5: `confidence` is 'high', expected a number",
    ]


@pytest.mark.parametrize(
    ("header", "mapping", "said"),
    [
        ("a,b", {}, "no column `text`; the columns are a, b; name it with --map COLUMN=text"),
        ("text,b", {"c": "title"}, "--map names c; the columns are text, b"),
        ("text,b", {"b": "text"}, "two columns for text"),
    ],
)
def test_header_problems(tmp_path: Path, header: str, mapping: dict[str, str], said: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n1,2\n")
    _, notes, _ = run_import(path, mapping=mapping)
    assert notes == [f"skipped {path}:1: {said}"]


def test_tsv_and_an_empty_csv(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("title\ttext\nT\tbody, with comma\n")
    (tmp_path / "b.csv").write_text("")
    [item], notes, _ = run_import(tmp_path / "a.tsv", tmp_path / "b.csv")
    assert item.render_text() == "# T\n\nbody, with comma"
    assert notes == []


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table(
        {
            "body": ["one", "two", None],
            "tags": [["a"], [], None],
            "n": [1, 2, 3],
        }
    )
    parquet.write_table(table, path)
    items, notes, _ = run_import(path, mapping={"body": "text"})
    assert [(item.render_text(), item.meta.tags) for item in items] == [("one", ["a"]), ("two", [])]
    assert notes == [
        f"{path}: columns left out: n (--map)",
        f"skipped {path}:3: `text` is missing",
    ]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl.gz", "x.csv.gz"])
def test_a_file_that_is_not_what_its_name_says(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"not at all")
    items, notes, _ = run_import(path)
    assert items == []
    assert notes[0].startswith(f"skipped {path}")


def test_a_truncated_gzip_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    lines = b"".join(b'{"text": "row %d"}\n' % i for i in range(2000))
    path.write_bytes(gzip.compress(lines)[:-20])
    items, notes, _ = run_import(path)
    assert 0 < len(items) <= 2000
    assert len(notes) == 1


def test_many_problems_are_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("x\n" * 30)
    _, notes, run = run_import(path)
    assert run.n_bad == 30
    assert len(notes) == 21
    assert notes[-1] == "and 10 more were skipped"


def test_a_problem_prints_its_place() -> None:
    assert str(Problem("a.jsonl:3", "is bad")) == "a.jsonl:3: is bad"
