"""Checks of list, get, explore, fetch and recall beyond the contract's own suite."""

from __future__ import annotations

from typing import Any

from colmem.conformance.harness import PAGES_MAX, Run
from colmem.contract import (
    ExploreRequest,
    FetchMode,
    FetchPage,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    ListRequest,
    MetaFilter,
    Namespace,
    Reach,
    RecallRequest,
    StoreItem,
    Unsupported,
    conversation,
    document,
    learning,
)


def check_time_bounds(run: Run) -> None:
    """``observed_after`` is inclusive and ``observed_before`` exclusive, to the nanosecond."""
    tag = f"{run.marker}-time"
    times = {
        "early": "2024-05-01T11:59:59.999999999Z",
        "edge": "2024-05-01T12:00:00Z",
        "late": "2024-05-01T12:00:00.000000001Z",
    }
    ids = {
        name: run.store(run.doc(f"time {name}", tags=[tag], observed_at=at)).id
        for name, at in times.items()
    }
    ids["undated"] = run.store(run.doc("time undated", tags=[tag])).id
    base = run.filter.replace(tags_any=[tag])
    edge = times["edge"]
    cases = {
        "observed_after": (base.replace(observed_after=edge), ["edge", "late"]),
        "observed_before": (base.replace(observed_before=edge), ["early"]),
        "both bounds": (
            base.replace(observed_after=times["early"], observed_before=times["late"]),
            ["early", "edge"],
        ),
        "an empty span": (base.replace(observed_after=edge, observed_before=edge), []),
    }
    for what, (filter, names) in cases.items():
        run.lists_exactly(filter, [ids[name] for name in names], what)


def check_paths(run: Run) -> None:
    """A path filter admits the path and what lies below, at whole names only."""
    top = f"/{run.marker}"
    folders = [f"{top}/a/b", f"{top}/a/b/", f"{top}/a/b/c", f"{top}/a/bc", f"{top}/A/b", "a/b", ""]
    ids = {
        folder: run.store(run.doc(f"path {number}", folder=folder)).id
        for number, folder in enumerate(folders)
    }
    run.store(run.doc("path none"))
    below = [f"{top}/a/b", f"{top}/a/b/", f"{top}/a/b/c"]
    cases = {
        f"{top}/a/b": below,
        f"{top}/a/b/": below,
        f"{top}/a": [*below, f"{top}/a/bc"],
        f"{top}/a/b/c": [f"{top}/a/b/c"],
        "a": ["a/b"],
    }
    for wanted, expected in cases.items():
        filter = run.filter.replace(folder=wanted)
        run.lists_exactly(filter, [ids[folder] for folder in expected], f"folder {wanted!r}")
    # The top admits every absolute path and the empty one; other checks may have stored some.
    for wanted in ("", "/", "//"):
        listed = set(run.list_ids(run.filter.replace(folder=wanted)))
        for folder, id in ids.items():
            run.same(id in listed, folder != "a/b", f"whether folder {wanted!r} admits {folder!r}")


def check_filter_values(run: Run) -> None:
    """Strings are compared exactly; an empty one is a value; lists need one member to match."""
    tag = f"{run.marker}-values"
    held: dict[str, dict[str, Any]] = {
        "plain": {"language": "en", "tags": [tag, "x", "x"]},
        "upper": {"language": "EN", "tags": [tag, "X"]},
        "empty": {"language": "", "tags": [tag, ""]},
        "unset": {"tags": [tag]},
        "nfc": {"language": "\u00e9", "tags": [tag]},
        "nfd": {"language": "e\u0301", "tags": [tag]},
    }
    ids = {name: run.store(run.doc(f"value {name}", **fields)).id for name, fields in held.items()}
    base = run.filter.replace(tags_any=[tag])
    for name in ("plain", "upper", "empty", "nfc", "nfd"):
        language = held[name]["language"]
        run.lists_exactly(base.replace(language=language), [ids[name]], f"language {language!r}")
    both = ids["plain"], ids["empty"]
    listed = set(run.list_ids(run.filter.replace(tags_any=["absent", "x", ""])))
    run.require(listed.issuperset(both), "tags_any does not find an item with one of its tags")
    wrong = listed & {ids["upper"], ids["unset"]}
    run.require(not wrong, "tags_any finds an item with none of its tags")
    run.lists_exactly(base.replace(kinds=[], sources=[]), list(ids.values()), "empty lists")
    run.lists_exactly(base.replace(sources=["agent"]), list(ids.values()), "the default source")


