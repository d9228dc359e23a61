"""Templates of a sweep: `{key}` stands for a value, `{key.stem}` for the stem of a path.

Rules: only known words are filled, and never after a `$`; any other brace is somebody else's (shell, awk, JSON). In a shell text
the shell sees exactly the value: outside of quotes it is quoted, inside of quotes it is escaped. Where shelltext.py cannot tell
for certain how bash reads the place, there is no template: a value must never be executed.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping

from jostle.formats import shelltext

PARTS = {
    "stem": lambda path: os.path.splitext(os.path.basename(path))[0],
    "name": os.path.basename,
    "dir": lambda path: os.path.dirname(path) or ".",
}
_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
_IN_DOUBLE = re.compile(r'([\\"$`])')
# as a word of its own bash would take it for something else than a word
_NO_WORD = re.compile(
    r"[A-Za-z_]\w*\+?=.*|if|then|else|elif|fi|case|esac|for|select|while|until|do|done|in|function|time|coproc", re.DOTALL
)


class NoValue(Exception):
    """A word of the template for which this job has no value."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class Template:
    """A text with places for values."""

    __slots__ = ("parts", "text", "words")

    def __init__(self, text: str, keys: Collection[str], *, shell: bool = False, raw: Collection[str] = ()) -> None:
        """`shell`: bash reads it (shelltext.Unclear if nobody can tell how); `raw`: keys whose values are words for bash."""
        self.text = text
        self.parts: list[str | tuple[str, str, str]] = []  # text, or (key, part of a path, how it is quoted)
        self.words: set[str] = set()
        places = [(m, place) for m in _BRACES.finditer(text) if (place := _place(m[1], keys))]
        if shell:
            around = shelltext.quotes(text, [(m.start(), m.end(), place[0] in raw) for m, place in places])
        else:
            around = ["raw"] * len(places)
        end = 0
        for (m, (key, part)), quote in zip(places, around, strict=True):
            self.parts += [text[end : m.start()], (key, part, quote)]
            self.words.add(key)
            end = m.end()
            if quote == "raw" and shell and text[end : end + 1] in ("<", ">"):
                self.parts.append(" ")  # else a number that ends the words would be a number of this redirection
        self.parts.append(text[end:])

    def filled(self, values: Mapping[str, str]) -> str:
        """The text of one job; NoValue if a value is not there."""
        if not self.words:
            return self.text
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            key, of_path, quote = part
            if key not in values:
                raise NoValue(key)
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
    """The value so that bash reads it as it is: inside of these quotes, outside of any (`word`: as the beginning of a word), or
    `always` in quotes of its own."""
    if quote == "'":
        return value.replace("'", "'\\''")
    if quote == '"':
        return _IN_DOUBLE.sub(r"\\\1", value)
    bare = shlex.quote(value)
    keep = bare != value or not (quote == "always" or (quote == "word" and _NO_WORD.fullmatch(value)))
    return bare if keep else f"'{value}'"
