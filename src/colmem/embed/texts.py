"""From Python strings to the flat buffers the kernels read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colmem.contract.errors import InvalidRequest


def offsets_of(lengths: list[int]) -> npt.NDArray[np.int64]:
    """int64 (n + 1,): where each of consecutive parts begins, and the end of the last."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def utf8_buffer(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """UTF-8 of the texts end to end, with their byte offsets.

    Raises
    ------
    InvalidRequest
        When a text holds a lone surrogate, which has no UTF-8 form.
    """
    joined = "".join(texts)
    if joined.isascii():
        return np.frombuffer(joined.encode(), np.uint8), offsets_of([len(text) for text in texts])
    try:
        parts = [text.encode() for text in texts]
    except UnicodeEncodeError:
        raise _lone_surrogate(texts) from None
    return np.frombuffer(b"".join(parts), np.uint8), offsets_of([len(part) for part in parts])


def code_points(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Code points of the texts end to end, with their offsets.

    Raises
    ------
    InvalidRequest
        When a text holds a lone surrogate.
    """
    try:
        encoded = "".join(texts).encode("utf-32-le")
    except UnicodeEncodeError:
        raise _lone_surrogate(texts) from None
    return np.frombuffer(encoded, "<u4"), offsets_of([len(text) for text in texts])


def _lone_surrogate(texts: Sequence[str]) -> InvalidRequest:
    for number, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return InvalidRequest(
                f"text {number} cannot be embedded: character {error.start} is the lone surrogate "
                f"U+{ord(text[error.start]):04X}, which is not Unicode text; remove or replace it",
                path=f"$[{number}]",
            )
    # Two halves of a pair in neighbouring texts join only in the concatenation, never the reverse.
    raise AssertionError("a concatenation failed to encode although every text does")
