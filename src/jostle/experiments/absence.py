"""Why a run has no value, or what is to be known of it: a sentence that also knows its code, for other languages."""

from __future__ import annotations

from typing import Any

from jostle.wording.absences import absence

NO_LINE = frozenset({"no_line", "no_key", "no_line_near", "no_key_near"})
"""Codes: its log has no line that was looked for."""


class Absence(str):
    """In English, as scripts and tables have it."""

    code: str
    params: dict[str, Any]

    def __new__(cls, code: str, **params: Any) -> Absence:
        made = super().__new__(cls, absence(code, params, "en"))
        made.code, made.params = code, params
        return made

    def plain(self) -> dict[str, Any]:
        return {"code": self.code, "params": self.params}

    def worded(self, language: str) -> str:
        return absence(self.code, self.params, language)
