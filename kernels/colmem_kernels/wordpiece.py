"""BERT-uncased WordPiece over UTF-8 bytes, and pooling of the pieces' rows.

One pass per text: bytes are classified and mapped (lower case, decomposition, dropped marks)
through tables, and the mapped bytes walk a double-array trie of the vocabulary while the word is
read, so a word of one piece is never looked at twice. Tables: kernels/tools/build_static_s256.py.
Rejected: a hash of every prefix (more memory touched), regular expressions (Python objects).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from colmem_kernels._jit import kernel

# Codes of the tables; kernels/tools/build_static_s256.py writes them.
WORD, DROP, SPACE, PUNCT, CJK, HANGUL, MAPPED = 0, 1, 2, 3, 4, 5, 8
NOT_ASCII = 6  # in ascii_map: a byte of a longer sequence
ASCII_WORD_MIN = 32  # smaller values of ascii_map are classes, larger ones mapped bytes
BLOCK_SHIFT, BLOCK_MASK = 7, 127
CHECK_MASK, ID_SHIFT, ID_MASK, BASE_SHIFT = (1 << 20) - 1, 20, (1 << 16) - 1, 36
ROOT_START, ROOT_CONTINUE = 1, 2
UNKNOWN = 100
WORD_CHARS_MAX = 100  # a longer word is one [UNK] (max_input_chars_per_word)
WORD_BYTES_MAX = 512  # room for WORD_CHARS_MAX characters and one mapped code point more
SPELLING_BYTES_MAX = 16  # a code point maps to at most three characters
DIM = 256
TEXTS = 8  # texts whose norms are summed side by side

_READ = "Array({}, {}, 'C', readonly=True)"
_BYTES, _OFFSETS, _IDS = (_READ.format(dtype, 1) for dtype in ("uint8", "int64", "uint16"))
_TABLES = ", ".join(
    _READ.format(dtype, 1) for dtype in ("uint8", "uint16", "uint16", "int32", "uint8", "int64")
)

# Locals begin as np.int64, not as literals: a helper would be compiled once more for a literal.
Int: TypeAlias = int | np.integer[Any]
U = np.uint64  # an unsigned index spares the test for a negative one


@kernel(None)
def _decode(text: npt.NDArray[np.uint8], i: Int) -> tuple[Int, Int]:
    """Code point of the multi-byte sequence at ``i`` and its size in bytes."""
    byte = np.int64(text[i])
    second = np.int64(text[i + 1]) & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second, 2
    third = np.int64(text[i + 2]) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | second << 6 | third, 3
    fourth = np.int64(text[i + 3]) & 0x3F
    return (byte & 0x07) << 18 | second << 12 | third << 6 | fourth, 4


@kernel(None)
def _decompose_hangul(syllable: Int, jamo: npt.NDArray[np.uint8]) -> Int:
    """Write the UTF-8 of a syllable's two or three jamo and return how many they are."""
    # The Unicode Standard, section 3.12.
    tail = syllable % 28
    chars = 2 if tail == 0 else 3
    for part in range(chars):
        if part == 0:
            letter = 0x1100 + syllable // 588
        elif part == 1:
            letter = 0x1161 + syllable % 588 // 28
        else:
            letter = 0x11A7 + tail
        jamo[part * 3] = 0xE0 | letter >> 12
        jamo[part * 3 + 1] = 0x80 | letter >> 6 & 0x3F
        jamo[part * 3 + 2] = 0x80 | letter & 0x3F
    return chars


@kernel(None)
def _finish_word(
    nodes: npt.NDArray[np.int64],
    word: npt.NDArray[np.uint8],
    n_bytes: Int,
    first_id: Int,
    first_end: Int,
    pieces: npt.NDArray[np.uint16],
    n_pieces: Int,
) -> Int:
    """Write the pieces of a word whose first one has the id ``first_id`` and ends at ``first_end``.

    Returns the number of pieces afterwards.
    """
    pieces[n_pieces] = first_id
    count = n_pieces + 1
    begin = first_end
    while begin < n_bytes:
        state: Int = np.int64(ROOT_CONTINUE)
        base = nodes[ROOT_CONTINUE] >> BASE_SHIFT
        best_id: Int = np.int64(0)
        best_end = begin
        at = begin
        while at < n_bytes:
            slot = base + np.int64(word[U(at)])
            node = nodes[U(slot)]
            if (node & CHECK_MASK) != state:
                break
            state = slot
            base = node >> BASE_SHIFT
            at += 1
            if ((node >> ID_SHIFT) & ID_MASK) != 0:
                best_id = (node >> ID_SHIFT) & ID_MASK
                best_end = at
        if best_id == 0:
            pieces[n_pieces] = UNKNOWN
            return n_pieces + 1
        pieces[U(count)] = best_id - 1
        count += 1
        begin = best_end
    return count


