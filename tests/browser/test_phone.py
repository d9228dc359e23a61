"""A day on a phone, 390 wide: whatever is done on a desk is done there, too, by touching what is seen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import badge, queued

expect = pytest.importorskip("playwright.sync_api").expect


def through_the_menu(page: Any, what: Any) -> None:
    page.get_by_role("button", name=re.compile("Menu|菜单")).click()
    page.get_by_role("navigation").locator(what).click()


def no_wider_than_it_is(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_one_logs_in_makes_a_job_follows_it_cancels_one_sees_a_failure_and_tries_it_again(
    console, open_page, tmp_path: Path
):
    flag = tmp_path / "go"
    page = open_page(log_in=False, width=390, height=844)
    page.fill("#token", console.token)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".card")).to_have_count(4)
    expect(badge(page)).to_have_text("Live")
    no_wider_than_it_is(page)

    page.get_by_role("button", name="New job").click()
    page.fill("#new-command", f"echo begun; while [ ! -e {flag} ]; do sleep 0.05; done; echo gone on; sleep 600")
    page.fill("#new-workdir", str(tmp_path))
    expect(page.locator(".dry h3")).to_contain_text("Starts now on GPU")
    no_wider_than_it_is(page)
    page.get_by_role("button", name="Queue it").click()
    made = page.locator(".jobrow", has_text="echo begun")
    expect(made).to_be_visible()
    job = int(made.locator(".id").inner_text())
    made.click()
    lines = page.get_by_role("region", name=f"#{job} log").locator(".loglines")
    expect(lines).to_contain_text("begun")
    assert "gone on" not in lines.inner_text()
    flag.touch()
    expect(lines).to_contain_text("gone on")  # live
    no_wider_than_it_is(page)

    through_the_menu(page, "a[href$='/state']")
    page.locator(".vrow", has_text="echo begun").click()
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("running")
    dialog.get_by_role("button", name="Cancel 1 job").click()
    assert console.instance.end(job) == ["cancelled"]

    failed = queued(console, "broken here", "python3 -c 'raise ValueError(\"no such thing\")'", "-g", "0")
    console.instance.end(failed)
    through_the_menu(page, "a[href$='/gpu']")
    page.get_by_role("button", name="See error").first.click()
    expect(page.locator(".pinned .err")).to_have_text("ValueError: no such thing")
    expect(page.locator(".jobhead")).to_contain_text("exit code 1")
    no_wider_than_it_is(page)
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator(".toast", has_text="tried again")).to_be_visible()

    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation").get_by_role("radio", name="中文").click()
    page.get_by_role("navigation").get_by_role("radio", name="深色").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("navigation").locator("a[href$='/gpu']").click()
    expect(page.get_by_role("button", name="新建任务")).to_be_visible()
    no_wider_than_it_is(page)
