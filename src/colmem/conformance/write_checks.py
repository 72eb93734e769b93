"""Checks of store, store_many and forget beyond the contract's own suite."""

from __future__ import annotations

from colmem.conformance.checks import same_as_item
from colmem.conformance.harness import Run
from colmem.conformance.probes import probes
from colmem.contract import (
    Document,
    DocumentBody,
    ForgetTarget,
    MemoryMeta,
    Namespace,
    Reach,
    SourceRef,
    StoreItem,
    ToolCallRef,
    TurnRange,
    conversation,
    document,
    learning,
)


def check_descriptor(run: Run) -> None:
    """The descriptor names the engine, repeats no mode and does not change."""
    descriptor = run.engine.descriptor()
    run.require(bool(descriptor.id.strip()), "the descriptor's id is blank")
    modes = descriptor.fetch_modes
    run.require(len(modes) == len(set(modes)), "the descriptor names a mode twice")
    run.same(run.engine.descriptor(), descriptor, "the descriptor asked for again")


def check_metadata(run: Run) -> None:
    """Every field of the metadata comes back as it was, odd values included."""
    full = MemoryMeta(
        namespace=Namespace.parse(f"agent:{run.marker}/ws:w/project:p"),
        workspace=run.workspace,
        folder="/notes/ünï",
        file_path="/notes/ünï/a.md",
        language="en",
        repo="o/r",
        commit="c0ffee",
        url="https://example.test/?q=1#f",
        thread_id="thread 1",
        turns=TurnRange(7, 3),
        agent_id="agent-1",
        tool_call=ToolCallRef("grep", "call-2"),
        source=SourceRef("github", "o/r#1"),
        tags=["b", "a", "b", ""],
        observed_at="2024-02-29T23:59:59.123456789Z",
    )
    empty = run.meta(
        folder="", language="", url="", tool_call=ToolCallRef("", ""), source=SourceRef("rss", "")
    )
    texts = [" leading", "two\nlines\x00\u2028\x85", "日本語 e\u0301 é 🎉", "x" * 5000]
    items: list[StoreItem] = [
        document(f"{run.marker} full", title="", mime="", meta=full),
        learning(f"{run.marker} empty", kind="other", confidence=0.1, evidence="", meta=empty),
        learning(
            f"{run.marker} zero", confidence=0.0, meta=run.meta(observed_at="0000-01-01T00:00:00Z")
        ),
        *(document(f"{run.marker}{text}", meta=run.meta()) for text in texts),
    ]
    ids = [run.store(item).id for item in items]
    listed = {hit.id: hit for hit in run.list_all(run.filter)}
    for id, item in zip(ids, items, strict=True):
        run.require(id in listed, "a stored item is not listed")
        same_as_item(run, listed[id], item)


def check_item_validation(run: Run) -> None:
    """An invalid item is refused with the contract's words, and is not stored."""
    before = sorted(run.list_ids(run.filter))
    meta = run.meta()
    invalid: list[tuple[str, StoreItem]] = [
        ("a blank document", document(" \u3000\n", meta=meta)),
        ("a document of a uri", Document(body=DocumentBody(uri="file:///a"), meta=meta)),
        ("a conversation without turns", conversation([], meta=meta)),
        ("a blank turn", conversation([("user", run.marker), ("user", "\u2003")], meta=meta)),
        ("a blank learning", learning("", meta=meta)),
        ("a confidence of 1.5", learning(run.marker, confidence=1.5, meta=meta)),
        ("a confidence of -0.5", learning(run.marker, confidence=-0.5, meta=meta)),
    ]
    for what, item in invalid:
        run.refused_request(lambda item=item: run.engine.store(item), what)  # type: ignore[misc]
    run.lists_exactly(run.filter, before, "the run's filter after refused items")


def check_refused_batch(run: Run) -> None:
    """A batch with one invalid item, or too many, stores nothing."""
    before = sorted(run.list_ids(run.filter))
    good = [run.doc(f"refused batch {number}") for number in range(3)]
    bad = document(" ", meta=run.meta())
    run.refused_request(lambda: run.engine.store_many([*good, bad]), "a batch with an invalid item")
    run.refused_request(lambda: run.engine.store_many([good[0]] * 101), "a batch of 101 items")
    run.lists_exactly(run.filter, before, "the run's filter after refused batches")


