"""Values to Arrow arrays and back, beside what pyarrow itself makes of them."""

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmem.arrow_columns import array_of, array_of_numpy, codes_of, numbers_of, strings_of

encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
texts = st.lists(st.none() | st.sampled_from(["", "a"]) | encodable, max_size=20)


@given(texts)
def test_texts(values: list[str | None]) -> None:
    made = array_of(values, pa.string())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))
    assert strings_of(made) == values
    assert strings_of(made[1:]) == values[1:]


@given(st.lists(st.lists(encodable, max_size=4), max_size=10))
def test_lists_of_texts(values: list[list[str]]) -> None:
    made = array_of(values, pa.list_(pa.string()))
    made.validate(full=True)
    assert made.to_pylist() == values


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.int32(), st.integers(-5, 5)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.float32(), st.floats(width=32, allow_nan=False)),
        (pa.bool_(), st.booleans()),
    ],
    ids=str,
)
def test_numbers(type: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    @given(st.lists(st.none() | values, max_size=20))
    def agrees(held: list[Any]) -> None:
        made = array_of(held, type)
        made.validate(full=True)
        assert list(map(repr, made.to_pylist())) == list(
            map(repr, pa.array(held, type).to_pylist())
        )

    agrees()


@pytest.mark.parametrize(
    "values", [np.arange(5), np.array([0.5, -1], np.float32), np.array([], np.int64)]
)
def test_numpy_there_and_back(values: Any) -> None:
    made = array_of_numpy(values)
    made.validate(full=True)
    assert numbers_of(made).tolist() == values.tolist()
    assert numbers_of(made[1:]).tolist() == values[1:].tolist()


def test_booleans_of_numpy() -> None:
    mask = np.arange(19) % 3 == 0
    assert array_of_numpy(mask).to_pylist() == mask.tolist()


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        array_of(["a", "\ud800"], pa.string())


def test_writes_and_reads_leave_pandas_alone() -> None:
    program = """
import sys, colmem
with colmem.open(":memory:", embedder="hotmem-hash-v1") as engine:
    engine.ingest([colmem.document(f"owl {i}") for i in range(50)])
    engine.store(colmem.document("tide"))
    engine.fetch(query="owl", mode="hybrid")
    engine.recall(question="What about the tide?")
    engine.explore(facet="kind")
print("pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@given(st.lists(st.none() | st.sampled_from(["a", "b", "c"]), max_size=20))
def test_codes(values: list[str | None]) -> None:
    coded = pa.array(values, pa.string()).dictionary_encode()
    names = [*strings_of(coded.dictionary), None]
    assert [names[code] for code in codes_of(coded).tolist()] == values
    assert [names[code] for code in codes_of(coded[1:]).tolist()] == values[1:]
