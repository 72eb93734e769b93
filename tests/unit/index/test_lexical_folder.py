"""The lexical index on disk: reopening, crashes between steps, damage, read-only copies."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from item_batches import batch_of

from colmem.contract import MetaFilter
from colmem.index import lexical as module
from colmem.index import lexical_files
from colmem.index.lexical import LexicalIndex
from colmem.index.lexical_files import LexicalDamagedError, check_files


def fill(folder, texts, first_row=0):
    index = LexicalIndex(folder)
    index.add(batch_of(texts, first_row))
    index.commit(first_row + len(texts))
    index.close()


def state(folder, **options):
    """Watermark and rows of a folder's index."""
    index = LexicalIndex(folder, **options)
    try:
        return index.watermark, index.matching_rows(MetaFilter(), 0).tolist()
    finally:
        index.close()


def rows(index, query):
    return index.search(query, 10, filter=MetaFilter(), now_s=0).rows.tolist()


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path / "lexical", [f"owl number{i}" for i in range(20)])
    return tmp_path / "lexical"


def test_a_reopened_index_goes_on(folder):
    assert state(folder) == (20, list(range(20)))
    fill(folder, ["zephyrine"], 20)
    index = LexicalIndex(folder)
    assert index.watermark == 21
    assert rows(index, "zephyrine") == [20]
    index.delete(np.array([20, 0]))
    index.commit(21)
    index.close()
    assert state(folder) == (21, list(range(1, 20)))


def test_expiry_is_known_after_reopening(tmp_path):
    index = LexicalIndex(tmp_path)
    index.add(batch_of([{"text": "owl", "expires_s": 5}, "owl"]))
    index.commit(2)
    index.close()
    index = LexicalIndex(tmp_path)
    assert index.search("owl", 9, filter=MetaFilter(), now_s=5).rows.tolist() == [1]
    index.close()


def test_uncommitted_rows_are_lost_and_leave_nothing(folder):
    index = LexicalIndex(folder)
    index.add(batch_of(["owl"] * 5, 20))
    index.close()
    assert state(folder) == (20, list(range(20)))


def test_a_crash_between_tantivys_commit_and_ours_loses_no_rows(folder):
    held = (folder / "colmem.json").read_bytes()
    fill(folder, ["zephyrine", "owl"], 20)
    (folder / "colmem.json").write_bytes(held)
    assert state(folder) == (22, list(range(22)))


def test_a_crash_before_the_first_commit_starts_anew(tmp_path):
    index = LexicalIndex(tmp_path)
    index.close()
    assert state(tmp_path) == (0, [])
    # Or right after it, before it is recorded.
    held = (tmp_path / "colmem.json").read_bytes()
    fill(tmp_path, ["owl"])
    (tmp_path / "colmem.json").write_bytes(held)
    assert state(tmp_path) == (1, [0])


def test_a_cut_of_a_bulk_load_that_crashed_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SEGMENT_ROWS", 8)
    index = LexicalIndex(tmp_path)
    index.add(batch_of(["owl"] * 10))
    assert index.watermark == 8
    index._writer.rollback()  # as a kill would
    index.close()
    assert state(tmp_path) == (8, list(range(8)))


def test_another_version_starts_anew(folder):
    held = json.loads((folder / "colmem.json").read_text())
    for key in ("layout", "analyser"):
        (folder / "colmem.json").write_text(json.dumps(held | {key: 0}))
        assert state(folder) == (0, [])
        fill(folder, ["owl"])


@pytest.mark.parametrize("name", ["colmem.json", "meta.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "other"])
def test_a_damaged_state_starts_anew(folder, name, damage):
    path = folder / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "garbage": b"\xff{", "other": b"[1]"}[damage])
    assert state(folder) == (0, [])
    fill(folder, ["owl"])
    assert state(folder) == (1, [0])


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "longer"])
def test_a_damaged_segment_starts_anew(folder, damage):
    paths = [path for path in folder.iterdir() if path.suffix in (".idx", ".term", ".fast")]
    assert len(paths) >= 3
    for path in paths:
        copy = folder.with_name(f"{damage}{path.suffix}")
        shutil.copytree(folder, copy)
        path = copy / path.name
        data = path.read_bytes()
        path.unlink()
        if damage != "missing":
            flipped = bytes([data[0] ^ 1]) + data[1:]
            path.write_bytes(
                {"empty": b"", "cut": data[:-1], "flipped": flipped, "longer": data + b"x"}[damage]
            )
        assert state(copy) == (0, [])


