"""How the errors of a file are worded: what was found, and the nearest thing that was expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jostle.formats.nodes import Node, Scalar
from jostle.wording.flaws import flaw


def null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.null


def shown(text: str) -> str:
    cut = text if len(text) <= 60 else text[:59] + "…"
    return '"' + cut.encode("unicode_escape").decode().replace('"', '\\"') + '"' if not cut.isprintable() else f'"{cut}"'


def unknown(key: str, expected: Sequence[str], where: str) -> str:
    near = closest(key, expected)
    if near:
        return flaw("key_perhaps", key=shown(key), where=where, near=near)
    return flaw("key_unknown", key=shown(key), where=where, known=", ".join(sorted(expected)))


def closest(word: str, words: Sequence[str]) -> str:
    """The known word that was perhaps meant, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word[:100], [k for k in words if len(k) <= 100][:2000], 1, 0.6)
    return near[0] if near else ""


def expectation(check: Callable[[str], Any]) -> str:
    """What a check wants, in its own words."""
    try:
        check("\0")
    except ValueError as e:
        return str(e)
    return "a value"
