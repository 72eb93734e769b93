from __future__ import annotations

import pytest

from colmem import cursors
from colmem.contract import InvalidRequest, MetaFilter

KEY = cursors.digest("list", MetaFilter(folder="/a"))


@pytest.mark.parametrize("position", [0, 1, 2**40])
def test_round_trip(position: int) -> None:
    assert cursors.decode_position(cursors.encode_position(KEY, position), KEY) == position


@pytest.mark.parametrize(
    "cursor", ["", "0", "abc", "é", "!" * 22, "A" * 22, "A" * 1000, "\ud800", " "]
)
def test_an_unknown_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="unknown cursor"):
        cursors.decode_position(cursor, KEY)


def test_a_cursor_of_another_request_is_refused() -> None:
    cursor = cursors.encode_position(KEY, 5)
    for other in (
        cursors.digest("list", MetaFilter(folder="/b")),
        cursors.digest("keyword", MetaFilter(folder="/a")),
        cursors.digest("list", MetaFilter(folder="/a"), "query"),
    ):
        with pytest.raises(InvalidRequest, match="unknown cursor"):
            cursors.decode_position(cursor, other)
