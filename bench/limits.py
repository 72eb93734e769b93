"""This machine's bounds for the work of the benchmarks: memory, disk, BLAS, tantivy, JSON, hashing.

    python bench/limits.py --items 100000

Same texts, vectors and queries as ``bench/peers.py``, so that each figure of a contender can be
read as a fraction of what the machine gives. Writes ``limits-<items>.json``.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import tantivy

from yardstick import environments, processes
from yardstick.clocks import once, summary, timed
from yardstick.texts import terms_of
from yardstick.truth import K
from yardstick.vectors import Vectors
from yardstick.workload import Batch, Workload, workload

RESULTS = Path(__file__).parent / "results"
COPIED_BYTES = 256 << 20
SYNCS = 200
HEAP_BYTES = 256 << 20
PART = 5_000
ONE_THREAD = "OPENBLAS_NUM_THREADS"
Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if os.environ.get(ONE_THREAD) != "1":
        # Read when NumPy is loaded, so a new process is needed.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {ONE_THREAD: "1"})
    made, seconds = workload(options.items), options.seconds
    result: Result = {
        "items": made.n,
        "machine": processes.machine(),
        "versions": {
            name: version(name) for name in ("numpy", "tantivy", "msgspec", "orjson", "colmem")
        },
        "commit": processes.commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "load_before": processes.load_average(),
    }
    measures: dict[str, Callable[[], Result]] = {
        "memory": lambda: memory(seconds),
        "sync": sync,
        "blas_scan": lambda: blas_scan(made, seconds),
        "encoding": lambda: encoding(made.slice(0, min(made.n, PART)), seconds),
        "tantivy": lambda: tantivy_alone(made, stored=False, seconds=seconds),
        "tantivy_stored": lambda: tantivy_alone(made, stored=True, seconds=seconds),
    }
    for name, measure in measures.items():
        result[name] = measure()
        print(f"{name}: {json.dumps(result[name])}", flush=True)
    result["load_after"] = processes.load_average()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"limits-{made.n}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


def memory(seconds: float) -> Result:
    """Bytes read and written per second by a copy, on one thread and on two."""
    source = np.ones(COPIED_BYTES // 8)
    target = np.empty_like(source)
    found: Result = {}
    for n_threads in (1, 2):
        parts = list(
            zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True)
        )
        with ThreadPoolExecutor(n_threads) as pool:
            took = timed(
                lambda _, p=parts, on=pool: list(on.map(lambda pair: np.copyto(*pair), p)),  # type: ignore[misc]
                [None],
                seconds / 2,
            )
        rate = 2 * COPIED_BYTES / took["min_ms"] / 1e6
        found[f"copy_gb_per_s_{n_threads}_threads"] = round(rate, 2)
    return found


def sync() -> Result:
    """Milliseconds of a small append made durable, in the folder where stores are."""
    folder = environments.RUN / "stores"
    folder.mkdir(parents=True, exist_ok=True)
    found: Result = {}
    for name, call in (("fsync", os.fsync), ("fdatasync", os.fdatasync)):
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            walls = []
            for _ in range(SYNCS):
                os.write(file.fileno(), bytes(2_000))
                start = time.perf_counter()
                call(file.fileno())
                walls.append(time.perf_counter() - start)
        found[name] = summary(walls)
    return found


def blas_scan(made: Workload, seconds: float) -> Result:
    """All cosines of a query and its ten best, float32, on one thread."""
    vectors = np.concatenate([batch.vectors for batch in made.batches(PART)])

    def scan(query: Vectors) -> Any:
        return vectors @ query

    def best(query: Vectors) -> Any:
        scores = vectors @ query
        top = np.argpartition(scores, -K)[-K:]
        return top[np.argsort(-scores[top])]

    queries = [query.vector for query in made.queries]
    assert set(best(queries[0])) == set(made.truth.vector["none"][0])
    took = timed(scan, queries, seconds)
    gb_per_s = vectors.nbytes / took["min_ms"] / 1e6
    return took | {"gb_per_s": round(gb_per_s, 2), "with_ten_best": timed(best, queries, seconds)}


def encoding(batch: Batch, seconds: float) -> Result:
    """Items per second through JSON, MessagePack and SHA-256, each item by itself."""
    columns = {name: batch.values(name) for name in ("namespace", "kind", "source", "folder")}
    items = [
        {"text": text, "tags": tags, **{name: values[i] for name, values in columns.items()}}
        for i, (text, tags) in enumerate(zip(batch.texts, batch.tags(), strict=True))
    ]
    jsons = [orjson.dumps(item) for item in items]
    packer, packs = msgspec.msgpack.Encoder(), [msgspec.msgpack.encode(item) for item in items]
    unpacker, reader = msgspec.msgpack.Decoder(), msgspec.json.Decoder()
    assert unpacker.decode(packs[0]) == orjson.loads(jsons[0]) == items[0]
    calls: dict[str, Callable[[Any], Any]] = {
        "json_encode": lambda _: [orjson.dumps(item) for item in items],
        "json_decode": lambda _: [orjson.loads(line) for line in jsons],
        "json_decode_msgspec": lambda _: [reader.decode(line) for line in jsons],
        "msgpack_encode": lambda _: [packer.encode(item) for item in items],
        "msgpack_decode": lambda _: [unpacker.decode(pack) for pack in packs],
        "sha256": lambda _: [hashlib.sha256(line).digest() for line in jsons],
    }
    found: Result = {"bytes_per_item": round(sum(map(len, jsons)) / len(jsons), 1)}
    for name, call in calls.items():
        took = timed(call, [None], seconds / 2)
        found[f"{name}_per_s"] = round(1e3 * len(items) / took["p50_ms"])
    return found


def tantivy_alone(made: Workload, *, stored: bool, seconds: float) -> Result:
    """Bare tantivy on the texts alone: indexing rate on two threads, and ten addresses a query."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=stored, tokenizer_name="en_stem", index_option="freq")
    schema = builder.build()
    folder = environments.RUN / "stores" / "bare-tantivy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = tantivy.Index(schema, path=str(folder))

    def ingest() -> None:
        writer = index.writer(HEAP_BYTES, 2)
        for batch in made.batches(PART):
            for text in batch.texts:
                writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()

    _, took = once(ingest)
    index.reload()
    searcher = index.searcher()
    stemmer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    stemmer = stemmer.filter(tantivy.Filter.lowercase())
    analyser = stemmer.filter(tantivy.Filter.stemmer("english")).build()

    def search(text: str) -> Any:
        words = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term, "freq"))
            for term in analyser.analyze(text)
        ]
        return searcher.search(tantivy.Query.boolean_query(words), K, count=False).hits

    texts = [query.text for query in made.queries]
    assert len(analyser.analyze(texts[0])) == len(terms_of(texts[0]))
    assert len(search(texts[0])) == made.truth.keyword_sizes["none"][0]
    result = {
        "texts_per_s": round(made.n / took["s"], 1),
        "cpu_us_per_text": round(1e6 * took["cpu_s"] / made.n, 2),
        "segments": searcher.num_segments,
        "bytes_per_text": round(sum(path.stat().st_size for path in folder.iterdir()) / made.n, 1),
        "query": timed(search, texts, seconds),
    }
    shutil.rmtree(folder)
    return result


if __name__ == "__main__":
    main()
