"""The lines of a payload: bytes in blocks, cut as universal newlines cut them, bounded in length.

Knows files and compression, nothing of JSON. Every failure is a SnapshotReadError that names the
payload.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, cast, overload

import numpy as np
import numpy.typing as npt

from colmem.snapshot.errors import SnapshotReadError
from colmem.snapshot.limits import Limits

BLOCK_BYTES = 1 << 20
_OPEN, _CLOSE, _NEWLINE = ord("{"), ord("}"), ord("\n")


def blocks(
    file: IO[bytes], *, name: str, is_gzip: bool, limits: Limits
) -> Iterator[tuple[bytes, int]]:
    """Read a payload from its beginning, unpacking it when it is gzip.

    Yields each block of payload bytes with the position reached in the file itself.
    """
    file.seek(0)
    stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")) if is_gzip else file
    total = 0
    try:
        while block := stream.read(BLOCK_BYTES):
            total += len(block)
            if total > limits.payload_bytes_max:
                raise SnapshotReadError(
                    f"{name} unpacks to more than {limits.payload_bytes_max} bytes "
                    "(payload_bytes_max); raise the limit if the source is trusted",
                    file=name,
                )
            yield block, file.tell()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SnapshotReadError(
            f"{name} is not a whole gzip file: {error}; copy it again from its source", file=name
        ) from error
    except OSError as error:
        raise SnapshotReadError(f"{name} cannot be read: {error.strerror}", file=name) from error


class Lines(Sequence[bytes]):
    """Some whole lines in one piece, cut only when they are asked for one by one.

    ends : int64 (n,), the position behind each line and its end
    """

    def __init__(self, data: bytes) -> None:
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.data = data
        self.ends = np.flatnonzero(self.as_array() == _NEWLINE) + 1
        if len(data) > self.ends[-1:].sum():
            self.ends = np.append(self.ends, len(data) + 1)
        self._cut: list[bytes] | None = None

    def as_array(self) -> npt.NDArray[np.uint8]:
        """The bytes of all lines: uint8 (n_bytes,)."""
        return np.frombuffer(self.data, np.uint8)

    def are_objects(self) -> bool:
        """Whether every line begins and ends with a brace.

        JSON admits no line end within a string, and after a brace closes none that opens, but
        between two texts: so if such lines hold as many texts as there are lines, each holds one.
        """
        if not self.data:
            return False
        starts = np.append(0, self.ends[:-1])
        if (self.ends - starts < 2).any():
            return False
        held = self.as_array()
        return bool((held[starts] == _OPEN).all() and (held[self.ends - 2] == _CLOSE).all())

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        return self._lines()[at]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines())

    def _lines(self) -> list[bytes]:
        if self._cut is None:
            self._cut = self.data.split(b"\n")
            if not self._cut[-1]:
                self._cut.pop()
        return self._cut


def line_groups(
    source: Iterable[tuple[bytes, int]], *, name: str, limits: Limits
) -> Iterator[tuple[Lines, int]]:
    """Cut blocks into lines without their ends; blank ones may be among them.

    Yields the lines that end in each block, with the position given along with it.
    """
    tail: list[bytes] = []
    tail_bytes = 0
    n_lines = 0
    done = 0
    for block, done in source:
        cut = _last_end(block)
        if cut < 0:
            tail.append(block)
            tail_bytes += len(block)
            _check_length(tail_bytes, n_lines, name, limits)
            continue
        head = b"".join((*tail, block[:cut]))
        tail = [block[cut:]]
        tail_bytes = len(tail[0])
        lines = Lines(head)
        if len(head) > limits.line_bytes_max:
            for i, line in enumerate(lines):
                _check_length(len(line), n_lines + i, name, limits)
        n_lines += len(lines)
        yield lines, done
    if tail_bytes:
        last = Lines(b"".join(tail))
        for line in last:
            _check_length(len(line), n_lines, name, limits)
        yield last, done


def stripped(line: bytes) -> bytes:
    """Take the white space (in the sense of Unicode) off both ends of a line.

    Raises
    ------
    UnicodeDecodeError
        When a line that has to be looked at is not UTF-8.
    """
    if line and line[0] == _OPEN and line[-1] == _CLOSE:
        return line
    return line.decode().strip().encode()


def count_records(source: Iterable[bytes], *, name: str, limits: Limits) -> int:
    """Count the lines of a payload that are not blank."""
    pairs = ((block, 0) for block in source)
    return sum(count_filled(group) for group, _ in line_groups(pairs, name=name, limits=limits))


def count_filled(group: Lines) -> int:
    """Count the lines of a group that are not blank."""
    if group.are_objects():
        return len(group)
    return sum(bool(line) and (line[0] == _OPEN or _is_filled(line)) for line in group)


def advancing(
    source: Iterable[tuple[bytes, int]], progress: Callable[[int], object] | None
) -> Iterator[bytes]:
    """Pass blocks on, telling ``progress`` how far the file itself was read."""
    last = 0
    for block, done in source:
        yield block
        if progress is not None:
            progress(done - last)
        last = done


def hashed(source: Iterable[bytes], update: Callable[[bytes], object]) -> Iterator[bytes]:
    """Pass blocks on, feeding each to a digest meanwhile; at the end all have been fed."""
    with ThreadPoolExecutor(1) as pool:
        fed = None
        for block in source:
            if fed is not None:
                fed.result()
            fed = pool.submit(update, block)
            yield block
        if fed is not None:
            fed.result()


def _last_end(block: bytes) -> int:
    """Give the position behind the last line end of a block, -1 when no line surely ends in it."""
    newline = block.rfind(b"\n")
    if newline >= 0:
        return newline + 1
    # A CR as the very last byte may be half of a CRLF.
    carriage = block.rfind(b"\r", 0, len(block) - 1)
    return carriage + 1 if carriage >= 0 else -1


def _is_filled(line: bytes) -> bool:
    try:
        return bool(line.decode().strip())
    except UnicodeDecodeError:
        return True


def _check_length(n_bytes: int, n_lines: int, name: str, limits: Limits) -> None:
    if n_bytes > limits.line_bytes_max:
        raise SnapshotReadError(
            f"line {n_lines + 1} of {name} is longer than {limits.line_bytes_max} bytes "
            "(line_bytes_max); raise the limit if the source is trusted",
            file=name,
            line=n_lines + 1,
        )
