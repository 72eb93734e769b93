"""LlamaIndex's index, retrievers and ingestion over our vector store, and what filters can say."""

from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import VectorStoreQueryMode

import colmem
from colmem import InvalidRequest, MemoryMeta, MetaFilter, Reach, Unsupported
from colmem.adapters.llamaindex import ColmemEmbedding, ColmemRetriever, ColmemVectorStore

Engine = colmem.Engine


def node(id: str, text: str, doc: str, **metadata: Any) -> TextNode:
    source = RelatedNodeInfo(node_id=doc, metadata={"origin": "x"})
    return TextNode(
        id_=id, text=text, metadata=metadata, relationships={NodeRelationship.SOURCE: source}
    )


NODES = [
    node("n1", "Owls hunt at night.", "birds", author="ann", year=2020, tags=["bird", "night"]),
    node("n2", "Larks sing at dawn.", "birds", author="bob", year=2021, tags=["bird"]),
    node("n3", "Yeast makes bread rise.", "bread", author="ann", year=2021, folder="/food"),
]


@pytest.fixture
def store(colmem_engine: Engine) -> ColmemVectorStore:
    made = ColmemVectorStore(colmem_engine)
    assert made.add(NODES) == ["n1", "n2", "n3"]
    return made


def ids(nodes: Any) -> set[str]:
    return {node.node_id for node in nodes}


# Nodes.


def test_nodes_come_back_whole(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    full = node("full", "text", "doc", zebra=1, apple={"a": [1, None]}, language="en", n=2.5)
    full.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="other", hash="h")
    full.relationships[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id="c")]
    full.excluded_embed_metadata_keys = ["zebra"]
    full.start_char_idx, full.end_char_idx = 3, 7
    full.text_template = "{content}!"
    nodes: list[BaseNode] = [
        full,
        IndexNode(id_="index", text="an index", index_id="i1"),
        Node(id_="node", text_resource={"text": "of the newer kind"}),  # type: ignore[arg-type]
        ImageNode(id_="image", text="a picture", image_url="https://example.org/a.png"),
    ]
    store.add(nodes)
    found = store.get_nodes([node.node_id for node in nodes])
    assert found == nodes
    assert [type(node) for node in found] == [type(node) for node in nodes]
    assert list(found[0].metadata) == ["zebra", "apple", "language", "n"]
    assert found[0].hash == full.hash


def test_adding_again_replaces(store: ColmemVectorStore) -> None:
    store.add(NODES)
    assert store.client.descriptor().id == "colmem"
    assert len(store.get_nodes()) == 3
    store.add([node("n1", "Owls sleep by day.", "birds")])
    [found] = store.get_nodes(["n1"])
    assert found.get_content() == "Owls sleep by day."
    assert len(store.get_nodes()) == 3


def test_bad_nodes_are_named(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    with pytest.raises(InvalidRequest, match=r"nodes\[1\] \(b\): document body must not be empty"):
        store.add([TextNode(id_="a", text="x"), TextNode(id_="b", text=" ")])
    with pytest.raises(InvalidRequest, match=r"nodes\[0\] \(a\): metadata.x: .*object"):
        store.add([TextNode(id_="a", text="x", metadata={"x": object()})])
    assert store.get_nodes() == []


def test_deleting(store: ColmemVectorStore) -> None:
    store.client.store(colmem.document("not LlamaIndex's"))
    store.delete("birds")
    store.delete("nothing")
    assert ids(store.get_nodes(["n1", "n2", "n3", "n4"])) == {"n3"}
    store.add(NODES)
    store.delete_nodes(["n1", "n9"])
    store.delete_nodes([])
    store.delete_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="author", value="bob")]))
    assert ids(store.get_nodes(["n1", "n2", "n3"])) == {"n3"}
    with pytest.raises(InvalidRequest, match="needs node_ids or filters"):
        store.delete_nodes()
    store.clear()
    assert [node.get_content() for node in store.get_nodes()] == ["not LlamaIndex's"]


# Filters.


