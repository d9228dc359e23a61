"""YAML text as nodes that know their line, read safely and quickly.

Rules: scalars keep the author's text (`1e-5` stays `1e-5`); what a text means is for the format to say. No tags, no object of
any kind is ever made. Size, depth, anchors and what aliases expand to are bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from typing import Any

from jostle.formats.nodes import TRUTHS, Flaw, Map, Node, Scalar, Seq
from jostle.wording.flaws import flaw

MAX_BYTES = 5_000_000
MAX_DEPTH = 50
MAX_NODES = 400_000
MAX_ANCHORS = 1000  # nobody writes so many by hand, and each costs time in all that reads the file

_INT = re.compile(r"[-+]?\d{1,18}\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?\Z", re.ASCII)


def text_of(path: str, expected: str = "a job file") -> str:
    """The file's text with `\\n` line ends and no BOM. Flaw if it is too big, not a file or not UTF-8."""
    return decoded(bytes_of(path, expected))


def bytes_of(path: str, expected: str) -> bytes:
    """What is in the file. Flaw if it is too big or not a file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not hold us up
    except OSError as e:
        raise Flaw(0, flaw("file_unread", why=e.strerror)) from None
    kind = os.fstat(fd).st_mode
    if not stat.S_ISREG(kind) and not (stat.S_ISFIFO(kind) and path.startswith("/dev/")):
        os.close(fd)
        what = "a directory" if stat.S_ISDIR(kind) else "not a regular file"
        raise Flaw(0, flaw("file_kind", kind=what, expected=expected))
    os.set_blocking(fd, True)  # /dev/stdin and <(…) are FIFOs of the person's own
    with os.fdopen(fd, "rb") as f:
        raw = f.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Flaw(0, flaw("file_large", most=MAX_BYTES // 1_000_000))
    return raw


def decoded(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise Flaw(raw.count(b"\n", 0, e.start) + 1, flaw("not_utf8")) from None
    return text.replace("\r\n", "\n")


def parse(text: str) -> Node | None:
    """The document's root; None if it is empty. Flaw for anything that is not one sound YAML document."""
    import yaml

    build = _Build()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            build.take(event)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        lines = text.split("\n")
        raise Flaw(mark.line + 1 if mark else 0, _words(e, lines[mark.line] if mark and mark.line < len(lines) else "")) from None
    except (yaml.YAMLError, UnicodeError) as e:
        where = getattr(e, "position", None)  # of a character YAML does not allow
        line = text.count("\n", 0, where) + 1 if isinstance(where, int) else build.line
        raise Flaw(line, flaw("yaml_character")) from e
    except (ValueError, RecursionError) as e:
        raise Flaw(build.line, flaw("yaml_error", problem=str(e))) from None
    return build.root


def _words(e: Any, line: str) -> str:
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return flaw("yaml_tab")
    problem = str(e.problem or e.context or e).strip()
    return flaw("yaml_colon" if problem.startswith("mapping values are not allowed") else "yaml_wrong", problem=problem)