def check_reach_edges(run: Run) -> None:
    """A reach goes by whole segments; both flags together see above and below; a sibling never."""
    tag = f"{run.marker}-edges"
    near = Namespace.parse(f"team:{run.marker}/agent:a")
    nodes = {
        "root": Namespace.root(),
        "team": Namespace.parse(f"team:{run.marker}"),
        "near": near,
        "longer": Namespace.parse(f"team:{run.marker}/agent:ab"),
        "below": near.child("workspace", "w"),
        "kind": Namespace.parse(f"team:{run.marker}/user:a"),
    }
    ids = {
        name: run.store(run.doc("edge", tags=[tag], namespace=node)).id
        for name, node in nodes.items()
    }
    base = run.filter.replace(tags_any=[tag])
    both = Reach(at=near, inherit=True, descendants=True)
    cases = {
        "subtree": (Reach.subtree(near), ["near", "below"]),
        "inherit and descendants": (both, ["root", "team", "near", "below"]),
        "of": (Reach.of(near), ["root", "team", "near"]),
        "the default": (Reach(), ["root"]),
        "everything": (Reach.subtree("root"), list(nodes)),
        "none": (None, list(nodes)),
    }
    for what, (reach, names) in cases.items():
        filter = base.replace(reach=reach)
        run.lists_exactly(filter, [ids[name] for name in names], f"reach {what}")
        hits = run.engine.get(GetRequest(list(ids.values()), reach=reach))
        expected = [id for name, id in ids.items() if name in names]
        run.same([hit.id for hit in hits], expected, f"the ids of a get with reach {what}")


def check_request_validation(run: Run) -> None:
    """Requests are validated by every operation."""
    engine, filter = run.engine, run.filter
    word, blank = run.marker, "\u3000 \n"
    run.refused_request(lambda: engine.list(ListRequest(filter=filter, limit=0)), "list limit 0")
    for what, question, limit in (("blank question", blank, 1), ("recall limit 0", word, 0)):
        recall = RecallRequest(question=question, filter=filter, limit=limit)
        run.refused_request(lambda recall=recall: engine.recall(recall), what)  # type: ignore[misc]
    for mode in engine.descriptor().fetch_modes:
        for what, query, limit in (("blank query", blank, 1), ("fetch limit 0", word, 0)):
            fetch = FetchRequest(query=query, mode=mode, filter=filter, limit=limit)
            run.refused_request(lambda fetch=fetch: engine.fetch(fetch), what)  # type: ignore[misc]
    for ids in ([word] * 201, [word, " "]):
        get = GetRequest(ids)
        run.refused_request(lambda get=get: engine.get(get), f"get of {len(ids)} ids")  # type: ignore[misc]
    for limit, scan_limit in ((501, 1), (1, 0), (1, 50_001)):
        explore = ExploreRequest(facet="tag", filter=filter, limit=limit, scan_limit=scan_limit)
        what = f"explore with limit {limit}, scan_limit {scan_limit}"
        run.refused_request(lambda explore=explore: engine.explore(explore), what)  # type: ignore[misc]


def check_mode_gate(run: Run) -> None:
    """An undeclared mode is refused before the request is looked at."""
    declared = run.engine.descriptor().fetch_modes
    for mode in FetchMode:
        if mode not in declared:
            request = FetchRequest(query=" ", mode=mode, filter=run.filter, limit=0)
            run.refused(
                Unsupported,
                lambda request=request: run.engine.fetch(request),  # type: ignore[misc]
                f"an invalid fetch in the undeclared mode {mode}",
            )


