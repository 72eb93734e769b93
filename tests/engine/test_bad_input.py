"""Wrong paths, damaged files, wrong embedders, second openings: clear errors, nothing lost."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import colmem
from agreement import assert_agreement
from colmem import maintenance
from colmem.contract import (
    ConfigError,
    CorruptStore,
    InvalidRequest,
    MemoryMeta,
    MetaFilter,
    StoreLocked,
    Unavailable,
    Unsupported,
    VersionUnsupported,
    document,
)
from live_copy import copy_live

WORD = "common"
N_ITEMS = 60


def make(n: int, name: str = "item") -> list[Any]:
    metas = [MemoryMeta(tags=[f"t{i % 3}"]) for i in range(n)]
    texts = [f"{WORD} {name} number{i} " + "abc " * (i % 5) for i in range(n)]
    return [document(text, meta=meta) for text, meta in zip(texts, metas, strict=True)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was closed cleanly, with forgotten items, a second frame and a compaction."""
    path = tmp_path_factory.mktemp("made") / "store"
    with colmem.open(path) as engine:
        engine.store_many(make(N_ITEMS))
        engine.store(document(f"{WORD} last"))
        engine.forget(filter=MetaFilter(tags_any=["t2"]))
        assert_agreement(engine, WORD)
    return path


@pytest.fixture
def store(made: Path, store_path: Path) -> Path:
    """A copy of the store, to be damaged."""
    shutil.copytree(made, store_path)
    return store_path


@pytest.fixture(scope="module")
def ids(made: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the store holds, in order."""
    copy = tmp_path_factory.mktemp("ids") / "store"
    shutil.copytree(made, copy)
    with colmem.open(copy) as engine:
        return assert_agreement(engine, WORD)


def is_whole(path: Path, ids: list[str]) -> None:
    """The store holds these items, works, and goes on working when written to."""
    with colmem.open(path) as engine:
        assert assert_agreement(engine, WORD) == ids
        assert engine.check().problems == []
        engine.store(document(f"{WORD} afterwards"))
        assert len(assert_agreement(engine, WORD)) == len(ids) + 1
    with colmem.open(path) as engine:
        assert len(assert_agreement(engine, WORD)) == len(ids) + 1


def part(path: Path, folder: str, name: str) -> Path:
    """A file of the store's only generation."""
    (found,) = (path / folder).glob(f"*/{name}")
    return found


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path, at: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0xFF
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


Damage = Callable[[Path], None]


# Paths.


def test_a_file_in_place_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt is a file; a store is a directory"):
        colmem.open(path)
    assert path.read_text() == "mine"


def test_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(ConfigError, match=r"is not empty and holds no store\.json"):
        colmem.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_no_store_where_none_is_to_be_made(store_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="there is no store at"):
        colmem.open(store_path, **options)
    assert not store_path.exists()


def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="file"):
        colmem.open(tmp_path / "file" / "store")


def test_a_folder_that_cannot_be_made() -> None:
    with pytest.raises(ConfigError, match="/proc/colmem-store cannot be created"):
        colmem.open("/proc/colmem-store")


def test_an_empty_folder_becomes_a_store(store_path: Path) -> None:
    store_path.mkdir()
    with colmem.open(store_path) as engine:
        engine.store(document(WORD))


@pytest.mark.parametrize("left", [["lock"], ["lock", "store.json.new"]])
def test_a_creation_that_was_killed_at_once_is_made_good(store_path: Path, left: Any) -> None:
    store_path.mkdir()
    for name in left:
        (store_path / name).write_text("{")
    with colmem.open(store_path) as engine:
        engine.store(document(WORD))
        assert engine.check().problems == []


# The table.


@pytest.mark.parametrize("damage", [garbage, truncate, empty])
def test_a_damaged_table_is_refused_and_mended(store: Path, ids: list[str], damage: Damage) -> None:
    damage(store / "items.duckdb")
    before = _listing(store)
    with pytest.raises(CorruptStore, match=r"items\.duckdb.*colmem check --repair"):
        colmem.open(store)
    assert _listing(store) == before
    report = maintenance.repair(store)
    assert report.ok, report.problems
    assert report.items == len(ids)
    is_whole(store, ids)


