"""Rules of what to leave out, as in a .gitignore: the last one that matches decides.

Known: comments, `!` for exceptions, `/` at the end (folders only), `/` elsewhere (from the top), `*`, `?`, `[…]`, `**`. What is
below a folder that is left out cannot be taken back, as with git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class _Rule(NamedTuple):
    matches: re.Pattern[str]
    folders_only: bool
    takes_back: bool


class Ignore:
    def __init__(self, lines: Iterable[str]) -> None:
        self.rules = [rule for line in lines if (rule := _rule(line)) is not None]

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Whether this path, relative to the top, is left out."""
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and rule.matches.fullmatch(path):
                return not rule.takes_back
        return False


def _rule(line: str) -> _Rule | None:
    text = line.rstrip("\r\n")
    text = text if text.endswith("\\ ") else text.rstrip(" ")
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    text = text[1:] if takes_back else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.lstrip("/")
    if not text:
        return None
    start = "" if anchored else "(?:.*/)?"
    return _Rule(re.compile(start + _expression(text), re.DOTALL), folders_only, takes_back)


_PARTS = re.compile(r"\*\*/|/\*\*\Z|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)


def _expression(text: str) -> str:
    return "".join(map(_part, _PARTS.findall(text)))


def _part(part: str) -> str:
    if part == "**/":
        return "(?:.*/)?"
    if part == "/**":
        return "/.*"
    if part[0] == "*":
        return "[^/]*"
    if part == "?":
        return "[^/]"
    if part[0] == "[" and len(part) > 2:
        inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"(?!/)[{'^' + inner[1:] if inner[0] == '!' else inner}]"
    return re.escape(part[1] if part[0] == "\\" and len(part) > 1 else part)
