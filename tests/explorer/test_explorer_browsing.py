"""Looking around in a browser: search, facets, items, recall. Nothing here changes the store."""

import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from colmem.contract import MetaFilter, Reach
from explorer.store import Served

Visit = Callable[..., Page]


def search(page: Page, query: str) -> None:
    page.get_by_label("Search or ask").fill(query)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".hit .score").first).to_be_visible()


def ids(page: Page) -> list[str | None]:
    return [hit.get_attribute("data-id") for hit in page.locator(".hit").all()]


def tree_node(page: Page, key: str) -> Locator:
    return page.locator(f'[role=treeitem][data-key="{key}"]')


def test_items_are_listed_and_more_can_be_shown(page: Page, shared: Served) -> None:
    total = shared.engine.stats()["items"]
    expect(page.get_by_role("status").first).to_be_attached()
    expect(page.locator("#status")).to_have_text(f"20 of {total} items")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".hit")).to_have_count(total)
    expect(page.locator(".hit").nth(20).get_by_role("button")).to_be_focused()
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    assert ids(page) == [hit.id for hit in shared.engine.list().items]


def test_a_search_ranks_as_the_engine_does(page: Page, shared: Served) -> None:
    search(page, "green tea")
    for label, mode in (("Words", "keyword"), ("Meaning", "vector"), ("Both", "hybrid")):
        page.get_by_role("radio", name=label).check()
        wanted = shared.engine.fetch(query="green tea", mode=mode, limit=20).hits
        first = page.locator(".hit").first
        expect(first.locator(".score")).to_contain_text(f"score {wanted[0].score:.3f}")
        expect(page.locator(".hit")).to_have_count(len(wanted))
        assert ids(page) == [hit.id for hit in wanted]
        expect(first.locator("mark").first).to_have_text(re.compile("tea|green", re.IGNORECASE))


def test_words_are_marked_in_other_forms_and_scripts(page: Page) -> None:
    search(page, "released for Anns mornings")
    assert {mark.lower() for mark in page.locator("mark").all_inner_texts()} >= {
        "release",
        "ann",
        "morning",
    }
    search(page, "绿茶")
    expect(page.locator("mark").first).to_have_text("绿茶")


def test_a_score_is_taken_apart(page: Page, shared: Served) -> None:
    search(page, "green tea in the morning")
    page.get_by_role("button", name="Why is this number 1?").click()
    parts = page.locator("#parts-1")
    expect(parts.get_by_role("row")).to_have_count(3)
    best = page.locator(".hit").first.get_attribute("data-id")
    for mode, name in (("keyword", "By its words"), ("vector", "By its meaning")):
        leg = shared.engine.fetch(query="green tea in the morning", mode=mode, limit=50).hits
        place = [hit.id for hit in leg].index(best)
        row = parts.get_by_role("row", name=name)
        expect(row).to_contain_text(f"number {place + 1}")
        expect(row).to_contain_text(f"{leg[place].score:.3f}")
    expect(parts).to_contain_text("morning")


def test_a_server_that_explains_is_asked(page: Page) -> None:
    asked = []

    def explain(route: Route) -> None:
        asked.append(route.request.post_data_json)
        route.fulfill(json={"terms": [{"term": "tea", "score": 1.5}], "cosine": 0.25})

    page.route(
        "**/v1/openapi.json", lambda route: route.fulfill(json={"paths": {"/v1/explain": 1}})
    )
    page.route("**/v1/explain", explain)
    search(page, "tea")
    page.get_by_role("button", name="Why is this number 2?").click()
    page.get_by_text("What the engine says").click()
    for text in ("term: tea", "score: 1.5", "cosine: 0.25"):
        expect(page.locator("#parts-2 details")).to_contain_text(text)
    second = page.locator(".hit").nth(1).get_attribute("data-id")
    assert [(body["id"], body["query"], body["mode"]) for body in asked] == [
        (second, "tea", "hybrid")
    ]


def test_drilling_down_narrows_counts_and_items(page: Page, shared: Served) -> None:
    folder = tree_node(page, "folder /notes")
    expect(folder.locator(".number").first).to_have_text("3")
    folder.locator(".fold").first.click()
    tree_node(page, "folder /notes/ops").locator(".label").click()
    chip = page.get_by_role("button", name="Remove filter Folder: /notes/ops")
    expect(chip).to_be_visible()
    expect(page.locator("#status")).to_have_text("2 of 2 items that match the filters")
    wanted = shared.engine.list(filter=MetaFilter(folder="/notes/ops")).items
    assert ids(page) == [hit.id for hit in wanted]
    # The other facets are counted under it, its own still shows the alternatives.
    expect(tree_node(page, "kind document").locator(".number")).to_have_text("2")
    expect(tree_node(page, "folder /notes/tea").locator(".number")).to_have_text("1")

    tree_node(page, "tag").locator(".row").first.click()
    tree_node(page, "tag release").locator(".row").click()
    expect(page.locator("#status")).to_have_text("1 of 1 item that match the filters")
    expect(page.locator("#chips li")).to_have_count(2)

    page.get_by_role("button", name="Remove filter Tag: release").click()
    expect(page.locator(".hit")).to_have_count(2)
    expect(page.locator("#chips button")).to_be_focused()
    page.go_back()
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(".hit")).to_have_count(20)
    expect(page.locator("#chips li")).to_have_count(0)


