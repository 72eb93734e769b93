"""A hydrate killed at any moment leaves a store that opens, and running it again completes it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import colmem
from colmem.snapshot.hydrate import HydrateReport

N_RECORDS = 30_000
PROGRAM = """
import sys
import colmem
with colmem.open(sys.argv[1], embedder="hotmem-hash-v1") as engine:
    told = lambda done, total: print(done, flush=True)
    engine.hydrate(sys.argv[2], progress=told)
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crash") / "in.jsonl"
    with path.open("w") as file:
        for n in range(N_RECORDS):
            record = {"id": f"id{n:06}", "identifier": f"k{n}", "fact_text": f"text {n}"}
            file.write(json.dumps({**record, "created_at": "2026-01-02T03:04:05Z"}) + "\n")
    return path


@pytest.mark.crash
@pytest.mark.parametrize("n_told", [1, 3, 5])
def test_a_killed_hydrate_is_finished_by_the_next(n_told: int, lines: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store), str(lines)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(n_told):
        assert child.stdout.readline()
    time.sleep(0.05 * n_told)  # wherever it then is
    child.kill()
    child.wait()
    child.stdout.close()
    with colmem.open(store, embedder="hotmem-hash-v1") as engine:
        before = sum(1 for _ in engine.records())
        report = engine.hydrate(lines)
        assert report == HydrateReport(
            loaded=N_RECORDS - before,
            skipped_dupes=before,
            embedding_rebuilt=N_RECORDS - before,
        )
        assert sum(1 for _ in engine.records()) == N_RECORDS
        assert engine.check().ok
