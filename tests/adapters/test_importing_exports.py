"""Exports of ChatGPT and mem0, arrays of rows, and other stores: what becomes of their parts."""

import gzip
import io
import json
import shutil
import sqlite3
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_runs import ITEMS, Run

import colmem
from colmem import (
    Conversation,
    Document,
    Learning,
    MetaFilter,
    Role,
    SourceKind,
    SourceRef,
    StoreItem,
    Timestamp,
    ToolCallRef,
    Turn,
    TurnRange,
)
from colmem.adapters.importing import Import, Options, scan

EXPORTS = Path(__file__).parent / "exports"
CHATGPT, MEM0 = EXPORTS / "conversations.json", EXPORTS / "mem0.json"
HISTORY = EXPORTS / "mem0_history.json"


def run_import(
    *paths: Path,
    mapping: dict[str, str] | None = None,
    filter: MetaFilter | None = None,
    **options: Any,
) -> tuple[list[StoreItem], list[str], Import]:
    notes: list[str] = []
    found = scan(paths, Options(**options, mapped=tuple(mapping or {})))
    run = Import(found, mapping or {}, notes.append, skip_bad=True, filter=filter or MetaFilter())
    items = list(run.items(lambda n_bytes, n_items: None))
    run.finish()
    return items, notes, run


def chats(path: Path = CHATGPT) -> list[Any]:
    loaded: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


# ChatGPT.


def test_the_branch_last_read_becomes_exchanges() -> None:
    items, notes, run = run_import(CHATGPT, tags=("old",), workspace="w")
    assert (notes, run.n_bad, run.n_files) == ([], 0, 1)
    first, second, third = items
    assert isinstance(first, Conversation)
    assert isinstance(second, Conversation)
    assert first.turns == [
        Turn("user", "Where do owls nest?", "2024-06-10T06:13:20.25Z"),
        Turn("assistant", "In hollow trees,\nand in barns.", "2024-06-10T06:13:25.000001Z"),
    ]
    assert second.turns == [
        Turn("user", "[image]\nHow many owls are on this?", "2024-06-10T06:14:20Z"),
        Turn("assistant", "count(image)", "2024-06-10T06:14:22Z", [ToolCallRef("python")]),
        Turn("tool", "3", "2024-06-10T06:14:23Z", [ToolCallRef("python")]),
        Turn("assistant", "Three owls — two adults and a chick.", "2024-06-10T06:14:24Z"),
    ]
    id = "6666f00d-0000-4000-8000-000000000001"
    meta = second.meta
    assert (meta.thread_id, meta.url) == (id, f"https://chatgpt.com/c/{id}")
    assert meta.turns == TurnRange(2, 5)
    assert meta.observed_at == Timestamp.parse("2024-06-10T06:14:24Z")
    assert meta.source == SourceRef(SourceKind.FILE, "/conversations.json")
    assert (meta.workspace, meta.tags) == ("w", ["old", 'meta.title="Owls at night"'])
    assert isinstance(third, Conversation)
    assert third.turns == [Turn(Role.USER, "Guten Tag\n[audio]")]
    assert third.meta.observed_at == Timestamp.parse("2024-05-18T02:40:00Z")
    assert third.meta.tags == ["old"]


