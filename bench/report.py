"""Write ``bench/results/README.md`` and its plots from the results.

    python bench/report.py

Reads ``peers-<items>.jsonl``, ``limits-<items>.json`` and ``growth.jsonl`` beside it; what is not
there is said to be not measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from yardstick import environments, results
from yardstick.metadata import FACETS, FILTERS
from yardstick.results import Line, figure
from yardstick.run import MODES
from yardstick.targets import GROWTH, LARGE, SMALL, TARGETS, Target, is_qdrant

RESULTS = Path(__file__).parent / "results"
MISSING = "not measured"
OURS = "colmem"
Lines = dict[str, Line]
INTRODUCTION = """# Results

Made by `python bench/report.py` from the JSON beside it; `bench/README.md` says how to run
everything again. ✓ and ✗ say whether a bound is kept. The best peer is the best of those that do
the same (for vector search: that reach a recall of .99); most return ids, colmem whole items.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args()
    folder: Path = options.out
    sizes = sorted({SMALL, LARGE, *_sizes(folder)})
    held = {size: results.read(folder / f"peers-{size}.jsonl") for size in sizes}
    limits = {size: _limits(folder, size) for size in sizes}
    text = INTRODUCTION + "\n## What to reach\n\n" + reach(held, limits)
    text += "\n## Growth\n\n" + growth(folder / "growth.jsonl")
    for size in sizes:
        if held[size]:
            text += f"\n## {size:,} items\n\n" + contenders(held[size], limits[size])
            if (folder / f"search-{size}.svg").exists() or not options.no_plots:
                text += f"\n![Search latency by contender](search-{size}.svg)\n"
                text += f"\n![Ingest rate and disk by contender](ingest-{size}.svg)\n"
    text += others(folder)
    (folder / "README.md").write_text(text)
    if not options.no_plots:
        python = environments.interpreter("plots")
        script = Path(__file__).parent / "yardstick" / "plots.py"
        subprocess.run([python, script, folder], check=True)


def _sizes(folder: Path) -> list[int]:
    return [int(path.stem.partition("-")[2]) for path in folder.glob("peers-*.jsonl")]


def _limits(folder: Path, size: int) -> Line | None:
    path = folder / f"limits-{size}.json"
    return json.loads(path.read_text()) if path.exists() else None


def others(folder: Path) -> str:
    """Links to what other benchmarks wrote beside this file, by the heading of each."""
    paths = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    if not paths:
        return ""
    heads = {path: path.read_text().splitlines()[0].lstrip("# ") for path in paths}
    links = "".join(f"- [{head}]({path.name})\n" for path, head in heads.items())
    return f"\n## Single parts\n\n{links}"


def reach(held: dict[int, Lines], limits: dict[int, Line | None]) -> str:
    """The table of measures, bounds, figures, best peers and limits."""
    rows = []
    for target in TARGETS:
        cells = [target.measure, bound(target)]
        cells += [ours(target, held[size].get(OURS), limits[size], size) for size in (SMALL, LARGE)]
        cells += [best_peer(target, held[size], limits[size]) for size in (SMALL, LARGE)]
        cells.append(limit(target, limits))
        rows.append(cells)
    rows.append(beside_qdrant(held))
    names = ["measure", "bound", "colmem, 100k", "colmem, 1M", "best peer, 100k", "best peer, 1M"]
    return table([*names, "machine's limit, 100k / 1M"], rows)


def bound(target: Target) -> str:
    sign = "≤" if target.at_most else "≥"
    named = {SMALL: "100k", LARGE: "1M"}
    parts = [
        f"{named[size]}: {sign} {shown(value)} {target.unit}".strip()
        for size, value in target.bounds.items()
    ]
    return "; ".join(parts)


def ours(target: Target, line: Line | None, limits: Line | None, size: int) -> str:
    value = target.value(line, limits)
    if value is None:
        return MISSING
    is_met = target.is_met(value, size)
    mark = {None: "", True: " ✓", False: " ✗"}[is_met]
    return f"{shown(value)} {target.unit}".strip() + mark


def best_peer(target: Target, lines: Lines, limits: Line | None) -> str:
    found = [
        (value, name)
        for name, line in lines.items()
        if name != OURS and (value := target.value(line, limits)) is not None and target.peers(line)
    ]
    if not found:
        return MISSING
    value, name = min(found) if target.at_most else max(found)
    return f"{name} {shown(value)}"


