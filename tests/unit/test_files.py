from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colmem.files import AppendFile


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_arrays_stay_valid_while_the_file_grows(tmp_path: Path, where: str) -> None:
    file = AppendFile(tmp_path / "f" if where == "disk" else None, length=0)
    held = []
    for i in range(60):
        file.append(np.full(1000, i, np.int32).data, sync=i % 20 == 0)
        held.append(file.array(np.int32, (i + 1) * 1000))
    for i, array in enumerate(held):
        assert np.array_equal(array, np.repeat(np.arange(i + 1), 1000))
        assert not array.flags.writeable
    assert file.read(4000, 4) == np.int32(1).tobytes()
    file.close()


def test_what_lies_past_the_length_is_overwritten(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "f", length=0)
    file.append(b"committed" + b"torn", sync=True)
    file.close()
    file = AppendFile(tmp_path / "f", length=9)
    assert file.append(b"!", sync=True) == 9
    assert file.read(0, 10) == b"committed!"
    file.close()


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with pytest.raises(ValueError, match="holds 3 bytes, expected at least 4"):
        AppendFile(tmp_path / "f", length=4)
