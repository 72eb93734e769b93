"""Whatever stands in a payload or a manifest: the documented errors, and nothing else."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from colmem.contract import SnapshotChecksumError
from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.json_form import legacy_line, v2_line
from colmem.snapshot.limits import DEFAULT_LIMITS
from colmem.snapshot.lines import Lines
from colmem.snapshot.parse import LineReader
from colmem.snapshot.record import (
    KNOWN_KEYS,
    Record,
    UnstorableError,
    normalise,
    settle,
)
from colmem.snapshot.verify import verify

ODD = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"5",
    b"NaN",
    b"-Infinity",
    b"{",
    b"}",
    b'{"fact_text": "\\ud800", "identifier": "a"}',
    b'{"fact_text": "a", "metadata": "\\ud800"}',
    b'{"fact_text": "a", "tags": ["\\ud800"], "provenance": {"\\udc00": 1}}',
    b'{"fact_text": "a", "metadata": {"n": NaN, "i": Infinity, "e": 1e999}}',
    b'{"fact_text": "a", "importance": 1e999}',
    b'{"fact_text": "a", "importance": 123456789012345678901234567890}',
    b'{"fact_text": "a", "ttl_seconds": 1e999}',
    b'{"fact_text": "a", "ttl_seconds": 99999999999999999999}',
    b'{"fact_text": "a", "byte_offset": "1_000", "ttl_seconds": " \xd9\xa3 "}',
    b'{"fact_text": "a", "schema_version": true, "promotion_candidate": "x"}',
    b'{"fact_text": "a", "metadata": {"k": ' + b"9" * 4300 + b"}}",
    b'{"fact_text": "a", "metadata": {"k": ' + b"9" * 4301 + b"}}",
    b'{"fact_text": ' + b"9" * 4301 + b"}",
    b'{"fact_text": "a", "metadata": ' + b"[" * 799 + b"]" * 799 + b"}",
    b'{"fact_text": "a", "metadata": ' + b"[" * 900 + b"]" * 900 + b"}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"fact_text": "a", "fact_text": "b", "x": {"y": 1, "y": 2}}',
    b'{"fact_text": "a"} {"fact_text": "b"}',
    b'{"fact_text": "a"},',
    b'\xef\xbb\xbf{"fact_text": "a"}',
    b'\xc2\xa0{"fact_text": "a"}\xe3\x80\x80',
    b"\xe3\x80\x80",
    b"\x1c\x1d \x85",
    b'{"fact_text": "a\xff"}',
    b'{"fact_text": "a", "metadata": {"\xff": 1}}',
    b'{"fact_text": "a\x01"}',
    b'{"fact_text": "a\x7f\xc2\x85\xe2\x80\xa8"}',
    b'{"fact_text": "a", "embedding": "\xc3\xa9"}',
    b'{"fact_text": "a", "embedding": "' + b"A" * 344 + b'"}',
    b'{"fact_text": "a", "embedding": [1], "embedding_model": {}}',
    b'{"fact_text": "a", "metadata": {"annotations": null}}',
    b'{"fact_text": "a", "metadata": {"\\u0061nnotations": {}}}',
    b'{"fact_text": "a", "metadata": {"colmem": {"item": {"type": "learning"}}}}',
    b'{"fact_text": "a", "metadata": {"colmem": {"item": {"type": ["x"]}}}}',
    b'{"fact_text": "a", "metadata": {"colmem": 7}}',
    b'{"memory_type": "file", "source_uri": "u", "byte_length": -1, "identifier": "a"}',
    b'{"memory_type": ["file"], "fact_text": "a"}',
    b'{"fact_text": "a", "created_at": 1.5, "updated_at": true, "fact_summary": -0.0}',
    b'{"fact_text": "a", "namespace": "\\u0000", "id": "\\u0000", "source": "\\u0000"}',
]
READER = LineReader(source="snapshot", name="memories.jsonl", limits=DEFAULT_LIMITS)


def strict(line: bytes) -> Record | str | None:
    """The standard library's reading of a line, without the fast path."""
    try:
        raw = json.loads(line.decode().strip())
    except (ValueError, RecursionError):
        return "refused"
    if not isinstance(raw, dict):
        return None
    try:
        record = normalise(raw, source="snapshot")
    except UnstorableError:
        return None
    return record if settle(record, loaded_at=READER.loaded_at) else None


def fast(line: bytes) -> Record | str | None:
    try:
        READER.check(Lines(line), 1)
    except SnapshotReadError:
        with pytest.raises(SnapshotReadError):
            READER.lines(Lines(line), 1)
        return "refused"
    return READER.lines(Lines(line), 1)[0]


def assert_alike(line: bytes) -> None:
    if line.decode("utf-8", "replace").strip():
        assert fast(line) == strict(line), line[:200]
    else:
        assert READER.check(Lines(line), 1) == 0


