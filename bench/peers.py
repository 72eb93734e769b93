"""Measure the contenders on one workload, each in fresh processes and an environment of its own.

    python bench/peers.py --items 100000                      every contender
    python bench/peers.py --items 100000 --only colmem --again
    python bench/peers.py --growth 1000000 10000000           colmem alone, growing

A contender whose line stands in the results already is left out, so a run that was stopped goes on
where it was; ``--again`` measures anew. Results: one line of JSON for each contender.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yardstick import environments, processes
from yardstick.contender import MODULES, environment_of
from yardstick.processes import PhaseError, run_phase
from yardstick.results import finished, print_summary
from yardstick.texts import BUNDLED
from yardstick.workload import Workload, workload

RESULTS = Path(__file__).parent / "results"
STRICT = "colmem"


def main() -> None:
    options = arguments()
    if options.growth:
        from yardstick.growth import grow

        grow(sorted(options.growth), options.out)
        return
    made = workload(options.items, texts=options.texts)
    out = options.out / f"peers-{options.items}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name in options.only or MODULES if name not in options.skip]
    is_wrong = False
    for name in names:
        if name in finished(out) and not options.again:
            print(f"{name}: measured already", flush=True)
            continue
        print(f"{name}: {datetime.datetime.now().astimezone():%H:%M:%S}", flush=True)
        line = measure(name, made, options)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print_summary(line)
        is_wrong |= name == STRICT and line["stopped"] is not None
    sys.exit(is_wrong)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=MODULES, metavar="NAME")
    parser.add_argument("--skip", nargs="+", choices=MODULES, metavar="NAME", default=[])
    parser.add_argument("--again", action="store_true", help="measure what was measured already")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measure")
    parser.add_argument("--repeats", type=int, default=3, help="fresh processes that read")
    parser.add_argument("--opens", type=int, default=5, help="fresh processes that only open")
    parser.add_argument("--minutes", type=float, default=90, help="most that a contender may take")
    parser.add_argument("--texts", type=Path, default=BUNDLED, help="JSON lines, gzip: real texts")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--keep", action="store_true", help="leave the stores where they are")
    parser.add_argument("--growth", nargs="+", type=int, metavar="N", help="colmem at these sizes")
    return parser.parse_args()


def measure(name: str, made: Workload, options: argparse.Namespace) -> dict[str, Any]:
    """All phases of a contender; what was measured is kept when one fails."""
    python = environments.interpreter(environment_of(name))
    work = environments.RUN / "stores" / f"{name}-{made.n}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    about = describe(name, python)
    line: dict[str, Any] = {
        "contender": name,
        "items": made.n,
        **about,
        "machine": processes.machine(),
        "commit": processes.commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "load_before": processes.load_average(),
        "import_ms": processes.import_ms(python, about["imports"]),
        "stopped": None,
    }
    budget = _Budget(60 * options.minutes)
    command: list[str | Path] = [python, "-m", "yardstick.child", name]
    tail: list[str | Path] = [made.folder, work / "store", "--seconds", str(options.seconds)]
    if name == STRICT:
        tail.append("--strict")
    try:
        run_phases(command, tail, work / "log.txt", budget, options, line)
    except PhaseError as error:
        line["stopped"] = str(error)
    line["load_after"] = processes.load_average()
    if line["stopped"] is None and not options.keep:
        shutil.rmtree(work)
    elif not options.keep:
        shutil.rmtree(work / "store", ignore_errors=True)
    return line


def run_phases(
    command: list[str | Path],
    tail: list[str | Path],
    log: Path,
    budget: _Budget,
    options: argparse.Namespace,
    line: dict[str, Any],
) -> None:
    def run(
        phase: str, figures: dict[str, Any], variables: Mapping[str, str] | None = None
    ) -> processes.Memory:
        try:
            return run_phase([*command, phase, *tail], log, budget.left(), figures, variables)
        except PhaseError as error:
            raise PhaseError(f"{phase}: {error}") from None

    line["memory_load"] = vars(run("load", line))
    opens: list[dict[str, Any]] = [{} for _ in range(options.opens)]
    for figures in opens:
        run("first", figures)
    line["open"] = middle([figures["open"] for figures in opens])
    if line["contender"] == STRICT:
        installed: dict[str, Any] = {}
        run("first", installed, {"COLMEM_CACHE_DIR": str(log.with_name("kernels"))})
        took = installed["open"]["open_ms"] + installed["open"]["first_ms"]
        line["installed"] = {"total_ms": round(took, 1)}
    reads: list[dict[str, Any]] = [{} for _ in range(options.repeats)]
    try:
        peaks = [vars(run("query", figures)) for figures in reads]
        line["memory_query"] = middle(peaks)
    finally:
        line |= middle([figures for figures in reads if figures])
    run("write", line)


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of the same figures in several runs; of medians, their range too."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = [run[name] for run in runs if name in run]
        if all(isinstance(value, dict) for value in values):
            merged[name] = middle(values)
        elif all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            merged[name] = round(statistics.median(values), 4)
            if name.endswith("_ms") and len(values) > 1:
                merged[f"{name}_range"] = [round(min(values), 4), round(max(values), 4)]
        else:
            merged[name] = values[0]
    return merged


def describe(name: str, python: Path) -> dict[str, Any]:
    """How a contender is set up, asked of its class in its environment."""
    code = (
        "import sys, json; from pathlib import Path; from yardstick.contender import contender;"
        "c = contender(sys.argv[1], Path('unused'), 256);"
        "print(json.dumps([c.packages, c.imports, c.setup, sorted(c.modes), c.returns]))"
    )
    packages, imports, setup, modes, returns = json.loads(processes.ask(python, code, name))
    return {
        "versions": processes.versions(python, packages),
        "imports": imports,
        "setup": setup,
        "modes": modes,
        "returns": returns,
    }


class _Budget:
    """Seconds that a contender has left."""

    def __init__(self, seconds: float) -> None:
        self._end = processes.now() + seconds

    def left(self) -> float:
        return max(1.0, self._end - processes.now())


if __name__ == "__main__":
    main()
