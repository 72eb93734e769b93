"""One import: reads what was found, keeps count, stops or goes on at what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from colmem import MetaFilter, StoreItem
from colmem.adapters.importing.reading import Problem, Reading
from colmem.adapters.importing.sources import Scan

PROBLEMS_SHOWN: Final = 20


@dataclass
class Import:
    """Counts of one import, and the problem that ended it, if one did.

    mapping : column or key -> field; note : says something to the user; filter : which items are
    wanted.
    """

    found: Scan
    mapping: dict[str, str]
    note: Callable[[str], None]
    skip_bad: bool
    filter: MetaFilter = field(default_factory=MetaFilter)
    n_files: int = 0
    n_items: int = 0
    n_bad: int = 0
    stopped_by: Problem | None = None

    def items(self, advanced: Callable[[int, int], None]) -> Iterator[StoreItem]:
        """Every item of every file; ``advanced`` is told the bytes and the items read so far."""
        done = 0
        for problem in self.found.problems:
            if self._stops(problem):
                return
        for source in self.found.sources:
            before = done

            def consumed(n_bytes: int, before: int = before) -> None:
                advanced(before + n_bytes, self.n_items)

            is_empty = True
            reading = Reading(self.mapping, consumed, self.note, self.filter)
            for one in source.read(source.path, source.origin, reading):
                is_empty = False
                if isinstance(one, Problem):
                    if self._stops(one):
                        return
                elif self.filter.matches(one.kind, one.meta):
                    self.n_items += 1
                    yield one
            self.n_files += not is_empty
            self.found.skipped["empty"] += is_empty
            done += source.size_bytes

    def finish(self) -> None:
        """Say how many problems were not shown."""
        if self.n_bad > PROBLEMS_SHOWN:
            self.note(f"and {self.n_bad - PROBLEMS_SHOWN:,} more were skipped")

    def _stops(self, problem: Problem) -> bool:
        self.n_bad += 1
        if not self.skip_bad:
            self.stopped_by = problem
            return True
        if self.n_bad <= PROBLEMS_SHOWN:
            self.note(f"skipped {problem}")
        return False
