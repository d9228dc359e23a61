"""Rules of what to leave out, as in a .gitignore: the last one that matches decides.

Known: comments, `!` for exceptions, `/` at the end (folders only), `/` elsewhere (from the top), `*`, `?`, `[…]`, `**`. What is
below a folder that is left out cannot be taken back, as with git. A rule that git would silently never match (a bracket without
an end, a range from z to a) is an error with its line. Whatever a rule looks like, matching it takes time in proportion to the
path: each `*` is tried once for each place and never again with another (so does `**`, folder by folder).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jostle.errors import Invalid
from jostle.formats.wording import shown

ANY = None  # `**`: any number of folders
Segment = re.Pattern[str] | None
CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "xdigit": "0-9a-fA-F",
    "space": " \\t\\n\\r\\f\\v", "blank": " \\t", "punct": "!-/:-@\\[-`{-~", "cntrl": "\\x00-\\x1f\\x7f", "print": " -~",
    "graph": "!-~",
}  # fmt: skip


class _Rule(NamedTuple):
    segments: Sequence[Segment]  # of the whole path; a single one is of its last part, wherever that lies
    anchored: bool
    folders_only: bool
    takes_back: bool

    def matches(self, parts: Sequence[str]) -> bool:
        if self.anchored:
            return _along(self.segments, parts)
        (only,) = self.segments
        return only is ANY or only.fullmatch(parts[-1]) is not None


class Ignore:
    """Rules in their order; Invalid names those that are none. `where` is the file they come from."""

    def __init__(self, lines: Iterable[str] = (), where: str = "") -> None:
        self.rules: list[_Rule] = []
        flaws = []
        for n, line in enumerate(lines, 1):
            try:
                rule = _rule(line)
            except ValueError as e:
                flaws.append(f"{where}:{n}: the rule {shown(line.strip())} is not understood: {e}")
                continue
            self.rules += [rule] if rule is not None else []
        if flaws:
            raise Invalid("\n".join(flaws))

    def __add__(self, other: Ignore) -> Ignore:
        both = Ignore()
        both.rules = [*self.rules, *other.rules]
        return both

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Whether this path, relative to the top, is left out."""
        parts = path.split("/")
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and rule.matches(parts):
                return not rule.takes_back
        return False


def _along(segments: Sequence[Segment], parts: Sequence[str]) -> bool:
    """Segment by segment; where one does not fit, the last `**` takes one folder more."""
    i = j = 0
    back: tuple[int, int] | None = None
    while j < len(parts):
        segment = segments[i] if i < len(segments) else _NOTHING
        if segment is ANY:
            i += 1
            back = i, j
        elif segment.fullmatch(parts[j]):
            i, j = i + 1, j + 1
        elif back is not None:
            back = back[0], back[1] + 1
            i, j = back
        else:
            return False
    return all(segment is ANY for segment in segments[i:])


def _rule(line: str) -> _Rule | None:
    text = line.rstrip("\r\n")
    text = text if text.endswith("\\ ") else text.rstrip(" ")
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    text = text[1:] if takes_back else text
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    names = text.removeprefix("/").split("/")
    if names == [""]:
        return None
    if "" in names:
        raise ValueError("nothing stands between two slashes; expected one slash")
    segments: list[Segment] = []
    for name in names:
        segments.append(ANY if len(name) > 1 and not name.strip("*") else _segment(name))
    if anchored and segments[-1] is ANY:
        segments.insert(-1, _segment("*"))  # `a/**` is all that is in a, but not a
    return _Rule(segments, anchored, folders_only, takes_back)


def _segment(name: str) -> re.Pattern[str]:
    """As an expression that never goes back: what is between two stars is sought once, at the first place where it fits."""
    pieces = [""]
    at = 0
    while at < len(name):
        c = name[at]
        if c == "*":
            pieces += [""] if pieces[-1] or len(pieces) == 1 else []
        elif c == "?":
            pieces[-1] += "."
        elif c == "[":
            bracket, at = _bracket(name, at)
            pieces[-1] += bracket
        elif c == "\\":
            at += 1
            if at == len(name):
                raise ValueError("a backslash at its end; expected the character that is meant after it")
            pieces[-1] += re.escape(name[at])
        else:
            pieces[-1] += re.escape(c)
        at += 1
    first, *rest = pieces
    middle = "".join(f"(?=(?P<g{k}>.*?{piece}))(?P=g{k})" for k, piece in enumerate(rest[:-1]))
    return re.compile(first + middle + (f".*{rest[-1]}" if rest else ""), re.DOTALL)


_NOTHING = re.compile(r"(?!)")
_MEMBER = re.compile(r"\[:(?P<kind>\w+):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\\\]]))?", re.DOTALL)


def _bracket(name: str, at: int) -> tuple[str, int]:
    """The set that begins there, and where it ends."""
    start = at
    at += 1
    negated = name[at : at + 1] in ("!", "^")
    at += negated
    members = ""
    while name[at : at + 1] != "]" or not members:
        match = _MEMBER.match(name, at)
        if match is None:
            raise ValueError(f"the bracket in {shown(name[start:])} has no end; expected ] or, for a bracket itself, \\[")
        if match["kind"]:
            if match["kind"] not in CLASSES:
                raise ValueError(f"there is no class [:{match['kind']}:]; expected one of {', '.join(CLASSES)}")
            members += CLASSES[match["kind"]]
        else:
            low, high = match["low"][-1], (match["high"] or match["low"])[-1]
            if low > high:
                raise ValueError(f"the range {low}-{high} is empty; expected {high}-{low}")
            members += re.escape(low) + (f"-{re.escape(high)}" if match["high"] else "")
        at = match.end()
    return f"[{'^' if negated else ''}{members}]", at
