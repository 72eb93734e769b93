"""Resident metadata columns: dictionary-coded, one per filterable field, scanned by kernels.

They turn a filter into a mask over rows and a facet into counts without touching the table. They
are derived: rebuilt from the stored items at any time. One thread appends; readers pass the number
of rows they may see, below which nothing ever changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from colmem.arrow_columns import is_one_value
from colmem.contract import Facet, MetaFilter, Namespace, SourceKind, Timestamp, path_prefix
from colmem.index.growing import Dictionary, GrowingArray
from colmem.schema import Mask, RowIds
from colmem.stored import Columns
from colmem_kernels import columns as kernels

TURNS_REACH_ROWS = 64  # how far off in order of storing the next turn is looked for
TIED_VALUES_MAX = 2_000  # buckets sorted as strings; more are sorted by rank
NEVER = int(np.iinfo(np.int64).max)
_UNSET = int(np.iinfo(np.int64).min)

_EQUAL_FIELDS = {  # field of the stored item -> field of the filter
    "workspace": "workspace",
    "language": "language",
    "repo": "repo",
    "commit": "commit",
    "url": "url",
    "thread_id": "thread_id",
    "agent_id": "agent_id",
    "tool_name": "tool_call",
    "source_id": "source_id",
}
_PATH_FIELDS = ("folder", "file_path")
_CODED_FIELDS = ("kind", "source_kind", "namespace", *_EQUAL_FIELDS, *_PATH_FIELDS)
_FACET_FIELDS = {
    Facet.KIND: "kind",
    Facet.SOURCE: "source_kind",
    Facet.SOURCE_ID: "source_id",
    Facet.WORKSPACE: "workspace",
    Facet.FOLDER: "folder",
    Facet.FILE_PATH: "file_path",
    Facet.LANGUAGE: "language",
    Facet.REPO: "repo",
    Facet.URL: "url",
    Facet.THREAD: "thread_id",
    Facet.AGENT: "agent_id",
    Facet.TOOL_CALL: "tool_name",
    Facet.NAMESPACE: "namespace",
    Facet.TAG: "tags",
}


class Attributes:
    """All filterable fields of all rows."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._codes = {name: GrowingArray(np.uint32) for name in (*_CODED_FIELDS, "turns")}
        self._codes |= {f"{name}/parent": GrowingArray(np.uint32) for name in _PATH_FIELDS}
        self._values = {name: Dictionary() for name in (*self._codes, "tags")}
        self._tag_offsets = GrowingArray(np.int64, np.zeros(1, np.int64))
        self._tag_codes = GrowingArray(np.uint32)
        self._observed_s = GrowingArray(np.int64)
        self._observed_ns = GrowingArray(np.int32)
        self._expires_s = GrowingArray(np.int64)
        self._has_expiry = False

    def append(self, columns: Columns) -> None:
        """Add the rows that follow, in row order."""
        for name in _CODED_FIELDS:
            values = columns[name]
            if name == "namespace":
                values = [value or "root" for value in values]
            self._codes[name].append(self._values[name].encode(values))
            if name in _PATH_FIELDS:
                parents = [None if v is None else _parent(v) for v in values]
                key = f"{name}/parent"
                self._codes[key].append(self._values[key].encode(parents))
        turns = list(map(_turns_key, columns["turn_first"], columns["turn_last"]))
        self._codes["turns"].append(self._values["turns"].encode(turns))
        tags = columns["tags"]
        self._tag_codes.append(self._values["tags"].encode(list(chain.from_iterable(tags))))
        ends = np.cumsum(list(map(len, tags))) + self._tag_offsets.values()[-1]
        self._tag_offsets.append(ends)
        self._observed_s.append(_numbers(columns["observed_s"], _UNSET))
        self._observed_ns.append(_numbers(columns["observed_ns"], 0))
        expires = _numbers(columns["expires_s"], NEVER)
        self._expires_s.append(expires)
        self._has_expiry = self._has_expiry or bool((expires != NEVER).any())
        self.n_rows += len(tags)

    def keep_unexpired(self, mask: Mask, now_s: int) -> bool:
        """Clear the rows of a mask whose time to live has passed; says whether any could have."""
        if self._has_expiry:
            kernels.keep_unexpired(self._expires_s.values(len(mask)), now_s, mask)
        return self._has_expiry

    def is_expired(self, row: int, now_s: int) -> bool:
        """Whether a row's time to live has passed."""
        return bool(self._expires_s.values()[row] <= now_s)

    def expired(self, n_rows: int, now_s: int) -> npt.NDArray[np.int64]:
        """Rows whose time to live has passed: int64."""
        return np.flatnonzero(self._expires_s.values(n_rows) <= now_s)

    def keep(self, filter: MetaFilter, mask: Mask) -> None:
        """Clear the rows of a mask that a filter does not admit.

        mask : uint8 (n,), covering rows 0..n-1; changed in place.
        """
        if filter.kinds:
            self._keep_where("kind", set(filter.kinds).__contains__, mask)
        if filter.sources:
            self._keep_where("source_kind", set(filter.sources).__contains__, mask)
        if filter.reach is not None:
            reach = filter.reach
            self._keep_where("namespace", lambda v: reach.admits(Namespace.parse(v)), mask)
        for name, wanted_name in _EQUAL_FIELDS.items():
            self._keep_equal(name, getattr(filter, wanted_name), mask)
        if filter.turns is not None:
            self._keep_equal("turns", _turns_key(filter.turns.first, filter.turns.last), mask)
        for name in _PATH_FIELDS:
            self._keep_path(name, getattr(filter, name), mask)
        if filter.tags_any:
            self._keep_tags(filter.tags_any, mask)
        if filter.observed_after is not None or filter.observed_before is not None:
            self._keep_time(filter.observed_after, filter.observed_before, mask)

    def count(self, facet: Facet, mask: Mask) -> tuple[npt.NDArray[np.int64], int]:
        """Occurrences of each code of a facet among the rows of a mask, and rows without a value.

        Returns int64 (n_values,) indexed by code (its first entry is zero), and the count missing.
        """
        name = _FACET_FIELDS[facet]
        n = len(mask)
        if name == "tags":
            counts = np.zeros(len(self._values[name]), np.int64)
            offsets, codes = self._tag_offsets.values(n + 1), self._tag_codes.values()
            return counts, int(kernels.count_tags(offsets, codes, mask, counts))
        counts = np.zeros(len(self._values[name]), np.int64)
        kernels.count_codes(self._codes[name].values(n), mask, counts)
        missing = int(counts[0])
        counts[0] = 0
        return counts, missing

    def most_frequent(
        self, facet: Facet, counts: npt.NDArray[np.int64], limit: int
    ) -> tuple[list[tuple[str, int]], int]:
        """The values counted most, ties in code-point order, and how many were counted at all.

        counts : int64, by code, as :meth:`count` gives it.
        """
        dictionary = self._values[_FACET_FIELDS[facet]]
        held = np.flatnonzero(counts)
        if len(held) > limit:
            threshold = np.partition(counts[held], len(held) - limit)[len(held) - limit]
            top = held[counts[held] >= threshold]
        else:
            top = held
        if len(top) > TIED_VALUES_MAX:
            order = np.lexsort((dictionary.ranks(len(counts))[top], -counts[top]))
            top = top[order[:limit]]
        pairs = [(dictionary.values[code], int(counts[code])) for code in top]
        pairs.sort(key=lambda pair: (-pair[1], pair[0]))
        return pairs[:limit], len(held)

    def turns(self, rows: RowIds, mask: Mask) -> tuple[RowIds, RowIds]:
        """The conversations of rows, and the admitted rows beside each in it.

        Returns int64 (n,), -1 for a row that is no turn, and int64 (n, 4): two and one before, one
        and two after, -1 where there is none nearby.
        """
        n = len(mask)
        kinds = self._codes["source_kind"].values(n)
        threads, sources = self._codes["thread_id"].values(n), self._codes["source_id"].values(n)
        conversation = self._values["source_kind"].code(SourceKind.CONVERSATION)
        keys = np.full(len(rows), -1, np.int64)
        beside = np.full((len(rows), 4), -1, np.int64)
        if conversation:
            kernels.thread_keys(kinds, threads, sources, conversation, rows, keys)
            kernels.beside(
                kinds,
                threads,
                sources,
                conversation,
                mask,
                rows,
                keys,
                TURNS_REACH_ROWS,
                beside,
            )
        return keys, beside

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every array of the columns, for :meth:`restore`."""
        held = {f"codes/{k}": v for k, v in self._codes.items()}
        held |= {
            "tag_offsets": self._tag_offsets,
            "tag_codes": self._tag_codes,
            "observed_s": self._observed_s,
            "observed_ns": self._observed_ns,
            "expires_s": self._expires_s,
        }
        return {name: array.values() for name, array in held.items()}

    def dictionaries(self) -> dict[str, list[str]]:
        """Values of every dictionary, without the unset entry."""
        return {name: d.values[1:] for name, d in self._values.items()}

    @classmethod
    def restore(
        cls, arrays: dict[str, npt.NDArray[Any]], dictionaries: dict[str, list[str]]
    ) -> Attributes:
        """Columns from what :meth:`arrays` and :meth:`dictionaries` gave."""
        self = cls()
        self._codes = {k: GrowingArray(np.uint32, arrays[f"codes/{k}"]) for k in self._codes}
        self._values = {name: Dictionary(dictionaries[name]) for name in self._values}
        self._tag_offsets = GrowingArray(np.int64, arrays["tag_offsets"])
        self._tag_codes = GrowingArray(np.uint32, arrays["tag_codes"])
        self._observed_s = GrowingArray(np.int64, arrays["observed_s"])
        self._observed_ns = GrowingArray(np.int32, arrays["observed_ns"])
        self._expires_s = GrowingArray(np.int64, arrays["expires_s"])
        self.n_rows = self._observed_s.length
        self._has_expiry = bool((arrays["expires_s"] != NEVER).any())
        return self

    def _keep_equal(self, name: str, wanted: str | None, mask: Mask) -> None:
        if wanted is None:
            return
        code = self._values[name].code(wanted)
        if code == 0:
            mask[:] = 0
        else:
            kernels.keep_equal(self._codes[name].values(len(mask)), code, mask)

    def _keep_where(self, name: str, admits: Callable[[str], bool], mask: Mask) -> None:
        wanted = self._table(name, admits)
        kernels.keep_listed(self._codes[name].values(len(mask)), wanted, mask)

    def _table(self, name: str, admits: Callable[[str], bool]) -> Mask:
        values = self._values[name].values
        wanted = np.fromiter(map(admits, values), np.uint8, len(values))
        wanted[0] = 0
        return wanted

    def _keep_path(self, name: str, wanted: str | None, mask: Mask) -> None:
        """A path is admitted when it equals ``wanted``, or lies at or under its prefix.

        It lies under the prefix when its parent folder equals the prefix or lies under it, so only
        the distinct folders are compared as text.
        """
        if wanted is None:
            return
        bare = path_prefix(wanted)
        below = bare + "/"
        parents = self._table(f"{name}/parent", lambda v: v == bare or v.startswith(below))
        kernels.keep_under(
            self._codes[name].values(len(mask)),
            self._codes[f"{name}/parent"].values(len(mask)),
            self._values[name].code(wanted),
            self._values[name].code(bare),
            parents,
            mask,
        )

    def _keep_tags(self, tags: Iterable[str], mask: Mask) -> None:
        codes = [code for tag in tags if (code := self._values["tags"].code(tag))]
        if not codes:
            mask[:] = 0
            return
        # Sized after the codes are known: a writer may have added one of them just now.
        wanted = np.zeros(len(self._values["tags"]), np.uint8)
        wanted[codes] = 1
        offsets = self._tag_offsets.values(len(mask) + 1)
        kernels.keep_any_tag(offsets, self._tag_codes.values(), wanted, mask)

    def _keep_time(self, after: Timestamp | None, before: Timestamp | None, mask: Mask) -> None:
        kernels.keep_between(
            self._observed_s.values(len(mask)),
            self._observed_ns.values(len(mask)),
            _UNSET if after is None else after.seconds,
            0 if after is None else after.nanos,
            NEVER if before is None else before.seconds,
            0 if before is None else before.nanos,
            mask,
        )


def _numbers(values: list[int | None], missing: int) -> npt.NDArray[np.int64]:
    if is_one_value(values):
        return np.full(len(values), missing if values[0] is None else values[0], np.int64)
    return np.array([missing if value is None else value for value in values], np.int64)


def _parent(path: str) -> str | None:
    """What stands before the last slash; None for a path without one."""
    at = path.rfind("/")
    return None if at < 0 else path[:at]


def _turns_key(first: int | None, last: int | None) -> str | None:
    return None if first is None else f"{first}-{last}"
