"""The item table in DuckDB: one row per live item, typed columns, SQL and Arrow in and out.

All SQL of the project but filters stands here. The table is the durable columnar form of the
store; the row log is its write-ahead log: every batch applied records, in the same transaction, up
to which byte of the log the table is level. One connection writes; reads use cursors of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from colmem.contract.errors import CorruptStore, EngineError, InvalidRequest, StoreLocked
from colmem.schema import ITEMS, RowIds
from colmem.storage.sql_filter import Condition

FILE_NAME = "items.duckdb"
READ_ROWS = 10_000
_WAL_BYTES = "128MB"
"""Each checkpoint writes the last row group anew: at the default of 16 MB, commits of 20,000 rows
took 24 µs of CPU a row, and 7 with none between."""
_SQL_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.uint32(): "UINTEGER",
    pa.float32(): "FLOAT",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.list_(pa.string()): "VARCHAR[]",
}
_COLUMNS = ", ".join(f'"{name}"' for name in ITEMS.names)


class Table:
    """The table of one store; ``folder=None`` keeps it in memory.

    Raises
    ------
    CorruptStore
        When ``items.duckdb`` is not a database, or not one this version reads.
    StoreLocked
        When another program has that file open.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = None if folder is None else folder / FILE_NAME
        config: dict[str, Any] = {
            "enable_external_access": False,
            "python_enable_replacements": False,
            "checkpoint_threshold": _WAL_BYTES,
        }
        if folder is not None:
            # Without outside access, DuckDB may still spill to its own folder.
            config["temp_directory"] = str(folder / "items.duckdb.tmp")
        if threads is not None:
            config["threads"] = threads
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        self._lock = threading.RLock()
        try:
            target = ":memory:" if self.path is None else str(self.path)
            self._con = duckdb.connect(target, read_only=read_only, config=config)
            if not read_only:
                self._create()
            self._con.execute(f"SELECT {_COLUMNS} FROM items LIMIT 0")
        except duckdb.Error as error:
            if isinstance(error, duckdb.IOException) and "lock" in str(error):
                raise StoreLocked(f"{self.path} is open elsewhere: {_first_line(error)}") from error
            raise CorruptStore(
                f"{self.path} cannot be opened as the item table: {_first_line(error)}; run "
                "`colmem check --repair` to rebuild it from the row log"
            ) from error

    def state(self) -> tuple[int, int, int]:
        """Generation, bytes of the row log applied, and rows ever used in this generation."""
        row = self._con.execute("SELECT generation, log_bytes, n_rows FROM state").fetchone()
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])

    def apply(
        self, batches: Sequence[pa.RecordBatch], forgotten: RowIds, state: tuple[int, int, int]
    ) -> None:
        """Add rows, then remove the forgotten ones, and record the state: one transaction."""
        with self._lock:
            con = self._con
            con.execute("BEGIN")
            try:
                if batches:
                    con.register("incoming", pa.Table.from_batches(batches))
                    con.execute(f"INSERT INTO items SELECT {_COLUMNS} FROM incoming")
                    con.unregister("incoming")
                if len(forgotten):
                    con.register("gone", pa.table({"gone": forgotten}))
                    con.execute('DELETE FROM items WHERE "row" IN (SELECT gone FROM gone)')
                    con.unregister("gone")
                con.execute("UPDATE state SET generation = ?, log_bytes = ?, n_rows = ?", state)
                con.execute("COMMIT")
            except duckdb.Error as error:
                self._rollback()
                raise EngineError(
                    f"the item table refused a batch: {_first_line(error)}"
                ) from error

    def replace(self, batches: Iterator[pa.RecordBatch], state: tuple[int, int, int]) -> None:
        """Replace every row by others in one transaction: compaction and rebuilding."""
        with self._lock:
            con = self._con
            con.execute("BEGIN")
            try:
                con.execute("CREATE TABLE items_new AS FROM items LIMIT 0")
                for batch in batches:
                    con.register("incoming", pa.Table.from_batches([batch]))
                    con.execute(f"INSERT INTO items_new SELECT {_COLUMNS} FROM incoming")
                    con.unregister("incoming")
                con.execute("DROP TABLE items")
                con.execute("ALTER TABLE items_new RENAME TO items")
                con.execute("UPDATE state SET generation = ?, log_bytes = ?, n_rows = ?", state)
                con.execute("COMMIT")
            except duckdb.Error as error:
                self._rollback()
                raise EngineError(
                    f"the item table could not be rewritten: {_first_line(error)}"
                ) from error
            except BaseException:
                self._rollback()
                raise
            # The transaction counts; its log is folded in now, or later when someone still reads.
            with suppress(duckdb.Error):
                con.execute("CHECKPOINT")

    def count(self, where: Condition) -> int:
        """Number of rows a condition admits."""
        cursor = self._con.cursor()
        row = cursor.execute(
            f"SELECT count(*) FROM items WHERE {where.sql}", where.params
        ).fetchone()
        assert row is not None
        return int(row[0])

    def rows(self, where: Condition, *, holding: str = "", order: str = "row") -> RowIds:
        """Rows a condition admits whose text holds a string, in order of a column: int64 (n,).

        Text is ordered by its UTF-8 bytes.
        """
        cursor = self._con.cursor()
        sql = (
            f'SELECT "row" FROM items WHERE ({where.sql}) AND contains(text, ?) ORDER BY "{order}"'
        )
        numbers: RowIds = cursor.execute(sql, [*where.params, holding]).fetchnumpy()["row"]
        return np.asarray(numbers, np.int64)

    def read(
        self,
        where: Condition,
        *,
        columns: Sequence[str] | None = None,
        order: str = "row",
        batch_rows: int = READ_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Stream rows in Arrow batches, by ``row`` or ``id``; schema.ITEMS or a part.

        The rows are those of the moment of the call, whatever is written while they are read.
        """
        names = list(ITEMS.names if columns is None else columns)
        schema = pa.schema([ITEMS.field(name) for name in names])
        selected = ", ".join(f'"{name}"' for name in names)
        cursor = self._con.cursor()
        sql = f'SELECT {selected} FROM items WHERE {where.sql} ORDER BY "{order}"'
        reader = cursor.sql(sql, params=where.params).to_arrow_reader(batch_rows)
        return (batch.cast(schema) for batch in reader)

    def query(self, sql: str, params: Sequence[Any] | None) -> pa.Table:
        """Answer one read-only statement.

        Raises
        ------
        InvalidRequest
            When the statement is not a single SELECT, or DuckDB refuses it.
        """
        cursor = self._con.cursor()
        try:
            statements = cursor.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InvalidRequest(
                    "sql takes exactly one SELECT statement; the table is read-only"
                )
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                return cursor.sql(statements[0].query, params=params).to_arrow_table()
            finally:
                cursor.execute("ROLLBACK")
        except duckdb.Error as error:
            raise InvalidRequest(f"sql: {_first_line(error)}") from error

    def checkpoint(self) -> None:
        """Fold DuckDB's own log into its file, unless someone still reads."""
        with self._lock:
            try:
                self._con.execute("CHECKPOINT")
            except duckdb.TransactionException:
                return
            except duckdb.Error as error:
                raise EngineError(
                    f"the item table could not be checkpointed: {_first_line(error)}"
                ) from error

    def close(self) -> None:
        """Release the file."""
        self._con.close()

    def _create(self) -> None:
        columns = ", ".join(
            f'"{f.name}" {_SQL_TYPES[f.type]}{"" if f.nullable else " NOT NULL"}' for f in ITEMS
        )
        self._con.execute(f"CREATE TABLE IF NOT EXISTS items ({columns})")
        self._con.execute(
            "CREATE TABLE IF NOT EXISTS state (generation BIGINT, log_bytes BIGINT, n_rows BIGINT)"
        )
        self._con.execute("INSERT INTO state SELECT 0, 0, 0 WHERE NOT EXISTS (FROM state)")

    def _rollback(self) -> None:
        try:
            self._con.execute("ROLLBACK")
        except duckdb.Error:
            return  # DuckDB had already ended the transaction


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
