"""snapshot, hydrate and verify: what they write, read, print and refuse."""

import json
from pathlib import Path

import pytest
from cli_runs import ITEMS, Run

HOTMEM = Path(__file__).parents[2] / "data" / "hotmem-snapshot"
N_RECORDS = 200


def test_a_store_moves_whole(run: Run, filled: Path, tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy.colmem"
    written = run("snapshot", filled, out, "--json")
    assert written.code == 0
    assert written.json[0]["exported"] == len(ITEMS)
    verified = run("verify", out, "--json")
    assert verified.json[0]["valid"] is True
    assert verified.json[0]["snapshot_id"] == written.json[0]["snapshot_id"]
    loaded = run("hydrate", copy, out, "--json")
    assert loaded.json[0]["loaded"] == len(ITEMS)
    again = run("hydrate", copy, out, "--json")
    assert (again.json[0]["loaded"], again.json[0]["skipped_dupes"]) == (0, len(ITEMS))
    # A snapshot is in order of id, a listing in order of storing.
    held = [sorted(run("list", s, "--json").json, key=lambda h: h["id"]) for s in (copy, filled)]
    assert held[0] == held[1]


def test_a_hotmem_snapshot_comes_out_as_it_went_in(run: Run, tmp_path: Path) -> None:
    store, out = tmp_path / "hotmem.colmem", tmp_path / "out"
    loaded = run("hydrate", store, HOTMEM, "--embedder", "hotmem-hash-v1", "--json")
    assert (loaded.json[0]["loaded"], loaded.json[0]["embedding_reused"]) == (N_RECORDS,) * 2
    assert run("snapshot", store, out).code == 0
    assert (out / "memories.jsonl").read_bytes() == (HOTMEM / "memories.jsonl").read_bytes()


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "package", "package.gz", "columnar"])
def test_every_format_is_read_back(run: Run, filled: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / (f"out.{form}" if form.startswith("jsonl") else "out")
    assert run("snapshot", filled, out, "--format", form).code == 0
    loaded = run("hydrate", tmp_path / "copy.colmem", out, "--json")
    assert loaded.json[0]["loaded"] == len(ITEMS)


def test_a_filtered_and_an_incremental_snapshot(run: Run, filled: Path, tmp_path: Path) -> None:
    part, base, delta = (tmp_path / name for name in ("part", "base", "delta"))
    assert run("snapshot", filled, part, "--kind", "learning", "--json").json[0]["exported"] == 1
    run("snapshot", filled, base)
    run("store", filled, "One more thing to know.")
    written = run("snapshot", filled, delta, "--since", base, "--json")
    assert written.json[0]["exported"] == 1
    copy = tmp_path / "copy.colmem"
    refused = run("hydrate", copy, delta)
    assert refused.code == 1
    assert "hydrate its base first" in refused.err
    run("hydrate", copy, base)
    assert run("hydrate", copy, delta, "--json").json[0]["loaded"] == 1


def test_damage_is_named_and_nothing_is_loaded(run: Run, filled: Path, tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy.colmem"
    run("snapshot", filled, out)
    data = bytearray((out / "memories.jsonl").read_bytes())
    data[10] ^= 1
    (out / "memories.jsonl").write_bytes(data)
    verified = run("verify", out, "--json")
    assert verified.code == 1
    assert json.loads(verified.out.splitlines()[0])["reason"] == "mismatch"
    assert run("hydrate", copy, out).code == 1
    assert run("stats", copy, "--json").json[0]["items"] == 0


@pytest.mark.parametrize("command", ["verify", "hydrate"])
def test_a_path_with_nothing_at_it(run: Run, filled: Path, tmp_path: Path, command: str) -> None:
    stores = [filled] if command == "hydrate" else []
    ran = run(command, *stores, tmp_path / "absent")
    assert ran.code == 1
    assert "absent" in ran.err
