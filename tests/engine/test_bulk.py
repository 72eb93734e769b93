"""Bulk in and out, SQL and upkeep: ingest, ingest_arrow, to_arrow, sql, check, compact, reembed."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import colmem
from agreement import assert_agreement, listed
from colmem import bulk
from colmem.contract import (
    Conversation,
    Document,
    InvalidRequest,
    ItemKind,
    Learning,
    MemoryMeta,
    MetaFilter,
    SourceKind,
    StoreItem,
    Turn,
    conversation,
    document,
    encode,
    learning,
)
from colmem.schema import ITEMS
from samples import WORD, SampleEmbedder, arrow_items, make


@pytest.fixture(params=["memory", "disk"])
def engine(request: Any, tmp_path: Path) -> Iterator[Any]:
    path = ":memory:" if request.param == "memory" else tmp_path / "store"
    with colmem.open(path, embedder=SampleEmbedder()) as made:
        yield made


# ingest.


def test_ingest_takes_a_generator_and_is_idempotent(engine: Any) -> None:
    first = engine.ingest((item for item in make(57)), batch_size=10)
    assert (first.stored, first.replayed, first.total) == (57, 0, 57)
    assert first.seconds > 0
    again = engine.ingest(iter(make(60)), batch_size=7)
    assert (again.stored, again.replayed) == (3, 57)
    assert len(assert_agreement(engine, WORD)) == 60


def test_ingest_reads_no_further_than_a_batch_ahead(engine: Any) -> None:
    """Bounded memory: what was read is stored before more is read."""
    n_read = 0

    def reading() -> Iterator[StoreItem]:
        nonlocal n_read
        for item in make(100):
            n_read += 1
            yield item

    seen: list[tuple[int, int]] = []
    engine.ingest(reading(), batch_size=10, progress=lambda n: seen.append((n, n_read)))
    assert seen == [(n, n) for n in range(10, 101, 10)]


def test_ingest_of_nothing(engine: Any) -> None:
    report = engine.ingest([])
    assert (report.stored, report.replayed) == (0, 0)


def test_ingest_drops_repeats_within_and_across_batches(engine: Any) -> None:
    items = make(10)
    report = engine.ingest([*items, *items[::-1], *items], batch_size=15)
    assert (report.stored, report.replayed) == (10, 20)
    assert assert_agreement(engine, WORD) == [item.fingerprint() for item in items]


@pytest.mark.parametrize("at", [0, 9, 10, 25])
def test_ingest_names_the_invalid_item_and_keeps_whole_batches(engine: Any, at: int) -> None:
    items: list[StoreItem] = list(make(30))
    items[at] = document(" ")
    with pytest.raises(InvalidRequest, match=rf"\$\[{at}\]: document body must not be empty"):
        engine.ingest(items, batch_size=10)
    assert engine.explore(facet="kind").total == at // 10 * 10
    items[at] = document("mended")
    assert engine.ingest(items, batch_size=10).replayed == at // 10 * 10


def test_ingest_refuses_what_is_no_item_and_no_batch_size(engine: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"\$\[1\]: expected a Document.*got str"):
        engine.ingest([document("one"), "two"])
    with pytest.raises(InvalidRequest, match="batch_size is 0, expected 1 or more"):
        engine.ingest(make(2), batch_size=0)
    assert engine.list(limit=3).items == []


def test_an_error_of_the_iterable_passes_and_keeps_whole_batches(engine: Any) -> None:
    def failing() -> Iterator[StoreItem]:
        yield from make(25)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        engine.ingest(failing(), batch_size=10)
    assert len(assert_agreement(engine, WORD)) == 20


def test_items_come_back_whole(engine: Any) -> None:
    meta = MemoryMeta(
        namespace="agent:a/team:b",
        workspace="",
        folder="/a",
        tags=["x", "x", ""],
        source="rss",
        observed_at="2016-12-31T23:59:60.000000001Z",
    )
    items = [
        document("body\n\n# not a title", title="A # title\n\n", mime="text/markdown", meta=meta),
        document("untitled", title=" ", meta=meta),
        learning("text", kind="correction", confidence=0.1, evidence="", meta=meta),
        conversation([Turn("user", "hi", "2026-01-01T00:00:00.5Z"), ("tool", "[1]")], meta=meta),
    ]
    engine.ingest(items)
    for item, hit in zip(items, listed(engine), strict=True):
        assert hit.id == item.fingerprint()
        assert hit.kind == item.kind
        assert hit.text == item.render_text()
        assert encode(hit.meta) == encode(item.meta)
        assert hit.confidence == item.confidence


# ingest_arrow.


def table_of_everything() -> pa.Table:
    return pa.table(
        {
            "kind": ["document", "learning", "conversation", None],
            "text": ["a body", "a lesson", None, "plain"],
            "title": ["Title", None, None, None],
            "mime": ["text/plain", None, None, None],
            "turns": [None, None, '[{"role":"user","text":"hi"}]', None],
            "learning_kind": [None, "preference", None, None],
            "confidence": pa.array([None, 0.25, None, None], pa.float64()),
            "evidence": [None, "seen", None, None],
            "namespace": ["agent:a", None, "root", ""],
            "folder": ["/a", None, None, None],
            "tags": [["x", "y"], [], None, ["z"]],
            "turn_first": pa.array([1, None, None, None], pa.int64()),
            "turn_last": pa.array([2, None, None, None], pa.int64()),
            "tool_name": ["tool", None, None, None],
            "tool_id": ["7", None, None, None],
            "source_kind": ["file", None, None, None],
            "source_id": ["f", "imported", None, None],
            "observed_at": ["2026-01-01T00:00:00Z", None, None, None],
            "ignored": [1, 2, 3, 4],
        }
    )


def test_ingest_arrow_fills_every_field(engine: Any) -> None:
    report = engine.ingest_arrow(table_of_everything())
    assert report.stored == 4
    first, second, third, fourth = listed(engine)
    assert (first.kind, first.text) == (ItemKind.DOCUMENT, "# Title\n\na body")
    meta = first.meta
    assert (str(meta.namespace), meta.folder, meta.tags) == ("agent:a", "/a", ["x", "y"])
    assert (meta.turns.first, meta.turns.last) == (1, 2)
    assert (meta.tool_call.name, meta.tool_call.id) == ("tool", "7")
    assert (meta.source.kind, meta.source.id) == (SourceKind.FILE, "f")
    assert str(meta.observed_at) == "2026-01-01T00:00:00Z"
    assert (second.kind, second.confidence) == (ItemKind.LEARNING, 0.25)
    assert (second.meta.source.kind, second.meta.source.id) == (SourceKind.IMPORT, "imported")
    assert (third.kind, third.text) == (ItemKind.CONVERSATION, "user: hi")
    assert (fourth.kind, fourth.text, fourth.meta.tags) == (ItemKind.DOCUMENT, "plain", ["z"])
    assert engine.ingest_arrow(table_of_everything()).replayed == 4


class Streaming:
    """What Polars, pandas and others offer: an Arrow stream, and nothing of pyarrow's."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_ingest_arrow_takes_every_form_of_arrow_data(engine: Any) -> None:
    table = arrow_items(23)
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'common row' || range || 'x' AS text FROM range(23)")
    forms = [
        table,
        table.to_batches()[0],
        table.to_reader(max_chunksize=5),
        Streaming(table),
        relation,
    ]
    for number, data in enumerate(forms):
        report = engine.ingest_arrow(data, batch_size=4)
        assert (report.stored, report.replayed) == ((0, 23) if number else (23, 0)), type(data)
    assert len(assert_agreement(engine, WORD)) == 23
    connection.close()


