"""Whether the embedding a record brings can be stored as it is, for one record or for a batch.

It can when its model and dimension are those of the active embedder (absent ones count as such),
its text is strict base64 of exactly that many float32, and the vector is finite and of unit norm.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pybase64

from colmem.snapshot.record import Record

NORM_TOLERANCE = 0.001


def decoded(value: object, dim: int) -> bytes | None:
    """Give the bytes of an embedding of ``dim`` float32, or None when the value is not one."""
    if isinstance(value, bytes):
        return value if len(value) == 4 * dim else None
    if not isinstance(value, str) or len(value) != (4 * dim + 2) // 3 * 4 or not value.isascii():
        return None
    try:
        data = pybase64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == 4 * dim else None


def is_declared(model: object, declared_dim: object, *, key: str, dim: int) -> bool:
    """Whether a record declares (or leaves open) the active embedder's key and dimension."""
    if model and str(model) != key:
        return False
    if not declared_dim:
        return True
    try:
        return int(declared_dim) == dim  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return False


def usable(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Tell which rows are finite and of unit norm.

    Parameters
    ----------
    vectors : float32 (n, dim)

    Returns
    -------
    bool (n,)
    """
    wide = vectors.astype(np.float64)
    # A non-finite component makes the sum non-finite, so one comparison judges both conditions.
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    near: npt.NDArray[np.bool_] = np.abs(norms - 1.0) <= NORM_TOLERANCE
    return near


def reusable(
    records: Sequence[Record], *, key: str, dim: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Decode the embeddings of a batch.

    Returns
    -------
    vectors : float32 (n, dim), the very bits of the records; zeros where not reusable
    is_reusable : bool (n,)
    """
    n = len(records)
    vectors = np.zeros((n, dim), np.dtype("<f4"))
    is_reusable = np.zeros(n, np.bool_)
    rows: list[int] = []
    values: list[Any] = []
    for row, record in enumerate(records):
        value = record.embedding
        if value is not None and (
            (record.embedding_model == key and record.embedding_dim == dim)
            or is_declared(record.embedding_model, record.embedding_dim, key=key, dim=dim)
        ):
            rows.append(row)
            values.append(value)
    if rows:
        held = _decoded_at_once(values, dim)
        if held is None:
            parts = [decoded(value, dim) for value in values]
            rows = [row for row, part in zip(rows, parts, strict=True) if part is not None]
            held = b"".join(part for part in parts if part is not None)
        matrix = np.frombuffer(held, "<f4").reshape(len(rows), dim)
        good = usable(matrix)
        at = np.asarray(rows, np.int64)[good]
        vectors[at] = matrix[good]
        is_reusable[at] = True
    return vectors, is_reusable


def _decoded_at_once(values: Sequence[Any], dim: int) -> bytes | None:
    """Decode all of a batch in one call, when every value is plain base64 of the right length.

    The padding of each is written as zero bits, whose bytes are cut off again.
    """
    n_bytes = 4 * dim
    n_padding = -n_bytes % 3
    n_digits = (n_bytes + n_padding) // 3 * 4
    padding, zeros = "=" * n_padding, "A" * n_padding
    for value in values:
        if not isinstance(value, str) or len(value) != n_digits or not value.endswith(padding):
            return None
    end = n_digits - n_padding
    joined = "".join([value[:end] + zeros for value in values]) if n_padding else "".join(values)
    try:
        data = pybase64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(data) != len(values) * (n_bytes + n_padding):
        return None
    if not n_padding:
        return data
    return np.frombuffer(data, np.uint8).reshape(len(values), -1)[:, :n_bytes].tobytes()
