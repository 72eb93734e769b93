"""The phases of a contender, each in a fresh process: load, open, query, write.

Every phase hands its figures to ``report`` as soon as it has them, so that a run that is stopped
keeps what it measured.
"""

from __future__ import annotations

from pathlib import Path

from yardstick import checks
from yardstick.clocks import once
from yardstick.reads import measure_reads
from yardstick.run import MODES, Run
from yardstick.truth import K
from yardstick.writes import measure_writes


def load(run: Run) -> None:
    """Ingest until all is searchable; then close."""
    contender, workload = run.contender, run.workload

    def ingest() -> None:
        for batch in workload.batches(contender.batch_rows):
            contender.add(batch)

    contender.open()
    _, adding = once(ingest)
    _, finishing = once(lambda: contender.finish(workload.n))
    seconds, cpu = (adding[name] + finishing[name] for name in ("s", "cpu_s"))
    run.report(
        ["load"],
        {
            "items_per_s": round(workload.n / seconds, 1),
            "cpu_us_per_item": round(1e6 * cpu / workload.n, 2),
            "s": round(seconds, 3),
            "finish_s": finishing["s"],
        },
    )
    _, closing = once(contender.close)
    size = folder_bytes(contender.folder)
    run.report(["load", "close_s"], closing["s"])
    run.report(["load", "bytes_per_item"], round(size / workload.n, 1))
    run.report(
        ["load", "extra_bytes_per_item"],
        round((size - workload.text_bytes) / workload.n - 4 * contender.dim, 1),
    )


def first(run: Run) -> None:
    """Open in a fresh process, and the first query of the fullest mode; then open again.

    What the first open imports and loads for the process is there already the second time.
    """
    contender = run.contender
    _, opening = once(contender.open)
    mode = next(mode for mode in reversed(MODES) if mode in contender.modes)
    query = run.workload.queries[0]
    found, searching = once(lambda: contender.search(mode, query.text, query.vector, K))
    run.report(["open"], {"open_ms": 1e3 * opening["s"], "first_ms": 1e3 * searching["s"]})
    problem = checks.check_rows(run.workload, mode, "none", 0, contender.rows(found, run.workload))
    if problem:
        run.refuse("first query after open", problem)
    contender.close()
    _, again = once(contender.open)
    run.report(["open", "again_ms"], 1e3 * again["s"])
    contender.close()


def write(run: Run) -> None:
    """Durable writes, forget, compact; and what the store takes on disk then."""
    measure_writes(run)
    run.report(["bytes_after"], folder_bytes(run.contender.folder))


def folder_bytes(folder: Path) -> int:
    """Bytes that the files below a folder take on disk."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*") if path.is_file())


PHASES = {
    "load": load,
    "first": first,
    "query": measure_reads,
    "write": write,
}
