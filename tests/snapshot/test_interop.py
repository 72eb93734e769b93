"""Both directions with the real HotMem: v2, legacy files, packages, and its own database files."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from peer import Peer, PeerFailedError

from colmem.contract import MemoryMeta, ToolCallRef, Turn, conversation, document, encode, learning
from colmem.snapshot.mapping import item_of_record
from colmem.snapshot.record import normalise, settle
from colmem.snapshot.verify import verify

Stores = Callable[[], Any]


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer() as running:
        yield running


def odd_lines() -> list[dict[str, Any]]:
    """Records with every field in many spellings, from a fixed seed."""
    rng = random.Random(5)
    texts = ["", "plain", "ünï\u2028\x00\x7f", "𝄞 clef", 'q"\\/\b', "a:b", " padded ", "日本語"]
    values: list[Any] = [
        None,
        1,
        0.1,
        -0.0,
        1e22,
        1e-7,
        2**70,
        True,
        "x",
        [1, [2]],
        {"b": 1, "a": 2},
    ]
    lines = []
    for i in range(250):
        is_file = rng.random() < 0.2
        line: dict[str, Any] = {
            "id": f"{rng.getrandbits(128):032x}",
            "identifier": f"{rng.choice(texts)}{i}",
            "fact_text": rng.choice(texts) + f" number {i}",
            "created_at": rng.choice(["2026-01-02T03:04:05Z", "yesterday", ""]),
            "metadata": {rng.choice(texts): rng.choice(values) for _ in range(rng.randrange(3))},
            "tags": [rng.choice(values) for _ in range(rng.randrange(3))],
            "importance": rng.choice([0, 1, 0.25, 1e300, float("inf"), None, "0.5", True]),
            "source": rng.choice(texts),
            "namespace": rng.choice(["", "team/a", "agent:x"]),
            "tier": rng.choice(["hot", "cold", ""]),
            "ttl_seconds": rng.choice([None, 0, 5, "7", 2**40]),
            "schema_version": rng.choice([1, 2, None]),
            "promotion_state": rng.choice(["HOT", "ARCHIVED", None]),
            "promotion_candidate": rng.choice([0, 1, None]),
            "provenance": rng.choice([None, {"z": 1, "a": [1.5]}]),
            "fact_summary": rng.choice([None, "", "in short"]),
            "updated_at": rng.choice([None, "2026"]),
            "parent_memory": rng.choice(["", "p"]),
            "related_memories": rng.choice([[], ["r", 5]]),
            "extra": rng.choice(values),
        }
        if is_file:
            line |= {
                "memory_type": "file",
                "source_uri": f"data/{i}.csv",
                "byte_offset": rng.choice([None, 0, 9]),
                "byte_length": rng.choice([0, 5, None]),
            }
        lines.append(line)
    return lines


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def exported(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HotMem database of odd records, and its exports in every format."""
    folder = tmp_path_factory.mktemp("peer")
    peer.hydrate(write_lines(folder / "lines.jsonl", odd_lines()), folder / "peer.db")
    peer.snapshot(folder / "v2", folder / "peer.db")
    peer.snapshot(folder / "old.jsonl", folder / "peer.db")
    peer.snapshot(folder / "old.jsonl.gz", folder / "peer.db")
    return folder


def counts(report: Any) -> dict[str, int]:
    return dict(msgspec.structs.asdict(report))


def test_lines_load_alike(peer: Peer, stores: Stores, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "lines.jsonl", odd_lines())
    assert counts(stores().hydrate(lines)) == peer.hydrate(lines, tmp_path / "peer.db")


@pytest.mark.parametrize("name", ["v2", "old.jsonl", "old.jsonl.gz", "peer.db"])
def test_exports_load_and_leave_alike(
    name: str, exported: Path, stores: Stores, tmp_path: Path
) -> None:
    store = stores()
    report = store.hydrate(exported / name)
    assert report.invalid == 0
    store.snapshot(tmp_path / "v2")
    ours, theirs = tmp_path / "v2", exported / "v2"
    assert (ours / "memories.jsonl").read_bytes() == (theirs / "memories.jsonl").read_bytes()
    assert verify(ours).snapshot_id == verify(theirs).snapshot_id


def test_legacy_text_leaves_alike(exported: Path, stores: Stores, tmp_path: Path) -> None:
    store = stores()
    store.hydrate(exported / "old.jsonl")
    store.snapshot(tmp_path / "old.jsonl")
    assert (tmp_path / "old.jsonl").read_bytes() == (exported / "old.jsonl").read_bytes()


def test_packages_in_both_directions(peer: Peer, stores: Stores, tmp_path: Path) -> None:
    lines = [line for line in odd_lines() if line["importance"] != float("inf")]
    peer.hydrate(write_lines(tmp_path / "lines.jsonl", lines), tmp_path / "peer.db")
    peer.snapshot(tmp_path / "theirs", tmp_path / "peer.db", "--package")
    peer.snapshot(tmp_path / "theirs.gz", tmp_path / "peer.db", "--package", "--gz")
    plain, packed = stores(), stores()
    assert (
        plain.hydrate(tmp_path / "theirs").loaded == packed.hydrate(tmp_path / "theirs.gz").loaded
    )
    plain.snapshot(tmp_path / "ours", format="package")
    packed.snapshot(tmp_path / "ours.gz", format="package.gz")
    theirs = (tmp_path / "theirs" / "memories.jsonl").read_bytes()
    assert (tmp_path / "ours" / "memories.jsonl").read_bytes() == theirs
    for name in ("ours", "ours.gz"):
        assert peer.verify(tmp_path / name)["valid"] == "True"
        back = peer.hydrate(tmp_path / name, tmp_path / f"{name}.db")
        assert back["loaded"] == verify(tmp_path / name).record_count


