"""Long items are as near to a query as their best passage, whatever happens to the store."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colmem
from colmem import MemoryMeta, MetaFilter
from colmem import settings as store_settings
from colmem.embed.static import StaticEmbedder
from colmem.index.spans import passage_spans
from colmem.long_items import PASSAGE_SHARE

FILLER = "the committee met again and spoke of budgets roads schools taxes and other matters "
NEEDLE = "Her cello strings snapped during the sonata."
SHORT = [
    f"A note on {word} and little else." for word in ("violins", "taxes", "weather", "schools")
]
EMBEDDER = StaticEmbedder()


def long_text(needle: str = NEEDLE, n: int = 40, at: int = 30) -> str:
    return FILLER * at + needle + " " + FILLER * (n - at)


def nearness(query: str, text: str) -> float:
    """What a search by meaning gives a text."""
    wanted = EMBEDDER.embed([query])[0]
    whole = EMBEDDER.embed([text])[0]
    spans = passage_spans(text)
    best = float(whole @ wanted)
    for start, end in spans:
        own = EMBEDDER.embed([text[start:end]])[0]
        best = max(best, float((PASSAGE_SHARE * own + (1 - PASSAGE_SHARE) * whole) @ wanted))
    return best


def check(engine: Any, texts: list[str], query: str = "cello strings") -> None:
    """Every text comes once, by how near it is, in pages of any size."""
    expected = sorted(((nearness(query, text), text) for text in texts), reverse=True)
    for size in (1, 3, len(texts)):
        found, cursor = [], None
        while True:
            page = engine.fetch(query=query, mode="vector", limit=size, cursor=cursor)
            found += page.hits
            cursor = page.next_cursor
            if cursor is None:
                break
        assert [hit.text for hit in found] == [text for _, text in expected]
        np.testing.assert_allclose(
            [hit.score for hit in found], [score for score, _ in expected], atol=1e-5
        )
    page = engine.fetch(query=query, mode="hybrid", limit=len(texts))
    assert sorted(hit.text for hit in page.hits) == sorted(texts)


def test_a_long_item_is_as_near_as_its_best_passage() -> None:
    texts = [long_text(), *SHORT, long_text("A ladder fell.", at=5)]
    with colmem.open(":memory:") as engine:
        for text in texts:
            engine.store(colmem.document(text))
        check(engine, texts)
        explained = engine.explain(query="cello strings", mode="vector")
        spans = {hit.id: hit.span for hit in explained.hits}
        needle = colmem.document(texts[0]).fingerprint()
        assert "Her cello strings" in spans[needle].text
        span = spans[needle]
        assert texts[0][span.start : span.end] == span.text
        assert sum(span is None for span in spans.values()) == len(SHORT)
        for mode in ("vector", "hybrid"):
            for hit in engine.explain(query="cello strings", mode=mode).hits:
                assert sum(hit.parts.values()) == pytest.approx(hit.score, abs=1e-5)


def test_a_long_conversation_is_searched_by_windows_of_turns() -> None:
    turns = [("user", FILLER.strip()) for _ in range(20)]
    turns[12] = ("assistant", NEEDLE)
    with colmem.open(":memory:") as engine:
        engine.store(colmem.conversation(turns))
        (hit,) = engine.explain(query="cello strings", mode="vector").hits
        assert f"assistant: {NEEDLE}" in hit.span.text
        assert all(line.startswith(("user: ", "assistant: ")) for line in hit.span.text.split("\n"))


def test_many_long_items_beside_many_short_ones() -> None:
    rng = np.random.default_rng(3)
    vocabulary = FILLER.split() + NEEDLE.split() + " ".join(SHORT).split()
    texts = [
        " ".join(rng.choice(vocabulary, n)) + f" {i}" for i, n in enumerate([260] * 60 + [9] * 300)
    ]
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(text) for text in texts)
        expected = sorted(((nearness("cello strings", t), t) for t in texts), reverse=True)
        for limit in (5, 200, 360):
            hits = engine.fetch(query="cello strings", mode="vector", limit=limit).hits
            scores = [score for score, _ in expected[:limit]]
            np.testing.assert_allclose([hit.score for hit in hits], scores, atol=1e-5)


def test_passages_outlive_closing_forgetting_compaction_and_another_embedder(
    tmp_path: Path,
) -> None:
    texts = [long_text(f"{NEEDLE} {n}", at=n) for n in range(8)] + SHORT
    path = tmp_path / "s"
    with colmem.open(path) as engine:
        ids = [engine.store(colmem.document(text)).id for text in texts]
        check(engine, texts)
    with colmem.open(path) as engine:
        check(engine, texts)
        held = engine._state.store.long_items.n_passages
        assert held > 8
        engine.forget(ids=ids[:3])
        check(engine, texts[3:])
        engine.compact()
        assert engine._state.store.long_items.n_passages < held
        check(engine, texts[3:])
        assert engine.check().ok
        engine.reembed("hotmem-hash-v1")
        engine.reembed("static-s256")
        check(engine, texts[3:])
    with colmem.open(path, read_only=True) as engine:
        check(engine, texts[3:])


@pytest.mark.parametrize("damage", ["remove", "cut", "state", "flip"])
def test_damaged_passages_are_made_again(tmp_path: Path, damage: str) -> None:
    texts = [long_text(f"{NEEDLE} {n}", at=n) for n in range(5)] + SHORT
    path = tmp_path / "s"
    with colmem.open(path) as engine:
        engine.ingest(colmem.document(text) for text in texts)
    folder = path / "vectors" / "0" / "passages"
    file = folder / "embeddings.f32"
    if damage == "remove":
        shutil.rmtree(folder)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    elif damage == "state":
        (folder / "passages.json").write_text("{}")
    else:
        data = bytearray(file.read_bytes())
        data[1000] ^= 0x40
        file.write_bytes(data)
    with colmem.open(path) as engine:
        if damage == "flip":
            assert engine.check().problems == [
                "the passages of long items were damaged; they were made again"
            ]
        check(engine, texts)
        assert engine.check().ok


def test_what_a_killed_process_did_not_flush_is_caught_up(tmp_path: Path) -> None:
    texts = [long_text(f"{NEEDLE} {n}", at=n) for n in range(6)] + SHORT
    path = tmp_path / "s"
    with colmem.open(path) as engine:
        engine.store(colmem.document(texts[0]))
        check(engine, texts[:1])
    pid = os.fork()
    if pid == 0:
        engine = colmem.open(path)
        for text in texts[1:]:
            engine.store(colmem.document(text))
            engine.fetch(query="cello", mode="vector", limit=1)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    with colmem.open(path, read_only=True) as engine:
        found = engine.fetch(query="cello strings", mode="vector", limit=20).hits
        assert len(found) == len(texts)
        assert found[0].score == pytest.approx(max(nearness("cello strings", t) for t in texts))
    with colmem.open(path) as engine:
        check(engine, texts)


def test_a_snapshot_keeps_one_vector_an_item_and_passages_are_rebuilt(tmp_path: Path) -> None:
    texts = [long_text(), *SHORT]
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(text) for text in texts)
        records = list(engine.records())
        assert {len(record["embedding"]) for record in records} == {4 * EMBEDDER.dim}
        engine.snapshot(tmp_path / "snapshot")
    with colmem.open(tmp_path / "s") as engine:
        assert engine.hydrate(tmp_path / "snapshot").embedding_reused == len(texts)
        check(engine, texts)


def test_passages_can_be_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with colmem.open(path) as engine:
        engine.store(colmem.document(long_text()))
    recorded = store_settings.read(path)
    fields = {name: getattr(recorded, name) for name in recorded.__struct_fields__}
    fields["ranking"] = {**recorded.ranking, "passages": False}
    store_settings.write(path, store_settings.Settings(**fields))
    with colmem.open(path) as engine:
        (hit,) = engine.explain(query="cello strings", mode="vector").hits
        assert hit.span is None
        whole = EMBEDDER.embed([long_text()])[0] @ EMBEDDER.embed(["cello strings"])[0]
        assert hit.score == pytest.approx(float(whole), abs=1e-5)


def test_a_filter_reaches_the_passages() -> None:
    with colmem.open(":memory:") as engine:
        for folder in ("/a", "/b"):
            engine.store(colmem.document(long_text(folder), meta=MemoryMeta(folder=folder)))
            engine.store(colmem.document(f"short {folder}", meta=MemoryMeta(folder=folder)))
        hits = engine.fetch(query="cello", mode="vector", filter=MetaFilter(folder="/b")).hits
        assert {hit.meta.folder for hit in hits} == {"/b"}
        assert len(hits) == 2
