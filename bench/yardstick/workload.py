"""The seeded workload: items in columns on disk, queries, and their exact answers.

Batch ``i`` depends on the seed and ``i`` alone, so a smaller workload is the beginning of a larger
one, and one may be streamed without being kept. Made once per size and read mapped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from yardstick import texts as made_texts
from yardstick.environments import RUN
from yardstick.metadata import FILTERS, SINGLE_VALUED, TABLES, Columns, make_columns
from yardstick.texts import BUNDLED, TextBatch
from yardstick.truth import Truth, TruthMaker
from yardstick.vectors import Cloud, Vectors

SEED, DIM, WORDS = 2026, 256, 60
N_QUERIES = 200
N_FRESH = 5_000
"""Items beyond the workload's, for what is stored while measuring."""
GENERATED = 10_000
"""Items in a generated batch."""
VERSION = 3
"""Changes with anything that changes a generated value."""
_FILTER_NAMES = [filter.name for filter in FILTERS]


@dataclass(frozen=True)
class Batch:
    """Items ``first`` and following: texts, float32 (n, dim) unit vectors, and metadata."""

    first: int
    texts: list[str]
    vectors: Vectors
    columns: Columns

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def rows(self) -> range:
        return range(self.first, self.first + len(self.texts))

    def values(self, name: str) -> list[str | None]:
        """A single-valued column as strings."""
        table: list[str | None] = [*TABLES[name], None]
        return [table[code] for code in self.columns.codes[name].tolist()]

    def tags(self) -> list[list[str]]:
        table, codes = TABLES["tag"], self.columns.tags.tolist()
        ends = self.columns.tag_offsets.tolist()
        return [[table[code] for code in codes[first:last]] for first, last in pairwise(ends)]

    def observed(self) -> list[int | None]:
        return [None if at < 0 else at for at in self.columns.observed_s.tolist()]

    def part(self, first: int, n: int) -> Batch:
        """Items of the batch, counted from its start."""
        columns, last = self.columns, min(first + n, len(self))
        offsets = columns.tag_offsets[first : last + 1]
        part = Columns(
            {name: codes[first:last] for name, codes in columns.codes.items()},
            offsets - offsets[0],
            columns.tags[offsets[0] : offsets[-1]],
            columns.observed_s[first:last],
        )
        return Batch(self.first + first, self.texts[first:last], self.vectors[first:last], part)


@dataclass(frozen=True)
class Query:
    text: str
    vector: Vectors


class Generator:
    """Makes batches of items, and queries near items of the first batch."""

    def __init__(self, *, words: int = WORDS, texts: Path = BUNDLED, dim: int = DIM) -> None:
        self._words = words
        self._pieces = made_texts.make_pieces(SEED, texts)
        self._table = made_texts.zipf_table()
        self._cloud = Cloud(SEED, dim)

    def batch(self, index: int) -> tuple[Batch, TextBatch]:
        rng = np.random.default_rng([SEED, 2, index])
        first = index * GENERATED
        texts = made_texts.make_texts(self._pieces, self._table, GENERATED, self._words, rng)
        columns = make_columns(GENERATED, first, rng)
        vectors = self._cloud.items(GENERATED, rng)
        return Batch(first, texts.texts, vectors, columns), texts

    @property
    def n_terms(self) -> int:
        return len(self._pieces.vocabulary)

    def queries(self, n: int) -> tuple[list[list[int]], Vectors]:
        """Terms and vectors: three words of medium frequency of an item, and near its vector.

        The items are among the first ``n``.
        """
        batch, texts = self.batch(0)
        rng = np.random.default_rng([SEED, 3])
        picks = rng.permutation(min(n, len(batch)))
        terms: list[list[int]] = []
        items: list[int] = []
        for item in picks.tolist():
            own = np.unique(texts.term_ids[texts.offsets[item] : texts.offsets[item + 1]])
            own = own[(own >= 50) & (own < made_texts.N_WORDS)]
            if len(own) >= 3 and len(terms) < N_QUERIES:
                terms.append(rng.choice(own, 3, replace=False).tolist())
                items.append(item)
        return terms, self._cloud.queries(batch.vectors[items], rng)

    def text_of(self, terms: list[int]) -> str:
        return " ".join(self._pieces.vocabulary[term] for term in terms)


class Texts(Protocol):
    """Knows the row of a text."""

    def rows_of(self, found: list[str], /) -> list[int]:
        """The rows of texts, -1 for an unknown one."""