def test_the_archive_as_it_was_downloaded(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    one, two, three = chats()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", '{"id": "user-x"}')
        archive.writestr("chat.html", "<html></html>")
        archive.writestr("conversations-001.json", json.dumps([three]))
        archive.writestr("conversations-000.json", json.dumps([one, two]))
    items, notes, _ = run_import(path)
    expected = run_import(CHATGPT)[0]
    assert notes == []
    assert [item.render_text() for item in items] == [item.render_text() for item in expected]
    assert {item.meta.file_path for item in items} == {"/export.zip"}


def test_exports_are_found_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    for path in (CHATGPT, MEM0, HISTORY):
        shutil.copy(path, folder)
    with zipfile.ZipFile(folder / "other.zip", "w") as archive:
        archive.writestr("a.txt", "x")
    (folder / "broken.zip").write_bytes(b"PK no archive")
    (folder / "settings.json").write_text('{"name": "x"}')
    (folder / "rows.json").write_text('[{"text": "of a program"}]')
    (folder / "data.db").write_bytes(b"not a database")
    items, notes, run = run_import(folder)
    assert (len(items), notes) == (
        8,
        [f"{folder}/mem0_history.json: left out, as deleted in mem0: 1"],
    )
    assert run.found.skipped["of another type"] == 5
    assert {item.meta.source for item in items} == {SourceRef(SourceKind.FOLDER, "/exports")}


def spoiled(change: Callable[[dict[str, Any]], Any]) -> str:
    one = chats()[0]
    replaced = change(one)
    return json.dumps([chats()[2], one if replaced is None else replaced, chats()[2]])


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(talk: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        at: Any = talk
        for name in parents:
            at = at[name]
        at[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda talk: 7, "the conversation must be an object, got int"),
        (_set("mapping", []), "mapping must be an object, got list"),
        (_set("current_node", None), "current_node is missing"),
        (_set("current_node", "gone"), "mapping has no node 'gone'"),
        (_set("mapping/u1/parent", "a1"), "the branch comes back to node 'a1'"),
        (_set("mapping/u1", 3), "mapping['u1'] must be an object, got int"),
        (_set("mapping/u1/message", "hi"), "mapping['u1'].message must be an object, got str"),
        (_set("mapping/u1/message/author", None), "message.author must be an object, got NoneType"),
        (
            _set("mapping/u1/message/author/role", "critic"),
            "role is 'critic', expected one of user",
        ),
        (_set("mapping/u1/message/create_time", "noon"), "create_time must be seconds since 1970"),
        (_set("mapping/u1/message/content/parts", "x"), "content.parts must be a list, got str"),
        (_set("mapping/u1/message/content/parts", [4]), "a part of message.content must be an"),
        (_set("mapping/u1/message/content", 5), "message.content must be an object, got int"),
        (_set("update_time", True), "update_time must be seconds since 1970, got bool"),
        (_set("conversation_id", 12), "thread_id must be a string or None, got int"),
    ],
)
def test_a_conversation_that_cannot_be_read_is_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(spoiled(change))
    items, [note], run = run_import(path)
    assert (len(items), run.n_bad) == (2, 1)
    assert note.startswith(f"skipped {path} $[1]: ")
    assert said in note


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data[:-200], "the file ends in the middle; it was cut off"),
        (lambda data: data.replace(b'"New chat"', b"New chat"), "not valid JSON"),
        (lambda data: data.replace(b"New chat", b"caf\xe9"), "a text is not UTF-8"),
        (lambda data: data + b"[]", "not valid JSON"),
    ],
)
def test_a_file_that_breaks_off_says_where(
    tmp_path: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(spoil(CHATGPT.read_bytes()))
    items, [note], run = run_import(path)
    assert run.n_bad == 1
    assert len(items) >= 2
    assert note.startswith(f"skipped {path}: {said}")
    assert " after $[" in note
    assert "owls" not in note


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda archive: archive.writestr("a.txt", "x"),
            "no conversations.json in it; it holds a.txt",
        ),
        (lambda archive: None, "no conversations.json in it; it holds nothing"),
        (
            lambda archive: archive.writestr("conversations.json", "[{"),
            "conversations.json: the file ends in the middle",
        ),
    ],
)
def test_an_archive_that_is_none_of_theirs(
    tmp_path: Path, make: Callable[[zipfile.ZipFile], None], said: str
) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        make(archive)
    items, [note], _ = run_import(path)
    assert items == []
    assert said in note
    path.write_bytes(b"not at all")
    assert run_import(path)[1] == [f"skipped {path}: File is not a zip file"]


