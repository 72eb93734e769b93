"""The vector index against brute force: search, growth, reopening, damage, threads."""

import os
import threading

import numpy as np
import pytest

from colmem.contract.errors import CorruptStore, EngineError, InvalidRequest
from colmem.index import codes as codes_module
from colmem.index import vector, vector_code_search
from colmem.index.vector import VectorIndex
from colmem.schema import Admitted

MASKS = {
    "none": lambda n, rng: np.zeros(n, np.uint8),
    "one": lambda n, rng: (np.arange(n) == n // 2).astype(np.uint8),
    "three": lambda n, rng: np.isin(np.arange(n), [0, n // 3, n - 1]).astype(np.uint8),
    "few": lambda n, rng: (rng.random(n) < 0.01).astype(np.uint8),
    "half": lambda n, rng: (rng.random(n) < 0.5).astype(np.uint8),
    "all": lambda n, rng: np.ones(n, np.uint8),
}
CODED_ROWS = 20_000


def _unit(rng, *shape):
    vectors = rng.standard_normal(shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _clustered(rng, n, dim):
    centres = _unit(rng, 50, dim)
    vectors = centres[rng.integers(0, 50, n)] + 0.8 * _unit(rng, n, dim)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _admit(mask):
    return Admitted(mask, int(np.count_nonzero(mask)), bool(mask.all()))


def _filled(vectors, folder=None, step=None):
    index = VectorIndex(folder, vectors.shape[1], n_rows=0)
    step = step or max(1, len(vectors))
    for first in range(0, len(vectors), step):
        part = np.ascontiguousarray(vectors[first : first + step])
        assert index.append(part, sync=False) == first
        index.publish(first + len(part))
    return index


def _truth(vectors, query, mask, k):
    return _best(vectors.astype(np.float64) @ query.astype(np.float64), mask, k)


def _best(scores, mask, k):
    rows = np.flatnonzero(mask)
    best = rows[np.lexsort((rows, -scores[rows]))[:k]]
    return best, scores[best], scores[rows]


@pytest.fixture(scope="module")
def coded():
    rng = np.random.default_rng(11)
    vectors = _clustered(rng, CODED_ROWS, 256)
    vectors[7000] = 0.0  # An item without an embedding.
    index = _filled(vectors, step=3001)
    yield index, vectors, _clustered(rng, 25, 256)
    index.close()


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dim", [1, 3, 64, 256])
@pytest.mark.parametrize("n", [1, 40, 3000])
def test_small_stores_are_exact(n, dim, kind):
    rng = np.random.default_rng([n, dim])
    vectors, query = _unit(rng, n, dim), _unit(rng, dim)
    mask = MASKS[kind](n, rng)
    index = _filled(vectors)
    for k in (0, 1, 10, n + 5):
        found, lowest, highest = index.search_with_bounds(query, k, _admit(mask))
        rows, scores, all_scores = _truth(vectors, query, mask, k)
        if dim > 3:  # In few dimensions many scores are ties up to rounding.
            assert found.rows.tolist() == rows.tolist()
        np.testing.assert_allclose(found.scores, scores, atol=1e-5)
        expected = (all_scores.min(), all_scores.max()) if len(all_scores) else (0.0, 0.0)
        np.testing.assert_allclose((lowest, highest), expected, atol=1e-5)
        assert found.rows.dtype == np.int64
        assert found.scores.dtype == np.float32


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("exact", [False, True])
def test_coded_stores_find_nearly_all(coded, kind, exact):
    index, vectors, queries = coded
    mask = MASKS[kind](len(vectors), np.random.default_rng(3))
    truth = vectors @ queries.T
    for k in (1, 10, 200):
        shares = []
        for query, query_scores in zip(queries, truth.T, strict=True):
            found, lowest, highest = index.search_with_bounds(query, k, _admit(mask), exact=exact)
            rows, scores, all_scores = _best(query_scores, mask, k)
            assert len(found.rows) == len(rows)
            assert mask[found.rows].all()
            order = np.lexsort((found.rows, -found.scores))
            assert order.tolist() == list(range(len(order)))
            np.testing.assert_allclose(found.scores, vectors[found.rows] @ query, atol=1e-5)
            if len(rows):
                shares.append(np.mean(found.scores >= scores[-1] - 1e-6))
                assert highest == pytest.approx(all_scores.max(), abs=1e-5)
                assert lowest == pytest.approx(all_scores.min(), abs=0.02)
        assert np.mean(shares or [1.0]) >= (1.0 if exact else 0.99)


def test_threads_never_change_an_answer(coded, monkeypatch):
    index, vectors, queries = coded
    monkeypatch.setattr("colmem.index.vector_search._SPLIT_ROWS_MIN", 100)
    for kind in ("half", "all"):
        admitted = _admit(MASKS[kind](len(vectors), np.random.default_rng(5)))
        for query in queries[:10]:
            for exact in (False, True):
                one, *bounds = index.search_with_bounds(query, 50, admitted, exact=exact)
                for threads in (2, 4):
                    many, *many_bounds = index.search_with_bounds(
                        query, 50, admitted, exact=exact, threads=threads
                    )
                    assert many.rows.tolist() == one.rows.tolist()
                    assert many.scores.tobytes() == one.scores.tobytes()
                    assert many_bounds == bounds


def test_exact_and_coded_scores_are_the_same_bits(coded):
    index, vectors, queries = coded
    admitted = _admit(np.ones(len(vectors), np.uint8))
    for query in queries[:10]:
        coded_answer = index.search(query, 5, admitted)
        exact = index.search(query, 5, admitted, exact=True)
        assert coded_answer.rows.tolist() == exact.rows.tolist()
        assert coded_answer.scores.tobytes() == exact.scores.tobytes()
        assert index.scores(query, exact.rows).tobytes() == exact.scores.tobytes()


def test_asking_for_more_than_there_is(coded):
    index, vectors, queries = coded
    mask = MASKS["half"](len(vectors), np.random.default_rng(1))
    found = index.search(queries[0], 10**6, _admit(mask))
    assert sorted(found.rows.tolist()) == np.flatnonzero(mask).tolist()


def test_equal_embeddings_come_in_order_of_rows():
    rng = np.random.default_rng(2)
    vectors = _unit(rng, 12_000, 64)
    vectors[2000:10_000] = vectors[0]
    index = _filled(vectors)
    admitted = _admit(np.ones(len(vectors), np.uint8))
    expected = [0, *range(2000, 10_000)]
    for k in (1, 10, 300, 8001):
        assert index.search(vectors[0], k, admitted).rows.tolist() == expected[:k]


def test_near_duplicates_are_told_apart():
    rng = np.random.default_rng(4)
    base = _unit(rng, 256)
    vectors = base + 0.02 * _unit(rng, 15_000, 256)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = _filled(vectors)
    admitted = _admit(np.ones(len(vectors), np.uint8))
    shares = []
    for query in vectors[:20]:
        found = index.search(query, 10, admitted)
        _, scores, _ = _truth(vectors, query, admitted.mask, 10)
        shares.append(np.mean(found.scores >= scores[-1] - 1e-6))
    assert np.mean(shares) >= 0.95


@pytest.mark.parametrize("n", [100, 6000])
def test_a_zero_query_and_zero_rows_score_zero(n):
    rng = np.random.default_rng(6)
    vectors = _unit(rng, n, 64)
    vectors[::2] = 0.0
    index = _filled(vectors)
    admitted = _admit(np.ones(n, np.uint8))
    found, lowest, highest = index.search_with_bounds(np.zeros(64, np.float32), 4, admitted)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert not found.scores.any()
    assert (lowest, highest) == (0.0, 0.0)
    assert not index.scores(vectors[1], np.arange(0, n, 2)).any()


@pytest.mark.parametrize("dim", [47, 48, 100, 384])
def test_any_dimension(dim):
    rng = np.random.default_rng(dim)
    vectors = _clustered(rng, 9000, dim)
    index = _filled(vectors, step=4000)
    admitted = _admit(np.ones(9000, np.uint8))
    shares = []
    for query in _clustered(rng, 20, dim):
        found = index.search(query, 10, admitted)
        _, scores, _ = _truth(vectors, query, admitted.mask, 10)
        shares.append(np.mean(found.scores >= scores[-1] - 1e-6))
    assert np.mean(shares) >= 0.99


def test_an_empty_index():
    index = VectorIndex(None, 8, n_rows=0)
    found, lowest, highest = index.search_with_bounds(
        np.ones(8, np.float32), 10, _admit(np.zeros(0, np.uint8))
    )
    assert (len(found.rows), lowest, highest) == (0, 0.0, 0.0)
    assert index.take(np.zeros(0, np.int64)).shape == (0, 8)


def test_rows_are_searchable_once_published():
    rng = np.random.default_rng(8)
    vectors = _unit(rng, 10, 16)
    index = VectorIndex(None, 16, n_rows=0)
    index.append(vectors)
    assert index.n_rows == 0
    index.publish(4)
    assert index.n_rows == 4
    admitted = _admit(np.ones(10, np.uint8))  # A mask may run ahead of the view.
    assert set(index.search(vectors[9], 10, admitted).rows.tolist()) == {0, 1, 2, 3}
    index.discard()
    assert index.append(vectors[4:6]) == 4
    index.publish(6)
    assert index.take(np.array([5, 3])).tobytes() == vectors[[5, 3]].tobytes()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.full((2, 4), np.nan, np.float32), r"embeddings\[0\] holds NaN"),
        (np.array([[1, 2, 3, 4], [1, np.inf, 0, 0]], np.float32), r"embeddings\[1\] holds NaN"),
        (np.zeros((2, 5), np.float32), r"expected float32 of shape \(n, 4\)"),
        (np.zeros((2, 4), np.float64), "embeddings are float64"),
        (np.zeros(4, np.float32), r"of shape \(4,\)"),
    ],
)
def test_bad_embeddings_are_refused(value, message):
    index = VectorIndex(None, 4, n_rows=0)
    with pytest.raises(InvalidRequest, match=message):
        index.append(value)
    assert index.append(np.zeros((1, 4), np.float32)) == 0


@pytest.mark.parametrize(
    "query", [np.full(4, np.nan, np.float32), np.zeros(5, np.float32), np.zeros((1, 4))]
)
def test_bad_queries_are_refused(query):
    index = _filled(np.ones((3, 4), np.float32))
    admitted = _admit(np.ones(3, np.uint8))
    with pytest.raises(InvalidRequest, match="query embedding"):
        index.search(query, 1, admitted)
    with pytest.raises(InvalidRequest, match="query embedding"):
        index.scores(query, np.zeros(1, np.int64))


# On disk ---------------------------------------------------------------------------------------


def _answers(index, queries, n):
    admitted = _admit(np.ones(n, np.uint8))
    return [index.search_with_bounds(query, 10, admitted) for query in queries]


def _same(left, right):
    for a, b in zip(left, right, strict=True):
        assert a[0].rows.tolist() == b[0].rows.tolist()
        assert a[0].scores.tobytes() == b[0].scores.tobytes()
        assert a[1:] == b[1:]


@pytest.fixture
def stored(tmp_path):
    """A folder with 6000 flushed embeddings, the embeddings, queries and the right answers."""
    rng = np.random.default_rng(12)
    vectors, queries = _clustered(rng, 6000, 64), _clustered(rng, 5, 64)
    index = _filled(vectors, tmp_path, step=1999)
    answers = _answers(index, queries, 6000)
    index.flush()
    index.close()
    return tmp_path, vectors, queries, answers


@pytest.mark.parametrize("read_only", [False, True])
def test_reopening_changes_nothing(stored, read_only, monkeypatch):
    folder, vectors, queries, answers = stored
    with monkeypatch.context() as patch:
        patch.setattr(codes_module, "encode_rows", None)  # Nothing is encoded again.
        index = VectorIndex(folder, 64, n_rows=6000, read_only=read_only)
    assert index.take(np.arange(6000)).tobytes() == vectors.tobytes()
    _same(_answers(index, queries, 6000), answers)
    assert index.verify()
    index.close()


def test_bytes_past_the_committed_rows_are_overwritten(stored):
    folder, vectors, queries, _ = stored
    index = VectorIndex(folder, 64, n_rows=5000)
    assert index.n_rows == 5000
    assert VectorIndex.n_file_rows(folder, 64) == 6000
    assert index.append(vectors[:10]) == 5000
    index.publish(5010)
    index.flush()
    fresh = _filled(np.concatenate([vectors[:5000], vectors[:10]]))
    _same(_answers(index, queries, 5010), _answers(fresh, queries, 5010))
    assert index.verify()
    index.close()
    index = VectorIndex(folder, 64, n_rows=5010)
    _same(_answers(index, queries, 5010), _answers(fresh, queries, 5010))
    index.close()


def _damage_head(path):
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["codes.head", "codes.s1", "codes.l4", "embeddings.crc"])
@pytest.mark.parametrize("harm", [os.unlink, _damage_head], ids=["missing", "short"])
def test_lost_derived_files_are_made_again(stored, name, harm, read_only):
    folder, _, queries, answers = stored
    harm(folder / name)
    index = VectorIndex(folder, 64, n_rows=6000, read_only=read_only)
    _same(_answers(index, queries, 6000), answers)
    assert index.verify()
    index.flush()
    index.close()
    index = VectorIndex(folder, 64, n_rows=6000)
    _same(_answers(index, queries, 6000), answers)
    index.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["codes.s1", "codes.l4"])
