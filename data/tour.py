"""The tour of ``make run``: loads the bundled data, then asks it things on the command line.

Run as ``python data/tour.py STORE``. A second run finds everything loaded and adds nothing.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import colmem
from colmem import MetaFilter

HERE = Path(__file__).parent
COLMEM = str(Path(sys.executable).with_name("colmem"))
LANGUAGES = ("en", "zh")
ROUNDS = 30


def main(store: str) -> None:
    """Run every step; ends with the first one that fails."""
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    say("Load the English and Chinese XQuAD paragraphs.")
    say("The first run compiles the kernels for this machine; that takes a while, and is kept.")
    run("import", store, *(f"{HERE.name}/xquad-{name}/paragraphs.jsonl.gz" for name in LANGUAGES))
    say("Find by words and by meaning at once (hybrid, the default).")
    run("fetch", store, "what did Tesla patent", "--limit", "3")
    say("The same among Chinese paragraphs only; a filter is exact, however little it admits.")
    run("fetch", store, "特斯拉的交流电动机", "--language", "zh", "--limit", "2")
    say("What is there? Count along one facet, then narrow and count along another.")
    run("explore", store, "language")
    run("explore", store, "folder", "--narrow", "language=zh", "--limit", "4")
    run("list", store, "--folder", "/xquad/zh/oxygen", "--limit", "2")
    say("Answer a question from what is stored, with citations.")
    run("recall", store, "How many points did the Panthers defense surrender?", "--limit", "3")
    say("Load a snapshot that HotMem made, and write a snapshot of it that HotMem reads.")
    moved = str(Path(store).with_name("moved.colmem"))
    written = str(Path(store).with_name("moved-snapshot"))
    hydrated = f"{HERE.name}/hotmem-snapshot"
    run("hydrate", moved, hydrated, "--embedder", "hotmem-hash-v1")
    run("snapshot", moved, written)
    run("verify", written)
    same = (Path(written) / "memories.jsonl").read_bytes() == (
        HERE / "hotmem-snapshot" / "memories.jsonl"
    ).read_bytes()
    sys.stdout.write(f"memories.jsonl is {'the same, byte for byte' if same else 'different'}\n")
    say(f"The same calls from Python, in one process: median of {ROUNDS}.")
    timings(store)


def say(text: str) -> None:
    """Head a step."""
    sys.stdout.write(f"\n# {text}\n")
    sys.stdout.flush()


def run(*args: str) -> None:
    """Show a command, run it, and show how long it took, start of the process included."""
    sys.stdout.write(f"$ colmem {shlex.join(args)}\n")
    sys.stdout.flush()
    start = time.perf_counter()
    subprocess.run([COLMEM, *args], check=True, cwd=HERE.parent)
    sys.stdout.write(f"({time.perf_counter() - start:.2f} s)\n\n")
    sys.stdout.flush()


def timings(store: str) -> None:
    """Time the operations without the start of a process."""
    with colmem.open(store, create=False, read_only=True) as engine:
        calls: dict[str, Callable[[], object]] = {
            "fetch, hybrid": lambda: engine.fetch(query="what did Tesla patent"),
            "fetch, hybrid, filtered": lambda: engine.fetch(
                query="特斯拉的交流电动机", filter=MetaFilter(language="zh")
            ),
            "fetch, keyword": lambda: engine.fetch(query="Tesla motor", mode="keyword"),
            "fetch, vector": lambda: engine.fetch(query="Tesla motor", mode="vector"),
            "explore": lambda: engine.explore(facet="folder"),
            "list, 100 items": engine.list,
            "recall": lambda: engine.recall(
                question="How many points did the Panthers defense surrender?"
            ),
        }
        for name, call in calls.items():
            seconds = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - start)
            sys.stdout.write(f"  {name:<26}{median(seconds) * 1000:8.2f} ms\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