class _Build:
    """Nodes from the parser's events, without recursion, so that depth is ours to bound."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.line = 0
        self._documents = 0
        self._open: list[tuple[Map | Seq, list[Node], str | None]] = []
        self._anchors: dict[str, Node | None] = {}  # None while the anchored node is not complete
        self._weight: dict[int, int] = {}  # nodes below an anchored node, itself included
        self._count = 0
        self._anchored = 0

    def take(self, event: Any) -> None:
        self.line = event.start_mark.line + 1
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise Flaw(self.line, flaw("yaml_documents"))
        elif kind == "ScalarEvent":
            self._check(event)
            # a document of nothing but comments arrives as one empty plain scalar
            self._add(Scalar(self.line, event.value, not event.style and not event.tag), event.anchor)
        elif kind == "AliasEvent":
            self._add(self._alias(event.anchor), None)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._begin(event, Map(self.line, []) if kind[0] == "M" else Seq(self.line, []))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._end()

    def _check(self, event: Any) -> None:
        self._anchored += event.anchor is not None
        if self._anchored > MAX_ANCHORS:
            raise Flaw(self.line, flaw("yaml_anchors", most=f"{MAX_ANCHORS:,}"))
        tag = str(event.tag or "")
        if tag not in ("", "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise Flaw(self.line, flaw("yaml_tag", tag=tag.replace("tag:yaml.org,2002:", "!!")))

    def _begin(self, event: Any, node: Map | Seq) -> None:
        self._check(event)
        if len(self._open) >= MAX_DEPTH:
            raise Flaw(self.line, flaw("yaml_deep", most=MAX_DEPTH))
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append((node, [], event.anchor))

    def _end(self) -> None:
        node, children, anchor = self._open.pop()
        if isinstance(node, Seq):
            node.items = children
        else:
            node.items = _pairs(children)
        self._add(node, anchor)

    def _alias(self, name: str) -> Node:
        if name not in self._anchors:
            raise Flaw(self.line, flaw("yaml_no_anchor", name=name))
        node = self._anchors[name]
        if node is None:
            raise Flaw(self.line, flaw("yaml_loop", name=name))
        self._count += self._weight[id(node)]
        return node

    def _add(self, node: Node, anchor: str | None) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            raise Flaw(self.line, flaw("yaml_many", most=MAX_NODES))
        if anchor:
            self._anchors[anchor] = node
            self._weight[id(node)] = _weight(node)
        if self._open:
            self._open[-1][1].append(node)
        elif not (isinstance(node, Scalar) and node.null):
            self.root = node


def _weight(node: Node) -> int:
    """How many values a node stands for; bounded, since a small file can stand for billions."""
    total, todo = 0, [node]
    while todo and total <= MAX_NODES:
        inner = todo.pop()
        total += 1
        if isinstance(inner, Seq):
            todo += inner.items
        elif isinstance(inner, Map):
            todo += [value for _, value in inner.items]
    return total


def _pairs(children: list[Node]) -> list[tuple[Scalar, Node]]:
    """Key, value, key, value … as pairs; `<<: *base` gives what the mapping does not say itself."""
    pairs: list[tuple[Scalar, Node]] = []
    merged: list[tuple[Scalar, Node]] = []
    for key, value in zip(children[::2], children[1::2], strict=True):
        if not isinstance(key, Scalar):
            raise Flaw(key.line, flaw("yaml_key"))
        if key.text == "<<" and key.plain:
            merged += _merge(value)
        else:
            pairs.append((key, value))
    keys = {key.text for key, _ in pairs}
    for key, value in merged:
        if key.text not in keys:
            keys.add(key.text)
            pairs.append((key, value))
    return pairs


def _merge(value: Node) -> list[tuple[Scalar, Node]]:
    if isinstance(value, Map):
        return value.items
    if isinstance(value, Seq) and all(isinstance(item, Map) for item in value.items):
        return [pair for item in value.items if isinstance(item, Map) for pair in item.items]
    raise Flaw(value.line, flaw("yaml_merge"))


def values_of(node: Map, read: Callable[[Node], Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in node.items:
        if key.text in values:
            raise Flaw(key.line, flaw("key_twice", key=key.text, where=""))
        values[key.text] = read(value)
    return values


def value_of(node: Node) -> object:
    """Plain values: null, true and false, numbers, texts."""
    if isinstance(node, Map):
        return values_of(node, value_of)
    if isinstance(node, Seq):
        return [value_of(item) for item in node.items]
    if not node.plain:
        return node.text
    if node.null:
        return None
    if node.text in TRUTHS:
        return TRUTHS[node.text]
    for number, pattern in ((int, _INT), (float, _FLOAT)):
        if pattern.match(node.text):
            return number(node.text)
    return node.text
