"""Jobs on the page: a sweep as one row, filters, the order of a queue, acts as commands, and a login that may only look."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import badge, queued

expect = pytest.importorskip("playwright.sync_api").expect

SWEEP = """
command: "echo {lr} {seed}; sleep 600"
matrix: {lr: [1, 2], seed: [0, 1, 2]}
job: {name: "net lr={lr} s{seed}", gpus: 0}
"""
PLAIN = """
jobs:
  - {name: in none, run: sleep 600, gpus: 0}
"""


def waiting(page: Any, name: str) -> Any:
    return page.locator(".group", has_text=name)


def test_a_sweep_is_one_row_with_its_progress_and_its_cancel_names_what_runs(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    file = console.instance.file(SWEEP, "sweep.yaml")
    console.instance.ok("run", "-d", "--max-concurrent", "2", file)
    sweep = waiting(page, "lr×seed")
    expect(sweep).to_contain_text("2 run · 4 wait")
    expect(sweep.locator(".segbar .running")).to_have_count(2)
    expect(sweep.locator(".segbar .waiting")).to_have_count(4)
    expect(page.locator(".jobrow", has_text="net lr=")).to_have_count(2)
    sweep.locator(".tick").check()
    page.keyboard.press("Escape")
    expect(page.locator(".selbar")).to_have_count(0)
    sweep.locator("button.count").click()
    expect(page.locator(".jobrow", has_text="net lr=")).to_have_count(6)
    sweep.locator("button.count").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(sweep).to_have_class("group picked")
    page.keyboard.press("x")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 6 jobs, 2 of them running?")
    dialog.get_by_role("button", name="Cancel 6 jobs").click()
    expect(sweep).to_have_count(0)


def test_the_order_of_a_queue_is_changed_by_dragging_and_by_keys_and_the_command_is_told(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    head, first, second, third = (queued(console, f"line {n}", "sleep 600", "-g", "0", "-q", "line") for n in "0abc")
    group = waiting(page, "line")
    expect(group).to_contain_text(f"They wait behind job {head}, the head of queue line.")
    group.locator("button.count").click()
    rows = page.locator(".group ~ .jobrow .id")
    expect(rows).to_have_text([str(first), str(second), str(third)])
    page.get_by_role("button", name=f"Job {third}: drag it").drag_to(page.locator(".jobrow", has_text="line a"))
    expect(page.locator(".toast", has_text=f"jostle move {third} before {first}")).to_be_visible()  # for some seconds only
    expect(rows).to_have_text([str(third), str(first), str(second)])
    page.locator(".jobrow", has_text="line c").click()
    page.keyboard.press("Alt+ArrowDown")
    expect(rows).to_have_text([str(first), str(third), str(second)])
    console.instance.ok("cancel", f"{head}-{third}")
    expect(group).to_have_count(0)


def test_jobs_are_filtered_by_batch_and_queue_and_others_are_told_when_all_are_asked_for(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    one = queued(console, "in a line", "sleep 600", "-g", "0", "-q", "lane")
    two = int(console.instance.ok("run", "-d", console.instance.file(PLAIN)))
    panel = page.get_by_role("region", name="Jobs")
    rows = panel.locator(".jobrow .name")
    expect(rows).to_have_text(["in a line", "in none"])
    panel.get_by_label("Queue", exact=True).select_option("lane")
    expect(rows).to_have_text(["in a line"])
    panel.get_by_label("Queue", exact=True).select_option("")
    panel.get_by_label("Batch", exact=True).select_option(str(batch(console, two)))
    expect(rows).to_have_text(["in none"])
    panel.get_by_label("Batch", exact=True).select_option("")
    panel.get_by_role("button", name=re.compile(r"All \d+")).click()
    expect(panel.get_by_role("region", name="Others")).to_contain_text("bob:")
    console.instance.ok("cancel", str(one), str(two))


def batch(console: Any, job: int) -> int:
    return int(console.instance.job(job)["batch"])


def test_whoever_may_only_look_sees_acts_greyed_with_the_reason_and_nothing_is_asked_in_vain(console, open_page):
    job = queued(console, "seen by others", "echo secret; sleep 600", "-g", "0")
    page = open_page(log_in=False)
    page.fill("#token", console.instance.ok("web", "--token", "--read-only").strip())
    page.get_by_role("button", name="Log in").click()
    expect(badge(page)).to_have_text("Live")
    expect(page.get_by_role("button", name="New job")).to_be_disabled()
    expect(page.get_by_role("button", name="New job")).to_have_attribute("title", "This login may only look")
    expect(page.locator(".jobrow .id", has_text=str(job))).to_have_count(1)
    expect(page.locator(".loglines")).to_contain_text("sees no output")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for name in ("Tasks", "Rules", "Settings", "State"):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_attached()
    page.locator(".vrow").first.click()
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_disabled()
    console.instance.ok("cancel", str(job))  # the fixture looks into the browser's log: no refusal was provoked


def test_every_key_of_a_job_that_waits_is_changed_with_its_command_shown(console, open_page):
    job = queued(console, "to be changed", "true", "-g", "0", "--hold")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.goto(f"http://localhost:{console.port}/ui/state/{job}")
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("Priority").fill("7")
    expect(page.get_by_role("dialog").locator(".cmd")).to_contain_text(f"jostle set {job} priority=7")
    page.get_by_role("button", name="Change it").click()
    expect(page.locator(".toast", has_text="is changed")).to_be_visible()
    assert console.instance.job(job)["priority"] == 7
    console.instance.ok("cancel", str(job))


def test_jobs_are_listed_by_their_queues_with_how_each_stands_and_one_below_the_other(console, open_page):
    head, behind = (queued(console, f"of the line {n}", "sleep 600", "-g", "0", "-q", "night") for n in "ab")
    alone = queued(console, "in no line", "sleep 600", "-g", "0")
    console.instance.reach(head, "running")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.get_by_role("link", name="State").click()
    lines = page.get_by_role("list", name="Jobs").get_by_role("listitem")
    expect(lines.first).to_contain_text("Queue night")
    expect(lines.first).to_contain_text("busy")
    expect(lines.nth(1)).to_contain_text("of the line a")
    expect(lines.nth(2)).to_contain_text("of the line b")
    expect(lines.nth(3)).to_have_text("In no queue")
    lines.nth(2).get_by_role("button").click()
    page.keyboard.press("j")  # over the heading
    expect(page.locator(".vrow.picked")).to_contain_text("in no line")
    page.get_by_role("radio", name="List").click()
    expect(page.locator(".vhead")).to_have_count(0)
    expect(page.locator(".vrow .id").nth(2)).to_have_text(str(behind))  # what runs comes first
    page.reload()
    expect(page.get_by_role("radio", name="List")).to_be_checked()
    console.instance.ok("cancel", f"{head}-{alone}")
