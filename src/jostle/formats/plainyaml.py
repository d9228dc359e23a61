"""The plain subset of YAML in one pass: block lists and mappings, one-line scalars and flow collections, `|` texts.

Rules: what is read here means exactly what YAML says. Whatever is outside the subset, or wrong, or only doubtful, is Declined,
never guessed: the full reader then decides. So this file may be incomplete, but must not be lenient.
"""

from __future__ import annotations

import re

from jostle.formats.nodes import Map, Node, Scalar, Seq

MAX_DEPTH = 20

# a key, then its value on the same line (if any); the key is a plain word
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,100}):(?: +(.*))?\Z", re.DOTALL)
# a plain scalar may not begin with an indicator
_PLAIN = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:][^\s,\[\]{}])")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\[nt"\\/])*)"(?: +#.*| *)\Z')
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?: +#.*| *)\Z")
_LITERAL = re.compile(r"\|([+-]?)(?: +#.*| *)\Z")
_FLOW_TOKEN = re.compile(
    r"""\ *(?:
      (?P<mark>[\[\]{},])
    | "(?P<double>(?:[^"\\]|\\[nt"\\/])*)"
    | '(?P<single>(?:[^']|'')*)'
    | (?P<plain>(?:[A-Za-z0-9_./~$=+]|-(?=[A-Za-z0-9_.]))[A-Za-z0-9_./~$=+@%()<>;-]*(?:\ +[A-Za-z0-9_./~$=+@()<>;-]+)*)
    )\ *(?P<colon>:(?=\ ))?""",
    re.VERBOSE,
)
# characters that YAML refuses, or that end a line for YAML but not for us
_ODD = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


