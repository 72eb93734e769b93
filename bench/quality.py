"""Retrieval quality and latency of a memory engine on judged corpora, in one row.

    python bench/quality.py FOLDER... [--modes keyword,vector,hybrid] [--steps] [--out DIR]

FOLDER is a set in BEIR's layout (corpus.jsonl.gz, queries.jsonl.gz, qrels.tsv). ``--steps`` shows
what each step of the hybrid recipe gains. Writes quality.json and quality.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import colmem
from colmem import settings
from colmem.contract import FetchRequest
from colmem.retrieval.settings import RankingSettings
from quality_measures import ndcg, recall
from quality_sets import ADVERSARIAL, JudgedSet, Question, path_of, read_set

DEPTH = 50
MODES = ("keyword", "vector", "hybrid")
_TRUST_ALL = {"fit_full": 0.0, "fit_full_maxsim": 0.0, "code_share": 1.0}
STEPS: dict[str, dict[str, Any]] = {
    "blend of both legs": {"rescore_top": 0, "dialogue": False, **_TRUST_ALL},
    "+ MaxSim": {"dialogue": False, **_TRUST_ALL},
    "+ weights by query and kind of text": {"dialogue": False},
    "+ dialogue (the default)": {},
}


def judge(
    engine: Any, questions: Sequence[Question], mode: str, *, is_dialogue: bool
) -> dict[str, Any]:
    """Means over the questions, and the time of a fetch of ten."""
    found: dict[str, list[float]] = {}
    seconds = []
    for question in questions:
        page = engine.fetch(
            FetchRequest(query=question.text, mode=mode, filter=question.filter, limit=DEPTH)
        )
        ids = [hit.meta.file_path for hit in page.hits]
        relevance = {path_of(id): grade for id, grade in question.relevance.items()}
        found.setdefault("nDCG@10", []).append(ndcg(ids, relevance, 10))
        for k in (5, 10, 20, 50) if is_dialogue else (10, 50):
            found.setdefault(f"R@{k}", []).append(recall(ids, relevance, k))
        start = time.perf_counter()
        engine.fetch(FetchRequest(query=question.text, mode=mode, filter=question.filter, limit=10))
        seconds.append(time.perf_counter() - start)
    row: dict[str, Any] = {name: round(statistics.fmean(v), 4) for name, v in found.items()}
    row["questions"] = len(questions)
    row["p50_ms"] = round(1e3 * statistics.median(seconds), 2)
    row["p95_ms"] = round(1e3 * statistics.quantiles(seconds, n=20)[-1], 2)
    return row


def run_set(judged: JudgedSet, modes: Iterable[str], *, steps: bool) -> list[dict[str, Any]]:
    questions = [q for q in judged.questions if q.category != ADVERSARIAL]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        with colmem.open(folder) as engine:
            engine.ingest(judged.items())
            engine.fetch(FetchRequest(query="warm up", mode="hybrid", limit=1))
            for mode in modes:
                row = judge(engine, questions, mode, is_dialogue=judged.is_dialogue)
                rows.append({"set": judged.name, "ranking": mode, **row})
        for name, changes in STEPS.items() if steps else ():
            record_ranking(Path(folder), RankingSettings(**changes))
            with colmem.open(folder) as engine:
                row = judge(engine, questions, "hybrid", is_dialogue=judged.is_dialogue)
            rows.append({"set": judged.name, "ranking": name, **row})
    return rows


def record_ranking(folder: Path, ranking: RankingSettings) -> None:
    """Record other weights in a closed store."""
    recorded = settings.read(folder)
    settings.write(folder, msgspec.structs.replace(recorded, ranking=ranking.to_dict()))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table, columns in order of first mention."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    lines += ["| " + " | ".join(str(row.get(name, "")) for name in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for folder in options.folders:
        rows += run_set(read_set(folder), options.modes.split(","), steps=options.steps)
        print(table([row for row in rows if row["set"] == folder.name]), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "quality.json").write_text(json.dumps(rows, indent=1) + "\n")
    (options.out / "quality.md").write_text(
        "# Retrieval quality\n\nMade by `bench/quality.py`; settings were chosen on these sets "
        "only. Category 5 of LoCoMo\nis left out; every question is asked of its own scope.\n\n"
        + table(rows)
    )


if __name__ == "__main__":
    main()
