"""Command files and rules of a workspace on the page: edited, saved, started and stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import CHANGED, GONE
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect

COMMANDS = """# what this file is for
echo begun; sleep 600
1,2
"""
RULES = """# how many cards
max_gpu: 2  # and at most so many
min_gpu: 1
"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    root = tmp_path_factory.mktemp("w")
    workspace = root / "workspace"
    for name, text in (("command/command_gpu.txt", COMMANDS), ("config/gpu_manage.yaml", RULES)):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    made = Console(root / "c", workspace=workspace)
    yield made
    made.close()


def at(page: Any, name: str) -> Any:
    page.get_by_role("link", name=name).click()
    return page


def file(console: Console, name: str) -> str:
    assert console.workspace is not None
    return Path(console.workspace, name).read_text()


def test_a_config_is_made_filled_by_the_form_looked_at_as_a_difference_and_saved(console, open_page):
    page = at(open_page(), "Tasks")
    expect(page.locator(".cm-content")).to_contain_text("# what this file is for")
    expect(page.locator(".proc")).to_have_count(1)
    page.get_by_role("button", name="New config").click()
    expect(page.locator(".config", has_text="command_gpu_1.txt")).to_have_attribute("aria-current", "true")
    expect(page.locator(".proc")).to_have_count(0)
    page.get_by_role("button", name="Queue", exact=True).click()
    page.get_by_label("Commands of process 1").fill("echo from the form")
    page.get_by_label("Memory of process 1 in GB").fill("3")
    expect(page.locator(".cm-content")).to_contain_text("echo from the form")
    expect(page.locator(".queued")).to_contain_text("3 GB")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("+echo from the form")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="command_gpu_1.txt is saved")).to_be_visible()
    assert "echo from the form" in file(console, "command/command_gpu_1.txt")


def test_a35_a_log_is_bound_to_a_process_and_read_as_its_log_and_unbound(console, open_page):
    logs = Path(console.workspace or "", "logs")
    logs.mkdir(exist_ok=True)
    (logs / "mine.txt").write_text("printed by itself\n")
    page = at(open_page(provoked=(GONE,)), "Tasks")
    page.get_by_role("button", name="Bind a log file…").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Log file of queue 1, process 1")
    dialog.get_by_label("Path", exact=True).fill("../outside.txt")
    dialog.get_by_role("button", name="Bind", exact=True).click()
    expect(page.locator(".toast", has_text="no such log file")).to_be_visible()
    dialog.get_by_label("Path", exact=True).fill("logs/mine.txt")
    dialog.get_by_role("button", name="Bind", exact=True).click()
    bound = page.get_by_role("button", name="log: logs/mine.txt")
    expect(bound).to_be_visible()
    content = "/api/log/content?mode=single&config_index=0&queue_id=1&process_index=0"
    assert console.get(content)["content"] == "printed by itself\n"
    assert file(console, "command/command_gpu.txt") == COMMANDS
    bound.click()
    dialog.get_by_role("button", name="Unbind").click()
    expect(page.get_by_role("button", name="Bind a log file…").first).to_be_visible()
    assert console.get("/api/log/bindings") == {}


THREE = "1\necho a\n1\n\n1\necho b\n1\n\n2\necho c\n1\n"


def test_a35_processes_are_put_in_another_order_by_keys_and_a_config_is_deleted(console, open_page):
    path = Path(console.workspace or "", "command", "command_gpu_7.txt")
    path.write_text(THREE)
    page = at(open_page(), "Tasks")
    page.locator(".config", has_text="command_gpu_7.txt").click()

    def order() -> list[str]:
        read = console.get("/api/commands/single?config_index=7")["queues"]
        return [" ".join([str(queue["id"]), *(process["commands"][0] for process in queue["processes"])]) for queue in read]

    first = page.get_by_role("region", name="Queue 1").get_by_label("Commands of process 1")
    expect(first).to_have_value("echo a")
    page.get_by_role("button", name="Move process 1", exact=True).first.focus()
    page.keyboard.press("Alt+ArrowDown")
    expect(first).to_have_value("echo b")
    page.get_by_role("button", name="Move process 2", exact=True).focus()
    page.keyboard.press("Alt+ArrowDown")  # over the edge of its queue
    expect(page.get_by_role("region", name="Queue 2").locator(".proc")).to_have_count(2)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="command_gpu_7.txt is saved")).to_be_visible()
    assert order() == ["1 echo b", "2 echo a echo c"]
    page.get_by_role("button", name="Delete config").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Keep it").click()
    assert path.exists()
    page.get_by_role("button", name="Delete config").click()
    dialog.get_by_role("button", name="Delete config").click()
    expect(page.locator(".config", has_text="command_gpu_7.txt")).to_have_count(0)
    assert not path.exists() and path.with_suffix(".txt.backup").exists()