class Declined(Exception):
    """Not in the subset (or not YAML at all)."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.why = why


def parse(text: str) -> Node | None:
    """The document's root, or None for an empty one."""
    odd = _ODD.search(text)
    if odd:
        raise Declined(text.count("\n", 0, odd.start()) + 1, f"the character {odd[0]!r}")
    return _Reader(text.split("\n")).document()


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0  # the line to be read next
        self.depth = 0

    def decline(self, why: str) -> Declined:
        return Declined(self.at + 1, why)

    def document(self) -> Node | None:
        indent = self.next_indent()
        if indent == 0 and self.lines[self.at].rstrip(" ") == "---":
            self.at += 1
            indent = self.next_indent()
        if indent < 0:
            return None
        root = self.block(indent)
        if self.next_indent() >= 0:
            raise self.decline("a line that is indented in another way than those before it")
        return root

    def next_indent(self) -> int:
        """Moves to the next line with content and gives its indentation; -1 at the end."""
        lines, at, end = self.lines, self.at, len(self.lines)
        while at < end:
            line = lines[at]
            content = line.lstrip(" ")
            if content and content[0] != "#":
                self.at = at
                if content[0] == "\t":
                    raise self.decline("a tab")
                return len(line) - len(content)
            at += 1
        self.at = at
        return -1

    def block(self, indent: int) -> Node:
        """The collection whose first line is the current one."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.decline("deep nesting")
        content = self.lines[self.at][indent:]
        if content[:2] == "- " or content == "-":
            node: Node = self.sequence(indent)
        else:
            node = self.mapping(indent)
        self.depth -= 1
        return node

    def mapping(self, indent: int) -> Map:
        items: list[tuple[Scalar, Node]] = []
        node = Map(self.at + 1, items)
        key_of = _KEY.match
        here = indent
        while here == indent:
            line = self.lines[self.at]
            found = key_of(line, indent)
            if found is None:
                if line[indent : indent + 2] in ("- ", "-") and items:
                    raise self.decline("a list item where a key was expected")
                raise self.decline("a line that is not a plain `key: value`")
            number = self.at + 1
            value = found[2]
            if value and value[0] != "#":
                child = self.inline(value, indent)
            else:
                self.at += 1
                child = self.below(indent, number)
            items.append((Scalar(number, found[1], True), child))
            here = self.next_indent()
        if here > indent:
            raise self.decline("a line that is indented deeper than its neighbours")
        return node

    def below(self, indent: int, number: int) -> Node:
        """The value of a key that has none on its own line."""
        here = self.next_indent()
        if here > indent:
            return self.block(here)
        if here == indent and (self.lines[self.at][indent:] + " ")[:2] == "- ":
            return self.block(here)  # a list may stand at the indentation of its key
        return Scalar(number, "", True)

    def sequence(self, indent: int) -> Seq:
        items: list[Node] = []
        node = Seq(self.at + 1, items)
        here = indent
        while here == indent:
            line = self.lines[self.at]
            if line[indent : indent + 2] != "- " and line[indent:] != "-":
                break  # the next key of the mapping this list is a value in
            content = line[indent + 1 :].lstrip(" ")
            if not content or content[0] == "#":
                number = self.at + 1
                self.at += 1
                here = self.next_indent()
                items.append(self.block(here) if here > indent else Scalar(number, "", True))
            elif content[:2] == "- " or content == "-" or _KEY.match(content):
                # the item is a collection that begins on this line: read it as if the dash were a space
                inner = len(line) - len(content)
                self.lines[self.at] = " " * inner + content
                items.append(self.block(inner))
            else:
                items.append(self.inline(content, indent))
            here = self.next_indent()
        if here > indent:
            raise self.decline("a line that is indented deeper than its neighbours")
        return node

    def inline(self, text: str, indent: int) -> Node:
        """A value that begins on the current line, which it leaves behind."""
        number = self.at + 1
        first = text[0]
        if "\t" in text:
            raise self.decline("a tab")
        if first == "|":
            return self.literal(text, indent)
        if first == '"':
            found = _DOUBLE.match(text)
            if not found:
                raise self.decline("a quoted text over several lines, or with rare escapes")
            node: Node = Scalar(number, _unescaped(found[1]), False)
        elif first == "'":
            found = _SINGLE.match(text)
            if not found:
                raise self.decline("a quoted text over several lines")
            node = Scalar(number, found[1].replace("''", "'"), False)
        elif first in "[{":
            node = self.flow(text)
        else:
            node = Scalar(number, self.plain(text), True)
        self.at += 1
        return node

    def plain(self, text: str) -> str:
        if not _PLAIN.match(text):
            raise self.decline(f"a value that begins with {text[0]}")
        comment = text.find(" #")
        if comment >= 0:
            text = text[:comment]
        text = text.rstrip(" ")
        if ": " in text or text[-1] == ":":
            raise self.decline("a second `: ` in one line")
        return text

    def literal(self, header: str, indent: int) -> Scalar:
        found = _LITERAL.match(header)
        if not found:
            raise self.decline("a block text with indentation digits")
        number = self.at + 1
        lines, at, end = self.lines, self.at + 1, len(self.lines)
        first = at
        while first < end and not lines[first].strip(" "):
            first += 1
        inner = len(lines[first]) - len(lines[first].lstrip(" ")) if first < end else 0
        if inner <= indent:
            raise self.decline("an empty block text")
        if any(lines[at:first]):
            raise self.decline("a block text that begins with blanks")
        body: list[str] = []
        while at < end:
            line = lines[at]
            if line[:inner].strip(" "):
                if len(line) - len(line.lstrip(" ")) > indent:
                    self.at = at
                    raise self.decline("a block text whose lines are indented unevenly")
                break
            body.append(line[inner:])
            at += 1
        if at == end and not body[-1]:
            body.pop()  # what follows the last line end is no line
            ended = True
        else:
            ended = at < end
        self.at = at
        return Scalar(number, _chomped(body, found[1], ended), False)

    def flow(self, text: str) -> Node:
        node, rest = self.flow_value(text, 0, 0)
        tail = text[rest:]
        if (tail and not (tail[0] == " " or text[rest - 1] == " ")) or (tail.strip(" ") and tail.lstrip(" ")[0] != "#"):
            raise self.decline("text after a closing bracket")
        return node

    def flow_value(self, text: str, at: int, depth: int) -> tuple[Node, int]:
        token = _FLOW_TOKEN.match(text, at)
        if not token or depth > MAX_DEPTH:
            raise self.decline("a list or mapping in brackets over several lines, or with rare characters")
        if token["colon"]:
            raise self.decline("a key where a value was expected")
        mark = token["mark"]
        if mark == "[":
            return self.flow_seq(text, token.end(), depth + 1)
        if mark == "{":
            return self.flow_map(text, token.end(), depth + 1)
        if mark:
            raise self.decline(f"a misplaced {mark}")
        return self.flow_scalar(token), token.end()

    def flow_scalar(self, token: re.Match[str]) -> Scalar:
        if token["plain"] is not None:
            return Scalar(self.at + 1, token["plain"], True)
        if token["single"] is not None:
            return Scalar(self.at + 1, token["single"].replace("''", "'"), False)
        return Scalar(self.at + 1, _unescaped(token["double"]), False)

    def flow_seq(self, text: str, at: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        node = Seq(self.at + 1, items)
        closed = _FLOW_TOKEN.match(text, at)
        if closed and closed["mark"] == "]" and not closed["colon"]:
            return node, closed.end()
        while True:
            item, at = self.flow_value(text, at, depth)
            items.append(item)
            mark, at = self.flow_mark(text, at, "]")
            if mark == "]":
                return node, at

    def flow_map(self, text: str, at: int, depth: int) -> tuple[Node, int]:
        items: list[tuple[Scalar, Node]] = []
        node = Map(self.at + 1, items)
        closed = _FLOW_TOKEN.match(text, at)
        if closed and closed["mark"] == "}" and not closed["colon"]:
            return node, closed.end()
        while True:
            key = _FLOW_TOKEN.match(text, at)
            if not key or key["mark"] or not key["colon"]:
                raise self.decline("a mapping in brackets that is not `key: value`")
            value, at = self.flow_value(text, key.end(), depth)
            items.append((self.flow_scalar(key), value))
            mark, at = self.flow_mark(text, at, "}")
            if mark == "}":
                return node, at

    def flow_mark(self, text: str, at: int, closing: str) -> tuple[str, int]:
        token = _FLOW_TOKEN.match(text, at)
        mark = token["mark"] if token else None
        if not token or mark not in (",", closing) or token["colon"]:
            raise self.decline("a list or mapping in brackets over several lines, or with rare characters")
        return mark, token.end()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: _ESCAPED[m[1]], text) if "\\" in text else text


def _chomped(body: list[str], how: str, ended: bool) -> str:
    """A block text with its last line ends kept (+), dropped (-) or made one."""
    text = "\n".join(body)
    if how == "+":
        return text + "\n" if ended else text
    text = text.rstrip("\n")
    return text + "\n" if not how and (ended or (len(body) > 1 and not body[-1])) else text
