"""The heap of the k best against a full sort."""

import numpy as np
import pytest

from colmem_kernels import reference_similarity, topk


def _sorted_answer(function, rows, scores, k):
    rows_out = np.empty(k, np.int64)
    scores_out = np.empty(k, np.float32)
    held = function(rows, scores, rows_out, scores_out)
    order = np.lexsort((rows_out[:held], -scores_out[:held]))
    return rows_out[:held][order].tolist(), scores_out[:held][order].tolist()


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
@pytest.mark.parametrize("k", [0, 1, 3, 10, 2000])
@pytest.mark.parametrize("kind", ["random", "ties", "nan", "ascending"])
def test_top_k_equals_its_twin(n, k, kind):
    rng = np.random.default_rng(n + k)
    rows = rng.permutation(10 * n)[:n].astype(np.int64)
    scores = rng.standard_normal(n).astype(np.float32)
    if kind == "ties":
        scores = np.round(scores)
    if kind == "nan":
        scores[::3] = np.nan
    if kind == "ascending":
        scores.sort()
    rows.flags.writeable = scores.flags.writeable = False
    found = _sorted_answer(topk.top_k, rows, scores, k)
    assert found == _sorted_answer(reference_similarity.top_k, rows, scores, k)


def test_strided_input_is_refused():
    rows = np.arange(20, dtype=np.int64)[::2]
    with pytest.raises(TypeError):
        topk.top_k(rows, np.zeros(10, np.float32), np.empty(3, np.int64), np.empty(3, np.float32))
