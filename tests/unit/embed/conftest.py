"""The golden files of the embedders as fixtures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden"
Classes = dict[int, tuple[str, tuple[int, ...] | None]]


@pytest.fixture(scope="session")
def golden_embeddings() -> list[dict]:
    with gzip.open(GOLDEN / "model" / "golden_embed.jsonl.gz", "rt", encoding="utf-8") as lines:
        settings, *records = [json.loads(line) for line in lines]
    assert len(records) == settings["records"] == 489
    return records


@pytest.fixture(scope="session")
def golden_unicode() -> Classes:
    """Class and mapped code points of every listed code point (None: itself)."""
    classes: Classes = {}
    path = GOLDEN / "model" / "golden_unicode.tsv.gz"
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("#"):
                first, last, kind, mapped = line.rstrip("\n").split("\t")
                targets = None if mapped == "-" else tuple(int(p, 16) for p in mapped.split())
                for code_point in range(int(first, 16), int(last, 16) + 1):
                    classes[code_point] = (kind, targets)
    return classes


@pytest.fixture(scope="session")
def golden_hashes() -> list[dict]:
    path = GOLDEN / "snapshot" / "vectors" / "hash_v1.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 204
    return records
