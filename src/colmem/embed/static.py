"""``static-s256``: a text's vector is the normalised sum of the rows of its WordPiece pieces.

The default embedder. Deterministic to the bit, no model runtime; data and origin: data/MODEL.md.
Tables are read on first use, once per process. Literals such as ``[MASK]`` are plain text.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colmem.embed.texts import utf8_buffer
from colmem.function_words import FUNCTION_WORDS
from colmem_kernels import reference_wordpiece
from colmem_kernels.gate import Gate

PIECES_MAX = 128
_COMPILE_AFTER_BYTES = 1 << 18
_DATA = Path(__file__).parent / "data"

Vectors = npt.NDArray[np.float32]
Pieces = npt.NDArray[np.uint16]
Offsets = npt.NDArray[np.int64]


class Tables(NamedTuple):
    """What the kernels read: the tables of wordpiece.npz, then rows int8 and scales float32."""

    ascii_map: npt.NDArray[np.uint8]
    block_index: npt.NDArray[np.uint16]
    block_codes: npt.NDArray[np.uint16]
    map_entries: npt.NDArray[np.int32]
    map_pool: npt.NDArray[np.uint8]
    nodes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    punctuation: npt.NDArray[np.bool_]


_tables: Tables | None = None
_tables_lock = threading.Lock()


def load_tables() -> Tables:
    """Read the data files, once per process."""
    global _tables
    if _tables is None:
        with _tables_lock:
            if _tables is None:
                with np.load(_DATA / "wordpiece.npz") as archive:
                    arrays = {name: archive[name] for name in archive.files}
                _tables = Tables(
                    rows=np.load(_DATA / "rows.npy"),
                    scales=np.load(_DATA / "scales.npy").astype(np.float32),
                    **arrays,
                )
    return _tables


class StaticEmbedder:
    """The embedder ``static-s256``: 256 components, English in effect, about 100 ns a word."""

    key = "static-s256"
    dim = 256

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (n, 256), rows L2-normalised; zero for a text without pieces.

        Raises
        ------
        InvalidRequest
            When a text holds a lone surrogate.
        """
        tables = load_tables()
        flat, offsets, kernels = self._encode(texts)
        vectors = np.empty((len(texts), self.dim), np.float32)
        kernels.pool_pieces(flat, offsets, tables.rows, tables.scales, vectors)
        return vectors

    def embed_pieces(
        self, texts: Sequence[str], pieces_max: int = PIECES_MAX
    ) -> tuple[Vectors, Pieces, Offsets]:
        """Vectors, and the first ``pieces_max`` piece ids of each text.

        Returns
        -------
        vectors : float32 (n, 256), from all pieces
        pieces : uint16 (total,), the texts' pieces end to end
        offsets : int64 (n + 1,), where each text's pieces begin
        """
        tables = load_tables()
        flat, offsets, kernels = self._encode(texts)
        vectors = np.empty((len(texts), self.dim), np.float32)
        kernels.pool_pieces(flat, offsets, tables.rows, tables.scales, vectors)
        kept = np.empty(int(np.minimum(np.diff(offsets), pieces_max).sum()), np.uint16)
        kept_offsets = np.empty_like(offsets)
        kernels.cap_pieces(flat, offsets, pieces_max, kept, kept_offsets)
        return vectors, kept, kept_offsets

    def pieces(self, text: str) -> Pieces:
        """uint16 (k,): all piece ids of one text, in text order, repeats kept."""
        return self._encode([text])[0]

    def row_vectors(self, ids: npt.NDArray[np.integer]) -> Vectors:
        """float32 (k, 256): the L2-normalised rows of the given pieces."""
        tables = load_tables()
        rows = tables.rows[ids].astype(np.float32) * tables.scales[ids][:, None]
        norms: Vectors = np.linalg.norm(rows, axis=1, keepdims=True)
        normalised: Vectors = rows / np.where(norms == 0, np.float32(1), norms)
        return normalised

    @property
    def rows(self) -> npt.NDArray[np.int8]:
        """int8 (n_vocab, 256), read-only: the table itself; a row's direction needs no scale."""
        return load_tables().rows

    @property
    def row_scales(self) -> npt.NDArray[np.float32]:
        """float32 (n_vocab,): what each row is multiplied by before rows are added up."""
        return load_tables().scales

    @functools.cached_property
    def row_inverse_norms(self) -> npt.NDArray[np.float32]:
        """float32 (n_vocab,): 1 / norm of each int8 row, so that ``rows * this`` is normalised."""
        norms = np.sqrt(np.square(self.rows.astype(np.float32)).sum(axis=1))
        inverse: npt.NDArray[np.float32] = (1 / np.maximum(norms, 1)).astype(np.float32)
        return inverse

    def piece_text(self, piece: int) -> str:
        """Text of a piece as the vocabulary has it (``##`` before a continuation)."""
        return _vocabulary()[piece]

    @functools.cached_property
    def is_function_word(self) -> npt.NDArray[np.bool_]:
        """Which pieces are a whole English function word: bool (n_vocab,)."""
        flags = np.zeros(len(self.rows), np.bool_)
        for word in FUNCTION_WORDS:
            ids = self.pieces(word)
            if len(ids) == 1:
                flags[ids] = True
        flags.flags.writeable = False
        return flags

    @property
    def is_punctuation(self) -> npt.NDArray[np.bool_]:
        """Which pieces are made of punctuation only: bool (n_vocab,)."""
        return load_tables().punctuation

    def _encode(self, texts: Sequence[str]) -> tuple[Pieces, Offsets, Any]:
        """Pieces of texts, and the module whose functions are to go on with them."""
        buffer, starts = utf8_buffer(texts)
        kernels = _kernels(len(buffer))
        pieces = np.empty(len(buffer), np.uint16)
        offsets = np.empty(len(texts) + 1, np.int64)
        written = kernels.encode_texts(buffer, starts, *load_tables()[:6], pieces, offsets)
        return pieces[:written], offsets, kernels


def _kernels(n_bytes: int) -> Any:
    """The kernels, or for little text their plain twins until the kernels are compiled."""
    from colmem_kernels import wordpiece  # noqa: PLC0415 - numba only with the first text

    return wordpiece if _gate().is_open(n_bytes) else reference_wordpiece


@functools.cache
def _gate() -> Gate:
    from colmem_kernels import wordpiece  # noqa: PLC0415 - numba only with the first text

    kernels = (wordpiece.encode_texts, wordpiece.pool_pieces, wordpiece.cap_pieces)
    return Gate(*kernels, after=_COMPILE_AFTER_BYTES)


@functools.cache
def _vocabulary() -> list[str]:
    return (_DATA / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