def test_a_namespace_is_a_tree_too_and_takes_what_lies_below(page: Page, shared: Served) -> None:
    below = Reach.subtree("ws:acme")
    wanted = shared.engine.list(filter=MetaFilter(reach=below)).items
    node = tree_node(page, "namespace ws:acme")
    expect(node.locator(".number").first).to_have_text(str(len(wanted)))
    node.locator(".label").first.click()
    expect(page.locator(".hit")).to_have_count(len(wanted))
    assert ids(page) == [hit.id for hit in wanted]
    # Chosen, it unfolds to what can be chosen next.
    tree_node(page, "namespace ws:acme/user:ann").locator(".label").click()
    expect(page.locator(".hit")).to_have_count(1)
    tree_node(page, "namespace root").locator(".label").click()
    expect(page.locator("#status")).to_contain_text(
        f"of {len(shared.engine.list(filter=MetaFilter(reach=Reach.exact('root'))).items)} items"
    )


def test_values_of_one_facet_add_up(page: Page) -> None:
    tree_node(page, "kind learning").locator(".row").click()
    expect(page.locator(".hit")).to_have_count(1)
    tree_node(page, "kind conversation").locator(".row").click()
    expect(page.locator(".hit")).to_have_count(2)
    expect(page.locator("[aria-selected=true]")).to_have_count(2)
    tree_node(page, "kind learning").locator(".row").click()
    expect(page.locator(".hit")).to_have_count(1)


def test_dates_filter(page: Page) -> None:
    page.get_by_label("from").fill("2024-05-15")
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("before").fill("2024-06-02")
    expect(page.locator("#status")).to_have_text("No item matches the filters.")
    expect(page.locator("#chips li")).to_have_count(2)


def test_an_item_opens_with_all_there_is_of_it(page: Page, shared: Served) -> None:
    search(page, "release script")
    page.get_by_role("button", name="Releasing").click()
    dialog = page.get_by_role("dialog", name="Releasing")
    expect(dialog.locator(".whole")).to_contain_text("watch the dashboards")
    expect(dialog.locator(".whole mark").first).to_have_text("release")
    for text in ("/notes/ops/release.md", "ws:acme", "f1", "release"):
        expect(dialog.get_by_role("button", name=text, exact=True)).to_be_visible()
    link = dialog.get_by_role("link")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    dialog.get_by_text("Raw JSON").click()
    raw = json.loads(dialog.locator("pre").inner_text())
    hit = shared.engine.get(ids=[raw["id"]])[0]
    assert raw["text"] == hit.text
    assert raw["meta"]["tags"] == ["ops", "release"]
    dialog.get_by_role("button", name="ops", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Remove filter Tag: ops")).to_be_visible()


def test_a_recall_leads_to_what_it_cites(page: Page, shared: Served) -> None:
    question = "What does Ann prefer in the morning?"
    page.get_by_label("Search or ask").fill(question)
    page.get_by_role("button", name="Answer", exact=True).click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("Ann prefers green tea in the morning.")
    wanted = shared.engine.recall(question=question, limit=8)
    expect(page.locator("#citations > li")).to_have_count(len(wanted.citations))
    answer.get_by_role("button", name="Citation 1:").first.click()
    dialog = page.locator("#item")
    expect(dialog.locator("code")).to_have_text(wanted.citations[0].id)
    dialog.get_by_role("button", name="Close").click()
    expect(answer.get_by_role("button", name="Citation 1:").first).to_be_focused()
    answer.get_by_role("button", name="Close answer").click()
    expect(answer).to_be_hidden()


def test_an_address_leads_back_to_what_was_looked_at(visit: Visit, shared: Served) -> None:
    wanted = shared.engine.fetch(query="tea", mode="keyword", limit=1).hits[0]
    filter = quote(json.dumps({"tags_any": ["tea"]}))
    page = visit(shared.url, f"#q=tea&mode=keyword&filter={filter}&item={wanted.id}")
    expect(page.locator("#item code")).to_have_text(wanted.id)
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search or ask")).to_have_value("tea")
    expect(page.get_by_role("radio", name="Words")).to_be_checked()
    expect(page.get_by_role("button", name="Remove filter Tag: tea")).to_be_visible()


@pytest.mark.parametrize("address", ["#filter=%7B%22kinds%22", "#mode=psychic", "#filter=[1]"])
def test_a_broken_address_shows_the_store(address: str, visit: Visit, shared: Served) -> None:
    expect(visit(shared.url, address).locator(".hit")).to_have_count(20)


def test_what_the_server_refuses_is_told(visit: Visit, shared: Served) -> None:
    page = visit(shared.url, f"#filter={quote(json.dumps({'kinds': ['ghost']}))}")
    expect(page.get_by_role("alert").first).to_contain_text("ghost")
    page.get_by_role("button", name="Remove filter Kind: ghost").click()
    expect(page.locator(".hit")).to_have_count(20)
    expect(page.locator("#error")).to_be_hidden()


def test_stored_text_is_never_markup(page: Page) -> None:
    search(page, "bold words from elsewhere")
    hit = page.locator(".hit").first
    expect(hit.locator(".text")).to_contain_text("<img src=x onerror=alert(1)> <b>bold</b>")
    expect(page.locator("#hits img, #hits b, #hits i")).to_have_count(0)
    hit.locator(".open").click()
    expect(page.locator("#item .whole")).to_contain_text("<img src=x")
    expect(page.get_by_role("button", name="<i>tag</i>")).to_be_visible()
    expect(page.locator("#item a, #item img")).to_have_count(0)
