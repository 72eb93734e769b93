"""Recall and latency of vector search at several sizes, on real texts and on made vectors.

    python bench/bench_vector.py --rows 100000 1000000 --texts texts.jsonl.gz --out bench/results

``--texts`` names JSON lines with a "text" each; beyond their number, texts are made by joining the
halves of two. Queries are halves of texts, some with a word added. Every answer is compared with
the exact one before it is timed. Wall time and the thread's CPU time are both given: on a busy
machine only the latter says something.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import time
from pathlib import Path

import numpy as np

import colmem
from colmem.index.vector import VectorIndex
from colmem.schema import Admitted

N_QUERIES = 60
SHARES = (1.0, 0.5, 0.1, 0.01, 0.0001)
KS = (10, 200)


def real_vectors(path, n_rows):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    rng = random.Random(5)
    words = [text.split() for text in texts]
    embed = colmem.embedder("static-s256").embed
    vectors = np.empty((n_rows, 256), np.float32)
    for first in range(0, n_rows, 20_000):
        last = min(n_rows, first + 20_000)
        batch = texts[first:last]
        while len(batch) < last - first:
            a, b = rng.choice(words), rng.choice(words)
            batch.append(" ".join(a[: len(a) // 2] + b[len(b) // 2 :]))
        vectors[first:last] = embed(batch)
    queries = []
    for i in range(N_QUERIES):
        own = rng.choice(words)
        own = own[: max(2, len(own) // 2)] if i % 3 else own
        queries.append(" ".join([*own, "python"] if i % 2 else own))
    return vectors, embed(queries)


def made_vectors(n_rows, dim=256, n_centres=3000, spread=1.0):
    rng = np.random.default_rng(9)
    centres = rng.standard_normal((n_centres, dim), dtype=np.float32)

    def some(n):
        found = centres[rng.integers(0, n_centres, n)]
        found += np.float32(spread) * rng.standard_normal((n, dim), dtype=np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    vectors = np.empty((n_rows, dim), np.float32)
    for first in range(0, n_rows, 50_000):
        vectors[first : first + 50_000] = some(min(50_000, n_rows - first))
    return vectors, some(N_QUERIES)


def load(vectors):
    index = VectorIndex(None, vectors.shape[1], n_rows=0)
    wall, cpu = time.perf_counter(), time.thread_time()
    for first in range(0, len(vectors), 5000):
        part = vectors[first : first + 5000]
        index.append(part, sync=False)
        index.publish(first + len(part))
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    return index, {
        "load_rows_per_s": len(vectors) / wall,
        "load_cpu_us_row": 1e6 * cpu / len(vectors),
    }


def measure(index, queries, scores, mask, k):
    admitted = Admitted(mask, int(mask.sum()), bool(mask.all()))
    k_held = min(k, admitted.count)
    recalls, low_errors, walls, cpus = [], [], [], []
    for query, all_scores in zip(queries, scores, strict=True):
        held = all_scores[mask != 0]
        found, lowest, _ = index.search_with_bounds(query, k, admitted)
        assert len(found.rows) == k_held
        assert mask[found.rows].all()
        if k_held:
            limit = np.partition(held, -k_held)[-k_held]
            recalls.append(float(np.mean(all_scores[found.rows] >= limit - 1e-6)))
            low_errors.append(lowest - float(held.min()))
        best_wall, best_cpu = np.inf, np.inf
        for _ in range(5):
            wall, cpu = time.perf_counter(), time.thread_time()
            index.search_with_bounds(query, k, admitted)
            best_cpu = min(best_cpu, time.thread_time() - cpu)
            best_wall = min(best_wall, time.perf_counter() - wall)
        walls.append(best_wall)
        cpus.append(best_cpu)
    return {
        "k": k,
        "admitted": admitted.count,
        "recall": float(np.mean(recalls)) if recalls else 1.0,
        "recall_min": min(recalls, default=1.0),
        "low_error_mean": float(np.mean(low_errors)) if low_errors else 0.0,
        "wall_ms_min": 1e3 * min(walls),
        "wall_ms_p50": 1e3 * float(np.median(walls)),
        "wall_ms_p95": 1e3 * float(np.quantile(walls, 0.95)),
        "cpu_ms_p50": 1e3 * float(np.median(cpus)),
    }


def scan_ms(vectors, query):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        vectors @ query
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def run(name, vectors, queries):
    index, result = load(vectors)
    result |= {"data": name, "rows": len(vectors), "dim": vectors.shape[1]}
    result["blas_scan_ms"] = scan_ms(vectors, queries[0])
    scores = queries @ vectors.T
    rng = np.random.default_rng(1)
    result["search"] = []
    for share in SHARES:
        mask = (rng.random(len(vectors)) < share).astype(np.uint8)
        for k in KS:
            row = measure(index, queries, scores, mask, k) | {"share": share}
            result["search"].append(row)
            print(
                f"{name:8} {len(vectors):9,} k={k:3} {100 * share:6.2f} %"
                f"  recall {row['recall']:.4f}"
                f"  p50 {row['wall_ms_p50']:6.2f} ms  p95 {row['wall_ms_p95']:6.2f}"
                f"  min {row['wall_ms_min']:6.2f}  cpu {row['cpu_ms_p50']:6.2f}",
                flush=True,
            )
    index.close()
    return result


def table(results):
    lines = [
        "| vectors | rows | admitted | k | recall | worst | p50 ms | p95 ms | min ms | cpu ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for result in results:
        lines += [
            f"| {result['data']} | {result['rows']:,} | {row['admitted']:,} | {row['k']} "
            f"| {row['recall']:.4f} | {row['recall_min']:.3f} | {row['wall_ms_p50']:.2f} "
            f"| {row['wall_ms_p95']:.2f} | {row['wall_ms_min']:.2f} "
            f"| {row['cpu_ms_p50']:.2f} |"
            for row in result["search"]
        ]
    lines.append("")
    lines += [
        f"- {result['data']}, {result['rows']:,} rows: codes made with "
        f"{result['load_cpu_us_row']:.2f} µs of CPU a row; a float32 BLAS scan without "
        f"selection takes {result['blas_scan_ms']:.1f} ms."
        for result in results
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for n_rows in options.rows:
        if options.texts:
            results.append(run("real", *real_vectors(options.texts, n_rows)))
        results.append(run("made", *made_vectors(n_rows)))
    if options.out:
        load_average = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        head = (
            f"# Vector search\n\n`bench/bench_vector.py`, {N_QUERIES} queries, best of 5 each, one "
            f"thread, lowest and highest score included; {platform.machine()}, "
            f"{os.cpu_count()} cores, load {load_average}, Python {platform.python_version()}, "
            f"NumPy {np.__version__}.\n\n"
        )
        (options.out / "vector.md").write_text(head + table(results) + "\n", encoding="utf-8")
        text = json.dumps(results, indent=1)
        (options.out / "vector.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
