"""The contract's own checks, in its order and under its names.

Each is a plain function of a Run; it can run alone, storing what it needs.
"""

from __future__ import annotations

from collections import Counter

from colmem.conformance.harness import Run
from colmem.conformance.probes import probes
from colmem.contract import (
    ExploreRequest,
    Facet,
    FetchMode,
    FetchRequest,
    ForgetTarget,
    GetRequest,
    Hit,
    ItemKind,
    MetaFilter,
    Namespace,
    Reach,
    RecallRequest,
    SourceRef,
    StoreItem,
    ToolCallRef,
    Turn,
    Unsupported,
    conversation,
    document,
    learning,
)

FETCH_LIMIT = 50


def check_health(run: Run) -> None:
    """The engine serves."""
    health = run.engine.health()
    run.require(health.is_serving, f"the engine is {health.state}: {health.reason}")


def full_items(run: Run) -> list[StoreItem]:
    """Make one item of each kind with every optional field of its type set."""
    m = run.marker
    call = ToolCallRef("search", "call-1")
    turns = [
        Turn("user", f"{m} what is it?", at="2024-03-01T10:00:00Z"),
        Turn("assistant", f"{m} it is this", at="2024-03-01T10:00:05.250Z", tool_calls=[call]),
    ]
    source = SourceRef("conversation", f"{m}-thread")
    return [
        document(
            f"{m} round trip body",
            title="Round trip",
            mime="text/plain",
            meta=run.meta(tags=[f"{m}-tag"]),
        ),
        conversation(turns, meta=run.meta(source=source)),
        learning(
            f"{m} prefers round trips",
            kind="preference",
            confidence=0.75,
            evidence="said so",
            meta=run.meta(),
        ),
    ]


def check_round_trip(run: Run) -> None:
    """What is stored is listed as it was, under its kind."""
    for item in full_items(run):
        receipt = run.store(item)
        listed = run.list_all(run.filter.replace(kinds=[item.kind]))
        for hit in listed:
            run.same(hit.kind, item.kind, "the kind of a hit listed by kind")
        found = [hit for hit in listed if hit.id == receipt.id]
        run.same(len(found), 1, f"the number of times a stored {item.kind} is listed")
        same_as_item(run, found[0], item)


def same_as_item(run: Run, hit: Hit, item: StoreItem) -> None:
    """Report a wrong answer unless a hit shows an item whole."""
    run.same(hit.kind, item.kind, "the kind of a hit")
    run.same(hit.meta, item.meta, f"the metadata of a {item.kind}")
    run.same(hit.confidence, item.confidence, f"the confidence of a {item.kind}")
    run.same(hit.text, item.render_text(), f"the text of a {item.kind}")


def check_replay(run: Run) -> None:
    """An item stored twice is held once."""
    item = run.doc("replay")
    first = run.store(item)
    second = run.engine.store(item)
    run.require(second.replayed, "the second receipt of an item does not say replayed")
    run.same(second.id, first.id, "the id of the second receipt")
    ids = [hit.id for hit in run.list_all(run.filter)]
    run.same(ids.count(first.id), 1, "the number of times a replayed item is listed")


def check_explore(run: Run) -> None:
    """Counts agree with the listing, and narrowing leads to what was counted."""
    for number in range(2):
        run.engine.store(run.doc(f"explore {number}"))
    run.engine.store(learning(f"{run.marker} explore", meta=run.meta()))
    listed = run.list_all(run.filter)
    request = ExploreRequest(facet="kind", filter=run.filter, limit=10)
    page = run.engine.explore(request)
    run.same(page.facet, Facet.KIND, "the facet of the answer")
    run.require(not page.truncated, "the answer says it is truncated")
    run.same(page.total, len(listed), "the total")
    counts = {bucket.value: bucket.count for bucket in page.buckets}
    run.same(counts, dict(Counter(str(hit.kind) for hit in listed)), "the counts by kind")
    ordered = [bucket.count for bucket in page.buckets]
    run.same(ordered, sorted(ordered, reverse=True), "the order of the counts")
    for bucket in page.buckets:
        narrowed = Facet.KIND.narrow(run.filter, bucket.value)
        n_items = len(run.list_all(narrowed))
        run.same(n_items, bucket.count, f"the number of items listed as {bucket.value}")
    page = run.engine.explore(ExploreRequest(facet="workspace", filter=run.filter, limit=10))
    pairs = [(bucket.value, bucket.count) for bucket in page.buckets]
    run.same(pairs, [(run.workspace, len(listed))], "the counts by workspace")
    run.same(page.missing, 0, "the number of items without a workspace")
    run.refused_request(
        lambda: run.engine.explore(ExploreRequest(facet="kind", filter=run.filter, limit=0)),
        "explore with limit 0",
    )


