"""Round trips through every format, the columnar twin, deltas, limits, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from memory_store import MemoryStore

from colmem.contract import InvalidRequest, MemoryMeta, TurnRange, conversation, document, learning
from colmem.snapshot import columnar, reader
from colmem.snapshot import hydrate as loop
from colmem.snapshot.errors import (
    SnapshotMismatchError,
    SnapshotMissingError,
    SnapshotReadError,
)
from colmem.snapshot.limits import Limits
from colmem.snapshot.verify import verify

Stores = Callable[[], Any]
META = MemoryMeta(
    namespace="agent:a",
    workspace="w",
    folder="/n",
    file_path="/n/x.md",
    language="en",
    repo="r",
    commit="c",
    url="https://example.org/",
    thread_id="t",
    turns=TurnRange(1, 4),
    agent_id="ag",
    source="github",
    tags=["b", "a", "b"],
    observed_at="2026-01-02T03:04:05.123456789Z",
)
ITEMS = [
    document("body", title="Title", mime="text/plain", meta=META),
    learning("claim", kind="procedure", confidence=0.3, evidence="seen", meta=META),
    conversation([("user", "hi"), ("assistant", "there")], meta=META),
]
ALL_FORMATS = ("v2", "jsonl", "jsonl.gz", "package", "package.gz", "columnar")


def foreign(n: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id{n:05}",
        "identifier": f"key {n}",
        "fact_text": f"text number {n}",
        "created_at": "2026-01-02T03:04:05Z",
        **more,
    }


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def filled(stores: Stores, tmp_path: Path, n: int = 30) -> Any:
    store = stores()
    odd = {
        "metadata": {"z": [1, 2**70], "a": {"b": -0.0}},
        "provenance": {"x": 1},
        "tags": ["t", 5],
    }
    lines = [foreign(i, **(odd if i % 3 else {}), ttl_seconds=i * 10**9 or None) for i in range(n)]
    lines.append(
        foreign(
            n, memory_type="file", source_uri="a.csv", byte_length=5, fact_text="", updated_at="u"
        )
    )
    store.hydrate(write_lines(tmp_path / "in.jsonl", lines))
    for item in ITEMS:
        store.store(item)
    return store


@pytest.mark.parametrize("format", ALL_FORMATS)
def test_d19_every_kind_comes_back_whole(format: str, stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    name = "out" + (f".{format}" if format.startswith("jsonl") else "")
    report = store.snapshot(tmp_path / name, format=format)
    assert report.exported == len(store.rows()) == 34
    again = stores()
    assert again.hydrate(tmp_path / name).loaded == 34
    dropped = set()
    if format in ("v2", "package", "package.gz"):
        # The older readers' records do not have these.
        dropped = {"updated_at", "snapshot_id", "parent_memory", "related_memories"}
    if format != "columnar":
        dropped.add("schema_version")
    for row, other in zip(store.rows(), again.rows(), strict=True):
        assert {k: v for k, v in row.items() if k not in dropped} == {
            k: v for k, v in other.items() if k not in dropped
        }
    store.snapshot(tmp_path / "one")
    again.snapshot(tmp_path / "two")
    one, two = (tmp_path / n / "memories.jsonl" for n in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert verify(tmp_path / "one").snapshot_id == report.snapshot_id
    assert again.hydrate(tmp_path / name).skipped_dupes == 34


def test_order_of_building_does_not_show(stores: Stores, tmp_path: Path) -> None:
    lines = [foreign(n) for n in range(50)]
    outputs = []
    for seed in (1, 2):
        random.Random(seed).shuffle(lines)
        store = stores()
        store.hydrate(write_lines(tmp_path / "in.jsonl", lines))
        store.snapshot(tmp_path / f"out{seed}")
        outputs.append((tmp_path / f"out{seed}" / "memories.jsonl").read_bytes())
    assert outputs[0] == outputs[1]


def test_columnar_is_plain_parquet(stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    report = store.snapshot(tmp_path / "col", format="columnar")
    assert verify(tmp_path / "col").snapshot_id == report.snapshot_id
    table = pq.read_table(tmp_path / "col" / "memories-00000.parquet")
    assert table.num_rows == 34
    assert table["id"].to_pylist() == [row["id"] for row in store.rows()]
    assert table.schema.field("embedding").type.list_size == 64


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.large_string()], ids=str)
@pytest.mark.parametrize("column", ["promotion_candidate", "importance", "identifier"])
def test_a_parquet_column_of_another_type_is_refused(
    column: str, kind: pa.DataType, stores: Stores, tmp_path: Path
) -> None:
    folder = tmp_path / "col"
    filled(stores, tmp_path).snapshot(folder, format="columnar")
    path = folder / "memories-00000.parquet"
    table = pq.read_table(path)
    odd = pa.array([1] * len(table)).cast(kind)
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, odd), path)
    with pytest.raises(SnapshotReadError, match=rf"has {kind} in column {column}, expected"):
        columnar.parts(folder, Limits())


def test_columnar_of_an_empty_store(stores: Stores, tmp_path: Path) -> None:
    stores().snapshot(tmp_path / "col", format="columnar")
    assert stores().hydrate(tmp_path / "col").loaded == 0


def test_delta_carries_what_changed(stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    store.snapshot(tmp_path / "base")
    copy = stores()
    copy.hydrate(tmp_path / "base")
    store.forget(["id00003", "id00010"])
    envelope = {"schema_version": 1, "namespaces": {"a.b": [{"id": "n"}]}}
    changed = foreign(5, metadata={"annotations": envelope})
    store.hydrate(write_lines(tmp_path / "more.jsonl", [foreign(100), changed]))
    report = store.snapshot(tmp_path / "delta", since=tmp_path / "base")
    assert report.exported == 2
    shown = verify(tmp_path / "delta")
    assert shown.base_snapshot_id == verify(tmp_path / "base").snapshot_id
    for forgotten in (3, 1):  # applied twice: what it brings is there already
        applied = copy.hydrate(tmp_path / "delta")
        assert applied.forgotten == forgotten
        copy.snapshot(tmp_path / "copy")
        store.snapshot(tmp_path / "store")
        one, two = (tmp_path / n / "memories.jsonl" for n in ("copy", "store"))
        assert one.read_bytes() == two.read_bytes()
    with pytest.raises(SnapshotMismatchError, match="another"):
        stores().hydrate(tmp_path / "delta")
    with pytest.raises(SnapshotReadError, match="delta itself"):
        store.snapshot(tmp_path / "x", since=tmp_path / "delta")


@pytest.mark.parametrize("format", ["columnar", "package"])
def test_delta_of_any_base(format: str, stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    store.snapshot(tmp_path / "base", format=format)
    store.hydrate(write_lines(tmp_path / "more.jsonl", [foreign(7777)]))
    assert store.snapshot(tmp_path / "delta", since=tmp_path / "base").exported == 1


def test_delta_needs_a_base_in_order(stores: Stores, tmp_path: Path) -> None:
    write_lines(tmp_path / "base.jsonl", [foreign(2), foreign(1)])
    with pytest.raises(SnapshotReadError, match="order of id"):
        filled(stores, tmp_path).snapshot(tmp_path / "delta", since=tmp_path / "base.jsonl")


LIMITS = Limits(line_bytes_max=400, nesting_max=8, digits_max=10, payload_bytes_max=5000)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"fact_text": "' + "a" * 500 + '"}', "line_bytes_max"),
        ('{"fact_text": "x", "tags": ' + "[" * 9 + "]" * 9 + "}", "nesting_max"),
        ('{"fact_text": "x", "metadata": {"a": 12345678901}}', "digits_max"),
        ('{"fact_text": "x"}\n' * 400, "payload_bytes_max"),
        ('{"fact_text": "x"}\n' * 10 + "nope", "line 11"),
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_limits_say_what_they_are(line: str, message: str, suffix: str, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / f"in{suffix}"
    data = line.encode()
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    with pytest.raises(SnapshotReadError, match=message):
        reader.open_source(path, limits=LIMITS)


def test_a_text_of_digits_or_brackets_is_no_number_and_no_nesting(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", [{"fact_text": "1" * 50 + "[{" * 20 + '"\\'}])
    source = reader.open_source(path, limits=LIMITS)
    assert [len(batch.records) for batch in source.batches()] == [1]


def test_paths_that_are_nothing(stores: Stores, tmp_path: Path) -> None:
    with pytest.raises(SnapshotMissingError, match="does not exist"):
        stores().hydrate(tmp_path / "none")
    with pytest.raises(SnapshotMissingError):
        verify(tmp_path / "none")
    (tmp_path / "x.db").write_bytes(b"not a database at all")
    with pytest.raises(SnapshotReadError, match="HotMem database"):
        stores().hydrate(tmp_path / "x.db")
    with pytest.raises(SnapshotReadError, match="single file"):
        verify(tmp_path / "x.db")


def test_writers_refuse_what_makes_no_sense(stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    with pytest.raises(InvalidRequest, match="not a snapshot format"):
        store.snapshot(tmp_path / "out", format="v3")
    with pytest.raises(InvalidRequest, match="attachments"):
        store.snapshot(tmp_path / "out", format="package", attach=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidRequest, match="is a file"):
        store.snapshot(tmp_path / "file")
    store.hydrate(write_lines(tmp_path / "in.jsonl", [foreign(900, importance=float("inf"))]))
    with pytest.raises(InvalidRequest, match="v2 snapshot instead"):
        store.snapshot(tmp_path / "out", format="package")
    assert not (tmp_path / "out").exists()


def test_one_text_the_embedder_refuses_spoils_one_row(tmp_path: Path) -> None:
    store = MemoryStore()
    store.fail_embedding_of = "text number 7"
    path = write_lines(tmp_path / "in.jsonl", [foreign(n) for n in range(20)])
    report = store.hydrate(path)
    assert (report.loaded, report.embedding_rebuilt, report.embedding_failed) == (20, 19, 1)
    assert [row["id"] for row in store.rows() if row["embedding"] is None] == ["id00007"]


def test_groups_do_not_show_in_the_counters(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    envelope = {"schema_version": 1, "namespaces": {"a.b": [{"id": "n"}]}}
    lines = []
    for _ in range(6000):
        n = rng.randrange(2500)
        line = foreign(n, metadata={"annotations": envelope} if rng.random() < 0.1 else {})
        if rng.random() < 0.1:
            line["id"] = f"id{rng.randrange(2500):05}"
        lines.append(line)
    path = write_lines(tmp_path / "in.jsonl", lines)
    seen = []
    for n_batches in (1, 3, 100):
        monkeypatch.setattr(loop, "GROUP_BATCHES", n_batches)
        store = stores()
        seen.append((store.hydrate(path), store.rows()))
    assert seen[0] == seen[1] == seen[2]


def test_contract_items_are_not_stored_twice(stores: Stores, tmp_path: Path) -> None:
    store = stores()
    store.store(ITEMS[1])
    store.snapshot(tmp_path / "out")
    assert store.hydrate(tmp_path / "out").skipped_dupes == 1
    assert len(store.rows()) == 1


def test_progress_ends_at_its_total(stores: Stores, tmp_path: Path) -> None:
    store = filled(stores, tmp_path)
    store.snapshot(tmp_path / "out")
    for path in (tmp_path / "out", tmp_path / "in.jsonl"):
        told: list[tuple[int, int]] = []
        loop.hydrate(
            path, MemoryStore(), progress=lambda done, total, t=told: t.append((done, total))
        )
        assert told[-1][0] == told[-1][1] > 0
        assert [done for done, _ in told] == sorted(done for done, _ in told)
