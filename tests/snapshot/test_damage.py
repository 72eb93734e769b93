"""Damage of every kind, in every file, at many places: found before anything is written (D20)."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colmem.contract import SnapshotChecksumError
from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.verify import verify

Stores = Callable[[], Any]
FORMATS = ("v2", "package", "package.gz", "columnar")


def make(stores: Stores, folder: Path, format: str) -> Any:
    (folder / "data.txt").write_bytes(b"0123456789" * 50)
    lines = [
        {"id": f"id{n:03}", "identifier": f"a{n}", "fact_text": f"text number {n} " * 3}
        for n in range(40)
    ]
    file = {"memory_type": "file", "source_uri": "data.txt", "byte_length": 20}
    lines += [{**file, "id": f"f{n}", "identifier": f"f{n}", "byte_offset": n} for n in range(3)]
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = stores()
    store.hydrate(path)
    options = {"attach": True, "base_dir": folder} if format == "v2" else {}
    store.snapshot(folder / "good", format=format, **options)
    return store


def damages(good: Path, rng: random.Random) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Every kind of damage, some at random places."""
    files = sorted(
        path.relative_to(good)
        for path in good.rglob("*")
        if path.is_file() and path.name != "metadata.json"
    )
    payloads = [name for name in files if name.name != "manifest.json"]
    for name in files:
        size = (good / name).stat().st_size
        for at in {0, size - 1, *(rng.randrange(size) for _ in range(60))}:
            yield f"flip {name} {at}", lambda d, n=name, a=at: flip(d / n, a, 1 << rng.randrange(8))
        for keep in {0, size - 1, *(rng.randrange(size) for _ in range(4))}:
            yield f"cut {name} {keep}", lambda d, n=name, k=keep: cut(d / n, k)
        yield f"drop {name}", lambda d, n=name: (d / n).unlink()
    for name in payloads:
        for extra in (b"\n", b"{}\n", b'{"id":"x","identifier":"a","fact_text":"b"}\n', b"\0"):
            yield f"add {name} {extra!r}", lambda d, n=name, e=extra: append(d / n, e)
    for one, other in itertools.pairwise(payloads):
        yield f"swap {one} {other}", lambda d, a=one, b=other: swap(d / a, d / b)
    for name in payloads:
        if name.name == "memories.jsonl":
            for _ in range(6):
                i, j = rng.sample(range(43), 2)
                yield f"reorder {i} {j}", lambda d, n=name, i=i, j=j: reorder(d / n, i, j)


def flip(path: Path, at: int, mask: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def append(path: Path, extra: bytes) -> None:
    path.write_bytes(path.read_bytes() + extra)


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def reorder(path: Path, i: int, j: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[i], lines[j] = lines[j], lines[i]
    path.write_bytes(b"".join(lines))


def shown(store: Any) -> list[dict[str, Any]]:
    return [{**row, "created_at": "", "schema_version": 0} for row in store.rows()]


@pytest.mark.parametrize("format", FORMATS)
def test_d20_damage_is_found_before_anything_is_written(
    format: str, stores: Stores, tmp_path: Path
) -> None:
    expected = shown(make(stores, tmp_path, format))
    good, bad = tmp_path / "good", tmp_path / "bad"
    n_found = n_harmless = 0
    store = stores()
    for name, damage in damages(good, random.Random(20)):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        damage(bad)
        if is_refused(store, bad):
            n_found += 1
            assert store.rows() == [], name
            with pytest.raises(SnapshotChecksumError):
                verify(bad)
        else:
            # What no digest covers cannot change what is loaded: information in the manifest, or
            # the parts of a gzip header that say nothing.
            n_harmless += 1
            assert "manifest.json" in name or "memories.jsonl.gz" in name, f"{name} went unnoticed"
            assert shown(store) == expected, name
            store = stores()
    assert n_found >= (190 if format == "v2" else 40), (n_found, n_harmless)
    # A manifest of our own is sealed: only its last line end is beyond its digest.
    assert n_harmless <= (1 if format == "columnar" else n_found / 2)


def is_refused(store: Any, path: Path) -> bool:
    try:
        store.hydrate(path)
    except SnapshotChecksumError:
        return True
    return False


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_broken_legacy_files_leave_the_store_as_it_was(
    suffix: str, stores: Stores, tmp_path: Path
) -> None:
    store = make(stores, tmp_path, "v2")
    store.snapshot(tmp_path / f"old{suffix}")
    data = (tmp_path / f"old{suffix}").read_bytes()
    target = stores()
    for size in range(1, len(data) - 1, 97):
        part = data[:size]
        if suffix == ".jsonl" and part.endswith((b"}", b"}\n")):
            continue
        (tmp_path / f"cut{suffix}").write_bytes(part)
        with pytest.raises(SnapshotReadError):
            target.hydrate(tmp_path / f"cut{suffix}")
        assert target.rows() == []


def test_an_older_snapshot_stays_until_the_new_one_is_complete(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colmem.snapshot import publish

    store = make(stores, tmp_path, "v2")
    before = {p: p.read_bytes() for p in (tmp_path / "good").rglob("*") if p.is_file()}

    def fail(folder: Path) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(publish, "sync_tree", fail)
    with pytest.raises(OSError, match="no space"):
        store.snapshot(tmp_path / "good")
    assert {p: p.read_bytes() for p in (tmp_path / "good").rglob("*") if p.is_file()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.txt", "good", "lines.jsonl"]


def test_replacing_keeps_strangers_and_drops_stale_attachments(
    stores: Stores, tmp_path: Path
) -> None:
    store = make(stores, tmp_path, "v2")
    (tmp_path / "good" / "notes.txt").write_text("mine")
    assert list((tmp_path / "good" / "attachments").iterdir())
    store.snapshot(tmp_path / "good")
    assert (tmp_path / "good" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "good" / "attachments").exists()
    assert verify(tmp_path / "good").record_count == 43


def test_a_payload_that_changes_while_it_is_read_is_refused(stores: Stores, tmp_path: Path) -> None:
    from colmem.snapshot.reader import open_source

    make(stores, tmp_path, "v2")
    source = open_source(tmp_path / "good")
    append(tmp_path / "good" / "memories.jsonl", b"{}\n")
    with pytest.raises(SnapshotChecksumError, match="changed"):
        list(source.batches())
