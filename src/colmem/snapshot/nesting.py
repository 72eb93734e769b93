"""How deep JSON text nests, found without parsing it."""

from __future__ import annotations

import re

COLUMN_DEPTH_MAX = 798
"""Levels of a JSON column: a little less than a line may have by default."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def depth(text: bytes) -> int:
    """Count the levels of arrays and objects in JSON text."""
    now = deepest = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in (b"[", b"{"):
            now += 1
            deepest = max(deepest, now)
        elif token in (b"]", b"}"):
            now -= 1
    return deepest


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether text nests deeper than that; most text is too short of brackets to be looked at."""
    return text.count(b"[") + text.count(b"{") > levels and depth(text) > levels
