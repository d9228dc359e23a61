"""The page and what it stands on: other tabs, a web process that goes away, an engine that dies, cards that change hands."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.browser.conftest import BOB, CARDS, CUT, NO_ENGINE, NO_KEY, badge, queued
from tests.e2e.instance import alive, until

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_second_tab_needs_no_second_login(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    expect(badge(open_page(log_in=False, context=page.context))).to_have_text("Live")


def link(console) -> str:
    return f"http://localhost:{console.port}/ui/#code={console.new_code()}"


def test_a_browser_whose_tab_was_closed_logs_in_by_a_link_again_and_one_that_is_logged_in_keeps_no_link_in_its_address(
    console, open_page
):
    first = open_page()
    expect(badge(first)).to_have_text("Live")
    context = first.context
    context.new_page()  # else the browser ends with its last tab
    first.close()  # and the key with it; the cookie stays
    second = open_page(log_in=False, context=context, provoked=(NO_KEY,))  # what it asks in the instant of the third's login is
    expect(second.locator("#token")).to_be_visible()
    second.goto(link(console))
    expect(badge(second)).to_have_text("Live")

    second.goto(link(console))  # another one, in the same tab
    second.wait_for_function("() => location.hash === ''")
    expect(badge(second)).to_have_text("Live")
    third = open_page(context=context)  # and in another tab: a second login of one browser
    expect(badge(third)).to_have_text("Live")
    for page in (second, third):
        page.reload()
        expect(badge(page)).to_have_text("Live")
        assert "code" not in page.url
        page.get_by_role("link", name="Settings").click()
        expect(page.locator(".checks li").first).to_be_visible()  # it is answered, whoever logged in last


def test_a_link_is_of_use_where_the_login_of_the_tab_is_over(console, open_page):
    page = open_page(provoked=(NO_KEY,))
    expect(badge(page)).to_have_text("Live")
    page.evaluate("sessionStorage.setItem('jostle.key', 'of a console that is no more')")
    page.goto("about:blank")
    page.goto(link(console))
    expect(badge(page)).to_have_text("Live")
    assert "code" not in page.url


def test_a_lost_connection_is_said_at_once_and_comes_back_by_itself(console, open_page):
    page = open_page(provoked=(CUT,))
    expect(badge(page)).to_have_text("Live")
    pid = console.pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it is dead")
    expect(badge(page)).to_have_text("Lost")
    expect(page.locator(".banner")).to_contain_text("Engine and jobs are not affected")
    expect(page.locator(".stale .card")).to_have_count(4)
    console.instance.ok("web", "--port", str(console.port))
    expect(badge(page)).to_have_text("Live")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_web_process_that_hangs_is_said_to_be_lost_and_comes_back_by_itself(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    pid = console.pid
    os.kill(pid, signal.SIGSTOP)  # its connections stay open, and nothing comes over them
    try:
        expect(badge(page)).to_have_text("Lost")
        expect(page.locator(".stale .card")).to_have_count(4)
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(badge(page)).to_have_text("Live")
    expect(page.locator(".stale .card")).to_have_count(0)


def test_without_an_engine_the_last_picture_stays_and_is_shown_as_old(console, open_page):
    page = open_page(provoked=(NO_ENGINE,))
    expect(page.locator(".card")).to_have_count(4)
    job = queued(console, "waits", "true", "-g", "4")
    expect(page.locator(".group", has_text="waits")).to_have_count(1)
    console.instance.kill_engine()
    expect(badge(page)).to_have_text("No engine")
    expect(page.locator(".banner")).to_contain_text("nothing new starts")
    expect(page.locator(".freecount")).to_have_text("before: 3 of 4 free")
    expect(page.locator(".stale .card")).to_have_count(4)
    expect(page.locator(".group")).to_contain_text("No engine is running")
    expect(page.get_by_role("button", name="New job")).to_be_disabled()
    expect(page).to_have_title("?/4 free · jostle")
    console.instance.up(console.instance.scenario(CARDS + BOB))
    expect(badge(page)).to_have_text("Live")
    expect(page.locator(".stale .card")).to_have_count(0)
    console.instance.ok("cancel", str(job))


def test_a_page_that_is_opened_when_the_driver_or_the_engine_is_gone_shows_the_cards_and_none_as_free(console, open_page):
    job = queued(console, "holds a card", "sleep 600")
    console.instance.reach(job, "running")
    page = open_page(provoked=(NO_ENGINE,))
    expect(page.locator(".card", has_text="holds a card")).to_have_count(1)
    console.instance.scenario(CARDS + "mismatch: [{from: 0}]")

    def unknown():
        expect(page.locator(".card")).to_have_count(4)
        expect(page.locator(".card.unknown")).to_have_count(4)
        expect(page.locator(".card", has_text="Unknown")).to_have_count(3)
        expect(page.locator(".card", has_text="holds a card")).to_contain_text("still running")
        expect(page.locator(".card", has_text=re.compile(r"last reading \d\d:\d\d:\d\d"))).to_have_count(4)
        expect(page.locator(".freecount")).to_have_text("free: unknown")
        expect(page).to_have_title("?/4 free · jostle")

    unknown()  # as it was open
    page.reload()
    expect(page.locator(".banner")).to_contain_text("The GPUs cannot be read")
    unknown()
    console.instance.kill_engine()
    expect(badge(page)).to_have_text("No engine")
    page.reload()
    expect(badge(page)).to_have_text("No engine")
    unknown()
    console.instance.up(console.instance.scenario(CARDS + BOB))
    expect(page.locator(".freecount")).to_contain_text("2 free")
    console.instance.ok("cancel", "--now", str(job))
    console.instance.end(job)


def test_what_is_remarkable_of_a_run_stands_in_its_row_before_what_it_prints(console, open_page):
    console.instance.scenario(CARDS.replace("use: 0.5", "use: 6GiB"))
    job = queued(console, "greedy", "echo printed; sleep 600", "-m", "2GiB")
    page = open_page()
    row = page.locator(".jobrow", has_text="greedy")
    expect(row).to_contain_text("6 GiB")
    expect(row.locator(".tail")).not_to_have_class(re.compile("mono"))
    page.goto(f"http://localhost:{console.port}/ui/state/{job}")
    expect(page.locator(".jobhead")).to_contain_text("6 GiB")
    console.instance.ok("cancel", "--now", str(job))
    console.instance.end(job)
    console.instance.scenario(CARDS + BOB)


def test_a_card_is_seen_to_change_its_owner(console, open_page):
    page = open_page()
    card = page.locator(".card").nth(0)
    expect(card).to_contain_text("bob")
    console.instance.scenario(CARDS)
    expect(card).to_contain_text("Free")
    expect(card).to_contain_text("before: bob")
    expect(page.locator(".freecount")).to_contain_text("4 free")
    console.instance.scenario(CARDS + BOB)
    expect(card).to_contain_text("bob")


def test_what_a_card_did_and_who_had_it_is_drawn_and_told_as_a_table_and_outlives_the_page(console, open_page):
    job = queued(console, "ran here", "exit 3")
    console.instance.end(job)
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.locator(".span.other").first).to_be_visible()
    expect(timeline.locator(".span.bad").first).to_be_attached()
    timeline.get_by_role("button", name="Table").click()
    failed = timeline.get_by_role("row").filter(has_text=f"#{job} ran here")
    expect(failed).to_contain_text("failed")
    failed.get_by_role("button").click()
    expect(page.get_by_role("region", name=f"#{job} log")).to_be_visible()
    page.keyboard.press("0")
    drawer = page.get_by_role("dialog")
    expect(drawer.locator(".history .load")).to_have_attribute("d", re.compile("M"))
    drawer.get_by_role("button", name="Table").click()
    expect(drawer.get_by_role("row").filter(has_text="bob").first).to_contain_text("still there")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="GPU 1")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
