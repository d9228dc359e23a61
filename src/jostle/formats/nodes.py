"""What a YAML file says: scalars as the author wrote them, lists and mappings, each with its line."""

from __future__ import annotations

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Flaw(Exception):
    """What is wrong at a line of a file, and what was expected; line 0: the file as a whole."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


class Scalar:
    __slots__ = ("line", "plain", "text")
    shape = "a value"

    def __init__(self, line: int, text: str, plain: bool) -> None:
        self.line = line
        self.text = text
        self.plain = plain  # not quoted, so that `null` and `true` mean what they say

    @property
    def null(self) -> bool:
        return self.plain and self.text in NULLS


class Seq:
    __slots__ = ("items", "line")
    shape = "a list"

    def __init__(self, line: int, items: list[Node]) -> None:
        self.line = line
        self.items = items


class Map:
    __slots__ = ("items", "line")
    shape = "a mapping"

    def __init__(self, line: int, items: list[tuple[Scalar, Node]]) -> None:
        self.line = line
        self.items = items  # in the author's order, repeated keys included


Node = Scalar | Seq | Map


def of(value: object) -> Node:
    """Values of a program as a file would say them."""
    if value is None or isinstance(value, bool):
        return Scalar(0, {None: "null", True: "true", False: "false"}[value], True)
    if isinstance(value, int | float):
        return Scalar(0, repr(value), True)
    if isinstance(value, list | tuple):
        return Seq(0, [of(item) for item in value])
    if isinstance(value, dict):
        return Map(0, [(Scalar(0, str(key), False), of(item)) for key, item in value.items()])
    return Scalar(0, str(value), False)


def plain_data(node: Node | None) -> object:
    """The node as lists, dicts and texts; for tests and for showing."""
    if isinstance(node, Seq):
        return [plain_data(item) for item in node.items]
    if isinstance(node, Map):
        return {key.text: plain_data(value) for key, value in node.items}
    if isinstance(node, Scalar):
        return None if node.null else node.text
    return None
