"""What one holds and may hold, on the page: allocations and what runs on them, limits; and whom messages reach."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import TAKEN, badge, pages
from tests.e2e.instance import until
from tests.notify.receivers import Posts, http_server
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect


def hold_page(page: Any) -> Any:
    expect(badge(page)).to_have_text("Live")
    page.get_by_role("link", name="Hold").click()
    return page


def held(page: Any, name: str) -> Any:
    return page.get_by_role("listitem", name=name)


def test_c2_cards_are_asked_for_held_given_a_program_resized_and_released(console, open_page, tmp_path: Path):
    page = hold_page(open_page(provoked=(TAKEN,)))
    form = page.get_by_role("region", name="Hold cards")
    form.get_by_label("Name").fill("train")
    form.get_by_label("GPUs").fill("2")
    form.get_by_label("For how long").fill("4h")
    expect(form.locator(".dry h3")).to_contain_text("Starts now on GPU")
    expect(form.locator(".cmd")).to_contain_text("jostle alloc train -g 2 --for 4h")
    form.get_by_role("button", name="Ask for them").click()
    train = held(page, "train")
    expect(train).to_contain_text("holds")
    expect(train).to_contain_text("GPU 1, 2")
    expect(train).to_contain_text("until")

    train.get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Command").fill("echo on its cards; sleep 600")
    dialog.get_by_label("Directory").fill(str(tmp_path))
    expect(dialog.locator(".cmd")).to_contain_text("jostle start train")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog).to_have_count(0)
    program = train.get_by_role("list", name="Programs on it").get_by_role("listitem")
    expect(program).to_contain_text("running")
    program.get_by_role("link").click()
    expect(page.locator(".loglines")).to_contain_text("on its cards")
    page.get_by_role("link", name="GPU", exact=True).click()
    expect(page.locator(".card").nth(1)).to_contain_text("in train")  # the program, and not two that share the card
    page.get_by_role("link", name="Hold").click()

    train.get_by_role("button", name="Start…").click()  # a second one, which is to be beside the first
    dialog.get_by_label("Command").fill("sleep 600")
    dialog.get_by_role("switch", name="beside").uncheck()
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    page.keyboard.press("Escape")

    train.get_by_role("button", name="Release…").click()
    expect(dialog).to_contain_text("The program on it is ended: #")
    expect(dialog).to_contain_text("jostle release train")
    dialog.get_by_role("button", name="Keep it").click()
    train.get_by_role("button", name="Release…").click()
    dialog.get_by_role("button", name="Release", exact=True).click()
    expect(train).to_have_count(0)
    until(lambda: not [row for row in console.instance.jobs().values() if row["ended_at"] is None], "all is over")


def test_c2_one_that_waits_says_why_and_may_ask_for_fewer(console, open_page):
    page = hold_page(open_page(provoked=(TAKEN,)))
    console.instance.ok("add", "-n", "in the way", "-g", "2", "--", "sleep 600")
    form = page.get_by_role("region", name="Hold cards")
    form.get_by_label("Name").fill("wide")
    form.get_by_label("GPUs").fill("3")
    expect(form.locator(".dry h3")).to_have_text("It would wait")
    form.get_by_role("button", name="Ask for them").click()
    wide = held(page, "wide")
    expect(wide).to_contain_text("wants 3 GPUs")
    expect(wide).to_contain_text("GPUs fit (3 needed)")
    expect(form.get_by_label("Name")).to_have_value("")
    form.get_by_label("Name").fill("wide")
    form.get_by_role("button", name="Ask for them").click()
    expect(form.get_by_role("alert")).to_contain_text("wide")  # the name is taken
    wide.get_by_role("button", name="Resize…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("GPU").fill("1")
    expect(dialog.locator(".cmd")).to_contain_text("gpus=1")
    dialog.get_by_role("button", name="Resize", exact=True).click()
    expect(wide).to_contain_text("holds")
    console.instance.ok("release", "wide")
    console.instance.ok("cancel", "all")
    expect(wide).to_have_count(0)
    console.instance.end(*console.instance.jobs())


def test_c2_in_chinese_a_card_is_held_and_given_back_and_every_word_of_it_is_chinese(console, open_page):
    page = hold_page(open_page())
    page.get_by_role("radio", name="中文").click()
    form = page.get_by_role("region", name="申请占卡")
    form.get_by_label("名称").fill("训练")
    form.get_by_label("GPU 数").fill("1")
    expect(form.locator(".dry h3")).to_contain_text("马上在 GPU")
    form.get_by_role("button", name="申请").click()
    card = held(page, "训练")
    expect(card).to_contain_text("占着")
    expect(card).to_contain_text("直到归还")
    card.get_by_role("button", name="归还…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("归还 训练？")
    expect(dialog).to_contain_text("可供他人使用")
    dialog.get_by_role("button", name="归还", exact=True).click()
    expect(page.locator(".toast", has_text="训练 已归还。")).to_be_visible()
    expect(card).to_have_count(0)


def test_c3_ones_own_limit_is_set_and_taken_back_and_what_is_held_is_counted(console, open_page):
    console.instance.know_cards()
    console.instance.ok("alloc", "one", "-g", "1", "--now")
    page = hold_page(open_page())
    total = page.get_by_role("row").filter(has_text="max_total_gpus")
    expect(total.get_by_role("cell").nth(1)).to_have_text("1")
    total.get_by_role("textbox").fill("1")
    total.get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="jostle limits set max_total_gpus=1")).to_be_visible()
    expect(total.get_by_role("cell").nth(2)).to_have_text("1")
    expect(page.locator(".freecount")).to_contain_text("0 for you")  # whatever is free
    total.get_by_role("textbox").fill("")
    total.get_by_role("button", name="Save").click()
    expect(total.get_by_role("cell").nth(2)).to_have_text("–")
    console.instance.ok("release", "one")


def test_c11_channels_stand_in_the_settings_with_a_test_and_what_is_wrong_with_one(console, open_page):
    posts = Posts()
    with http_server(posts) as port:
        channels = {
            "mine": {"kind": "webhook", "url": f"http://localhost:{port}/hook", "events": ["failed"]},
            "deaf": {"kind": "webhook", "url": "http://localhost:1/hook", "events": ["batch"]},
        }
        said = {"notify": {"allow_private": ["localhost"], "channels": channels}}
        (console.instance.home / "config.yaml").write_text(json.dumps(said))
        page = open_page(provoked=(TAKEN,))
        expect(badge(page)).to_have_text("Live")
        page.get_by_role("link", name="Settings").click()
        panel = page.get_by_role("region", name="Messages")
        mine = panel.locator(".setting", has_text="mine")
        expect(mine).to_contain_text("job failed")
        expect(mine).not_to_contain_text("/hook")  # where exactly, is its owner's
        mine.get_by_role("button", name="Send a test").click()
        expect(page.locator(".toast", has_text="A test went by mine.")).to_be_visible()
        assert posts.requests
        panel.locator(".setting", has_text="deaf").get_by_role("button", name="Send a test").click()
        expect(page.locator(".toast", has_text="deaf took no test")).to_be_visible()
    (console.instance.home / "config.yaml").unlink()


def test_c7_a_job_that_agreed_to_other_cards_tells_of_them_and_is_resized_while_it_runs(console, open_page):
    sheet = "jobs: [{name: elastic, run: 'echo leg; sleep 600', gpus: 1-2, resize: restart}]"
    job = int(console.instance.ok("run", "-d", console.instance.file(sheet, "elastic.yaml")))
    console.instance.reach(job, "running")
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    page.goto(f"http://localhost:{console.port}/ui/state/{job}")
    story = page.get_by_role("complementary", name="Story")
    expect(story).to_contain_text("1 to 2 cards, begins anew; leg")
    page.get_by_role("button", name="Resize…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("More or fewer cards")
    dialog.get_by_label("GPUs").fill("1")
    expect(dialog.locator(".cmd")).to_contain_text(f"jostle set {job} gpus=1")
    dialog.get_by_role("button", name="Change it").click()
    expect(page.locator(".toast", has_text="is changed")).to_be_visible()
    until(lambda: len(console.instance.job(job)["gpus"]) == 1, "it has one card")
    expect(story).to_contain_text("has shrunk to GPU")
    console.instance.ok("cancel", str(job))


def test_c13_a_job_that_holds_a_card_at_0_percent_is_named_as_idle_on_its_card(browser, tmp_path: Path):
    made = Console(tmp_path, gpus=None)
    try:
        (Path(made.instance.home) / "config.yaml").write_text("idle_after: 1\n")
        made.instance.up(made.instance.scenario("gpus: {count: 1, total: 24GiB}\nruns: {use: 0.5, utilization: 0}\n"))
        made.instance.see_cards()
        job = made.instance.add("-n", "stuck", "--", "sleep 600")
        made.instance.reach(job, "running")
        with pages(browser, made) as open_page:
            page = open_page()
            card = page.locator(".card").first
            expect(card).to_contain_text(f"#{job} stuck")
            expect(card.locator(".wait")).to_contain_text("holds memory, no load for")
            page.get_by_role("radio", name="中文").click()
            expect(card.locator(".wait")).to_contain_text("没有计算")
        made.instance.ok("cancel", "--now", str(job))
    finally:
        made.close()


def test_a_start_without_a_command_is_the_program_of_the_managers_file_and_says_so(console, open_page, tmp_path: Path):
    program = {"command": "echo", "args": ["the program", "of the file"]}
    file = console.instance.file(json.dumps({"program_template": program}), "gpu_manager_config.json")
    console.instance.ok("manage", "--config", file, "--status")
    console.instance.ok("manage", "--config", file, "--allocate", "train")
    page = hold_page(open_page(provoked=(TAKEN,)))
    held(page, "train").get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Directory").fill(str(tmp_path))
    expect(dialog.get_by_label("Command")).to_have_value("")
    expect(dialog.get_by_label("Command")).to_have_accessible_description(re.compile("gpu_manager_config.json"))
    expect(dialog.locator(".cmd")).to_contain_text(re.compile(f"jostle start train --workdir {tmp_path}$"))
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog).to_have_count(0)
    ran = max(console.instance.jobs())
    console.instance.end(ran)
    assert "the program of the file" in console.instance.ok("logs", str(ran))
    console.instance.ok("release", "train")


def test_a_card_with_nothing_on_it_is_not_said_to_hold_memory(browser, tmp_path: Path):
    made = Console(tmp_path, gpus=None)
    try:
        (Path(made.instance.home) / "config.yaml").write_text("idle_after: 1\n")
        made.instance.up("sim:1x24")
        made.instance.see_cards()
        (id,) = made.instance.submit({"commands": [], "name": "train"})
        made.instance.reach(id, "running")
        with pages(browser, made) as open_page:
            card = open_page().locator(".card").first
            expect(card).to_contain_text("train")
            expect(card).to_contain_text("idle ")
            expect(card).not_to_contain_text("memory")
    finally:
        made.close()