def one(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (one("author", "ann"), {"n1", "n3"}),
        (one("year", 2021), {"n2", "n3"}),
        (one("year", "2021"), set()),
        (one("year", [2020, 2022], FilterOperator.IN), {"n1"}),
        (one("tags", "night"), {"n1"}),
        (one("tags", "bird", FilterOperator.CONTAINS), {"n1", "n2"}),
        (one("tags", ["night", "x"], FilterOperator.ANY), {"n1"}),
        (one("folder", "/food"), {"n3"}),
        (one("kind", "document"), {"n1", "n2", "n3"}),
        (one("ref_doc_id", ["birds", "x"], FilterOperator.IN), {"n1", "n2"}),
        (
            MetadataFilters(
                filters=[
                    MetadataFilter(key="folder", value="/food"),
                    MetadataFilters(filters=[MetadataFilter(key="author", value="ann")]),
                ]
            ),
            {"n3"},
        ),
        (
            MetadataFilters(
                filters=[
                    MetadataFilter(key="author", value="bob"),
                    MetadataFilter(key="year", value=2020),
                ],
                condition=FilterCondition.OR,
            ),
            {"n1", "n2"},
        ),
        (MetadataFilters(filters=[]), {"n1", "n2", "n3"}),
    ],
)
def test_filters(store: ColmemVectorStore, filters: MetadataFilters, expected: set[str]) -> None:
    assert ids(store.get_nodes(filters=filters)) == expected
    query = VectorStoreQuery(query_str="birds", similarity_top_k=9, filters=filters)
    assert set(store.query(query).ids or []) == expected
    both = store.get_nodes(node_ids=["n1"], filters=filters)
    assert ids(both) == expected & {"n1"}


def test_bounds_of_time(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    for day in (1, 2, 3):
        meta = {"observed_at": f"2026-01-0{day}T00:00:00Z"}
        store.add([TextNode(id_=str(day), text=f"day {day}", metadata=meta)])
    after = MetadataFilter(
        key="observed_at", value="2026-01-02T00:00:00Z", operator=FilterOperator.GTE
    )
    before = MetadataFilter(
        key="observed_at", value="2026-01-03T00:00:00Z", operator=FilterOperator.LT
    )
    assert ids(store.get_nodes(filters=MetadataFilters(filters=[after, before]))) == {"2"}


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (one("year", 2020, FilterOperator.GT), "cannot say `year >`"),
        (one("author", "ann", FilterOperator.NE), "cannot say `author !=`"),
        (one("folder", ["/a", "/b"], FilterOperator.IN), "a filter takes one `folder`, got 2"),
        (
            MetadataFilters(
                filters=[
                    MetadataFilter(key="author", value="ann"),
                    MetadataFilter(key="year", value=2020),
                ]
            ),
            "two conditions on `tags_any`",
        ),
        (
            MetadataFilters(
                filters=[
                    MetadataFilter(key="author", value="ann"),
                    MetadataFilter(key="folder", value="/food"),
                ],
                condition=FilterCondition.OR,
            ),
            "only conditions on tags and free metadata can be joined by OR",
        ),
        (
            MetadataFilters(
                filters=[MetadataFilter(key="author", value="ann")], condition=FilterCondition.NOT
            ),
            "cannot say NOT",
        ),
    ],
)
def test_filters_that_cannot_be_said_are_refused(
    store: ColmemVectorStore, filters: MetadataFilters, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        store.query(VectorStoreQuery(query_str="birds", filters=filters))


# Queries.


@pytest.mark.parametrize("mode", ["default", "hybrid", "semantic_hybrid", "sparse", "text_search"])
def test_modes(store: ColmemVectorStore, mode: str) -> None:
    query = VectorStoreQuery(query_str="owls at night", mode=VectorStoreQueryMode(mode))
    found = store.query(query)
    assert found.ids == ["n1"]
    assert found.nodes == [NODES[0]]
    assert found.similarities is not None
    assert found.similarities[0] > 0


def test_what_a_query_may_ask(store: ColmemVectorStore) -> None:
    hybrid = VectorStoreQueryMode.HYBRID
    by_alpha = {
        alpha: store.query(
            VectorStoreQuery(query_str="owls", mode=hybrid, alpha=alpha, hybrid_top_k=3)
        ).ids
        for alpha in (0.0, 1.0, None)
    }
    assert by_alpha[0.0] == ["n1"]
    assert len(by_alpha[1.0] or []) == len(by_alpha[None] or []) == 3
    sparse = VectorStoreQueryMode.SPARSE
    found = store.query(VectorStoreQuery(query_str="at", mode=sparse, sparse_top_k=2))
    assert len(found.ids or []) == 2
    found = store.query(VectorStoreQuery(query_str="owls", similarity_top_k=9, doc_ids=["bread"]))
    assert found.ids == ["n3"]
    found = store.query(VectorStoreQuery(query_str="owls", similarity_top_k=9, node_ids=["n2"]))
    assert found.ids == ["n2"]
    with pytest.raises(InvalidRequest, match="weights of its own"):
        store.query(VectorStoreQuery(query_str="owls", mode=hybrid, alpha=0.5))
    with pytest.raises(Unsupported, match="query mode svm; offered are default"):
        store.query(VectorStoreQuery(query_str="owls", mode=VectorStoreQueryMode.SVM))
    with pytest.raises(InvalidRequest, match="needs query_str"):
        store.query(VectorStoreQuery(mode=hybrid))


def test_by_embedding(store: ColmemVectorStore, colmem_engine: Engine) -> None:
    assert colmem_engine.embedder is not None
    model = ColmemEmbedding(colmem_engine.embedder)
    vector = model.get_query_embedding("bread")
    by_vector = store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=3))
    hits = colmem_engine.fetch(query="bread", mode="vector", limit=3).hits
    assert by_vector.similarities == pytest.approx([hit.score for hit in hits], abs=1e-6)
    assert (by_vector.ids or [])[0] == "n3"
    embedded = ColmemVectorStore(colmem_engine, is_embedding_query=True)
    index = VectorStoreIndex.from_vector_store(embedded, embed_model=model)
    [found] = index.as_retriever(similarity_top_k=1).retrieve("bread")
    assert found.node == NODES[2]
    assert found.score == pytest.approx(hits[0].score, abs=1e-6)


