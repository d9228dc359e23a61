"""What is wrong with a file, as a text that knows its code: English for whoever takes it for a text, and Chinese for who asks.

Readers of files tell what they found by `flaw(code, …)`. What was expected, and of what shape the rest is, are phrases inside of
it, which are known by their English (`expected.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jostle.wording.expected import PATTERNS, PHRASES
from jostle.wording.flawwords import FLAWS

_TOUCHING = re.compile(r"(?<=[\u4e00-\u9fff])(?=\{(\w+)\})")
"""Directly behind Chinese, where a value follows: one that begins with a Latin letter or a figure is set off by a space."""
_LATIN = re.compile(r"[\w`{]", re.ASCII)


class FlawText(str):
    """The English text; `code` and `params` say what it tells."""

    __slots__ = ("code", "params")  # a hostile file has many
    code: str
    params: Mapping[str, Any]

    def __new__(cls, code: str, params: Mapping[str, Any]) -> FlawText:
        self = super().__new__(cls, FLAWS[code][0].format_map(params))
        self.code, self.params = code, params
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FlawText, (self.code, self.params)


class Written(str):
    """What a person wrote, and is shown as it is: never a phrase of ours, even if it reads like one."""

    __slots__ = ()


def flaw(code: str, **params: Any) -> FlawText:
    return FlawText(code, params)


def worded(text: str, lang: str) -> str:
    """In this language; a text without a code is as it is."""
    if not lang.startswith("zh") or not isinstance(text, FlawText):
        return str(text)
    values = {key: _phrase(value) for key, value in text.params.items()}
    return _TOUCHING.sub(lambda m: " " * bool(_LATIN.match(str(values[m[1]]))), FLAWS[text.code][1]).format_map(values)


def _phrase(value: Any) -> Any:
    """A phrase of ours in Chinese; what people wrote is quoted, and never one."""
    if not isinstance(value, str) or isinstance(value, Written):
        return value
    if isinstance(value, FlawText):
        return worded(value, "zh")
    if value in PHRASES:
        return PHRASES[value]
    for pattern, chinese in PATTERNS:
        if match := re.fullmatch(pattern, value):
            return chinese.format(*(_phrase(group or "") for group in match.groups()))
    return value
