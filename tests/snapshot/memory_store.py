"""A store in memory behind the Sink protocol: the smallest thing a snapshot can be loaded into.

Rows are kept as the table would keep them, so every record passes through its stored form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hash_v1
import numpy as np

from colmem.snapshot.delta import write_delta
from colmem.snapshot.hydrate import HydrateReport, hydrate
from colmem.snapshot.mapping import record_of_item, record_of_row, row_of_record
from colmem.snapshot.record import Record
from colmem.snapshot.writer import SnapshotReport, write
from colmem.stored import StoredItem, from_bytes, to_bytes


class MemoryStore:
    embedder_key = hash_v1.KEY
    dim = hash_v1.DIM

    def __init__(self) -> None:
        self._rows: dict[str, bytes] = {}
        self._vectors: dict[str, bytes] = {}
        self._id_of_hash: dict[str, str] = {}
        self._fingerprints: set[str] = set()
        self.n_inserts = 0
        self.fail_embedding_of = ""

    # The Sink protocol.

    def held_hashes(self, hashes: Sequence[str]) -> set[str]:
        return self._id_of_hash.keys() & set(hashes)

    def held_fingerprints(self, fingerprints: Sequence[str]) -> set[str]:
        return self._fingerprints & set(fingerprints)

    def held_ids(self, ids: Sequence[str]) -> set[str]:
        return self._rows.keys() & set(ids)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self.fail_embedding_of and self.fail_embedding_of in texts:
            raise RuntimeError("this embedder does not like that text")
        return hash_v1.embed(texts)

    def insert(self, rows: Sequence[StoredItem], vectors: np.ndarray) -> None:
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(rows), self.dim)
        self.n_inserts += 1
        for row, vector in zip(rows, vectors, strict=True):
            assert row.id not in self._rows
            assert row.content_hash not in self._id_of_hash
            self._rows[row.id] = to_bytes(row)
            self._id_of_hash[row.content_hash] = row.id
            self._fingerprints.add(row.own_fingerprint)
            if row.has_vector:
                self._vectors[row.id] = vector.tobytes()
            else:
                assert not vector.any()

    def records(self, hashes: Sequence[str]) -> list[Record]:
        ids = [self._id_of_hash[h] for h in hashes if h in self._id_of_hash]
        return [self._record(id) for id in ids]

    def replace(self, rows: Sequence[StoredItem]) -> None:
        for row in rows:
            assert row.has_vector is (row.id in self._vectors)
            self._rows[row.id] = to_bytes(row)

    def content_hashes(self) -> Iterable[Sequence[str]]:
        yield list(self._id_of_hash)

    def forget(self, ids: Sequence[str]) -> int:
        n = 0
        for id in ids:
            if id in self._rows:
                row = from_bytes(self._rows.pop(id))
                self._vectors.pop(id, None)
                del self._id_of_hash[row.content_hash]
                self._fingerprints.discard(row.own_fingerprint)
                n += 1
        return n

    # What a store offers to the tests.

    def hydrate(self, path: str | Path) -> HydrateReport:
        return hydrate(path, self)

    def snapshot(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        attach: bool = False,
        base_dir: str | Path | None = None,
        since: str | Path | None = None,
    ) -> SnapshotReport:
        if since is not None:
            return write_delta(path, self._batches(), since, dim=self.dim)
        return write(
            path, self._batches(), format=format, dim=self.dim, attach=attach, base_dir=base_dir
        )

    def store(self, item: Any) -> str:
        id = item.fingerprint()
        record = record_of_item(
            item,
            id=id,
            created_at="2026-07-01T00:00:00Z",
            vector=hash_v1.vector(item.render_text()),
            model=self.embedder_key,
            dim=self.dim,
        )
        row = row_of_record(record)
        row.has_vector = True
        self.insert([row], np.frombuffer(record.embedding, "<f4").reshape(1, -1))
        return id

    def rows(self) -> list[dict[str, Any]]:
        return [self._record(id).view() for id in sorted(self._rows)]

    def _batches(self) -> Iterator[list[Record]]:
        ids = sorted(self._rows)
        for start in range(0, len(ids), 700):
            yield [self._record(id) for id in ids[start : start + 700]]

    def _record(self, id: str) -> Record:
        row = from_bytes(self._rows[id])
        return record_of_row(
            row, vector=self._vectors.get(id), model=self.embedder_key, dim=self.dim
        )
