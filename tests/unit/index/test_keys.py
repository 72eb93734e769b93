from __future__ import annotations

import numpy as np
import pytest

from colmem.index.keys import KeyIndex, key_of, keys_of

HEX = "0123456789abcdef" * 4


def live(n: int) -> np.ndarray:
    return np.ones(n, np.uint8)


def test_a_fingerprint_shares_the_key_of_its_digest() -> None:
    assert key_of(HEX[:40]) == key_of(HEX)
    assert keys_of(HEX[:40], HEX, HEX[:40]) == [key_of(HEX)]
    assert len(keys_of("an id", HEX, "f" * 40)) == 3


@pytest.mark.parametrize("text", ["", "x", "z" * 40, "é" * 64, "\ud800", "0x" + "1" * 38])
def test_any_text_has_a_key(text: str) -> None:
    assert 0 <= key_of(text) < 2**64


def test_rows_are_found_after_growth() -> None:
    index = KeyIndex()
    names = [f"name {i}" for i in range(20_000)]
    for start in range(0, len(names), 1_000):
        part = range(start, start + 1_000)
        index.add([key_of(names[i]) for i in part], list(part), live(start))
    found = index.find_first(names, live(len(names)))
    assert np.array_equal(found, np.arange(len(names)))
    assert (index.find_first([f"other {i}" for i in range(5_000)], live(len(names))) == -1).all()


def test_forgotten_rows_are_not_found_and_their_slots_are_reused() -> None:
    index = KeyIndex()
    alive = np.zeros(1_000, np.uint8)
    for row in range(1_000):
        index.add([key_of("again")], [row], alive[:row])
        alive[row] = 1
        assert index.find("again", alive[: row + 1]) == [row]
        alive[row] = 0
    assert index.find("again", alive) == []
    assert int((index.arrays()[1] >= 0).sum()) == 1


def test_one_key_may_hold_several_rows() -> None:
    index = KeyIndex()
    index.add([7, 7, 7], [1, 2, 3], live(0))
    out = KeyIndex(index.arrays())
    keys, rows = out.arrays()
    assert sorted(rows[keys == 7]) == [1, 2, 3]