def test_an_error_in_the_text_stands_at_its_line_and_nothing_is_saved(console, open_page):
    page = at(open_page(), "Tasks")
    expect(page.locator(".cm-content")).to_contain_text("# what this file is for")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\necho two\n1,twelve\n")
    expect(page.locator(".bar")).to_contain_text("1 error")
    expect(page.locator(".right ul.fail")).to_contain_text("Line 6:")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Save and start")).to_be_disabled()
    broken = page.get_by_role("region", name="Queue 1").get_by_role("region", name="Block with an error, line 5")
    expect(broken).to_contain_text("Line 6:")  # in the form, too, in the queue that it seems to be of
    expect(page.locator(".queued")).to_contain_text("line 6")
    broken.get_by_role("textbox").fill("echo two\n1,12")
    page.get_by_role("heading", name="Queue 1").click()  # somewhere else
    expect(page.locator(".bar")).not_to_contain_text("error")
    expect(page.locator(".cm-content")).to_contain_text("1,12")
    expect(page.locator(".proc")).to_have_count(2)
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".proc")).to_have_count(1)
    assert file(console, "command/command_gpu.txt") == COMMANDS


def test_what_would_become_of_each_task_is_said_before_it_is_started_and_what_never_can_be(console, open_page):
    page = at(open_page(), "Tasks")
    expect(page.locator(".queued tr").first).to_contain_text("starts now on GPU")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\necho behind\n1,2\n\necho too large\n2,4000\n")
    expect(page.locator(".queued tr").nth(1)).to_contain_text("after 1.1")
    expect(page.locator(".queued .message")).to_contain_text("can never start")
    expect(page.locator(".bar")).to_contain_text("can never start on this host")
    expect(page.get_by_role("button", name="Save and start")).to_be_enabled()  # it is told, not forbidden
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".queued .message")).to_have_count(0)


def test_a_scheduler_is_started_seen_on_the_state_page_and_stopped_with_its_task(console, open_page):
    page = at(open_page(), "Tasks")
    expect(page.locator(".proc")).to_have_count(1)
    page.get_by_role("button", name="Start", exact=True).click()
    stop = page.get_by_role("button", name="Stop the scheduler", exact=True)
    expect(page.locator(".toast", has_text="Its scheduler runs, pid")).to_be_visible()  # in words of the page, so also in Chinese
    expect(stop).to_be_visible()
    at(page, "State")
    scheduler = page.locator(".sched", has_text="config 1")
    expect(scheduler).to_contain_text("1 run")
    page.locator(".vrow").first.click()
    expect(page.locator(".loglines")).to_contain_text("begun")
    scheduler.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Stop the scheduler: 1 running, 0 waiting tasks are cancelled")
    dialog.get_by_role("button", name="Let it run").click()
    at(page, "Tasks")
    stop.click()
    expect(dialog.get_by_role("heading")).to_have_text("Stop the scheduler: 1 running, 0 waiting tasks are cancelled")
    assert [row["state"] for row in console.instance.jobs().values()] == ["running"]
    dialog.get_by_role("button", name="Stop it").click()
    at(page, "State")
    expect(page.locator(".sched")).to_have_count(0)
    expect(page.locator(".vrow").first).to_contain_text("cancelled")


def test_a_rule_is_changed_in_its_file_and_the_comments_stay(console, open_page):
    page = at(open_page(), "Rules")
    rule = page.locator(".rule", has_text="max_gpu")
    expect(rule.get_by_label("At most", exact=True)).to_have_value("2")
    rule.get_by_role("button", name="More: At most").click()
    expect(rule).to_contain_text("2 → 3")
    effect = page.get_by_role("region", name="What saving does")
    expect(effect.locator(".diff .del")).to_have_text("-max_gpu: 2  # and at most so many")
    expect(effect.locator(".diff .add")).to_have_text("+max_gpu: 3  # and at most so many")
    expect(effect).to_contain_text("2 cards, 2 more now")
    expect(effect).to_contain_text("3 cards, 3 more now")
    page.get_by_role("button", name="Save, takes effect at once").click()
    expect(page.locator(".toast", has_text="the rules hold from now on")).to_be_visible()
    expect(rule).not_to_contain_text("→")
    assert file(console, "config/gpu_manage.yaml") == RULES.replace("max_gpu: 2", "max_gpu: 3")