def test_damage_inside_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(CHATGPT, "conversations.json")
    data = bytearray(path.read_bytes())
    data[200:220] = bytes(20)
    path.write_bytes(data)
    _, notes, run = run_import(path)
    assert run.n_bad == 1
    assert str(path) in notes[0]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    talk = json.dumps(chats()[0])
    path = tmp_path / "conversations.json"
    with path.open("w") as file:
        file.write("[")
        for number in range(400):
            file.write(("," if number else "") + talk)
        file.write("]")
    assert path.stat().st_size > 1_600 * 2**10
    run = Import(scan([path], Options()), {}, lambda text: None, skip_bad=False)
    tracemalloc.start()
    n_items = sum(1 for _ in run.items(lambda n_bytes, n_items: None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_items == 800
    assert peak < 2**20


# mem0.


def test_memories_of_get_all() -> None:
    items, notes, _ = run_import(MEM0, language="en")
    assert notes == []
    alice, bob, helper = items
    assert isinstance(alice, Learning)
    assert (alice.text, alice.learning_kind) == ("Likes to play cricket on weekends", "fact")
    assert alice.meta.namespace.startswith("user:alice-example-org-")
    assert alice.meta.observed_at == Timestamp.parse("2024-07-20T08:30:36.275141Z")
    assert alice.meta.tags == [
        'meta.category="hobbies"',
        "meta.confidence=0.9",
        "mem0.id=892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    ]
    assert alice.meta.source == SourceRef(SourceKind.FILE, "/mem0.json")
    assert (bob.meta.namespace, bob.meta.agent_id, bob.meta.thread_id, bob.meta.language) == (
        "user:bob",
        "scheduler",
        "session-7",
        "en",
    )
    assert bob.meta.observed_at == Timestamp.parse("2024-07-22T09:30:00.5Z")
    assert bob.meta.tags == [
        "professional_details",
        "preferences",
        'meta.app_id="crm"',
        'meta.actor_id="Bob"',
        'meta.role="user"',
        "mem0.id=a1",
    ]
    assert helper.meta.namespace == "agent:helper"


def test_memories_as_a_list_and_one_alone(tmp_path: Path) -> None:
    memories = json.loads(MEM0.read_text())["results"]
    for memory in memories:
        del memory["user_id" if "user_id" in memory else "agent_id"]
    (tmp_path / "list.json").write_text(json.dumps(memories))
    (tmp_path / "one.json").write_text("\ufeff" + json.dumps(memories[0]))
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(json.dumps(memories).encode()))
    (tmp_path / "none.json").write_text('{"results": [ ]}')
    for name, n_items in (
        ("list.json", 3),
        ("one.json", 1),
        ("packed.json.gz", 3),
        ("none.json", 0),
    ):
        items, notes, run = run_import(tmp_path / name, namespace="ws:acme")
        assert (len(items), notes) == (n_items, []), name
        assert items == [] or items[0].meta.namespace == "ws:acme"
        assert run.found.skipped["empty"] == (n_items == 0)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (5, "expected a memory, got int"),
        ({"id": "x", "memory": None}, "`memory` must be a string, got NoneType"),
        ({"id": "x", "memory": " "}, "learning text must not be empty"),
        ({"id": "x", "memory": "m", "user_id": 5}, "`user_id` must be a string, got int"),
        ({"id": "x", "memory": "m", "metadata": []}, "`metadata` must be an object, got list"),
        ({"id": "x", "memory": "m", "categories": "a"}, "`categories` must be a list, got str"),
        ({"id": "x", "memory": "m", "categories": [1]}, "tags must be a list of strings"),
        (
            {"id": "x", "memory": "m", "created_at": "today"},
            "`created_at`: 'today' is not a timestamp",
        ),
    ],
)
def test_a_memory_that_cannot_be_read_is_named(tmp_path: Path, memory: Any, said: str) -> None:
    path = tmp_path / "mem0.json"
    good = {"id": "g", "memory": "good"}
    path.write_text(json.dumps({"results": [good, memory, good]}))
    items, [note], run = run_import(path)
    assert (len(items), run.n_bad) == (2, 1)
    assert note.startswith(f"skipped {path} $.results[1]: ")
    assert said in note


