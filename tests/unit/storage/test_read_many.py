"""Items read from the row log at once are those read one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmem.storage import rowlog
from colmem.storage.rowlog import RowLog


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RowLog:
    return RowLog(tmp_path_factory.mktemp("log"), length=0)


@pytest.fixture(scope="module")
def places(log: RowLog) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    puts = []
    for first in range(0, 300, 100):
        sizes = rng.integers(0, 3 * rowlog._GAP_BYTES, 100)
        puts.append(log.put(first, [rng.bytes(size) for size in sizes]))
    return np.concatenate([p.offsets for p in puts]), np.concatenate([p.lengths for p in puts])


@given(rows=st.lists(st.integers(0, 299), max_size=600))
def test_any_rows_in_any_order(
    rows: list[int], log: RowLog, places: tuple[np.ndarray, np.ndarray]
) -> None:
    offsets, lengths = places[0][rows], places[1][rows]
    one_by_one = list(map(log.read, offsets.tolist(), lengths.tolist()))
    assert log.read_many(offsets, lengths) == one_by_one
