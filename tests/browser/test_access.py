"""The page for everybody: contrast and names as axe judges them, keyboard alone, 200 % zoom, no motion for who wants none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest

from tests.browser import views
from tests.browser.conftest import NO_ENGINE, badge, pages
from tests.browser.scene import Scene
from tests.browser.views import in_language
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect
axe = pytest.importorskip("axe_playwright_python", reason="no axe: pip install axe-playwright-python")

AXE = (resources.files(axe) / "axe.min.js").read_text("utf-8")
GRAVE = """async (rules) => (await axe.run(document, {resultTypes: ['violations'], ...rules})).violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`))"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("a"))
    try:
        made.fill()
        yield made
    finally:
        made.close()


@pytest.fixture
def console(scene: Scene) -> Console:
    return scene.console


VIEWS = [
    views.gpu, views.drawer, views.new_job, views.cancel, views.keys, views.timeline, views.tasks, views.diff, views.state,
    views.experiments, views.job_files, views.hold, views.rules, views.settings,
]  # fmt: skip


WIDTHS = {1440: 780, 390: 844}  # and the height of each
HALF = {"width": 720, "height": 450}  # what 200 % leaves of a screen of 1440 by 900


class Walk:
    """What is wrong on which page or dialog. Each is opened once in a language and looked at in all ways: to open it is what
    takes long. In Chinese they are opened narrow and then widened, so that the way to each is walked in both widths."""

    def __init__(self, page: Any, scene: Scene, language: str) -> None:
        self.grave: dict[int, dict[str, list[str]]] = {width: {} for width in WIDTHS}
        self.cut_off: dict[str, list[str]] = {}
        self.unreached: dict[str, list[str]] = {}
        widths = list(WIDTHS.items()) if language == "en" else list(WIDTHS.items())[::-1]
        for view in VIEWS:
            page.set_viewport_size({"width": widths[0][0], "height": widths[0][1]})
            view(page, scene)
            assert page.evaluate("document.documentElement.lang").startswith(language)
            for width, height in widths:
                page.set_viewport_size({"width": width, "height": height})
                self._note(self.grave[width], view, grave(page))
            page.set_viewport_size(HALF)
            self._note(self.cut_off, view, [*page.evaluate(CUT_OFF), *(f"covered: {told}" for told in page.evaluate(COVERED))])
            page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
            self._note(self.unreached, view, unreached(page))

    @staticmethod
    def _note(where: dict[str, list[str]], view: Callable[..., None], found: list[str]) -> None:
        if found:
            where[view.__name__] = found


@pytest.fixture(scope="module", params=["en", "zh"])
def walked(request: pytest.FixtureRequest, browser: Any, scene: Scene) -> Iterator[Walk]:
    with pages(browser, scene.console) as open_page:
        page = open_page()
        expect(badge(page)).to_have_text("Live")
        in_language(page, request.param)
        yield Walk(page, scene, request.param)


def grave(page: Any) -> list[str]:
    """What axe calls serious or critical, in the light and in the dark; the page follows the system."""
    page.evaluate(AXE)
    found = []
    for theme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # else a colour is caught on its way
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        found += [f"{theme}: {told}" for told in page.evaluate(GRAVE, rules)]
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious_on_any_page_or_dialog_dark_or_light(walked, width):
    assert walked.grave[width] == {}


def test_axe_finds_nothing_serious_before_one_is_let_in(scene, open_page):
    page = open_page(log_in=False)
    page.fill("#token", "not the token of anybody")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-error")).not_to_be_empty()
    assert grave(page) == []


def test_axe_finds_nothing_serious_where_what_is_shown_is_old(scene, open_page):
    page = open_page(provoked=(NO_ENGINE,))
    views.gpu(page, scene)
    scene.instance.kill_engine()
    expect(page.locator(".stale .card")).to_have_count(8)
    assert grave(page) == []
    scene.instance.up(f"sim:{scene.instance.root / 'scenario.yaml'}")
    expect(page.locator(".stale .card")).to_have_count(0)


CUT_OFF = """() => {
  const wide = [document.documentElement, document.querySelector('main'), ...document.querySelectorAll('dialog[open] > div')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `scrolls sideways: ${one.tagName} ${one.className}`)
  const shown = [...document.querySelectorAll('button, .pill, .badge, .count, kbd, th, h1:not(.sr), h2, label')].filter((one) =>
    one.checkVisibility({visibilityProperty: true}) && one.clientWidth && !one.closest('.clip, .sr'))
  const cut = shown.filter((one) => one.scrollWidth > one.clientWidth + 1 && !one.querySelector('.clip'))
    .map((one) => `cut off: ${one.tagName} ${one.className} ${one.innerText}`)
  return [...wide, ...cut]
}"""
COVERED = """() => {
  const top = document.querySelector('dialog[open]') ?? document
  return [...top.querySelectorAll('button, a[href], input, select, textarea')].filter((one) => {
    if (one.disabled || !one.checkVisibility({visibilityProperty: true}) || one.matches('.skip, .hit')) return false
    one.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})
    const {left, top, width, height} = one.getBoundingClientRect()
    if (width < 12) return false  // the search of a narrow page is folded into its icon until it has the focus
    const hit = document.elementFromPoint(left + width / 2, top + height / 2)
    return hit && !one.contains(hit) && !hit.contains(one) && !one.closest('label')?.contains(hit)
  }).map((one) => `${one.tagName} ${one.className} ${one.ariaLabel ?? one.innerText}`)
}"""


def test_at_200_percent_nothing_is_cut_off_or_covered_and_nothing_scrolls_sideways(walked):
    assert walked.cut_off == {}


MOVING = """() => [...document.querySelectorAll('*')].filter((one) => {
  const style = getComputedStyle(one)
  return style.transitionDuration.split(', ').some((time) => time !== '0s') || style.animationName !== 'none'
}).map((one) => `${one.tagName} ${one.className}`)"""


def test_who_wants_no_motion_gets_none(scene, open_page):
    page = open_page()
    views.gpu(page, scene)
    assert page.evaluate(MOVING), "nothing moves anyway: this would show nothing"
    page.emulate_media(reduced_motion="reduce")
    for view in (views.gpu, views.drawer, views.rules):
        view(page, scene)
        assert page.evaluate(MOVING) == []


NAMED = "(one) => [one.tagName, one.type, one.id, one.ariaLabel || one.innerText || one.placeholder || one.title].join(' ')"
TO_REACH = f"""() => {{
  const top = document.querySelector('dialog[open]') ?? document
  const name = {NAMED}
  const otherwise = '.vrow *, .tick, [role=radio][aria-checked=false], [role=tab][aria-selected=false]'  // by j k, arrows
  return [...top.querySelectorAll('button, a[href], input, select, textarea, summary')]
    .filter((one) => !one.disabled && one.checkVisibility({{visibilityProperty: true}}) && !one.matches(otherwise)).map(name)
}}"""


def unreached(page: Any) -> list[str]:
    wanted = set(page.evaluate(TO_REACH))
    assert wanted
    reached: set[str] = set()
    for _ in range(250):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(f"({NAMED})(document.activeElement)"))
        if wanted <= reached:
            break
    return sorted(wanted - reached)


def test_everything_that_can_be_clicked_is_reached_by_keys(walked):
    assert walked.unreached == {}


def test_a_job_is_made_followed_and_cancelled_without_a_mouse(scene, open_page):
    page = open_page()
    views.gpu(page, scene)
    page.keyboard.press("n")
    expect(page.locator("#new-command")).to_be_focused()
    page.keyboard.type("echo typed; sleep 600")
    expect(page.locator(".dry h3")).to_contain_text("Starts now")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".loglines")).to_contain_text("typed")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_contain_text("running")
    button = page.get_by_role("button", name="Cancel 1 job")
    for _ in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("(one) => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".jobrow", has_text="echo typed")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.locator(".vrow").first).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("dialog")).to_contain_text("alice")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
