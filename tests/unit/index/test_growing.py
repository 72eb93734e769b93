from __future__ import annotations

import numpy as np

from colmem.index.growing import Dictionary, GrowingArray


def test_earlier_views_keep_their_values_while_the_array_grows() -> None:
    array = GrowingArray(np.int64)
    views = []
    for i in range(200):
        array.append(list(range(i * 50, i * 50 + 50)))
        views.append(array.values())
    for i, view in enumerate(views):
        assert np.array_equal(view, np.arange((i + 1) * 50))


def test_a_read_only_start_is_copied_before_it_grows() -> None:
    start = np.arange(5)
    start.flags.writeable = False
    array = GrowingArray(np.int64, start)
    array.append([5])
    assert array.values().tolist() == [0, 1, 2, 3, 4, 5]


def test_codes_are_given_in_order_of_first_appearance() -> None:
    words = Dictionary()
    assert words.encode(["b", None, "a", "b", ""]) == [1, 0, 2, 1, 3]
    assert [words.code(v) for v in ("a", "b", "", "c")] == [2, 1, 3, 0]
    assert Dictionary(words.values[1:]).encode(["", "a"]) == [3, 2]


def test_ranks_follow_code_points() -> None:
    words = Dictionary()
    values = ["z", "a", "", "é", "\U00010000", "\uffff", "B"]
    words.encode(values)
    ranks = words.ranks(len(words))
    by_rank = sorted(range(1, len(words)), key=lambda code: ranks[code])
    assert [words.values[code] for code in by_rank] == sorted(values)
