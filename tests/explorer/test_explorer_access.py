"""Using the explorer without a mouse, on a phone, in the dark, and with a screen reader."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from explorer.store import Served

Visit = Callable[..., Page]

PHONE: Any = {"width": 360, "height": 720}


def test_the_keyboard_does_it_all(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    box = page.get_by_label("Search or ask")
    expect(box).to_be_focused()
    page.keyboard.type("green tea")
    page.keyboard.press("Enter")
    expect(page.locator(".hit .score").first).to_be_visible()
    page.get_by_role("button", name="Search", exact=True).focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator(".hit .open").first
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#item code")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#item")).to_be_hidden()
    expect(first).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("Shift+Enter")
    expect(page.locator("#citations > li").first).to_be_visible()


def test_the_tree_moves_by_arrows(page: Page) -> None:
    def focused() -> str:
        return page.evaluate("document.activeElement.dataset.key")

    page.keyboard.press("f")
    assert focused() == "kind"
    page.keyboard.press("ArrowRight")
    assert focused() == "kind document"
    page.keyboard.press("ArrowLeft")
    assert focused() == "kind"
    page.keyboard.press("ArrowLeft")
    expect(page.locator('[data-key="kind"]')).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowDown")
    assert focused() == "namespace"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused() == "namespace ws:acme"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#chips li")).to_have_count(1)
    expect(page.locator("[role=treeitem]:focus")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert focused() == "kind"
    # Tab reaches the tree once, not every node.
    expect(page.locator("[role=treeitem][tabindex='0']")).to_have_count(1)
    page.keyboard.press("x")
    expect(page.locator("#chips li")).to_have_count(0)


def test_a_phone_shows_everything_without_scrolling_sideways(visit: Visit, shared: Served) -> None:
    page = visit(shared.url)
    page.set_viewport_size(PHONE)

    def assert_fits() -> None:
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        cut = page.evaluate(
            """() => [...document.querySelectorAll("dialog[open]")]
                .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id)"""
        )
        assert cut == []

    expect(page.locator(".hit").first).to_be_visible()
    expect(page.get_by_role("tree")).to_be_hidden()
    assert_fits()
    toggle = page.get_by_role("button", name="Browse", exact=True)
    toggle.click()
    expect(toggle).to_have_attribute("aria-expanded", "true")
    assert_fits()
    page.locator('[data-key="kind learning"] .row').click()
    expect(page.locator(".hit")).to_have_count(1)
    assert_fits()
    page.get_by_label("Search or ask").fill("What does Ann prefer?")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#citations > li")).to_have_count(1)
    page.get_by_role("button", name="Why is this number 1?").click()
    expect(page.locator("#parts-1 table")).to_be_visible()
    assert_fits()
    page.locator(".hit .open").click()
    page.get_by_text("Raw JSON").click()
    assert_fits()
    page.get_by_role("button", name="Forget…").click()
    assert_fits()
    page.get_by_role("button", name="Keep").click()
    page.locator("#item").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Snapshots").click()
    assert_fits()


def test_light_and_dark_follow_the_system_until_chosen(visit: Visit, shared: Served) -> None:
    def is_dark(page: Page) -> bool:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(",")) < 3 * 128

    page = visit(shared.url)
    assert not is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    page.emulate_media(color_scheme="light")
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(button).to_have_accessible_name("Theme: dark")
    assert is_dark(page)
    page.reload()
    expect(button).to_have_accessible_name("Theme: dark")
    assert is_dark(page)
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(
    scheme: Literal["light", "dark"], visit: Visit, shared: Served
) -> None:
    page = visit(shared.url)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    axe = Axe()
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if scheme == "dark":  # colours are all that differs; the rest is looked at once
        options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}

    def assert_clean(within: str = "html") -> None:
        found = axe.run(page, context=within, options=options).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []

    page.locator('[data-key="kind document"] .row').click()
    expect(page.locator("#chips li")).to_have_count(1)
    page.get_by_label("Search or ask").fill("What do backups do?")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#citations > li").first).to_be_visible()
    page.get_by_role("button", name="Why is this number 1?").click()
    expect(page.locator("#parts-1 table")).to_be_visible()
    assert_clean()
    page.locator(".cite").first.click()
    expect(page.locator("#item code")).to_be_visible()
    page.get_by_text("Raw JSON").click()
    assert_clean("#item")
    if scheme == "dark":
        return
    page.get_by_role("button", name="Forget…").click()
    assert_clean("#forget")
    page.get_by_role("button", name="Keep").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Snapshots").click()
    assert_clean("#transfers")


def test_what_happens_is_announced(page: Page) -> None:
    for place in ("#status", "#done", "#transfer-status"):
        expect(page.locator(place)).to_have_attribute("role", "status")
        expect(page.locator(place)).to_have_attribute("aria-live", "polite")
    expect(page.locator("#error")).to_have_attribute("role", "alert")
    page.get_by_label("Search or ask").fill("zzzzqqq")
    page.get_by_role("radio", name="Words").check()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#status")).to_contain_text("Nothing found among")
