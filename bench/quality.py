"""Retrieval quality and latency of memory engines on judged corpora, in one row.

    python bench/quality.py FOLDER... [--steps] [--modes keyword,vector,hybrid] [--out DIR]
    python bench/quality.py FOLDER... --engines tantivy lancedb sqlite

FOLDER is a set in BEIR's layout (corpus.jsonl.gz, queries.jsonl.gz, qrels.tsv). ``--engines`` names
colmem (the default) or contenders of peers.py; ``--steps`` shows what each step of colmem's hybrid
recipe gains. Measured by ir-measures. Rows replace those of the same set, engine and ranking in
quality.json, from which quality.md and quality.svg are made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quality_engines import OURS, Colmem, Ranks, loaded
from quality_sets import ADVERSARIAL, JudgedSet, Question, read_set
from yardstick import environments

DEPTH = 50
TIMED = 200
MODES = ("keyword", "vector", "hybrid")
_TRUST_ALL = {"fit_full": 0.0, "fit_full_maxsim": 0.0, "code_share": 1.0}
_NO_OPENING = {"opening_share": 0.0}
STEPS: dict[str, dict[str, Any]] = {
    "blend of both legs": {"rescore_top": 0, "dialogue": False, "passages": False, **_TRUST_ALL},
    "+ MaxSim": {"dialogue": False, "passages": False, **_NO_OPENING, **_TRUST_ALL},
    "+ openings": {"dialogue": False, "passages": False, **_TRUST_ALL},
    "+ weights by query and kind of text": {"dialogue": False, "passages": False},
    "+ dialogue": {"passages": False},
    "+ passages (the default)": {},
}
Row = dict[str, Any]


def judge(engine: Ranks, judged: JudgedSet, mode: str) -> Row:
    """Means over the questions, and the time of a search for ten by the first of them."""
    questions = answerable(judged)
    run: dict[str, list[str]] = {}
    seconds = []
    for question in questions:
        run[question.id] = engine.ranked(question, mode, DEPTH)
    for question in questions[:TIMED]:
        start = time.perf_counter()
        engine.ranked(question, mode, 10)
        seconds.append(time.perf_counter() - start)
    row: Row = measured(questions, run, is_dialogue=judged.is_dialogue)
    row["questions"] = len(questions)
    row["p50_ms"] = round(1e3 * statistics.median(seconds), 2)
    row["p95_ms"] = round(1e3 * statistics.quantiles(seconds, n=20)[-1], 2)
    return row


def answerable(judged: JudgedSet) -> list[Question]:
    return [question for question in judged.questions if question.category != ADVERSARIAL]


def measured(
    questions: Sequence[Question], run: dict[str, list[str]], *, is_dialogue: bool
) -> dict[str, float]:
    """nDCG@10 and recall, of the evidence where it is a dialogue, by ir-measures."""
    depths = (5, 10, 20, 50) if is_dialogue else (10, 50)
    asked = {
        "measures": ["nDCG@10", *(f"R@{k}" for k in depths)],
        "qrels": {question.id: question.relevance for question in questions},
        "run": run,
    }
    command = [environments.interpreter("measures"), Path(__file__).with_name("quality_judge.py")]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return {name: round(mean, 4) for name, mean in json.loads(done.stdout).items()}


def run_set(name: str, judged: JudgedSet, modes: Iterable[str], *, steps: bool) -> list[Row]:
    """Rows of one engine on one set."""
    rows: list[Row] = []
    with loaded(name, judged) as engine:
        for mode in [mode for mode in modes if mode in engine.modes]:
            about = {"set": judged.name, "engine": name, "ranking": mode}
            try:
                rows.append({**about, **judge(engine, judged, mode)})
            except RuntimeError as error:
                if "no filters" not in str(error):
                    raise
                print(f"{name} cannot confine a search to a scope: {judged.name} is left out")
                return rows
        if steps and isinstance(engine, Colmem):
            for step, changes in STEPS.items():
                engine.with_ranking(**changes)
                row = judge(engine, judged, "hybrid")
                rows.append({"set": judged.name, "engine": name, "ranking": step, **row})
    return rows


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table, columns in order of first mention."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    lines += ["| " + " | ".join(str(row.get(name, "")) for name in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def replaced(held: Sequence[Row], fresh: Sequence[Row]) -> list[Row]:
    """Rows with fresh ones in the place of those they repeat, by set, then ours first."""

    def key(row: Row) -> tuple[str, str, str]:
        return row["set"], row["engine"], row["ranking"]

    rows = {key(row): row for row in [*held, *fresh]}
    sets = list(dict.fromkeys(name for name, _, _ in rows))
    return sorted(rows.values(), key=lambda row: (sets.index(row["set"]), row["engine"] != OURS))


def report(rows: Sequence[Row]) -> str:
    """The page of results."""
    parts = [
        "# Retrieval quality",
        "Made by `bench/quality.py` with ir-measures. Settings were chosen on these sets only.\n"
        "Category 5 of LoCoMo is left out; every question is asked of its own scope. Peers get\n"
        "the vectors of colmem's default embedder, and run behind a pipe, which costs them about\n"
        "0.3 ms a search. Latencies are of a search for ten hits, on a machine busy with other\n"
        "work: see the speed results for others.",
        "![nDCG@10 by set and engine](quality.svg)",
    ]
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [{k: v for k, v in row.items() if k != "set"} for row in rows if row["set"] == name]
        parts += [f"## {name}", table(own).rstrip()]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--engines", nargs="+", default=[OURS], metavar="NAME")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "quality.json"
    for folder in options.folders:
        judged = read_set(folder)
        for name in options.engines:
            fresh = run_set(name, judged, options.modes.split(","), steps=options.steps)
            print(table(fresh), flush=True)
            held = json.loads(path.read_text()) if path.exists() else []
            rows = replaced(held, fresh)
            path.write_text(json.dumps(rows, indent=1) + "\n")
            (options.out / "quality.md").write_text(report(rows))
    plot = [environments.interpreter("plots"), Path(__file__).with_name("quality_plots.py")]
    subprocess.run([*plot, options.out], check=True, env={**os.environ, "PYTHONPATH": "bench"})


if __name__ == "__main__":
    main()
