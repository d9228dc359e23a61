"""The pages of the documentation as tests read them: texts, headings, blocks of code, links."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
READMES = ("README.md", "README.zh-CN.md")


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text(name), re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """The part of a page under one heading, up to the next of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", without_blocks(text(page)), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no heading {heading!r}"
    return found[1]


def without_blocks(page: str) -> str:
    """In a block of code `# …` is a comment, not a heading; its other lines stay."""
    return re.sub(r"^```.*?^```", lambda m: m[0].replace("\n#", "\n "), page, flags=re.MULTILINE | re.DOTALL)


def headings(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^(#+) (.+)$", without_blocks(page), re.MULTILINE)


def anchors(page: str) -> set[str]:
    """As GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in headings(page)}


def links(page: str) -> list[str]:
    """The relative ones."""
    told = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", told) if not re.match(r"[a-z]+:", link)]