def check_batch_repeats(run: Run) -> None:
    """A repeat inside a batch is a replay of its first copy."""
    item, other = run.doc("batch repeat"), run.doc("batch other")
    receipts = run.engine.store_many([item, other, item])
    run.same([r.replayed for r in receipts], [False, False, True], "what was replayed in a batch")
    run.same(receipts[2].id, receipts[0].id, "the id of a repeat")
    ids = [hit.id for hit in run.list_all(run.filter)]
    run.same(ids.count(receipts[0].id), 1, "the number of times a repeated item is listed")


def check_observed_at(run: Run) -> None:
    """The time of observation is no part of the fingerprint, and the first one stays."""
    first = run.doc("observed", observed_at="2020-01-01T00:00:00Z")
    later = first.replace(meta=first.meta.replace(observed_at="2021-01-01T00:00:00Z"))
    undated = first.replace(meta=first.meta.replace(observed_at=None))
    id = run.store(first).id
    run.same(id, first.fingerprint(), "the id of a stored item")
    for name, again in (("another time", later), ("no time", undated)):
        receipt = run.engine.store(again)
        run.require(receipt.replayed, f"the same item with {name} is not replayed")
        run.same(receipt.id, id, f"the id of the same item with {name}")
    (hit,) = [hit for hit in run.list_all(run.filter) if hit.id == id]
    run.same(hit.meta.observed_at, first.meta.observed_at, "the time of a replayed item")


def check_distinct(run: Run) -> None:
    """Whatever else differs makes another item: kind, title, tags, turns, evidence."""
    text = f"{run.marker} distinct"
    pair = [("user", text), ("assistant", text)]
    items: list[StoreItem] = [
        document(text, meta=run.meta()),
        document(text, title="", meta=run.meta()),
        document(text, mime="text/plain", meta=run.meta()),
        document(text, meta=run.meta(tags=["a", "b"])),
        document(text, meta=run.meta(tags=["b", "a"])),
        document(text, meta=run.meta(tags=["a", "b", "b"])),
        document(text, meta=run.meta(folder="")),
        learning(text, meta=run.meta()),
        learning(text, evidence="", meta=run.meta()),
        learning(text, confidence=0.5, meta=run.meta()),
        conversation([(role, words) for role, words in pair], meta=run.meta()),
        conversation([("user", text)], meta=run.meta()),
    ]
    ids = [run.store(item).id for item in items]
    run.same(len(set(ids)), len(items), "the number of ids of distinct items")
    absent = set(ids) - set(run.list_ids(run.filter))
    run.require(not absent, f"stored items are not listed: {sorted(absent)}")


def check_forget_ids(run: Run) -> None:
    """A forget by ids reaches every namespace and counts what it removes."""
    node = Namespace.agent(f"{run.marker}-forget")
    deep = run.store(run.doc("forget below", namespace=node)).id
    top = run.store(run.doc("forget here")).id
    ids = [deep, f"{run.marker}-unknown", top, deep, " "]
    run.same(run.engine.forget(ForgetTarget(ids=ids)).forgotten, 2, "the number forgotten")
    held = {hit.id for hit in run.list_all(run.filter)}
    run.require(not held & {deep, top}, "a forgotten item is listed")


def check_forget_then_store(run: Run) -> None:
    """A forgotten item stored again is new."""
    item = run.doc("forget then store")
    id = run.store(item).id
    run.engine.forget(ForgetTarget(ids=[id]))
    run.same(run.store(item).id, id, "the id of an item stored again")
    run.require(id in run.list_ids(run.filter), "an item stored again is not listed")


def check_forget_filters(run: Run) -> None:
    """A forget by filter heeds every field, and the reach."""
    made = probes(run, label="forget")
    held = {probe.field: run.engine.store(probe.item).id for probe in made}
    for at in ("1999-01-01T00:00:00Z", "2003-01-01T00:00:00Z"):
        meta = run.meta(workspace=run.probe_workspace, observed_at=at)
        held[at] = run.store(document(f"{run.marker} forget {at}", meta=meta)).id
    for probe in made:
        report = run.engine.forget(ForgetTarget(filter=probe.filter))
        run.require(report.forgotten >= 1, f"a forget by {probe.field} removes nothing")
        del held[probe.field]
        left = {hit.id for hit in run.list_all(run.probe_filter)}
        lost = set(held.values()) - left
        run.require(not lost, f"a forget by {probe.field} also removes {sorted(lost)}")
    node = Namespace.agent(f"{run.marker}-reach")
    top = run.store(run.doc("forget reach")).id
    run.store(run.doc("forget reach", namespace=node))
    filter = run.filter.replace(reach=Reach.exact(node))
    run.same(run.engine.forget(ForgetTarget(filter=filter)).forgotten, 1, "the number forgotten")
    run.require(top in run.list_ids(run.filter), "a forget at a node removes from its parent")
