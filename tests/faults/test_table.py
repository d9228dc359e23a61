"""The table of docs/reliability.md: complete, and every test it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text("utf-8")


@cache
def names(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(
        name for node in tree.body
        for name in ([node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else
                     [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else [])
    )  # fmt: skip


def test_every_test_named_in_the_table_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
    assert len(named) > 60
    missing = [f"{file}::{test}" for file, test in named if not (ROOT / file).exists() or test not in names(file)]
    assert missing == []


def test_every_fault_has_a_line_with_a_test_or_the_reason_why_none() -> None:
    rows = re.findall(r"^\| (F\d+) \|(.*)\|(.*)\|(.*)\|$", TEXT, re.MULTILINE)
    numbers = [int(row[0][1:]) for row in rows]
    assert len(numbers) >= 73 and numbers == list(range(1, len(numbers) + 1))
    for number, _, _, covered in rows:
        assert "::" in covered or "none yet: " in covered, number


def test_every_attack_has_a_line_with_a_test() -> None:
    rows = re.findall(r"^\| (S\d+) \|(.*)\|(.*)\|(.*)\|$", TEXT, re.MULTILINE)
    assert [row[0] for row in rows] == [f"S{n}" for n in range(1, 61) if n != 48]
    for number, attack, happens, covered in rows:
        assert attack.strip() and happens.strip() and "::" in covered, number


def test_the_ten_promises_are_there() -> None:
    assert re.findall(r"^(\d+)\. ", TEXT, re.MULTILINE) == [str(n) for n in range(1, 11)]


def test_every_item_that_was_found_from_outside_has_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \|(.*)\|(.*)\|$", TEXT, re.MULTILINE)
    assert [row[0] for row in rows] == [str(n) for n in range(1, 42)]
    for number, holds, covered in rows:
        assert holds.strip() and "::" in covered, number
