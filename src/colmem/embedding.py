"""What the engine asks of an embedder: checked, normalised vectors, and word pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.contract import ConfigError, Embedder, InvalidRequest
from colmem.schema import Vectors

UNIT_TOLERANCE = 1e-5
Pieces = tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]  # flat ids, (n + 1,) offsets


class Embedded(NamedTuple):
    """float32 (n, dim), rows L2-normalised or zero; and their word pieces, if there are any."""

    vectors: Vectors
    pieces: Pieces | None


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """Embed texts.

    Raises
    ------
    ConfigError
        When the embedder's answer has another shape than it declares, or is not finite.
    """
    if not texts:
        return Embedded(np.zeros((0, embedder.dim), np.float32), None)
    with_pieces = getattr(embedder, "embed_pieces", None)
    if with_pieces is not None:
        vectors, flat, offsets = with_pieces(texts)
        return Embedded(vectors, (flat, offsets))
    vectors = np.asarray(embedder.embed(texts), np.float32)
    if vectors.shape != (len(texts), embedder.dim):
        raise ConfigError(
            f"embedder {embedder.key} answered {len(texts)} texts with an array of shape "
            f"{vectors.shape}, expected ({len(texts)}, {embedder.dim})"
        )
    if not np.isfinite(vectors).all():
        raise ConfigError(f"embedder {embedder.key} answered with a vector that is not finite")
    return Embedded(normalised(vectors), None)


def normalised(vectors: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Rows divided by their L2 norm: float32 (n, dim), C-order.

    Zero rows, and rows of unit norm already, keep their very bits.
    """
    norms = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    norms[(norms == 0) | (np.abs(norms - 1) < UNIT_TOLERANCE)] = 1
    return np.ascontiguousarray(vectors / norms, np.float32)


def query_vector(numbers: Any, dim: int) -> Vectors:
    """A vector that a caller gives to be compared with the store's: float32 (dim,), normalised.

    Raises
    ------
    InvalidRequest
        When it is not ``dim`` finite numbers.
    """
    expected = f"expected {dim} finite numbers, as the store's embedder makes them"
    try:
        vector = np.asarray(numbers, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"vector: {error}; {expected}", path="vector") from error
    if vector.shape != (dim,):
        raise InvalidRequest(f"vector has the shape {vector.shape}; {expected}", path="vector")
    if not np.isfinite(vector).all():
        raise InvalidRequest(f"vector holds a number that is not finite; {expected}", path="vector")
    unit: Vectors = normalised(vector[np.newaxis])[0]
    return unit


def pieces_function(
    embedder: Embedder | None,
) -> tuple[Callable[[Sequence[str]], Pieces] | None, int]:
    """The word-piece function of an embedder and the size of its vocabulary, or (None, 0)."""
    if embedder is None or not hasattr(embedder, "embed_pieces"):
        return None, 0
    with_pieces: Any = embedder

    def pieces_of(texts: Sequence[str]) -> Pieces:
        _, flat, offsets = with_pieces.embed_pieces(texts)
        return flat, offsets

    return pieces_of, len(with_pieces.is_punctuation)
