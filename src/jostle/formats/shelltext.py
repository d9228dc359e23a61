"""Where the places of a shell text stand, as bash reads it: which quotes are around each.

Rules: what cannot be followed for certain up to the last place is refused (`Unclear`), never guessed: a wrong guess would have
bash execute a value. So here-documents, backquotes, `$'…'`, `case` inside of `$( )`, places inside of `${ }`, of arithmetic or of
a comment, and the like. What comes after the last place changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Slot = tuple[int, int, bool]  # from, to, whether it is filled with words that are quoted already

_PLAIN_PARAMETER = re.compile(r"\$\{[A-Za-z0-9_#!@*?-][^'\"\\`${}()\n]*\}")
_NAME = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_ARITHMETIC = re.compile(r"\$?\(\([\w\s+*/%<>=!&|^~?:,;$-]*\)\)")
_PLAIN_ARRAY = re.compile(r"=\([\w\s./:,@%+=$-]*\)")  # after an error in another one bash goes on with the next line
_PLAIN_COPY = re.compile(r"[<>]&[ \t]*(?:[0-9]+-?|-)(?=[\s;&|()<>]|$)")  # the word of any other bash expands twice
_ARITHMETIC_TEST = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v)\s")
_BREAKS = " \t\n;&|()<>"
_IN_SUBSTITUTION = {"(": "parentheses", "#": "a comment"}  # inside of $( ): what may hide its end


class Unclear(Exception):
    """Nobody can tell for certain how bash reads what follows."""


def quotes(text: str, places: Sequence[Slot]) -> list[str]:
    """For each place (ascending): `'` or `"`, the quotes it stands in; outside of them `word` (it begins a word), `inner`, or
    `always` (only quotes keep bash from reading more into it). `raw`: words, outside of quotes."""
    reader = _Reader(text, places)
    while len(reader.quotes) < len(places):
        reader.step()
    return reader.quotes


def open_end(text: str) -> str:
    """Why no words can be added at the end of this text; empty if they can."""
    try:
        (quote,) = quotes(text, [(len(text), len(text), True)])
    except Unclear as e:
        return str(e)
    return "" if quote == "raw" else "quotes that are not closed"


class _Reader:
    def __init__(self, text: str, places: Sequence[Slot]) -> None:
        self.text, self.places = text, places
        self.quotes: list[str] = []
        self.inside = [""]  # "", '"' or "$(", the innermost last
        self.k = 0
        self.fresh = True  # a word would begin here
        self.special = False  # the word so far has a character that gives others a meaning
        self.around: list[bool] = []  # `special` of the words around each $( )
        self.after_words = -1  # where a place with words ended: it may be empty

    def at(self) -> int:
        """Where the next place is; beyond the text if there is none."""
        return self.places[len(self.quotes)][0] if len(self.quotes) < len(self.places) else len(self.text) + 1

    def step(self) -> None:
        text, k, top = self.text, self.k, self.inside[-1]
        if k == self.at():
            self._place(top)
        elif k >= len(text):
            raise Unclear("quotes that are not closed")  # cannot be: every place lies in the text
        elif text[k] == "\\":
            if self.at() == k + 1:
                raise Unclear("a backslash directly before a value")
            if text[k + 1 : k + 2] != "\n":
                self.fresh = False
            elif text[k - 1 : k].strip(" \t") and text[k + 2 : k + 3].strip(" \t"):
                raise Unclear("a line that goes on in the middle of a word")  # or of an operator: `<`, backslash, newline, `<`
            self.k += 2
        elif text[k] == "`":
            raise Unclear("backquotes (`…`)")
        elif text[k] == "$":
            self.fresh = False
            self._dollar(top)
        elif text[k] == '"':
            self.inside.pop() if top == '"' else self.inside.append('"')
            self.fresh = False
            self.k += 1
        elif top == '"':
            self.k += 1
        else:
            self._bare(text[k], top)

    def _place(self, top: str) -> None:
        _, end, words = self.places[len(self.quotes)]
        if top == '"':
            quote = '"'
        elif words:
            quote, self.after_words = "raw", end
        elif self.special or self.text[end : end + 1] in ("<", ">", "("):
            quote = "always"
        else:
            quote = "word" if self.fresh else "inner"
        self.quotes.append(quote)
        self.fresh = False
        self.k = end

    def _dollar(self, top: str) -> None:
        """Takes what begins with `$`."""
        text, k = self.text, self.k
        if text.startswith("$((", k):
            self._skip(_PLAIN_ARITHMETIC, "arithmetic ($((…)))")
        elif text.startswith("$(", k):
            self.inside.append("$(")
            self.around.append(self.special)
            self.k += 2
            self._word_begins()
        elif text.startswith("${", k):
            self._skip(_PLAIN_PARAMETER, "a value, quotes or braces inside of ${…}")
        elif text.startswith("$[", k):
            raise Unclear("arithmetic ($[…])")
        elif top != '"' and text[k + 1 : k + 2] in ("'", '"'):
            raise Unclear(f"quotes of the form ${text[k + 1]}…{text[k + 1]}")
        elif (name := _NAME.match(text, k)) is not None:
            if name.end() == self.at():
                raise Unclear(f"a value directly after {name[0]} (write ${{{name[0][1:]}}})")
            self.k = name.end()
        else:
            self.k += 1

    def _skip(self, pattern: re.Pattern[str], what: str) -> None:
        match = pattern.match(self.text, self.k)
        if match is None or match.end() > self.at():
            raise Unclear(what)
        self.k = match.end()

    def _bare(self, c: str, top: str) -> None:
        """Outside of quotes."""
        text, k = self.text, self.k
        begins = self.fresh
        if top == "$(" and (c == "(" or (begins and _hides(text, k))):
            raise Unclear(f"{_IN_SUBSTITUTION.get(c) or _word(text, k)} inside of $( )")
        if c == "'":
            self._single()
        elif c == "#" and (begins or k == self.after_words):
            self._comment()
        elif text.startswith("<<<", k):
            self.k += 3
            self._word_begins()
        elif text.startswith("<<", k):
            raise Unclear("a here-document (<<)")
        elif text.startswith((">&", "<&"), k):
            self._skip(_PLAIN_COPY, "a redirection of the form >&word (write &>word)")
            self._word_begins()
        elif text.startswith("=(", k):
            self._skip(_PLAIN_ARRAY, "an array (=(…)) with values, quotes or operators")
            self.fresh = False
        elif text.startswith("((", k):
            self._skip(_PLAIN_ARITHMETIC, "arithmetic, or doubled parentheses")
        elif begins and text.startswith("[[", k) and self._computes():
            raise Unclear("a value in an arithmetic test ([[ … -eq … ]])")
        elif c in _BREAKS:
            if c == ")" and top == "$(":
                self.inside.pop()
                self.fresh, self.special = False, self.around.pop()  # what follows belongs to the word around it
            else:
                self._word_begins()
            self.k += 1
        else:
            self.fresh = False
            self.special = self.special or c in "{[~"
            self.k += 1

    def _word_begins(self) -> None:
        self.fresh, self.special = True, False

    def _single(self) -> None:
        """From one `'` to the next."""
        end = self.text.find("'", self.k + 1)
        end = end if end >= 0 else len(self.text)
        while self.at() <= end and self.at() > self.k and len(self.quotes) < len(self.places):
            self.quotes.append("'")
        self.fresh = False
        self.k = end + 1

    def _comment(self) -> None:
        if self.k == self.after_words:
            raise Unclear("# directly after {args}")
        end = self.text.find("\n", self.k)
        end = end if end >= 0 else len(self.text)
        if self.at() <= end:
            raise Unclear("a comment (#) before a value")
        self.k = end

    def _computes(self) -> bool:
        end = self.text.find("]]", self.k)
        end = end if end >= 0 else len(self.text)
        return self.at() < end and _ARITHMETIC_TEST.search(self.text, self.k, end) is not None


def _word(text: str, k: int) -> str:
    end = k
    while end < len(text) and text[end] not in _BREAKS:
        end += 1
    return text[k:end]


def _hides(text: str, k: int) -> bool:
    return text[k] == "#" or _word(text, k) in ("case", "[[")
