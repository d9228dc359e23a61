"""Ways to each page and dialog of the console, from anywhere; each ends when what it shows is there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.scene import Scene
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect
LIVE = "badge "


def at(page: Any, console: Console, path: str) -> None:
    """Another page without another login, also where the menu is closed."""
    expect(page.locator(".badge")).to_be_visible()  # else the login is still under way
    page.goto(f"http://localhost:{console.port}/ui/{path}")
    expect(page.locator(".badge")).to_have_class(LIVE)


def gpu(page: Any, scene: Scene) -> None:
    at(page, scene.console, "gpu")
    expect(page.locator(".card")).to_have_count(8)
    expect(page.locator(".group").first).to_be_visible()
    expect(page.locator(".loglines")).to_contain_text("epoch")
    expect(page.locator(".timeline .span").first).to_be_attached()


def drawer(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("2")
    expect(page.get_by_role("dialog")).to_contain_text("alice")


def new_job(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("n")
    page.fill("#new-command", "python3 train.py end")
    expect(page.locator(".dry h3")).to_be_visible()


def new_sweep(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("n")
    page.get_by_role("radio").filter(has_text=re.compile("Sweep|扫描")).click()
    page.fill("#sweep-command", "python3 train.py {lr} {seed}")
    page.fill("#sweep-axes", "lr: 1e-4, 3e-4\nseed: 1, 2, 3")
    page.fill("#sweep-name", "vit-b16")
    expect(page.locator(".firstjobs li")).to_have_count(6)


def new_file(page: Any, scene: Scene) -> None:
    gpu(page, scene)
    page.keyboard.press("n")
    page.get_by_role("radio").filter(has_text=re.compile("Job file|任务文件")).click()
    expect(page.locator("#new-file")).to_be_visible()
    expect(page.locator(".dry h3")).to_be_visible()


def change(page: Any, scene: Scene) -> None:
    """Of a job that waits."""
    at(page, scene.console, f"state/{scene.wide}")
    page.locator(".jobhead").get_by_role("button", name=re.compile("Change…|修改…")).click()
    expect(page.locator("#change-priority")).to_be_visible()


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


def bind(page: Any, scene: Scene) -> None:
    at(page, scene.console, "command")
    page.locator(".proc .link").first.click()
    expect(page.locator("#bind-path")).to_be_visible()


def delete(page: Any, scene: Scene) -> None:
    tasks(page, scene)
    page.locator(".btn.warn", has_text=re.compile("Delete config|删除配置")).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def stop(page: Any, scene: Scene) -> None:
    """Of the scheduler of the last config, which is started if need be."""
    if not scene.console.get("/api/scheduler/running")["schedulers"]:
        scene.console.post("/api/v1/compete", {"config_index": 2})
    at(page, scene.console, "state")
    page.locator(".sched .btn").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


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


def experiments(page: Any, scene: Scene) -> None:
    at(page, scene.console, "experiment")
    expect(page.locator(".experiments")).to_contain_text("1e-4")
    expect(page.locator(".resultside .results")).to_be_visible()


def job_files(page: Any, scene: Scene) -> None:
    at(page, scene.console, "experiment/file")
    page.locator(".config", has_text="sweep.yaml").click()
    expect(page.locator(".cm-content")).to_contain_text("matrix")


def hold(page: Any, scene: Scene) -> None:
    at(page, scene.console, "hold")
    expect(page.locator(".holding").first).to_be_visible()
    expect(page.locator(".limits tbody tr")).to_have_count(4)


def new_allocation(page: Any, scene: Scene) -> None:
    at(page, scene.console, "hold")
    page.fill("#alloc-name", "evening")
    expect(page.locator(".newalloc .dry h3")).to_be_visible()


def _of_the_first(page: Any, scene: Scene, which: int) -> None:
    hold(page, scene)
    page.locator(".holding").first.locator("> .row button:not(.icon)").nth(which).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def resize(page: Any, scene: Scene) -> None:
    _of_the_first(page, scene, 1)
    expect(page.locator("#resize-gpus")).to_be_visible()


def release(page: Any, scene: Scene) -> None:
    _of_the_first(page, scene, 2)


def host(page: Any, scene: Scene) -> None:
    at(page, scene.console, "rule")
    page.locator(".hostname").click()
    expect(page.locator("section.host .facts")).to_be_visible()


def health(page: Any, scene: Scene) -> None:
    at(page, scene.console, "rule")
    page.locator(".health > button").click()
    expect(page.locator("section.host .checks li").first).to_be_visible()


def rules(page: Any, scene: Scene) -> None:
    at(page, scene.console, "rule")
    expect(page.locator(".rule").first).to_be_visible()


def settings(page: Any, scene: Scene) -> None:
    at(page, scene.console, "setting")
    expect(page.locator(".checks li").first).to_be_visible()


def settled(page: Any) -> None:
    """What comes a while after the page: its health, and what is still being asked for."""
    if page.locator(".top").count():
        expect(page.locator(".health > button")).to_have_count(1)
    expect(page.get_by_text("…", exact=True)).to_have_count(0)


def in_language(page: Any, language: str) -> None:
    """From now on, whatever is open: its switch is pressed as only a program can, where a dialog lies over it."""
    page.locator(".seg [role=radio]", has_text=re.compile("^(中|EN)$")).nth(("zh", "en").index(language)).dispatch_event("click")
    expect(page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}"))