def limit(target: Target, limits: dict[int, Line | None]) -> str:
    if target.limit is None or target.is_ratio:
        return ""
    held = (limits[SMALL], limits[LARGE])
    values = [None if line is None else target.limit(line) for line in held]
    if not any(values):
        return MISSING
    cells = " / ".join(MISSING if value is None else shown(value) for value in values)
    return f"{target.limit_name}: {cells}"


def beside_qdrant(held: dict[int, Lines]) -> list[str]:
    """Vector fetch and ingest beside Qdrant Edge in the same run."""
    cells = []
    for size in (SMALL, LARGE):
        qdrant = next((line for line in held[size].values() if is_qdrant(line)), {})
        own = held[size].get(OURS, {})
        parts = []
        for name, places, bound in (
            ("vector", ("search", "vector", "none", "p50_ms"), "≤ 1"),
            ("ingest", ("load", "items_per_s"), "≥ 20"),
        ):
            mine, its = figure(own, *places), figure(qdrant, *places)
            if mine and its:
                is_met = mine <= its if bound == "≤ 1" else mine >= 20 * its
                parts.append(f"{name} {shown(mine / its)} × {'✓' if is_met else '✗'}")
        cells.append("; ".join(parts) or MISSING)
    bounds = "vector, 100k: ≤ 1 ×; ingest: ≥ 20 ×"
    return ["of Qdrant Edge in the same run", bounds, *cells, "", "", ""]


def growth(path: Path) -> str:
    """How much each measure grows from a million to ten million items."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    sizes = [line["items"] for line in lines]
    rows = []
    for name, places, most in GROWTH:
        values = [figure(line, *places) for line in lines]
        cells = [MISSING if value is None else f"{shown(value)} ms" for value in values]
        grown = values[-1] / values[0] if len(values) > 1 and values[0] and values[-1] else None
        kept = (
            "" if grown is None or sizes[-1] != 10 * sizes[0] else " ✓" if grown <= most else " ✗"
        )
        rows.append(
            [name, f"≤ {most} ×", *cells, MISSING if grown is None else f"{shown(grown)} ×{kept}"]
        )
    text = table(["measure", "1M to 10M", *(f"{size:,} items" for size in sizes), "growth"], rows)
    if lines:
        text += (
            "\nOne store filled to each size in turn with generated texts of "
            f"{lines[0]['words']} words and vectors of {lines[0]['dim']} components; p50 of each "
            "read in a fresh process.\n\n![Latency by size](growth.svg)\n"
        )
    return text


def contenders(lines: Lines, limits: Line | None) -> str:
    """Every contender's figures at one size."""
    any_line = next(iter(lines.values()))
    machine = any_line["machine"]
    loads = [load for line in lines.values() for load in (line["load_before"][0],)]
    text = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"{machine['system']}; Python {machine['python']}; commit {any_line['commit']}; "
        f"{any_line['date']}; load before each {min(loads):.1f} to {max(loads):.1f}.\n\n"
    )
    text += _loading(lines) + "\n" + _searching(lines) + "\n" + _filtered(lines) + "\n"
    text += _reading(lines) + "\n" + _writing(lines) + "\n" + _setups(lines)
    if limits:
        text += "\nThe machine: " + ", ".join(_limit_words(limits)) + ".\n"
    return text


def _loading(lines: Lines) -> str:
    names = {
        "items/s": ("load", "items_per_s"),
        "CPU µs an item": ("load", "cpu_us_per_item"),
        "bytes an item": ("load", "bytes_per_item"),
        "peak MB loading": ("memory_load", "own_mb"),
        "peak MB querying": ("memory_query", "own_mb"),
        "resident MB querying": ("memory_query", "resident_mb"),
        "import ms": ("import_ms",),
        "open ms": ("open", "open_ms"),
        "first query ms": ("open", "first_ms"),
        "open again ms": ("open", "again_ms"),
    }
    rows = [
        [name, *(cell(line, *places) for places in names.values())] for name, line in lines.items()
    ]
    return table(["ingest, memory, open", *names], rows)


