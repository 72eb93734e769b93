"""Short codes of embeddings: making them, scanning all of them, refining the best.

An embedding is rotated by a fixed pseudo-random rotation, after which its ``width`` components look
Gaussian whatever they were. Its *sign code* keeps one bit of each (width / 8 bytes, 32 rows
interleaved), its *level code* 4 bits (width / 2 bytes). Of the
query, a sign code's score keeps tables of 4 components each, a level code's an integer weight each.

Source: Gao and Long 2024 (RaBitQ), sections 3.1-3.3, for scoring sign codes against an uncompressed
query; Andre et al. 2017 for 16-entry tables in vector registers. Ours has no per-row factor, since
after the rotation it moved recall by less than 0.01.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from colmem_kernels._jit import kernel
from colmem_kernels.lanes import (
    HAS_BYTE_SHUFFLE,
    ROWS_PER_BLOCK,
    admitted_bits,
    block_hits,
    butterfly,
    nibble_dot,
    prefetch,
    trailing_zeros,
)
from colmem_kernels.topk import heap_offer

WIDTH_STEP = 256
"""Code widths are powers of two from here on."""
N_ROUNDS = 3
"""Rounds of sign flips and Hadamard transforms; two leave structure when dim is below width."""
LEVEL_STEP = 0.3352
"""Width of a level in standard deviations: the best uniform 16-level quantiser of a Gaussian
(Max 1960, table 2)."""

_TILE = 16
_AHEAD = 12
_AHEAD_BLOCKS = 4
_FIRST_PER_K = 4
_SAMPLE_BLOCKS = 256

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

_F32_2D = types.Array(types.float32, 2, "C", readonly=True)
_F32_2D_OUT = types.Array(types.float32, 2, "C")
_TUPLE: Any = types.UniTuple
_U8_1D = types.Array(types.uint8, 1, "C", readonly=True)
_U8_2D = types.Array(types.uint8, 2, "C", readonly=True)
_U8_2D_OUT = types.Array(types.uint8, 2, "C")
_I16_1D = types.Array(types.int16, 1, "C", readonly=True)
_I32_1D = types.Array(types.int32, 1, "C", readonly=True)
_I32_1D_OUT = types.Array(types.int32, 1, "C")
_I64_1D_OUT = types.Array(types.int64, 1, "C")
_U16_1D = types.Array(types.uint16, 1, "C", readonly=True)
_U16_1D_OUT = types.Array(types.uint16, 1, "C")
_U8_1D_OUT = types.Array(types.uint8, 1, "C")
_I16_1D_OUT = types.Array(types.int16, 1, "C")
_F32_1D_OUT = types.Array(types.float32, 1, "C")
_F64_1D = types.Array(types.float64, 1, "C", readonly=True)
_F64_1D_OUT = types.Array(types.float64, 1, "C")


def code_width(dim: int) -> int:
    """Components after the rotation: the power of two >= dim, at least 256."""
    return max(WIDTH_STEP, 1 << (dim - 1).bit_length())


def rotation_flips(width: int) -> F32:
    """Give the signs of the rotation, float32 (N_ROUNDS, width), +-1: the same on every machine."""
    # An LCG of its own, so that no library's generator can change what stored codes mean.
    state = 0x9E3779B97F4A7C15
    flips = np.empty(N_ROUNDS * width, np.float32)
    for i in range(len(flips)):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFF_FFFF_FFFF_FFFF
        flips[i] = 1.0 if state >> 63 else -1.0
    return flips.reshape(N_ROUNDS, width)


def block_place(row: int) -> int:
    """Byte position of a row within its block: even bytes hold the block's first 16 rows."""
    within = row % ROWS_PER_BLOCK
    return 2 * within if within < 16 else 2 * (within - 16) + 1


