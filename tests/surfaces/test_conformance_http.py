"""The client is a MemoryEngine: the suite passes over a live server, with and without a token."""

import asyncio
from pathlib import Path

import httpx
import pytest
from surface_parts import Server, serving, token

import colmem
import colmem.aio
from colmem import (
    ConfigError,
    FetchRequest,
    InvalidRequest,
    MemoryEngine,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    SnapshotChecksumError,
    Unauthorized,
    Unavailable,
    Unsupported,
    conformance,
)
from colmem.reference import ReferenceEngine

SECRET = "a-secret-of-some-length"


def test_an_engine_behind_a_server_conforms(shared: Server) -> None:
    with colmem.connect(shared.url) as engine:
        assert isinstance(engine, MemoryEngine)
        conformance.run(engine)


def test_another_engine_behind_a_server_conforms_with_a_token() -> None:
    with (
        serving(ReferenceEngine(), tokens=(token(SECRET),)) as server,
        colmem.connect(server.url, token=SECRET) as engine,
    ):
        for name in ("round_trip", "store_many", "explore", "namespaces", "unknown_cursor"):
            conformance.run_check(engine, name)


def test_errors_arrive_as_they_were_raised(shared: Server) -> None:
    with colmem.connect(shared.url) as engine:
        for call in (
            lambda e: e.fetch(query=" ", limit=3),
            lambda e: e.list(limit=0),
            lambda e: e.get(ids=[]),
            lambda e: e.store(colmem.document("  ")),
            lambda e: e.forget(filter=MetaFilter()),
            lambda e: e.list(limit=1, cursor="nonsense"),
        ):
            with pytest.raises(InvalidRequest) as there:
                call(engine)
            with pytest.raises(InvalidRequest) as here:
                call(shared.engine)
            assert there.value == here.value
            assert there.value.path == here.value.path


def test_a_mode_that_is_not_there_is_unsupported() -> None:
    class KeywordOnly(ReferenceEngine):
        def descriptor(self) -> colmem.EngineDescriptor:
            return colmem.EngineDescriptor(
                id="k", label="k", description="k", fetch_modes=["keyword"]
            )

    with serving(KeywordOnly()) as server, colmem.connect(server.url) as engine:
        with pytest.raises(Unsupported, match="does not offer vector fetch"):
            engine.fetch(query="x", mode="vector", limit=1)
        with pytest.raises(Unsupported, match="does not offer stats"):
            engine.stats()


def test_a_server_that_is_not_there() -> None:
    with colmem.connect("http://127.0.0.1:9", timeout=2) as engine:
        assert not engine.health().is_serving
        with pytest.raises(Unavailable, match=r"no answer from http://127.0.0.1:9"):
            engine.list(limit=1)


def test_an_answer_that_is_no_servers_of_ours() -> None:
    with colmem.connect("http://127.0.0.1:9") as engine:
        transport = httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway"))
        engine._http.close()
        engine._http = httpx.Client(transport=transport, base_url="http://x")
        with pytest.raises(colmem.EngineError, match="the server answered 502: bad gateway"):
            engine.list(limit=1)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8711", "ftp://host", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError):
        colmem.connect(url)


def test_a_wrong_token() -> None:
    with serving(ReferenceEngine(), tokens=(token(SECRET),)) as server:
        for shown in (None, "another-secret-of-some-length"):
            with colmem.connect(server.url, token=shown) as engine:
                assert not engine.health().is_serving
                with pytest.raises(Unauthorized):
                    engine.list(limit=1)


def test_a_fetch_is_explained(server: Server) -> None:
    ids = [server.engine.store(colmem.document(f"apple {word}")).id for word in ("pie", "tree")]
    with colmem.connect(server.url) as client:
        explained = client.explain(query="apple pie", mode="keyword", limit=1, id=ids[1])
        request = FetchRequest(query="apple pie", mode="keyword", limit=1)
        assert client.explain(request, ids[1]).hits == explained.hits
        (hit,) = explained.hits
        assert hit.id == ids[0]
        assert sum(hit.terms.values()) == pytest.approx(hit.score, rel=1e-5)
        assert explained.why_not is not None
        assert (explained.why_not.reason, explained.why_not.hit.rank) == ("behind_limit", 2)
    asked = {"query": "x", "mode": "keyword", "limit": 1, "id": 5}
    refused = httpx.post(f"{server.url}/v1/explain", json=asked)
    assert (refused.status_code, refused.json()["path"]) == (400, "$.id")
    with (
        serving(ReferenceEngine()) as other,
        colmem.connect(other.url) as client,
        pytest.raises(Unsupported, match="does not offer explain"),
    ):
        client.explain(query="x", mode="keyword")


