"""Every line under golden/snapshot/vectors, counted: a vector nobody reads is a failure."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import hash_v1
import numpy as np
import pytest

from colmem.snapshot import annotations, digests, embedding, json_form, record

VECTORS = Path(__file__).parents[2] / "golden" / "snapshot" / "vectors"
COUNTS = {
    "annotations": 47,
    "content_hash": 96,
    "digests": 50,
    "embedding_compat": 129,
    "hash_v1": 204,
    "normalize": 227,
}


def lines(name: str) -> list[dict[str, Any]]:
    read = [
        json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(read) == COUNTS[name]
    return read


def test_every_file_is_read() -> None:
    assert {path.stem for path in VECTORS.glob("*.jsonl")} == set(COUNTS)


def test_hash_v1_oracle() -> None:
    for case in lines("hash_v1"):
        assert hash_v1.vector(case["text"]).hex() == case["f32le_hex"], case["text"]


def test_content_hash() -> None:
    for case in lines("content_hash"):
        if case["kind"] == "inline":
            got = record.content_hash(case["identifier"], case["fact_text"])
        else:
            got = record.file_content_hash(
                case["identifier"],
                case["source_uri"],
                case["byte_offset"],
                case["byte_length"],
                case["source_checksum"],
            )
        assert got == case["content_hash"], case


def test_digests() -> None:
    for case in lines("digests"):
        if case["kind"] == "snapshot_id":
            ids = digests.SnapshotId()
            for value in case["content_hashes"]:
                ids.add(value)
            assert ids.hexdigest() == case["digest"], case
        else:
            assert digests.overall(dict(case["files"])) == case["digest"], case


def settled(case: dict[str, Any]) -> record.Record | None:
    try:
        made = record.normalise(json.loads(case["raw_json"]), source="snapshot")
    except record.UnstorableError:
        return None
    return made if record.settle(made, loaded_at="<now>") else None


def plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": {"inf": "inf", "-inf": "-inf", "nan": "nan"}[str(value)]}
    return value


def test_normalised_records() -> None:
    for case in lines("normalize"):
        made = record.normalise(json.loads(case["raw_json"]), source="snapshot")
        got = {key: plain(value) for key, value in made.view().items()}
        assert record.is_hydratable(made) is case["hydratable"], case["raw_json"]
        expected = case["normalized"]
        if expected["id"] is None or '"id"' not in case["raw_json"]:
            assert got.pop("id") == ""
            expected = {key: value for key, value in expected.items() if key != "id"}
        assert json.dumps(got, sort_keys=True) == json.dumps(expected, sort_keys=True), case


def test_stored_rows_and_lines() -> None:
    n_exact = 0
    for case in lines("normalize"):
        made = settled(case)
        if case.get("row") is None:
            assert made is None, case["raw_json"]
            continue
        assert made is not None, case["raw_json"]
        if case["row_binding"] != "exact":
            continue
        n_exact += 1
        text = made.embedded_text()
        made.embedding = hash_v1.vector(text) if text else None
        made.embedding_model = hash_v1.KEY if text else ""
        made.embedding_dim = hash_v1.DIM
        row = {key: plain(value) for key, value in made.view().items()}
        row["embedding"] = base64.b64encode(made.embedding).decode() if made.embedding else None
        assert row == case["row"], case["raw_json"]
        if case.get("v2_line") is not None:
            assert json_form.v2_line(made) == case["v2_line"].rstrip("\n") + "\n"
    assert n_exact > 150


@pytest.mark.parametrize("batch", [1, 129])
def test_embedding_compatibility(batch: int) -> None:
    cases = lines("embedding_compat")
    for start in range(0, len(cases), batch):
        part = cases[start : start + batch]
        records = [
            record.Record(
                fact_text=case["record"].get("fact_text", ""),
                fact_summary=case["record"].get("fact_summary"),
                memory_type=case["record"].get("memory_type", "fact"),
                embedding=case["record"].get("embedding"),
                embedding_dim=case["record"].get("embedding_dim"),
                embedding_model=case["record"].get("embedding_model"),
            )
            for case in part
        ]
        vectors, is_reusable = embedding.reusable(records, key=hash_v1.KEY, dim=hash_v1.DIM)
        assert vectors.dtype == np.float32
        for case, made, row, is_reused in zip(part, records, vectors, is_reusable, strict=True):
            text = made.embedded_text()
            status = "reused" if is_reused else "rebuilt" if text else "missing"
            stored = row.tobytes() if is_reused else hash_v1.vector(text) if text else b""
            assert status == case["status"], case
            assert base64.b64encode(stored).decode() == case["embedding"], case
            assert case["model"] == ("" if status == "missing" else hash_v1.KEY)


def envelope_of(case: dict[str, Any]) -> Any:
    recipe = case.get("annotations_recipe")
    if recipe is None:
        return case["annotations"]
    if recipe.startswith("namespaces org.example with 1001 items"):
        items = [{"id": str(i)} for i in range(1001)]
    else:
        assert recipe == "one item {'id':'a','pad':'x'*131072}"
        items = [{"id": "a", "pad": "x" * 131072}]
    return {"schema_version": 1, "namespaces": {"org.example": items}}


def test_annotations() -> None:
    for case in lines("annotations"):
        if case["kind"] == "validate":
            assert annotations.is_valid(envelope_of(case)) is case["valid"], case
            continue
        got = annotations.merge(case["target"], case["incoming"])
        assert got.merged == case["merged"], case
        assert got.n_items == case["merged_items"], case
        assert [list(c.values()) for c in case["conflicts"]] == [list(c) for c in got.conflicts]