def test_ingest_arrow_maps_columns(engine: Any) -> None:
    data = pa.table({"content": ["one", "two"], "lang": ["en", "de"], "language": ["x", "y"]})
    engine.ingest_arrow(data, mapping={"content": "text", "lang": "language"})
    assert [(hit.text, hit.meta.language) for hit in listed(engine)] == [
        ("one", "en"),
        ("two", "de"),
    ]


@pytest.mark.parametrize("kind", ["fixed", "list", "large", "float64"])
def test_ingest_arrow_keeps_given_embeddings_normalised(engine: Any, kind: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(9, 32)).astype(np.float32) * 5
    table = arrow_items(9, vectors)
    column = table.column("embedding")
    types = {
        "fixed": column.type,
        "list": pa.list_(pa.float32()),
        "large": pa.large_list(pa.float32()),
        "float64": pa.list_(pa.float64()),
    }
    table = table.set_column(1, "embedding", column.cast(types[kind]))
    engine.ingest_arrow(table.slice(0, 4))
    engine.ingest_arrow(table, batch_size=3)
    held = engine.to_arrow(columns=["id"], embeddings=True).read_all().column("embedding")
    flat = held.combine_chunks().flatten().to_numpy().reshape(9, 32)
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(flat, expected, atol=1e-6)


