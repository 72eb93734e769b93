"""Commands that move whole stores: snapshot, hydrate, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from colmem import SnapshotChecksumError
from colmem.adapters.options import Command, filter_options, store_argument
from colmem.adapters.progress import Progress
from colmem.adapters.session import open_for_writing, open_or_create, session

FORMATS = ("v2", "jsonl", "jsonl.gz", "package", "package.gz", "columnar")


@click.command(cls=Command)
@store_argument
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="By default jsonl or jsonl.gz when OUT ends so, else v2.",
)
@click.option("--attach", is_flag=True, help="Copy small ranges of referenced files along (v2).")
@click.option(
    "--base-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where relative file references start; by default the working directory.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path, exists=True),
    help="Write only what this full snapshot lacks, and name what is gone.",
)
@filter_options
def snapshot(
    store: Path,
    out: Path,
    format_: str | None,
    attach: bool,
    base_dir: Path | None,
    since: Path | None,
    filter: Any,
) -> None:
    """Write STORE, or what a filter admits of it, as a snapshot at OUT.

    A snapshot that stands there is replaced once the new one is complete.
    """
    with open_for_writing(store) as engine:
        total = engine.stats()["items"]
        done = 0
        with Progress("writing", total, "records") as progress:

            def advance(count: int) -> None:
                nonlocal done
                done += count
                progress.update(done)

            report = engine.snapshot(
                out,
                format=format_,
                attach=attach,
                base_dir=base_dir,
                filter=filter,
                since=since,
                progress=advance,
            )
    session().output.facts(msgspec.structs.asdict(report))


@click.command(cls=Command)
@store_argument
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--embedder", metavar="KEY", help="Embedder of a store that is made; see init.")
def hydrate(store: Path, path: Path, embedder: str | None) -> None:
    """Load the snapshot at PATH into STORE, made when absent; run again, it completes itself.

    PATH is a snapshot directory of any format, a .jsonl or .jsonl.gz file, or a HotMem database.
    Nothing is written before all of it has been verified.
    """
    if not path.exists():
        raise click.ClickException(f"there is nothing at {path}; check the path of the snapshot")
    with open_or_create(store, embedder) as engine, Progress("reading", 1, "bytes") as progress:
        report = engine.hydrate(path, progress=progress.update_of)
    session().output.facts(msgspec.structs.asdict(report))


@click.command(cls=Command)
@click.argument("path", type=click.Path(path_type=Path))
def verify(path: Path) -> None:
    """Verify the snapshot directory at PATH; exit code 1 when it is not what its manifest says."""
    from colmem.snapshot.hydrate import size_bytes  # noqa: PLC0415 - heavy, only for this command
    from colmem.snapshot.verify import verify as verify_snapshot  # noqa: PLC0415

    total = size_bytes(path)
    done = 0
    with Progress("verifying", total, "bytes") as progress:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress.update(done)

        try:
            report = verify_snapshot(path, progress=advance)
        except SnapshotChecksumError as error:
            facts = {
                "valid": False,
                "reason": error.reason,
                "file": error.file,
                "expected": error.expected,
                "actual": error.actual,
            }
            session().output.facts({k: v for k, v in facts.items() if v is not None})
            raise
    facts = msgspec.structs.asdict(report)
    session().output.facts({k: v for k, v in facts.items() if v is not None})


COMMANDS = (snapshot, hydrate, verify)