def test_a_missing_table_is_refused_and_mended(store: Path, ids: list[str]) -> None:
    (store / "items.duckdb").unlink()
    with pytest.raises(CorruptStore, match=r"items\.duckdb is missing.*colmem check --repair"):
        colmem.open(store)
    assert not (store / "items.duckdb").exists()
    assert maintenance.repair(store).ok
    is_whole(store, ids)


def test_a_table_of_another_program_is_refused(store: Path, ids: list[str]) -> None:
    kept = (store / "items.duckdb").rename(store.parent / "kept")
    with duckdb.connect(str(store / "items.duckdb")) as connection:
        connection.execute("CREATE TABLE items (name VARCHAR)")
    with pytest.raises(CorruptStore, match=r"items\.duckdb"):
        colmem.open(store)
    kept.rename(store / "items.duckdb")
    is_whole(store, ids)


# The lexical index.


@pytest.mark.parametrize("damage", [remove, garbage, truncate, empty])
@pytest.mark.parametrize("which", ["colmem.json", "meta.json", "*.term", "*.store", "*.fast"])
def test_a_damaged_lexical_index_is_built_anew(
    store: Path, ids: list[str], which: str, damage: Damage
) -> None:
    damage(next(iter((store / "lexical").glob(f"*/{which}"))))
    is_whole(store, ids)


def test_a_missing_lexical_index_is_built_anew(store: Path, ids: list[str]) -> None:
    shutil.rmtree(store / "lexical")
    is_whole(store, ids)


def test_a_lexical_index_that_breaks_in_use_is_built_anew(store: Path, ids: list[str]) -> None:
    with colmem.open(store) as engine:
        for path in (store / "lexical").glob("*/*"):
            path.write_bytes(b"")
        engine.store_many(make(3, "later"))
        assert len(assert_agreement(engine, WORD)) == len(ids) + 3


# The embeddings.


def test_cut_embeddings_are_refused_by_name(store: Path, ids: list[str]) -> None:
    path = part(store, "vectors", "embeddings.f32")
    kept = path.read_bytes()
    truncate(path)
    with pytest.raises(CorruptStore, match=r"embeddings\.f32 holds \d+ whole embeddings"):
        colmem.open(store)
    path.unlink()
    with pytest.raises(CorruptStore, match=r"embeddings\.f32"):
        colmem.open(store)
    path.write_bytes(kept)
    is_whole(store, ids)


def test_changed_embeddings_are_found_by_check(store: Path) -> None:
    flip(part(store, "vectors", "embeddings.f32"))
    with colmem.open(store) as engine:
        assert any("embeddings.f32" in problem for problem in engine.check().problems)


def test_embeddings_can_be_made_anew(store: Path, ids: list[str]) -> None:
    """What `reembed` promises to an operator whose embeddings are damaged."""
    garbage(part(store, "vectors", "embeddings.f32"))
    with colmem.open(store) as engine:
        engine.reembed("static-s256")
    is_whole(store, ids)


@pytest.mark.parametrize("damage", [remove, garbage, truncate, empty])
def test_damaged_word_pieces_are_made_anew(store: Path, ids: list[str], damage: Damage) -> None:
    damage(part(store, "vectors", "pieces.u16"))
    is_whole(store, ids)


# The row log.


@pytest.mark.parametrize("cut", [1, 30, 150])
def test_a_torn_tail_of_the_row_log_is_dropped(store: Path, ids: list[str], cut: int) -> None:
    """As a crash leaves it: neither the table nor the resident columns have seen the frame."""
    torn = store.parent / "torn"
    with colmem.open(store) as engine:
        engine.store(document(f"{WORD} torn off, which makes a frame of some two hundred bytes"))
        copy_live(store, torn)
    log = part(torn, "rows", "items.log")
    os.truncate(log, log.stat().st_size - cut)
    is_whole(torn, ids)