def _embeddings(values: Any, width: int | None = None) -> pa.Table:
    kind = pa.list_(pa.float32()) if width is None else pa.list_(pa.float32(), width)
    return pa.table({"text": ["a", "b"], "embedding": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("data", "mapping", "message"),
    [
        (pa.table({"body": ["x"]}), None, r"needs a column `text`.*the data has body"),
        (pa.table({"text": ["x"]}), {"nope": "text"}, r"mapping names column 'nope'.*has text"),
        (pa.table({"text": ["x"]}), {"text": "nope"}, r"gives 'text' to 'nope'; fields are"),
        (pa.table({"text": ["x", None]}), None, r"\$\[1\]: "),
        (pa.table({"text": ["x", " "]}), None, r"\$\[1\]: document body must not be empty"),
        (pa.table({"text": [[1], [2]]}), None, r"column 'text' is list.* cannot be read as text"),
        (pa.table({"text": ["x"], "tags": [[None]]}), None, r"\$\[0\]"),
        (pa.table({"text": ["x"], "turn_first": [1]}), None, r"\$\[0\]"),
        (pa.table({"text": ["x"], "kind": ["note"]}), None, r"\$\[0\]: .*note"),
        (pa.table({"text": ["x"], "namespace": ["no"]}), None, r"\$\[0\]: .*must be written kind"),
        (
            pa.table({"text": ["x"], "observed_at": ["noon"]}),
            None,
            r"\$\[0\]\.observed_at: .*not a timestamp",
        ),
        (pa.table({"turns": ["["], "kind": ["conversation"]}), None, r"\$\[0\]: "),
        (_embeddings([[0.0] * 3] * 2, 3), None, r"'embedding' holds embeddings of other lengths"),
        (_embeddings([[0.0] * 32, [0.0] * 31]), None, r"embeddings of other lengths"),
        (_embeddings([[0.0] * 31, [0.0] * 33]), None, r"embeddings of other lengths"),
        (_embeddings([[1.0] * 32, None]), None, r"has 1 rows without an embedding"),
        (_embeddings([[1.0] * 32, [float("nan")] * 32]), None, r"embedding that is not finite"),
        (_embeddings([[1.0] * 32, [None] * 32]), None, r"embedding"),
        (pa.table({"text": ["a"], "embedding": ["vector"]}), None, r"embedding"),
        ([{"text": "x"}], None, r"ingest_arrow got a list; expected a pyarrow Table"),
    ],
)
def test_ingest_arrow_refuses_with_column_and_row(
    engine: Any, data: Any, mapping: Any, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        engine.ingest_arrow(data, mapping=mapping)
    assert engine.list(limit=5).items == []


# to_arrow.


def test_to_arrow_streams_admitted_items_in_order(engine: Any) -> None:
    engine.ingest([*make(40, "one", workspace="w"), *make(10, "two")])
    engine.forget(ids=[make(1, "one", workspace="w")[0].fingerprint()])
    reader = engine.to_arrow(MetaFilter(workspace="w"))
    assert isinstance(reader, pa.RecordBatchReader)
    table = reader.read_all()
    assert table.schema == ITEMS
    assert table.column("id").to_pylist() == [
        item.fingerprint() for item in make(40, "one", workspace="w")[1:]
    ]
    assert set(table.column("workspace").to_pylist()) == {"w"}
    assert engine.to_arrow(MetaFilter(workspace="none")).read_all().num_rows == 0


def test_to_arrow_gives_columns_in_the_order_named_and_embeddings(engine: Any) -> None:
    items = make(7)
    engine.ingest(items)
    table = engine.to_arrow(columns=["text", "id"], embeddings=True).read_all()
    assert table.column_names == ["text", "id", "embedding"]
    flat = table.column("embedding").combine_chunks().flatten().to_numpy().reshape(7, 32)
    expected = SampleEmbedder().embed([item.render_text() for item in items])
    np.testing.assert_allclose(flat, expected, atol=1e-6)
    assert engine.to_arrow(columns=[], embeddings=True).read_all().num_rows == 7
    with pytest.raises(InvalidRequest, match="columns: unknown nope; known are row, seq"):
        engine.to_arrow(columns=["id", "nope"])


def test_to_arrow_shows_one_moment(engine: Any) -> None:
    """What is stored, forgotten or compacted after the call does not show in it."""
    items = make(30)
    engine.ingest(items)
    reader = engine.to_arrow(columns=["text"], embeddings=True)
    engine.forget(ids=[item.fingerprint() for item in items[:10]])
    engine.ingest(make(5, "later"))
    engine.compact()
    table = reader.read_all()
    texts = table.column("text").to_pylist()
    flat = table.column("embedding").combine_chunks().flatten().to_numpy().reshape(-1, 32)
    np.testing.assert_allclose(flat, SampleEmbedder().embed(texts), atol=1e-6)
    assert texts == [item.render_text() for item in items]


def test_what_goes_out_comes_in_again(engine: Any) -> None:
    engine.ingest_arrow(table_of_everything())
    table = engine.to_arrow().read_all()
    with colmem.open(":memory:", embedder=SampleEmbedder()) as other:
        # Documents and learnings; the text of a conversation is made of its turns.
        plain = table.select(
            [name for name in table.column_names if name not in ("turns", "title", "observed_s")]
        )
        report = other.ingest_arrow(plain.filter(pa.compute.equal(plain["kind"], "learning")))
        assert report.stored == 1
        assert listed(other)[0].confidence == 0.25


# sql.


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO items SELECT * FROM items",
        "DELETE FROM items",
        "UPDATE items SET text = ''",
        "DROP TABLE items",
        "CREATE TABLE other AS SELECT 1",
        "CREATE TEMP TABLE other AS SELECT 1",
        "ATTACH 'other.duckdb' AS other",
        "COPY items TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "INSTALL httpfs",
        "SET threads = 1",
        "PRAGMA version",
        "CHECKPOINT",
        "BEGIN",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE items",
        "",
        "-- nothing",
        "WITH gone AS (DELETE FROM items RETURNING *) SELECT * FROM gone",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT nope FROM items",
        "SELECT ?",
        "not sql at all",
    ],
)
def test_sql_refuses_all_but_one_select(engine: Any, query: str, tmp_path: Path) -> None:
    engine.store_many(make(3))
    with pytest.raises(InvalidRequest) as error:
        engine.sql(query)
    assert "\n" not in str(error.value)
    assert len(assert_agreement(engine, WORD)) == 3
    assert engine.sql("SELECT count(*) AS n FROM items").to_pylist() == [{"n": 3}]
    assert not list(tmp_path.glob("out*"))


