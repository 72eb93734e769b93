"""Every operation of the engine on disk, at 10,000 and 100,000 items of 60 words.

    pytest -o addopts= bench/bench_engine.py --benchmark-only --benchmark-json=engine.json
    python bench/bench_engine.py engine.json > bench/results/engine.md

Texts are Zipf-distributed words made with a fixed seed. Answers are checked before timing; fetches
cycle through a hundred queries.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import colmem
from colmem.contract import Facet, MemoryMeta, MetaFilter, document

SEED, N_WORDS, N_VOCABULARY = 2026, 60, 20_000
SIZES = [10_000, 100_000]


def make_vocabulary(rng):
    letters = np.array(list("abcdefghijklmnoprstuvwy"))
    return ["".join(rng.choice(letters, size)) for size in rng.integers(3, 10, N_VOCABULARY)]


def make_items(n, name="item", seed=SEED):
    """``n`` documents with a value in most metadata fields."""
    rng = np.random.default_rng(seed)
    vocabulary = make_vocabulary(rng)
    ranks = np.minimum(rng.zipf(1.2, (n, N_WORDS)), N_VOCABULARY) - 1
    for i, row in enumerate(ranks):
        meta = MemoryMeta(
            namespace=f"agent:a{i % 20}",
            workspace=f"w{i % 5}",
            folder=f"/notes/{i % 100}/{i % 7}",
            file_path=f"/notes/{i % 100}/{i % 7}/{i}.md",
            language="en",
            tags=[f"t{i % 50}", f"u{i % 1000}"],
            source="file",
            observed_at=f"20{i % 26:02d}-0{1 + i % 9}-1{i % 10}T00:00:00Z",
        )
        yield document(f"{name}{i} " + " ".join(vocabulary[at] for at in row), meta=meta)


def make_queries():
    """A hundred queries of three words, of medium frequency."""
    rng = np.random.default_rng(SEED)
    vocabulary = make_vocabulary(rng)
    picks = np.random.default_rng(SEED + 1).integers(20, 2_000, (100, 3))
    return [" ".join(vocabulary[at] for at in row) for row in picks]


@pytest.fixture(scope="module", params=SIZES)
def store(request, tmp_path_factory):
    """A closed store of so many items, and how long it took to make."""
    path = tmp_path_factory.mktemp("bench") / "store"
    with colmem.open(path) as engine:
        engine.ingest(make_items(request.param))
        engine.fetch(query="warm", mode="hybrid")
    yield path, request.param
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def engine(store):
    path, n = store
    with colmem.open(path) as opened:
        assert opened.explore(facet="kind").total >= n
        yield opened


@pytest.fixture
def queries():
    return itertools.cycle(make_queries())


# Reading.


FILTERS = {
    "no filter": MetaFilter(),
    "half": MetaFilter(reach=colmem.Reach.subtree("root"), observed_after="2013-01-01T00:00:00Z"),
    "1 in 50": MetaFilter(tags_any=["t7"]),
    "1 in 1000": MetaFilter(tags_any=["u7"]),
}


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("filter", FILTERS)
def test_fetch(benchmark, engine, queries, mode, filter):
    wanted = FILTERS[filter]
    page = engine.fetch(query=next(queries), mode=mode, filter=wanted, limit=10)
    assert mode == "keyword" or len(page.hits) == 10, "the filter admits at least ten items"
    assert all(wanted.matches(hit.kind, hit.meta) for hit in page.hits)
    benchmark.extra_info["what"] = f"fetch {mode}, {filter}"
    run = lambda: engine.fetch(query=next(queries), mode=mode, filter=wanted, limit=10)  # noqa: E731
    benchmark.pedantic(run, rounds=100, warmup_rounds=10)


@pytest.mark.parametrize("facet", [Facet.KIND, Facet.WORKSPACE, Facet.FOLDER, Facet.TAG])
@pytest.mark.parametrize("filter", ["no filter", "1 in 50"])
def test_explore(benchmark, engine, facet, filter):
    wanted = FILTERS[filter]
    assert engine.explore(facet=facet, filter=wanted).total > 0
    benchmark.extra_info["what"] = f"explore {facet}, {filter}"
    run = lambda: engine.explore(facet=facet, filter=wanted, limit=50)  # noqa: E731
    benchmark.pedantic(run, rounds=50, warmup_rounds=3)


def test_get(benchmark, engine, store):
    ids = [hit.id for hit in engine.list(limit=store[1]).items][:: store[1] // 200][:200]
    assert [hit.id for hit in engine.get(ids=ids)] == ids
    benchmark.extra_info["what"] = "get 200"
    benchmark.pedantic(lambda: engine.get(ids=ids), rounds=50, warmup_rounds=3)


@pytest.mark.parametrize("page", [1, 1000])
def test_list(benchmark, engine, page):
    cursor = None
    for _ in range(page - 1):
        cursor = engine.list(limit=10, cursor=cursor).next_cursor
    assert len(engine.list(limit=10, cursor=cursor).items) == 10
    benchmark.extra_info["what"] = f"list 10, page {page}"
    benchmark.pedantic(lambda: engine.list(limit=10, cursor=cursor), rounds=100, warmup_rounds=5)


def test_recall(benchmark, engine, queries):
    answer = engine.recall(question=f"what of {next(queries)}", limit=5)
    assert len(answer.citations) <= 5
    benchmark.extra_info["what"] = "recall, extractive"
    run = lambda: engine.recall(question=f"what of {next(queries)}", limit=5)  # noqa: E731
    benchmark.pedantic(run, rounds=30, warmup_rounds=3)


def test_to_arrow(benchmark, engine, store):
    wanted = FILTERS["1 in 50"]
    n = engine.explore(facet=Facet.KIND, filter=wanted).total
    run = lambda: engine.to_arrow(wanted, embeddings=True).read_all()  # noqa: E731
    assert run().num_rows == n
    benchmark.extra_info["what"] = "to_arrow of 1 in 50, embeddings included"
    benchmark.pedantic(run, rounds=10, warmup_rounds=1)


def test_cold_open(benchmark, store):
    path, n = store
    copy = path.parent / "copy"
    shutil.copytree(path, copy)

    def run():
        with colmem.open(copy) as opened:
            assert opened.stats()["items"] >= n

    benchmark.extra_info["what"] = "open and close, kernels loaded"
    benchmark.pedantic(run, rounds=7, warmup_rounds=1)
    shutil.rmtree(copy)


# Writing.


@pytest.fixture
def writable(store, tmp_path):
    """An open copy of the store."""
    shutil.copytree(store[0], tmp_path / "copy")
    with colmem.open(tmp_path / "copy") as opened:
        yield opened


def test_store(benchmark, writable):
    fresh = make_items(120, "fresh", seed=1)
    benchmark.extra_info["what"] = "store (durable)"
    benchmark.pedantic(lambda: writable.store(next(fresh)), rounds=100, warmup_rounds=5)


def test_store_many(benchmark, writable):
    fresh = make_items(2_500, "many", seed=2)

    def setup():
        return ([list(itertools.islice(fresh, 100))],), {}

    benchmark.extra_info["what"] = "store_many of 100 (durable)"
    benchmark.pedantic(
        lambda args: writable.store_many(args[0]), setup=setup, rounds=20, warmup_rounds=2
    )


def test_store_then_fetch(benchmark, writable, queries):
    fresh = make_items(120, "seen", seed=3)

    def run():
        writable.store(next(fresh))
        return writable.fetch(query=next(queries), mode="keyword", limit=10)

    benchmark.extra_info["what"] = "store, then keyword fetch that sees it"
    benchmark.pedantic(run, rounds=50, warmup_rounds=5)


def test_forget_id(benchmark, writable, store):
    hits = writable.list(limit=120).items
    ids = iter([hit.id for hit in hits])
    benchmark.extra_info["what"] = "forget of one id (durable)"
    benchmark.pedantic(lambda: writable.forget(ids=[next(ids)]), rounds=100, warmup_rounds=5)
    assert writable.explore(facet=Facet.KIND).total <= store[1] - 105


def test_forget_filter(benchmark, writable):
    filters = iter([MetaFilter(tags_any=[f"t{i}"]) for i in range(5)])
    reports = []
    benchmark.extra_info["what"] = "forget of 1 in 50, by filter"
    run = lambda: reports.append(writable.forget(filter=next(filters)))  # noqa: E731
    benchmark.pedantic(run, rounds=4, warmup_rounds=1)
    assert all(report.forgotten for report in reports)


def test_compact(benchmark, writable):
    writable.forget(filter=MetaFilter(tags_any=["t0"]))
    n = writable.explore(facet=Facet.KIND).total
    benchmark.extra_info["what"] = "compact, 1 in 50 forgotten"
    benchmark.pedantic(writable.compact, rounds=1)
    assert writable.explore(facet=Facet.KIND).total == n


@pytest.mark.parametrize("n", SIZES)
def test_ingest(benchmark, tmp_path, n):
    items = list(make_items(n))
    paths = (tmp_path / f"store-{i}" for i in itertools.count())

    def run():
        with colmem.open(next(paths)) as opened:
            assert opened.ingest(items).stored == n
            opened.fetch(query="warm", mode="keyword")

    benchmark.extra_info["what"] = f"ingest {n:,}, until searchable and closed"
    benchmark.extra_info["items"] = n
    benchmark.pedantic(run, rounds=3 if n < 50_000 else 1)


def test_import(benchmark):
    run = [sys.executable, "-c", "import colmem"]
    subprocess.run(run, check=True)
    benchmark.extra_info["what"] = "python -c 'import colmem'"
    benchmark.pedantic(lambda: subprocess.run(run, check=True), rounds=15)


def test_bare_interpreter(benchmark):
    run = [sys.executable, "-c", "pass"]
    benchmark.extra_info["what"] = "python -c pass, for comparison"
    benchmark.pedantic(lambda: subprocess.run(run, check=True), rounds=15)


# The table of the results.


def report(path: Path) -> str:
    """Markdown of a pytest-benchmark file: medians by operation and size."""
    held = json.loads(path.read_text())
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for bench in held["benchmarks"]:
        what = bench["extra_info"]["what"]
        size = str((bench["params"] or {}).get("store", ""))
        stats = bench["stats"]
        rows.setdefault(what, {})[size] = stats["median"] * 1000, stats["min"] * 1000
    machine = held["machine_info"]
    lines = [
        "# Engine: every operation",
        "",
        f"{machine['cpu'].get('brand_raw', machine['machine'])}, {machine['cpu'].get('count')} "
        f"cores; Python {machine['python_version']}; {_versions()}; commit "
        f"{held['commit_info']['id'][:9]}; {held['datetime'][:10]}.",
        "Median (fastest) in milliseconds; default embedder; items of 60 words, on disk.",
        "",
        "| operation | 10,000 items | 100,000 items |",
        "|---|---|---|",
    ]
    for what, by_size in rows.items():
        cells = [by_size.get(str(size), by_size.get("")) for size in SIZES]
        if "" in by_size:
            cells[1] = None
        shown = ["" if cell is None else f"{cell[0]:.3g} ({cell[1]:.3g})" for cell in cells]
        lines.append(f"| {what} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"


def _versions() -> str:
    from importlib.metadata import version

    names = ("colmem", "duckdb", "tantivy", "pyarrow", "numpy", "numba")
    return ", ".join(f"{name} {version(name)}" for name in names)


if __name__ == "__main__":
    sys.stdout.write(report(Path(sys.argv[1])))