def test_damage_in_the_middle_of_the_row_log_is_refused_and_mended(
    store: Path, ids: list[str]
) -> None:
    log = part(store, "rows", "items.log")
    part(store, "rows", "resident.bin").unlink()
    flip(log, 200)
    with pytest.raises(CorruptStore, match=r"items\.log is damaged at byte 0.*check --repair"):
        colmem.open(store)
    report = maintenance.repair(store)
    assert report.ok, report.problems
    is_whole(store, ids)


def test_damage_that_the_resident_columns_hide_is_found_and_mended(
    store: Path, ids: list[str]
) -> None:
    flip(part(store, "rows", "items.log"), 200)
    with colmem.open(store) as engine:
        assert any("items.log is damaged" in problem for problem in engine.check().problems)
    report = maintenance.repair(store)
    assert report.ok, report.problems
    is_whole(store, ids)


def test_reading_a_damaged_item_names_the_file(store: Path) -> None:
    garbage(part(store, "rows", "items.log"))
    with colmem.open(store) as engine, pytest.raises(CorruptStore, match=r"items\.log"):
        engine.list(limit=100)


@pytest.mark.parametrize("damage", [truncate, empty, remove])
def test_a_cut_row_log_is_refused_and_mended(store: Path, ids: list[str], damage: Damage) -> None:
    damage(part(store, "rows", "items.log"))
    with pytest.raises(CorruptStore, match=r"items\.log"):
        colmem.open(store)
    report = maintenance.repair(store)
    assert report.ok, report.problems
    is_whole(store, ids)


# The resident columns.


@pytest.mark.parametrize("damage", [remove, garbage, truncate, empty])
def test_damaged_resident_columns_are_built_anew(
    store: Path, ids: list[str], damage: Damage
) -> None:
    damage(part(store, "rows", "resident.bin"))
    is_whole(store, ids)


def test_changed_resident_columns_are_built_anew(store: Path, ids: list[str], rng: Any) -> None:
    path = part(store, "rows", "resident.bin")
    kept = path.read_bytes()
    for _ in range(12):
        flip(path, rng.randrange(len(kept)))
        with colmem.open(store) as engine:
            assert assert_agreement(engine, WORD) == ids
        path.write_bytes(kept)


# The settings.


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b'{"format": "1"}', b"\xff\xfe"])
def test_settings_that_cannot_be_read(store: Path, ids: list[str], content: bytes) -> None:
    kept = (store / "store.json").read_bytes()
    (store / "store.json").write_bytes(content)
    with pytest.raises(CorruptStore, match=r"store\.json is damaged"):
        colmem.open(store)
    (store / "store.json").write_bytes(kept)
    is_whole(store, ids)


def test_settings_of_a_newer_version(store: Path, ids: list[str]) -> None:
    kept = (store / "store.json").read_bytes()
    (store / "store.json").write_bytes(b'{"format": 99, "something": "else"}')
    with pytest.raises(VersionUnsupported, match="has format 99, this version reads up to"):
        colmem.open(store)
    (store / "store.json").write_bytes(kept)
    is_whole(store, ids)


def test_unknown_settings_are_left_alone(store: Path, ids: list[str]) -> None:
    held = json.loads((store / "store.json").read_bytes())
    (store / "store.json").write_text(json.dumps({**held, "later": {"a": 1}}))
    is_whole(store, ids)


# Embedders.


class Other:
    """An embedder of any key and dimension."""

    def __init__(self, key: str, dim: int) -> None:
        self.key = key
        self.dim = dim

    def embed(self, texts: Any) -> Any:
        seeds = [np.random.default_rng(abs(hash((self.key, text))) % 2**32) for text in texts]
        return np.array([seed.normal(size=self.dim) for seed in seeds], np.float32).reshape(
            len(texts), self.dim
        )