def check_get(run: Run) -> None:
    """Get answers the known ids in the order they are named."""
    run.held()
    run.engine.store(run.doc("get"))  # so that there is an order to keep
    listed = {hit.id: hit for hit in run.list_all(run.filter)}
    known = list(listed)[::-1]
    asked = [known[0], f"{run.marker}-unknown", *known[1:]]
    hits = run.engine.get(GetRequest(asked))
    run.same([hit.id for hit in hits], known, "the ids of a get")
    for hit in hits:
        shown = listed[hit.id]
        same = (hit.kind, hit.meta, hit.text) == (shown.kind, shown.meta, shown.text)
        run.require(same, f"get shows {hit.id} other than list does")
    run.refused_request(lambda: run.engine.get(GetRequest([])), "get without ids")


def check_store_many(run: Run) -> None:
    """A batch is stored in order, under its items' fingerprints."""
    batch = [run.doc(f"bulk-{number}") for number in range(3)]
    receipts = run.engine.store_many(batch)
    run.same(len(receipts), len(batch), "the number of receipts")
    run.require(not any(r.replayed for r in receipts), "a receipt of new items says replayed")
    ids = [item.fingerprint() for item in batch]
    run.same([receipt.id for receipt in receipts], ids, "the ids of the receipts")
    missing = set(ids) - set(run.list_ids(run.filter))
    run.require(not missing, f"stored items are not listed: {sorted(missing)}")
    again = run.engine.store_many(batch)
    run.require(all(r.replayed for r in again), "the same batch again is not replayed")
    run.refused_request(lambda: run.engine.store_many([]), "an empty batch")


def check_fetch_filters(run: Run) -> None:
    """Every field of a filter holds in every declared mode, and in list."""
    made = probes(run)
    for probe in made:
        run.engine.store(probe.item)
    modes = run.engine.descriptor().fetch_modes
    for probe in made:
        id = probe.item.fingerprint()
        for mode in modes:
            ids = _fetched(run, mode, probe.filter)
            run.same(set(ids), {id}, f"the ids of a {mode} fetch filtered by {probe.field}")
        run.lists_exactly(probe.filter, [id], f"a filter by {probe.field}")
    for mode in modes:
        absent = {probe.item.fingerprint() for probe in made} - set(
            _fetched(run, mode, run.probe_filter)
        )
        run.require(not absent, f"a {mode} fetch of all probes leaves out {sorted(absent)}")


def _fetched(run: Run, mode: FetchMode, filter: MetaFilter) -> list[str]:
    request = FetchRequest(query=run.marker, mode=mode, filter=filter, limit=FETCH_LIMIT)
    return [hit.id for hit in run.engine.fetch(request).hits]


def check_unsupported_modes(run: Run) -> None:
    """A mode that is not declared is refused."""
    for mode in FetchMode:
        if mode not in run.engine.descriptor().fetch_modes:
            request = FetchRequest(query=run.marker, mode=mode, filter=run.filter, limit=1)
            run.refused(
                Unsupported,
                lambda request=request: run.engine.fetch(request),  # type: ignore[misc]
                f"a fetch in the undeclared mode {mode}",
            )


