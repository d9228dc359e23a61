"""The first screen at the size that it promises: all four questions are answered, and what has no room is told and not hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import views
from tests.browser.conftest import pages
from tests.browser.scene import Scene

expect = pytest.importorskip("playwright.sync_api").expect

BOX = ".lower .panel .scroll"
HIDDEN = """(box) => {
    const end = box.getBoundingClientRect().bottom + 2
    const rows = [...box.querySelectorAll('.group, .jobrow:not(p)')].filter((row) => row.getBoundingClientRect().bottom > end)
    const jobs = (row) => Number(row.querySelector('.count')?.textContent ?? 1)
    return [rows.reduce((sum, row) => sum + jobs(row), 0), rows.length, box.scrollHeight - box.clientHeight]
}"""
"""How many jobs are below what is seen, of how many rows, and how far it scrolls."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("f"))
    made.fill()
    yield made
    made.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_waits_below_the_first_screen_is_told_there_and_main_does_not_scroll(scene, browser, language):
    with pages(browser, scene.console) as make:
        page = make()
        expect(page.locator(".badge")).to_have_class(views.LIVE)
        views.in_language(page, language)
        views.gpu(page, scene)
        assert page.locator("main").evaluate("(main) => main.scrollHeight - main.clientHeight") <= 0
        for text in (r"3 free of 8|空闲 3 / 8", r"2 for you|您可用 2"):
            expect(page.locator(".freecount")).to_contain_text(re.compile(text))
        hint = page.locator(".below")
        expect(hint).to_be_visible()
        seen: list[str] = []

        def told() -> None:
            jobs, rows, far = page.locator(BOX).evaluate(HIDDEN)
            assert far > 0 and rows > 0
            numbers = [int(one) for one in re.findall(r"\d+", hint.locator(".nowrap").inner_text())]
            assert numbers == [jobs, rows]
            seen[:] = hint.locator(".clip").inner_text().split(", ")

        settled(told)
        assert "notebook" in seen, "it names them"
        hint.click()
        expect(hint).to_have_count(0)  # the end is seen
        expect(page.locator(".group").last).to_be_in_viewport()


def test_where_there_is_room_for_all_nothing_scrolls_and_nothing_more_is_promised(scene, browser):
    with pages(browser, scene.console) as make:
        page = make(height=1100)
        views.gpu(page, scene)
        expect(page.locator(".below")).to_have_count(0)
        jobs, rows, far = page.locator(BOX).evaluate(HIDDEN)
        assert (jobs, rows, far) == (0, 0, 0)
        expect(page.locator(".group", has_text="llama3-8b-sft").locator(".sentence b")).to_have_text("3 of 8 GPUs fit (4 needed)")
        expect(page.locator(".group", has_text="vit-l-ddp, notebook").locator(".count")).to_have_text("2")  # of two batches


def test_the_keys_that_are_listed_go_where_the_list_says(scene, browser):
    with pages(browser, scene.console) as make:
        page = make()
        views.keys(page, scene)
        lines = page.get_by_role("dialog").locator("dl > div")
        goto = lines.filter(has_text="Experiments")
        letters = re.findall(r"\w", goto.locator("dt").inner_text().partition("→")[2])
        names = goto.locator("dd").inner_text().split(" · ")
        assert len(letters) == len(names) == page.locator(".rail a").count()
        page.keyboard.press("Escape")
        for letter, name in zip(letters, names, strict=True):
            page.keyboard.press("g")
            page.keyboard.press(letter)
            expect(page.locator("h1")).to_have_text(name)
            expect(page.locator(".rail [aria-current=page]")).to_have_text(re.compile(name))


def settled(check: Any) -> None:
    """What two things that are drawn one after the other say once both are."""
    from tests.e2e.instance import until

    def holds() -> bool:
        try:
            check()
        except AssertionError:
            return False
        return True

    until(holds, "what is told is what is hidden")
