"""`ProcessYAML(path)`: a YAML file of settings that people keep, read and changed by dotted keys (SPEC A11).

Rules: `update` changes the values in memory; `save` writes them into the text of the file as it is then, and touches nothing but
the values that were updated: comments, order, quotes, the spelling of numbers, line ends and encoding stay. A key that was not
updated is never added. What was written is read back before the file is replaced, in one step; its mode stays. A file that is not
there is an empty configuration, and a save makes it.
"""

from __future__ import annotations

import codecs
import copy
import os
import tempfile
from typing import Any

from jostle.errors import Invalid
from jostle.formats import plaintext, yamlfile
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq
from jostle.wording.flaws import flaw

_OLD_TRUTHS = {
    word: truth for truth, words in ((True, "yes Yes YES on On ON"), (False, "no No NO off Off OFF")) for word in words.split()
}
_BOMS = {"UTF-8": codecs.BOM_UTF8, "UTF-16": b""}  # the codec writes its own


class ProcessYAML:
    """The settings of one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.data: dict[str, Any] = {}
        self._updates: dict[tuple[str, ...], Any] = {}
        self.load()

    def load(self) -> dict[str, Any]:
        """Reads the file again, and forgets what was updated and not saved; all of it."""
        self.data = values(self._read()[0], self.path)
        self._updates.clear()
        return self.get_config()

    def get_config(self) -> dict[str, Any]:
        """All of it, as a copy."""
        return copy.deepcopy(self.data)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a dotted key; the default if it is not there."""
        value: Any = self.data
        for word in parts(self.data, key):
            if not isinstance(value, dict) or word not in value:
                return default
            value = value[word]
        return value

    def get_int(self, key: str, default: int = 0) -> int:
        """The value as a whole number; the default if it is none."""
        try:
            return int(self.get(key, default))
        except (TypeError, ValueError, OverflowError):
            return default

    def update(self, key: str, value: Any) -> bool:
        """Sets a dotted key in memory; mappings on the way are made. True, as in the source; Invalid if it is no key."""
        words = parts(self.data, key)
        if not all(words):
            raise Invalid(f"{key!r} is no key; expected words with dots between them")
        value = copy.deepcopy(value)
        put(self.data, words, value)
        self._updates.pop(words, None)  # the last one comes last
        self._updates[words] = value
        return True

    def save(self) -> None:
        """Writes what was updated into the file. Invalid if it cannot be said there; the file is untouched then."""
        from jostle.formats import yamledit

        old, encoding, bom = self._read()
        text = old
        expected = values(old, self.path)
        for words, value in self._updates.items():
            put(expected, words, copy.deepcopy(value))
            text = yamledit.updated(text, words, value)
        try:
            same = values(text, self.path) == expected
        except BadFiles:
            same = False
        if not same:
            keys = ", ".join(".".join(words) for words in self._updates)
            raise Invalid(f"{self.path}: {keys} cannot be changed here by program; edit the file")
        if text != old:
            replace(self.path, (_BOMS.get(encoding, b"") if bom else b"") + text.encode(encoding))
        self._updates.clear()
        self.data = expected

    def _read(self) -> tuple[str, str, bool]:
        try:
            os.lstat(self.path)
        except FileNotFoundError:
            return "", "UTF-8", False
        except OSError:
            pass  # told below
        try:
            raw = yamlfile.bytes_of(self.path, "a file of settings")
            text, encoding = plaintext.decoded(raw)
        except Flaw as e:
            raise BadFiles([(self.path, e.line, e.text)]) from None
        return text, encoding, raw.startswith(codecs.BOM_UTF8)


def parts(data: dict[str, Any], key: str) -> tuple[str, ...]:
    """`a.b` as a way through mappings, unless the file has a key that is written so."""
    return (key,) if key in data else tuple(key.split("."))


def put(data: dict[str, Any], words: tuple[str, ...], value: Any) -> None:
    for word in words[:-1]:
        if not isinstance(data.get(word), dict):
            data[word] = {}
        data = data[word]
    data[words[-1]] = list(value) if isinstance(value, tuple) else value


def values(text: str, file: str) -> dict[str, Any]:
    """What the text says; BadFiles if it is no mapping."""
    try:
        root = yamlfile.parse(text.replace("\r\n", "\n"))
        if root is not None and not isinstance(root, Map):
            raise Flaw(root.line, flaw("holds", shape=root.shape, expected="`key: value` lines"))
        mapping = _value(root) if root is not None else {}
    except Flaw as e:
        raise BadFiles([(file, e.line, e.text)]) from None
    assert isinstance(mapping, dict)
    return mapping


def _value(node: Node) -> Any:
    """Plain values; yes, no, on and off are true or false, as the source system reads them."""
    if isinstance(node, Seq):
        return [_value(item) for item in node.items]
    if isinstance(node, Scalar):
        return _OLD_TRUTHS[node.text] if node.plain and node.text in _OLD_TRUTHS else yamlfile.value_of(node)
    return yamlfile.values_of(node, _value)


def replace(path: str, raw: bytes) -> None:
    """The file with another content, in one step; a link stays a link."""
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mode = 0o644
    fd, temporary = tempfile.mkstemp(prefix=".jostle-", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(raw)
            f.flush()
            os.fchmod(f.fileno(), mode)
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