def test_of_a_history_the_last_text_counts(tmp_path: Path) -> None:
    items, [note], _ = run_import(HISTORY)
    assert note == f"{HISTORY}: left out, as deleted in mem0: 1"
    assert [(item.render_text(), item.meta.tags) for item in items] == [
        ("Has a dog", ['meta.actor_id="Ann"', 'meta.role="user"', "mem0.id=m2"]),
        ("Likes green tea", ["mem0.id=m1"]),
    ]
    assert items[1].meta.observed_at == Timestamp.parse("2024-07-25T19:00:00Z")
    path = tmp_path / "history.json"
    rows = json.loads(HISTORY.read_text())
    path.write_text(json.dumps([*rows[::-1], {"memory_id": 1, "event": "ADD"}, "row"]))
    again, notes, run = run_import(path)
    assert sorted(item.render_text() for item in again) == ["Has a dog", "Likes green tea"]
    assert run.n_bad == 2
    assert notes[:2] == [
        f"skipped {path} $[5]: `memory_id` must be a string, got int",
        f"skipped {path} $[6]: expected an object, got str",
    ]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    columns = ["id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at"]
    columns += ["is_deleted", "actor_id", "role"]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE history ({', '.join(columns)})")
        for row in json.loads(HISTORY.read_text()):
            places = ", ".join("?" * len(columns))
            connection.execute(f"INSERT INTO history VALUES ({places})", [row[c] for c in columns])
    return path


def test_the_database_of_the_history(database: Path) -> None:
    before = database.read_bytes()
    items, notes, _ = run_import(database)
    expected = run_import(HISTORY)[0]
    assert [item.render_text() for item in items] == [item.render_text() for item in expected]
    assert [item.meta.tags for item in items] == [item.meta.tags for item in expected]
    assert len(notes) == 1
    assert database.read_bytes() == before


