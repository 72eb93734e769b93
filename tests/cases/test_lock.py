"""LOCK: nobody hangs before a lock, and no dead process keeps one (D7, D8)."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import assert_agreement
from colmem.contract import StoreLocked
from samples import WORD, make


def test_d07_a_second_process_is_refused_at_once(store_path: Path) -> None:
    """One process holds the store at a time; the other is told which one does."""
    script = (
        "import sys, time, colmem, colmem.engine\n"
        "from colmem.contract import StoreLocked\n"
        "for options in ({}, {'read_only': True}):\n"
        "    started = time.perf_counter()\n"
        "    try:\n"
        "        colmem.open(sys.argv[1], **options)\n"
        "    except StoreLocked as error:\n"
        "        print(time.perf_counter() - started, error)\n"
    )
    with colmem.open(store_path) as engine:
        engine.store_many(make(10))
        run = [sys.executable, "-c", script, str(store_path)]
        done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=120)
        lines = done.stdout.splitlines()
        assert len(lines) == 2
        for line in lines:
            taken, message = line.split(" ", 1)
            assert float(taken) < 1
            assert f"by process {os.getpid()} on " in message
        engine.store_many(make(10, "more"))
        assert len(assert_agreement(engine, WORD)) == 20


@pytest.mark.crash
def test_d08_a_killed_writer_leaves_no_lock(killer: Any, store_path: Path) -> None:
    for _ in range(3):
        killer.kill("holding", store_path, after_steps=1)
        started = time.perf_counter()
        with colmem.open(store_path) as engine:
            assert time.perf_counter() - started < 1
            assert len(assert_agreement(engine, WORD)) == 1


def test_d08_a_closed_engine_leaves_no_lock(store_path: Path) -> None:
    for number in range(5):
        engine = colmem.open(store_path)
        engine.store_many(make(2, f"round{number}n"))
        with pytest.raises(StoreLocked):
            colmem.open(store_path)
        engine.close()
    with colmem.open(store_path) as engine:
        assert len(assert_agreement(engine, WORD)) == 10


def test_d08_an_opening_that_fails_leaves_no_lock(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store_many(make(2))
    (settings,) = store_path.glob("store.json")
    kept = settings.read_bytes()
    settings.write_bytes(b"{")
    for _ in range(2):
        with pytest.raises(colmem.CorruptStore):
            colmem.open(store_path)
    settings.write_bytes(kept)
    with colmem.open(store_path) as engine:
        assert len(assert_agreement(engine, WORD)) == 2
