from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmem.index.keys import KeyIndex, key_of, keys_of, keys_of_rows

HEX = "0123456789abcdef" * 4
NAMES = [HEX, HEX[:40], HEX.upper(), "f" * 64, " " * 40, "0_" * 32, "ab " * 21 + "c", "é" * 64, "x"]
NAMES += ["-" + "1" * 39, "-" + "1" * 31, "1" * 16 + "-" + "1" * 15, "+" + "1" * 63, "٣" * 32]


def live(n: int) -> np.ndarray:
    return np.ones(n, np.uint8)


def test_a_fingerprint_shares_the_key_of_its_digest() -> None:
    assert key_of(HEX[:40]) == key_of(HEX)
    name = HEX[:40]
    keys, rows = keys_of_rows([name], [HEX], [name])
    assert (keys.tolist(), rows.tolist()) == ([key_of(HEX)], [0])
    keys, rows = keys_of_rows(["an id"], [HEX], ["f" * 40])
    assert (len(set(keys.tolist())), rows.tolist()) == (3, [0, 0, 0])


@pytest.mark.parametrize("text", ["", "x", "z" * 40, "é" * 64, "\ud800", "0x" + "1" * 38, *NAMES])
def test_any_text_has_a_key(text: str) -> None:
    assert 0 <= key_of(text) < 2**64


@given(st.lists(st.sampled_from(NAMES), max_size=6))
def test_keys_of_many_names_are_those_of_each(names: list[str]) -> None:
    assert keys_of(names).tolist() == [key_of(name) for name in names]


def test_rows_are_found_after_growth() -> None:
    index = KeyIndex()
    names = [f"name {i}" for i in range(20_000)]
    for start in range(0, len(names), 1_000):
        part = range(start, start + 1_000)
        index.add(keys_of([names[i] for i in part]), np.array(part), live(start))
    found = index.find_first(names, live(len(names)))
    assert np.array_equal(found, np.arange(len(names)))
    assert (index.find_first([f"other {i}" for i in range(5_000)], live(len(names))) == -1).all()


def test_forgotten_rows_are_not_found_and_their_slots_are_reused() -> None:
    index = KeyIndex()
    alive = np.zeros(1_000, np.uint8)
    for row in range(1_000):
        index.add(keys_of(["again"]), np.array([row]), alive[:row])
        alive[row] = 1
        assert index.find("again", alive[: row + 1]) == [row]
        alive[row] = 0
    assert index.find("again", alive) == []
    assert int((index.arrays()[1] >= 0).sum()) == 1


def test_one_key_may_hold_several_rows() -> None:
    index = KeyIndex()
    index.add(np.full(3, 7, np.uint64), np.array([1, 2, 3]), live(0))
    out = KeyIndex(index.arrays())
    keys, rows = out.arrays()
    assert sorted(rows[keys == 7]) == [1, 2, 3]
