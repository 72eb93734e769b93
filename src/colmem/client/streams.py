"""Streams of bytes as files, and Arrow data as streams of bytes; both in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from colmem.contract import InvalidRequest


class BytesReader(io.RawIOBase):
    """Chunks of bytes, read as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Whether it can be read: it can."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the next chunk goes; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


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
