"""SQLite with its full-text index FTS5 and the extension sqlite-vec, put together.

Metadata are columns of one table with indexes, tags a table of their own. FTS5 keeps no second copy
of the texts. sqlite-vec scans all vectors; hybrid blends the two rankings by reciprocal rank.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import apsw
import sqlite_vec

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch

_COLUMNS = ", ".join(SINGLE_VALUED)
_POOL, _RRF = 100, 60
Condition = tuple[str, list[Any]]


class Sqlite(Contender):
    packages = ("apsw", "sqlite-vec")
    imports = "apsw, sqlite_vec"
    setup = "WAL, synchronous FULL; FTS5 porter, external content; vec0 float32; ids"
    can: ClassVar[frozenset[str]] = frozenset(
        {"explore", "get", "page", "store", "store_many", "threads", "writers", "forget", "compact"}
    )

    def open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._local = threading.local()
        self._writing = threading.Lock()
        self._db.execute(
            f"""
            CREATE TABLE IF NOT EXISTS items(
              row INTEGER PRIMARY KEY, text TEXT, {_COLUMNS}, observed INTEGER);
            CREATE TABLE IF NOT EXISTS tags(tag TEXT, row INTEGER);
            CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
              text, content='items', content_rowid='row', tokenize='porter unicode61');
            CREATE VIRTUAL TABLE IF NOT EXISTS vectors USING vec0(
              row INTEGER PRIMARY KEY, embedding float[{self.dim}] distance_metric=cosine);
            """
        )

    def close(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    @property
    def _db(self) -> apsw.Connection:
        """A connection for each thread, as SQLite wants it."""
        if not hasattr(self._local, "db"):
            db = apsw.Connection(str(self.folder / "items.db"))
            db.set_busy_timeout(60_000)
            db.enable_load_extension(True)
            db.load_extension(sqlite_vec.loadable_path())
            db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
            self._local.db = db
        held: apsw.Connection = self._local.db
        return held

    def add(self, batch: Batch) -> None:
        columns = [batch.values(name) for name in SINGLE_VALUED]
        db = self._db
        marks = ",".join("?" * (3 + len(columns)))
        with self._writing, db:
            rows = zip(batch.rows, batch.texts, *columns, batch.observed(), strict=True)
            db.executemany(f"INSERT INTO items VALUES({marks})", rows)
            texts = zip(batch.rows, batch.texts, strict=True)
            db.executemany("INSERT INTO words(rowid, text) VALUES(?, ?)", texts)
            vectors = zip(batch.rows, map(bytes, batch.vectors), strict=True)
            db.executemany("INSERT INTO vectors VALUES(?, ?)", vectors)
            tags = zip(batch.rows, batch.tags(), strict=True)
            db.executemany(
                "INSERT INTO tags VALUES(?, ?)", ((tag, row) for row, of in tags for tag in of)
            )

    def finish(self, n: int) -> None:
        for name in (*SINGLE_VALUED, "observed"):
            self._db.execute(f"CREATE INDEX IF NOT EXISTS by_{name} ON items({name})")
        self._db.execute("CREATE INDEX IF NOT EXISTS by_tag ON tags(tag, row)")
        self._db.execute("CREATE INDEX IF NOT EXISTS by_row ON tags(row, tag)")
        self._db.execute("INSERT INTO words(words) VALUES('optimize')")
        self._db.execute("ANALYZE")

    def search(
        self, mode: str, text: str, vector: Vectors, k: int, filter: Condition | None = None
    ) -> list[int]:
        if mode == "keyword":
            return self._by_words(text, k, filter)
        if mode == "vector":
            return self._by_vector(vector, k, filter)
        scores: dict[int, float] = {}
        for ranking in (
            self._by_words(text, _POOL, filter),
            self._by_vector(vector, _POOL, filter),
        ):
            for rank, row in enumerate(ranking):
                scores[row] = scores.get(row, 0.0) + 1 / (_RRF + rank)
        return sorted(scores, key=lambda row: -scores[row])[:k]

    def _by_words(self, text: str, k: int, filter: Condition | None) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        if filter is None:
            query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
            return self._rows(query, [match, k])
        query = (
            "SELECT words.rowid FROM words JOIN items ON items.row = words.rowid "
            f"WHERE words MATCH ? AND {filter[0]} ORDER BY rank LIMIT ?"
        )
        return self._rows(query, [match, *filter[1], k])

    def _by_vector(self, vector: Vectors, k: int, filter: Condition | None) -> list[int]:
        query = "SELECT row FROM vectors WHERE embedding MATCH ? AND k = ?"
        arguments: list[Any] = [bytes(vector), k]
        if filter is not None:
            query += f" AND row IN (SELECT row FROM items WHERE {filter[0]})"
            arguments += filter[1]
        return self._rows(f"{query} ORDER BY distance", arguments)

    def _rows(self, query: str, arguments: Sequence[Any]) -> list[int]:
        return [row for (row,) in self._db.execute(query, arguments)]

    def prepare(self, filter: Filter) -> Condition | None:
        if filter.name == "none":
            return None
        if filter.field is not None:
            return f"{filter.field} = ?", [filter.value]
        if filter.reach is not None:
            above = [*filter.ancestors(), filter.reach]
            marks = ",".join("?" * len(above))
            # What lies below sorts between the node's slash and the character after it.
            spans = f"(namespace IN ({marks}) OR (namespace >= ? AND namespace < ?))"
            return spans, [*above, f"{filter.reach}/", f"{filter.reach}0"]
        return "observed >= ? AND observed < ?", [filter.after_s, filter.before_s]

    def explore(self, facet: str, filter: Condition | None, limit: int) -> Mapping[str, int]:
        where, arguments = filter or ("1", [])
        if facet == "tag" and filter is None:
            query = "SELECT tag, count(*) FROM tags GROUP BY tag ORDER BY 2 DESC LIMIT ?"
        elif facet == "tag":
            query = (
                "SELECT tag, count(*) FROM items JOIN tags USING(row) "
                f"WHERE {where} GROUP BY tag ORDER BY 2 DESC LIMIT ?"
            )
        else:
            query = (
                f"SELECT {facet}, count(*) FROM items WHERE {where} AND {facet} IS NOT NULL "
                f"GROUP BY {facet} ORDER BY 2 DESC LIMIT ?"
            )
        return dict(self._db.execute(query, [*arguments, limit]))

    def get(self, ids: Sequence[int]) -> list[Any]:
        marks = ",".join("?" * len(ids))
        return self._whole(f"row IN ({marks})", ids)

    def place(self, page: int, size: int, filter: Condition | None) -> int:
        where, arguments = filter or ("1", [])
        query = f"SELECT row FROM items WHERE {where} ORDER BY row LIMIT 1 OFFSET ?"
        return self._rows(query, [*arguments, page * size])[0]

    def page(self, place: int, size: int, filter: Condition | None) -> list[int]:
        where, arguments = filter or ("1", [])
        found = self._whole(f"row >= ? AND {where} ORDER BY row LIMIT ?", [place, *arguments, size])
        return [row[0] for row in found]

    def _whole(self, where: str, arguments: Sequence[Any]) -> list[Any]:
        tags = "(SELECT group_concat(tag, char(0)) FROM tags WHERE tags.row = items.row)"
        query = f"SELECT *, {tags} FROM items WHERE {where}"
        found: list[Any] = self._db.execute(query, arguments).fetchall()
        return found

    def store(self, batch: Batch) -> None:
        self.add(batch)

    def forget(self, filter: Condition) -> int:
        db = self._db
        with self._writing, db:
            found = db.execute(f"SELECT row, text FROM items WHERE {filter[0]}", filter[1])
            gone = found.fetchall()
            db.executemany("INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)", gone)
            rows = [(row,) for row, _ in gone]
            for table in ("vectors", "tags", "items"):
                db.executemany(f"DELETE FROM {table} WHERE row = ?", rows)
        return len(gone)

    def compact(self) -> None:
        self._db.execute("INSERT INTO words(words) VALUES('optimize')")
        self._db.execute("VACUUM")
