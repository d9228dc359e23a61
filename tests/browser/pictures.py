"""Takes the pictures of the console: what `make screenshots` does, or with names after it only those.

A real engine with simulated cards, a real web process, chromium. All go into docs/img/all/, which is not committed; those that
the documentation shows are written to docs/img/ under their own names, too, and all of them, small, on two sheets.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser import chromium, views  # noqa: E402
from tests.browser.scene import LOST, NO_DRIVER, SIXTEEN, WORLD, Scene  # noqa: E402

OUT = ROOT / "docs" / "img" / "all"
SHOWN = {
    "first-en-light-1440": "console-en", "first-zh-dark-1440": "console-zh", "first-en-light-390": "console-phone",
    "state-failed-en-dark": "console-failure", "drawer-en-light": "console-card",
}  # fmt: skip
PHONE = 390
HEIGHTS = {1440: 780, 1024: 768, PHONE: 844}
CAPTION, GAP, QUALITY = 16, 8, 70
PATIENCE_MS = 60_000
COLOURS = 255

View = Callable[[Any, Scene], None]


class Picture(NamedTuple):
    view: View
    language: str = "en"
    theme: str = "light"
    width: int = 1440
    stage: str = "lively"  # what the host is like then
    open: str = "own"  # own | read-only | none: with which token


def first(page: Any, scene: Scene) -> None:
    views.gpu(page, scene)


def first_of_a_reader(page: Any, scene: Scene) -> None:
    views.at(page, scene.console, "gpu")
    views.expect(page.locator(".card")).to_have_count(8)
    views.expect(page.locator(".loglines")).to_contain_text("no output")


def filled(page: Any) -> None:
    """What the lower half shows has come."""
    views.expect(page.locator(".group").first).to_be_visible()
    views.expect(page.locator(".loglines")).to_contain_text("epoch")
    views.expect(page.locator(".timeline .span").first).to_be_attached()


def sixteen(page: Any, scene: Scene) -> None:
    views.at(page, scene.console, "gpu")
    views.expect(page.locator(".cell")).to_have_count(16)
    filled(page)


def lost_card(page: Any, scene: Scene) -> None:
    first(page, scene)
    views.expect(page.locator(".card.unknown")).to_have_count(1)


def driver_lost(page: Any, scene: Scene) -> None:
    views.at(page, scene.console, "gpu")
    views.expect(page.locator(".banner.amber")).to_be_visible()
    views.expect(page.locator(".jobrow").first).to_be_visible()


def engine_lost(page: Any, scene: Scene) -> None:
    """Seen as who had the page open sees it: the last picture stays."""
    first(page, scene)
    scene.instance.kill_engine()
    views.expect(page.locator(".banner")).to_be_visible()
    views.expect(page.locator(".stale .card")).to_have_count(8)


def empty(page: Any, scene: Scene) -> None:
    views.at(page, scene.console, "gpu")
    views.expect(page.locator(".empty .cmd")).to_have_count(3)


def login(page: Any, scene: Scene) -> None:
    views.expect(page.locator("#token")).to_be_visible()


def refused(page: Any, scene: Scene) -> None:
    page.fill("#token", "not the token of anybody")
    page.locator("form .btn.primary").click()
    views.expect(page.locator("#login-error")).not_to_be_empty()


def menu(page: Any, scene: Scene) -> None:
    first(page, scene)
    page.locator(".burger").click()
    views.expect(page.get_by_role("navigation")).to_be_visible()


def many(page: Any, scene: Scene) -> None:
    views.at(page, scene.console, "state")
    views.expect(page.locator(".listhead")).to_contain_text(re.compile(r"10\d{3} "))


def first_of_many(page: Any, scene: Scene) -> None:
    sixteen(page, scene)
    views.expect(page.locator(".jobs, .lower").first).to_contain_text(re.compile(r"1\d{4}|9\d{3}"))


def changed_rule(page: Any, scene: Scene) -> None:
    views.rules(page, scene)
    page.locator(".rule", has_text="max_gpu").locator(".stepper button").last.click()
    views.expect(page.locator(".effect .diff .add")).to_be_visible()


def running_log(page: Any, scene: Scene) -> None:
    views.state(page, scene, scene.running)


def new_job_waits(page: Any, scene: Scene) -> None:
    views.new_job(page, scene)
    page.get_by_role("textbox", name="GPU").fill("4")
    views.expect(page.locator(".dry.waits h3")).to_be_visible()


PICTURES: dict[str, Picture] = {
    "empty-en-light": Picture(empty, stage="empty"),
    "empty-zh-dark-390": Picture(empty, "zh", "dark", 390, "empty"),
    **{f"first-{language}-{theme}-{width}": Picture(first, language, theme, width)
       for width in HEIGHTS for language in ("zh", "en") for theme in ("dark", "light")},
    "drawer-zh-dark": Picture(views.drawer, "zh", "dark"),
    "drawer-en-light": Picture(views.drawer),
    "drawer-en-dark-390": Picture(views.drawer, "en", "dark", 390),
    "timeline-table-en-light": Picture(views.timeline),
    "new-job-en-light": Picture(views.new_job),
    "new-job-waits-zh-dark": Picture(new_job_waits, "zh", "dark"),
    "new-sweep-en-dark": Picture(views.new_sweep, "en", "dark"),
    "new-job-zh-dark-390": Picture(views.new_job, "zh", "dark", 390),
    "cancel-zh-dark": Picture(views.cancel, "zh", "dark"),
    "cancel-en-light-390": Picture(views.cancel, width=390),
    "keys-en-dark": Picture(views.keys, "en", "dark"),
    "tasks-en-light": Picture(views.tasks),
    "tasks-zh-dark-1024": Picture(views.tasks, "zh", "dark", 1024),
    "tasks-en-light-390": Picture(views.tasks, width=390),
    "diff-en-dark": Picture(views.diff, "en", "dark"),
    "state-failed-en-dark": Picture(views.state, "en", "dark"),
    "state-failed-zh-light-1024": Picture(views.state, "zh", "light", 1024),
    "state-failed-en-light-390": Picture(views.state, width=390),
    "state-running-zh-dark": Picture(running_log, "zh", "dark"),
    "experiments-en-dark": Picture(views.experiments, "en", "dark"),
    "experiments-zh-light-390": Picture(views.experiments, "zh", "light", 390),
    "job-file-en-light": Picture(views.job_files),
    "hold-en-light": Picture(views.hold, stage="held"),
    "hold-zh-dark-390": Picture(views.hold, "zh", "dark", 390, "held"),
    "rules-zh-light": Picture(changed_rule, "zh"),
    "rules-en-dark-390": Picture(changed_rule, "en", "dark", 390),
    "settings-en-light": Picture(views.settings),
    "settings-zh-dark-390": Picture(views.settings, "zh", "dark", 390),
    "menu-en-light-390": Picture(menu, width=390),
    "login-zh-dark": Picture(login, "zh", "dark", open="none"),
    "login-refused-en-light-390": Picture(refused, width=390, open="none"),
    "read-only-en-light": Picture(first_of_a_reader, open="read-only"),
    "long-names-en-light": Picture(first, stage="long names"),
    "long-names-zh-dark-390": Picture(first, "zh", "dark", 390, "long names"),
    "lost-card-en-light": Picture(lost_card, stage="lost card"),
    "driver-lost-en-light": Picture(driver_lost, stage="driver lost"),
    "engine-lost-zh-dark": Picture(engine_lost, "zh", "dark", stage="engine lost"),
    "sixteen-en-dark": Picture(sixteen, "en", "dark", stage="sixteen"),
    "sixteen-zh-light-1024": Picture(sixteen, "zh", "light", 1024, "sixteen"),
    "sixteen-en-light-390": Picture(sixteen, width=390, stage="sixteen"),
    "many-en-light": Picture(many, stage="many"),
    "many-first-zh-dark": Picture(first_of_many, "zh", "dark", stage="many"),
}  # fmt: skip


LONG = "vit-large-patch16-384 · dataset=imagenet21k-augreg · lr=3e-4 · warmup=10000 · seed=20260717 · fold=4/5"
LONG_ZH = "一个名字很长的实验：大规模视觉预训练、学习率扫描与随机种子的组合，第十七次重复，数据集为多域混合"


def long_names(scene: Scene) -> None:
    scene.instance.reach(scene.add(LONG, "run", card=4), "running")
    scene.add(LONG_ZH, "run", gpus=[6, 6])


def hold(scene: Scene) -> None:
    """Cards under a name, with a program on them; beside those that wait."""
    scene.instance.ok("limits", "set", "max_total_gpus=5")
    scene.instance.ok("hold", str(scene.wide))  # by now it may have waited for so long that cards are kept for it
    scene.instance.ok("alloc", "evening", "-g", "1", "--for", "4h", "--now")
    scene.instance.ok("unhold", str(scene.wide))
    scene.instance.ok("start", "evening", "--", "python3", "train.py", "run")


def let_go(scene: Scene) -> None:
    scene.instance.ok("release", "evening", "notebook")
    scene.instance.ok("limits", "clear", "max_total_gpus")
    long_names(scene)


STAGES: dict[str, Callable[[Scene], object]] = {
    "empty": lambda scene: None,
    "lively": Scene.fill,
    "held": hold,
    "long names": let_go,
    "lost card": lambda scene: scene.instance.scenario(WORLD + LOST),
    "driver lost": lambda scene: scene.instance.scenario(WORLD + NO_DRIVER),
    "engine lost": lambda scene: scene.instance.scenario(WORLD),
    "sixteen": lambda scene: scene.instance.up(scene.instance.scenario(SIXTEEN)),
    "many": lambda scene: scene.many(10_000),
}  # in this order, one after the other on the same host


@contextlib.contextmanager
def opened(browser: Any, scene: Scene, picture: Picture) -> Iterator[Any]:
    context = browser.new_context(
        viewport={"width": picture.width, "height": HEIGHTS[picture.width]}, locale="en-US", color_scheme=picture.theme,
        reduced_motion="reduce",
    )  # fmt: skip
    context.add_init_script(f"localStorage.setItem('jostle.lang', '{picture.language}')")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    code = f"#code={scene.console.new_code()}" if picture.open == "own" else ""
    page.goto(f"http://localhost:{scene.console.port}/ui/{code}")
    if picture.open == "read-only":
        page.fill("#token", scene.instance.ok("web", "--token", "--read-only").strip())
        page.locator("form .btn.primary").click()
    if picture.open != "none":
        views.expect(page.locator(".badge")).to_have_class(views.LIVE)
    yield page
    context.close()


def keep(page: Any, path: Path) -> None:
    """As few bytes as show the same: a palette. Its colours are the picture's own while they are few enough."""
    from PIL import Image

    page.screenshot(path=path)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def sheet(path: Path, names: list[str], width: int, columns: int) -> None:
    """All of them on one picture, small, each above its name."""
    from PIL import Image, ImageDraw

    taken = []
    for name in names:
        with Image.open(OUT / f"{name}.png") as whole:
            size = (width, whole.height * width // whole.width)
            taken.append((name, whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)))
    high = max(small.height for _, small in taken) + CAPTION
    made = Image.new("RGB", (columns * (width + GAP), -(-len(taken) // columns) * (high + GAP)), "#808890")
    pen = ImageDraw.Draw(made)
    for at, (name, small) in enumerate(taken):
        left, top = at % columns * (width + GAP), at // columns * (high + GAP)
        made.paste(small, (left, top + CAPTION))
        pen.text((left + 4, top + 2), name, fill="#ffffff")
    made.save(path, quality=QUALITY, optimize=True)


def main(names: list[str]) -> int:
    from playwright.sync_api import expect, sync_playwright

    unknown = set(names) - set(PICTURES)
    if unknown:
        print(f"no picture is called {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    found = chromium.install()
    if found is None:
        print(f"no chromium: {chromium.INSTALL}", file=sys.stderr)
        return 1
    expect.set_options(timeout=PATIENCE_MS)
    OUT.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="jostle-"))
    scene = Scene(root / "host")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=chromium.FLAGS)
            for stage, prepare in STAGES.items():
                prepare(scene)
                for name, picture in PICTURES.items():
                    if picture.stage == stage and (not names or name in names):
                        with opened(browser, scene, picture) as page:
                            picture.view(page, scene)
                            views.settled(page)
                            keep(page, OUT / f"{name}.png")
                        print(name, flush=True)
            browser.close()
    finally:
        scene.close()
        shutil.rmtree(root, ignore_errors=True)
    for name, shown in SHOWN.items():
        if not names or name in names:
            shutil.copyfile(OUT / f"{name}.png", OUT.parent / f"{shown}.png")
    if not names:
        sheet(OUT.parent / "screens-wide.jpg", [name for name in PICTURES if PICTURES[name].width > PHONE], 520, 4)
        sheet(OUT.parent / "screens-phone.jpg", [name for name in PICTURES if PICTURES[name].width == PHONE], 260, 6)
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
