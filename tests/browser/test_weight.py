"""What the page weighs: what it loads at first, what it asks for while nothing happens, how much of a long list it draws."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.browser.conftest import badge
from tests.e2e.instance import until

expect = pytest.importorskip("playwright.sync_api").expect

FIRST_LOAD = 400_000  # bytes, as they came
IDLE_S = 8
MANY = 10_000
LOADED = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((entry) => entry.name.includes('/ui/')).map((entry) => [entry.name, entry.encodedBodySize])"""


def test_the_first_look_loads_little_and_no_editor(console, open_page):
    page = open_page()
    expect(page.locator(".card")).to_have_count(4)
    loaded = page.evaluate(LOADED)
    assert any(name.endswith(".js") and size > 0 for name, size in loaded)
    assert sum(size for _, size in loaded) <= FIRST_LOAD, loaded
    assert not [name for name, _ in loaded if "/editor-" in name or "/history-" in name]


def silent(page: Any, asked: list[str]) -> bool:
    """Whether it asks for nothing for a second."""
    before = len(asked)
    page.wait_for_timeout(1000)
    return len(asked) == before


def test_a_page_on_which_nothing_happens_asks_for_next_to_nothing(console, open_page):
    """A job waits meanwhile: why it does is explained anew now and then."""
    (job,) = console.instance.submit({"gpus": [4, 4]})
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.wait_for_load_state("load")
    expect(page.locator(".group")).to_have_count(1)
    asked: list[str] = []
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.url))  # parts of it are loaded once
    until(lambda: silent(page, asked), "what it loads at first is there")
    asked.clear()
    began = time.monotonic()
    page.wait_for_timeout(IDLE_S * 1000)
    assert len(asked) <= time.monotonic() - began, asked  # one a second; a host that is busy lets it wait for longer
    console.instance.call("intent", ids=[job], batch=None, do="cancel")


def test_of_ten_thousand_jobs_those_are_drawn_that_are_seen(console, open_page):
    ids = console.instance.submit(*[{"gpus": [4, 4], "intent": "hold", "name": f"one of many {k}"} for k in range(MANY)])
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.goto(f"http://localhost:{console.port}/ui/state")
    expect(page.locator(".listhead")).to_contain_text(f"{ids[-1]} of {ids[-1]}")  # every job of this home
    rows = page.locator(".vrow")
    for place, seen in (("0", "one of many 0"), ("element.scrollHeight", f"one of many {MANY - 1}")):
        page.locator(".list .scroll").evaluate(f"(element) => element.scrollTo(0, {place})")
        expect(page.locator(".vrow", has_text=seen)).to_have_count(1)
        assert 0 < rows.count() < 200
    console.instance.call("intent", ids=ids, batch=None, do="cancel")
