"""How the page looks, whoever looks: contrast in both themes, sizes for a finger, half the width, no motion if none is wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import badge, queued
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect

SCENE = """
gpus: {count: 4, total: 24GiB, name: NVIDIA GeForce RTX 4090}
runs: {use: 0.5, utilization: 80}
strangers:
  - {user: alice, gpu: 0, used: 18GiB, utilization: 38}
  - {user: bob, gpu: 0, used: 1GiB}
faults: [{gpu: 3, from: 0, to: 99999, state: lost}]
"""
PAGES = {"GPU": "/gpu", "State": "/state", "Tasks": "/command", "Rules": "/rule", "Settings": "/setting"}

LOOK = Path(__file__).with_name("look.js").read_text()


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    root = tmp_path_factory.mktemp("l")
    workspace = root / "workspace"
    for name, text in (("command/command_gpu.txt", "echo a\n1,2\n"), ("config/gpu_manage.yaml", "gpu_left: 1\n")):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    made = Console(root / "c", gpus=None, workspace=workspace)
    made.instance.up(made.instance.scenario(SCENE))
    queued(made, "runs", "echo a; sleep 600", "-m", "8GiB")
    queued(made, "waits", "true", "-g", "4")
    queued(made, "backs off", "exit 3", "-g", "0", "--retry", "9")
    made.instance.end(queued(made, "failed", "exit 3", "-g", "0"))
    yield made
    made.close()


def go(page: Any, name: str, path: str) -> None:
    """Within the page, so that the login stays; when it has drawn what it shows."""
    page.evaluate("(path) => { history.pushState(null, '', '/ui' + path); dispatchEvent(new PopStateEvent('popstate')) }", path)
    expect(page.locator("main h1")).to_have_text(name)
    if path == "/command":
        expect(page.locator(".cm-content")).to_be_visible()
    if path == "/setting":
        expect(page.locator(".checks li").first).to_be_visible()


def seen(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ {LOOK} return {what}() }}")


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_every_text_is_readable_in_both_themes(console, open_page, theme):
    page = open_page()
    page.emulate_media(reduced_motion="reduce")  # colours would be between two themes for a moment
    expect(badge(page)).to_have_text("Live")
    page.get_by_role("radio", name=theme).click()
    for name, path in PAGES.items():
        go(page, name, path)
        assert seen(page, "faint") == [], path


def test_a_finger_hits_what_it_is_meant_to_and_nothing_moves_for_who_wants_no_motion(console, open_page):
    page = open_page(width=390, height=844)
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator(".jobrow:visible").first).to_be_visible()
    for name, path in PAGES.items():
        go(page, name, path)
        assert seen(page, "small") == [], path
    go(page, "GPU", "/gpu")
    assert page.evaluate("getComputedStyle(document.querySelector('.meter i')).transitionDuration") == "0s"
    expect(page.get_by_role("meter").first).to_have_attribute("aria-valuetext", "19.0 / 24.0 GiB")


def test_at_twice_the_size_nothing_is_lost_and_in_chinese_a_lost_card_is_told_in_chinese(console, open_page):
    page = open_page(width=720, height=390)
    expect(page.locator(".card")).to_have_count(4)
    for name, path in PAGES.items():
        go(page, name, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 720, path
        assert seen(page, "cut") == [], path
    go(page, "GPU", "/gpu")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation").get_by_role("radio", name="中文").click()
    expect(page.locator(".card").nth(3)).to_contain_text("驱动已失去它")
    assert "is lost" not in page.locator("main").inner_text()
    go(page, "规则", "/rule")
    expect(page.locator(".formula")).to_contain_text("未设 min_gpu 和 max_gpu")


@pytest.mark.parametrize("width", [1440, 390])
def test_a_press_on_the_bars_of_a_card_opens_it(console, open_page, width):
    page = open_page(width=width, height=844)
    expect(page.locator(".card")).to_have_count(4)
    for name in ("meter", "spark"):
        shown = page.locator(f".card:nth-child(4) .{name}:visible, .card:nth-child(4) .index").last
        shown.evaluate("(one) => one.scrollIntoView({block: 'center'})")
        box = shown.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.get_by_role("dialog", name="GPU 3")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_changes_nothing_says_so_in_both_languages(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    go(page, "Settings", "/setting")
    for name, other in (("target-yaml-path", "bind-address"), ("log-dir", "allow-lan")):
        of = {key: page.locator(".setting").filter(has=page.get_by_text(key, exact=True)) for key in (name, other)}
        expect(of[name]).to_contain_text("Has no effect")
        expect(of[name]).not_to_contain_text("command line")
        expect(of[other]).to_contain_text("Only on the command line")
    page.get_by_role("radio", name="中文").click()
    expect(page.get_by_text("不起作用：始终是这个位置。")).to_have_count(2)


@pytest.mark.parametrize("width", [390, 320])
def test_the_drawer_of_a_card_fits_a_phone(console, open_page, width):
    page = open_page(width=width, height=844)
    expect(page.locator(".jobrow:visible").first).to_be_visible()  # what comes above the cards has come, they move no more
    page.keyboard.press("0")
    drawer = page.locator(".drawer")
    expect(drawer.locator(".list", has_text="bob")).to_be_visible()
    assert drawer.evaluate("(one) => [one.scrollWidth - one.clientWidth, one.parentElement.scrollWidth]") == [0, width]
    edges = "(all) => all.map((one) => one.getBoundingClientRect()).map((at) => [at.left, at.right])"
    assert all(left >= 0 and right <= width for left, right in drawer.locator("button, h2").evaluate_all(edges))
    axis = drawer.locator("svg.history > text.axis")
    expect(axis.nth(2)).to_be_attached()
    labels = axis.evaluate_all(edges)
    assert len(labels) > 2 and all(one[1] + 4 < other[0] for one, other in itertools.pairwise(labels)), labels
    assert drawer.locator("h2").evaluate("(one) => one.offsetHeight") < 36