class Workload:
    """A workload kept in a folder; columns are mapped, so opening it costs little."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, Any] = json.loads((folder / "workload.json").read_text())
        self.n: int = self.about["items"]

    def batches(self, size: int, n: int | None = None) -> Iterator[Batch]:
        """The items in batches, without the fresh ones."""
        n = self.n if n is None else n
        for first in range(0, n, size):
            yield self.slice(first, min(first + size, n))

    def slice(self, first: int, last: int) -> Batch:
        ends = self._text_offsets[first : last + 1]
        data = self._texts[ends[0] : ends[-1]].tobytes()
        places = (ends - ends[0]).tolist()
        texts = [data[a:b].decode() for a, b in pairwise(places)]
        offsets = self._tag_offsets[first : last + 1]
        columns = Columns(
            {name: np.asarray(codes[first:last]) for name, codes in self._codes.items()},
            np.asarray(offsets - offsets[0]),
            np.asarray(self._tags[offsets[0] : offsets[-1]]),
            np.asarray(self._observed[first:last]),
        )
        return Batch(first, texts, np.asarray(self._vectors[first:last]), columns)

    def fresh(self) -> Batch:
        """Items that are not among those loaded."""
        return self.slice(self.n, self.n + N_FRESH)

    @cached_property
    def queries(self) -> list[Query]:
        vectors = np.load(self.folder / "queries.npy")
        return [Query(t, v) for t, v in zip(self.about["queries"], vectors, strict=True)]

    @cached_property
    def truth(self) -> Truth:
        with np.load(self.folder / "truth.npz") as held:
            return Truth.of({name: held[name] for name in held.files})

    def mask(self, filter: str) -> npt.NDArray[np.bool_]:
        """Which of the loaded items a filter admits: bool (n,)."""
        return np.load(self.folder / f"mask-{_FILTER_NAMES.index(filter)}.npy", mmap_mode="r")  # type: ignore[no-any-return]

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """A single-valued column as codes, fresh items included."""
        return self._codes[name]

    @property
    def text_bytes(self) -> int:
        """Bytes of the loaded texts."""
        return int(self._text_offsets[self.n])

    def rows_of(self, found: list[str]) -> list[int]:
        """The rows of texts, -1 for one that is not of the workload."""
        order, keys = self._text_order
        wanted = np.array([text_key(text) for text in found], np.uint64)
        at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        return np.where(keys[at] == wanted, order[at], -1).tolist() if len(found) else []

    @cached_property
    def _text_order(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        return self._map("text_order"), self._map("text_keys")

    def _map(self, name: str) -> Any:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    @cached_property
    def _text_offsets(self) -> npt.NDArray[np.int64]:
        return self._map("text_offsets")  # type: ignore[no-any-return]

    @cached_property
    def _texts(self) -> npt.NDArray[np.uint8]:
        return np.memmap(self.folder / "texts.bin", np.uint8, "r")

    @cached_property
    def _vectors(self) -> Vectors:
        flat = np.memmap(self.folder / "vectors.bin", np.float32, "r")
        return flat.reshape(-1, self.about["dim"])

    @cached_property
    def _codes(self) -> dict[str, npt.NDArray[np.int32]]:
        return {name: self._map(f"column-{name}") for name in SINGLE_VALUED}

    @cached_property
    def _tag_offsets(self) -> npt.NDArray[np.int64]:
        return self._map("tag_offsets")  # type: ignore[no-any-return]

    @cached_property
    def _tags(self) -> npt.NDArray[np.int32]:
        return self._map("tags")  # type: ignore[no-any-return]

    @cached_property
    def _observed(self) -> npt.NDArray[np.int64]:
        return self._map("observed")  # type: ignore[no-any-return]


def text_key(text: str) -> int:
    """A 64-bit hash, by which a text is known again."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def workload(n: int, *, texts: Path = BUNDLED) -> Workload:
    """The workload of ``n`` items, made when it is not there yet."""
    checksum = hashlib.sha256(texts.read_bytes()).hexdigest()
    folder = RUN / "workload" / f"{n}-v{VERSION}-{checksum[:8]}"
    if not (folder / "workload.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _make(folder, n, texts, checksum)
    return Workload(folder)


def _make(folder: Path, n: int, texts: Path, checksum: str) -> None:
    generator = Generator(texts=texts)
    terms, vectors = generator.queries(n)
    maker = TruthMaker(vectors, terms, generator.n_terms)
    n_all = n + N_FRESH
    codes: dict[str, list[npt.NDArray[np.int32]]] = {name: [] for name in SINGLE_VALUED}
    tags, tag_counts, observed = [], [], []
    text_sizes: list[int] = []
    keys: list[int] = []
    with (
        (folder / "texts.bin").open("wb") as text_file,
        (folder / "vectors.bin").open("wb") as file,
    ):
        for index in range(-(-n_all // GENERATED)):
            batch, term_batch = generator.batch(index)
            held = batch.part(0, n_all - batch.first)
            encoded = [text.encode() for text in held.texts]
            text_file.write(b"".join(encoded))
            file.write(np.ascontiguousarray(held.vectors).tobytes())
            text_sizes += map(len, encoded)
            keys += map(text_key, held.texts)
            for name, parts in codes.items():
                parts.append(held.columns.codes[name])
            tags.append(held.columns.tags)
            tag_counts.append(np.diff(held.columns.tag_offsets))
            observed.append(held.columns.observed_s)
            loaded = batch.part(0, max(0, n - batch.first))
            if len(loaded):
                ends = term_batch.offsets[: len(loaded) + 1]
                known = TextBatch(loaded.texts, term_batch.term_ids[: ends[-1]], ends)
                maker.add(batch.first, known, loaded.vectors, loaded.columns)
    for name, parts in codes.items():
        np.save(folder / f"column-{name}.npy", np.concatenate(parts))
    np.save(folder / "tags.npy", np.concatenate(tags))
    np.save(folder / "tag_offsets.npy", np.cumsum([0, *np.concatenate(tag_counts)]))
    np.save(folder / "observed.npy", np.concatenate(observed))
    np.save(folder / "text_offsets.npy", np.cumsum([0, *text_sizes]))
    order = np.argsort(np.array(keys, np.uint64))
    np.save(folder / "text_order.npy", order)
    np.save(folder / "text_keys.npy", np.array(keys, np.uint64)[order])
    np.save(folder / "queries.npy", vectors)
    np.savez(folder / "truth.npz", **maker.done().arrays())  # type: ignore[arg-type]
    for i, name in enumerate(_FILTER_NAMES):
        np.save(folder / f"mask-{i}.npy", maker.mask(name))
    about = {
        "items": n,
        "dim": DIM,
        "words": WORDS,
        "seed": SEED,
        "version": VERSION,
        "texts_sha256": checksum,
        "queries": [generator.text_of(query) for query in terms],
    }
    (folder / "workload.json").write_text(json.dumps(about) + "\n")