def check_namespaces(run: Run) -> None:
    """A reach confines every read and a forget by filter."""
    tag = "namespaces"
    a, b = (Namespace.parse(f"agent:{run.marker}-{name}") for name in "ab")
    s = a.child("agent", "scout")
    base = run.filter.replace(tags_any=[tag])
    nodes = {"root": Namespace.root(), "A": a, "B": b, "S": s}
    texts = {"root": "shared", "A": "shared", "B": "shared", "S": "scout"}
    items = [
        learning(
            f"{run.marker} {texts[name]} fact",
            confidence=0.9,
            meta=run.meta(tags=[tag], namespace=node),
        )
        for name, node in nodes.items()
    ]
    receipts = run.engine.store_many(items)
    ids = {name: receipt.id for name, receipt in zip(nodes, receipts, strict=True)}
    run.require(ids["A"] != ids["B"], "the same text at two nodes has one id")
    sees = {
        "of(A)": (Reach.of(a), ["root", "A"]),
        "of(B)": (Reach.of(b), ["root", "B"]),
        "of(S)": (Reach.of(s), ["root", "A", "S"]),
        "of(root)": (Reach.of("root"), ["root"]),
        "exact(A)": (Reach.exact(a), ["A"]),
        "subtree(A)": (Reach.subtree(a), ["A", "S"]),
    }
    for name, (reach, expected) in sees.items():
        wanted = [ids[node] for node in expected]
        run.lists_exactly(base.replace(reach=reach), wanted, f"reach {name}")
    hits = run.engine.get(GetRequest(list(ids.values()), reach=Reach.of(b)))
    run.same([hit.id for hit in hits], [ids["root"], ids["B"]], "the ids of a get from B")
    for mode in run.engine.descriptor().fetch_modes[:1]:
        request = FetchRequest(
            query=run.marker, mode=mode, filter=base.replace(reach=Reach.of(a)), limit=20
        )
        strangers = {hit.id for hit in run.engine.fetch(request).hits} - {ids["root"], ids["A"]}
        run.require(not strangers, f"a {mode} fetch from A shows {sorted(strangers)}")
    page = run.engine.explore(ExploreRequest(facet="namespace", filter=base, limit=10))
    counts = {(bucket.value, bucket.count) for bucket in page.buckets}
    run.same(counts, {(str(node), 1) for node in nodes.values()}, "the counts by namespace")
    report = run.engine.forget(ForgetTarget(filter=base.replace(reach=Reach.exact(b))))
    run.same(report.forgotten, 1, "the number of items forgotten at B")
    left = [ids[name] for name in ("root", "A", "S")]
    run.lists_exactly(base.replace(reach=Reach.subtree("root")), left, "reach subtree(root)")


def check_empty_forget(run: Run) -> None:
    """A forget that names nothing is refused and removes nothing."""
    n_items = len(run.held())
    run.refused_request(lambda: run.engine.forget(ForgetTarget(ids=[])), "forget without ids")
    run.refused_request(
        lambda: run.engine.forget(ForgetTarget(filter=MetaFilter())), "forget by an empty filter"
    )
    run.same(len(run.list_all(run.filter)), n_items, "the number of items after refused forgets")


def check_forget_by_id(run: Run) -> None:
    """A forgotten id is gone, and forgetting it again removes nothing."""
    n_items = len(run.list_all(run.filter))
    id = run.store(run.doc("forget by id")).id
    run.same(run.engine.forget(ForgetTarget(ids=[id])).forgotten, 1, "the number forgotten")
    ids = run.list_ids(run.filter)
    run.require(id not in ids, "a forgotten item is listed")
    run.same(len(ids), n_items, "the number of items after a forget")
    again = run.engine.forget(ForgetTarget(ids=[id])).forgotten
    run.same(again, 0, "the number forgotten the second time")


def check_forget_by_filter(run: Run) -> None:
    """A forget by filter removes what the filter admits, and nothing else."""
    n_items = len(run.held())
    tag = f"{run.marker}-forget"
    for number in range(2):
        run.store(run.doc(f"forget by filter {number}", tags=[tag]))
    filter = run.filter.replace(tags_any=[tag])
    run.same(run.engine.forget(ForgetTarget(filter=filter)).forgotten, 2, "the number forgotten")
    run.lists_exactly(filter, [], "the filter of a forget")
    run.same(len(run.list_all(run.filter)), n_items, "the number of items after a forget")


def check_recall(run: Run) -> None:
    """An answer says something and cites items that are there."""
    for number in range(6):  # more than may be cited
        run.engine.store(run.doc(f"recall {number}"))
    request = RecallRequest(question=run.marker, filter=run.filter, limit=5)
    answer = run.engine.recall(request)
    run.require(bool(answer.answer.strip()), "the answer is blank")
    n_citations = len(answer.citations)
    run.require(1 <= n_citations <= 5, f"the answer has {n_citations} citations, expected 1 to 5")
    kinds: dict[str, ItemKind] = {hit.id: hit.kind for hit in run.list_all(run.filter)}
    for citation in answer.citations:
        run.require(citation.id in kinds, f"the citation {citation.id} is not listed")
        run.same(citation.kind, kinds[citation.id], "the kind of a citation")


def clean_up(run: Run) -> None:
    """Forget all of the run's items."""
    for filter in (run.filter, run.probe_filter):
        run.engine.forget(ForgetTarget(filter=filter))
        run.lists_exactly(filter, [], "the run's filter after the clean-up")
