"""Sweeps, results and job files on the page, in both languages; what others wrote shows as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import CHANGED
from tests.e2e.instance import until
from tests.web.console import Console

expect = pytest.importorskip("playwright.sync_api").expect

SWEEP = """# two algorithms, three seeds
command: bash train.sh {algorithm} {seed}
matrix: {algorithm: [plain, "<img src=x onerror=alert(1)>"], seed: [1, 2, 3]}
job: {gpus: 0, workdir: WORK}
"""
TRAIN = """
if [ "$1" = plain ]; then echo Test Accuracy: 7$2.5; exit; fi
[ $2 = 3 ] && { echo broke; exit 3; }
echo Test Accuracy: 8$2.25
"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A sweep of six, one of which has failed."""
    made = Console(tmp_path_factory.mktemp("x"), gpus="sim:2x24")
    work = made.instance.work
    (work / "train.sh").write_text(TRAIN)
    sweep = made.instance.file(SWEEP.replace("WORK", str(work)), "sweep.yaml")
    told = json.loads(made.instance.ok("run", "--detach", "--json", sweep))
    until(lambda: sorted(made.instance.states(told["ids"]).values()) == ["failed", *["succeeded"] * 5], "the end of the sweep")
    yield made
    made.close()


def at(page: Any, name: str) -> Any:
    page.get_by_role("link", name=name, exact=True).click()
    return page


def file(console: Console, name: str) -> Path:
    return console.instance.work / name


def in_chinese(page: Any) -> Any:
    page.get_by_role("radio", name="中文").first.click()
    return page


def coloured(part: Any) -> str:
    return str(part.evaluate("one => getComputedStyle(one).backgroundColor"))


def typed(page: Any, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def test_a_sweep_folds_over_seeds_with_its_mean_and_what_is_missing_is_told(console, open_page):
    page = at(open_page(), "Experiments")
    batch = page.locator(".batch")
    expect(batch).to_contain_text("5 of 6")
    expect(batch.locator(".segbar i.done")).to_have_count(5)
    expect(batch.locator(".segbar i.failed")).to_have_count(1)
    assert len({coloured(batch.locator(f".segbar i.{look}").first) for look in ("done", "failed")}) == 2
    expect(page.locator(".groups")).to_contain_text("algorithm × seed = 2 × 3")
    fold = page.locator(".folds tr", has_text="<img src=x")
    expect(fold).to_contain_text("1 of 3 failed")
    expect(fold).to_contain_text("81.75")  # of 81.25 and 82.25
    fold.get_by_role("button").click()
    expect(page.locator(".folds tr.seed")).to_have_count(3)
    results = page.locator(".results")
    expect(results.locator("tr", has_text="plain")).to_contain_text("72.50 ± 1.00 n=3")
    expect(results.locator(".best .mean")).to_have_text("81.75")
    expect(results.locator(".wait", has_text="n=2")).to_be_visible()
    expect(page.locator(".legend")).to_contain_text("1 failed: such means may still move")
    expect(page.locator(".plot .mark")).to_have_count(2)
    expect(page.locator(".plot .seed")).to_have_count(5)
    expect(page.locator(".plot .figure").first).to_have_css("opacity", "1")
    expect(page.locator(".missing")).to_contain_text("failed: exit_code_3")
    expect(page.locator(".missing .cmd code")).to_have_text("jostle results 1")
    assert page.locator("main img").count() == 0


def test_results_are_taken_along_as_the_command_line_prints_them_and_in_chinese_too(console, open_page):
    page = in_chinese(at(open_page(), "Experiments"))
    expect(page.locator(".legend")).to_contain_text("各 seed 的均值 ± 标准差")
    expect(page.locator(".missing li")).to_contain_text("失败：exit_code_3")
    expect(page.locator(".missing li code")).to_have_text(re.compile("^任务 [0-9]+（"))
    with page.expect_download() as taken:
        page.get_by_role("button", name="下载为 LaTeX").click()
    assert Path(taken.value.path()).read_text() == console.instance.ok("results", "1", "--format=latex")
    page.get_by_role("button", name="指标").click()
    page.locator("#metrics").fill("half=Accuracy: ([0-9]+)[.]")
    page.get_by_role("button", name="读取日志").click()
    expect(page.locator(".results tr", has_text="plain")).to_contain_text("72.00 ± 1.00")
    expect(page.locator(".missing .cmd code")).to_have_text("jostle results 1 --metric 'half=Accuracy: ([0-9]+)[.]'")


def test_a_job_file_shows_what_it_would_queue_and_errors_at_their_lines(console, open_page):
    page = at(open_page(), "Experiments")
    page.get_by_role("link", name="Edit the file").click()
    expect(page.locator(".cm-content")).to_contain_text("# two algorithms, three seeds")
    expect(page.locator(".would")).to_contain_text("1 of 6 run")
    expect(page.locator(".would li", has_text="done before")).to_have_count(5)
    typed(page, "\nrum: 3\n")
    expect(page.locator(".flaws")).to_contain_text("Line 6:")
    expect(page.locator(".cm-line", has=page.locator(".cm-lintRange-error"))).to_have_text("rum: 3")
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Save and submit")).to_be_disabled()
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".would")).to_contain_text("1 of 6 run")


def test_a_new_file_is_written_looked_at_saved_and_submitted(console, open_page):
    page = at(open_page(), "Experiments")
    page.get_by_role("link", name="Job files…").click()
    page.get_by_placeholder("name of a new file").fill("fresh")
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.locator(".jobfiles header code")).to_have_text("fresh.yaml")
    typed(page, "# a comment that stays\njobs:\n- {name: first, run: echo hi, gpus: 0}\n")
    expect(page.locator(".would")).to_contain_text("1 of 1 run")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("+# a comment that stays")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="fresh.yaml is saved")).to_be_visible()
    assert file(console, "fresh.yaml").read_text().startswith("# a comment that stays\njobs:\n")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator(".groups")).to_contain_text("fresh")
    expect(page.locator(".folds")).to_contain_text("first")


def test_a_job_file_that_was_changed_on_the_disk_meanwhile_is_compared_and_not_overwritten(console, open_page):
    path = Path(console.instance.file("jobs:\n  - {name: a, run: echo a, gpus: 0}\n", "shared.yaml"))
    page = in_chinese(open_page(provoked=(CHANGED,)))
    page.goto(f"http://localhost:{console.port}/ui/experiment/file?path={path}")
    expect(page.locator(".would")).to_contain_text("1 个中运行 1 个")
    path.write_text("jobs:\n  - {name: theirs, run: echo b, gpus: 0}\n")
    typed(page, "# mine\n")
    page.get_by_role("button", name="保存", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="保存").click()
    expect(page.locator(".bar [role=alert]")).to_contain_text("文件在磁盘上已被改动")
    assert "theirs" in path.read_text()
    page.get_by_role("button", name="与我的改动比较").click()
    page.get_by_role("button", name="保存", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("name: theirs")
    page.get_by_role("dialog").get_by_role("button", name="保存").click()
    expect(page.locator(".toast")).to_be_visible()
    assert "# mine" in path.read_text() and "theirs" in Path(f"{path}.backup").read_text()
