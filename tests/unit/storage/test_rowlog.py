from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colmem.contract import CorruptStore
from colmem.storage.rowlog import Forget, Put, RowLog

BLOBS = [b"alpha", b"", b"gamma" * 100]


def written(folder: Path) -> RowLog:
    log = RowLog(folder, length=0)
    log.put(0, BLOBS)
    log.forget(np.array([1], np.int64))
    log.put(3, [b"delta"], np.array([0], np.int64))
    return log


def test_frames_come_back_as_written(tmp_path: Path) -> None:
    written(tmp_path).close()
    log = RowLog(tmp_path, length=0)
    first, forget, second = list(log.recover())
    assert isinstance(first, Put)
    assert first.blobs == BLOBS
    assert isinstance(forget, Forget)
    assert forget.rows.tolist() == [1]
    assert isinstance(second, Put)
    assert (second.first_row, second.blobs, second.gone.tolist()) == (3, [b"delta"], [0])
    assert log.length == second.end == (tmp_path / "items.log").stat().st_size


def test_items_are_read_at_their_offsets(tmp_path: Path) -> None:
    log = RowLog(tmp_path, length=0)
    put = log.put(0, BLOBS)
    read = [log.read(int(o), int(n)) for o, n in zip(put.offsets, put.lengths, strict=True)]
    assert read == BLOBS


@pytest.mark.parametrize("n_lost", [1, 7, 30])
def test_a_torn_last_frame_is_dropped_and_overwritten(tmp_path: Path, n_lost: int) -> None:
    log = written(tmp_path)
    end, path = log.length, tmp_path / "items.log"
    log.put(4, [b"unacknowledged"])
    log.close()
    path.write_bytes(path.read_bytes()[:-n_lost])
    log = RowLog(tmp_path, length=0)
    assert len(list(log.recover())) == 3
    assert log.length == end
    log.put(4, [b"next"])
    assert [f.blobs for f in log.frames(end, log.length) if isinstance(f, Put)] == [[b"next"]]


def test_damage_before_a_whole_frame_is_refused(tmp_path: Path) -> None:
    written(tmp_path).close()
    path = tmp_path / "items.log"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptStore, match=r"damaged at byte 0.*--repair"):
        list(RowLog(tmp_path, length=0).recover())


def test_a_log_shorter_than_recorded_is_refused(tmp_path: Path) -> None:
    log = written(tmp_path)
    length = log.length
    log.close()
    with pytest.raises(CorruptStore, match="shorter than recorded"):
        RowLog(tmp_path, length=length + 1)


def test_memory_keeps_the_same_frames() -> None:
    log = RowLog(None, length=0)
    put = log.put(0, BLOBS)
    assert log.read(int(put.offsets[2]), int(put.lengths[2])) == BLOBS[2]
    assert len(list(log.frames(0, log.length))) == 1