@pytest.mark.parametrize("line", [line for line in ODD if len(line) < 90_000])
def test_odd_lines_read_alike(line: bytes) -> None:
    if b"[" * 900 in line:
        assert fast(line) == "refused"  # the limit on nesting, which the library does not have
    elif line.strip(b"\x1c\x1d \x85\xe3\x80"):
        assert_alike(line)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", "0", " 7 ", "1_0", "nan", "file", "[1]", '{"a": 1}', "\ud800"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from([*sorted(KNOWN_KEYS), "memory_type", "extra"]) | st.text(max_size=5)
RAW = st.dictionaries(KEYS, VALUES, max_size=8)
FUZZ = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(RAW, st.booleans())
def test_any_object_reads_alike(raw: dict[str, Any], is_ascii: bool) -> None:
    raw.setdefault("identifier", "a")
    raw.setdefault("fact_text", "t")
    assert_alike(json.dumps(raw, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass"))


@FUZZ
@given(RAW, st.data())
def test_any_bytes_read_alike(raw: dict[str, Any], data: st.DataObject) -> None:
    line = bytearray(json.dumps({"fact_text": "t", **raw}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(line) - 1))
        line[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not line:
            return
    assert_alike(bytes(line).replace(b"\n", b"").replace(b"\r", b""))


@settings(FUZZ, max_examples=30)
@given(st.lists(st.sampled_from(ODD) | RAW.map(lambda raw: json.dumps(raw).encode()), max_size=6))
def test_any_payload_loads_or_is_refused(tmp_path: Path, payload: list[bytes]) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(payload))
    store = MemoryStore()
    try:
        report = store.hydrate(path)
    except SnapshotReadError:
        assert store.rows() == []
        return
    assert report.loaded == len(store.rows())
    before = [(row["id"], row["content_hash"]) for row in store.rows()]
    # What was loaded can be written in the formats that hold anything, and comes back.
    for name in ("v2", "old.jsonl"):
        store.snapshot(tmp_path / name)
        again = MemoryStore()
        assert again.hydrate(tmp_path / name).loaded == report.loaded
        assert [(row["id"], row["content_hash"]) for row in again.rows()] == before
        for one, other in zip(store._batches(), again._batches(), strict=True):
            assert list(map(v2_line, one)) == list(map(v2_line, other))
            if name == "old.jsonl":
                assert list(map(legacy_line, one)) == list(map(legacy_line, other))


NAMES = st.sampled_from(
    [
        "memories.jsonl",
        "",
        ".",
        "..",
        "a/../b",
        "/etc/passwd",
        "a\\b",
        "C:/x",
        "a\0b",
        "\ud800",
        "x" * 300,
    ]
) | st.text(max_size=8)
ENTRIES = VALUES | st.fixed_dictionaries({"sha256": VALUES, "size": VALUES})
MANIFESTS = st.fixed_dictionaries(
    {},
    optional={
        "format": st.sampled_from(
            [
                "hotmem-snapshot-v2",
                "hotmem-interchange-v1",
                "colmem-columnar-v1",
                "colmem-delta-v1",
                "x",
            ]
        )
        | VALUES,
        "schema_version": st.sampled_from([1, 2, 3]) | VALUES,
        "files": st.dictionaries(NAMES, ENTRIES, max_size=3) | VALUES,
        "file_backed_references": VALUES,
        "file_references": VALUES,
        "attachments": VALUES,
        "overall_sha256": VALUES,
        "memory_count": VALUES,
        "record_count": VALUES,
        "snapshot_id": VALUES,
        "manifest_sha256": VALUES,
    },
)


@FUZZ
@given(MANIFESTS | VALUES, st.sampled_from([None, b"", b'{"fact_text": "a"}\n', b"nope"]))
def test_any_manifest_is_judged(tmp_path: Path, manifest: Any, payload: bytes | None) -> None:
    folder = tmp_path / "snap"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "memories.jsonl").unlink(missing_ok=True)
    if payload is not None:
        (folder / "memories.jsonl").write_bytes(payload)
    for act in (verify, MemoryStore().hydrate):
        with contextlib.suppress(SnapshotChecksumError, SnapshotReadError):
            act(folder)


PLAIN = b'{"id":"a","identifier":"x","fact_text":"plain","created_at":"2026-01-01T00:00:00Z"}'
SEAMS = [b"{}", b"{} {}", b"{}{}", b'{"a":', b"{}}", b'"}', b"", b" {}", b'{"id":{}', b"[]", b"1"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([PLAIN, *SEAMS, *(x for x in ODD if len(x) < 500)])))
def test_groups_read_as_their_lines_do(group: list[bytes]) -> None:
    joined = Lines(b"".join(line + b"\n" for line in group))
    each = [fast(line) for line in joined if line.decode("utf-8", "replace").strip()]
    if "refused" in each:
        with pytest.raises(SnapshotReadError):
            READER.check(joined, 1)
    else:
        assert READER.check(joined, 1) == len(each)
        assert READER.lines(joined, 1) == each