def test_an_unknown_embedder(store_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no embedder has the key 'nope'; known keys: static"):
        colmem.open(store_path, embedder="nope")
    assert not store_path.exists()


@pytest.mark.parametrize(
    "other", [Other("another", 256), Other("static-s256", 64), "hotmem-hash-v1"]
)
def test_another_embedder_than_the_recorded_one(store: Path, ids: list[str], other: Any) -> None:
    key = other if isinstance(other, str) else other.key
    with pytest.raises(ConfigError, match="holds embeddings of static-s256") as e:
        colmem.open(store, embedder=other)
    assert key in str(e.value)
    is_whole(store, ids)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((1, 3), np.float32), "shape"),
        (np.zeros((2, 4), np.float32), "shape"),
        (np.full((1, 4), np.nan, np.float32), "not finite"),
    ],
)
def test_an_embedder_that_answers_wrongly(store_path: Path, answer: Any, message: str) -> None:
    other = Other("wrong", 4)
    other.embed = lambda texts: answer  # type: ignore[method-assign]
    with colmem.open(store_path, embedder=other) as engine:
        with pytest.raises(ConfigError, match=message):
            engine.store(document(WORD))
        assert engine.list(limit=1).items == []


def test_an_embedder_that_fails_leaves_the_store_as_it_was(store_path: Path) -> None:
    other = Other("fails", 4)
    with colmem.open(store_path, embedder=other) as engine:
        engine.store(document(f"{WORD} one"))
        other.embed = lambda texts: 1 / 0  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            engine.store(document(f"{WORD} two"))
        assert len(engine.list(limit=5).items) == 1
        assert len(engine.fetch(query=WORD, mode="keyword", limit=5).hits) == 1


# Openings.


def test_a_second_opening_in_the_same_process(store: Path, ids: list[str]) -> None:
    with colmem.open(store):
        started = time.perf_counter()
        with pytest.raises(StoreLocked, match=rf"already open by process {os.getpid()}"):
            colmem.open(store)
        with pytest.raises(StoreLocked, match=rf"already open by process {os.getpid()}"):
            colmem.open(store, read_only=True)
        assert time.perf_counter() - started < 1
    is_whole(store, ids)


def test_a_second_opening_in_another_process_names_the_first(store: Path, ids: list[str]) -> None:
    script = (
        "import sys, time, colmem, colmem.engine\n"
        "from colmem.contract import StoreLocked\n"
        "started = time.perf_counter()\n"
        "try:\n"
        "    colmem.open(sys.argv[1])\n"
        "except StoreLocked as error:\n"
        "    print(time.perf_counter() - started, error.code, error)\n"
    )
    with colmem.open(store):
        run = [sys.executable, "-c", script, str(store)]
        done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=120)
    taken, code, message = done.stdout.split(" ", 2)
    assert code == "store_locked"
    assert f"process {os.getpid()}" in message
    assert float(taken) < 1
    is_whole(store, ids)


def test_a_repair_beside_an_open_engine_is_refused(store: Path, ids: list[str]) -> None:
    with colmem.open(store) as engine:
        with pytest.raises(StoreLocked):
            maintenance.repair(store)
        engine.store(document(f"{WORD} still here"))
        assert len(assert_agreement(engine, WORD)) == len(ids) + 1
    assert not (store / "items.duckdb.damaged").exists()
    assert maintenance.repair(store).ok


