"""The page for everybody: contrast and names as axe judges them, keyboard alone, 200 % zoom, no motion for who wants none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest

from tests.browser import views
from tests.browser.conftest import NO_ENGINE, pages
from tests.browser.scene import Scene
from tests.browser.test_look import seen
from tests.browser.views import in_language
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect
axe = pytest.importorskip("axe_playwright_python", reason="no axe: pip install axe-playwright-python")

AXE = (resources.files(axe) / "axe.min.js").read_text("utf-8")
CONTRAST = {"runOnly": ["color-contrast"]}  # nine tenths of its work
REST = {"rules": {"color-contrast": {"enabled": False}}}
GRAVE = """async (rules) => {
  const top = document.querySelector('dialog[open], section.host') ?? document  // what lies below it is a view of its own
  return (await axe.run(top, {resultTypes: ['violations'], ...rules})).violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`))
}"""


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


VIEWS = {
    "pages": [
        views.gpu, views.timeline, views.host, views.health, views.tasks, views.state, views.experiments, views.job_files,
        views.hold, views.new_allocation, views.rules, views.settings,
    ],
    "dialogs": [
        views.drawer, views.new_job, views.new_sweep, views.new_file, views.keys, views.bind, views.delete, views.diff,
        views.cancel, views.change, views.stop, views.resize, views.release,
    ],
}  # fmt: skip


WIDTHS = {1440: 780, 1024: 768, 390: 844}  # and the height of each
THEMES, LANGUAGES = ("light", "dark"), ("en", "zh")
LOOKS: tuple[tuple[tuple[int, str, str, Any], ...], ...] = (
    ((1440, "light", "en", {}), (1024, "dark", "zh", None), (390, "light", "zh", REST)),
    ((1440, "light", "zh", None), (1024, "dark", "en", {}), (390, "dark", "en", REST)),
)
"""How a view is looked at, in turn with the next: in each width, theme and language, and not in all twelve ways. Its colours axe
judges in one theme; in the other look.js does, alone (None), which takes a hundredth of the time."""
HALF = {"width": 720, "height": 450}  # what 200 % leaves of a screen of 1440 by 900


class Walk:
    """What is wrong on which page or dialog. Each is opened once, then seen in several ways: to open it takes long."""

    def __init__(self, page: Any, scene: Scene, which: str) -> None:
        self.which = which
        self.grave: dict[str, list[str]] = {}
        self.cut_off: dict[str, list[str]] = {}
        self.unreached: dict[str, list[str]] = {}
        self.moving: dict[str, list[str]] = {}
        self.seen: set[tuple[str, int | str]] = set()
        for view, looks in zip(VIEWS[which], itertools.cycle(LOOKS)):
            page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
            view(page, scene)
            self._note(self.moving, view, page.evaluate(MOVING))
            for width, theme, language, rules in looks:
                page.set_viewport_size({"width": width, "height": WIDTHS[width]})
                in_language(page, language)
                found = [*grave(page, theme, rules), *(f"{theme}: faint: {told}" for told in seen(page, "faint"))]
                self._note(self.grave, view, [f"{width} {language} {told}" for told in found])
                self.seen |= {(view.__name__, one) for one in (width, theme, language)}
            page.set_viewport_size(HALF)
            found = [f"covered: {told}" for told in page.evaluate(COVERED)]
            for language in LANGUAGES:
                in_language(page, language)
                found += page.evaluate(CUT_OFF)
            self._note(self.cut_off, view, found)
            page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
            self._note(self.unreached, view, unreached(page))
            in_language(page, LANGUAGES[0])

    @staticmethod
    def _note(where: dict[str, list[str]], view: Callable[..., None], found: list[str]) -> None:
        if found:
            where.setdefault(view.__name__, []).extend(found)


@pytest.fixture(scope="module", params=VIEWS)
def walked(request: pytest.FixtureRequest, browser: Any, scene: Scene) -> Iterator[Walk]:
    with pages(browser, scene.console) as open_page:
        page = open_page()
        views.gpu(page, scene)
        assert page.evaluate(MOVING), "nothing moves anyway: to look for it would show nothing"
        page.emulate_media(reduced_motion="reduce")  # else a colour is caught on its way
        yield Walk(page, scene, request.param)


def grave(page: Any, theme: str, rules: Any) -> list[str]:
    """What axe calls serious or critical in a theme; the page follows the system."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    if rules is None:
        return []
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    return [f"{theme}: {told}" for told in page.evaluate(GRAVE, rules)]


def test_axe_finds_nothing_serious_on_any_page_or_dialog_dark_or_light(walked):
    assert walked.grave == {}
    each = [view.__name__ for view in VIEWS[walked.which]]
    assert walked.seen == {(view, one) for view in each for one in (*WIDTHS, *THEMES, *LANGUAGES)}


def test_axe_finds_nothing_serious_before_one_is_let_in(scene, open_page):
    page = open_page(log_in=False)
    page.fill("#token", "not the token of anybody")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-error")).not_to_be_empty()
    assert grave(page, "light", {}) + grave(page, "dark", CONTRAST) == []


def test_axe_finds_nothing_serious_where_what_is_shown_is_old(scene, open_page):
    page = open_page(provoked=(NO_ENGINE,))
    views.gpu(page, scene)
    scene.instance.kill_engine()
    expect(page.locator(".stale .card")).to_have_count(8)
    assert grave(page, "light", {}) + grave(page, "dark", CONTRAST) == []
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
  const top = document.querySelector('dialog[open], section.host') ?? document
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


def test_who_wants_no_motion_gets_none(walked):
    assert walked.moving == {}


NAMED = "(one) => [one.tagName, one.type, one.id, one.ariaLabel || one.innerText || one.placeholder || one.title].join(' ')"
TO_REACH = f"""() => {{
  const top = document.querySelector('dialog[open]') ?? document
  const name = {NAMED}
  const otherwise = '.vrow *, .tick, [role=radio][aria-checked=false], [role=tab][aria-selected=false]'  // by j k, arrows
  return [...top.querySelectorAll('button, a[href], input, select, textarea, summary')]
    .filter((one) => !one.disabled && one.checkVisibility({{visibilityProperty: true}}) && !one.matches(otherwise)).map(name)
}}"""


LISTEN = f"""() => {{
  const name = {NAMED}
  window.reached = new Set([name(document.activeElement)])
  window.listens ??= document.addEventListener('focusin', ({{target}}) => window.reached.add(name(target))) ?? true
}}"""
AT_ONCE, MOST = 20, 260  # presses of the key between two looks, and in all


def unreached(page: Any) -> list[str]:
    wanted = set(page.evaluate(TO_REACH))
    assert wanted
    page.evaluate(LISTEN)
    for _ in range(0, MOST, AT_ONCE):
        for _ in range(AT_ONCE):
            page.keyboard.press("Tab")
        if wanted <= set(page.evaluate("[...reached]")):
            return []
    return sorted(wanted - set(page.evaluate("[...reached]")))


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
