"""static-s256: golden ids and vectors, Unicode rules, pieces, flags, determinism, threads."""

from __future__ import annotations

import hashlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colmem.contract.errors import InvalidRequest
from colmem.embed import embedder
from colmem.embed import static as static_module
from colmem.function_words import FUNCTION_WORDS

SPECIAL_IDS = {0, 100, 101, 102, 103}
LITERALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="module")
def static():
    return embedder("static-s256")


def split(pieces, offsets):
    return [pieces[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def holds_literal(text):
    return any(literal in text for literal in LITERALS)


def test_golden_ids_are_exact(static, golden_embeddings):
    _, pieces, offsets = static.embed_pieces([r["text"] for r in golden_embeddings], 1 << 40)
    checked = 0
    for record, ids in zip(golden_embeddings, split(pieces, offsets), strict=True):
        if not holds_literal(record["text"]):
            assert ids == record["ids"], (record["n"], record["kind"])
            checked += 1
    assert checked >= 480


def test_golden_vectors_are_exact_to_the_bit(static, golden_embeddings):
    vectors = static.embed([r["text"] for r in golden_embeddings])
    full = 0
    for record, vector in zip(golden_embeddings, vectors, strict=True):
        if holds_literal(record["text"]):
            continue
        np.testing.assert_allclose(vector[:8], record["head"], atol=1e-5)
        assert hashlib.sha256(vector.astype("<f4").tobytes()).hexdigest() == record["sha256"]
        if "vector" in record:
            np.testing.assert_allclose(vector, record["vector"], atol=1e-5)
            full += 1
    assert full >= 40


@pytest.mark.parametrize("literal", LITERALS)
def test_special_literals_are_plain_text(static, literal):
    ids = static.pieces(f"the {literal} sat")
    assert not SPECIAL_IDS & set(ids.tolist())
    assert [static.piece_text(i) for i in ids][:2] == ["the", "["]
    assert ids.tolist() == static.pieces(f"the {literal.lower()} sat").tolist()


def test_every_code_point_is_treated_as_the_golden_table_says(static, golden_unicode):
    tables = static_module.load_tables()
    codes = tables.block_codes.reshape(-1, 128)[tables.block_index].reshape(-1)
    names = {0: "word", 1: "drop", 2: "space", 3: "punct", 4: "cjk"}
    entries = tables.map_entries.reshape(-1, 4)
    pool = tables.map_pool.tobytes()
    assert len(codes) == 0x110000
    listed = np.zeros(0x110000, np.bool_)
    listed[list(golden_unicode)] = True
    assert not codes[~listed].any()
    for code_point, (kind, targets) in golden_unicode.items():
        code = int(codes[code_point])
        if code == 5:
            assert (kind, 0xAC00 <= code_point <= 0xD7A3) == ("word", True)
        elif code < 8:
            assert (names[code], targets) == (kind, None), hex(code_point)
        else:
            start, size, n_chars, held = entries[code - 8].tolist()
            text = pool[start : start + size].decode()
            assert (names[held], tuple(map(ord, text))) == (kind, targets), hex(code_point)
            assert n_chars == len(text)


def test_every_listed_code_point_gives_the_ids_of_what_it_becomes(static, golden_unicode):
    # A mapped character must give what its targets give where those are left as they are.
    points = [p for p in golden_unicode if not 0xD800 <= p < 0xE000]
    points = [p for p in points if p < 0xE000 or 0xF8FF < p < 0xF0000]
    texts, expected = [], []
    for point in points:
        kind, targets = golden_unicode[point]
        spelled = "".join(map(chr, targets)) if targets else chr(point)
        texts.append(f"x{chr(point)}y 7{chr(point)}")
        gap = {"word": spelled, "drop": "", "space": " "}.get(kind, f" {spelled} ")
        expected.append(f"x{gap}y 7{gap}")
    left = split(*static.embed_pieces(texts, 1 << 40)[1:])
    right = split(*static.embed_pieces(expected, 1 << 40)[1:])
    for point, one, other in zip(points, left, right, strict=True):
        assert one == other, hex(point)


@pytest.mark.parametrize("batch", [1, 2, 7, 8, 9, 100])
def test_batches_do_not_change_vectors(static, golden_embeddings, batch):
    texts = [r["text"] for r in golden_embeddings]
    whole = static.embed(texts)
    parts = [static.embed(texts[i : i + batch]) for i in range(0, len(texts), batch)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_no_texts_and_empty_texts(static):
    assert static.embed([]).shape == (0, 256)
    vectors, pieces, offsets = static.embed_pieces(["", " \t\n", "\u0301\u200b"])
    assert not vectors.any()
    assert pieces.shape == (0,)
    assert offsets.tolist() == [0, 0, 0, 0]
    assert static.pieces("").shape == (0,)


def test_vectors_are_normalised_float32(static, golden_embeddings):
    vectors = static.embed([r["text"] for r in golden_embeddings])
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert np.all((np.abs(norms - 1) < 1e-6) | (norms == 0))


def test_pieces_are_capped_but_vectors_see_them_all(static):
    text = "alpha " * 200 + "omega"
    vectors, pieces, offsets = static.embed_pieces([text, "short", text])
    assert np.diff(offsets).tolist() == [128, 1, 128]
    assert pieces.dtype == np.uint16
    assert vectors.tobytes() == static.embed([text, "short", text]).tobytes()
    assert (vectors[0] != static.embed(["alpha " * 128])[0]).any()
    assert len(static.pieces(text)) == 201


def test_a_very_long_text(static):
    text = "naïve café 東京 x" * 200_000
    ids = static.pieces(text)
    assert (
        ids.tolist()
        == static.pieces("naïve café 東京 x").tolist()[:-1]
        + (static.pieces("xnaïve café 東京 ").tolist() * 199_999)
        + static.pieces("x").tolist()
    )
    assert np.isclose(np.linalg.norm(static.embed([text])[0]), 1)


@pytest.mark.parametrize(("length", "known"), [(100, True), (101, False)])
def test_words_over_a_hundred_characters_are_unknown(static, length, known):
    ids = static.pieces("a" * length).tolist()
    assert (ids != [100]) == known
    assert static.pieces("É" * length).tolist() == static.pieces("e" * length).tolist()


def test_a_lone_surrogate_is_refused_with_its_place(static):
    with pytest.raises(InvalidRequest, match=r"text 1 .* character 2 .* U\+DC80"):
        static.embed(["fine", "ab\udc80"])
    with pytest.raises(InvalidRequest):
        static.pieces("\ud83d")


def test_row_vectors_are_the_normalised_rows(static):
    ids = static.pieces("ownership moves values")
    rows = static.row_vectors(ids)
    assert rows.shape == (3, 256)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, static.embed(["ownership", "moves", "values"]), atol=1e-6)
    again = static.rows[ids].astype(np.float32) * static.row_inverse_norms[ids][:, None]
    np.testing.assert_allclose(again, rows, atol=1e-6)


def test_flags_and_texts_of_pieces(static):
    ids = static.pieces("Who owns the values?").tolist()
    texts = [static.piece_text(i) for i in ids]
    assert texts == ["who", "owns", "the", "values", "?"]
    assert static.is_function_word[ids].tolist() == [True, False, True, False, False]
    assert static.is_punctuation[ids].tolist() == [False, False, False, False, True]
    assert 90 <= static.is_function_word.sum() <= len(FUNCTION_WORDS)
    assert not (static.is_function_word & static.is_punctuation).any()


def test_threads_get_the_same_vectors(static, golden_embeddings):
    texts = [r["text"] for r in golden_embeddings]
    whole = static.embed(texts).tobytes()
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: static.embed(texts).tobytes(), range(32)):
            assert answer == whole


def test_tables_are_read_once_by_racing_threads(monkeypatch):
    monkeypatch.setattr(static_module, "_tables", None)
    barrier = threading.Barrier(8)
    seen = []

    def load():
        barrier.wait()
        seen.append(static_module.load_tables())

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({id(tables) for tables in seen}) == 1
