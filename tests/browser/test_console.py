"""The built page in a real browser, before a real engine on simulated cards: what a person does and sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import badge, queued

expect = pytest.importorskip("playwright.sync_api").expect

WAITING = "echo first line; while [ ! -e {flag} ]; do sleep 0.05; done; echo second line; sleep 600"


def row(page: Any, name: str) -> Any:
    return page.locator(".jobrow", has_text=name)


def test_the_code_of_the_address_logs_in_once_and_is_taken_out_of_it(console, open_page):
    page = open_page()
    expect(page.locator(".card")).to_have_count(4)
    expect(badge(page)).to_have_text("Live")
    expect(page).to_have_url(re.compile(r"^[^#]*$"))  # nor anything else behind a hash
    expect(page.locator(".freecount")).to_contain_text("3 free")
    expect(page.locator(".card").nth(0)).to_contain_text("bob")
    expect(page.locator(".people")).to_contain_text("bob")
    expect(page).to_have_title("3/4 free · jostle")


def test_a_wrong_token_is_told_and_the_right_one_lets_in(console, open_page):
    page = open_page(log_in=False)
    page.fill("#token", "not the token of anybody")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-error")).not_to_be_empty()
    page.fill("#token", console.token)
    page.get_by_role("button", name="Log in").click()
    expect(badge(page)).to_have_text("Live")


def test_a_job_is_seen_to_start_its_log_is_followed_and_cancelling_it_names_what_dies(console, open_page, tmp_path: Path):
    page = open_page()
    expect(page.locator(".card")).to_have_count(4)
    flag = tmp_path / "go"
    job = queued(console, "followed", WAITING.format(flag=flag))
    expect(row(page, "followed")).to_contain_text("running")
    expect(page.locator(".card", has_text=f"#{job}")).to_have_count(1)
    row(page, "followed").click()
    lines = page.locator(".loglines")
    expect(lines).to_contain_text("first line")
    assert "second line" not in lines.inner_text()
    flag.touch()
    expect(lines).to_contain_text("second line")

    page.keyboard.press("Enter")
    figures = page.get_by_role("complementary", name="Story")
    expect(figures.locator("dt", has_text="Peak").locator("+ dd")).to_have_text("11.8 GiB")  # while it runs
    expect(figures.locator("dt", has_text="Load").locator("+ dd")).to_contain_text("mean")
    expect(figures.get_by_role("img", name="Memory of try 1")).to_be_visible()
    expect(figures.get_by_role("columnheader")).to_have_text(["PID", "CPU", "Memory", "GPU mem.", "Peak", "For"])
    expect(figures.locator(".processes tbody tr").first).to_have_attribute("title", re.compile("."))
    page.go_back()
    row(page, "followed").click()

    page.keyboard.press("x")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("running")
    expect(dialog).to_contain_text(f"jostle cancel {job}")
    dialog.get_by_role("button", name="Cancel 1 job").click()
    expect(row(page, "followed")).to_have_count(0)
    assert console.get(f"/api/v1/show/{job}")["job"]["state"] in ("stopping", "cancelled")
    expect(page.locator(".card", has_text=f"#{job} followed")).to_have_count(0)


def test_a_failure_stands_first_with_its_reason_its_traceback_is_pinned_and_it_can_be_tried_again(console, open_page):
    page = open_page()
    job = queued(console, "broken", "python3 -c 'print(1); raise ValueError(\"no such thing\")'", "-g", "0")
    expect(page.locator(".section", has_text="Unseen")).to_contain_text("Its command ended with exit code 1")
    page.get_by_role("button", name="See error").click()
    expect(page).to_have_url(re.compile(rf"/ui/state/{job}$"))
    expect(page.locator(".pinned .err")).to_have_text("ValueError: no such thing")
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator(".toast", has_text="tried again")).to_be_visible()
    expect(page.locator(".vrow", has_text="broken")).to_have_count(2)


def test_of_many_failures_three_stand_first_one_looked_at_is_gone_and_the_rest_is_a_link_away(console, open_page):
    for k in range(5):
        queued(console, f"breaks {k}", "exit 3", "-g", "0")
    console.instance.end(*console.instance.jobs())
    failed = sum(row["state"] == "failed" for row in console.instance.jobs().values())
    page = open_page()
    unseen = page.locator(".section", has_text="Unseen")
    expect(unseen.locator("h3 b")).to_have_text(str(failed))
    expect(unseen.locator(".jobrow")).to_have_count(3)
    expect(page.locator(".lately")).to_contain_text("Last 24 h")
    unseen.get_by_role("button", name="See error").first.click()
    expect(page.locator(".jobhead")).to_be_visible()
    page.get_by_role("link", name="GPU", exact=True).click()
    expect(unseen.locator("h3 b")).to_have_text(str(failed - 1))
    unseen.get_by_role("link", name=f"+{failed - 4} more").click()
    expect(page.get_by_role("radio", name="Failed")).to_be_checked()
    expect(page.locator(".vrow")).to_have_count(failed)


def test_why_a_job_waits_is_said_in_a_sentence_in_both_languages(console, open_page):
    page = open_page()
    job = queued(console, "wide", "true", "-g", "4")
    group = page.locator(".group", has_text="wide")
    expect(group.locator(".sentence")).to_contain_text("of 4 GPUs fit")
    expect(group.locator(".sentence")).to_contain_text("bob")
    page.get_by_role("radio", name="中文").click()
    expect(group.locator(".sentence")).to_contain_text("张 GPU 中有")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("radio", name="深色").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator(".group", has_text="wide").locator(".sentence")).to_contain_text("张 GPU 中有")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    console.instance.ok("cancel", str(job))
    expect(page.locator(".group", has_text="wide")).to_have_count(0)


def test_a_job_is_made_on_the_page_after_a_look_at_what_would_become_of_it(console, open_page, tmp_path: Path):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.keyboard.press("n")
    expect(page.locator("#new-command")).to_be_focused()
    page.keyboard.type("echo made on the page")
    page.fill("#new-workdir", str(tmp_path))
    expect(page.locator(".dry h3")).to_contain_text("Starts now on GPU")
    expect(page.locator(".dry")).to_contain_text("You would then hold 1 card.")
    expect(page.locator(".dry .verdict .taken")).to_have_count(1)
    page.get_by_role("textbox", name="GPU").fill("4")
    expect(page.locator(".dry h3")).to_have_text("It would wait")
    expect(page.locator(".dry")).to_contain_text("of 4 GPUs fit")
    page.get_by_role("textbox", name="GPU").fill("1")
    expect(page.locator(".dry h3")).to_contain_text("Starts now on GPU")
    expect(page.locator(".dialog .cmd")).to_contain_text(f"jostle add --workdir {tmp_path} -- 'echo made on the page'")
    page.get_by_role("button", name="Queue it").click()
    expect(page.locator(".loglines")).to_contain_text("made on the page")


def test_output_is_text_whatever_it_says(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    job = queued(console, "<img src=x onerror=alert(1)>", "printf '<b id=planted>x</b>\\033[31mred\\033[0m\\n'", "-g", "0")
    page.goto(f"http://localhost:{console.port}/ui/state/{job}")
    expect(page.locator(".loglines")).to_contain_text("<b id=planted>x</b>")
    expect(page.locator(".loglines .ansi1")).to_have_text("red")
    assert page.locator("#planted").count() == 0 and page.locator("img").count() == 0


def test_a_phone_shows_everything_without_scrolling_sideways_and_its_menu_is_closed(console, open_page):
    page = open_page(width=390, height=844)
    expect(page.locator(".card")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_role("navigation")).not_to_be_visible()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("navigation")).not_to_be_visible()
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
