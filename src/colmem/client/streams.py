"""Streams of bytes as files, and Arrow data as streams of bytes; both in bounded memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

from colmem.contract import InvalidRequest


class BytesReader(io.RawIOBase):
    """Chunks of bytes, read as a file; ``bytes_max`` bounds what is asked for at a time."""

    def __init__(self, chunks: Iterator[bytes], bytes_max: int | None = None) -> None:
        super().__init__()
        self._chunks = chunks
        self._bytes_max = bytes_max
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Whether it can be read: it can."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, fewer at the end only; all of them when the size is negative or None.

        Raises
        ------
        InvalidRequest
            When more is asked for than is allowed.
        """
        wanted = sys.maxsize if size is None or size < 0 else size
        if self._bytes_max is not None and wanted > self._bytes_max:
            raise InvalidRequest(
                f"a message of the stream is larger than {self._bytes_max} bytes; use more batches"
            )
        parts = bytearray()
        while len(parts) < wanted and self._is_filled():
            part = self._rest[: wanted - len(parts)]
            parts += part
            self._rest = self._rest[len(part) :]
        return bytes(parts)

    def _is_filled(self) -> bool:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._rest = memoryview(chunk)
        return True


def arrow_chunks(data: Any) -> Iterator[bytes]:
    """Write Arrow data as an IPC stream, one chunk a batch.

    Raises
    ------
    InvalidRequest
        When it is no table, batch or reader and has no Arrow stream.
    """
    import pyarrow as pa  # noqa: PLC0415 - only here

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise InvalidRequest(
            f"ingest_arrow got a {type(data).__name__}; expected a pyarrow Table, RecordBatch or "
            "RecordBatchReader, or an object with an Arrow stream (DuckDB, Polars, pandas)"
        )
    reader = pa.RecordBatchReader.from_stream(data)
    return _written(reader, pa)


def _written(reader: Any, pa: Any) -> Iterator[bytes]:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data
