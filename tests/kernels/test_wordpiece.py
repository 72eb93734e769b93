"""WordPiece and pooling kernels against their twins."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colmem.embed.static import load_tables
from colmem.embed.texts import utf8_buffer
from colmem_kernels import reference_wordpiece, wordpiece

ALPHABETS = (
    "abcdefghij ",
    "ABC xyz 019 .,-_/()[]#@",
    "éÉñÑüÜ çß İıſ ǅ ﬁ",
    "αβΣς абв Ёё ",
    "漢字かなカナ한글 각힣 ",
    "\u0300\u0301\u200b\u00ad\ufeff\t\n\u3000\u2028 a",
    "😀👩\u200d👧🏽\U0001f1eb\U0001f1f7 x",
    "กขค देवनागरी עברית العربية ",
)


def encode(module, texts):
    buffer, offsets = utf8_buffer(texts)
    pieces = np.empty(len(buffer), np.uint16)
    piece_offsets = np.full(len(texts) + 1, -1, np.int64)
    written = module.encode_texts(buffer, offsets, *load_tables()[:6], pieces, piece_offsets)
    assert piece_offsets[0] == 0
    assert piece_offsets[-1] == written
    return pieces[:written], piece_offsets


def assert_same_ids(texts):
    ours, ours_offsets = encode(wordpiece, texts)
    twins, twins_offsets = encode(reference_wordpiece, texts)
    assert ours_offsets.tolist() == twins_offsets.tolist()
    assert ours.tolist() == twins.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_random_texts(seed):
    rng = random.Random(seed)
    texts = []
    for _ in range(300):
        alphabet = "".join(rng.sample(ALPHABETS, rng.randrange(1, 4)))
        texts.append("".join(rng.choices(alphabet, k=rng.randrange(0, 60))))
    assert_same_ids(texts)


def test_random_code_points():
    rng = random.Random(5)
    valid = [*range(0xD800), *range(0xE000, 0x110000)]
    assert_same_ids(["a".join(map(chr, rng.choices(valid, k=20))) for _ in range(500)])


def test_every_code_point_that_is_not_a_plain_word_character():
    tables = load_tables()
    codes = tables.block_codes.reshape(-1, 128)[tables.block_index].reshape(-1)
    points = [p for p in np.flatnonzero(codes).tolist() if not 0xD800 <= p < 0xE000]
    points = [p for p in points if p < 0xE000 or 0xF8FF < p < 0xF0000]
    assert len(points) > 90_000
    hard = [p for p in points if codes[p] not in (4, 5)]
    alike = random.Random(6).sample([p for p in points if codes[p] in (4, 5)], 3000)
    assert_same_ids([f"b{chr(point)}e {chr(point)}" for point in hard + alike])


@pytest.mark.parametrize("length", [98, 99, 100, 101, 102, 300])
@pytest.mark.parametrize("unit", ["a", "é", "각", "字", "\U0001d15e", "ing", "\u0301", "-"])
def test_lengths_around_the_longest_word(unit, length):
    assert_same_ids([unit * length, f"x{unit * length} y", "z" * (length - 1) + unit])


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a"], ["", "a", ""], [" "], ["é"]])
def test_few_and_empty_texts(texts):
    assert_same_ids(texts)


def test_words_of_the_vocabulary_and_their_continuations():
    rng = random.Random(7)
    from colmem.embed.static import _vocabulary

    vocabulary = [piece.removeprefix("##") for piece in _vocabulary()]
    words = ["".join(rng.choices(vocabulary, k=rng.randrange(1, 4))) for _ in range(3000)]
    assert_same_ids(words)


def random_pieces(rng, n, longest):
    counts = rng.integers(0, longest, n)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return rng.integers(0, 30522, offsets[-1]).astype(np.uint16), offsets


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 33])
@pytest.mark.parametrize("longest", [1, 2, 6, 50])
def test_pooling_is_exact_to_the_bit(n, longest):
    tables = load_tables()
    pieces, offsets = random_pieces(np.random.default_rng(n), n, longest)
    ours, twins = np.full((2, n, 256), np.nan, np.float32)
    wordpiece.pool_pieces(pieces, offsets, tables.rows, tables.scales, ours)
    reference_wordpiece.pool_pieces(pieces, offsets, tables.rows, tables.scales, twins)
    assert ours.tobytes() == twins.tobytes()


@pytest.mark.parametrize("pieces_max", [0, 1, 5, 1 << 40])
def test_capping(pieces_max):
    pieces, offsets = random_pieces(np.random.default_rng(1), 21, 12)
    answers = []
    for module in (wordpiece, reference_wordpiece):
        kept, kept_offsets = np.zeros(len(pieces), np.uint16), np.empty_like(offsets)
        written = module.cap_pieces(pieces, offsets, pieces_max, kept, kept_offsets)
        answers.append((written, kept.tolist(), kept_offsets.tolist()))
    assert answers[0] == answers[1]


def test_read_only_inputs_pass_and_strided_ones_are_refused():
    tables = load_tables()
    pieces = np.arange(40, dtype=np.uint16)
    pieces.flags.writeable = False
    vectors = np.empty((1, 256), np.float32)
    offsets = np.array([0, 40], np.int64)
    wordpiece.pool_pieces(pieces, offsets, tables.rows, tables.scales, vectors)
    with pytest.raises(TypeError):
        wordpiece.pool_pieces(pieces[::2], offsets, tables.rows, tables.scales, vectors)
    with pytest.raises(TypeError):
        wordpiece.pool_pieces(pieces, offsets, tables.rows[:, ::2], tables.scales, vectors)