def test_a_confined_token_learns_nothing_by_explaining() -> None:
    ann = token(SECRET, place=Namespace("user:ann"), reach=Reach.exact("user:ann"))
    with colmem.open(":memory:") as engine:
        secret = engine.store(colmem.document("apple of another")).id
        own = engine.store(
            colmem.document("apple", meta=MemoryMeta(namespace=Namespace("user:ann")))
        ).id
        with (
            serving(engine, tokens=(ann,)) as server,
            colmem.connect(server.url, token=SECRET) as client,
        ):
            explained = client.explain(query="apple", id=secret)
            elsewhere = MetaFilter(reach=Reach.exact("root"))
            nowhere = client.explain(query="apple", id=own, filter=elsewhere)
    assert [hit.id for hit in explained.hits] == [own]
    assert explained.why_not.reason == "not_stored"
    assert (explained.filter.within, explained.filter.clauses) == (1, {"reach": 1})
    assert nowhere.hits == []
    assert (nowhere.filter.within, nowhere.filter.clauses) == (0, {})


def test_bulk_and_snapshots_through_the_client(tmp_path: Path) -> None:
    items = [colmem.document(f"note {n}", meta=MemoryMeta(tags=[f"t{n % 3}"])) for n in range(2500)]
    seen: list[int] = []
    with (
        colmem.open(":memory:") as store,
        serving(store, snapshots=tmp_path) as server,
        colmem.connect(server.url) as engine,
    ):
        report = engine.ingest(items, batch_size=500, progress=seen.append)
        assert (report.stored, report.replayed, report.total) == (2500, 0, 2500)
        assert seen[-1] == 2500
        assert list(engine.items()) == items
        one = engine.items(MetaFilter(tags_any=["t1"]))
        assert [*one] == [i for i in items if i.meta.tags == ["t1"]]
        table = engine.to_arrow(MetaFilter(tags_any=["t1"]), embeddings=True).read_all()
        assert table.num_rows == 833
        assert {"embedding", "id", "text"} <= {*table.schema.names}
        assert {"row", "seq"}.isdisjoint(table.schema.names)
        again = engine.ingest_arrow(table.select(["text", "tags", "kind", "embedding"]))
        assert (again.stored, again.replayed) == (0, 833)
        assert engine.stats()["items"] == 2500
        made = engine.snapshot("out", filter=MetaFilter(tags_any=["t0"]))
        assert (made.exported, made.path) == (834, "out")
        assert engine.verify("out")["record_count"] == 834
        assert engine.hydrate("out").skipped_dupes == 834
        (tmp_path / "out" / "memories.jsonl").write_text("{}\n")
        with pytest.raises(SnapshotChecksumError) as caught:
            engine.hydrate("out")
        assert (caught.value.reason, caught.value.file) == ("mismatch", "memories.jsonl")


def test_an_invalid_item_in_a_stream_is_named(shared: Server) -> None:
    with colmem.connect(shared.url) as engine:
        items = [colmem.document("fine"), colmem.document(" ")]
        with pytest.raises(InvalidRequest, match=r"\$\[1\]: document body must not be empty"):
            engine.ingest(items)


def test_the_same_operations_as_coroutines(shared: Server, tmp_path: Path) -> None:
    item = colmem.document("asynchronous marsupials", meta=MemoryMeta(workspace="aio"))

    async def use(engine: object) -> list[object]:
        receipt = await engine.store(item)
        (again,) = await engine.store_many([item])
        assert again == colmem.StoreReceipt(receipt.id, True)
        wanted = {"filter": MetaFilter(workspace="aio"), "limit": 5}
        page = await engine.fetch(query="marsupials", mode="keyword", **wanted)
        listed = await engine.list(**wanted)
        (hit,) = await engine.get(ids=[receipt.id])
        counts = await engine.explore(facet="workspace", **wanted)
        answer = await engine.recall(question="marsupials", **wanted)
        explained = await engine.explain(query="marsupials", mode="keyword", **wanted)
        assert [shown.id for shown in explained.hits] == [receipt.id]
        with pytest.raises(InvalidRequest):
            await engine.list(limit=0)
        report = await engine.ingest([item])
        assert (report.stored, report.replayed) == (0, 1)
        assert (await engine.health()).is_serving
        assert (await engine.stats())["items"] >= 1
        descriptor = await engine.descriptor()
        gone = await engine.forget(ids=[receipt.id])
        found = [h.id for h in page.hits]
        return [found, listed, hit, counts, answer, descriptor, gone]

    async def run() -> None:
        async with colmem.aio.connect(shared.url) as remote:
            there = await use(remote)
            assert [i async for i in remote.items(MetaFilter(workspace="aio"))] == []
        async with colmem.aio.open(tmp_path / "a") as local:
            here = await use(local)
            await local.store(item)
            assert len([r async for r in local.records()]) == 1
            made = await local.snapshot(tmp_path / "out")
            assert made.exported == 1
        assert there == here
        awaited = await colmem.aio.open(tmp_path / "a", create=False)
        assert len((await awaited.list(limit=5)).items) == 1
        await awaited.close()
        lazy = colmem.aio.open(":memory:")
        assert (await lazy.list(limit=5)).items == []
        await lazy.close()
        with pytest.raises(ConfigError):
            await colmem.aio.open(tmp_path / "absent", create=False)

    asyncio.run(run())