def test_verify_finds_and_mends_damaged_codes(stored, name, read_only):
    folder, _, queries, answers = stored
    _flip(folder / name)
    index = VectorIndex(folder, 64, n_rows=6000, read_only=read_only)
    assert not index.verify()
    assert index.verify()
    _same(_answers(index, queries, 6000), answers)
    index.flush()
    index.close()
    if not read_only:
        index = VectorIndex(folder, 64, n_rows=6000)
        assert index.verify()
        index.close()


def test_verify_names_a_damaged_embeddings_file(stored):
    folder, *_ = stored
    _flip(folder / "embeddings.f32")
    index = VectorIndex(folder, 64, n_rows=6000)
    with pytest.raises(CorruptStore, match=r"embeddings\.f32 is damaged in the embeddings of rows"):
        index.verify()
    index.close()


def test_rows_stored_after_the_last_flush_have_no_checksum_yet(stored):
    folder, vectors, *_ = stored
    index = VectorIndex(folder, 64, n_rows=6000)
    index.append(vectors[:1])
    index.publish(6001)
    index.close()
    index = VectorIndex(folder, 64, n_rows=6001)
    assert index.verify()
    index.close()


def test_a_short_file_is_refused(stored):
    folder, *_ = stored
    os.truncate(folder / "embeddings.f32", 5999 * 256 + 100)
    with pytest.raises(CorruptStore, match=r"embeddings\.f32 holds 5999 whole .* refers to 6000"):
        VectorIndex(folder, 64, n_rows=6000)


