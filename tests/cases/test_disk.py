"""DISK: storing again costs nothing, and single stores do not litter (D22)."""

import gc
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

import colmem
from samples import WORD, folder_bytes, make


def importing_again_costs_nothing(store_path: Path, n: int) -> None:
    items = make(n)
    with colmem.open(store_path) as engine:
        engine.ingest(items)
    before = folder_bytes(store_path)
    for _ in range(10):
        with colmem.open(store_path) as engine:
            report = engine.ingest(items)
            assert (report.stored, report.replayed) == (0, n)
    assert folder_bytes(store_path) < before * 1.02


def test_d22_importing_again_costs_nothing(store_path: Path) -> None:
    importing_again_costs_nothing(store_path, 1_000)


@pytest.mark.slow
def test_d22_importing_ten_thousand_again_costs_nothing(store_path: Path) -> None:
    importing_again_costs_nothing(store_path, 10_000)


def fetch_p50_s(engine: Any) -> float:
    times = []
    for i in range(60):
        started = time.perf_counter()
        engine.fetch(query=f"{WORD} item{i}x", mode="hybrid", limit=10)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def single_stores_do_not_litter(tmp_path: Path, n: int) -> None:
    items = make(n)
    with colmem.open(tmp_path / "single") as engine, colmem.open(tmp_path / "bulk") as bulk:
        bulk.ingest(items)
        for i, item in enumerate(items):
            engine.store(item)
            if i % (n // 50) == 0:
                engine.fetch(query=WORD, mode="keyword", limit=3)
        n_files = sum(path.is_file() for path in (tmp_path / "single").rglob("*"))
        assert n_files < 400, "files pile up before maintenance"
        engine.compact()
        n_files = sum(path.is_file() for path in (tmp_path / "single").rglob("*"))
        assert n_files < 64
        fetch_p50_s(engine), fetch_p50_s(bulk)
        # Interleaved, best of three: the machine may be busy with something else.
        ratios = [fetch_p50_s(engine) / fetch_p50_s(bulk) for _ in range(3)]
        assert min(ratios) < 1.5


def test_d22_single_stores_do_not_litter(tmp_path: Path) -> None:
    single_stores_do_not_litter(tmp_path, 500)


@pytest.mark.slow
def test_d22_five_thousand_single_stores_do_not_litter(tmp_path: Path) -> None:
    single_stores_do_not_litter(tmp_path, 5_000)


def test_d22_compactions_leave_no_open_files(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store_many(make(20))
        engine.compact()
        gc.collect()
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(8):
            engine.compact()
        gc.collect()
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
