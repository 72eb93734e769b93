"""Signed hashing of code-point trigrams by MD5 (the vectors of ``hotmem-hash-v1``).

Trigrams already met are answered from a table of 64-bit entries; the others wait until there are
enough of them to run MD5 over LANES trigrams at once, one SIMD lane each. The accumulators are
integers, so the order of additions does not matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colmem_kernels._jit import kernel

DIM = 64
LANES = 64
CACHE_BITS = 16
CACHE_SIZE = 1 << CACHE_BITS
# An odd multiplier permutes the 63-bit keys, so the upper bits can index and the lower ones tell
# entries apart (Fibonacci hashing, Knuth 1998, section 6.4).
KEY_MASK = (1 << 63) - 1
MULTIPLIER = 0x1E3779B97F4A7C15
TAG_BITS = 63 - CACHE_BITS
TAG_MASK = (1 << TAG_BITS) - 1
NO_POINT = 0x1FFFFF  # fills a gram of fewer than three code points; above U+10FFFF

# RFC 1321, section 3.4: K[i] = floor(2**32 * abs(sin(i + 1))), and the shifts of the four rounds.
K = np.array([int(abs(np.sin(i + 1.0)) * 4294967296.0) for i in range(64)], np.uint32)
SHIFT = np.array(
    [7, 12, 17, 22] * 4 + [5, 9, 14, 20] * 4 + [4, 11, 16, 23] * 4 + [6, 10, 15, 21] * 4, np.uint32
)
WORD_OF_STEP = np.array(
    list(range(16))
    + [(5 * i + 1) % 16 for i in range(16)]
    + [(3 * i + 5) % 16 for i in range(16)]
    + [(7 * i) % 16 for i in range(16)],
    np.int64,
)


@kernel(None)
def _pack_block(key: int | np.int64, block: npt.NDArray[np.uint32], lane: int | np.int64) -> None:
    """Write the one padded MD5 block of a gram: its UTF-8, 0x80, zeros, the length in bits.

    At most 12 bytes and the mark: only words 0 to 3 and 14 are ever other than zero.
    """
    for w in range(4):
        block[w, lane] = 0
    size = 0
    for part in range(3):
        point = (key >> (42 - 21 * part)) & NO_POINT
        if point == NO_POINT:
            break
        if point < 0x80:
            n, lead = 1, point
        elif point < 0x800:
            n, lead = 2, 0xC0 | point >> 6
        elif point < 0x10000:
            n, lead = 3, 0xE0 | point >> 12
        else:
            n, lead = 4, 0xF0 | point >> 18
        for k in range(n):
            byte = lead if k == 0 else 0x80 | (point >> (6 * (n - 1 - k))) & 0x3F
            block[size >> 2, lane] |= np.uint32(byte << (8 * (size & 3)))
            size += 1
    block[size >> 2, lane] |= np.uint32(0x80 << (8 * (size & 3)))
    block[14, lane] = np.uint32(size * 8)


@kernel(None)
def _md5_lanes(
    block: npt.NDArray[np.uint32],
    a: npt.NDArray[np.uint32],
    b: npt.NDArray[np.uint32],
    c: npt.NDArray[np.uint32],
    d: npt.NDArray[np.uint32],
) -> None:
    """MD5 of LANES one-block messages (RFC 1321); only words b and d of the digest are wanted."""
    for lane in range(LANES):
        a[lane] = np.uint32(0x67452301)
        b[lane] = np.uint32(0xEFCDAB89)
        c[lane] = np.uint32(0x98BADCFE)
        d[lane] = np.uint32(0x10325476)
    for step in range(64):
        left = SHIFT[step]
        right = np.uint32(32) - left
        constant = K[step]
        word = WORD_OF_STEP[step]
        for lane in range(LANES):
            x, y, z = b[lane], c[lane], d[lane]
            if step < 16:
                mix = (x & y) | (~x & z)
            elif step < 32:
                mix = (z & x) | (~z & y)
            elif step < 48:
                mix = x ^ y ^ z
            else:
                mix = y ^ (x | ~z)
            total = np.uint32(a[lane] + mix + constant + block[word, lane])
            a[lane] = z
            d[lane] = y
            c[lane] = x
            b[lane] = np.uint32(x + np.uint32(np.uint32(total << left) | (total >> right)))
    for lane in range(LANES):
        b[lane] = np.uint32(b[lane] + np.uint32(0xEFCDAB89))
        d[lane] = np.uint32(d[lane] + np.uint32(0x10325476))


@kernel(None)
def _settle(
    waiting: int | np.int64,
    block: npt.NDArray[np.uint32],
    a: npt.NDArray[np.uint32],
    b: npt.NDArray[np.uint32],
    c: npt.NDArray[np.uint32],
    d: npt.NDArray[np.uint32],
    keys: npt.NDArray[np.int64],
    owners: npt.NDArray[np.int64],
    cache: npt.NDArray[np.int64],
    sums: npt.NDArray[np.int64],
) -> None:
    """Hash the waiting grams, count them for their texts and remember them.

    Lanes that nobody waits for hold an older gram or zeros; their digests are not read.
    """
    _md5_lanes(block, a, b, c, d)
    for lane in range(waiting):
        # Byte 15 is the top of word d, byte 7 the top of word b (little-endian words).
        component = np.int64(d[lane] >> 24) & 63
        odd = np.int64(b[lane] >> 24) & 1
        sums[owners[lane], component] += 1 - 2 * odd
        mixed = keys[lane]
        cache[mixed >> TAG_BITS] = (mixed & TAG_MASK) << 8 | component << 2 | odd << 1 | 1


_READ = "Array({}, 1, 'C', readonly=True)"


@kernel(f"void({_READ.format('uint32')}, {_READ.format('int64')}, int64[::1], float32[:, ::1])")
def hash_texts(
    points: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    cache: npt.NDArray[np.int64],
    vectors: npt.NDArray[np.float32],
) -> None:
    """Write the trigram hash vector of every text.

    Parameters
    ----------
    points : uint32 (n_points,), code points of the lower-cased texts, end to end
    offsets : int64 (n + 1,), where each text begins
    cache : int64 (CACHE_SIZE,), zeros at first; read and written. Threads may share it: an entry is
        one aligned word that holds key and answer together.
    vectors : float32 (n, 64), C-order; written: L2-normalised, zero where all signs cancel

    Notes
    -----
    O(points). A text of fewer than three code points is one gram, the empty text too. Byte 15 of
    the digest gives the component, bit 0 of byte 7 the sign; the division is float64. Source: MD5,
    RFC 1321; feature hashing, Weinberger et al. 2009.
    """
    n = len(offsets) - 1
    sums = np.zeros((n, DIM), np.int64)
    block = np.zeros((16, LANES), np.uint32)
    a = np.empty(LANES, np.uint32)
    b = np.empty(LANES, np.uint32)
    c = np.empty(LANES, np.uint32)
    d = np.empty(LANES, np.uint32)
    keys = np.zeros(LANES, np.int64)
    owners = np.zeros(LANES, np.int64)
    waiting = np.int64(0)  # a literal would compile the helpers twice
    for t in range(n):
        start, stop = offsets[t], offsets[t + 1]
        grams = max(1, stop - start - 2)
        for g in range(grams):
            key: int | np.int64 = np.int64(0)
            for part in range(3):
                at = start + g + part
                key = key << 21 | (np.int64(points[at]) if at < stop else NO_POINT)
            mixed = (key * MULTIPLIER) & KEY_MASK
            slot = mixed >> TAG_BITS
            entry = cache[slot]
            # Entry: the lower bits of the mixed key, six of component, one of sign, one set.
            if entry & 1 == 1 and (entry >> 8) & TAG_MASK == mixed & TAG_MASK:
                sums[t, (entry >> 2) & 63] += 1 - (entry & 2)
                continue
            _pack_block(key, block, waiting)
            keys[waiting] = mixed
            owners[waiting] = t
            waiting += 1
            if waiting == LANES:
                _settle(waiting, block, a, b, c, d, keys, owners, cache, sums)
                waiting = np.int64(0)
    if waiting > 0:
        _settle(waiting, block, a, b, c, d, keys, owners, cache, sums)
    for t in range(n):
        total = 0
        for k in range(DIM):
            total += sums[t, k] * sums[t, k]
        norm = np.sqrt(np.float64(total)) if total > 0 else 1.0
        for k in range(DIM):
            vectors[t, k] = np.float32(np.float64(sums[t, k]) / norm)
