"""The helpers of the line reader, each against the obvious way of doing it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colmem.snapshot import lines
from colmem.snapshot.limits import DEFAULT_LIMITS, Limits
from colmem.snapshot.nesting import depth, is_deeper
from colmem.snapshot.parse import _has_digits


@settings(max_examples=100, deadline=None)
@given(st.text("01x", max_size=40), st.integers(2, 8))
def test_rows_of_digits(text: str, n: int) -> None:
    found = re.search(rf"\d{{{n}}}", text) is not None
    assert _has_digits(text.encode(), n) is found


def nested(value: object) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(nested, value), default=0) if isinstance(value, list) else 0


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.text('[]{}"\\', max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text('"[', max_size=3), inner)
        ),
        max_leaves=8,
    )
)
def test_depth_of_json_text(value: object) -> None:
    text = json.dumps(value).encode()
    assert depth(text) == nested(value)
    assert is_deeper(text, 2) is (nested(value) > 2)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60).map(lambda data: data.translate(TO_FEW)), st.integers(1, 9))
def test_lines_end_as_universal_newlines_do(data: bytes, size: int) -> None:
    blocks = [(data[i : i + size], i) for i in range(0, len(data), size)]
    found = [
        line
        for group, _ in lines.line_groups(blocks, name="x", limits=DEFAULT_LIMITS)
        for line in group
    ]
    text = data.decode()
    expected = re.split("\r\n|\r|\n", text)
    if not expected[-1]:
        expected.pop()
    assert [line.decode() for line in found] == expected
    assert lines.count_records(
        [block for block, _ in blocks], name="x", limits=DEFAULT_LIMITS
    ) == sum(bool(line.strip()) for line in expected)


TO_FEW = bytes(b"\n\r{} a"[i % 6] for i in range(256))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_long_lines_are_refused_in_any_blocks(size: int) -> None:
    data = b"short\n" + b"x" * 60 + b"\n"
    blocks = [(data[i : i + size], i) for i in range(0, len(data), size)]
    limits = Limits(line_bytes_max=50)
    with pytest.raises(lines.SnapshotReadError, match="line 2"):
        list(lines.line_groups(blocks, name="x", limits=limits))
