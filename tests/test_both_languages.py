"""A page that is there in both languages says the same in both: parts, tables, what is typed, and where its links lead."""

from __future__ import annotations

import re

import pytest

from tests.pages import PAGES, READMES, ROOT, blocks, headings, links, text

CHINESE = sorted(str(page.relative_to(ROOT)) for page in PAGES if page.name.endswith(".zh-CN.md"))
TWICE = {name.replace(".zh-CN", ""): name for name in CHINESE}  # English page -> Chinese page


def test_whoever_reads_chinese_is_addressed_in_one_way() -> None:
    places = ("*.zh-CN.md", "docs/*.zh-CN.md", "src/jostle/**/*.py", "web/src/**/*.ts*")
    files = [file for place in places for file in ROOT.glob(place)]
    assert len(files) > 100 and [file.name for file in files if "你" in file.read_text(encoding="utf-8")] == []


def test_both_readmes_have_the_same_commands_and_links() -> None:
    for language in ("console", "text", "yaml"):
        assert blocks(READMES[0], language) == blocks(READMES[1], language)
    english, chinese = ({*links(text(page))} - {*READMES} for page in READMES)
    assert english == chinese


def test_what_is_compared_is_found() -> None:
    assert len(TWICE) >= 7 and len(rows(text("docs/api.md"))) > 90 and len(typed(text("docs/resources.md"))) > 60


@pytest.mark.parametrize("page", TWICE)
def test_both_have_the_same_parts(page: str) -> None:
    english, chinese = ([level for level, _ in headings(text(name))] for name in (page, TWICE[page]))
    assert english == chinese


@pytest.mark.parametrize("page", TWICE)
def test_both_have_the_same_rows_of_tables(page: str) -> None:
    """By what stands in code in their first column: calls, keys, words."""
    english, chinese = (rows(text(name)) for name in (page, TWICE[page]))
    assert english == chinese


def rows(page: str) -> list[list[str]]:
    """Without the names of fields who may only look sees: the Chinese page refers to the English one for them."""
    only_english = re.compile(r"^## Who may only look.*?(?=^## )", re.MULTILINE | re.DOTALL)
    found = re.findall(r"^\| ([^|]*`[^|]*(?:\\\|[^|]*)*) \|", only_english.sub("", page), re.MULTILINE)
    return [sorted(re.findall(r"`[^`]+`", row)) for row in found]


@pytest.mark.parametrize("page", TWICE)
def test_both_show_the_same_to_type(page: str) -> None:
    """But for comments, which are in the language of the page."""
    english, chinese = (typed(text(name)) for name in (page, TWICE[page]))
    assert english == chinese


def typed(page: str) -> list[str]:
    fenced = [line for block in re.findall(r"^```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    shown = re.findall(r"(?<=\n\n)(?: {4}.*\n)+", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))
    lines = [*fenced, *(line for block in shown for line in block.splitlines())]
    return [line for line in (re.sub(r"(?:^|\s+)#\s.*|(?<=\S)\s{2,}.*", "", line) for line in lines) if line]


@pytest.mark.parametrize("page", TWICE)
def test_both_lead_to_the_same_places_and_to_each_other(page: str) -> None:
    english, chinese = (places(text(name)) for name in (page, TWICE[page]))
    assert english == chinese
    for name, other in ((page, TWICE[page]), (TWICE[page], page)):
        assert other.rpartition("/")[2] in links(text(name).partition("\n## ")[0]), f"{name} leads to {other} at its top"


def places(page: str) -> set[str]:
    """But for the language of pages and pictures."""
    return {re.sub(r"(?:\.zh-CN)?\.md$|-(?:en|zh)\.png$", "", link.partition("#")[0]) for link in links(page)} - {""}


@pytest.mark.parametrize("page", TWICE)
def test_who_reads_chinese_is_led_to_chinese_pages_first(page: str) -> None:
    led = [(ROOT / page).parent.joinpath(link.partition("#")[0]).resolve() for link in links(text(TWICE[page]))]
    first = {str(path.relative_to(ROOT)).replace(".zh-CN", ""): path.name for path in reversed(led)}
    assert {other for other in TWICE if other in first and not first[other].endswith(".zh-CN.md")} <= {page}
