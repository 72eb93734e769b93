"""Snapshots beside HotMem: hydrate, hydrate again, re-embed, snapshot, verify.

Every measurement has a process of its own and starts from the same files. Contenders take turns.
``python bench/bench_snapshot.py`` compares at 100,000 records and measures colmem alone at
1,000,000; ``--records N --alone M`` set other sizes. Results go to ``bench/results/snapshot.*``.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import peer_env

RESULTS = Path(__file__).parent / "results"
TASKS = ("hydrate", "hydrate again", "hydrate re-embedding", "snapshot", "verify")
TARGETS = {
    "hydrate": 6.0,
    "hydrate again": 3.0,
    "hydrate re-embedding": 8.0,
    "snapshot": 4.0,
}
_BATCH = 1000


def texts(n: int, seed: int) -> Iterator[str]:
    """Texts of about 300 characters over a vocabulary with a natural frequency curve."""
    rng = random.Random(seed)
    letters = "eeeeeaaaoooiiinnnrrrtttlllsssudcmpghbyfvkw"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(50_000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    for _ in range(n):
        yield " ".join(rng.choices(words, cum_weights=weights, k=48))[:300]


def make_input(folder: Path, n: int) -> None:
    """Write the same records as two v2 directories: with hotmem-hash-v1 vectors, and without."""
    import numpy as np

    import colmem
    from colmem.snapshot.record import Record, content_hash
    from colmem.snapshot.writer import write

    embedder = colmem.embedder("hotmem-hash-v1")

    def batches(*, with_vectors: bool) -> Iterator[list[Record]]:
        part: list[Record] = []
        for i, text in enumerate(texts(n, seed=11)):
            part.append(
                Record(
                    id=f"{i:032x}",
                    identifier=f"doc/{i}",
                    fact_text=text,
                    embedding_dim=64,
                    embedding_model="hotmem-hash-v1" if with_vectors else "",
                    source="bench",
                    content_hash=content_hash(f"doc/{i}", text),
                    created_at="2026-07-01T00:00:00Z",
                    namespace="bench",
                    tags_json='["t"]',
                    schema_version=2,
                )
            )
            if len(part) == _BATCH:
                yield embedded(part) if with_vectors else part
                part = []
        if part:
            yield embedded(part) if with_vectors else part

    def embedded(part: list[Record]) -> list[Record]:
        vectors = np.asarray(embedder.embed([record.fact_text for record in part]), "<f4")
        for record, vector in zip(part, vectors, strict=True):
            record.embedding = vector.tobytes() if vector.any() else None
        return part

    write(folder / "full", batches(with_vectors=True), dim=64)
    write(folder / "bare", batches(with_vectors=False), dim=64)


class Watch:
    """Wall and CPU seconds of a block."""

    def __enter__(self) -> Watch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._wall
        self.cpu_s = time.process_time() - self._cpu


class OwnMemory:
    """The most memory of its own that the process had during a block, mapped files apart."""

    peak_mb = 0.0

    def __enter__(self) -> OwnMemory:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)


def run_colmem(task: str, folder: Path, place: Path) -> dict[str, float]:
    """One task of colmem; what it needs beforehand is not timed, searchability is."""
    import colmem
    from colmem.snapshot.verify import verify

    full = folder / "full"
    if task == "verify":
        with Watch() as watch:
            verify(full)
        return {"wall_s": watch.wall_s, "cpu_s": watch.cpu_s}
    with colmem.open(place / "store", embedder="hotmem-hash-v1") as engine:
        # The first calls of a process load kernels and libraries: no part of any rate.
        engine.ingest([colmem.document("warm up")])
        engine.fetch(query="warm", mode="hybrid", limit=1)
        source = folder / ("bare" if task == "hydrate re-embedding" else "full")
        if task in ("hydrate again", "snapshot"):
            engine.hydrate(source)
            engine.fetch(query="warm", mode="hybrid", limit=1)
        with Watch() as watch:
            if task == "snapshot":
                engine.snapshot(place / "out")
            else:
                report = engine.hydrate(source)
                engine.fetch(query="warm", mode="hybrid", limit=1)
        if task.startswith("hydrate"):
            count = report.skipped_dupes if task == "hydrate again" else report.loaded
            assert count == json.loads((source / "manifest.json").read_bytes())["memory_count"]
    return {"wall_s": watch.wall_s, "cpu_s": watch.cpu_s}


class Nowhere:
    """A sink that keeps nothing: what is left is the cost of reading a snapshot."""

    embedder_key = "hotmem-hash-v1"
    dim = 64

    def held_hashes(self, hashes: Sequence[str]) -> set[str]:
        return set()

    held_fingerprints = held_ids = held_hashes

    def insert(self, rows: Sequence[Any], vectors: Any) -> None:
        pass


def run_columnar(folder: Path, place: Path) -> dict[str, float]:
    """Read v2 and its columnar twin up to the rows that a store would be given."""
    import colmem
    from colmem.snapshot.hydrate import hydrate

    with colmem.open(place / "store", embedder="hotmem-hash-v1") as engine:
        engine.hydrate(folder / "full")
        engine.snapshot(place / "columnar", format="columnar")
    times = {}
    for name, source in (("v2", folder / "full"), ("columnar", place / "columnar")):
        with Watch() as watch:
            hydrate(source, Nowhere())
        times[f"{name}_s"] = watch.wall_s
    return times


def run_sha256(folder: Path) -> dict[str, float]:
    """Plain SHA-256 of the bytes that verify has to hash."""
    with Watch() as watch, (folder / "full" / "memories.jsonl").open("rb") as file:
        hashlib.file_digest(file, "sha256")
    return {"wall_s": watch.wall_s, "cpu_s": watch.cpu_s}


PEER_PROGRAM = """
import contextlib, io, json, os, sys, time
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
from hotmem import cli
task, folder, place = sys.argv[1:]
def call(*args):
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main.main(args=list(args), standalone_mode=False)
def hydrate(name):
    call("hydrate", "--file", f"{folder}/{name}", "--db", f"{place}/peer.db")
