"""LOSS: every number of items survives a clean restart, in every mode (D3)."""

import subprocess
import sys
from pathlib import Path

import pytest

import colmem
from agreement import assert_agreement
from colmem import bulk, lexical_level
from colmem import store as store_module
from samples import WORD, make

SIZES = [0, 1, 999, 1_000, 1_001]
BORDERS = [bulk.BATCH_ROWS, lexical_level.BATCH_ROWS, store_module.FLUSH_ROWS, 4_096]


def survives_restart(store_path: Path, n: int) -> None:
    items = make(n)
    with colmem.open(store_path) as engine:
        engine.ingest(items)
    with colmem.open(store_path) as engine:
        assert assert_agreement(engine, WORD) == [item.fingerprint() for item in items]
        if items:
            for item in (items[0], items[n // 2], items[-1]):
                word = item.body.text.split()[-1]
                for mode in engine.descriptor().fetch_modes:
                    best = engine.fetch(query=word, mode=mode, limit=1).hits[0]
                    assert mode == "vector" or best.text == item.body.text


@pytest.mark.parametrize("n", SIZES)
def test_d03_a_restart_keeps_any_number_of_items(store_path: Path, n: int) -> None:
    survives_restart(store_path, n)


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_d03_a_restart_keeps_any_number_around_a_batch(
    store_path: Path, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "FLUSH_ROWS", 64)
    monkeypatch.setattr(store_module, "FLUSH_ROWS_MAX", 128)
    monkeypatch.setattr(lexical_level, "BATCH_ROWS", 128)
    survives_restart(store_path, 128 + by)


@pytest.mark.slow
@pytest.mark.parametrize("by", [-1, 0, 1])
@pytest.mark.parametrize("border", sorted({*BORDERS}))
def test_d03_a_restart_keeps_any_number_around_the_real_batches(
    store_path: Path, border: int, by: int
) -> None:
    survives_restart(store_path, border + by)


@pytest.mark.slow
def test_d03_a_restart_keeps_fifty_thousand(store_path: Path) -> None:
    survives_restart(store_path, 50_000)


def test_d03_a_new_process_finds_all(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.ingest(make(300))
    script = (
        "import sys, colmem\n"
        "with colmem.open(sys.argv[1]) as engine:\n"
        "    for mode in ('keyword', 'vector', 'hybrid'):\n"
        "        page = engine.fetch(query='common', mode=mode, limit=1000)\n"
        "        assert len(page.hits) == 300, (mode, len(page.hits))\n"
    )
    run = [sys.executable, "-c", script, str(store_path)]
    subprocess.run(run, check=True, timeout=300)
