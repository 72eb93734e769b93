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
    parts: list[bytes] = []
    for row, record in enumerate(records):
        value: Any = record.embedding
        if value is None or not is_declared(
            record.embedding_model, record.embedding_dim, key=key, dim=dim
        ):
            continue
        data = decoded(value, dim)
        if data is not None:
            rows.append(row)
            parts.append(data)
    if rows:
        held = np.frombuffer(b"".join(parts), "<f4").reshape(len(rows), dim)
        good = usable(held)
        at = np.asarray(rows)[good]
        vectors[at] = held[good]
        is_reusable[at] = True
    return vectors, is_reusable