if task in ("hydrate again", "snapshot"):
    hydrate("full")
wall, cpu = time.perf_counter(), time.process_time()
if task == "verify":
    call("verify", f"{folder}/full")
elif task == "snapshot":
    call("snapshot", "--file", f"{place}/out", "--db", f"{place}/peer.db")
else:
    hydrate("bare" if task == "hydrate re-embedding" else "full")
result = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
print(json.dumps(result), flush=True)
"""


def in_process(contender: str, task: str, folder: Path) -> dict[str, Any]:
    """Run one task of one contender in a fresh process and a fresh place."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        if contender == "hotmem":
            python = str(peer_env.interpreter())
            command = [python, "-c", PEER_PROGRAM, task, str(folder), str(place)]
        else:
            command = [sys.executable, __file__, "--one", task, str(folder), str(place)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))
    finally:
        shutil.rmtree(place)


def one(task: str, folder: Path, place: Path) -> None:
    """Run a task in this process and print its result as JSON."""
    with OwnMemory() as memory:
        if task == "sha256":
            result = run_sha256(folder)
        elif task == "columnar":
            result = run_columnar(folder, place)
        else:
            result = run_colmem(task, folder, place)
    result["peak_own_mb"] = memory.peak_mb
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps(result) + "\n")


def compare(n: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Measure every task of both contenders, the best of some rounds each."""
    make_input(folder, n)
    found: dict[str, Any] = {}
    for task in TASKS:
        for contender in ("colmem", "hotmem"):
            n_rounds = rounds if contender == "colmem" else 1
            runs = [in_process(contender, task, folder) for _ in range(n_rounds)]
            found[f"{task}/{contender}"] = min(runs, key=lambda run: run["wall_s"])
            print(task, contender, found[f"{task}/{contender}"], flush=True)
    runs = [in_process("colmem", "sha256", folder) for _ in range(3)]
    found["sha256"] = min(runs, key=lambda run: run["wall_s"])
    found["columnar"] = in_process("colmem", "columnar", folder)
    return found


def alone(n: int, folder: Path) -> dict[str, Any]:
    """Measure colmem at a larger size."""
    make_input(folder, n)
    return {task: in_process("colmem", task, folder) for task in ("hydrate", "snapshot", "verify")}


def table(results: dict[str, Any]) -> str:
    """Give the results as a table in Markdown."""
    n, found = results["records"], results["compared"]
    rows = [
        f"{n:,} records of about 300 characters, {results['machine']}.",
        "",
        "| task | colmem rec/s | HotMem rec/s | ratio | wanted | CPU s, colmem / HotMem |",
        "|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        ours, theirs = found[f"{task}/colmem"], found[f"{task}/hotmem"]
        rows.append(
            f"| {task} | {n / ours['wall_s']:,.0f} | {n / theirs['wall_s']:,.0f} "
            f"| {theirs['wall_s'] / ours['wall_s']:.1f} | {TARGETS.get(task, '')} "
            f"| {ours['cpu_s']:.1f} / {theirs['cpu_s']:.1f} |"
        )
    verify, plain = found["verify/colmem"]["wall_s"], found["sha256"]["wall_s"]
    columnar = found["columnar"]
    rows += [
        "",
        f"verify takes {verify / plain:.2f} times plain SHA-256 of the same bytes (wanted: 1.3).",
        f"Reading up to the store: columnar {columnar['columnar_s']:.2f} s, v2 "
        f"{columnar['v2_s']:.2f} s, {columnar['v2_s'] / columnar['columnar_s']:.1f} times as long.",
    ]
    for task, run in results["alone"].items():
        rate = results["alone_records"] / run["wall_s"]
        before = n / found[f"{task}/colmem"]["wall_s"]
        rows.append(
            f"At {results['alone_records']:,} records: {task} {rate:,.0f} rec/s, "
            f"{rate / before:.2f} of the rate above, peak {run['peak_own_mb']:,.0f} MB of its own "
            f"({found[f'{task}/colmem']['peak_own_mb']:,.0f} MB above), {run['peak_mb']:,.0f} MB "
            f"with mapped files ({found[f'{task}/colmem']['peak_mb']:,.0f})."
        )
    return "\n".join(rows) + "\n"


def plot(results: dict[str, Any]) -> str:
    """Draw the ratios as bars, with the wanted ones as marks."""
    found, width, row = results["compared"], 420, 34
    bars = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{row * len(TARGETS) + 50}" '
        'font-family="sans-serif" font-size="13">',
        '<text x="10" y="20">records a second, as a multiple of HotMem (mark: wanted)</text>',
    ]
    ratios = {
        task: found[f"{task}/hotmem"]["wall_s"] / found[f"{task}/colmem"]["wall_s"]
        for task in TARGETS
    }
    scale = width / max(*ratios.values(), *TARGETS.values())
    for i, (task, ratio) in enumerate(ratios.items()):
        y, mark = 36 + i * row, 190 + TARGETS[task] * scale
        bars += [
            f'<text x="10" y="{y + 16}">{task}</text>',
            f'<rect x="190" y="{y}" width="{ratio * scale:.0f}" height="22" fill="#4a7fb5"/>',
            f'<line x1="{mark:.0f}" x2="{mark:.0f}" y1="{y - 3}" y2="{y + 25}" stroke="#c33"/>',
            f'<text x="{196 + ratio * scale:.0f}" y="{y + 16}">{ratio:.1f}</text>',
        ]
    return "\n".join([*bars, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--alone", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, metavar=("TASK", "FOLDER", "PLACE"))
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]), Path(options.one[2]))
        return
    results: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "records": options.records,
        "alone_records": options.alone,
        "alone": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        results["compared"] = compare(options.records, options.rounds, Path(folder))
    if options.alone:
        with tempfile.TemporaryDirectory() as folder:
            results["alone"] = alone(options.alone, Path(folder))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "snapshot.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "snapshot.md").write_text(table(results))
    (RESULTS / "snapshot.svg").write_text(plot(results))
    print(table(results))


if __name__ == "__main__":
    main()
