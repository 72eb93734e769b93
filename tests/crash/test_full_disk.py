"""A disk that fills up under every file of the store, DuckDB's and tantivy's included."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.crash
SCRIPT = Path(__file__).with_name("full_disk.py")


def fill_disk(store: Path, size: int, how: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(store), str(size), how],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("how", ["space", "close"])
def test_a_full_disk_loses_nothing(store_path: Path, how: str) -> None:
    fill_disk(store_path, 400_000, how)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["space", "close"])
@pytest.mark.parametrize("size", [105_000, 150_000, 250_000, 600_000, 900_000, 2_000_000])
def test_a_full_disk_of_any_size_loses_nothing(store_path: Path, size: int, how: str) -> None:
    fill_disk(store_path, size, how)


@pytest.mark.parametrize("size", [500, pytest.param(0, marks=pytest.mark.slow)])
def test_indexes_that_cannot_be_written_are_brought_level_later(
    store_path: Path, size: int
) -> None:
    fill_disk(store_path, size, "indexes")