def test_sql_answers_with_parameters_and_sees_every_write(engine: Any) -> None:
    for number in range(3):
        engine.store(document(f"{WORD} {number}", meta=MemoryMeta(tags=[f"t{number}"])))
        query = "SELECT count(*) AS n FROM items WHERE list_contains(tags, ?)"
        assert engine.sql(query, [f"t{number}"]).to_pylist() == [{"n": 1}]
    engine.forget(filter=MetaFilter(tags_any=["t1"]))
    table = engine.sql('FROM items SELECT text, "commit" ORDER BY row')
    assert isinstance(table, pa.Table)
    assert table.column("text").to_pylist() == [f"{WORD} 0", f"{WORD} 2"]
    hostile = "'; DROP TABLE items; --"
    query = "SELECT count(*) AS n FROM items WHERE text = ?"
    assert engine.sql(query, [hostile]).to_pylist() == [{"n": 0}]


# Expiry.


def expire(engine: Any, items: list[Document], seconds: list[int | None]) -> None:
    """Store items as a hydrated snapshot would: with the time at which they expire."""
    store = engine._opened.store
    job = engine._prepared(engine._opened, items, None)
    for row, expires in zip(job.rows, seconds, strict=True):
        row.expires_s = expires
    store.write(job)


def test_expired_items_are_invisible_and_compaction_purges_them(engine: Any) -> None:
    now = int(time.time())
    items = make(4)
    expire(engine, items, [None, now - 10, now + 3_600, now])
    expected = [items[0].fingerprint(), items[2].fingerprint()]
    assert assert_agreement(engine, WORD) == expected
    assert engine.get(ids=[items[1].fingerprint()]) == []
    assert engine.forget(ids=[items[3].fingerprint()]).forgotten == 0
    assert engine.to_arrow(columns=["id"]).read_all().column("id").to_pylist() == expected
    assert engine.check().problems == []
    engine.compact()
    assert assert_agreement(engine, WORD) == expected
    assert engine.stats()["items"] == 2
    assert engine.check().problems == []