@kernel(types.void(_F32_2D_OUT, _F32_2D))
def rotate_tile(tile: F32, flips: F32) -> None:
    """Rotate the 16 columns of a tile in place; lengths and dot products stay as they are.

    tile : float32 (width, 16); flips : float32 (N_ROUNDS, width). O(width log width).
    """
    width = tile.shape[0]
    scale = np.float32(1.0 / np.sqrt(width))
    for r in range(N_ROUNDS):
        for d in range(width):
            flip = flips[r, d] * scale
            for j in range(_TILE):
                tile[d, j] *= flip
        half = 1
        while half < width:
            for start in range(0, width, 2 * half):
                for d in range(start, start + half):
                    butterfly(tile, d, d + half)
            half *= 2


@kernel(types.void(_F32_2D, _F32_2D, types.int64, _U8_2D_OUT, _U8_2D_OUT))
def encode_rows(vectors: F32, flips: F32, first: int, sign_codes: U8, level_codes: U8) -> None:
    """Write the codes of rows ``first`` to ``first + n - 1``.

    vectors : float32 (n, dim), rows L2-normalised; flips : as in :func:`rotate_tile`;
    sign_codes : uint8 (n_blocks, 4 * width), bytes of the rows written, of others kept;
    level_codes : uint8 (n, width / 2), written.
    Group g of a block is 32 bytes; a row's byte there holds the signs of its components 8g..8g+7.
    Byte i of a level code's 32-byte part p holds component 64p+i low and 64p+32+i high.
    """
    n, dim = vectors.shape
    width = flips.shape[1]
    tile = np.empty((width, _TILE), np.float32)
    per_level = np.float32(np.sqrt(width) / LEVEL_STEP)
    for start in range(0, n, _TILE):
        held = min(_TILE, n - start)
        tile[:] = 0.0
        for j in range(held):
            for d in range(dim):
                tile[d, j] = vectors[start + j, d]
        rotate_tile(tile, flips)
        for j in range(held):
            row = first + start + j
            block = row // ROWS_PER_BLOCK
            within = row % ROWS_PER_BLOCK
            place = 2 * within if within < 16 else 2 * (within - 16) + 1
            for group in range(width // 8):
                bits = 0
                for d in range(8):
                    if tile[8 * group + d, j] >= 0:
                        bits |= 1 << d
                sign_codes[block, ROWS_PER_BLOCK * group + place] = bits
        for d in range(width):
            for j in range(_TILE):
                level = tile[d, j] * per_level + np.float32(8.0)
                tile[d, j] = min(max(level, np.float32(0.0)), np.float32(15.0))
        for j in range(held):
            for part in range(width // 64):
                for i in range(32):
                    low = np.uint8(tile[64 * part + i, j])
                    high = np.uint8(tile[64 * part + 32 + i, j])
                    level_codes[start + j, 32 * part + i] = low | (high << 4)


@kernel(_TUPLE(types.int64, 2)(_I32_1D_OUT, _U16_1D_OUT, types.int64, types.int64, _I32_1D_OUT))
def keep_best(rows: I32, sums: U16, count: int, keep: int, bins: I32) -> tuple[int, int]:
    """Keep, in place and in order, the ``keep`` rows with the highest sums; returns (kept, lowest).

    rows, sums : int32, uint16 (>= count,); bins : int32 (highest sum + 1,), scratch. Of equal sums
    the earlier are kept, so a row offered later must exceed ``lowest`` (-1 when nothing was
    dropped) to be among the best. O(count + len(bins)).
    """
    if count <= keep:
        return count, -1
    bins[:] = 0
    for i in range(count):
        bins[sums[i]] += 1
    level = bins.shape[0] - 1
    above = 0
    while above + bins[level] < keep:
        above += bins[level]
        level -= 1
    at_level = keep - above
    kept = 0
    for i in range(count):
        held = np.int64(sums[i])
        take = held > level
        if held == level and at_level > 0:
            at_level -= 1
            take = True
        if take:
            rows[kept] = rows[i]
            sums[kept] = sums[i]
            kept += 1
    return kept, level


@kernel(None)
def plain_hits(
    codes: U8, at: int, tables: U8, n_steps: int, above: int, below: int, sums: U16
) -> Any:
    """Do what :func:`colmem_kernels.lanes.block_hits` does, on any processor."""
    sums[:] = 0
    for group in range(4 * n_steps):
        for i in range(32):
            held = codes[at + 32 * group + i]
            row = (i >> 1) + 16 * (i & 1)
            sums[row] += tables[32 * group + (held & 15)]
            sums[row] += tables[32 * group + 16 + (held >> 4)]
    bits = np.uint64(0)
    for i in range(32):
        if np.int64(sums[i]) > above:
            bits |= np.uint64(1) << np.uint64(i)
        if np.int64(sums[i]) < below:
            bits |= np.uint64(1) << np.uint64(32 + i)
    return bits


_hits = block_hits if HAS_BYTE_SHUFFLE else plain_hits


@kernel(
    types.void(
        types.Array(types.float32, 1, "C", readonly=True),
        _F32_2D,
        types.int64,
        _U8_1D_OUT,
        _I16_1D_OUT,
        _F64_1D_OUT,
    )
)
def prepare_query(
    query: F32, flips: F32, lookup_max: int, tables: U8, weights: I16, affine: F64
) -> None:
    """Make of a query what scores the two codes.

    query : float32 (dim,); flips : float32 (N_ROUNDS, width); lookup_max : highest table entry;
    tables : uint8 (4 * width,), written: per byte of a sign code two tables of 16 entries;
    weights : int16 (width,), written, within +-127;
    affine : float64 (5,), written: a sign code's sum s stands for the score a0 * s + a1, a level
    code's dot product t for a2 * t + a3; a4 is the sign score of the query itself.
    """
    dim = query.shape[0]
    width = flips.shape[1]
    tile = np.zeros((width, _TILE), np.float32)
    for d in range(dim):
        tile[d, 0] = query[d]
    rotate_tile(tile, flips)
    rotated = tile[:, 0].copy()
    widest = 0.0
    highest = 0.0
    for quad in range(width // 4):
        span = 0.0
        for d in range(4 * quad, 4 * quad + 4):
            size = abs(np.float64(rotated[d]))
            span += 2.0 * size
            highest = max(highest, size)
        widest = max(widest, span)
    step = max(widest / lookup_max, 1e-30)
    lowest_sum = 0.0
    own_sum = 0.0
    for quad in range(width // 4):
        lowest = 0.0
        for d in range(4 * quad, 4 * quad + 4):
            lowest -= abs(np.float64(rotated[d]))
        lowest_sum += lowest
        for entry in range(16):
            total = 0.0
            for d in range(4):
                value = np.float64(rotated[4 * quad + d])
                total += value if (entry >> d) & 1 else -value
            tables[16 * quad + entry] = np.uint8(np.rint((total - lowest) / step))
        own_sum += np.rint(-2.0 * lowest / step)
    # A unit vector's sign vector has the mean dot product sqrt(2 / pi) with it.
    scale = 1.0 / (np.sqrt(width) * np.sqrt(2.0 / np.pi))
    affine[0] = step * scale
    affine[1] = lowest_sum * scale
    unit = max(highest / 127.0, 1e-30)
    weight_sum = 0.0
    for d in range(width):
        weights[d] = np.int16(np.rint(rotated[d] / unit))
        weight_sum += weights[d]
    affine[4] = affine[0] * own_sum + affine[1]
    affine[2] = unit * LEVEL_STEP / np.sqrt(width)
    affine[3] = -7.5 * weight_sum * affine[2]


@kernel(None)
def _sample_rank(keep: int, stride: int) -> Any:
    """Rank in a sample of 1 / stride beyond which ``keep`` rows of all are nearly sure to lie."""
    share = keep / stride
    return share + 3.0 * np.sqrt(share) + 3.0


@kernel(
    types.void(
        _U8_2D,
        _U8_1D,
        types.int64,
        _U8_1D,
        _TUPLE(types.int64, 3),
        _TUPLE(types.int64, 2),
        types.boolean,
        _I32_1D_OUT,
        _U16_1D_OUT,
        _I32_1D_OUT,
        _U16_1D_OUT,
        _I64_1D_OUT,
    )
)
def scan_codes(
    codes: U8,
    tables: U8,
    sum_max: int,
    mask: U8,
    extent: tuple[int, int, int],
    keeps: tuple[int, int],
    is_sampled: bool,
    rows: I32,
    sums: U16,
    far_rows: I32,
    far_sums: U16,
    counts: I64,
) -> None:
    """Collect the rows with the highest sums of table lookups, and those with the lowest.

    codes : uint8 (n_blocks, 4 * width); tables : uint8 (4 * width,), from :func:`prepare_query`;
    sum_max : bound of the sums, < 2**15; mask : uint8 (>= n_rows,);
    extent : first block, last block (excluded), n_rows; keeps : how many best, how many farthest;
    is_sampled : guess from a sample of the blocks what the best exceed, which saves half the work;
    rows, sums : int32, uint16 (2 * keep + 32,), written, rows ascending;
    far_rows, far_sums : the same for the farthest, holding ``sum_max - sum``;
    counts : int64 (3,), written: how many best and farthest, then 1 when the guess was too high and
    rows are missing (scan again without). Of equal sums the lower rows are kept. O(n width).
    """
    first_block, last_block, n_rows = extent
    keep, keep_far = keeps
    flat = codes.reshape(codes.size)
    block_bytes = codes.shape[1]
    n_steps = block_bytes // 128
    block_sums = np.empty(ROWS_PER_BLOCK, np.uint16)
    bins = np.zeros(sum_max + 1, np.int32)
    count = 0
    far_count = 0
    below = sum_max + 1 if keep_far > 0 else -1
    # A sample of the blocks gives a bound that slightly more than ``keep`` rows should exceed.
    above = -1
    if is_sampled:
        stride = max(8, (last_block - first_block) // _SAMPLE_BLOCKS)
        sampled = 0
        for block in range(first_block + stride // 2, last_block, stride):
            admitted = admitted_bits(mask, block * ROWS_PER_BLOCK, n_rows)
            if admitted == 0:
                continue
            _hits(flat, block * block_bytes, tables, n_steps, sum_max, -1, block_sums)
            while admitted != 0:
                i = np.int64(trailing_zeros(admitted))
                admitted &= admitted - np.uint64(1)
                bins[block_sums[i]] += 1
                sampled += 1
        wanted = _sample_rank(keep, stride)
        if wanted < sampled:
            above = sum_max
            passed = 0
            while passed < wanted:
                passed += bins[above]
                above -= 1
        wanted_far = _sample_rank(keep_far, stride)
        if keep_far > 0 and wanted_far < sampled:
            below = 0
            passed = 0
            while passed < wanted_far:
                passed += bins[below]
                below += 1
    is_bounded = above >= 0
    is_far_bounded = keep_far > 0 and below <= sum_max
    for block in range(first_block, last_block):
        start = block * ROWS_PER_BLOCK
        admitted = admitted_bits(mask, start, n_rows)
        if admitted == 0:
            continue
        if block + _AHEAD_BLOCKS < last_block:
            coming = (block + _AHEAD_BLOCKS) * block_bytes
            for line in range(0, block_bytes, 64):
                prefetch(flat, coming + line)
        hits = _hits(flat, block * block_bytes, tables, n_steps, above, below, block_sums)
        near = hits & admitted
        while near != 0:
            i = np.int64(trailing_zeros(near))
            near &= near - np.uint64(1)
            rows[count] = start + i
            sums[count] = block_sums[i]
            count += 1
        far = (hits >> np.uint64(32)) & admitted
        while far != 0:
            i = np.int64(trailing_zeros(far))
            far &= far - np.uint64(1)
            far_rows[far_count] = start + i
            far_sums[far_count] = sum_max - block_sums[i]
            far_count += 1
        if count > rows.shape[0] - ROWS_PER_BLOCK:
            count, above = keep_best(rows, sums, count, keep, bins)
        if far_count > far_rows.shape[0] - ROWS_PER_BLOCK:
            far_count, lowest = keep_best(far_rows, far_sums, far_count, keep_far, bins)
            below = sum_max - lowest
    counts[2] = 0
    if (is_bounded and count < keep) or (is_far_bounded and far_count < keep_far):
        counts[2] = 1
    counts[0] = keep_best(rows, sums, count, keep, bins)[0]
    counts[1] = keep_best(far_rows, far_sums, far_count, keep_far, bins)[0]


@kernel(
    types.void(
        _I32_1D,
        _U16_1D,
        _U8_2D,
        _I16_1D,
        _F64_1D,
        _TUPLE(types.float64, 5),
        types.int64,
        _I64_1D_OUT,
        _F32_1D_OUT,
        _I64_1D_OUT,
    )
)
def refine_codes(
    rows: I32,
    sums: U16,
    level_codes: U8,
    weights: I16,
    affine: F64,
    limits: tuple[float, float, float, float, float],
    k: int,
    rows_out: I64,
    scores_out: F32,
    counts: I64,
) -> None:
    """Score by their level codes the candidates that can be among the k best.

    rows, sums : int32, uint16 (n,), from :func:`scan_codes`; level_codes : uint8 (n_rows, width/2);
    weights, affine : from :func:`prepare_query`; limits : length of the query; by how much of the
    query's part across a row a sign sum may err, and by how much at least it must be allowed to;
    by how much a level score may err; which part a row like the query itself may lack in sign sum;
    rows_out, scores_out : int64, float32 (n,), written: all rows that may be among the k best;
    counts : int64 (3,), written: how many of those, how many were scored, and 1 when no other row
    can reach the k best (0: the candidates ran out before, even with the least error allowed).
    O(n + scored * width).
    """
    n = rows.shape[0]
    length, sign_error, sign_error_least, level_error, lack = limits
    # The best sums first, to know soon what is too low; the others after them. Both in order of
    # rows, which memory serves faster than any other.
    top_sum = 0
    lowest_sum = 1 << 16
    for i in range(n):
        top_sum = max(top_sum, int(sums[i]))
        lowest_sum = min(lowest_sum, int(sums[i]))
    bins = np.zeros(top_sum + 1, np.int32)
    for i in range(n):
        bins[sums[i]] += 1
    n_first = min(n, _FIRST_PER_K * k)
    level = top_sum + 1
    first_end = 0
    while first_end < n_first:
        level -= 1
        first_end += bins[level]
    order = np.empty(n, np.int32)
    at_first = 0
    at_rest = first_end
    for i in range(n):
        if sums[i] >= level:
            order[at_first] = i
            at_first += 1
        else:
            order[at_rest] = i
            at_rest += 1
    flat = level_codes.reshape(level_codes.size)
    row_bytes = level_codes.shape[1]
    n_steps = row_bytes // 128
    best_rows = np.empty(k, np.int64)
    best_scores = np.empty(k, np.float32)
    held = 0
    scored = 0
    floor = -np.inf
    floor_least = -np.inf
    for i in range(n):
        if i + _AHEAD < n:
            ahead = order[i + _AHEAD]
            if affine[0] * sums[ahead] + affine[1] >= floor:
                coming = np.int64(rows[ahead]) * row_bytes
                for line in range(0, row_bytes, 64):
                    prefetch(flat, coming + line)
        at = order[i]
        if affine[0] * sums[at] + affine[1] < floor:
            continue
        row = np.int64(rows[at])
        found = nibble_dot(flat, row * row_bytes, weights, n_steps)
        score = np.float32(affine[2] * found + affine[3])
        rows_out[scored] = row
        scores_out[scored] = score
        scored += 1
        if held < k or score > best_scores[0]:
            held = heap_offer(best_rows, best_scores, held, row, score)
            if held == k:
                worst = np.float64(best_scores[0])
                across = np.sqrt(max(length * length - worst * worst, 0.0))
                # The closer to the query, the more of its lack; nothing of it for a row across.
                base = worst - lack * worst * abs(worst) / length - level_error
                floor = base - sign_error * across
                floor_least = base - sign_error_least * across
    is_settled = 1 if affine[0] * lowest_sum + affine[1] < floor_least else 0
    kept = 0
    if scored > 0:
        enough = np.float64(best_scores[0]) - 2.0 * level_error if held == k else -np.inf
        for i in range(scored):
            if scores_out[i] >= enough:
                rows_out[kept] = rows_out[i]
                scores_out[kept] = scores_out[i]
                kept += 1
    counts[0] = kept
    counts[1] = scored
    counts[2] = is_settled
