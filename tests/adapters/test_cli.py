"""Every command: what it prints for programs and people, what it refuses, its exit codes."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ITEMS, Run

import colmem
from colmem import FetchMode

IDS = [item.fingerprint() for item in ITEMS]
OWNERSHIP, GARBAGE, PREFERENCE, TALK = IDS


# Reading.


@pytest.mark.parametrize("mode", list(FetchMode))
def test_fetch(run: Run, filled: Path, mode: str) -> None:
    ran = run("fetch", filled, "ownership values", "--mode", mode, "--json")
    assert ran.code == 0
    assert ran.json[0]["id"] == OWNERSHIP
    assert ran.json[0]["score"] > 0


def test_fetch_is_hybrid_unless_told(run: Run, filled: Path) -> None:
    told = run("fetch", filled, "ownership", "--mode", "hybrid", "--json")
    assert run("fetch", filled, "ownership", "--json") == told


def test_fetch_pages(run: Run, filled: Path) -> None:
    whole = run("fetch", filled, "values", "--mode", "vector", "--json").json
    found, cursor = [], []
    for _ in ITEMS:
        ran = run("fetch", filled, "values", "--mode", "vector", "--limit", 1, "--json", *cursor)
        found += ran.json
        if not ran.err:
            break
        cursor = ["--cursor", json.loads(ran.err)["next_cursor"]]
    assert found == whole


def test_fetch_for_people(run: Run, filled: Path) -> None:
    ran = run("fetch", filled, "ownership", "--mode", "keyword", "--limit", 1)
    rank, score, *title = ran.out.splitlines()[0].split()
    assert (rank, title) == ("1", ["Ownership"])
    assert float(score) > 0
    assert [line.strip() for line in ran.out.splitlines()[1:]] == [
        "Ownership moves values.",
        "document  /notes/rust/own.md  r1  w1  en  #rust  #memory",
        OWNERSHIP,
    ]


def test_fetch_explains(run: Run, filled: Path) -> None:
    (explained,) = run("fetch", filled, "ownership values", "--explain", "--json").json
    first = explained["hits"][0]
    assert first["id"] == OWNERSHIP
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=1e-5)
    ran = run("fetch", filled, "ownership values", "--explain")
    assert ran.code == 0
    for words in ("lexical ", "cosine ", "place keyword 1, vector 1, blend 1"):
        assert words in " ".join(ran.out.split())
    assert "searched for ownership, valu, values" in ran.err
    assert "filter admits 4 of 4" in ran.err


def test_fetch_says_why_an_item_did_not_come(run: Run, filled: Path) -> None:
    asked = ("fetch", filled, "ownership", "--folder", "/notes/go", "--why-not", OWNERSHIP)
    (explained,) = run(*asked, "--json").json
    assert explained["why_not"]["reason"] == "filtered"
    ran = run(*asked)
    assert f"{OWNERSHIP} did not come: refused by folder" in ran.err
    assert 'folder asks for "/notes/go", the item has "/notes/rust"' in ran.err


def test_fetch_reads_its_query_from_standard_input(run: Run, filled: Path) -> None:
    assert run("fetch", filled, "-", "--json", stdin="ownership\n").json[0]["id"] == OWNERSHIP


def test_fetch_finds_nothing(run: Run, filled: Path) -> None:
    ran = run("fetch", filled, "zephyrine", "--mode", "keyword")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing found\n")


def test_recall(run: Run, filled: Path) -> None:
    ran = run("recall", filled, "what does ownership move?", "--json")
    assert ran.code == 0
    [answer] = ran.json
    assert answer["answer"]
    assert {citation["id"] for citation in answer["citations"]} <= {*IDS}


def test_recall_for_people(run: Run, filled: Path) -> None:
    ran = run("recall", filled, "what does ownership move?")
    assert ran.code == 0
    assert "Ownership moves values." in ran.out
    assert "[1]" in ran.out
    assert OWNERSHIP in ran.out


def test_list(run: Run, filled: Path) -> None:
    ran = run("list", filled, "--json")
    assert [hit["id"] for hit in ran.json] == IDS
    assert ran.err == ""


def test_list_pages_and_all(run: Run, filled: Path) -> None:
    first = run("list", filled, "-n", 3, "--json")
    cursor = json.loads(first.err)["next_cursor"]
    rest = run("list", filled, "-n", 3, "--cursor", cursor, "--json")
    assert [hit["id"] for hit in first.json + rest.json] == IDS
    assert run("list", filled, "-n", 1, "--all", "--json").json == first.json + rest.json
    assert run("list", filled, "-n", 1).err.startswith("more remain; go on with --cursor ")


FILTERS = [
    (["--folder", "/notes"], [OWNERSHIP, GARBAGE]),
    (["--folder", "/notes/rust"], [OWNERSHIP]),
    (["--file-path", "/notes/rust"], [OWNERSHIP]),
    (["--tag", "rust", "--tag", "nothing"], [OWNERSHIP]),
    (["--kind", "learning", "--kind", "conversation"], [PREFERENCE, TALK]),
    (["--source", "link"], [GARBAGE]),
    (["--source-id", "c9"], [TALK]),
    (["--after", "2026-01-15"], [GARBAGE]),
    (["--before", "2026-01-15T00:00:00Z"], [OWNERSHIP]),
    (["--after", "2026-01-01", "--before", "2026-02-01"], [OWNERSHIP]),
    (["--workspace", "w1"], [OWNERSHIP]),
    (["--language", "en"], [OWNERSHIP]),
    (["--repo", "r1"], [OWNERSHIP]),
    (["--commit", "c1"], [OWNERSHIP]),
    (["--url", "https://example.org"], [GARBAGE]),
    (["--thread", "t1"], [TALK]),
    (["--turns", "4-5"], [TALK]),
    (["--turns", "4"], []),
    (["--agent", "scout"], [PREFERENCE]),
    (["--tool", "search"], [TALK]),
    (["--at", "root"], [OWNERSHIP, TALK]),
    (["--at", "agent:a"], [OWNERSHIP, GARBAGE, TALK]),
    (["--namespace", "agent:a", "--no-inherit"], [GARBAGE]),
    (["--at", "agent:a", "--no-inherit", "--descendants"], [GARBAGE, PREFERENCE]),
    (["--no-inherit"], [OWNERSHIP, TALK]),
    (["--descendants"], IDS),
    (["--filter", '{"kinds":["document"]}'], [OWNERSHIP, GARBAGE]),
    (["--filter", '{"kinds":["document"]}', "--source", "link"], [GARBAGE]),
    (["--filter", '{"kinds":["document"]}', "--kind", "learning"], [PREFERENCE]),
]


@pytest.mark.parametrize(("options", "ids"), FILTERS, ids=lambda value: " ".join(map(str, value)))
def test_filter_options(run: Run, filled: Path, options: list[str], ids: list[str]) -> None:
    assert [hit["id"] for hit in run("list", filled, "--json", *options).json] == ids


def test_get(run: Run, filled: Path) -> None:
    ran = run("get", filled, TALK, "unknown", OWNERSHIP, "--json")
    assert [hit["id"] for hit in ran.json] == [TALK, OWNERSHIP]
    assert json.loads(ran.err) == {"note": "1 of 3 ids not found"}
    assert run("get", filled, "-", "--json", stdin=f"{TALK}\n{OWNERSHIP}\n").json == ran.json


def test_get_for_people_is_whole(run: Run, filled: Path) -> None:
    ran = run("get", filled, PREFERENCE, OWNERSHIP)
    assert ran.out == (
        f"{PREFERENCE}\nlearning  agent:a/agent:b  confidence 0.75\n"
        "The user prefers short answers.\n\n"
        f"{OWNERSHIP}\ndocument  /notes/rust/own.md  r1  w1  en  #rust  #memory\n"
        "# Ownership\n\nOwnership moves values.\n"
    )


def test_get_within_a_reach(run: Run, filled: Path) -> None:
    ran = run("get", filled, GARBAGE, TALK, "--at", "root", "--json")
    assert [hit["id"] for hit in ran.json] == [TALK]


def test_explore(run: Run, filled: Path) -> None:
    [page] = run("explore", filled, "kind", "--json").json
    assert page["buckets"] == [
        {"value": "document", "count": 2},
        {"value": "conversation", "count": 1},
        {"value": "learning", "count": 1},
    ]
    assert page["total"] == 4


def test_explore_for_people(run: Run, filled: Path) -> None:
    ran = run("explore", filled, "folder", "--limit", 1)
    assert [line.split()[:2] for line in ran.out.splitlines()] == [
        ["folder", "items"],
        ["/notes/go", "1"],
    ]
    assert ran.err == "4 items, 2 without folder, 1 more values (--limit)\n"


def test_explore_narrows(run: Run, filled: Path) -> None:
    [page] = run(
        "explore",
        filled,
        "tag",
        "--narrow",
        "kind=document",
        "--narrow",
        "folder=/notes/rust",
        "--json",
    ).json
    assert (page["total"], [bucket["value"] for bucket in page["buckets"]]) == (
        1,
        ["memory", "rust"],
    )


def test_health_and_stats(run: Run, filled: Path) -> None:
    assert run("health", filled, "--json").json == [{"state": "ok"}]
    assert run("health", filled).out == "ok\n"
    [facts] = run("stats", filled, "--json").json
    assert (facts["items"], facts["embedder"], facts["dim"]) == (4, "static-s256", 256)
    assert "static-s256" in run("stats", filled).out


def test_sql(run: Run, filled: Path) -> None:
    query = "SELECT kind, count(*) AS n FROM items GROUP BY kind ORDER BY n DESC, kind"
    ran = run("sql", filled, query, "--json")
    assert ran.json[0] == {"kind": "document", "n": 2}
    assert run("sql", filled, "-", "--json", stdin=query).json == ran.json
    shown = run("sql", filled, query)
    assert shown.out.splitlines()[:2] == ["kind          n", "document      2"]
    assert shown.err == "3 rows\n"


def test_sql_writes_nothing(run: Run, filled: Path) -> None:
    ran = run("sql", filled, "DELETE FROM items")
    assert ran.code == 1
    assert "exactly one SELECT" in ran.err


# Writing.


def test_init(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.colmem"
    ran = run("init", path, "--embedder", "hotmem-hash-v1", "--json")
    assert ran.code == 0
    assert ran.json[0]["embedder"] == "hotmem-hash-v1"
    assert "created the store" in ran.err
    again = run("init", path, "--json")
    assert (again.code, again.json, again.err) == (0, ran.json, "")
    other = run("init", path, "--embedder", "static-s256")
    assert other.code == 1
    assert "hotmem-hash-v1" in other.err


def test_store(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    args = [
        "store",
        path,
        "Ownership moves values.",
        "--title",
        "Ownership",
        "--folder",
        "/notes/rust",
        "--file-path",
        "/notes/rust/own.md",
        "--language",
        "en",
        "--tag",
        "rust",
        "--tag",
        "memory",
        "--observed-at",
        "2026-01-01",
        "--repo",
        "r1",
        "--commit",
        "c1",
        "--workspace",
        "w1",
        "--json",
    ]
    first = run(*args)
    assert (first.code, first.json) == (0, [{"id": OWNERSHIP, "replayed": False}])
    assert "created the store" in first.err
    assert run(*args).json == [{"id": OWNERSHIP, "replayed": True}]


def test_store_a_learning_and_a_conversation(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    learned = run(
        "store",
        path,
        "The user prefers short answers.",
        "--kind",
        "learning",
        "--learning-kind",
        "preference",
        "--confidence",
        "0.75",
        "--namespace",
        "agent:a/agent:b",
        "--agent",
        "scout",
        "--json",
    )
    assert learned.json[0]["id"] == PREFERENCE
    talked = run(
        "store",
        path,
        "-",
        "--kind",
        "conversation",
        "--thread",
        "t1",
        "--turns",
        "4-5",
        "--tool",
        "search",
        "--source",
        "conversation",
        "--source-id",
        "c9",
        "--json",
        stdin="user: hello there\nassistant: general greeting\n",
    )
    assert talked.json[0]["id"] == TALK


def test_a_turn_may_have_several_lines(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    run("store", path, "user: one\ntwo\nassistant: three", "--kind", "conversation")
    [hit] = run("list", path, "--json").json
    assert hit["text"] == "user: one\ntwo\nassistant: three"


def test_import_is_idempotent(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nalpha")
    (folder / "b.txt").write_text("beta")
    (folder / "c.jsonl").write_text('{"text": "gamma"}\n')
    path = tmp_path / "s.colmem"
    [first] = run("import", path, folder, "--json").json
    assert (first["stored"], first["replayed"], first["files"]) == (3, 0, 3)
    [second] = run("import", path, folder, "--json").json
    assert (second["stored"], second["replayed"]) == (0, 3)
    assert len(run("list", path, "--folder", "/notes", "--json").json) == 3


def test_import_reads_standard_input(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    lines = b"\n".join(map(colmem.encode, ITEMS))
    [report] = run("import", path, "-", "--json", stdin=lines).json
    assert report["stored"] == 4
    assert [hit["id"] for hit in run("list", path, "--json").json] == IDS


def test_what_list_prints_can_be_read_back_as_rows(run: Run, filled: Path, tmp_path: Path) -> None:
    listed = run("list", filled, "--json", "--kind", "document").out
    copy = tmp_path / "copy.colmem"
    assert run("import", copy, "-", stdin=listed).code == 0
    texts = [hit["text"] for hit in run("list", copy, "--json").json]
    assert texts == [item.render_text() for item in ITEMS[:2]]


def test_import_stops_at_a_bad_row(run: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "one"}\n{"text": \n{"text": "three"}\n')
    path = tmp_path / "s.colmem"
    ran = run("import", path, rows)
    assert ran.code == 1
    assert f"{rows}:2: not valid JSON" in ran.err
    assert "The 1 items before it are stored" in ran.err
    assert "--skip-bad" in ran.err
    again = run("import", path, rows, "--skip-bad", "--json")
    assert again.code == 0
    assert (again.json[0]["stored"], again.json[0]["replayed"], again.json[0]["bad"]) == (1, 1, 1)


def test_import_the_bundled_data(run: Run, tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "data"
    path = tmp_path / "s.colmem"
    files = [data / f"xquad-{name}" / "paragraphs.jsonl.gz" for name in ("en", "zh")]
    [report] = run("import", path, *files, "--json").json
    assert report["stored"] == 480
    [page] = run("explore", path, "language", "--json").json
    assert [(b["value"], b["count"]) for b in page["buckets"]] == [("en", 240), ("zh", 240)]
    question = json.loads(
        gzip.decompress((data / "xquad-zh" / "questions.jsonl.gz").read_bytes()).splitlines()[0]
    )
    hits = run("fetch", path, question["text"], "--language", "zh", "--json").json
    assert f"xquad-{question['paragraph']}" in [hit["meta"]["source"]["id"] for hit in hits[:3]]


def test_forget_needs_yes(run: Run, store: Path) -> None:
    ran = run("forget", store, "--kind", "document")
    assert ran.code == 1
    assert ran.out == "would forget 2 items (2 document)\n"
    assert "--yes" in ran.err
    assert run("forget", store, OWNERSHIP, "unknown", "--json").json == [
        {"would_forget": 1, "kinds": {"document": 1}}
    ]
    assert len(run("list", store, "--json").json) == 4


def test_forget(run: Run, store: Path) -> None:
    assert run("forget", store, "--kind", "document", "--yes", "--json").json == [{"forgotten": 2}]
    assert run("forget", store, "-", "--yes", stdin=f"{TALK} {TALK}\n").out == "forgot 1 item\n"
    assert [hit["id"] for hit in run("list", store, "--json").json] == [PREFERENCE]


@pytest.mark.parametrize("args", [[], [OWNERSHIP, "--kind", "document"], ["--filter", "{}"]])
def test_forget_takes_ids_or_a_filter(run: Run, filled: Path, args: list[str]) -> None:
    ran = run("forget", filled, *args, "--yes")
    assert ran.code == 2
    assert "not both" in ran.err


# Upkeep.


def test_check(run: Run, store: Path) -> None:
    ran = run("check", store, "--json")
    assert (ran.code, ran.json) == (0, [{"ok": True, "items": 4, "problems": []}])


def test_check_repairs_a_lost_table(run: Run, store: Path) -> None:
    (store / "items.duckdb").write_bytes(b"garbage")
    broken = run("list", store)
    assert broken.code == 1
    assert "colmem check --repair" in broken.err
    assert run("check", store).code == 1
    repaired = run("check", store, "--repair", "--json")
    assert (repaired.code, repaired.json[0]["ok"]) == (0, True)
    assert [hit["id"] for hit in run("list", store, "--json").json] == IDS


def test_compact(run: Run, store: Path) -> None:
    run("forget", store, OWNERSHIP, "--yes")
    [facts] = run("compact", store, "--json").json
    assert (facts["items"], facts["rows_reclaimed"]) == (3, 1)
    assert [hit["id"] for hit in run("list", store, "--json").json] == IDS[1:]


def test_reembed(run: Run, store: Path) -> None:
    [facts] = run("reembed", store, "hotmem-hash-v1", "--json").json
    assert facts["embedder"] == "hotmem-hash-v1"
    found = run("fetch", store, "ownership", "--mode", "vector", "--json").json
    assert len(found) == 4
    unknown = run("reembed", store, "no-such")
    assert unknown.code == 1
    assert "no-such" in unknown.err


# Errors and exit codes.


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["fetch"],
        ["fetch", "STORE"],
        ["fetch", "STORE", "q", "--mode", "psychic"],
        ["fetch", "STORE", "q", "--at", "nowhere"],
        ["fetch", "STORE", "q", "--after", "yesterday"],
        ["fetch", "STORE", "q", "--turns", "x"],
        ["fetch", "STORE", "q", "--filter", "{"],
        ["fetch", "STORE", "q", "--limit", "many"],
        ["explore", "STORE", "colour"],
        ["explore", "STORE", "tag", "--narrow", "colour=red"],
        ["explore", "STORE", "tag", "--narrow", "kind=poem"],
        ["get", "STORE"],
        ["import", "STORE", "no-such-file"],
        ["import", "STORE", "-", "--map", "x=colour"],
        ["store", "STORE", "text", "--kind", "learning", "--title", "t"],
        ["store", "STORE", "no role", "--kind", "conversation"],
        ["store", "STORE", "text", "--namespace", "nowhere"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_usage(run: Run, filled: Path, args: list[str]) -> None:
    ran = run(*(filled if arg == "STORE" else arg for arg in args))
    assert ran.code == 2
    assert ran.out == ""
    assert "Error: " in ran.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fetch", "STORE", " "], "invalid request: fetch query must not be empty"),
        (["fetch", "STORE", "q", "-n", "0"], "invalid request: fetch limit must be positive"),
        (["fetch", "STORE", "q", "--cursor", "x"], "invalid request: "),
        (["explore", "STORE", "tag", "-n", "501"], "explore limit must be between 1 and 500"),
        (["recall", "STORE", " "], "invalid request: recall question must not be empty"),
        (["store", "STORE", " "], "invalid request: document body must not be empty"),
        (["list", "NOWHERE"], "there is no store at nowhere; check the path, or make one with"),
        (["list", "FILE"], "is a file"),
    ],
    ids=str,
)
def test_a_refusal_is_a_failure(
    run: Run,
    filled: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no store")
    paths = {"STORE": filled, "NOWHERE": "nowhere", "FILE": "file"}
    ran = run(*(paths.get(arg, arg) for arg in args))
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "nowhere").exists()


def test_errors_as_json(run: Run, filled: Path) -> None:
    ran = run("fetch", filled, " ", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "error": "invalid_request",
        "message": "invalid request: fetch query must not be empty",
    }


def test_debug_shows_the_traceback(run: Run, filled: Path) -> None:
    ran = run("fetch", filled, " ", "--debug")
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert "InvalidRequest" in ran.err


def test_an_unexpected_error_says_how_to_see_more(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> object:
        raise ZeroDivisionError("by surprise")

    monkeypatch.setattr(colmem, "open", broken)
    ran = run("list", filled)
    assert ran.code == 1
    assert ran.err == (
        "error: unexpected ZeroDivisionError: by surprise; run again with --debug for the "
        "traceback\n"
    )


def test_a_store_open_elsewhere_is_named(run: Run, store: Path) -> None:
    with colmem.open(store):
        ran = run("list", store)
    assert ran.code == 1
    assert "already open" in ran.err


def test_readers_read_side_by_side(run: Run, store: Path) -> None:
    with colmem.open(store, create=False, read_only=True):
        assert len(run("list", store, "--json").json) == 4


def test_after_a_crash_every_reader_sees_what_was_stored(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    code = f"""
import os, colmem
colmem.open({str(path)!r}).store(colmem.document("zephyrine"))
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert len(run("list", path, "--json").json) == 1
    assert len(run("fetch", path, "zephyrine", "--mode", "keyword", "--json").json) == 1
    assert run("sql", path, "SELECT count(*) AS n FROM items", "--json").json == [{"n": 1}]


def test_control_characters_do_not_reach_a_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    run("store", path, "red \x1b[31m alert", "--tag", "\x1b]0;title\x07")
    for args in (["list", path], ["fetch", path, "alert"], ["explore", path, "tag"]):
        ran = run(*args)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out
    assert "\\u001b" in run("list", path, "--json").out
