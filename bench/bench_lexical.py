"""Indexing rate, latency and size of the lexical index beside bare tantivy on the same texts.

    python bench/bench_lexical.py --rows 100000 --texts texts.jsonl.gz --out bench/results

``--texts`` names JSON lines with a "text" each; short ones are joined to about 60 words. Bare
tantivy indexes the same texts with its own English tokenizer and returns addresses only; ours gives
row numbers and scores with ties in order of storing, and is asked with filters too. Wall time and
CPU time are both given: on a busy machine only the latter says something.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import tantivy

from colmem.contract import MetaFilter, Reach
from colmem.function_words import FUNCTION_WORDS
from colmem.index import analyser
from colmem.index.lexical import LexicalIndex
from colmem.schema import ITEMS

N_QUERIES = 300
BATCH_ROWS = 5000
WORDS = 60
FILTERS = {
    "all": MetaFilter(),
    "half": MetaFilter(kinds=["document"]),
    "1 %": MetaFilter(thread_id="t7"),
    "0.01 %": MetaFilter(source_id="s7"),
    "reach": MetaFilter(reach=Reach(at="team:n7", inherit=True, descendants=True)),
    "time": MetaFilter(
        observed_after="2020-01-02T00:00:00Z", observed_before="2020-01-04T00:00:00Z"
    ),
}


def make_texts(path, n_rows):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        short = [json.loads(line)["text"] for line in lines]
    rng = random.Random(5)
    texts = []
    while len(texts) < n_rows:
        words = []
        # Lengths vary as those of real texts do.
        target = max(8, int(rng.gauss(WORDS, WORDS / 3)))
        while len(words) < target:
            words += rng.choice(short).split()
        texts.append(" ".join(words[:target]))
    return texts


def make_queries(texts):
    rng = random.Random(7)
    queries = []
    for _ in range(N_QUERIES):
        words = [
            w for w in re.findall(r"\w+", rng.choice(texts)) if w.lower() not in FUNCTION_WORDS
        ]
        queries.append(" ".join(rng.sample(words, min(len(words), rng.randint(1, 5)))))
    return queries


def batches(texts):
    start_s = 1_577_836_800  # 2020
    for first in range(0, len(texts), BATCH_ROWS):
        part = texts[first : first + BATCH_ROWS]
        rows = range(first, first + len(part))
        n = len(part)
        columns = {
            "row": rows,
            "text": part,
            "kind": ["document" if i % 2 else "learning" for i in rows],
            "namespace": [f"team:n{i % 50}/agent:a{i % 7}" for i in rows],
            "source_kind": ["file"] * n,
            "source_id": [f"s{i % 10_000}" for i in rows],
            "thread_id": [f"t{i % 100}" for i in rows],
            "folder": [f"/data/{i % 20}/{i % 400}" for i in rows],
            "tags": [[f"g{i % 30}"] if i % 3 else [] for i in rows],
            "observed_s": [start_s + i % 864_000 for i in rows],
            "observed_ns": [0] * n,
        }
        arrays = []
        for field in ITEMS:
            if field.name in columns:
                arrays.append(pa.array(list(columns[field.name]), field.type))
            elif field.nullable:
                arrays.append(pa.nulls(n, field.type))
            else:
                value = False if pa.types.is_boolean(field.type) else 0
                arrays.append(pa.array([value] * n).cast(field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=ITEMS)


class Clock:
    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def size_of(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def bare(texts, queries, folder, *, stored, heap):
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=stored, tokenizer_name="en_stem")
    schema = builder.build()
    index = tantivy.Index(schema, path=folder)
    writer = index.writer(heap, 2)
    with Clock() as clock:
        for text in texts:
            writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    stem = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    stem = stem.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.stemmer("english")).build()

    def search(query, k):
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term))
            for term in stem.analyze(query)
        ]
        return searcher.search(tantivy.Query.boolean_query(terms), k, count=False).hits

    result = {
        "name": f"tantivy, {'stored' if stored else 'not stored'}",
        "texts_per_s": len(texts) / clock.wall,
        "cpu_us_text": 1e6 * clock.cpu / len(texts),
        "bytes_per_text": size_of(folder) / len(texts),
        "segments": searcher.num_segments,
    }
    for k in (10, 200):
        result[f"k={k}"] = timed(lambda query, k=k: search(query, k), queries)
    return result


def timed(function, queries):
    wall, cpu = [], []
    for query in queries:
        t, c = time.perf_counter(), time.thread_time()
        function(query)
        cpu.append(time.thread_time() - c)
        wall.append(time.perf_counter() - t)
    return {
        "p50_us": 1e6 * float(np.median(wall)),
        "cpu_p50_us": 1e6 * float(np.median(cpu)),
        "cpu_p95_us": 1e6 * float(np.percentile(cpu, 95)),
    }


def ours(texts, queries, folder):
    made = list(batches(texts))
    index = LexicalIndex(Path(folder))
    with Clock() as clock:
        for batch in made:
            index.add(batch)
        index.commit(len(texts))
        index.flush()
    result = {
        "name": "colmem",
        "texts_per_s": len(texts) / clock.wall,
        "cpu_us_text": 1e6 * clock.cpu / len(texts),
        "bytes_per_text": size_of(folder) / len(texts),
    }
    for k in (10, 200):
        for name, filter in FILTERS.items():

            def search(query, k=k, filter=filter):
                return index.search(query, k, filter=filter, now_s=0)

            analyser._known_query.cache_clear()
            result[f"k={k}, {name}"] = timed(search, queries)
    n_segments = index.view.searcher.num_segments
    index.close()
    with Clock() as clock:
        LexicalIndex(Path(folder)).close()
    result["open_cpu_ms"] = 1e3 * clock.cpu
    result["segments"] = n_segments
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--heap", type=int, default=256 << 20)
    args = parser.parse_args()
    texts = make_texts(args.texts, args.rows)
    queries = make_queries(texts)
    analyser.analyse_items(pa.array(texts[:5000]))  # compiles
    with Clock() as clock:
        analyser.analyse_items(pa.array(texts[:5000]))
    results = {"rows": args.rows, "load": os.getloadavg(), "analyse_us": clock.cpu / 5000 * 1e6}
    print(json.dumps(results), flush=True)
    lines = []
    for run in (
        lambda folder: bare(texts, queries, folder, stored=False, heap=args.heap),
        lambda folder: ours(texts, queries, folder),
        lambda folder: bare(texts, queries, folder, stored=True, heap=args.heap),
    ):
        with tempfile.TemporaryDirectory() as folder:
            lines.append(run(folder))
            print(json.dumps(lines[-1]), flush=True)
    if args.out:
        path = args.out / f"lexical-{args.rows}.json"
        path.write_text(json.dumps({**results, "contenders": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
