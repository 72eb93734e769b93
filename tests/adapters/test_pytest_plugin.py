"""The fixtures for hosts, in a run of pytest of their own; and what loading them costs."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("colmem.engine", "duckdb", "numba", "numpy", "pyarrow", "tantivy")
HOST = """
import colmem


def test_in_memory(colmem_engine):
    assert colmem_engine.stats()["path"] == ":memory:"
    colmem_engine.store(colmem.document("one"))
    assert len(colmem_engine.list().items) == 1


def test_each_test_has_an_empty_one(colmem_engine):
    assert colmem_engine.list().items == []


def test_on_disk(colmem_store, tmp_path):
    colmem_store.store(colmem.document("kept"))
    colmem_store.close()
    with colmem.open(tmp_path / "store.colmem") as again:
        assert [hit.text for hit in again.list().items] == ["kept"]
"""
HOST_WITH_AN_EMBEDDER = """
import pytest


@pytest.fixture(scope="session")
def colmem_embedder():
    return "hotmem-hash-v1"


def test_its_embedder(colmem_engine, colmem_store):
    assert colmem_engine.embedder.key == colmem_store.embedder.key == "hotmem-hash-v1"
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    disabled = ("asyncio", "codspeed", "langsmith_plugin", "recording", "schemathesis", "syrupy")
    command += [part for name in disabled for part in ("-p", f"no:{name}")]
    return subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_host.py").write_text(HOST)
    (tmp_path / "test_host_embedder.py").write_text(HOST_WITH_AN_EMBEDDER)
    ran = run_pytest(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout


def test_the_plugin_alone_loads_no_engine() -> None:
    code = (
        "import sys, colmem.adapters.pytest_plugin; "
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_it_is_found_by_its_entry_point() -> None:
    from importlib.metadata import entry_points

    [point] = entry_points(group="pytest11", name="colmem")
    assert point.value == "colmem.adapters.pytest_plugin"
