"""What changes the store from a browser: forgetting, snapshots; and who may."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import colmem
from colmem.adapters.http import work
from colmem.adapters.http.tokens import Token
from colmem.contract import MetaFilter, Namespace, Reach
from colmem.tools import ToolScope
from explorer.store import Serve, filled

Visit = Callable[..., Page]


def test_an_item_is_forgotten_after_a_confirmation(visit: Visit, serve: Serve) -> None:
    served = serve()
    page = visit(served.url)
    before = served.engine.stats()["items"]
    page.get_by_role("button", name="Backups").click()
    item = page.get_by_role("dialog", name="Backups")
    id = item.locator("code").inner_text()
    item.get_by_role("button", name="Forget…").click()
    asked = page.get_by_role("alertdialog", name="Forget?")
    expect(asked).to_contain_text("Backups run every night")
    expect(asked.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Enter")
    expect(asked).to_be_hidden()
    assert len(served.engine.get(ids=[id])) == 1

    item.get_by_role("button", name="Forget…").click()
    asked.get_by_role("button", name="Forget").click()
    expect(page.locator("#done")).to_have_text("Forgot 1 item.")
    expect(item).to_be_hidden()
    expect(page.locator("#store-facts")).to_contain_text(f"{before - 1} items")
    expect(page.get_by_role("button", name="Backups")).to_have_count(0)
    assert served.engine.get(ids=[id]) == []


def test_all_that_match_are_forgotten_after_a_confirmation(visit: Visit, serve: Serve) -> None:
    served = serve()
    page = visit(served.url)
    expect(page.get_by_role("button", name="Forget all that match…")).to_be_hidden()
    page.locator('[data-key="folder /minutes"] .fold').first.click()
    page.locator('[data-key="folder /minutes/2021"] .label').click()
    page.get_by_role("button", name="Forget all that match…").click()
    asked = page.get_by_role("alertdialog")
    expect(asked).to_contain_text("All 8 items that match the filters will be forgotten:")
    expect(asked).to_contain_text("Folder: /minutes/2021")
    page.keyboard.press("Escape")
    assert len(served.engine.list(filter=MetaFilter(folder="/minutes/2021")).items) == 8
    page.get_by_role("button", name="Forget all that match…").click()
    asked.get_by_role("button", name="Forget 8").click()
    expect(page.locator("#done")).to_have_text("Forgot 8 items.")
    expect(page.locator("#chips li")).to_have_count(0)
    assert served.engine.list(filter=MetaFilter(folder="/minutes/2021")).items == []
    assert len(served.engine.list(filter=MetaFilter(folder="/minutes")).items) == 16


def transfers(page: Page) -> Any:
    page.get_by_role("button", name="Snapshots").click()
    return page.get_by_role("dialog", name="Snapshots")


def test_a_snapshot_is_written_verified_and_loaded(
    visit: Visit, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_REPORT_SECONDS", 0.0)
    served = serve()
    page = visit(served.url)
    dialog = transfers(page)
    dialog.get_by_label("Path").fill("whole")
    dialog.get_by_role("button", name="Write snapshot").click()
    expect(dialog.get_by_role("status")).to_have_text("Snapshot written.")
    count = served.engine.stats()["items"]
    expect(dialog.locator("#transfer-report")).to_contain_text(str(count))
    assert colmem.verify(served.snapshots / "whole").record_count == count

    dialog.get_by_role("button", name="Verify").click()
    expect(dialog.get_by_role("status")).to_contain_text("every checksum agrees")

    other = serve(colmem.open(":memory:"))
    page = visit(other.url)
    expect(page.locator("#status")).to_have_text("The store is empty.")
    page.evaluate("""() => {
        window.seen = [];
        const status = document.getElementById("transfer-status");
        new MutationObserver(() => window.seen.push(status.textContent))
            .observe(status, { childList: true });
    }""")
    dialog = transfers(page)
    dialog.get_by_label("Path").fill("whole")
    dialog.get_by_role("button", name="Load into store").click()
    expect(dialog.get_by_role("status")).to_have_text("Snapshot loaded.")
    assert "100 %" in page.evaluate("window.seen")
    expect(dialog.get_by_role("progressbar")).to_be_hidden()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#status")).to_have_text(f"20 of {count} items")
    assert other.engine.stats()["items"] == count


def test_a_snapshot_may_hold_what_the_filters_admit(visit: Visit, serve: Serve) -> None:
    served = serve()
    page = visit(served.url)
    expect(page.locator(".hit").first).to_be_visible()
    dialog = transfers(page)
    expect(dialog.get_by_role("checkbox")).to_be_hidden()
    dialog.get_by_role("button", name="Close").click()
    page.locator('[data-key="kind learning"] .row').click()
    expect(page.locator(".hit")).to_have_count(1)
    dialog = transfers(page)
    dialog.get_by_label("Path").fill("part")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Write snapshot").click()
    expect(dialog.get_by_role("status")).to_have_text("Snapshot written.")
    assert colmem.verify(served.snapshots / "part").record_count == 1


def test_a_damaged_snapshot_is_refused_with_the_reason(visit: Visit, serve: Serve) -> None:
    served = serve()
    served.engine.snapshot(served.snapshots / "damaged")
    for file in (served.snapshots / "damaged").rglob("*.jsonl"):
        file.write_bytes(file.read_bytes().replace(b"release script", b"release scrept"))
    before = served.engine.stats()["items"]
    page = visit(served.url)
    dialog = transfers(page)
    dialog.get_by_label("Path").fill("damaged")
    for name in ("Verify", "Load into store"):
        dialog.get_by_role("button", name=name).click()
        expect(dialog.locator("#transfer-report dt").first).to_have_text("reason")
        expect(dialog.get_by_role("status")).to_have_class("error")
    dialog.get_by_label("Path").fill("../elsewhere")
    dialog.get_by_role("button", name="Verify").click()
    expect(dialog.get_by_role("status")).to_contain_text("not below the server's snapshot folder")
    assert served.engine.stats()["items"] == before


def test_a_token_is_asked_for_once_and_kept_in_the_tab(visit: Visit, serve: Serve) -> None:
    secret = "a-secret-of-some-length"
    served = serve(tokens=(Token.of(secret),))
    page = visit(served.url)
    dialog = page.get_by_role("dialog", name="Token needed")
    field = dialog.get_by_label("Token", exact=True)
    expect(field).to_be_focused()
    field.fill("not-the-right-secret")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("The server does not know this token.")
    field.fill(secret)
    dialog.get_by_role("button", name="Use token").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".hit")).to_have_count(20)
    page.reload()
    expect(page.locator(".hit")).to_have_count(20)
    expect(dialog).to_be_hidden()
    assert page.evaluate("Object.values(sessionStorage)") == [secret]
    assert secret not in str(page.evaluate("[Object.values(localStorage), document.cookie]"))
    assert secret not in page.url

    page.evaluate("sessionStorage.clear()")
    page.reload()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#error")).to_contain_text("bearer token")
    expect(page.locator(".hit")).to_have_count(0)


def test_a_token_shows_its_part_and_is_told_what_it_may_not(visit: Visit, serve: Serve) -> None:
    secret = "a-secret-of-some-length"
    scope = ToolScope(
        place=Namespace("ws:acme/user:ann"), reach=Reach.of("ws:acme/user:ann"), writes=False
    )
    served = serve(tokens=(Token.of(secret, scope),))
    page = visit(served.url)
    page.get_by_label("Token", exact=True).fill(secret)
    page.keyboard.press("Enter")
    admitted = served.engine.list(filter=MetaFilter(reach=scope.reach)).items
    expect(page.locator("#store-facts")).to_contain_text(f"{len(admitted)} items")
    page.get_by_role("button", name="Releasing").click()
    page.get_by_role("button", name="Forget…").click()
    asked = page.get_by_role("alertdialog")
    asked.get_by_role("button", name="Forget").click()
    expect(asked).to_contain_text("read-only")
    asked.get_by_role("button", name="Keep").click()
    assert served.engine.stats()["items"] == filled().stats()["items"]


def test_a_server_that_is_gone_is_told(visit: Visit, serve: Serve) -> None:
    page = visit(serve().url)
    expect(page.locator(".hit").first).to_be_visible()
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#error")).to_contain_text("cannot be reached")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator("#error")).to_be_hidden()
