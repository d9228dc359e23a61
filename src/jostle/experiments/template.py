"""Templates of a sweep: `{key}` stands for a value, `{key.stem}` for the stem of a path.

Rules: only known words are filled, and never after a `$`; any other brace is somebody else's (shell, awk, JSON). In a shell text
the shell sees exactly the value, wherever the word stands: outside of quotes it is quoted, inside of quotes it is escaped.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping

PARTS = {
    "stem": lambda path: os.path.splitext(os.path.basename(path))[0],
    "name": os.path.basename,
    "dir": lambda path: os.path.dirname(path) or ".",
}
_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
_IN_DOUBLE = re.compile(r'([\\"$`])')


class Missing(Exception):
    """A word of the template for which this job has no value."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class Template:
    """A text with places for values."""

    __slots__ = ("parts", "text", "words")

    def __init__(self, text: str, keys: Collection[str], *, shell: bool = False, raw: Collection[str] = ()) -> None:
        self.text = text
        self.parts: list[str | tuple[str, str, str]] = []  # text, or (key, part of a path, quotes it stands in)
        self.words: set[str] = set()
        found = [(m, place) for m in _BRACES.finditer(text) if (place := _place(m[1], keys))]
        around = quotes(text, [m.start() for m, _ in found]) if shell else ["raw"] * len(found)
        end = 0
        for (m, (key, part)), quote in zip(found, around, strict=True):
            self.parts += [text[end : m.start()], (key, part, "raw" if key in raw else quote)]
            self.words.add(key)
            end = m.end()
        self.parts.append(text[end:])

    def filled(self, values: Mapping[str, str]) -> str:
        """The text of one job; Missing if a value is not there."""
        if not self.words:
            return self.text
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            key, of_path, quote = part
            if key not in values:
                raise Missing(key)
            value = PARTS[of_path](values[key]) if of_path else values[key]
            out.append(value if quote == "raw" else quoted(value, quote))
        return "".join(out)


def unknown(text: str, keys: Collection[str]) -> list[str]:
    """Words in braces that name nothing."""
    return [m[1] for m in _BRACES.finditer(text) if not _place(m[1], keys)]


def _place(word: str, keys: Collection[str]) -> tuple[str, str] | None:
    if word in keys:
        return word, ""
    head, _, part = word.rpartition(".")
    return (head, part) if part in PARTS and head in keys else None


def quoted(value: str, quote: str) -> str:
    """The value so that bash reads it as it is, outside of quotes or inside of these."""
    if quote == "'":
        return value.replace("'", "'\\''")
    return _IN_DOUBLE.sub(r"\\\1", value) if quote == '"' else shlex.quote(value)


def quotes(text: str, places: list[int]) -> list[str]:
    """For each place (ascending) the quotes it stands in, as bash reads it: `'`, `"` or none. Here-documents are not known."""
    found: list[str] = []
    inside = [""]  # "", "(", "'" or '"', the innermost last
    k = 0
    for place in places:
        while k < place:
            k = _step(text, k, inside)
        found.append(inside[-1] if inside[-1] in ("'", '"') else "")
    return found


def _step(text: str, k: int, inside: list[str]) -> int:
    c, top = text[k], inside[-1]
    if top == "'":
        if c == "'":
            inside.pop()
    elif c == "\\":
        return k + 2
    elif c == '"':
        inside.pop() if top == '"' else inside.append('"')
    elif text.startswith("$(", k):
        inside.append("(")
        return k + 2
    elif top == '"':
        pass
    elif c == "'":
        inside.append("'")
    elif c == "(":
        inside.append("(")
    elif c == ")" and top == "(":
        inside.pop()
    elif c == "#" and (k == 0 or text[k - 1] in " \t\n;&|("):
        end = text.find("\n", k)
        return end if end > k else len(text)
    return k + 1