def _searching(lines: Lines) -> str:
    rows = []
    for name, line in lines.items():
        cells = [name]
        for mode in MODES:
            place = ("search", mode, "none")
            spread = figure(line, *place, "p50_ms_range")
            middle = cell(line, *place, "p50_ms")
            if spread:
                middle += f" ({shown(spread[0])}–{shown(spread[1])})"
            cells += [middle, cell(line, *place, "p95_ms"), cell(line, *place, "cpu_ms")]
            cells += [cell(line, "threads", mode, n, "per_s") for n in ("1", "2")]
        cells += [cell(line, "search", "vector", "none", "recall")]
        cells += [cell(line, "search", "keyword", "none", "overlap")]
        rows.append(cells)
    heads = [
        f"{mode} {what}" for mode in MODES for what in ("p50 ms", "p95", "CPU", "/s", "/s on 2")
    ]
    return table(["search", *heads, "recall@10", "overlap@10"], rows)


def _filtered(lines: Lines) -> str:
    rows = []
    for name, line in lines.items():
        for mode in MODES:
            if figure(line, "search", mode, FILTERS[1].name):
                cells = [f"{name}, {mode}"]
                for filter in FILTERS:
                    found = figure(line, "search", mode, filter.name) or {}
                    share = found.get("recall", found.get("overlap"))
                    text = cell(line, "search", mode, filter.name, "p50_ms")
                    cells.append(text if share is None else f"{text} ({share:.2f})")
                rows.append(cells)
    heads = [f"{filter.name} ms" for filter in FILTERS]
    return table(["p50 by filter (recall or overlap)", *heads], rows)


def _reading(lines: Lines) -> str:
    rows = []
    for name, line in lines.items():
        cells = [name]
        for facet in FACETS:
            found = [figure(line, "explore", facet, f, "p50_ms") for f in ("none", "50 %")]
            is_right = figure(line, "explore", facet, "none", "is_right")
            text = " / ".join(shown(value) for value in found if value is not None)
            cells.append(text + ("" if is_right is not False else " wrong"))
        cells += [cell(line, "get_200", "p50_ms")]
        cells += [cell(line, "list", page, "none", "p50_ms") for page in ("page 1", "page 1000")]
        if any(cells[1:]):
            rows.append(cells)
    heads = [f"{facet}" for facet in FACETS]
    return table(
        ["explore, ms, unfiltered / half", *heads, "get 200", "page 1", "page 1,000"], rows
    )


def _writing(lines: Lines) -> str:
    names = {
        "store p50 ms": ("store", "p50_ms"),
        "p95": ("store", "p95_ms"),
        "CPU": ("store", "cpu_ms"),
        "8 threads /s": ("store_8_threads", "per_s"),
        "store 100 ms": ("store_many_100", "p50_ms"),
        "store, search ms": ("store_then_search", "p50_ms"),
        "seen": ("store_then_search", "seen"),
        "forget 1 % s": ("forget_1_percent", "s"),
        "compact s": ("compact", "s"),
    }
    rows = [
        [name, *(cell(line, *places) for places in names.values())] for name, line in lines.items()
    ]
    return table(["writes", *names], [row for row in rows if any(row[1:])])


def _setups(lines: Lines) -> str:
    rows = []
    for name, line in lines.items():
        versions = ", ".join(f"{package} {v}" for package, v in line["versions"].items())
        effort = figure(line, "effort", "chosen")
        setup = line["setup"] + ("" if effort is None else f"; effort {effort}")
        rows.append([name, versions, setup, line["stopped"] or ""])
    return table(["contender", "versions", "set up as", "stopped"], rows)


def _limit_words(limits: Line) -> list[str]:
    names = {
        "memory copy {} GB/s": ("memory", "copy_gb_per_s_1_threads"),
        "on two threads {} GB/s": ("memory", "copy_gb_per_s_2_threads"),
        "fdatasync {} ms": ("sync", "fdatasync", "p50_ms"),
        "BLAS scan {} ms": ("blas_scan", "p50_ms"),
        "tantivy {} texts/s": ("tantivy", "texts_per_s"),
        "storing them {} texts/s": ("tantivy_stored", "texts_per_s"),
        "its query {} ms": ("tantivy", "query", "p50_ms"),
        "JSON read {} items/s": ("encoding", "json_decode_msgspec_per_s"),
        "MessagePack written {} items/s": ("encoding", "msgpack_encode_per_s"),
        "SHA-256 {} items/s": ("encoding", "sha256_per_s"),
    }
    return [words.format(cell(limits, *places)) for words, places in names.items()]


def cell(line: Line, *names: str) -> str:
    value: Any = figure(line, *names)
    return "" if value is None else shown(value)


def shown(value: float) -> str:
    """Three digits, thousands separated."""
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
