"""The fast paths of vector and hybrid reads against the exact one, in a store that uses codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import colmem
from colmem import FetchMode, MetaFilter

N_ROWS, N_CLUSTERS = 12_000, 300
WORDS = [
    "river",
    "harbour",
    "quartz",
    "lantern",
    "meadow",
    "copper",
    "violin",
    "glacier",
    "saddle",
    "thunder",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(N_CLUSTERS, 256))
    vectors = centres[rng.integers(N_CLUSTERS, size=N_ROWS)] + rng.normal(size=(N_ROWS, 256))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = pa.array(vectors.astype(np.float32).reshape(-1))
    data = pa.table(
        {
            "text": [f"{i} {' '.join(rng.choice(WORDS, 5))}" for i in range(N_ROWS)],
            "folder": [f"/f/{i % 7}" for i in range(N_ROWS)],
            "embedding": pa.FixedSizeListArray.from_arrays(flat, 256),
        }
    )
    folder = tmp_path_factory.mktemp("exact") / "store"
    with colmem.open(folder) as engine:
        engine.ingest_arrow(data)
    return folder


@pytest.mark.parametrize("mode", [FetchMode.VECTOR, FetchMode.HYBRID])
@pytest.mark.parametrize("filter", [MetaFilter(), MetaFilter(folder="/f/3")])
def test_codes_and_threads_change_no_answer(
    path: Path, mode: FetchMode, filter: MetaFilter
) -> None:
    answers = []
    for options in ({"exact": True}, {}, {"threads": 1}, {"threads": 4}):
        with colmem.open(path, **options) as engine:  # type: ignore[arg-type]
            answers.append(
                [
                    [(hit.id, float(hit.score)) for hit in page.hits]
                    for word in WORDS
                    for page in [
                        engine.fetch(query=f"{word} 17", mode=mode, limit=10, filter=filter)
                    ]
                ]
            )
    exact = answers[0]
    for found in answers[1:]:
        for page, wanted in zip(found, exact, strict=True):
            assert [id for id, _ in page] == [id for id, _ in wanted]
            assert np.allclose([s for _, s in page], [s for _, s in wanted], atol=1e-5)