def peer_rows(db: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(db) as con:
        con.row_factory = sqlite3.Row
        rows = [dict(row) for row in con.execute("SELECT * FROM memories ORDER BY id")]
    con.close()
    return rows


ITEMS = [
    document("body ünï", title="Title", mime="text/plain", meta=MemoryMeta(folder="/a")),
    learning("a claim", kind="procedure", confidence=0.3, evidence="seen"),
    conversation(
        [Turn("user", "hi", "2026-01-02T03:04:05Z", [ToolCallRef("f", "1")])],
        meta=MemoryMeta(observed_at="2026-01-02T03:04:05.5Z", tags=["t"]),
    ),
]


@pytest.mark.parametrize("name", ["v2", "ours.jsonl", "ours.jsonl.gz"])
def test_our_items_survive_the_peer(
    name: str, peer: Peer, stores: Stores, exported: Path, tmp_path: Path
) -> None:
    store = stores()
    store.hydrate(exported / "v2")
    for item in ITEMS:
        store.store(item)
    store.snapshot(tmp_path / name)
    if name == "v2":
        report = peer.verify(tmp_path / name)
        assert report["snapshot_id"] == verify(tmp_path / name).snapshot_id
    loaded = peer.hydrate(tmp_path / name, tmp_path / "peer.db")
    held = store.rows()
    assert loaded["loaded"] == len(held)
    # Field by field, as the peer stored them.
    for row, record in zip(peer_rows(tmp_path / "peer.db"), held, strict=True):
        for field in ("id", "identifier", "fact_text", "content_hash", "created_at", "source"):
            assert row[field] == record[field]
        assert json.loads(row["metadata_json"]) == record["metadata"]
    # And back again: the very same items.
    peer.snapshot(tmp_path / "back", tmp_path / "peer.db")
    lines = (tmp_path / "back" / "memories.jsonl").read_text().splitlines()
    records = {}
    for line in lines:
        record = normalise(json.loads(line), source="snapshot")
        assert settle(record, loaded_at="now")
        records[record.id] = record
    for item in ITEMS:
        got, _ = item_of_record(records[item.fingerprint()])
        assert encode(got) == encode(item)
    again = stores()
    again.hydrate(tmp_path / "back")
    assert [row["id"] for row in again.rows()] == [row["id"] for row in held]


def test_attachments_are_those_of_the_peer(peer: Peer, stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_bytes(b"0123456789" * 1000)
    line = {"memory_type": "file", "source_uri": "data/a.txt", "source_format": "txt"}
    lines = [
        {**line, "id": f"i{n}", "identifier": f"a{n}", "byte_offset": n, "byte_length": length}
        for n, length in enumerate([5, 8191, 8192, 0, 5])
    ]
    peer.hydrate(write_lines(tmp_path / "lines.jsonl", lines), tmp_path / "peer.db")
    peer.snapshot(tmp_path / "theirs", tmp_path / "peer.db", "--attach")
    store = stores()
    store.hydrate(tmp_path / "lines.jsonl")
    store.snapshot(tmp_path / "ours", attach=True, base_dir=tmp_path)
    theirs, ours = (
        json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in ("theirs", "ours")
    )
    for key in ("attachments", "file_backed_references"):
        assert ours[key] == theirs[key]


def test_merged_annotations_are_those_of_the_peer(
    peer: Peer, stores: Stores, tmp_path: Path
) -> None:
    def line(n: int, items: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        envelope = {"schema_version": 1, "namespaces": {"a.b": items}, **more}
        return {"id": f"i{n}", "identifier": f"a{n}", "metadata": {"annotations": envelope}} | {
            "fact_text": f"t{n}",
            "created_at": "c",
        }

    full = [{"id": str(i)} for i in range(1000)]
    first = [line(0, [{"id": "a", "v": 1}]), line(1, full), line(2, [], producers={"p": 1})]
    second = [
        line(0, [{"id": "a", "v": 1.0}, {"id": "b"}], other=1),
        line(1, [{"id": "1", "x": 1}, {"id": "new"}]),
        line(2, [], producers={"p": 2, "q": 1}, more=[1]),
        line(2, [{"id": "z"}]),
    ]
    store = stores()
    for name, lines in (("first", first), ("second", second), ("again", second)):
        path = write_lines(tmp_path / f"{name}.jsonl", lines)
        assert counts(store.hydrate(path)) == peer.hydrate(path, tmp_path / "peer.db"), name
    theirs = [json.loads(row["metadata_json"]) for row in peer_rows(tmp_path / "peer.db")]
    assert [row["metadata"] for row in store.rows()] == theirs


def test_the_peer_refuses_what_is_damaged(peer: Peer, stores: Stores, tmp_path: Path) -> None:
    store = stores()
    store.store(ITEMS[0])
    store.snapshot(tmp_path / "v2")
    path = tmp_path / "v2" / "memories.jsonl"
    path.write_bytes(path.read_bytes().replace(b"body", b"boby"))
    with pytest.raises(PeerFailedError):
        peer.verify(tmp_path / "v2")
