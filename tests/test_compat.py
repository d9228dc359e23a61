"""docs/compat.md: every point of the source systems that is built has tests, and every test it names exists."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
POINTS = [*(f"A{n}" for n in range(1, 35)), "A39", *(f"B{n}" for n in range(1, 13))]


def rows():
    text = (ROOT / "docs" / "compat.md").read_text("utf-8")
    return dict(re.findall(r"^\| ([AB]\d+) \| [^|]+ \| (.+) \|$", text, re.MULTILINE))


def functions(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("point", POINTS)
def test_each_point_names_tests_that_exist_and_carry_its_number(point):
    named = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", rows().get(point, ""))
    assert named, f"docs/compat.md names no test for {point}"
    for name, file in named:
        assert name in functions(ROOT / file), f"{file} has no {name}"
        assert re.search(rf"_{point.lower()}(?=_)", name), f"{name} does not carry {point}"


def test_the_page_has_no_point_that_does_not_exist():
    assert set(rows()) <= set(POINTS)
