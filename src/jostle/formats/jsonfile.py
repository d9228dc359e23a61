"""JSON text with `//` comments, as nodes that know their line.

Rules: strict but for comments, which end with their line and are none inside a string. Numbers keep the author's text. Depth and
size are bounded.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]

from jostle.core.kinds import utf8
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

MAX_DEPTH = 50
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])|(?:true|false|null)\b", re.ASCII)
_ODD = re.compile(r"[^\s,:\[\]{}\"]{1,60}")


def parse(text: str) -> Node:
    """The document's root. Flaw for anything that is not one JSON value."""
    reader = _Reader(text)
    root = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        reader.fail(flaw("json_after"))
    return root


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._counted, self._lines = 0, 1  # so far: a long file is not counted from its beginning each time

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    @property
    def line(self) -> int:
        self._lines += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._lines

    def fail(self, what: str) -> None:
        raise Flaw(self.line, what)

    def token(self) -> str:
        odd = _ODD.match(self.text, self.at)
        return "the end of the file" if self.at >= len(self.text) else shown(odd[0] if odd else self.text[self.at])

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        sign, line = self.peek(), self.line
        if depth > MAX_DEPTH:
            self.fail(flaw("json_deep", most=MAX_DEPTH))
        if sign == "{":
            return Map(line, self._pairs(depth))
        if sign == "[":
            return Seq(line, self._items(depth))
        if sign == '"':
            return self._string()
        word = _WORD.match(self.text, self.at)
        if word is None:
            values = "a text in double quotes, a number, true, false, null, [ or {"
            raise Flaw(line, flaw("json_value", token=self.token(), expected=values))
        self.at = word.end()
        return Scalar(line, word[0], True)

    def _string(self) -> Scalar:
        line = self.line
        try:
            text, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as e:
            where = self.text.count("\n", 0, e.pos) + 1
            raise Flaw(where, flaw("json_text", problem=e.msg)) from None
        if text and not utf8(text):
            raise Flaw(line, flaw("json_half"))
        return Scalar(line, text, False)

    def _pairs(self, depth: int) -> list[tuple[Scalar, Node]]:
        items: list[tuple[Scalar, Node]] = []
        self.at += 1
        while self._more("}", bool(items)):
            if self.peek() != '"':
                self.fail(flaw("json_key", token=self.token()))
            key = self._string()
            if self.peek() != ":":
                self.fail(flaw("json_colon", token=self.token(), key=shown(key.text)))
            self.at += 1
            items.append((key, self.value(depth + 1)))
        return items

    def _items(self, depth: int) -> list[Node]:
        items: list[Node] = []
        self.at += 1
        while self._more("]", bool(items)):
            items.append(self.value(depth + 1))
        return items

    def _more(self, end: str, after_one: bool) -> bool:
        """Whether another follows; takes the comma before it, or the end."""
        sign = self.peek()
        if sign == end:
            self.at += 1
            return False
        if after_one:
            if sign != ",":
                self.fail(flaw("json_comma", token=self.token(), end=end))
            self.at += 1
            if self.peek() == end:
                self.fail(flaw("json_last_comma", end=end))
        return True
