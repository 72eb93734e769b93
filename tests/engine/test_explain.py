"""engine.explain: its parts are those of the score that fetch answers with."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import colmem
from colmem import (
    FetchRequest,
    InvalidRequest,
    MemoryMeta,
    MetaFilter,
    Namespace,
    Reach,
    SourceKind,
    SourceRef,
    Unsupported,
    encode,
)
from colmem import settings as store_settings
from colmem.explanation import Explanation, Reason
from samples import SampleEmbedder

TALK = [
    "Ann: Do you still play the cello?",
    "Ben: Not since the spring, my wrist hurts.",
    "Ann: Oh no, what happened?",
    "Ben: I fell off a ladder while painting.",
]
NOTES = [
    "The cello is a bowed string instrument tuned in fifths.",
    "A ladder must stand at an angle of four to one.",
    "Weather for the coming week: rain, then sun.",
    "Painters prefer a primer before the first coat of paint.",
]
QUERY = "does Ben play the cello"
MODES = ("keyword", "vector", "hybrid")


def _fill(engine: Any, n_other: int = 0) -> list[str]:
    meta = MemoryMeta(thread_id="t", source=SourceRef(SourceKind.CONVERSATION))
    items = [colmem.document(text, meta=meta) for text in TALK]
    items += [
        colmem.document(text, meta=MemoryMeta(folder=f"/notes/{n}", tags=["note"]))
        for n, text in enumerate(NOTES)
    ]
    items += [
        colmem.document(f"Entry {n} on {word} and {n % 7} more cellos", meta=MemoryMeta())
        for n in range(n_other)
        for word in ("paint",)
    ]
    report = engine.ingest(items)
    assert report.stored == len(items)
    return [item.fingerprint() for item in items]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with colmem.open(":memory:") as engine:
        _fill(engine)
        yield engine


def check(engine: Any, request: FetchRequest) -> Explanation:
    """An explanation of a page, after seeing that it says what fetch answers."""
    page, explained = engine.fetch(request), engine.explain(request)
    assert [hit.id for hit in explained.hits] == [hit.id for hit in page.hits]
    for hit, shown in zip(page.hits, explained.hits, strict=True):
        assert shown.score == pytest.approx(hit.score, abs=1e-6)
        assert sum(shown.parts.values()) == pytest.approx(hit.score, abs=1e-5)
    return explained


@pytest.mark.parametrize("mode", MODES)
def test_parts_add_up_to_the_score(engine: Any, mode: str) -> None:
    explained = check(engine, FetchRequest(query=QUERY, mode=mode))
    assert [hit.rank for hit in explained.hits] == [*range(1, len(explained.hits) + 1)]
    assert all(ms >= 0 for ms in explained.stages_ms.values())
    assert encode(explained)
    for hit in explained.hits:
        if mode != "vector" and hit.bm25:
            assert sum(hit.terms.values()) == pytest.approx(hit.bm25, rel=1e-4)
            assert set(hit.terms) <= set(explained.terms)
        if mode == "keyword":
            assert hit.bm25 == pytest.approx(hit.score)
        if mode == "vector":
            assert hit.cosine == pytest.approx(hit.score, abs=1e-6)


def test_every_part_of_a_hybrid_score_is_named(engine: Any) -> None:
    explained = check(engine, FetchRequest(query=QUERY, mode="hybrid"))
    assert sum(explained.weights.values()) == pytest.approx(1, abs=1e-5)
    assert {"level", "filter", "embed", "keyword", "vector", "blend and rescore", "read"} == set(
        explained.stages_ms
    )
    of_ben = next(hit for hit in explained.hits if "dialogue_named" in hit.parts)
    assert {"lexical", "vector", "maxsim", "dialogue_answer"} <= set(of_ben.parts)
    note = next(hit for hit in explained.hits if not any("dialogue" in p for p in hit.parts))
    assert note.ranks["vector"] is not None
    low, high = explained.extremes["cosine"]
    assert low <= note.cosine <= high
    # No share but the words' and the meaning's; both can be computed from what is told.
    weights = explained.weights
    unit = (note.cosine - low) / (high - low)
    blend = weights["lexical"] + weights["vector"]
    most = 1 + 0.1 + 0.05 + 0.1 + 0.3 + 0.6 + 0.25 + 0.1
    expected = (1 - weights["maxsim"]) * weights["vector"] / blend * unit / most
    assert note.parts["vector"] == pytest.approx(expected, abs=1e-5)


def test_code_is_explained_by_its_distinct_pieces_too() -> None:
    code = "def {0}(x):\n    return [({0}, x[{0}]) for {0} in x if (x[0] != {0})]"
    with colmem.open(":memory:") as engine:
        engine.ingest(colmem.document(code.format(name)) for name in ("keys", "rows", "total"))
        explained = check(engine, FetchRequest(query="sum of all rows"))
    assert explained.weights["distinct"] > 0
    assert all("distinct" in hit.parts for hit in explained.hits)


def test_the_pages_behind_the_pool_are_explained_too() -> None:
    with colmem.open(":memory:") as engine:
        _fill(engine, n_other=700)
        for mode in MODES:
            request = FetchRequest(query="cello paint", mode=mode, limit=300)
            for _ in range(3):
                explained = check(engine, request)
                cursor = engine.fetch(request).next_cursor
                if cursor is None:
                    break
                request = FetchRequest(query="cello paint", mode=mode, limit=300, cursor=cursor)
            assert explained.hits[-1].rank > 600
        last = explained.hits[-1]
        assert last.ranks == {"keyword": None, "vector": None, "blend": None}


def test_deferred_near_duplicates_say_so(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with colmem.open(path) as engine:
        _fill(engine)
        engine.store(colmem.document(NOTES[0] + " "))
        engine.store(colmem.document(NOTES[0] + "!"))
    recorded = store_settings.read(path)
    ranking = {**recorded.ranking, "near_duplicates": 0.95}
    store_settings.write(path, store_settings.Settings(**{**_fields(recorded), "ranking": ranking}))
    with colmem.open(path) as engine:
        explained = check(engine, FetchRequest(query="cello", mode="hybrid"))
        assert sum("near_duplicates" in hit.parts for hit in explained.hits) == 2


def _fields(recorded: Any) -> dict[str, Any]:
    return {name: getattr(recorded, name) for name in recorded.__struct_fields__}


def test_a_query_of_punctuation_matches_as_it_stands(engine: Any) -> None:
    explained = check(engine, FetchRequest(query="?", mode="keyword"))
    assert len(explained.hits) == 2
    assert explained.hits[0].parts == {"substring": 1.0}


def test_the_filter_plan_counts_each_clause(engine: Any) -> None:
    filter = MetaFilter(folder="/notes/1", tags_any=["note"])
    plan = check(engine, FetchRequest(query="ladder", filter=filter)).filter
    assert plan.clauses == {"folder": 1, "tags_any": 4}
    assert (plan.admitted, plan.within) == (1, 8)
    assert "condition" in plan.keyword
    assert "mask over all rows" in plan.vector


def test_why_an_item_did_not_come() -> None:
    with colmem.open(":memory:") as engine:
        ids = _fill(engine)
        elsewhere = engine.store(
            colmem.document("A cello elsewhere.", meta=MemoryMeta(namespace=Namespace("user:ann")))
        ).id
        gone = engine.store(colmem.document("A cello gone.")).id
        engine.forget(ids=[gone])
        here = MetaFilter(reach=Reach.exact("root"), folder="/notes")

        def why(id: str, **fields: Any) -> Any:
            return engine.explain(query="cello", id=id, **fields).why_not

        assert why(ids[4]) is None
        assert why("unknown").reason is Reason.NOT_STORED
        assert why(gone).reason is Reason.FORGOTTEN
        outside = why(elsewhere, filter=here)
        assert outside.reason is Reason.OUTSIDE_REACH
        assert [refusal.clause for refusal in outside.refused_by] == ["reach", "folder"]
        assert outside.refused_by[0].held == '"user:ann"'
        refused = why(ids[0], filter=here)
        assert refused.reason is Reason.FILTERED
        assert [(r.clause, r.wanted, r.held) for r in refused.refused_by] == [
            ("folder", '"/notes"', "null")
        ]
        no_term = why(ids[6], mode="keyword")
        assert no_term.reason is Reason.NO_TERM
        assert "cello" in no_term.detail
        behind = why(ids[6], limit=2)
        assert behind.reason is Reason.BEHIND_LIMIT
        assert behind.hit.rank > 2
        assert sum(behind.hit.parts.values()) == pytest.approx(behind.hit.score, abs=1e-5)
        first = engine.fetch(query="cello", limit=1)
        before = why(first.hits[0].id, limit=1, cursor=first.next_cursor)
        assert (before.reason, before.hit.rank) == (Reason.BEFORE_PAGE, 1)


def test_an_expired_item_says_so(tmp_path: Path) -> None:
    created = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = {
        "id": "r1",
        "identifier": "cello",
        "fact_text": "The cello.",
        "memory_type": "fact",
        "ttl_seconds": 60,
        "created_at": created,
        "content_hash": colmem.content_hash("cello", "The cello."),
    }
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with colmem.open(":memory:") as engine:
        assert engine.hydrate(path).loaded == 1
        assert engine.explain(query="cello", id="r1").why_not.reason is Reason.EXPIRED


def test_explain_refuses_what_fetch_refuses() -> None:
    with colmem.open(":memory:", embedder=SampleEmbedder()) as engine:
        with pytest.raises(InvalidRequest, match="query must not be empty"):
            engine.explain(query=" ")
        with pytest.raises(InvalidRequest, match="unknown cursor"):
            engine.explain(query="x", cursor="AAAA")
    with pytest.raises((Unsupported, colmem.Unavailable)):
        engine.explain(query="x")
