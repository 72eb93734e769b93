"""Takes the pictures of the explorer: PYTHONPATH=tests python -m explorer.make_screenshots.

They go to docs/screenshots/ and show the bundled XQuAD paragraphs and a few notes.
"""

import gzip
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect, sync_playwright

from colmem.contract import StoreItem, decode
from explorer import chromium
from explorer.store import filled, serving

TOP = Path(__file__).parents[2]
TARGET = TOP / "docs" / "screenshots"
BYTES_MAX = 150_000
DESK = {"width": 960, "height": 640}
PHONE = {"width": 375, "height": 680}


def search(page: Page, query: str, key: str = "Enter") -> None:
    page.get_by_label("Search or ask").fill(query)
    page.keyboard.press(key)
    page.locator(".score").first.wait_for()


def take(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.evaluate("scrollTo(0, 0); document.getElementById('facets').scrollTop = 0")
    path = TARGET / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    size = path.stat().st_size
    assert size < BYTES_MAX, f"{path} has {size} bytes"


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    engine = filled()
    for language in ("en", "zh"):
        lines = gzip.decompress((TOP / f"data/xquad-{language}/paragraphs.jsonl.gz").read_bytes())
        engine.ingest(decode(line, StoreItem) for line in lines.splitlines())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        served = serving(stack, engine, folder)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=DESK)
        page.goto(served.url)
        page.locator('[data-key="kind"] .fold').first.click()
        page.locator('[data-key="folder /xquad"] .fold').first.click()
        page.locator('[data-key="folder /xquad/en"] .label').first.click()
        search(page, "Who played defense in the Super Bowl?")
        page.get_by_role("button", name="Why is this number 1?").click()
        page.locator("#parts-1 table").wait_for()
        take(page, "search")
        search(page, "Why does oxygen liquefy?", "Shift+Enter")
        page.locator("#citations li").first.wait_for()
        take(page, "answer")
        page.emulate_media(color_scheme="dark")
        page.locator(".cite").first.click()
        page.locator("#raw").wait_for()
        take(page, "item-dark")
        page.get_by_role("button", name="Forget…").click()
        take(page, "forget-dark")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.emulate_media(color_scheme="light")
        page.get_by_role("button", name="Snapshots").click()
        page.get_by_role("button", name="Write snapshot").click()
        page.locator("#transfer-report dd").first.wait_for()
        take(page, "snapshot")
        phone = browser.new_page(viewport=PHONE)
        phone.goto(served.url)
        phone.get_by_role("button", name="Browse", exact=True).click()
        phone.locator('[data-key="namespace ws:acme"] .label').first.click()
        expect(phone.locator('[data-key="kind document"] .number')).to_have_text("2")
        take(phone, "phone-browse")
        phone.get_by_role("button", name="Browse", exact=True).click()
        search(phone, "What does Ann drink?", "Shift+Enter")
        phone.locator("#citations li").first.wait_for()
        take(phone, "phone-answer")
        browser.close()


if __name__ == "__main__":
    main()
