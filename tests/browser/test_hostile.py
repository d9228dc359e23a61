"""Whatever people, jobs, neighbours, drivers and files call themselves is text on every page (S22, S23, S56)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import views
from tests.browser.conftest import badge
from tests.e2e.instance import until
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect

TAG = "<img class=planted src=x onerror=window.owned=1>"
BOLD = "<b class=planted>b</b>"
SCENE = f"""
gpus: {{count: 3, total: 24GiB, name: "{BOLD} card"}}
runs: {{use: 0.5}}
strangers:
  - {{user: "{BOLD}", gpu: 0, used: 8GiB, utilization: 50, name: "{TAG} stranger"}}
  - {{user: eve, gpu: 0, used: 1GiB, name: "\\e[31mred \\u202etxt.exe"}}
"""
FAILS = f'printf "Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in f\\nValueError: {BOLD} broke\\n"; exit 3'
SWEEP = f"""
name: "{BOLD} sweep"
command: 'echo "loss{BOLD} 0.{{seed}}"; echo Test Accuracy: 8{{seed}}; echo {{word}}'
matrix: {{word: ["{TAG}"], seed: [1, 2]}}
job: {{gpus: 0, name: "{BOLD} {{seed}}"}}
"""
TASKS = f"# {TAG}\necho '{TAG}'\n1,2\n"
RED, TURNED, LONG = "\x1b[31mred", "\u202etxt.exe", 1_000_000
SEEN = "‹U+001B›[31mred ‹U+202E›txt.exe"  # by their number, so they turn and colour nothing
CONTROLS = f"# {TURNED}\necho '{RED} {TURNED}'\n1,2\n\necho {'m' * LONG}\n1,2\n\necho the end\n1,2\n"
NOTIFY = "notify: {channels: {me: {kind: webhook, url: {env: NOTHING}, events: [failed]}}}\n"
RULES = f"min_gpu: 1\nmax_gpu: '{BOLD} value'\n"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    root = tmp_path_factory.mktemp("h")
    workspace = root / f"{BOLD.replace('/', '')} workspace"
    wrong = f"{BOLD} wrong\n-1\n"
    texts = {
        "command/command_gpu.txt": TASKS, "command/command_gpu_1.txt": wrong, "command/command_gpu_2.txt": CONTROLS,
        "config/gpu_manage.yaml": RULES,
    }  # fmt: skip
    for name, text in texts.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    made = Console(root / "c", gpus=None, workspace=workspace)
    jostle = made.instance
    jostle.up(jostle.scenario(SCENE))
    named = ("-n", f"{BOLD} job", "--queue", f"{BOLD} queue", "--tag", f"{BOLD} tag")
    made.fails = jostle.add("-g", "0", *named, "--", FAILS)  # type: ignore[attr-defined]
    jostle.add("-m", "1GiB", "-n", f"{TAG} running", "--", "sleep 600")
    jostle.ok("alloc", f"{BOLD} held", "-g", "1", "-m", "2GiB")
    jostle.ok("start", f"{BOLD} held", "-n", f"{TAG} inside", "--", "sleep 600")
    jostle.add("-m", "20GiB", "-g", "3", "-n", f"{TAG} waits", "--", "true")
    (jostle.home / "config.yaml").write_text(NOTIFY)
    (jostle.work / "jobs").mkdir()
    sweep = jostle.work / "jobs" / f"{BOLD.replace('/', '')}.yaml"
    sweep.write_text(SWEEP)
    told = json.loads(jostle.ok("run", "--detach", "--json", str(sweep)))
    until(lambda: set(jostle.states([*told["ids"], made.fails]).values()) == {"succeeded", "failed"}, "the ends")  # type: ignore[attr-defined]
    yield made
    made.close()


def shown(page: Any, *texts: str) -> None:
    """It is there, as it was written, and made nothing of the page."""
    for text in texts:
        expect(page.locator("body")).to_contain_text(text)
    assert page.evaluate("[window.owned, document.querySelectorAll('.planted').length]") == [None, 0]


def test_s22_s23_s56_whatever_anything_is_called_is_text_on_every_page(console, open_page):
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    shown(page, f"{BOLD} card", BOLD, f"{TAG} running", f"{TAG} waits", f"{BOLD} job")
    page.keyboard.press("0")
    expect(page.get_by_role("dialog")).to_contain_text(f"{TAG} stranger")
    expect(page.get_by_role("row").filter(has_text="eve").locator("td").last).to_have_text(SEEN)
    shown(page)
    page.keyboard.press("Escape")
    views.at(page, console, f"state/{console.fails}")
    shown(page, f"{BOLD} job", f"{BOLD} queue", f"{TAG} waits", f"ValueError: {BOLD} broke")
    views.at(page, console, "command")
    shown(page, f"# {TAG}", f"echo '{TAG}'")
    page.locator(".config", has_text="command_gpu_1.txt").click()
    expect(page.locator(".cm-lintRange-error").first).to_be_visible()
    shown(page, f"{BOLD} wrong")
    page.locator(".config", has_text="command_gpu_2.txt").click()
    expect(page.locator(".cm-specialChar")).to_have_count(3)  # drawn as signs, so they turn and colour nothing
    expect(page.locator(".proc textarea").nth(0)).to_have_value(f"echo '{SEEN}'")
    expect(page.locator(".proc textarea").nth(1)).to_have_value("echo the end")
    expect(page.locator(".right ul.fail")).to_contain_text("Line 5:")  # which is longer than any that is taken
    shown(page, "echo the end")
    queued = page.get_by_role("region", name="What would be queued")
    expect(queued).to_contain_text(f"echo '{SEEN}'")
    expect(queued).to_contain_text(f"({LONG + len('echo ') - 1000} more characters)")
    assert len(queued.inner_html()) < 20_000
    with page.expect_request("**/preview*") as asked:
        page.locator(".proc textarea").nth(1).fill("echo another end")
    sent = [process["commands"] for queue in asked.value.post_data_json["queues"] for process in queue["processes"]]
    assert sent == [[f"echo '{RED} {TURNED}'"], ["echo another end"]]  # what would be saved is what stood there
    page.locator(".config", has_text="command_gpu_1.txt").click()  # and the page goes on
    shown(page, f"{BOLD} wrong")
    views.at(page, console, "rule")
    shown(page, f"{BOLD} value")
    views.at(page, console, "experiment")
    shown(page, f"{BOLD} sweep", TAG)
    views.at(page, console, "experiment/file")
    shown(page, f"{BOLD.replace('/', '')}.yaml", f'["{TAG}"]')
    views.at(page, console, "hold")
    shown(page, f"{BOLD} held", f"{TAG} inside")
    views.at(page, console, "setting")
    shown(page, "Settings", "webhook")
