"""One value of a YAML text changed in place, as a person would with an editor. Whoever calls this reads the result back.

Rules: the text outside of the changed value stays as it is. A value that is equal stays as it is spelled. A new key is written
after the last one of its mapping. Lists and mappings that change their size are written in one line, `[0, 1]`, unless they stood
in lines of their own.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from jostle.errors import Invalid
from jostle.formats import yamlfile
from jostle.formats.nodes import Scalar

_PLAIN = re.compile(r"[A-Za-z_./~\u4e00-\u9fff][\w./~ +@%-]*\Z")
_ALIAS = re.compile(r"\s*:\s*(\*[^\s,\]}]+)")
_WORDS = frozenset(("yes", "Yes", "YES", "on", "On", "ON", "no", "No", "NO", "off", "Off", "OFF"))  # truths of old
_NAME = re.compile(r"\*[^\s,\]}]+")


def updated(text: str, words: tuple[str, ...], value: Any) -> str:
    """The text with the value of a key; mappings on the way are made."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    eol = "\r\n" if "\r\n" in text else "\n"
    if not isinstance(root, yaml.MappingNode):
        start = text if not text or text.endswith(("\n", "\r")) else text + eol
        return f"{start}{key_text(words[0])}: {shown(nested(words[1:], value))}{eol}"
    return _in_map(text, root, words, value, eol)


def _in_map(text: str, node: yaml.MappingNode, words: tuple[str, ...], value: Any, eol: str) -> str:
    for key, item in reversed(node.value):
        if isinstance(key, yaml.ScalarNode) and key.value == words[0]:
            if len(words) > 1 and isinstance(item, yaml.MappingNode) and not _aliased(key, item):
                return _in_map(text, item, words[1:], value, eol)
            return _set(text, key, item, nested(words[1:], value), eol)
    return _added(text, node, words, value, eol)


def nested(words: tuple[str, ...], value: Any) -> Any:
    for word in reversed(words):
        value = {word: value}
    return value


def _aliased(key: yaml.Node, item: yaml.Node) -> bool:
    """The value stands elsewhere: here is only `*name`."""
    return bool(item.start_mark.index < key.end_mark.index)


def _set(text: str, key: yaml.Node, node: yaml.Node, value: Any, eol: str) -> str:
    if _aliased(key, node):
        alias = _ALIAS.match(text, key.end_mark.index)
        return text[: alias.start(1)] + shown(value) + text[alias.end(1) :] if alias else text
    if isinstance(node, yaml.SequenceNode) and isinstance(value, list | tuple) and node.value:
        return _list(text, node, list(value), eol)
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict) and _names(node) <= set(value):
        for name, item in value.items():  # each time anew: the places have moved
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            text = _in_map(text, _at(root, node.start_mark.index), (name,), item, eol)
        return text
    return _over(text, node, value, eol)


def _names(node: yaml.MappingNode) -> set[str]:
    return {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}


def _at(node: Any, start: int) -> Any:
    """The mapping that begins there."""
    todo = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, yaml.MappingNode):
            if inner.start_mark.index == start:
                return inner
            todo += [value for _, value in inner.value]
        elif isinstance(inner, yaml.SequenceNode):
            todo += inner.value
    return node


def _list(text: str, node: yaml.SequenceNode, value: list[Any], eol: str) -> str:
    if len(value) == len(node.value):
        for item, new in reversed(list(zip(node.value, value, strict=True))):
            text = _over(text, item, new, eol)
        return text
    if node.flow_style or not value:
        return _over(text, node, value, eol)
    indent = " " * node.start_mark.column
    lines = (eol + indent).join(f"- {shown(item)}" for item in value)
    return text[: node.start_mark.index] + lines + text[end_of(text, node) :]


def _over(text: str, node: yaml.Node, value: Any, eol: str) -> str:
    """The value written over what stands there."""
    start, end = node.start_mark.index, end_of(text, node)
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if isinstance(node, yaml.ScalarNode):
        old = yamlfile.value_of(Scalar(0, node.value, not node.style))
        if type(old) is type(value) and old == value:
            return text
        if not node.value and not node.style:
            return f"{text[:start]} {shown(value)}{text[end:]}"
    elif not getattr(node, "flow_style", True):
        # a block below its key: the value comes behind the key, where the block began
        colon = text.rindex(":", 0, start)
        if not text[colon + 1 : start].strip():
            return f"{text[: colon + 1]} {shown(value)}{text[end:]}"
    tail = eol if style in ("|", ">") and text[start:end].endswith(("\n", "\r")) else ""
    return text[:start] + shown(value, style) + tail + text[end:]


def end_of(text: str, node: yaml.Node) -> int:
    """Where a node really ends: that of a block is said to reach to the next one."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        if isinstance(node, yaml.MappingNode):
            key, last = node.value[-1]
            elsewhere = _aliased(key, last)
        else:
            last = node.value[-1]
            elsewhere = any(last.start_mark.index <= item.start_mark.index for item in (node, *node.value[:-1]))
        if elsewhere:
            aliases = list(_NAME.finditer(text, node.start_mark.index, node.end_mark.index))
            return aliases[-1].end() if aliases else int(node.end_mark.index)
        node = last
    return int(node.end_mark.index)


def _added(text: str, node: yaml.MappingNode, words: tuple[str, ...], value: Any, eol: str) -> str:
    entry = f"{key_text(words[0])}: {shown(nested(words[1:], value))}"
    if node.flow_style or not node.value:
        at = node.end_mark.index - 1  # the closing brace
        if node.value:
            at = len(text[:at].rstrip())
        return text[:at] + (", " if node.value else "") + entry + text[at:]
    end = end_of(text, node)
    if end and text[end - 1] in "\r\n":  # after a block of text
        return text[:end] + " " * node.start_mark.column + entry + eol + text[end:]
    line = re.compile(r"[\r\n]|\Z").search(text, end)
    at = line.start() if line else len(text)
    return text[:at] + eol + " " * node.start_mark.column + entry + text[at:]


def key_text(word: str) -> str:
    return word if _plain(word) else quoted(word)


def _plain(word: str) -> bool:
    """Whether a text needs no quotes."""
    if not _PLAIN.match(word) or word != word.strip() or word in _WORDS:
        return False
    return yamlfile.value_of(Scalar(0, word, True)) == word


def shown(value: Any, style: str | None = None) -> str:
    """A value as YAML in one line, in the quotes that stood there."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Invalid(f"{value} cannot be saved; expected a finite number")
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_text(str(key))}: {shown(item)}" for key, item in value.items()) + "}"
    if not isinstance(value, str):
        raise Invalid(f"a value of type {type(value).__name__} cannot be saved; expected numbers, texts, lists and mappings")
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and _plain(value):
        return value
    return quoted(value)


def quoted(text: str) -> str:
    """A text in double quotes; what cannot be seen is escaped."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    code = ord(c)
    if c.isprintable():
        return c
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