# The framework's own parts.


def test_an_index_built_from_documents(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    text = " ".join(f"Sentence number {i} speaks of owls and of larks." for i in range(80))
    documents = [
        Document(id_="long", text=text, metadata={"author": "ann"}),
        Document(id_="short", text="Yeast makes bread rise."),
    ]
    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=store),
        transformations=[SentenceSplitter(chunk_size=128, chunk_overlap=0)],
        embed_model=MockEmbedding(embed_dim=1),
    )
    assert len(store.get_nodes()) > 3
    retriever = index.as_retriever(similarity_top_k=1, filters=one("author", "ann"))
    [found] = retriever.retrieve("sentence number 40")
    assert "number 40" in found.get_content()
    assert found.node.source_node is not None
    assert found.node.source_node.node_id == "long"
    assert found.node.prev_node is not None
    assert ids(store.get_nodes([found.node.prev_node.node_id]))
    index.delete_ref_doc("long")
    assert [node.get_content() for node in store.get_nodes()] == ["Yeast makes bread rise."]
    index.insert(Document(text="A new one."))
    assert len(store.get_nodes()) == 2


def test_a_pipeline_ends_in_the_store(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(), MockEmbedding(embed_dim=1)], vector_store=store
    )
    pipeline.run(documents=[Document(text="Owls hunt.", metadata={"a": 1})])
    [found] = store.get_nodes()
    assert (found.get_content(), found.metadata, found.embedding) == ("Owls hunt.", {"a": 1}, None)


def test_the_retriever_reads_items_of_any_surface(store: ColmemVectorStore) -> None:
    meta = MemoryMeta(namespace="user:ann", tags=["likes"])
    store.client.store(colmem.learning("Ann likes owls.", meta=meta))
    retriever = ColmemRetriever(store.client, filter=MetaFilter(kinds=["learning"]))
    [found] = retriever.retrieve("owls")
    assert found.node.metadata["kind"] == "learning"
    assert found.node.metadata["namespace"] == "user:ann"
    assert len(ColmemRetriever(store.client, similarity_top_k=2).retrieve("owls")) == 2


def test_placement(colmem_engine: Engine) -> None:
    ann = ColmemVectorStore(colmem_engine, meta=MemoryMeta(namespace="user:ann"))
    bob = ColmemVectorStore(
        colmem_engine,
        meta=MemoryMeta(namespace="user:bob"),
        filter=MetaFilter(reach=Reach.exact("user:bob")),
    )
    for store in (ann, bob):
        store.add(NODES)
    bob.add([node("n1", "changed", "birds")])
    bob.delete("bread")
    assert ann.get_nodes() == NODES
    assert ids(bob.get_nodes()) == {"n1", "n2"}
    bob.clear()
    assert ann.get_nodes() == NODES
    assert bob.get_nodes() == []


@pytest.mark.anyio
async def test_every_call_can_be_awaited(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    assert await store.async_add(NODES) == ["n1", "n2", "n3"]
    found = await store.aquery(VectorStoreQuery(query_str="owls at night"))
    assert found.ids == ["n1"]
    await store.adelete("bread")
    await store.adelete_nodes(["n1"])
    assert ids(await store.aget_nodes()) == {"n2"}
    assert [n.node_id for n in await ColmemRetriever(colmem_engine).aretrieve("larks")] == ["n2"]
    assert colmem_engine.embedder is not None
    model = ColmemEmbedding(colmem_engine.embedder)
    assert len(await model.aget_query_embedding("larks")) == colmem_engine.embedder.dim
    await store.aclear()
    assert await store.aget_nodes() == []


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
