from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colmem.storage import resident

ARRAYS = {
    "a": np.arange(1000, dtype=np.int64),
    "b": np.array([], np.uint8),
    "c": np.linspace(0, 1, 7, dtype=np.float32),
}
HEADER = {"n": 3, "values": ["x", "ü", "\u2028"]}


def test_round_trip(tmp_path: Path) -> None:
    resident.save(tmp_path, HEADER, ARRAYS)
    loaded = resident.load(tmp_path)
    assert loaded is not None
    header, arrays = loaded
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_changes_never_reach_the_file(tmp_path: Path) -> None:
    resident.save(tmp_path, HEADER, ARRAYS)
    first = resident.load(tmp_path)
    assert first is not None
    first[1]["a"][:] = -1
    second = resident.load(tmp_path)
    assert second is not None
    assert np.array_equal(second[1]["a"], ARRAYS["a"])


@pytest.mark.parametrize("damage", ["absent", "empty", "cut", "header", "magic"])
def test_an_unusable_file_is_ignored(tmp_path: Path, damage: str) -> None:
    resident.save(tmp_path, HEADER, ARRAYS)
    path = tmp_path / resident.FILE_NAME
    data = bytearray(path.read_bytes())
    if damage == "absent":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(data[:-2000])
    else:
        data[0 if damage == "magic" else 40] ^= 255
        path.write_bytes(data)
    assert resident.load(tmp_path) is None
