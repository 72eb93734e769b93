"""Make the data files of the embedder static-s256 from the model folder.

    python kernels/tools/build_static_s256.py MODEL_FOLDER src/colmem/embed/data

reads ``static-s256-int8.npz``, ``vocab.txt`` and ``golden_unicode.tsv.gz`` and writes
``rows.npy``, ``scales.npy``, ``wordpiece.npz`` and a copy of ``vocab.txt``. The same input gives
the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# The layout below is read by kernels/colmem_kernels/wordpiece.py; change both together.
WORD, DROP, SPACE, PUNCT, CJK, HANGUL, NOT_ASCII = range(7)
MAPPED = 8
BLOCK = 128
CODE_POINTS = 0x110000
CHECK_BITS, ID_BITS = 20, 16
EMPTY = (1 << CHECK_BITS) - 1
ROOT_START, ROOT_CONTINUE = 1, 2
HANGUL_FIRST, HANGUL_LAST = 0xAC00, 0xD7A3


def read_unicode(path: Path) -> dict[int, tuple[str, tuple[int, ...] | None]]:
    """Class and mapping of every listed code point; the others are words and stay themselves."""
    table: dict[int, tuple[str, tuple[int, ...] | None]] = {}
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            first, last, kind, mapped = line.rstrip("\n").split("\t")
            targets = None if mapped == "-" else tuple(int(part, 16) for part in mapped.split())
            for code_point in range(int(first, 16), int(last, 16) + 1):
                table[code_point] = (kind, targets)
    return table


def hangul_jamo(code_point: int) -> tuple[int, ...]:
    """Canonical decomposition of a Hangul syllable (The Unicode Standard, section 3.12)."""
    index = code_point - HANGUL_FIRST
    lead, vowel, tail = index // 588, index % 588 // 28, index % 28
    jamo = (0x1100 + lead, 0x1161 + vowel)
    return (*jamo, 0x11A7 + tail) if tail else jamo


def unicode_tables(
    table: dict[int, tuple[str, tuple[int, ...] | None]],
) -> dict[str, npt.NDArray[Any]]:
    """Two-stage code table and the pool of mapped texts."""
    kinds = {"word": WORD, "drop": DROP, "space": SPACE, "punct": PUNCT, "cjk": CJK}
    codes = np.zeros(CODE_POINTS, np.uint16)
    entries: dict[tuple[int, tuple[int, ...]], int] = {}
    pool = bytearray()
    entry_rows: list[tuple[int, int, int, int]] = []
    for code_point, (kind, targets) in table.items():
        if HANGUL_FIRST <= code_point <= HANGUL_LAST:
            if kind != "word" or targets != hangul_jamo(code_point):
                raise ValueError(f"U+{code_point:04X} is not mapped to its jamo")
            codes[code_point] = HANGUL
        elif targets is None:
            codes[code_point] = kinds[kind]
        else:
            key = (kinds[kind], targets)
            if key not in entries:
                entries[key] = len(entries)
                text = "".join(map(chr, targets)).encode()
                entry_rows.append((len(pool), len(text), len(targets), kinds[kind]))
                pool += text
            codes[code_point] = MAPPED + entries[key]
            # The kernel sizes its list of pieces by the bytes of the text, and its buffer by 16.
            if len(targets) > min(len(chr(code_point).encode()), 3):
                raise ValueError(f"U+{code_point:04X} grows to {len(targets)} characters")
    blocks: dict[bytes, int] = {}
    index = np.empty(CODE_POINTS // BLOCK, np.uint16)
    for number in range(len(index)):
        block = codes[number * BLOCK : (number + 1) * BLOCK].tobytes()
        index[number] = blocks.setdefault(block, len(blocks))
    ascii_map = np.zeros(256, np.uint8)
    for byte in range(128):
        kind, targets = table.get(byte, ("word", None))
        ascii_map[byte] = (targets or (byte,))[0] if kind == "word" else kinds[kind]
    ascii_map[128:] = NOT_ASCII
    return {
        "ascii_map": ascii_map,
        "block_index": index,
        "block_codes": np.frombuffer(b"".join(blocks), np.uint16),
        "map_entries": np.array(entry_rows, np.int32).reshape(-1),
        "map_pool": np.frombuffer(bytes(pool), np.uint8),
    }


def build_trie(vocab: list[str]) -> npt.NDArray[np.int64]:
    """Double-array trie over the UTF-8 bytes of the pieces, one root for starts, one for ``##``.

    A node is ``base << 36 | (id + 1) << 20 | parent``; id + 1 is 0 for a node that ends no piece.
    Source: Aoe, "An efficient digital search algorithm by using a double-array structure", 1989.
    """
    children: list[dict[int, int]] = [{}, {}, {}]
    ends: list[int] = [-1, -1, -1]
    for identity, piece in enumerate(vocab):
        continues = piece.startswith("##") and len(piece) > 2
        node = ROOT_CONTINUE if continues else ROOT_START
        for byte in piece[2:].encode() if continues else piece.encode():
            if byte not in children[node]:
                children[node][byte] = len(children)
                children.append({})
                ends.append(-1)
            node = children[node][byte]
        ends[node] = identity
    slots = np.full(1 << CHECK_BITS, EMPTY, np.int64)
    taken = np.zeros(1 << CHECK_BITS, np.bool_)
    taken[:3] = True
    place = {ROOT_START: ROOT_START, ROOT_CONTINUE: ROOT_CONTINUE}
    bases = {}
    first_free = 3
    queue = [ROOT_START, ROOT_CONTINUE]
    for node in queue:  # breadth first, in the order of the vocabulary: frequent pieces lie close
        if not children[node]:
            bases[node] = 0
            continue
        labels = np.array(sorted(children[node]))
        first_free += int(np.argmin(taken[first_free:]))
        low = max(first_free - int(labels[0]), 1)
        while True:
            clash = np.zeros(4096, np.bool_)
            for label in labels:
                clash |= taken[low + label : low + label + 4096]
            if not clash.all():
                break
            low += 4096
        base = low + int(np.argmin(clash))
        bases[node] = base
        taken[base + labels] = True
        for label, child in children[node].items():
            place[child] = base + label
            slots[base + label] = place[node]
            queue.append(child)
    for node in queue:
        check = slots[place[node]]
        slots[place[node]] = bases[node] << (CHECK_BITS + ID_BITS) | (ends[node] + 1) << CHECK_BITS
        slots[place[node]] |= check
    size = max(place.values()) + 257
    if size >= EMPTY or len(vocab) >= 1 << ID_BITS:
        raise ValueError(f"{size} slots and {len(vocab)} pieces do not fit a node")
    return slots[:size].copy()


def write_npz(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """An npz file with fixed times, so that the bytes depend on the arrays alone."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(arrays):
            body = BytesIO()
            np.save(body, arrays[name], allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, body.getvalue())


def main() -> None:
    """Read the model folder, write the data folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    vocab = (args.model / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    arrays = unicode_tables(read_unicode(args.model / "golden_unicode.tsv.gz"))
    arrays["nodes"] = build_trie(vocab)
    marks = {
        code_point
        for code_point, (kind, _) in read_unicode(args.model / "golden_unicode.tsv.gz").items()
        if kind == "punct"
    }
    bare = [piece[2:] if piece.startswith("##") and len(piece) > 2 else piece for piece in vocab]
    punctuation = [all(ord(character) in marks for character in piece) for piece in bare]
    arrays["punctuation"] = np.array(punctuation, np.bool_)
    args.out.mkdir(parents=True, exist_ok=True)
    write_npz(args.out / "wordpiece.npz", arrays)
    with np.load(args.model / "static-s256-int8.npz") as model:
        np.save(args.out / "rows.npy", np.ascontiguousarray(model["table"]))
        np.save(args.out / "scales.npy", model["scale"])
    if (args.model / "vocab.txt").resolve() != (args.out / "vocab.txt").resolve():
        shutil.copyfile(args.model / "vocab.txt", args.out / "vocab.txt")


if __name__ == "__main__":
    main()
