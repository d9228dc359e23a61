"""A35: the pages of the source have their addresses, and show what its pages showed."""

from __future__ import annotations

import pytest

from tests.browser import views
from tests.browser.conftest import badge
from tests.browser.test_workspace import console as console  # one with a workspace

expect = pytest.importorskip("playwright.sync_api").expect

PAGES = {"gpu": "GPU", "command": "Tasks", "state": "State", "rule": "Rules", "setting": "Settings"}


def test_a35_each_page_of_the_source_has_its_address_and_the_first_is_that_of_the_gpus(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    for start in ("", "ui", "ui/"):
        page.goto(f"http://localhost:{console.port}/{start}")
        expect(page.locator("h1")).to_have_text("GPU")
        expect(page).to_have_url(f"http://localhost:{console.port}/ui/gpu")
    for path, title in PAGES.items():
        views.at(page, console, path)
        expect(page.locator("h1")).to_have_text(title)


def test_a35_the_host_is_told_at_its_name_and_how_often_it_is_read_is_chosen(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.locator(".hostname").click()
    facts = page.locator(".host")
    for told in ("CPU", "Host memory", "0.5 s"):
        expect(facts).to_contain_text(told)
