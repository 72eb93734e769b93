"""Commands for a store's upkeep: health, stats, check, compact, reembed, sql, warmup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colmem import StoreLocked, Unavailable
from colmem.adapters.options import Command, store_argument, text_of
from colmem.adapters.progress import Progress
from colmem.adapters.session import open_for_reading, open_for_writing, session


@click.command(cls=Command)
@store_argument
def health(store: Path) -> None:
    """Say whether STORE serves, and what ails it; exit code 1 when not."""
    with open_for_reading(store) as engine:
        state = engine.health()
    session().output.health(state)
    if not state.is_serving:
        raise click.exceptions.Exit(1)


@click.command(cls=Command)
@store_argument
def stats(store: Path) -> None:
    """Show counts and sizes of STORE."""
    with open_for_reading(store) as engine:
        facts = engine.stats()
    session().output.facts(facts)


@click.command(cls=Command)
@store_argument
@click.option("--repair", is_flag=True, help="Rebuild what is damaged from what is whole.")
def check(store: Path, repair: bool) -> None:
    """Check that all parts of STORE agree, every fingerprint included.

    Exit code 1 when they do not. With --repair a store that no longer opens is rebuilt too: the
    table from the row log or the row log from the table; a damaged table is kept aside.
    """
    with Progress("repairing" if repair else "checking"):
        if repair:
            from colmem import maintenance  # noqa: PLC0415 - heavy, only for repairing

            report = maintenance.repair(store)
        else:
            with open_for_writing(store) as engine:
                report = engine.check()
    session().output.facts({"ok": report.ok, "items": report.items, "problems": report.problems})
    if not report.ok:
        raise click.ClickException(
            f"{store} has {len(report.problems)} problems; run `colmem check {store} --repair`"
        )


@click.command(cls=Command)
@store_argument
def compact(store: Path) -> None:
    """Reclaim the space of forgotten and expired items; ids and cursors stay valid."""
    with open_for_writing(store) as engine:
        before = engine.stats()
        with Progress("compacting", before["items"]) as progress:
            engine.compact(progress.update)
        after = engine.stats()
    session().output.facts(
        {
            "items": after["items"],
            "rows_reclaimed": before["rows"] - after["rows"],
            "bytes_before": before["bytes_total"],
            "bytes_after": after["bytes_total"],
        }
    )


@click.command(cls=Command)
@store_argument
@click.argument("embedder", metavar="KEY")
def reembed(store: Path, embedder: str) -> None:
    """Embed every item of STORE anew with the embedder KEY (static-s256, hotmem-hash-v1)."""
    with open_for_writing(store) as engine:
        with Progress("embedding", engine.stats()["items"]) as progress:
            engine.reembed(embedder, progress.update)
        facts = engine.stats()
    session().output.facts({key: facts[key] for key in ("items", "embedder", "dim")})


@click.command(cls=Command)
@store_argument
@click.argument("query")
def sql(store: Path, query: str) -> None:
    """Answer one SELECT over the table `items`; `-` reads it from standard input."""
    text = text_of(query)
    with Progress("querying"):
        table = _answered(store, text)
    session().output.rows(table)


def _answered(store: Path, query: str) -> Any:
    try:
        with open_for_reading(store) as engine:
            return engine.sql(query)
    except StoreLocked:
        raise
    except Unavailable:
        # After a crash the table lags behind the row log, which only a writer brings level.
        with open_for_writing(store) as engine:
            return engine.sql(query)


@click.command(cls=Command)
def warmup() -> None:
    """Compile all native code now, which each part else does when it is first used.

    Needed at most once after an installation; the machine code is kept in the cache folder that
    COLMEM_CACHE_DIR names, else in the user's own.
    """
    from colmem_kernels.warmup import kernels  # noqa: PLC0415 - loads Numba

    every = kernels()
    n_compiled = 0
    with Progress("compiling", len(every), "kernels") as progress:
        for done, kernel in enumerate(every, 1):
            n_compiled += not kernel.is_cached()
            kernel.compiled()
            progress.update(done)
    session().output.facts({"kernels": len(every), "compiled": n_compiled})


COMMANDS = (health, stats, check, compact, reembed, sql, warmup)