def test_an_item_expires_while_the_store_is_open(engine: Any, monkeypatch: Any) -> None:
    now = time.time()
    items = make(3)
    expire(engine, items, [None, int(now) + 100, None])
    assert len(assert_agreement(engine, WORD)) == 3
    monkeypatch.setattr(time, "time", lambda: now + 101)
    assert assert_agreement(engine, WORD) == [items[0].fingerprint(), items[2].fingerprint()]


def test_an_expired_item_stored_again_is_new_and_has_its_embedding(engine: Any) -> None:
    items = make(3)
    expire(engine, items, [int(time.time()) - 10] * 3)
    receipts = engine.store_many(items)
    assert not any(receipt.replayed for receipt in receipts)
    assert len(assert_agreement(engine, WORD)) == 3
    for item in items:
        (hit,) = engine.fetch(query=item.render_text(), mode="vector", limit=1).hits
        assert (hit.id, hit.score) == (item.fingerprint(), pytest.approx(1, abs=1e-5))
    assert engine.check().problems == []


# Upkeep.


def test_compaction_keeps_ids_order_cursors_and_answers(engine: Any) -> None:
    items = make(60)
    engine.ingest(items)
    page = engine.list(limit=20)
    query = {"query": f"{WORD} item7x", "mode": "hybrid", "limit": 20}
    engine.forget(ids=[item.fingerprint() for item in items[10:15]])
    before = engine.fetch(**query)
    seen: list[int] = []
    engine.compact(progress=seen.append)
    assert seen == [55]
    rest = engine.list(limit=100, cursor=page.next_cursor)
    assert [hit.id for hit in rest.items] == [item.fingerprint() for item in items[20:]]
    assert [hit.id for hit in engine.fetch(**query).hits] == [hit.id for hit in before.hits]
    stats = engine.stats()
    assert (stats["items"], stats["rows"], stats["forgotten_rows"]) == (55, 55, 0)
    assert engine.check().problems == []


def test_compaction_lets_go_of_the_generation_it_replaced(store_path: Path) -> None:
    with colmem.open(store_path) as engine:
        engine.store_many(make(50))
        engine.fetch(query="owl")
        replaced = weakref.ref(engine._opened.store)
        engine.forget(ids=[hit.id for hit in engine.list(limit=10).items])
        gc.disable()  # its files and memory go at once, not when a collection happens to run
        try:
            engine.compact()
            assert replaced() is None
        finally:
            gc.enable()


