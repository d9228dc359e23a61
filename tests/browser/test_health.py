"""Health in one look: the header says the worst, and behind it stands what is wrong and what to do."""

import os
import signal
from typing import Any

import pytest

from tests.browser.conftest import NO_ENGINE
from tests.e2e.instance import alive, until

expect = pytest.importorskip("playwright.sync_api").expect


def test_what_is_wrong_is_told_with_what_to_do_and_is_gone_when_it_is_mended(console, open_page):
    page = open_page(provoked=(NO_ENGINE,))
    badge = page.locator(".health > button")
    badge.wait_for()
    badge.click()
    rows = page.locator(".health .checks li")
    for at, name in enumerate(("Engine", "Driver", "Cards", "Disk", "Claims")):
        expect(rows.nth(at)).to_contain_text(name)
    expect(rows.nth(0)).to_contain_text("fine")
    expect(rows.nth(2)).to_contain_text("none of 4 GPUs")
    held = console.instance.add("--hold", "--", "true")
    kept: list[Any] = []
    holds = [True]
    page.route("**/api/v1/doctor*", lambda route: kept.append(route) if holds else route.continue_())
    pid = console.instance.call("hello")["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it is dead")
    page.locator(".health > button.bad").wait_for()  # the badge does not wait for the doctor
    holds.clear()
    for route in kept:
        route.continue_()
    wrong = page.locator(".health .checks li", has_text="none runs; jobs of yours that have not ended: 1")
    wrong.wait_for()
    assert "bad" in wrong.inner_text() and "`jostle up` starts one" in wrong.locator("strong").inner_text()
    assert "problem" in badge.get_attribute("aria-label")
    console.instance.up(None)
    wrong.wait_for(state="detached")
    console.instance.ok("cancel", str(held))