@kernel(None)
def _encode_one(
    text: npt.NDArray[np.uint8],
    start: Int,
    stop: Int,
    ascii_map: npt.NDArray[np.uint8],
    block_index: npt.NDArray[np.uint16],
    block_codes: npt.NDArray[np.uint16],
    map_entries: npt.NDArray[np.int32],
    map_pool: npt.NDArray[np.uint8],
    nodes: npt.NDArray[np.int64],
    word: npt.NDArray[np.uint8],
    spelling: npt.NDArray[np.uint8],
    pieces: npt.NDArray[np.uint16],
    n_pieces: Int,
) -> Int:
    """Append the piece ids of ``text[start:stop]`` to ``pieces`` and return the new count."""
    count = n_pieces
    n_bytes: Int = np.int64(0)
    n_chars: Int = np.int64(0)
    root_base = nodes[ROOT_START] >> BASE_SHIFT
    state: Int = np.int64(ROOT_START)
    base: Int = root_base
    first_id: Int = np.int64(0)
    first_end: Int = np.int64(0)
    i = start
    while True:
        kind: Int = np.int64(SPACE)  # the end of the text ends a word as a space does
        size: Int = np.int64(1)
        chars: Int = np.int64(1)
        if i < stop:
            kind = np.int64(ascii_map[text[U(i)]])
            if kind >= ASCII_WORD_MIN:
                i += 1
                if n_chars < WORD_CHARS_MAX:
                    word[U(n_bytes)] = kind
                    n_bytes += 1
                    if state != 0:
                        slot = base + kind
                        node = nodes[U(slot)]
                        if (node & CHECK_MASK) == state:
                            state = slot
                            base = node >> BASE_SHIFT
                            if ((node >> ID_SHIFT) & ID_MASK) != 0:
                                first_id = (node >> ID_SHIFT) & ID_MASK
                                first_end = n_bytes
                        else:
                            state = 0
                n_chars += 1
                continue
            if kind == NOT_ASCII:
                code_point, size = _decode(text, i)
                for k in range(size):
                    spelling[k] = text[U(i + k)]
                i += size
                block = np.int64(block_index[code_point >> BLOCK_SHIFT])
                kind = np.int64(block_codes[(block << BLOCK_SHIFT) + (code_point & BLOCK_MASK)])
                if kind >= MAPPED:
                    entry = (kind - MAPPED) * 4
                    size = np.int64(map_entries[entry + 1])
                    for k in range(size):
                        spelling[k] = map_pool[np.int64(map_entries[entry]) + k]
                    chars = np.int64(map_entries[entry + 2])
                    kind = np.int64(map_entries[entry + 3])
                elif kind == HANGUL:
                    chars = _decompose_hangul(code_point - 0xAC00, spelling)
                    size = chars * 3
                    kind = WORD
            else:
                spelling[0] = text[U(i)]
                i += 1
            if kind == DROP:
                continue
        elif n_chars == 0:
            return count
        if kind != WORD and n_chars > 0:
            if n_chars > WORD_CHARS_MAX or first_end == 0:
                pieces[U(count)] = UNKNOWN
                count += 1
            elif first_end == n_bytes:
                pieces[U(count)] = first_id - 1
                count += 1
            else:
                count = _finish_word(nodes, word, n_bytes, first_id - 1, first_end, pieces, count)
            n_bytes = n_chars = first_id = first_end = np.int64(0)
            state = np.int64(ROOT_START)
            base = root_base
        if kind == SPACE:
            continue
        if n_chars < WORD_CHARS_MAX:
            for k in range(size):
                value = np.int64(spelling[k])
                word[U(n_bytes)] = value
                n_bytes += 1
                if state != 0:
                    slot = base + value
                    node = nodes[U(slot)]
                    if (node & CHECK_MASK) == state:
                        state = slot
                        base = node >> BASE_SHIFT
                        if ((node >> ID_SHIFT) & ID_MASK) != 0:
                            first_id = (node >> ID_SHIFT) & ID_MASK
                            first_end = n_bytes
                    else:
                        state = 0
        n_chars += chars
        if kind != WORD:  # a punctuation mark or an ideograph is a word of its own
            pieces[U(count)] = first_id - 1 if first_end == n_bytes else UNKNOWN
            count += 1
            n_bytes = n_chars = first_id = first_end = np.int64(0)
            state = np.int64(ROOT_START)
            base = root_base