def test_a_missing_file_is_refused_and_not_created(stored):
    folder, *_ = stored
    (folder / "embeddings.f32").unlink()
    with pytest.raises(CorruptStore, match="holds 0 whole embeddings"):
        VectorIndex(folder, 64, n_rows=6000)
    assert not (folder / "embeddings.f32").exists()


def test_another_dimension_is_refused(stored):
    folder, *_ = stored
    with pytest.raises(CorruptStore, match="holds embeddings of dimension 64, the store says 32"):
        VectorIndex(folder, 32, n_rows=6000)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "embeddings.f32").mkdir()
    with pytest.raises(CorruptStore, match=r"embeddings\.f32 cannot be opened"):
        VectorIndex(tmp_path, 8, n_rows=0)


def test_a_reader_of_an_empty_store_creates_nothing(tmp_path):
    index = VectorIndex(tmp_path, 8, n_rows=0, read_only=True)
    assert index.n_rows == 0
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    rng = np.random.default_rng(13)
    vectors, queries = _clustered(rng, 6000, 64), _clustered(rng, 3, 64)
    index = _filled(vectors[:5000], tmp_path)
    write = os.pwrite

    def full(handle, data, offset):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(EngineError, match="No space left on device; nothing was stored"):
        index.append(vectors[5000:])
    monkeypatch.setattr(os, "pwrite", write)
    assert index.append(vectors[5000:]) == 5000
    # The write is committed by now: codes that find no room go on in memory.
    monkeypatch.setattr(os, "pwrite", full)
    index.publish(6000)
    monkeypatch.setattr(os, "pwrite", write)
    fresh = _filled(vectors)
    _same(_answers(index, queries, 6000), _answers(fresh, queries, 6000))
    index.flush()
    index.close()
    index = VectorIndex(tmp_path, 64, n_rows=6000)
    _same(_answers(index, queries, 6000), _answers(fresh, queries, 6000))
    index.close()