def test_a_damaged_database_is_a_problem(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE history SET memory_id = 7 WHERE id = 'h1'")
        connection.executemany(
            "INSERT INTO history (memory_id, event, new_memory) VALUES (?, 'ADD', ?)",
            [(f"x{i}", "text " * 200) for i in range(100)],
        )
    _, notes, _ = run_import(database)
    assert f"skipped {database} row 1: `memory_id` must be a string, got int" in notes
    data = bytearray(database.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    database.write_bytes(data)
    _, notes, run = run_import(database)
    assert run.n_bad >= 1
    assert any(note.startswith(f"skipped {database}: ") for note in notes)


# Arrays of rows, and JSON that is nothing of these.


def test_an_array_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = [
        {"text": "flat", "tags": ["a"], "confidence": 0.5, "kind": "learning", "x": 1},
        json.loads(colmem.encode(ITEMS[0])),
        {"words": "no text"},
        5,
    ]
    path.write_text(json.dumps(rows))
    items, notes, _ = run_import(path)
    assert [item.render_text() for item in items] == ["flat", ITEMS[0].render_text()]
    assert items[1] == ITEMS[0]
    assert notes[0].startswith(f"skipped {path} $[2]: neither an item (`type`) nor an object with")
    assert notes[1] == f"skipped {path} $[3]: expected an object, got int"
    assert notes[2] == f"{path}: keys left out: x (--map)"
    path.write_text('[{"words": "mapped"}]')
    [item], _, _ = run_import(path, mapping={"words": "text"})
    assert item.render_text() == "mapped"


@pytest.mark.parametrize(
    "text",
    ['{"name": "a package"}', '[{"type": "Feature"}]', "[1, 2]", '"word"', "[[]]", "{", '{"a": ['],
)
def test_other_json_is_a_document_when_it_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text)
    [item], _, _ = run_import(path)
    assert isinstance(item, Document)
    assert (item.body.text, item.meta.language) == (text, "json")
    assert run_import(tmp_path)[0] == []


def test_an_empty_array_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(" [ ]\n")
    items, notes, run = run_import(path)
    assert (items, notes, run.found.skipped["empty"]) == ([], [], 1)


def test_a_packed_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(b"not packed")
    items, [note], _ = run_import(path)
    assert items == []
    assert note.startswith(f"skipped {path}: Not a gzipped file")
    path.write_bytes(gzip.compress(MEM0.read_bytes())[:-30])
    assert run_import(path)[2].n_bad == 1


# Filters, and other stores.


def test_a_filter_chooses_what_is_imported() -> None:
    items, _, run = run_import(MEM0, filter=MetaFilter(agent_id="scheduler"))
    assert [item.render_text() for item in items] == ["Prefers morning meetings"]
    assert run.n_items == 1


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    with colmem.open(path, embedder="hotmem-hash-v1") as engine:
        engine.store_many(ITEMS)
    return path


def test_another_store_is_a_source(run: Run, other: Path, tmp_path: Path) -> None:
    target = tmp_path / "s.colmem"
    [report] = run("import", target, other, "--tag", "ignored", "--json").json
    assert (report["stored"], report["files"], report["bad"]) == (4, 1, 0)
    with colmem.open(target) as engine, colmem.open(other) as source:
        assert engine.list().items == source.list().items
        assert engine.embedder is not None
        assert engine.embedder.key == "static-s256"
    [again] = run("import", target, other, "--json").json
    assert (again["stored"], again["replayed"]) == (0, 4)


def test_a_part_of_another_store(run: Run, other: Path, tmp_path: Path) -> None:
    wanted = '{"kinds": ["document"], "folder": "/notes/rust"}'
    ran = run("import", tmp_path / "s.colmem", other, "--filter", wanted, "--json")
    assert ran.json[0]["stored"] == 1
    refused = run("import", tmp_path / "s.colmem", other, "--filter", "{")
    assert refused.code == 2
    assert "see the filter of the contract" in refused.err


def test_a_store_that_cannot_be_opened(run: Run, other: Path, tmp_path: Path) -> None:
    ran = run("import", other, other)
    assert ran.code == 2
    assert "cannot be imported into itself" in ran.err
    with colmem.open(other):
        ran = run("import", tmp_path / "s.colmem", other)
        assert ran.code == 1
        assert "wait for that process to end" in ran.err
    (other / "store.json").write_text("{")
    ran = run("import", tmp_path / "s.colmem", other)
    assert ran.code == 1
    assert "store.json" in ran.err


def test_records_of_other_systems_say_what_stays_behind(tmp_path: Path) -> None:
    snapshot = tmp_path / "old.jsonl"
    record = {"id": "own-id", "fact_text": "A fact.", "namespace": "default"}
    snapshot.write_text(json.dumps(record) + "\n")
    source = tmp_path / "source"
    with colmem.open(source) as engine:
        engine.hydrate(snapshot)
    items, [note], _ = run_import(source)
    assert [item.render_text() for item in items] == ["A fact."]
    assert "1 of its items are records of another system" in note


def test_the_command_reads_every_format(run: Run, database: Path, tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.write(CHATGPT, "conversations.json")
    archive.write_bytes(packed.getvalue())
    target = tmp_path / "s.colmem"
    ran = run("import", target, archive, MEM0, database, "--json")
    assert ran.json[0]["stored"] == 8
    hits = run("fetch", target, "owls nest", "--limit", "1", "--json").json
    assert hits[0]["meta"]["thread_id"] == "6666f00d-0000-4000-8000-000000000001"
