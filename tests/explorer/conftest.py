"""A browser, a store worth looking at, and pages that may load nothing from elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from explorer import chromium
from explorer.store import Serve, Served, filled, serving

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK: Any = {"width": 1200, "height": 800}
WAIT_MS = 15_000

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium.find()
    assert path, chromium.HOW.format(why="`make test` was not used")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A store that no test changes."""
    with ExitStack() as stack:
        yield serving(stack, filled(), tmp_path_factory.mktemp("snapshots"))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves a store of the test's own: the given engine, else one with ITEMS."""
    with ExitStack() as stack:
        yield lambda engine=None, **settings: serving(
            stack, filled() if engine is None else engine, tmp_path, **settings
        )


class Tab:
    """The one tab of all tests, for a new one costs more than most of them. Notes its faults."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.url = ""
        self.faults: list[str] = []
        page.set_default_timeout(WAIT_MS)
        page.on("request", self._asked)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))

    def visit(self, url: str, address: str = "") -> Page:
        self.page.goto("about:blank")
        self.url = url
        self.page.goto(f"{url}/{address}")
        return self.page

    def reset(self) -> None:
        """Forget what a test has set."""
        self.page.goto("about:blank")
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.set_viewport_size(DESK)
        self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        self.faults.clear()

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(f"{self.url}/"):
            self.faults.append(f"request to {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        # What the API refuses, the page itself has to tell.
        is_answer = "/v1/" in message.location.get("url", "")
        if message.type in ("error", "warning") and not is_answer:
            self.faults.append(f"console: {message.text}")


@pytest.fixture(scope="package")
def tab(browser: Browser) -> Iterator[Tab]:
    with browser.new_context() as context:
        yield Tab(context.new_page())


@pytest.fixture
def visit(tab: Tab) -> Iterator[Callable[..., Page]]:
    """Opens the explorer of a server; at the end, nothing went elsewhere and nothing went wrong."""
    tab.reset()
    yield tab.visit
    assert tab.faults == []


@pytest.fixture
def page(visit: Callable[..., Page], shared: Served) -> Page:
    """The explorer of the store that no test changes."""
    page = visit(shared.url)
    expect(page.locator(".hit")).to_have_count(20)
    return page