def test_searches_run_while_a_writer_appends(tmp_path):
    rng = np.random.default_rng(14)
    vectors = _clustered(rng, 12_000, 64)
    index = VectorIndex(tmp_path, 64, n_rows=0)
    failures = []
    is_done = threading.Event()

    def read(seed):
        local = np.random.default_rng(seed)
        while not is_done.is_set():
            n = index.n_rows
            if not n:
                continue
            row = int(local.integers(0, n))
            found = index.search(vectors[row], 3, _admit(np.ones(n, np.uint8)))
            if row not in found.rows or (found.rows >= n).any():
                failures.append((row, n, found))
                return

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for reader in readers:
        reader.start()
    at = 0
    while at < len(vectors):
        last = min(len(vectors), at + int(rng.integers(1, 200)))
        index.append(vectors[at:last], sync=False)
        index.publish(last)
        at = last
    is_done.set()
    for reader in readers:
        reader.join()
    index.close()
    assert failures == []


def test_one_row_at_a_time_past_the_first_codes(tmp_path):
    rng = np.random.default_rng(15)
    n = vector.CODED_ROWS_MIN + 70
    vectors, queries = _clustered(rng, n, 48), _clustered(rng, 5, 48)
    index = _filled(vectors[:4000], tmp_path)
    for row in range(4000, n):
        index.append(vectors[row : row + 1], sync=False)
        index.publish(row + 1)
    fresh = _filled(vectors)
    _same(_answers(index, queries, n), _answers(fresh, queries, n))
    index.close()


@pytest.mark.parametrize("kind", MASKS)
def test_until_the_kernels_are_compiled_every_row_is_compared(coded, kind, monkeypatch):
    index, vectors, queries = coded
    admitted = _admit(MASKS[kind](len(vectors), np.random.default_rng(3)))
    monkeypatch.setattr(vector_code_search.gate, "is_open", lambda n_rows: False)
    for k in (0, 1, 10, 200):
        for query in queries:
            found, *bounds = index.search_with_bounds(query, k, admitted)
            exact, *exact_bounds = index.search_with_bounds(query, k, admitted, exact=True)
            assert found.rows.tolist() == exact.rows.tolist()
            np.testing.assert_allclose(found.scores, exact.scores, atol=1e-6)
            np.testing.assert_allclose(bounds, exact_bounds, atol=1e-5)
