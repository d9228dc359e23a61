from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser import chromium
from tests.web.console import Console

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install 'playwright'")

CARDS = """
gpus: {count: 4, total: 24GiB, name: NVIDIA GeForce RTX 4090}
runs: {use: 0.5, utilization: 80}
"""
BOB = """
strangers:
  - {user: bob, gpu: 0, used: 18GiB, utilization: 97}
"""
PATIENCE_MS = 60_000
CUT = "net::ERR_"  # the console was killed; the rest it has answered
NO_KEY, GONE, TAKEN, CHANGED, NO_ENGINE = (f"status of {number} " for number in (403, 404, 409, 412, 503))


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """Four cards, the first used by bob."""
    made = Console(tmp_path_factory.mktemp("b"), gpus=None)
    made.instance.up(made.instance.scenario(CARDS + BOB))
    made.instance.see_cards()
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = chromium.install()
    if found is None:
        pytest.skip(f"no chromium, and it cannot be installed without root: {chromium.INSTALL}")
    with sync_api.sync_playwright() as playwright:
        # the driver's own debugging port is a pipe, so it listens nowhere
        made = playwright.chromium.launch(executable_path=found, args=chromium.FLAGS)
        yield made
        made.close()


@contextlib.contextmanager
def pages(browser: Any, console: Console) -> Iterator[Callable[..., Any]]:
    """Opens pages of a fresh browser profile. Whatever one of them writes into the browser's log as an error fails the test."""
    contexts: list[Any] = []
    errors: list[str] = []

    def make(
        log_in: bool = True, width: int = 1440, height: int = 780, context: Any = None, provoked: tuple[str, ...] = ()
    ) -> Any:  # fmt: skip
        """`provoked`: what the test brings about on purpose, and the browser calls an error, whatever a page does."""

        def heard(message: Any) -> None:
            if message.type == "error" and not any(sign in message.text for sign in provoked):
                errors.append(f"{message.text} {message.location.get('url', '')}")

        if context is None:
            context = browser.new_context(viewport={"width": width, "height": height}, locale="en-US")
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", heard)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://localhost:{console.port}/ui/" + (f"#code={console.new_code()}" if log_in else ""))
        return page

    sync_api.expect.set_options(timeout=PATIENCE_MS)
    try:
        yield make
    finally:
        for context in contexts:
            context.close()
    assert errors == []


@pytest.fixture
def open_page(browser: Any, console: Console) -> Iterator[Callable[..., Any]]:
    with pages(browser, console) as make:
        yield make


def queued(console: Console, name: str, command: str, *options: str) -> int:
    return int(console.instance.ok("add", "-n", name, *options, "--", command))


def badge(page: Any) -> Any:
    return page.locator(".badge")
