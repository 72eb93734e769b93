"""Frames of pandas, Polars, DuckDB and Arrow: what comes out goes in; errors name the place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colmem
from colmem import InvalidRequest, MemoryMeta, MetaFilter, StoreItem, Turn
from colmem.adapters import frames

Engine = colmem.Engine

ITEMS: list[StoreItem] = [
    colmem.document(
        "# not the title\n\nbody",
        title="Title",
        mime="text/markdown",
        meta=MemoryMeta(
            namespace="user:ann",
            workspace="w",
            folder="/a/b",
            file_path="/a/b/c.md",
            language="en",
            repo="r",
            commit="c",
            url="https://example.org",
            agent_id="scout",
            tags=["x", "y"],
            observed_at="2026-01-02T03:04:05.678901Z",
            source=colmem.SourceRef("link", "s"),
            tool_call=colmem.ToolCallRef("search", "t1"),
        ),
    ),
    colmem.document("plain", title=" "),
    colmem.learning(
        "knows", kind="preference", confidence=0.25, evidence="said so", meta=MemoryMeta(tags=["x"])
    ),
    colmem.conversation(
        [Turn("user", "hi", at="2026-01-01T00:00:00Z"), Turn("assistant", "hello: you")],
        meta=MemoryMeta(thread_id="t", turns=colmem.TurnRange(3, 4)),
    ),
]
FORMS = {
    "pandas": frames.to_pandas,
    "polars": frames.to_polars,
    "lazy": lambda *given, **named: frames.to_polars(*given, **named).lazy(),
    "arrow": frames.to_arrow,
    "reader": frames.arrow_reader,
}


@pytest.fixture(scope="module")
def filled() -> Iterator[Engine]:
    with colmem.open(":memory:") as engine:
        engine.store_many(ITEMS)
        yield engine


def ids(engine: Engine) -> list[str]:
    return [hit.id for hit in engine.list().items]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("embeddings", [False, True])
def test_what_comes_out_goes_in_again(
    filled: Engine, colmem_engine: Engine, form: str, embeddings: bool
) -> None:
    report = frames.ingest(colmem_engine, FORMS[form](filled, embeddings=embeddings))
    assert (report.stored, report.replayed) == (4, 0)
    assert colmem_engine.list().items == filled.list().items
    query = {"query": "body", "mode": "vector"}
    assert colmem_engine.fetch(**query).hits == filled.fetch(**query).hits  # type: ignore[arg-type]


def test_duckdb_in_and_out(filled: Engine, colmem_engine: Engine) -> None:
    with duckdb.connect() as connection:
        relation = frames.to_duckdb(filled, connection)
        assert relation.filter("kind = 'learning'").project("text").fetchall() == [("knows",)]
        report = frames.ingest(colmem_engine, relation)
        assert report.stored == 4
        assert ids(colmem_engine) == ids(filled)
        once = frames.to_duckdb(filled, connection, columns=["id"], stream=True)
        assert [id for (id,) in once.fetchall()] == ids(filled)
        rows = connection.sql("select 'note ' || i as body, i % 2 as lang from range(3) t(i)")
        mapping = {"body": "text", "lang": "language"}
        assert frames.ingest(colmem_engine, rows, mapping).stored == 3
        found = frames.to_duckdb(colmem_engine, connection, MetaFilter(language="1"))
        assert found.project("text, language").fetchall() == [("note 1", "1")]


def test_columns_and_filter(filled: Engine) -> None:
    frame = frames.to_pandas(filled, MetaFilter(kinds=["document"]), ["text", "observed_at"])
    assert list(frame.columns) == ["text", "observed_at"]
    assert list(frame["text"]) == ["# not the title\n\nbody", "plain"]
    assert frame["observed_at"][0] == pd.Timestamp("2026-01-02T03:04:05.678901Z")
    assert pd.isna(frame["observed_at"][1])
    polars = frames.to_polars(filled, columns=["tags", "turn_first"], embeddings=True)
    assert polars.schema == {
        "tags": pl.List(pl.String),
        "turn_first": pl.UInt32,
        "embedding": pl.Array(pl.Float32, 256),
    }
    assert polars["tags"].to_list() == [["x", "y"], [], ["x"], []]
    with pytest.raises(InvalidRequest, match="columns: unknown seq; known are id, "):
        frames.to_arrow(filled, columns=["seq"])


def test_frames_of_nothing(colmem_engine: Engine) -> None:
    for form, make in FORMS.items():
        frame = make(colmem_engine, embeddings=True)
        assert frames.ingest(colmem_engine, frame).total == 0, form
    assert list(frames.pandas_batches(colmem_engine)) == []


def test_batches(colmem_engine: Engine) -> None:
    colmem_engine.ingest(colmem.document(f"text {i}") for i in range(12_000))
    parts = [*frames.pandas_batches(colmem_engine, columns=["text"])]
    assert len(parts) > 1
    assert pd.concat(parts)["text"].tolist() == [f"text {i}" for i in range(12_000)]
    rows = 0
    for part in frames.polars_batches(colmem_engine, columns=["id"], embeddings=True):
        assert part.columns == ["id", "embedding"]
        rows += part.height
    assert rows == 12_000


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy"])
def test_a_frame_goes_in_batch_by_batch(colmem_engine: Engine, kind: str) -> None:
    columns: Any = {
        "body": [f"text {i}" for i in range(2_500)],
        "lang": ["en", None] * 1_250,
        "author": [1] * 2_500,
    }
    frame = pd.DataFrame(columns, index=range(7, 2_507)) if kind == "pandas" else None
    if frame is None:
        frame = pl.DataFrame(columns) if kind == "polars" else pl.LazyFrame(columns)
    seen: list[int] = []
    report = frames.ingest(
        colmem_engine,
        frame,
        {"body": "text", "lang": "language"},
        batch_size=1_000,
        progress=seen.append,
    )
    assert report.stored == seen[-1] == 2_500
    assert len(seen) >= 3
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) <= 1_000
    assert colmem_engine.explore(facet="language").buckets[0].count == 1_250
    again = frames.ingest(colmem_engine, frame, {"body": "text", "lang": "language"})
    assert (again.stored, again.replayed) == (0, 2_500)


def test_types_of_a_frame(colmem_engine: Engine) -> None:
    pandas = pd.DataFrame(
        {
            "text": pd.Series(["a", "b"], dtype="string"),
            "language": pd.Categorical(["en", None]),
            "confidence": [0.5, np.nan],
            "kind": ["learning"] * 2,
            "turn_first": [1, None],
            "turn_last": [2, None],
            "observed_at": pd.to_datetime(["2026-01-01", None], utc=True),
            "tags": [("x",), None],
            "anything": [object(), {"no": "field"}],
            5: [1, 2],
        }
    )
    assert frames.ingest(colmem_engine, pandas).stored == 2
    first, second = colmem_engine.list().items
    assert (first.meta.language, first.meta.turns) == ("en", colmem.TurnRange(1, 2))
    assert (second.meta.language, second.meta.turns, second.meta.tags) == (None, None, [])
    assert (float(first.confidence or 0), second.confidence) == (0.5, pytest.approx(0.8))
    polars = pl.DataFrame(
        {
            "text": ["c"],
            "language": pl.Series(["de"], dtype=pl.Categorical),
            "repo": pl.Series(["r"], dtype=pl.Enum(["r"])),
            "other": pl.Series([object()], dtype=pl.Object),
        }
    )
    assert frames.ingest(colmem_engine, polars).stored == 1
    assert colmem_engine.list(filter=MetaFilter(language="de", repo="r")).items[0].text == "c"


# What cannot be read.


@pytest.mark.parametrize(
    ("frame", "mapping", "said"),
    [
        (pd.DataFrame({"text": ["a", None]}), {}, "$[1]: text is null, expected a string"),
        (pd.DataFrame({"text": ["a", " "]}), {}, "$[1]: document body must not be empty"),
        (pd.DataFrame({"body": ["a", 3, "x"]}), {"body": "text"}, "$[1].body: got a int, expected"),
        (
            pd.DataFrame(
                {"text": ["a", "b", "c"], "confidence": pd.Series([1, 2, {}], dtype=object)}
            ),
            {},
            "$[2].confidence: a dict does not fit the values above it",
        ),
        (
            pd.DataFrame({"text": ["a"], "observed_at": [pd.Timestamp("2026-01-01")]}),
            {},
            "column 'observed_at' holds times without a time zone",
        ),
        (
            pd.DataFrame({"text": ["a", "b"], "kind": ["document", "poem"]}),
            {},
            "$[1]: `kind` is 'poem'",
        ),
        (pd.DataFrame({"words": ["a"], "n": [1]}), {}, "the data has words, n"),
        (pd.DataFrame({"words": ["a"]}), {"text": "text"}, "column 'text'; the data has words"),
        (pd.DataFrame({"text": ["a"]}), {"text": "colour"}, "'text' to 'colour'; fields are"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), {}, "two columns are named 'text'"),
        (pl.DataFrame({"words": ["a"], "n": [1]}), {}, "the data has words, n"),
        (
            pl.DataFrame({"text": pl.Series([object()], dtype=pl.Object)}),
            {},
            "column 'text' holds Python objects",
        ),
        (
            pl.DataFrame({"text": ["a", "b"], "observed_at": ["2026-01-01T00:00:00Z", "soon"]}),
            {},
            "$[1].observed_at: 'soon' is not a timestamp",
        ),
        (pa.table({"text": ["a"], "confidence": ["high"]}), {}, "column 'confidence' is string"),
        (pl.Series(["a"]), {}, "ingest_arrow"),
        (["a"], {}, "ingest_arrow got a list"),
    ],
)
def test_errors_name_row_and_column(
    colmem_engine: Engine, frame: Any, mapping: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        frames.ingest(colmem_engine, frame, mapping)
    assert said in raised.value.message
    assert ids(colmem_engine) == []


def test_a_connected_store_has_frames_too(tmp_path: Path) -> None:
    class OverHttp:
        """Takes what the client of a server takes, and gives its columns."""

        def __init__(self, engine: Engine) -> None:
            self.engine = engine

        def to_arrow(self, filter: MetaFilter | None = None, *, embeddings: bool = False) -> Any:
            names = [name for name in colmem_columns() if name not in ("row", "seq")]
            return self.engine.to_arrow(filter, columns=names, embeddings=embeddings)

        def ingest_arrow(self, data: Any, *, progress: Any = None) -> Any:
            return self.engine.ingest_arrow(data, progress=progress)

    def colmem_columns() -> list[str]:
        from colmem.schema import ITEMS as TABLE

        return list(TABLE.names)

    with colmem.open(":memory:") as engine:
        remote = OverHttp(engine)
        assert frames.ingest(remote, pl.DataFrame({"text": ["a", "b"]})).stored == 2
        other = pa.table({"text": ["hidden"], "body": ["c"], "lang": ["en"]})
        mapping = {"body": "text", "lang": "language"}
        assert frames.ingest(remote, other, mapping).stored == 1
        assert engine.list(filter=MetaFilter(language="en")).items[0].text == "c"
        with pytest.raises(InvalidRequest, match="'x'; the data has text, body, lang"):
            frames.ingest(remote, other, {"x": "text"})
        frame = frames.to_polars(remote, columns=["text"], embeddings=True)
        assert frame["text"].to_list() == ["a", "b", "c"]
