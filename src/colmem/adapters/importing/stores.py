"""Another store as a source: its items as they were stored, embedded anew by the store that takes.

What only a record of another system has (its own id, an expiry) does not come along; snapshots
carry that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import colmem
from colmem import ColmemError
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.reading import Items, Problem, Reading

SETTINGS_FILE: Final = "store.json"  # what makes a folder a store


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / SETTINGS_FILE).is_file()


def size_bytes(path: Path) -> int:
    """Bytes of a store's files."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def read_store(path: Path, origin: Origin, reading: Reading) -> Items:
    """The items that the filter admits, in order of storing."""
    from colmem import stored  # noqa: PLC0415 - with the engine, not for --help

    size, n_foreign = size_bytes(path), 0
    try:
        with colmem.open(path, create=False, read_only=True) as engine:
            last = max(engine.stats()["items"], 1)
            done = 0
            for batch in engine.to_arrow(reading.filter):
                for row in stored.from_batch(batch):
                    n_foreign += row.is_foreign or row.expires_s is not None
                    yield stored.item_of(row)
                done += batch.num_rows
                reading.consumed(size * done // last)
    except ColmemError as error:
        yield Problem(str(path), error.message)
    if n_foreign:
        reading.note(
            f"{path}: {n_foreign:,} of its items are records of another system; their ids and "
            "expiry stay behind (a snapshot and `colmem hydrate` keep them)"
        )
