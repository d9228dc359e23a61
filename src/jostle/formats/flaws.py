"""What is wrong with a file: collected while it is read, told all at once with file and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jostle.errors import Invalid, JostleError
from jostle.formats.nodes import Map, Node, Scalar
from jostle.formats.wording import expectation, shown, unknown
from jostle.wording.flaws import FlawText, flaw, worded

SHOWN = 100  # of a file's errors; beyond that nobody reads them


class BadFiles(Invalid):
    """Everything that is wrong with the files, as (file, line, text; "" is no file), and what is to be told beside it."""

    def __init__(self, flaws: list[tuple[str, int, str]], warnings: Sequence[str] = ()) -> None:
        self.flaws, self.warnings = flaws, list(warnings)
        super().__init__(self.worded("en"))

    def worded(self, lang: str) -> str:
        """Each in a line that begins with file:line, as editors and CI expect."""
        pairs = [(f"{file}:{line}" if line else file, worded(text, lang)) for file, line, text in self.flaws[:SHOWN]]
        lines = [f"{place}: {text}" if place else text for place, text in pairs]
        if len(self.flaws) > SHOWN:
            lines.append(worded(flaw("more_flaws", n=len(self.flaws) - SHOWN), lang))
        return "\n".join([*lines, *(worded(flaw("warning", text=text), lang) for text in self.warnings[:SHOWN])])


def sentence(e: JostleError, lang: str) -> str:
    """What an error says, in this language as far as it has words of it."""
    if isinstance(e, BadFiles):
        return e.worded(lang)
    return worded(e.args[0] if e.args and isinstance(e.args[0], FlawText) else str(e), lang)


class Findings:
    """The flaws of one file, as (line, text)."""

    def __init__(self) -> None:
        self.flaws: list[tuple[int, str]] = []

    def wrong(self, line: int, text: str) -> None:
        self.flaws.append((line, text))

    def keys(self, node: Map, expected: Sequence[str], where: str = "") -> dict[str, Node]:
        """The mapping's entries; unknown and repeated keys are told."""
        parts: dict[str, Node] = {}
        for key, value in node.items:
            if key.text in parts:
                self.wrong(key.line, flaw("key_twice", key=shown(key.text), where=where))
            elif key.text not in expected:
                self.wrong(key.line, unknown(key.text, expected, where))
            else:
                parts[key.text] = value
        return parts

    def checked(self, key: str, node: Node, check: Callable[[str], Any]) -> Any:
        """The value of a scalar, or None after telling what is wrong with it."""
        if not isinstance(node, Scalar):
            self.wrong(node.line, flaw("value_shape", key=key, shape=node.shape, expected=expectation(check)))
            return None
        try:
            return check(node.text)
        except ValueError as e:
            self.wrong(node.line, flaw("value_odd", key=key, value=shown(node.text), expected=str(e)))
            return None
