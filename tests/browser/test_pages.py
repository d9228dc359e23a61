"""A35: the pages of the source have their addresses, and show what its pages showed."""

from __future__ import annotations

import pytest

from tests.browser import views
from tests.browser.conftest import badge
from tests.browser.test_workspace import console as console  # one with a workspace

expect = pytest.importorskip("playwright.sync_api").expect

STREAM = "/api/v1/stream?"
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
    for told in ("CPU", "Host memory", "Read every"):
        expect(facts).to_contain_text(told)
    often = facts.get_by_role("radiogroup", name="Read every")
    expect(often.get_by_role("radio")).to_have_text(["0.5 s", "1 s", "2 s", "5 s"])
    for chosen in ("0.5", "5"):
        with page.expect_request(lambda asked, chosen=chosen: STREAM in asked.url and f"&gpus={chosen}&" in f"{asked.url}&"):
            often.get_by_role("radio", name=f"{chosen} s", exact=True).click()
        expect(often.get_by_role("radio", checked=True)).to_have_text(f"{chosen} s")
    page.get_by_role("link", name="State").click()
    page.get_by_role("link", name="GPU", exact=True).click()
    expect(badge(page)).to_have_text("Live")