def check_unknown_cursor(run: Run) -> None:
    """A cursor no page gave is refused."""
    run.held()
    cursor = f"{run.marker} is no cursor"
    run.refused_request(
        lambda: run.engine.list(ListRequest(filter=run.filter, limit=1, cursor=cursor)),
        "list with an unknown cursor",
    )
    for mode in run.engine.descriptor().fetch_modes:
        request = FetchRequest(
            query=run.marker, mode=mode, filter=run.filter, limit=1, cursor=cursor
        )
        run.refused_request(
            lambda request=request: run.engine.fetch(request),  # type: ignore[misc]
            f"a {mode} fetch with an unknown cursor",
        )


def check_list_pages(run: Run) -> None:
    """Pages of any size visit the same items once, and the last one has no cursor."""
    for number in range(5):
        run.engine.store(run.doc(f"page {number}"))
    ids = sorted(run.list_ids(run.filter))
    for limit in (1, 3, len(ids), len(ids) + 1):
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(len(ids) + 2):
            request = ListRequest(filter=run.filter, limit=limit, cursor=cursor)
            page = run.engine.list(request)
            run.require(len(page.items) <= limit, f"a page of limit {limit} is longer than it")
            seen.extend(hit.id for hit in page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        run.require(cursor is None, f"the listing with limit {limit} does not end")
        run.same(sorted(seen), ids, f"the items of pages with limit {limit}")


def check_fetch_pages(run: Run) -> None:
    """Pages of a fetch show each hit once, best first, as one long page does."""
    tag = f"{run.marker}-fetch"
    for number in range(5):
        run.store(run.doc(f"fetch {number}", tags=[tag]))
    filter = run.filter.replace(tags_any=[tag])
    for mode in run.engine.descriptor().fetch_modes:
        whole = _fetch(run, mode, filter, limit=50)
        scores = [hit.score for hit in whole.hits]
        run.same(scores, sorted(scores, reverse=True), f"the order of a {mode} fetch's scores")
        run.require(whole.next_cursor is None, f"the only page of a {mode} fetch has a cursor")
        ids = [hit.id for hit in whole.hits]
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = _fetch(run, mode, filter, limit=2, cursor=cursor)
            run.require(len(page.hits) <= 2, f"a {mode} page of limit 2 holds more hits")
            seen.extend(hit.id for hit in page.hits)
            run.require(len(seen) <= len(ids), f"the pages of a {mode} fetch repeat hits")
            cursor = page.next_cursor
            if cursor is None:
                break
        run.same(seen, ids, f"the hits of a {mode} fetch in pages of 2")


def _fetch(
    run: Run, mode: FetchMode, filter: MetaFilter, *, limit: int, cursor: str | None = None
) -> FetchPage:
    request = FetchRequest(
        query=f"{run.marker} fetch 3", mode=mode, filter=filter, limit=limit, cursor=cursor
    )
    return run.engine.fetch(request)


def check_fetch_hits(run: Run) -> None:
    """A hit of a fetch shows the item as list does, its score aside."""
    items: list[StoreItem] = [
        document(f"{run.marker} hit document", title="Hit", meta=run.meta(folder="/hit")),
        learning(f"{run.marker} hit learning", confidence=0.7, meta=run.meta(folder="/hit")),
        conversation([("user", f"{run.marker} hit turn")], meta=run.meta(folder="/hit")),
    ]
    for item in items:
        run.store(item)
    filter = run.filter.replace(folder="/hit")
    listed = {hit.id: hit for hit in run.list_all(filter)}
    for mode in run.engine.descriptor().fetch_modes:
        for hit in _fetch(run, mode, filter, limit=10).hits:
            run.require(hit.id in listed, f"a {mode} fetch shows an item that is not listed")
            shown = listed[hit.id]
            for field in ("kind", "text", "meta", "confidence"):
                got, expected = getattr(hit, field), getattr(shown, field)
                run.same(got, expected, f"the {field} of a {mode} hit")
    forgotten = items[0].fingerprint()
    run.engine.forget(ForgetTarget(ids=[forgotten]))
    for mode in run.engine.descriptor().fetch_modes:
        ids = [hit.id for hit in _fetch(run, mode, filter, limit=10).hits]
        run.require(forgotten not in ids, f"a {mode} fetch shows a forgotten item")


def check_get_repeats(run: Run) -> None:
    """Get answers a repeated id once, where it is first named; unknown ids are left out."""
    first = run.store(run.doc("get repeat 1")).id
    second = run.store(run.doc("get repeat 2")).id
    unknown = f"{run.marker}-unknown"
    hits = run.engine.get(GetRequest([second, unknown, first, second]))
    run.same([hit.id for hit in hits], [second, first], "the ids of a get with repeats")
    run.require(all(hit.score == 0 for hit in hits), "a hit of a get has a score")
    run.same(run.engine.get(GetRequest([unknown])), [], "a get of an unknown id")


def check_explore_counts(run: Run) -> None:
    """Tags count with repeats; ties go by code point; what is cut or missing is counted."""
    folder = f"/{run.marker}/explore"
    for number, tags in enumerate((["x", "x"], ["b", "a"], ["é", "Z", "~"], [], [])):
        run.store(run.doc(f"explore {number}", folder=folder, tags=tags))
    filter = run.filter.replace(folder=folder)
    page = run.engine.explore(ExploreRequest(facet="tag", filter=filter, limit=500))
    pairs = [(bucket.value, bucket.count) for bucket in page.buckets]
    expected = [("x", 2), ("Z", 1), ("a", 1), ("b", 1), ("~", 1), ("é", 1)]
    run.same(pairs, expected, "the counts by tag")
    run.same((page.total, page.missing), (5, 2), "the total and the missing")
    run.same(page.more_buckets, 0, "the number of buckets cut from a whole answer")
    cut = run.engine.explore(ExploreRequest(facet="tag", filter=filter, limit=2))
    pairs = [(bucket.value, bucket.count) for bucket in cut.buckets]
    run.same(pairs, expected[:2], "the counts by tag cut to 2")
    run.same(cut.more_buckets, 4, "the number of buckets cut")
    none = run.engine.explore(ExploreRequest(facet="repo", filter=filter, limit=10))
    run.same((none.buckets, none.missing), ([], 5), "the counts by an unset field")


def check_explore_scan(run: Run) -> None:
    """An answer is truncated when, and only when, it stops at the scan limit before the end."""
    folder = f"/{run.marker}/scan"
    for number in range(3):
        run.store(run.doc(f"scan {number}", folder=folder))
    filter = run.filter.replace(folder=folder)
    for scan_limit in (1, 2):
        request = ExploreRequest(facet="folder", filter=filter, limit=10, scan_limit=scan_limit)
        page = run.engine.explore(request)
        # An engine that aggregates by itself may count everything and never truncate.
        expected = scan_limit if page.truncated else 3
        run.same(page.total, expected, f"the total with scan_limit {scan_limit}")
    exact = run.engine.explore(
        ExploreRequest(facet="folder", filter=filter, limit=10, scan_limit=3)
    )
    run.require(not exact.truncated, "an answer that read everything says it is truncated")
    run.same(exact.total, 3, "the total with scan_limit 3")


def check_recall_filter(run: Run) -> None:
    """An answer cites only what its filter admits, and at most its limit."""
    node = Namespace.agent(f"{run.marker}-recall")
    for name in ("one", "two", "three"):
        run.store(run.doc(f"recall {name}", namespace=node))
    run.store(run.doc("recall elsewhere"))
    filter = run.filter.replace(reach=Reach.exact(node))
    admitted = set(run.list_ids(filter))
    request = RecallRequest(question=f"{run.marker} recall elsewhere", filter=filter, limit=2)
    citations = run.engine.recall(request).citations
    run.require(len(citations) <= 2, f"an answer of limit 2 has {len(citations)} citations")
    strangers = {citation.id for citation in citations} - admitted
    run.require(not strangers, f"an answer cites what its filter refuses: {sorted(strangers)}")
    nothing = run.filter.replace(folder=f"/{run.marker}/nowhere")
    request = RecallRequest(question=run.marker, filter=nothing, limit=2)
    run.same(run.engine.recall(request).citations, [], "the citations of an empty selection")