def test_a_large_index_is_checked_when_asked_for(folder, monkeypatch):
    monkeypatch.setattr(lexical_files, "_CHECKED_BYTES_MAX", 10)
    path = next(folder.glob("*.idx"))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    check_files(folder)
    with pytest.raises(LexicalDamagedError, match="is not what was written"):
        check_files(folder, all_bytes=True)


def test_a_file_in_place_of_the_folder_is_an_error_of_the_system(tmp_path):
    (tmp_path / "lexical").write_text("")
    with pytest.raises(OSError, match="lexical"):
        LexicalIndex(tmp_path / "lexical")


def test_read_only_adds_to_a_copy_of_its_own(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    index = LexicalIndex(folder, read_only=True)
    assert index.watermark == 20
    index.add(batch_of(["zephyrine"], 20))
    index.delete(np.array([3]))
    index.commit(21)
    assert rows(index, "zephyrine") == [20]
    assert rows(index, "number3") == []
    index.clear()
    index.add(batch_of(["alone"]))
    index.commit(1)
    assert rows(index, "alone") == [0]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    copy = index._folder
    index.close()
    assert not copy.exists()


def test_read_only_of_nothing_makes_nothing(tmp_path):
    assert state(tmp_path / "absent", read_only=True) == (0, [])
    assert not (tmp_path / "absent").exists()


def test_a_failed_write_goes_on_from_the_last_commit(folder, monkeypatch):
    index = LexicalIndex(folder)

    def fail(batch):
        raise OSError(28, "No space left on device")

    index.add(batch_of(["owl"], 20))
    monkeypatch.setattr(module, "meta_terms", fail)
    with pytest.raises(LexicalDamagedError, match="writing"):
        index.add(batch_of(["owl"], 21))
    monkeypatch.undo()
    index.commit(20)
    assert index.matching_rows(MetaFilter(), 0).tolist() == list(range(20))
    index.add(batch_of(["zephyrine"], 20))
    index.commit(21)
    assert rows(index, "zephyrine") == [20]
    index.close()


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from item_batches import batch_of
from colmem.index.lexical import LexicalIndex
index = LexicalIndex(Path(sys.argv[1]))
row = index.watermark
while True:
    index.add(batch_of([f"owl number{i}" for i in range(row, row + 7)], row))
    row += 7
    index.commit(row)
    print(row, flush=True)
"""


@pytest.mark.crash
def test_killed_writers_leave_a_level_index_and_no_orphans(tmp_path):
    folder = tmp_path / "lexical"
    command = [sys.executable, "-c", CHILD, str(folder), str(Path(__file__).parent)]
    for round_ in range(6):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        acknowledged = 0
        for _ in range(3 + round_):
            acknowledged = int(child.stdout.readline())
        child.kill()
        child.wait()
        child.stdout.close()
        watermark, held = state(folder)
        assert watermark >= acknowledged
        assert held == list(range(watermark))
    index = LexicalIndex(folder)
    index.commit(index.watermark)
    index.flush()
    index.close()
    check_files(folder, all_bytes=True)
    assert all(path.stat().st_size for path in folder.iterdir() if path.suffix != ".lock")
    ids = {
        segment["segment_id"]
        for segment in json.loads((folder / "meta.json").read_text())["segments"]
    }
    named = {path.name.split(".")[0] for path in folder.iterdir() if len(path.name) > 32}
    assert named <= {id.replace("-", "") for id in ids}
    assert os.listdir(folder)


def test_a_file_that_a_killed_writer_left_is_in_nobodys_way(folder, tmp_path):
    # A copy tells the name that the next deletion gives its file; here it stands there already.
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    forget_one(copy)
    (deleted,) = copy.glob("*.del")
    shutil.copyfile(deleted, folder / deleted.name)
    managed = folder / ".managed.json"
    managed.write_text(json.dumps([*json.loads(managed.read_text()), deleted.name]))
    forget_one(folder)
    assert state(folder) == (20, list(range(1, 20)))


def forget_one(folder):
    index = LexicalIndex(folder)
    index.delete(np.array([0]))
    index.commit(20)
    index.close()
