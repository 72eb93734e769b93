"""Run the pytest-benchmark suites and compare them with saved baselines.

    python bench/compare.py                   run, compare; exit 1 when something became slower
    python bench/compare.py --save            run, keep the figures as the new baselines
    python bench/compare.py kernels embed     these suites only

A baseline is ``baselines/<suite>.json``: the fastest and the median time of each benchmark. Fastest
times are compared, for they say least about what else the machine was doing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from yardstick import processes

BENCH = Path(__file__).parent
BASELINES = BENCH / "baselines"
SUITES = {
    "kernels": ["bench_kernels.py", "bench_kernels_columns.py", "bench_kernels_text.py"],
    "embed": ["bench_embed.py"],
    "engine": ["bench_engine.py"],
}
SLOWER = 1.3
"""How much slower the fastest run may be before it counts."""
SMALLEST_S = 2e-6
"""Below this, a timer's own cost decides."""
Figures = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--slower", type=float, default=SLOWER, metavar="RATIO")
    options = parser.parse_args()
    unknown = set(options.suites) - SUITES.keys()
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    n_slower = 0
    for suite in options.suites or SUITES:
        held = run(suite)
        path = BASELINES / f"{suite}.json"
        if options.save:
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(held, indent=1) + "\n")
            print(f"saved {len(held['benchmarks'])} figures to {path.name}")
        elif path.exists():
            n_slower += compare(suite, json.loads(path.read_text()), held, options.slower)
        else:
            print(f"{suite}: no baseline; make one with --save")
    sys.exit(n_slower > 0)


def run(suite: str) -> dict[str, Any]:
    """Run a suite in a process of its own and keep what is compared."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "benchmarks.json"
        files = [str(BENCH / name) for name in SUITES[suite]]
        command = [sys.executable, "-m", "pytest", "-o", "addopts=--strict-markers", "-q"]
        command += [*files, "--benchmark-only", "--benchmark-columns=min,median"]
        subprocess.run([*command, f"--benchmark-json={out}"], check=True)
        found = json.loads(out.read_text())
    figures: Figures = {
        bench["fullname"].rpartition("/")[2]: {
            "min_s": bench["stats"]["min"],
            "median_s": bench["stats"]["median"],
        }
        for bench in found["benchmarks"]
    }
    return {
        "machine": processes.machine(),
        "commit": processes.commit(),
        "date": found["datetime"][:10],
        "load": processes.load_average(),
        "benchmarks": figures,
    }


def compare(suite: str, before: dict[str, Any], after: dict[str, Any], slower: float) -> int:
    """Print each benchmark beside its baseline, slowest change first; how many are too slow."""
    old: Figures = before["benchmarks"]
    new: Figures = after["benchmarks"]
    print(f"\n{suite}: {after['commit']} beside {before['commit']} of {before['date']}")
    if before["machine"] != after["machine"]:
        print("the baseline is of another machine or Python; save one here first")
    common = sorted(old.keys() & new.keys(), key=lambda name: -_ratio(old, new, name))
    n_slower = 0
    for name in common:
        ratio = _ratio(old, new, name)
        is_slower = ratio > slower and new[name]["min_s"] > SMALLEST_S
        n_slower += is_slower
        mark = "slower" if is_slower else "faster" if ratio < 1 / slower else ""
        was, now = 1e6 * old[name]["min_s"], 1e6 * new[name]["min_s"]
        print(f"{ratio:6.2f} ×  {was:12,.1f} → {now:12,.1f} µs  {name}  {mark}")
    for word, names in (("gone", old.keys() - new.keys()), ("new", new.keys() - old.keys())):
        if names:
            print(f"{word}: {', '.join(sorted(names))}")
    return n_slower


def _ratio(old: Figures, new: Figures, name: str) -> float:
    return new[name]["min_s"] / old[name]["min_s"]


if __name__ == "__main__":
    main()
