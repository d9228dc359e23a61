"""What a terminal is given of text that came from anywhere: nothing that it would obey but colours and the erasing of a line.

Titles, the clipboard, cursor reports and other answers of a terminal are out of reach for names, errors and logs. Data that goes
to a file or a pipe is passed on as it is.
"""

from __future__ import annotations

import codecs
import re

GONE = "�"
# C1 controls also come as single bytes, which a decoder of UTF-8 shows as U+DC80 to U+DC9F (surrogateescape)
_C1 = "\x7f-\x9f\udc80-\udc9f"
_OBEYED = re.compile(rf"\x1b(?!\[[0-9;]*[mK])|[\x00-\x06\x0e-\x1a\x1c-\x1f{_C1}]")
_UNFINISHED = re.compile(r"\x1b(\[[0-9;]{0,30})?\Z")


def message(text: str) -> str:
    """Lines for a person: no control characters at all."""
    return "".join(c if c.isprintable() or c in "\n\t" else GONE for c in text)


def data(text: str) -> str:
    """What a verb prints, our own colours in it."""
    return _OBEYED.sub(GONE, text)


class LogFilter:
    """A log as it grows. What may be the beginning of something is kept back until the next piece tells what it is."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._kept = ""

    def feed(self, piece: bytes) -> bytes:
        text = self._kept + self._decoder.decode(piece)
        unfinished = _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._kept = text[end:]
        return _OBEYED.sub("?", text[:end]).encode("utf-8", "surrogateescape")
