"""The page for everybody: contrast and names as axe judges them, keyboard alone, 200 % zoom, no motion for who wants none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest

from tests.browser.conftest import badge
from tests.browser.scene import Scene
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect
axe = pytest.importorskip("axe_playwright_python", reason="no axe: pip install axe-playwright-python")

AXE = (resources.files(axe) / "axe.min.js").read_text("utf-8")
GRAVE = """async (rules) => (await axe.run(document, {resultTypes: ['violations'], ...rules})).violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${(node.any[0] || node.all[0] || node.none[0] || {}).message}`))"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("a"))
    made.fill()
    yield made
    made.close()


@pytest.fixture
def console(scene: Scene) -> Console:
    return scene.console


def at(page: Any, console: Console, path: str) -> None:
    """Another page without another login, also where the menu is closed."""
    page.goto(f"http://localhost:{console.port}/ui/{path}")
    expect(badge(page)).to_have_class("badge ")


def gpu(page: Any, scene: Scene) -> None:
    at(page, scene.console, "gpu")
    expect(page.locator(".card")).to_have_count(8)
    expect(page.locator(".group").first).to_be_visible()
    expect(page.locator(".loglines")).to_contain_text("epoch")


def drawer(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("2")
    expect(page.get_by_role("dialog")).to_contain_text("alice")


def new_job(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("n")
    page.fill("#new-command", "python3 train.py end")
    expect(page.locator(".dry h3")).to_be_visible()


def cancel(page: Any, scene: Scene) -> None:
    state(page, scene, scene.running)
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_be_visible()


def keys(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def timeline(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.locator(".timeline header button").last.click()
    expect(page.locator(".timeline table")).to_be_visible()


def tasks(page: Any, scene: Scene) -> None:
    at(page, scene.console, "command")
    page.locator(".config", has_text="command_gpu_1.txt").click()
    expect(page.locator(".cm-lintRange-error").first).to_be_visible()


def diff(page: Any, scene: Scene) -> None:
    at(page, scene.console, "command")
    page.locator(".proc textarea").first.fill("echo changed")
    expect(page.locator(".cm-content")).to_contain_text("echo changed")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("dialog")).to_be_visible()


def state(page: Any, scene: Scene, id: int | None = None) -> None:
    at(page, scene.console, f"state/{scene.failed if id is None else id}")
    expect(page.locator(".vrow").first).to_be_visible()
    expect(page.locator(".loglines")).to_contain_text("epoch")


def rules(page: Any, scene: Scene) -> None:
    at(page, scene.console, "rule")
    expect(page.locator(".rule").first).to_be_visible()


def settings(page: Any, scene: Scene) -> None:
    at(page, scene.console, "setting")
    expect(page.locator(".checks li").first).to_be_visible()


VIEWS: list[Callable[[Any, Scene], None]] = [
    gpu, drawer, new_job, cancel, keys, timeline, tasks, diff, state, rules, settings,
]  # fmt: skip


def in_language(page: Any, language: str) -> None:
    page.evaluate(f"localStorage.setItem('jostle.lang', '{language}')")


def grave(page: Any) -> list[str]:
    """What axe calls serious or critical, in the light and in the dark; the page follows the system."""
    page.evaluate(AXE)
    found = []
    for theme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # else a colour is caught on its way
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        found += [f"{theme}: {told}" for told in page.evaluate(GRAVE, rules)]
    return found


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_axe_finds_nothing_serious_on_any_page_or_dialog_dark_or_light(scene, open_page, language, width):
    page = open_page(width=width, height=780 if width > 700 else 844)
    expect(badge(page)).to_have_text("Live")
    in_language(page, language)
    found = {}
    for view in VIEWS:
        view(page, scene)
        assert page.evaluate("document.documentElement.lang").startswith(language)
        found[view.__name__] = grave(page)
    assert {name: told for name, told in found.items() if told} == {}


def test_axe_finds_nothing_serious_before_one_is_let_in(scene, open_page):
    page = open_page(log_in=False)
    page.fill("#token", "not the token of anybody")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-error")).not_to_be_empty()
    assert grave(page) == []