@kernel(f"int64({_BYTES}, {_OFFSETS}, {_TABLES}, uint16[::1], int64[::1])")
def encode_texts(
    text: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    ascii_map: npt.NDArray[np.uint8],
    block_index: npt.NDArray[np.uint16],
    block_codes: npt.NDArray[np.uint16],
    map_entries: npt.NDArray[np.int32],
    map_pool: npt.NDArray[np.uint8],
    nodes: npt.NDArray[np.int64],
    pieces: npt.NDArray[np.uint16],
    piece_offsets: npt.NDArray[np.int64],
) -> Int:
    """Write the WordPiece ids of every text, end to end, and return how many they are.

    Parameters
    ----------
    text : uint8 (n_bytes,), valid UTF-8, the texts end to end
    offsets : int64 (n + 1,), byte offsets of the texts
    ascii_map, block_index, block_codes, map_entries, map_pool, nodes : the tables of wordpiece.npz
    pieces : uint16 (>= n_bytes,); written, past the count too; no text has more pieces than bytes
    piece_offsets : int64 (n + 1,); written

    Notes
    -----
    O(n_bytes). Source: Schuster and Nakajima 2012 (greedy longest match), with the normaliser of
    the BERT uncased vocabulary; literals such as ``[MASK]`` are plain text here. Marks are not put
    into canonical order first: no piece of the vocabulary holds a mark that order could move.
    """
    word = np.empty(WORD_BYTES_MAX, np.uint8)
    spelling = np.empty(SPELLING_BYTES_MAX, np.uint8)
    written: Int = np.int64(0)
    piece_offsets[0] = 0
    for t in range(len(offsets) - 1):
        written = _encode_one(
            text,
            offsets[t],
            offsets[t + 1],
            ascii_map,
            block_index,
            block_codes,
            map_entries,
            map_pool,
            nodes,
            word,
            spelling,
            pieces,
            written,
        )
        piece_offsets[t + 1] = written
    return written


@kernel(None)
def _add_rows(
    pieces: npt.NDArray[np.uint16],
    start: Int,
    stop: Int,
    rows: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Write the float32 sum of the pieces' rows, added in text order."""
    for d in range(DIM):
        out[d] = np.float32(0.0)
    p = start
    # Four rows a pass spare three of four loads and stores of the sum; the order stays.
    while p + 4 <= stop:
        i0, i1 = np.int64(pieces[p]), np.int64(pieces[p + 1])
        i2, i3 = np.int64(pieces[p + 2]), np.int64(pieces[p + 3])
        r0, r1, r2, r3 = rows[i0], rows[i1], rows[i2], rows[i3]
        s0, s1, s2, s3 = scales[i0], scales[i1], scales[i2], scales[i3]
        for d in range(DIM):
            # int8 x float16 has at most 19 significant bits: the products are exact.
            x = out[d] + np.float32(r0[d]) * s0
            x = x + np.float32(r1[d]) * s1
            x = x + np.float32(r2[d]) * s2
            out[d] = x + np.float32(r3[d]) * s3
        p += 4
    while p < stop:
        i0 = np.int64(pieces[p])
        r0 = rows[i0]
        s0 = scales[i0]
        for d in range(DIM):
            out[d] += np.float32(r0[d]) * s0
        p += 1


@kernel(
    f"void({_IDS}, {_OFFSETS}, {_READ.format('int8', 2)}, {_READ.format('float32', 1)},"
    " float32[:, ::1])"
)
def pool_pieces(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float32],
) -> None:
    """Write the normalised sum of the rows of every text's pieces.

    Parameters
    ----------
    pieces : uint16 (n_pieces,), piece ids of the texts end to end
    offsets : int64 (n + 1,), where each text's pieces begin
    rows : int8 (n_vocab, 256), C-order
    scales : float32 (n_vocab,); a row's value is ``rows * scales``
    vectors : float32 (n, 256), C-order; written: L2-normalised, zero for a text without pieces

    Notes
    -----
    O(256 n_pieces). The sum is float32 in text order, the norm float64 in component order, so the
    bits are the same on every machine.
    """
    n = len(offsets) - 1
    totals = np.empty(TEXTS, np.float64)
    for first in range(0, n, TEXTS):
        last = min(first + TEXTS, n)
        for t in range(first, last):
            _add_rows(pieces, offsets[t], offsets[t + 1], rows, scales, vectors[t])
        for t in range(TEXTS):
            totals[t] = 0.0
        if last - first == TEXTS:
            # One chain of additions per text, so that they overlap; each stays in order.
            block = vectors[first:last]
            for d in range(DIM):
                for t in range(TEXTS):
                    totals[t] += np.float64(block[t, d]) * np.float64(block[t, d])
        else:
            for t in range(last - first):
                total = 0.0
                for d in range(DIM):
                    total += np.float64(vectors[first + t, d]) * np.float64(vectors[first + t, d])
                totals[t] = total
        for t in range(first, last):
            out = vectors[t]
            if totals[t - first] > 0.0:
                norm = np.sqrt(totals[t - first])
                for d in range(DIM):
                    out[d] = np.float32(np.float64(out[d]) / norm)


@kernel(f"int64({_IDS}, {_OFFSETS}, int64, uint16[::1], int64[::1])")
def cap_pieces(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    pieces_max: int,
    kept: npt.NDArray[np.uint16],
    kept_offsets: npt.NDArray[np.int64],
) -> Int:
    """Copy the first ``pieces_max`` ids of every text to ``kept`` and return how many they are.

    Parameters
    ----------
    pieces, offsets : as :func:`encode_texts` writes them
    kept : uint16, at least the sum of ``min(count, pieces_max)`` over the texts; written
    kept_offsets : int64 (n + 1,); written
    """
    written: Int = np.int64(0)
    kept_offsets[0] = 0
    for t in range(len(offsets) - 1):
        for p in range(offsets[t], min(offsets[t + 1], offsets[t] + pieces_max)):
            kept[written] = pieces[p]
            written += 1
        kept_offsets[t + 1] = written
    return written