def test_reads_go_on_while_a_store_is_reembedded(store_path: Path) -> None:
    class Slow(SampleEmbedder):
        def embed(self, texts: Any) -> Any:
            time.sleep(0.3)
            return super().embed(texts)

    items = make(40)
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        engine.ingest(items)
        thread = threading.Thread(target=lambda: engine.reembed(Slow("slow-16", 16)))
        thread.start()
        n_reads = 0
        while thread.is_alive():
            assert len(engine.list(limit=100).items) == 40
            assert len(engine.fetch(query=WORD, mode="keyword", limit=100).hits) == 40
            n_reads += 1
        thread.join()
        assert n_reads > 3
        assert engine.embedder.key == "slow-16"
        assert engine.stats()["dim"] == 16
        assert len(assert_agreement(engine, WORD)) == 40


def test_a_write_during_compaction_is_kept(store_path: Path) -> None:
    class Waiting(SampleEmbedder):
        def embed(self, texts: Any) -> Any:
            started.set()
            time.sleep(0.1)
            return super().embed(texts)

    started = threading.Event()
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        engine.ingest(make(30))
        thread = threading.Thread(target=lambda: engine.reembed(Waiting("waiting", 8)))
        thread.start()
        started.wait()
        receipts = engine.store_many(make(5, "meanwhile"))
        assert engine.forget(ids=[receipts[0].id]).forgotten == 1
        thread.join()
        assert len(assert_agreement(engine, WORD)) == 34
        assert engine.check().problems == []
    with colmem.open(store_path, embedder=Waiting("waiting", 8)) as engine:
        assert len(assert_agreement(engine, WORD)) == 34


def test_a_reembedding_that_fails_changes_nothing(store_path: Path) -> None:
    class Failing(SampleEmbedder):
        def embed(self, texts: Any) -> Any:
            raise RuntimeError("no model")

    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        engine.ingest(make(10))
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no model"):
                engine.reembed(Failing("failing", 8))
        assert engine.embedder.key == "sample-32"
        assert len(assert_agreement(engine, WORD)) == 10
        engine.store(document(f"{WORD} after"))
        engine.compact()
        assert len(assert_agreement(engine, WORD)) == 11
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        assert len(assert_agreement(engine, WORD)) == 11
        assert engine.check().problems == []


def test_check_and_repair_find_and_mend_a_table_that_differs(store_path: Path) -> None:
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        engine.ingest(make(20))
    with duckdb.connect(str(store_path / "items.duckdb")) as connection:
        connection.execute("DELETE FROM items WHERE row = 7")
        connection.execute("UPDATE items SET text = 'changed' WHERE row = 3")
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        report = engine.check()
        assert not report.ok
        assert report.problems
        mended = engine.check(repair=True)
        assert mended.problems == []
        assert len(assert_agreement(engine, WORD)) == 20
        rows = engine.sql("SELECT count(*) AS n FROM items WHERE text = 'changed'")
        assert rows.to_pylist() == [{"n": 0}]


def test_stats_name_what_is_there(engine: Any) -> None:
    engine.ingest(make(5))
    engine.forget(ids=[make(1)[0].fingerprint()])
    stats = engine.stats()
    assert (stats["items"], stats["rows"], stats["forgotten_rows"]) == (4, 5, 1)
    assert (stats["embedder"], stats["dim"]) == ("sample-32", 32)
    if stats["path"] != ":memory:":
        assert stats["bytes_total"] == sum(stats["bytes"].values()) > 0


def test_batches_of_ingest_cross_the_borders_of_the_table(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colmem import store as store_module

    monkeypatch.setattr(store_module, "FLUSH_ROWS", 30)
    monkeypatch.setattr(store_module, "FLUSH_ROWS_MAX", 70)
    items = make(400)
    with colmem.open(store_path, embedder=SampleEmbedder()) as engine:
        engine.ingest(items, batch_size=13)
        rows = engine.sql("SELECT id FROM items ORDER BY row").column("id").to_pylist()
        assert rows == [item.fingerprint() for item in items]
        assert engine.check().problems == []
        assert bulk.BATCH_ROWS > 100


def test_the_shapes_of_items_are_the_contract_s() -> None:
    assert {Document.kind, Conversation.kind, Learning.kind} == set(ItemKind)
