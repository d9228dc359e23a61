"""The log panel: what is new while one reads above, progress bars as one line, a tab per try, the traceback, search, size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import badge, queued

expect = pytest.importorskip("playwright.sync_api").expect

MANY = "seq 1 300; while [ ! -e {flag} ]; do sleep 0.05; done; seq 301 337; sleep 600"
BAR = r"for i in $(seq 1 40); do printf '\rstep %d/40' $i; done; echo; echo after the bar; sleep 600"
TRACEBACK = r"Traceback (most recent call last):\n  File 'a.py', line 1, in f\nValueError: odd\n"
TWICE = f'echo begun; printf "{TRACEBACK}"; exit 3'


def log_of(page: Any, console: Any, job: int) -> Any:
    page.evaluate(
        "(path) => { history.pushState(null, '', '/ui' + path); dispatchEvent(new PopStateEvent('popstate')) }", f"/state/{job}"
    )
    expect(page.get_by_role("region", name=f"#{job} log")).to_be_visible()
    return page.locator(".loglines")


def test_follow_lets_go_when_one_scrolls_up_and_tells_how_many_lines_are_new(console, open_page, tmp_path: Path):
    flag = tmp_path / "go"
    job = queued(console, "many lines", MANY.format(flag=flag), "-g", "0")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    lines = log_of(page, console, job)
    expect(lines.get_by_text("300", exact=True)).to_be_visible()
    follow = page.get_by_role("switch", name="Follow")
    expect(follow).to_be_checked()
    lines.hover()
    page.mouse.wheel(0, -2000)
    expect(follow).not_to_be_checked()
    flag.touch()
    page.get_by_role("button", name="↓ 37 new lines").click()
    expect(lines.get_by_text("337", exact=True)).to_be_visible()
    expect(follow).to_be_checked()
    page.get_by_role("button", name="Search the log").click()
    page.get_by_role("searchbox", name="Search the log").fill("33")
    expect(page.locator(".logpanel header")).to_contain_text("/ 11")
    console.instance.ok("cancel", str(job))


HOSTILE = (
    b"<script>window.owned = 1</script><img id=planted src=x onerror='window.owned = 2'>\n"
    b"\x1b]8;;javascript:window.owned=3\x1b\\a link\x1b]8;;\x1b\\ \x1b[2J\x1b[31mred\x1b[0m\n"
    b"\xe2\x80\xaetxt.exe \x00nul \xff\xfebroken\n" + b"m" * 1_000_000 + b"\nthe end\n"
)  # fmt: skip


def test_s22_a_hostile_log_is_text_on_the_page_and_its_long_line_in_nobodys_way(console, open_page, tmp_path: Path):
    (tmp_path / "raw").write_bytes(HOSTILE)
    job = queued(console, "hostile", f"cat {tmp_path}/raw; sleep 600", "-g", "0")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    lines = log_of(page, console, job)
    expect(lines).to_contain_text("the end")
    lines.hover()
    page.mouse.wheel(0, -50_000_000)
    expect(lines).to_contain_text("<script>window.owned = 1</script><img id=planted")
    expect(lines).to_contain_text("a link red")
    expect(lines.locator(".ansi1")).to_have_text("red")
    expect(lines).to_contain_text("‹U+202E›txt.exe ‹U+0000›nul \ufffd\ufffdbroken")
    assert lines.locator("a, img, script").count() == 0 and page.evaluate("window.owned") is None
    console.instance.ok("cancel", str(job))


def test_a_progress_bar_is_one_line_and_its_drawings_are_counted(console, open_page):
    job = queued(console, "a bar", BAR, "-g", "0")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    lines = log_of(page, console, job)
    expect(lines).to_contain_text("step 40/40\\r ×39")
    expect(lines).to_contain_text("after the bar")
    expect(lines).not_to_contain_text("step 39/40")
    console.instance.ok("cancel", str(job))


def test_each_try_has_a_tab_and_the_first_traceback_of_a_failure_is_pinned(console, open_page):
    job = queued(console, "fails twice", TWICE, "-g", "0", "--retry", "1")
    console.instance.end(job)
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    log_of(page, console, job)
    tabs = page.get_by_role("tab")
    expect(tabs).to_have_count(2)
    expect(page.locator(".pinned")).to_contain_text("First traceback, line 2 of 4")
    expect(page.locator(".pinned .err")).to_have_text("ValueError: odd")
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("[")
    expect(tabs.nth(0)).to_have_attribute("aria-selected", "true")
    with page.expect_download() as told:
        page.get_by_role("button", name="Download all of it").click()
    assert "ValueError: odd" in Path(told.value.path()).read_text()


def test_a_log_of_a_gigabyte_opens_at_its_end_without_being_read(console, open_page):
    """Most of it is a hole in the file, which is as long to whoever would read it."""
    job = queued(console, "a gigabyte", "truncate -s 1G /proc/self/fd/1; echo the very end; sleep 600", "-g", "0")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    lines = log_of(page, console, job)
    expect(lines).to_contain_text("the very end")
    expect(lines).to_contain_text("1.1 GB before this: show more")
    console.instance.ok("cancel", str(job))


BELL = """window.rung = []
const Real = window.Notification
window.Notification = class extends Real {
  constructor(title, options) { super(title, options); window.rung.push([title, options.body, Real.permission]) }
}"""
"""What the browser is asked to show outside of its window is seen nowhere in a page."""


def test_one_is_told_when_a_batch_has_ended_and_a_cancelled_job_that_waited_comes_back_by_undo(console, open_page):
    page = open_page()
    page.context.grant_permissions(["notifications"])
    page.add_init_script(BELL)
    page.reload()
    expect(badge(page)).to_have_text("Live")
    job = queued(console, "waits for ever", "true", "-g", "4")
    page.locator(".group", has_text="waits for ever").click()
    page.locator(".jobrow", has_text="waits for ever").click()
    page.keyboard.press("x")
    page.get_by_role("dialog").get_by_role("button", name="Cancel 1 job").click()
    page.locator(".toast", has=page.get_by_role("button", name="Undo")).get_by_role("button", name="Undo").click()
    expect(page.locator(".toast", has_text="is tried again")).to_be_visible()
    again = console.instance.newest()[0]["id"]
    assert again != job
    page.get_by_label("Batch", exact=True).select_option(str(console.instance.job(again)["batch"]))
    page.get_by_role("button", name="Tell me when this batch has ended").click()
    console.instance.ok("cancel", "all")
    expect(page.locator(".toast", has_text="has ended")).to_be_visible()
    batch = console.instance.job(again)["batch"]
    states = [row["state"] for row in console.instance.jobs().values() if row["batch"] == batch]  # what others have added, too
    failed = f", {states.count('failed')} failed" if "failed" in states else ""
    assert page.evaluate("rung") == [["jostle", f"Batch {batch} has ended: {len(states)} jobs{failed}.", "granted"]]
