"""How colmem's cost grows: one store filled to one size after another, measured at each.

Texts are short (12 words) and everything is made batch by batch, so that ten million items need
disk for the store only. At each size the reads are measured in a fresh process.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from yardstick import environments, processes
from yardstick.checks import RECALL_MIN, WrongAnswerError
from yardstick.clocks import Result, once, timed
from yardstick.contenders.colmem_engine import Colmem
from yardstick.metadata import FILTERS, UNFILTERED
from yardstick.phases import folder_bytes
from yardstick.processes import run_phase
from yardstick.truth import K
from yardstick.vectors import Vectors
from yardstick.workload import DIM, GENERATED, Generator, Query

WORDS = 12
SECONDS = 3.0
HOURS_MAX = 6
N_QUERIES = 50
_QUERIED = 10_000
"""Queries are near items of the first batch, whatever the size."""
PAGE, GET_IDS, PAGES = 10, 200, (1, 1_000)


def grow(sizes: list[int], out: Path) -> None:
    """Fill a store to each size in turn; a line of results for each."""
    work = environments.RUN / "stores" / "growth"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    path = out / "growth.jsonl"
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    done = 0
    for size in sizes:
        line: dict[str, Any] = {
            "items": size,
            "words": WORDS,
            "dim": DIM,
            "machine": processes.machine(),
            "commit": processes.commit(),
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "load_before": processes.load_average(),
        }
        for phase, first in (("fill", done), ("read", size)):
            command: list[str | Path] = [sys.executable, "-m", "yardstick.growth", phase]
            command += [work, str(first), str(size)]
            memory = run_phase(command, work / "log.txt", 3600 * HOURS_MAX, line)
            line[f"memory_{phase}"] = vars(memory)
        done = size
        with part.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{size:,} items: {json.dumps(line['read'])}", flush=True)
    part.rename(path)
    shutil.rmtree(work)


def fill(work: Path, first: int, last: int) -> Result:
    """Add items ``first`` to ``last``, keeping the best of each query beside the store."""
    generator = Generator(words=WORDS)
    contender = Colmem(work / "store", DIM)
    contender.open()
    _, queries = generator.queries(_QUERIED)
    best = _Nearest(queries[:N_QUERIES], work / "nearest.npz")
    seconds = cpu = 0.0
    for index in range(first // GENERATED, -(-last // GENERATED)):
        batch, _ = generator.batch(index)
        begin = max(0, first - batch.first)
        batch = batch.part(begin, last - batch.first - begin)
        best.add(batch.first, batch.vectors)
        for start in range(0, len(batch), contender.batch_rows):
            part = batch.part(start, contender.batch_rows)
            _, took = once(lambda part=part: contender.add(part))  # type: ignore[misc]
            seconds += took["s"]
            cpu += took["cpu_s"]
    _, took = once(lambda: contender.finish(last))
    best.save()
    contender.close()
    n = last - first
    size = folder_bytes(contender.folder)
    return {
        "items_per_s": round(n / (seconds + took["s"]), 1),
        "cpu_us_per_item": round(1e6 * (cpu + took["cpu_s"]) / n, 2),
        "bytes_per_item": round(size / last, 1),
    }


def read(work: Path, size: int) -> Result:
    """Open, and every read; the vector search is checked first."""
    generator = Generator(words=WORDS)
    terms, vectors = generator.queries(_QUERIED)
    texts = [generator.text_of(query) for query in terms]
    queries = [Query(t, v) for t, v in zip(texts, vectors, strict=True)]
    contender = Colmem(work / "store", DIM)
    _, opening = once(contender.open)
    _, first = once(lambda: contender.search("hybrid", queries[0].text, queries[0].vector, K))
    result: Result = {"open_ms": 1e3 * opening["s"], "first_ms": 1e3 * first["s"]}
    result["recall"] = _recall(contender, queries[:N_QUERIES], work / "nearest.npz")
    if result["recall"] < RECALL_MIN:
        raise WrongAnswerError(f"recall {result['recall']} at {size:,} items")
    for mode in ("keyword", "vector", "hybrid"):
        for filter in FILTERS:
            prepared = contender.prepare(filter)
            result[f"{mode}, {filter.name}"] = timed(
                lambda q, m=mode, f=prepared: contender.search(m, q.text, q.vector, K, f),  # type: ignore[misc]
                queries,
                SECONDS,
            )
    step = size // GET_IDS
    groups = [contender.ids(range(start * 97, size, step)[:GET_IDS]) for start in range(10)]
    result["get_200"] = timed(contender.get, groups, SECONDS)
    everything = contender.prepare(UNFILTERED)
    for page in PAGES:
        place = contender.place(page - 1, PAGE, everything)
        result[f"list page {page}"] = timed(
            lambda _, at=place: contender.page(at, PAGE, everything),  # type: ignore[misc]
            [None],
            SECONDS,
        )
    for facet in ("kind", "folder", "tag"):
        result[f"explore {facet}"] = timed(
            lambda _, by=facet: contender.explore(by, everything, 50),  # type: ignore[misc]
            [None],
            SECONDS,
        )
    contender.close()
    return result


class _Nearest:
    """The nearest of each query so far; scores only, by which an answer is known to be exact."""

    def __init__(self, queries: Vectors, path: Path) -> None:
        self._queries, self._path = queries, path
        self._scores = np.full((len(queries), K), -np.inf, np.float32)
        if path.exists():
            with np.load(path) as held:
                self._scores = held["scores"]

    def add(self, first: int, vectors: Vectors) -> None:
        scores = np.hstack([self._scores, self._queries @ vectors.T])
        self._scores = np.partition(scores, -K, axis=1)[:, -K:]

    def save(self) -> None:
        np.savez(self._path, scores=self._scores)


def _recall(contender: Colmem, queries: list[Query], path: Path) -> float:
    """Share of hits that score no less than the tenth best of all."""
    with np.load(path) as held:
        least = held["scores"].min(axis=1)
    shares = []
    for query, limit in zip(queries, least, strict=True):
        found = contender.search("vector", query.text, query.vector, K)
        shares.append(np.mean([hit.score >= limit - 1e-5 for hit in found]) * len(found) / K)
    return round(float(np.mean(shares)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=("fill", "read"))
    parser.add_argument("work", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    options = parser.parse_args()
    if options.phase == "fill":
        result = fill(options.work, options.first, options.last)
    else:
        result = read(options.work, options.last)
    print(json.dumps([options.phase, result]), flush=True)


if __name__ == "__main__":
    main()
