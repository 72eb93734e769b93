"""What LangChain's suite does not ask: filters, scores, placement, retriever, chat history."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

import colmem
from colmem import InvalidRequest, MemoryMeta, MetaFilter, Reach, Unsupported
from colmem.adapters.langchain import (
    ColmemChatMessageHistory,
    ColmemEmbeddings,
    ColmemRetriever,
    ColmemVectorStore,
)

DOCUMENTS = [
    Document("Owls hunt at night.", metadata={"source": "birds.md", "page": 3, "language": "en"}),
    Document("Larks sing at dawn.", metadata={"source": "birds.md", "page": 4, "language": "en"}),
    Document("Yeast makes bread rise.", metadata={"source": "bread.md", "folder": "/food/bread"}),
]
Engine = colmem.Engine


@pytest.fixture
def store(colmem_engine: Engine) -> ColmemVectorStore:
    made = ColmemVectorStore(colmem_engine)
    made.add_documents(DOCUMENTS)
    return made


# Metadata and ids.


def test_metadata_comes_back_whole(colmem_engine: Engine) -> None:
    metadata = {
        "source": "a=b.md",
        "a=b%": [1, 2.5, None, True],
        "nested": {"deep": ["x"]},
        "tags": ["red", "green"],
        "folder": "/notes",
        "thread_id": 7,
        "observed_at": "2026-01-02T03:04:05Z",
        "": "no name",
        "kind": "poem",
    }
    store = ColmemVectorStore(colmem_engine)
    [id] = store.add_texts(["text"], [metadata])
    [document] = store.get_by_ids([id])
    assert document == Document("text", metadata=metadata, id=id)
    assert colmem_engine.get(ids=[id])[0].meta.folder == "/notes"


@pytest.mark.parametrize("observed", ["yesterday", "2026-01-02 03:04:05Z"])
def test_a_time_the_store_would_write_otherwise_is_kept_as_given(
    colmem_engine: Engine, observed: str
) -> None:
    store = ColmemVectorStore(colmem_engine)
    [id] = store.add_texts(["text"], [{"observed_at": observed, "tags": []}])
    assert store.get_by_ids([id])[0].metadata == {"observed_at": observed, "tags": []}


def test_metadata_that_is_no_json_is_refused(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    with pytest.raises(InvalidRequest, match=r"texts\[1\]: metadata.when: .*datetime"):
        store.add_texts(["a", "b"], [{}, {"when": datetime.now(UTC)}])
    with pytest.raises(InvalidRequest, match=r"texts\[0\]: document body must not be empty"):
        store.add_texts([" "])
    with pytest.raises(InvalidRequest, match="1 ids for 2 texts"):
        store.add_texts(["a", "b"], ids=["1"])
    with pytest.raises(TypeError, match="unknown arguments: collection"):
        store.add_texts(["a"], collection="x")
    assert store.similarity_search("a") == []


def test_of_one_id_twice_in_a_call_the_last_counts(colmem_engine: Engine) -> None:
    store = ColmemVectorStore(colmem_engine)
    texts = [f"text {i}" for i in range(250)]
    ids = store.add_texts(texts, ids=[str(i % 120) for i in range(250)])
    assert ids[:2] == ["0", "1"]
    assert len(set(ids)) == colmem_engine.stats()["items"] == 120
    assert store.get_by_ids(["3", "110", "nobody", "3"]) == [
        Document("text 243", id="3"),
        Document("text 230", id="110"),
    ]


def test_items_of_other_surfaces_are_documents_too(colmem_engine: Engine) -> None:
    meta = MemoryMeta(
        namespace="user:ann",
        tags=["likes"],
        observed_at="2026-01-01T00:00:00Z",
        turns=colmem.TurnRange(1, 2),
        tool_call=colmem.ToolCallRef("search"),
        source=colmem.SourceRef("link", "https://example.org"),
    )
    id = colmem_engine.store(colmem.learning("Ann likes tea.", meta=meta)).id
    [document] = ColmemVectorStore(colmem_engine).get_by_ids([id])
    assert document.metadata == {
        "kind": "learning",
        "confidence": pytest.approx(0.8),
        "namespace": "user:ann",
        "tags": ["likes"],
        "observed_at": "2026-01-01T00:00:00Z",
        "turn_first": 1,
        "turn_last": 2,
        "tool_name": "search",
        "source_kind": "link",
        "source_id": "https://example.org",
    }


# Searching.


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (MetaFilter(language="en"), {3, 4}),
        ({"language": "en"}, {3, 4}),
        ({"source": "birds.md"}, {3, 4}),
        ({"page": 4, "language": "en"}, {4}),
        ({"folder": "/food"}, {None}),
        ({"kind": "document", "source": "nowhere"}, set()),
        ({"tags": ["x", "y"]}, set()),
    ],
)
def test_filters(store: ColmemVectorStore, filter: Any, expected: set[int | None]) -> None:
    found = store.similarity_search("birds", k=10, filter=filter)
    assert {document.metadata.get("page") for document in found} == expected
    retriever = store.as_retriever(search_kwargs={"k": 10, "filter": filter})
    assert retriever.invoke("birds") == found


def test_what_a_filter_cannot_say_is_refused(store: ColmemVectorStore) -> None:
    with pytest.raises(InvalidRequest, match="two conditions on `tags_any`"):
        store.similarity_search("birds", filter={"source": "birds.md", "page": 3})
    with pytest.raises(InvalidRequest, match="a MetaFilter or a mapping, got str"):
        store.similarity_search("birds", filter="en")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown arguments: fetch_k"):
        store.similarity_search("birds", fetch_k=3)


def test_modes_and_scores(store: ColmemVectorStore) -> None:
    [(best, score), *_] = store.similarity_search_with_score("owls at night", k=3)
    assert best.metadata["page"] == 3
    assert 0 < score <= 1
    assert len(store.similarity_search("yeast", mode="keyword")) == 1
    for mode in ("hybrid", "vector", "keyword"):
        other = ColmemVectorStore(store.engine, mode=mode)
        found = other.similarity_search_with_relevance_scores("owls hunt", k=3)
        assert found[0][0] == best
        assert all(0 <= relevance <= 1 for _, relevance in found)


def test_by_vector(store: ColmemVectorStore) -> None:
    assert isinstance(store.embeddings, ColmemEmbeddings)
    vector = store.embeddings.embed_query("bread")
    by_vector = store.similarity_search_with_score_by_vector(vector, k=3)
    by_text = store.similarity_search_with_score("bread", k=3, mode="vector")
    assert [document for document, _ in by_vector] == [document for document, _ in by_text]
    assert by_vector[0][1] == pytest.approx(by_text[0][1], abs=1e-6)
    assert (
        store.similarity_search_by_vector(vector, k=1, filter={"page": 4})[0].metadata["page"] == 4
    )


def test_an_engine_without_search_by_vector_says_so() -> None:
    from colmem.reference import ReferenceEngine

    store = ColmemVectorStore(ReferenceEngine(), mode="keyword")
    store.add_texts(["owls hunt"], ids=["1"])
    assert store.similarity_search("owls")[0].id == "1"
    assert store.embeddings is None
    with pytest.raises(Unsupported, match="search by text"):
        store.similarity_search_by_vector([1.0])


def test_placement(colmem_engine: Engine) -> None:
    everyone = ColmemVectorStore(colmem_engine)
    ann = ColmemVectorStore(colmem_engine, meta=MemoryMeta(namespace="user:ann"))
    bob = ColmemVectorStore(
        colmem_engine,
        meta=MemoryMeta(namespace="user:bob"),
        filter=MetaFilter(reach=Reach.exact("user:bob")),
    )
    for store, text in ((everyone, "for all"), (ann, "for ann"), (bob, "for bob")):
        assert store.add_texts([text], ids=["1"]) == ["1"]

    def texts(store: ColmemVectorStore) -> set[str]:
        return {document.page_content for document in store.similarity_search("for", k=9)}

    assert texts(everyone) == {"for all", "for ann", "for bob"}
    assert texts(ann) == {"for all", "for ann"}
    assert texts(bob) == {"for bob"}
    stranger = colmem_engine.list(filter=MetaFilter(reach=Reach.exact("user:ann"))).items[0].id
    assert bob.get_by_ids([stranger]) == []
    bob.delete([stranger])
    bob.delete(["1"])
    assert texts(everyone) == {"for all", "for ann"}
    with pytest.raises(InvalidRequest, match="two conditions on `reach`"):
        bob.similarity_search("for", filter=MetaFilter(reach=Reach.of("user:ann")))


def test_deleting_all_leaves_what_others_stored(store: ColmemVectorStore) -> None:
    store.engine.store(colmem.document("not LangChain's"))
    assert store.delete()
    assert [hit.text for hit in store.engine.list().items] == ["not LangChain's"]


def test_from_texts_opens_a_store_with_the_embeddings(tmp_path: Path) -> None:
    embeddings = DeterministicFakeEmbedding(size=8)
    path = tmp_path / "s"
    made = ColmemVectorStore.from_texts(
        ["foo", "bar"], embeddings, [{"n": 1}, {"n": 2}], ids=["a", "b"], path=path, mode="vector"
    )
    with made.engine:  # type: ignore[attr-defined]
        assert made.similarity_search("foo", k=1) == [Document("foo", id="a", metadata={"n": 1})]
    again = ColmemVectorStore.from_documents([], embeddings, path=path, mode="vector")
    with again.engine:  # type: ignore[attr-defined]
        key = again.engine.embedder.key  # type: ignore[attr-defined]
        assert key == "langchain:DeterministicFakeEmbedding"
        assert again.similarity_search_by_vector(embeddings.embed_query("bar"), k=1)[0].id == "b"


def test_the_retriever(store: ColmemVectorStore) -> None:
    store.engine.store(colmem.learning("Owls see well in the dark."))
    retriever = ColmemRetriever(engine=store.engine, k=2, filter=MetaFilter(kinds=["learning"]))
    [document] = retriever.invoke("owls")
    assert document.metadata["kind"] == "learning"
    assert len(ColmemRetriever(engine=store.engine, k=2, mode="keyword").invoke("owls")) == 2
    with pytest.raises(InvalidRequest, match="query must not be empty"):
        retriever.invoke(" ")


@pytest.mark.anyio
async def test_the_retriever_can_be_awaited(store: ColmemVectorStore) -> None:
    found = await ColmemRetriever(engine=store.engine, k=1).ainvoke("owls")
    assert found[0].metadata["page"] == 3


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# Chat history.

MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("assistant: is a word\n in my text [tools: x]"),
    AIMessage(
        "",
        tool_calls=[{"name": "search", "args": {"q": "owls"}, "id": "c1", "type": "tool_call"}],
        response_metadata={"model_name": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ToolMessage("three owls", tool_call_id="c1", name="search"),
    AIMessage("Three.", id="run-1"),
    HumanMessage([{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": "x"}]),
    ChatMessage("hm", role="critic"),
    HumanMessage(" "),
]


def test_messages_come_back_as_they_were(colmem_engine: Engine) -> None:
    history = ColmemChatMessageHistory(colmem_engine, "s1")
    history.add_messages(MESSAGES[:3])
    for message in MESSAGES[3:]:
        history.add_message(message)
    assert history.messages == MESSAGES
    assert [type(message) for message in history.messages] == [type(m) for m in MESSAGES]


def test_equal_messages_are_kept_apart(colmem_engine: Engine) -> None:
    history = ColmemChatMessageHistory(colmem_engine, "s1")
    history.add_messages([HumanMessage("ok")] * 120)
    history.add_user_message("ok")
    assert history.messages == [HumanMessage("ok")] * 121


def test_a_session_is_a_thread_that_other_surfaces_find(colmem_engine: Engine) -> None:
    history = ColmemChatMessageHistory(colmem_engine, "s1", meta=MemoryMeta(namespace="user:ann"))
    history.add_messages([HumanMessage("Where do owls nest?"), AIMessage("In hollow trees.")])
    [hit] = colmem_engine.fetch(query="nest", mode="keyword").hits
    assert hit.text == "user: Where do owls nest?"
    assert (hit.meta.thread_id, hit.meta.namespace) == ("s1", "user:ann")
    assert hit.meta.turns == colmem.TurnRange(0, 0)
    assert hit.meta.observed_at is not None


def test_clearing_a_session_leaves_the_others(colmem_engine: Engine) -> None:
    first = ColmemChatMessageHistory(colmem_engine, "s1")
    second = ColmemChatMessageHistory(colmem_engine, "s2")
    for history in (first, second):
        history.add_user_message("hello")
    colmem_engine.store(colmem.document("a note", meta=MemoryMeta(thread_id="s1")))
    first.clear()
    first.clear()
    assert first.messages == []
    assert len(second.messages) == 1
    assert colmem_engine.stats()["items"] == 2


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_a_chain_keeps_its_history(colmem_engine: Engine) -> None:
    def answer(given: dict[str, Any]) -> str:
        return f"{len(given['history'])} before: {given['text']}"

    chain = RunnableWithMessageHistory(
        RunnableLambda(answer),
        lambda session_id: ColmemChatMessageHistory(colmem_engine, session_id),
        input_messages_key="text",
        history_messages_key="history",
    )
    config: Any = {"configurable": {"session_id": "s"}}
    assert chain.invoke({"text": "one"}, config) == "0 before: one"
    assert chain.invoke({"text": "two"}, config) == "2 before: two"


@pytest.mark.anyio
async def test_history_can_be_awaited(colmem_engine: Engine) -> None:
    history = ColmemChatMessageHistory(colmem_engine, "s1")
    await history.aadd_messages([HumanMessage("hi")])
    assert await history.aget_messages() == [HumanMessage("hi")]
    await history.aclear()
    assert history.messages == []


def test_what_is_no_message_is_refused(colmem_engine: Engine) -> None:
    history = ColmemChatMessageHistory(colmem_engine, "s1")
    with pytest.raises(InvalidRequest, match=r"messages\[1\]: expected a message, got str"):
        history.add_messages([HumanMessage("x"), "y"])  # type: ignore[list-item]
    assert history.messages == []