def test_a_file_that_was_changed_on_the_disk_meanwhile_is_not_overwritten(console, open_page):
    page = at(open_page(provoked=(CHANGED,)), "Rules")
    rule = page.locator(".rule", has_text="min_gpu")
    expect(rule.get_by_label("At least", exact=True)).to_have_value("1")
    path = Path(console.workspace, "config/gpu_manage.yaml")
    theirs = path.read_text().replace("min_gpu: 1", "min_gpu: 2")
    path.write_text(theirs)
    rule.get_by_role("button", name="Less: At least").click()
    page.get_by_role("button", name="Save, takes effect at once").click()
    expect(page.locator(".bar [role=alert]")).to_contain_text("changed on the disk meanwhile")
    assert path.read_text() == theirs


def test_the_rules_count_cards_as_the_engine_does_and_name_the_tasks_that_would_start(console, open_page):
    rules = Path(console.workspace, "config/gpu_manage.yaml")
    rules.write_text("max_gpu: 0\nmin_gpu: 0\n")
    page = at(open_page(), "Tasks")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("button", name="Stop the scheduler", exact=True)).to_be_visible()
    at(page, "Rules")
    rule = page.locator(".rule", has_text="max_gpu")
    rule.get_by_label("At most", exact=True).fill("")
    page.locator(".rule", has_text="min_gpu").get_by_label("At least", exact=True).fill("")
    meaning = page.get_by_role("region", name="What it means")
    expect(meaning).to_contain_text("neither min_gpu nor max_gpu is set")
    effect = page.get_by_role("region", name="What saving does")
    expect(effect).to_contain_text("echo begun")
    expect(effect).to_contain_text("Starts now on GPU")
    rule.get_by_label("At most", exact=True).fill("1")
    expect(meaning).to_contain_text("not below 3, not above 1")  # min_gpu is 3 where only the other is said
    page.get_by_role("button", name="Save, takes effect at once").click()
    expect(page.locator(".toast", has_text="the rules hold from now on")).to_be_visible()
    at(page, "State")
    expect(page.locator(".vrow", has_text="echo begun").first).to_contain_text("running")
    page.locator(".sched").get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    expect(page.locator(".sched")).to_have_count(0)


def test_new_work_may_be_a_sweep_or_a_job_file_with_how_many_of_it_would_start_now(console, open_page):
    page = open_page()
    expect(page.locator(".badge")).to_have_text("Live")
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name="Sweep").click()
    expect(dialog.locator(".dry")).to_contain_text("names in braces")
    page.fill("#sweep-command", "echo {lr} {seed}")
    page.fill("#sweep-axes", "lr: 1e-4, 3e-4\nseed: 1 2 3")
    expect(dialog.locator(".dry h3")).to_contain_text("6 jobs would be queued")  # a name that comes later is heard, too
    page.fill("#sweep-name", "six")
    page.get_by_role("textbox", name="GPU").fill("0")
    expect(dialog.locator(".dry h3")).to_have_text("6 jobs would be queued, and some start now")
    expect(dialog.locator(".dry")).to_contain_text("6 start now.")
    expect(dialog.locator(".firstjobs li")).to_have_count(6)
    expect(dialog.locator(".cmd")).to_contain_text("/workspace/six.yaml")
    dialog.get_by_role("button", name="Save and submit").click()
    expect(page.locator(".toast", has_text="6 jobs.")).to_be_visible()
    assert file(console, "six.yaml").startswith('command: "echo {lr} {seed}"\nmatrix:\n  lr: [1e-4, 3e-4]')
    console.instance.end(*console.instance.jobs())
    page.keyboard.press("n")
    dialog.get_by_role("radio", name="Job file").click()
    expect(page.locator("#new-file")).to_have_value(str(Path(console.workspace or "", "six.yaml")))
    expect(dialog.locator(".dry")).to_contain_text("Nothing of it is left to run.")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