def test_a_table_that_another_program_has_open_is_not_taken_for_damaged(
    store: Path, ids: list[str]
) -> None:
    script = (
        "import sys, duckdb\n"
        "with duckdb.connect(sys.argv[1]):\n"
        "    print('open', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    run = [sys.executable, "-c", script, str(store / "items.duckdb")]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        for call in (colmem.open, maintenance.repair):
            with pytest.raises(StoreLocked, match=r"items\.duckdb is open elsewhere"):
                call(store)
        other.communicate()
    is_whole(store, ids)


def test_many_readers_at_once_and_no_writer_beside_them(store: Path, ids: list[str]) -> None:
    readers = [colmem.open(store, read_only=True) for _ in range(3)]
    try:
        for reader in readers:
            assert assert_agreement(reader, WORD) == ids
            assert reader.sql("SELECT count(*) AS n FROM items").to_pylist() == [{"n": len(ids)}]
            assert reader.health().is_serving
        with pytest.raises(StoreLocked):
            colmem.open(store)
    finally:
        for reader in readers:
            reader.close()
    is_whole(store, ids)


def test_a_reader_changes_nothing(store: Path, ids: list[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    with colmem.open(store, read_only=True) as reader:
        assert assert_agreement(reader, WORD) == ids
        writes: list[Callable[[], Any]] = [
            lambda: reader.store(document("new")),
            lambda: reader.store_many([document("new")]),
            lambda: reader.ingest([document("new")]),
            lambda: reader.forget(ids=ids[:1]),
            lambda: reader.forget(filter=MetaFilter(tags_any=["t0"])),
            lambda: reader.compact(),
            lambda: reader.reembed("hotmem-hash-v1"),
        ]
        for write in writes:
            with pytest.raises(Unsupported, match="was opened read_only"):
                write()
        assert assert_agreement(reader, WORD) == ids
    after = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    assert after == before


def test_a_reader_after_a_crash_sees_everything(store: Path, ids: list[str]) -> None:
    crashed = store.parent / "crashed"
    with colmem.open(store) as engine:
        engine.store_many(make(5, "later"))
        copy_live(store, crashed)
    with colmem.open(crashed, read_only=True) as reader:
        assert len(assert_agreement(reader, WORD)) == len(ids) + 5
        with pytest.raises(Unavailable, match="open the store once without read_only"):
            reader.sql("SELECT count(*) FROM items")
    with colmem.open(crashed) as engine:
        assert engine.sql("SELECT count(*) AS n FROM items").to_pylist() == [{"n": len(ids) + 5}]


def test_a_closed_engine_says_so(store: Path) -> None:
    engine = colmem.open(store)
    engine.close()
    engine.close()
    assert engine.health().state == "down"
    assert engine.descriptor().id == "colmem"
    calls: list[Callable[[], Any]] = [
        lambda: engine.store(document("new")),
        lambda: engine.list(limit=1),
        lambda: engine.get(ids=["x"]),
        lambda: engine.explore(facet="kind"),
        lambda: engine.fetch(query=WORD),
        lambda: engine.recall(question=WORD),
        lambda: engine.forget(ids=["x"]),
        lambda: engine.sql("SELECT 1"),
        lambda: engine.to_arrow(),
        lambda: engine.compact(),
        lambda: engine.check(),
        lambda: engine.stats(),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="the engine is closed"):
            call()


def test_requests_of_other_types_are_refused() -> None:
    with colmem.open(":memory:") as engine:
        with pytest.raises(InvalidRequest):
            engine.list(filter={"workspace": "x"})
        with pytest.raises((InvalidRequest, TypeError)):
            engine.store("text")
        with pytest.raises((InvalidRequest, TypeError)):
            engine.store_many([document("a"), None])
        assert engine.list(limit=1).items == []


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_text_that_is_no_unicode_is_refused(mode: str) -> None:
    with colmem.open(":memory:") as engine:
        engine.store(document(f"{WORD} \0 nul"))
        for call in (
            lambda: engine.fetch(query="x\ud800", mode=mode),
            lambda: engine.recall(question="\udfff"),
            lambda: engine.store(document("x\ud800")),
            lambda: engine.store(document("x", meta=MemoryMeta(tags=["\ud800"]))),
            lambda: engine.list(filter=MetaFilter(folder="\ud800")),
        ):
            with pytest.raises(InvalidRequest, match="lone surrogate"):
                call()
        with pytest.raises(InvalidRequest, match="unknown cursor") as error:
            engine.list(cursor="\ud800")
        assert str(error.value).encode()
        assert engine.get(ids=["\ud800"]) == []
        assert engine.forget(ids=["\ud800"]).forgotten == 0
        assert len(assert_agreement(engine, WORD)) == 1


def _listing(store: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in sorted(store.rglob("*")) if path.is_file()}
