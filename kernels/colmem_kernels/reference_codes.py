"""NumPy twins of the code kernels, obvious by reading: row by row, without blocks or tiles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colmem_kernels.codes import LEVEL_STEP, block_place
from colmem_kernels.lanes import ROWS_PER_BLOCK
from colmem_kernels.reference_similarity import best_first

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]


def rotation(flips: F32) -> F64:
    """Write the rotation out as a matrix, float64 (width, width), applied from the left."""
    width = flips.shape[1]
    hadamard = np.ones((1, 1))
    while len(hadamard) < width:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    matrix = np.eye(width)
    for signs in flips.astype(np.float64):
        matrix = hadamard @ np.diag(signs) @ matrix / np.sqrt(width)
    return matrix


def rotate(vectors: F32, flips: F32) -> F64:
    """Rotate rows, float32 (n, dim), to float64 (n, width)."""
    padded = np.zeros((len(vectors), flips.shape[1]))
    padded[:, : vectors.shape[1]] = vectors
    return padded @ rotation(flips).T


def levels_of(rotated: F64) -> npt.NDArray[np.int64]:
    """Cut components into 16 levels of LEVEL_STEP standard deviations."""
    scaled = rotated * np.sqrt(rotated.shape[1]) / LEVEL_STEP + 8.0
    return np.asarray(np.clip(np.floor(scaled), 0, 15), np.int64)


def pack_signs(is_positive: npt.NDArray[np.bool_]) -> U8:
    """Lay signs, bool (n, width), out as blocks of 32 rows."""
    n, width = is_positive.shape
    out = np.zeros((-(-n // ROWS_PER_BLOCK), width // 8, ROWS_PER_BLOCK), np.uint8)
    for row in range(n):
        packed = np.packbits(is_positive[row], bitorder="little")
        out[row // ROWS_PER_BLOCK, :, block_place(row)] = packed
    return out.reshape(len(out), 4 * width)


def unpack_signs(codes: U8, n_rows: int) -> U8:
    """Give the sign codes of rows back as bytes, uint8 (n_rows, width / 8)."""
    blocks = codes.reshape(len(codes), -1, ROWS_PER_BLOCK)
    rows = range(n_rows)
    return np.array([blocks[row // ROWS_PER_BLOCK, :, block_place(row)] for row in rows], np.uint8)


def unpack_levels(codes: U8) -> npt.NDArray[np.int64]:
    """Give level codes, uint8 (n, width / 2), back as levels (n, width)."""
    parts = codes.reshape(len(codes), -1, 32)
    return np.concatenate([parts & 15, parts >> 4], axis=2).reshape(len(codes), -1).astype(np.int64)


def sums_of(codes: U8, tables: U8, n_rows: int) -> npt.NDArray[np.int64]:
    """Add up the table entries of each row's nibbles."""
    rows = unpack_signs(codes, n_rows)
    low, high = tables.reshape(-1, 2, 16)[:, 0], tables.reshape(-1, 2, 16)[:, 1]
    places = np.arange(rows.shape[1])
    looked_up = low[places, rows & 15].astype(np.int64) + high[places, rows >> 4]
    return np.asarray(looked_up.sum(axis=1))


def keep_best(rows: I32, sums: U16, count: int, keep: int) -> tuple[I32, U16]:
    """Twin of :func:`colmem_kernels.codes.keep_best`, returning copies."""
    order = np.lexsort((np.arange(count), -sums[:count].astype(np.int64)))[:keep]
    order.sort()
    return rows[order], sums[order]


def scan_codes(
    codes: U8, tables: U8, mask: U8, n_rows: int, keep: int
) -> tuple[I32, npt.NDArray[np.int64]]:
    """Twin of the near side of :func:`colmem_kernels.codes.scan_codes`: rows ascending, sums."""
    sums = sums_of(codes, tables, n_rows)
    rows = np.flatnonzero(mask[:n_rows])
    best = rows[np.lexsort((rows, -sums[rows]))[:keep]]
    best.sort()
    return best.astype(np.int32), sums[best]


def level_scores(codes: U8, weights: I16, affine: F64) -> F64:
    """Score level codes, uint8 (n, width / 2), as the kernel ``refine_codes`` does."""
    found = unpack_levels(codes) @ weights.astype(np.int64)
    return np.asarray(affine[2] * found + affine[3], np.float64)


def best_levels(rows: I32, codes: U8, weights: I16, affine: F64, k: int) -> tuple[I64, F32]:
    """Order the k best of rows by their level codes."""
    scores = level_scores(codes[rows], weights, affine).astype(np.float32)
    return best_first(rows.astype(np.int64), scores, k)
