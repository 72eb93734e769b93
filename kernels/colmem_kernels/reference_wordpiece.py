"""Plain twins of :mod:`colmem_kernels.wordpiece`: same names, same results, written to be read.

They take the same tables, decode each text to characters, split it into words, and try every prefix
of a word from the longest to the shortest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

WORD, DROP, SPACE, PUNCT, CJK, HANGUL, MAPPED = 0, 1, 2, 3, 4, 5, 8
ROOT_START, ROOT_CONTINUE = 1, 2
UNKNOWN = 100
WORD_CHARS_MAX = 100


def normalise(
    code_point: int,
    block_index: npt.NDArray[np.uint16],
    block_codes: npt.NDArray[np.uint16],
    map_entries: npt.NDArray[np.int32],
    map_pool: npt.NDArray[np.uint8],
) -> tuple[int, str]:
    """Class of a code point and the text it becomes."""
    code = int(block_codes[int(block_index[code_point // 128]) * 128 + code_point % 128])
    if code >= MAPPED:
        start, size, _, kind = (int(v) for v in map_entries[(code - MAPPED) * 4 :][:4])
        return kind, map_pool[start : start + size].tobytes().decode()
    if code == HANGUL:
        syllable = code_point - 0xAC00
        lead, vowel, tail = syllable // 588, syllable % 588 // 28, syllable % 28
        jamo = chr(0x1100 + lead) + chr(0x1161 + vowel)
        return WORD, jamo + chr(0x11A7 + tail) if tail else jamo
    return code, chr(code_point)


def split_words(text: str, *tables: npt.NDArray[Any]) -> Iterator[str]:
    """Words of a text after normalisation, in order."""
    word = ""
    for character in text:
        kind, spelling = normalise(ord(character), *tables)
        if kind == WORD:
            word += spelling
            continue
        if kind == DROP:
            continue
        if word:
            yield word
        word = ""
        if kind in (PUNCT, CJK):
            yield spelling
    if word:
        yield word


def _lookup(piece: str, root: int, nodes: npt.NDArray[np.int64]) -> int | None:
    state = root
    for byte in piece.encode():
        slot = (int(nodes[state]) >> 36) + byte
        if int(nodes[slot]) & 0xFFFFF != state:
            return None
        state = slot
    identity = (int(nodes[state]) >> 20 & 0xFFFF) - 1
    return identity if identity >= 0 else None


def word_pieces(word: str, nodes: npt.NDArray[np.int64]) -> list[int]:
    """Greedy longest-match pieces of a word; one [UNK] when it cannot be matched to its end."""
    if len(word) > WORD_CHARS_MAX:
        return [UNKNOWN]
    pieces: list[int] = []
    begin = 0
    while begin < len(word):
        root = ROOT_CONTINUE if begin else ROOT_START
        for end in range(len(word), begin, -1):
            identity = _lookup(word[begin:end], root, nodes)
            if identity is not None:
                pieces.append(identity)
                begin = end
                break
        else:
            return [UNKNOWN]
    return pieces


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
) -> int:
    """Write the WordPiece ids of every text; see the kernel of this name (no use of ascii_map)."""
    written = 0
    piece_offsets[0] = 0
    for t in range(len(offsets) - 1):
        characters = text[offsets[t] : offsets[t + 1]].tobytes().decode()
        for word in split_words(characters, block_index, block_codes, map_entries, map_pool):
            ids = word_pieces(word, nodes)
            pieces[written : written + len(ids)] = ids
            written += len(ids)
        piece_offsets[t + 1] = written
    return written


def pool_pieces(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float32],
) -> None:
    """Write the normalised sum of the rows of every text's pieces; see the kernel of this name."""
    for t in range(len(offsets) - 1):
        total = np.zeros(rows.shape[1], np.float32)
        for piece in pieces[offsets[t] : offsets[t + 1]]:
            total += rows[piece].astype(np.float32) * scales[piece]
        squares = 0.0
        for value in total.tolist():
            squares += value * value
        vectors[t] = total.astype(np.float64) / np.sqrt(squares) if squares else total


def cap_pieces(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    pieces_max: int,
    kept: npt.NDArray[np.uint16],
    kept_offsets: npt.NDArray[np.int64],
) -> int:
    """Copy the first ``pieces_max`` ids of every text; see the kernel of this name."""
    written = 0
    kept_offsets[0] = 0
    for t in range(len(offsets) - 1):
        part = pieces[offsets[t] : offsets[t + 1]][:pieces_max]
        kept[written : written + len(part)] = part
        written += len(part)
        kept_offsets[t + 1] = written
    return written
