"""Seeded metadata in columns, and the filters and facets that the contenders are asked for.

Columns are codes into tables of strings, -1 for no value; tags are a ragged column. Values are
spread evenly where a filter is to admit a known share of the items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

TEAMS, PROJECTS, AGENTS = 10, 10, 10
START_S, END_S = 1_577_836_800, 1_767_225_600  # 2020 and 2026, seconds of Unix time
N_TAGS, TAGS_MAX = 1_000, 5


def _namespaces() -> list[str]:
    nodes = ["root"]
    nodes += [f"team:t{t}" for t in range(TEAMS)]
    nodes += [f"team:t{t}/project:p{p}" for t in range(TEAMS) for p in range(PROJECTS)]
    return nodes + [f"{node}/agent:a{a}" for node in nodes[1 + TEAMS :] for a in range(AGENTS)]


TABLES: dict[str, list[str]] = {
    "namespace": _namespaces(),
    "kind": ["document", "learning"],
    "source": ["file", "conversation", "agent", "link", "import"],
    "source_id": [f"s{i}" for i in range(10_000)],
    "language": ["en", "de"],
    "thread": [f"t{i}" for i in range(100)],
    "folder": [f"/notes/{a}/{b}" for a in range(20) for b in range(100)],
    "tag": [f"tag-{i}" for i in range(N_TAGS)],
}
FACETS = ("kind", "source", "source_id", "folder", "language", "thread", "namespace", "tag")
SINGLE_VALUED = FACETS[:-1]


@dataclass(frozen=True)
class Columns:
    """Metadata of a run of items.

    codes : int32 (n,) for each name of SINGLE_VALUED, -1 where there is none
    tag_offsets, tags : int64 (n + 1,) from 0, int32 flat
    observed_s : int64 (n,) seconds of Unix time, -1 where there is none
    """

    codes: dict[str, Codes]
    tag_offsets: npt.NDArray[np.int64]
    tags: Codes
    observed_s: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Filter:
    """A condition in no contender's language: one field equal, a span of time, or a reach.

    A reach admits items at a namespace, at its ancestors and at all below it.
    """

    name: str
    field: str | None = None
    value: str | None = None
    after_s: int | None = None
    before_s: int | None = None
    reach: str | None = None

    def ancestors(self) -> list[str]:
        """The namespaces above the reach's, root first."""
        assert self.reach is not None
        parts = self.reach.split("/")
        return ["root", *("/".join(parts[:depth]) for depth in range(1, len(parts)))]


UNFILTERED = Filter("none")
FILTERS = (
    UNFILTERED,
    Filter("50 %", "language", "en"),
    Filter("1 %", "thread", "t7"),
    Filter("0.01 %", "source_id", "s17"),
    Filter("time", after_s=1_672_531_200, before_s=1_688_169_600),  # the first half of 2023
    Filter("reach", reach="team:t3/project:p7"),
)
FORGOTTEN = Filter("forgotten 1 %", "thread", "t42")
"""What the forget measure removes; no query filter admits any of it alone."""


def make_columns(n: int, first: int, rng: np.random.Generator) -> Columns:
    """Metadata of items ``first`` and following."""
    rows = np.arange(first, first + n)
    depth = rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])
    starts = np.array([0, 1, 1 + TEAMS, 1 + TEAMS + TEAMS * PROJECTS])
    sizes = np.array([1, TEAMS, TEAMS * PROJECTS, TEAMS * PROJECTS * AGENTS])
    sources = [0.4, 0.25, 0.2, 0.1, 0.05]
    codes = {
        "namespace": starts[depth] + rng.integers(0, 1 << 30, n) % sizes[depth],
        "kind": rng.choice(2, n, p=[0.7, 0.3]),
        "source": rng.choice(5, n, p=sources),
        # Known shares at every size: spread by row, not by chance.
        "source_id": rows % 10_000,
        "language": rows % 2,
        "thread": rows // 2 % 100,
        "folder": np.where(rng.random(n) < 0.1, -1, _skewed(len(TABLES["folder"]), n, rng)),
    }
    counts = rng.integers(0, TAGS_MAX + 1, n)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Steps of 1 to 199 from a skewed start: the tags of one item differ.
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    steps = np.repeat(rng.integers(1, 200, n), counts)
    tags = (np.repeat(_skewed(N_TAGS, n, rng), counts) + within * steps) % N_TAGS
    observed = rng.integers(START_S, END_S, n)
    observed[rng.random(n) < 0.1] = -1
    return Columns(
        {name: column.astype(np.int32) for name, column in codes.items()},
        offsets,
        tags.astype(np.int32),
        observed.astype(np.int64),
    )


def _skewed(n_values: int, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Values of which the first are the most frequent."""
    found: npt.NDArray[np.int64] = (n_values * rng.random(n) ** 2.5).astype(np.int64)
    return found


def mask_of(filter: Filter, columns: Columns) -> Mask:
    """Which items a filter admits: bool (n,)."""
    n = len(columns.observed_s)
    mask: Mask = np.ones(n, np.bool_)
    if filter.field is not None and filter.value is not None:
        wanted = TABLES[filter.field].index(filter.value)
        mask &= columns.codes[filter.field] == wanted
    if filter.after_s is not None:
        mask &= columns.observed_s >= filter.after_s
    if filter.before_s is not None:
        mask &= (columns.observed_s < filter.before_s) & (columns.observed_s >= 0)
    if filter.reach is not None:
        above = filter.ancestors()
        seen = [
            node == filter.reach or node in above or node.startswith(filter.reach + "/")
            for node in TABLES["namespace"]
        ]
        mask &= np.array(seen)[columns.codes["namespace"]]
    return mask
