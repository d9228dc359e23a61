"""The text of a file that a person wrote with whatever editor they have.

Rules: UTF-8 is read silently (with a BOM or without). UTF-16 with its mark, as Windows writes it, and GB18030 (GBK), as Chinese
systems write it, are read with a warning. Anything else is a Flaw. Line ends stay as they are.
"""

from __future__ import annotations

import codecs

from jostle.formats import yamlfile
from jostle.formats.nodes import Flaw
from jostle.wording.flaws import flaw


def read(path: str, expected: str) -> tuple[str, str]:
    """The text without its BOM, and a warning about its encoding or nothing."""
    text, encoding = decoded(yamlfile.bytes_of(path, expected))
    warning = flaw("read_as", encoding=encoding) if encoding != "UTF-8" else ""
    return text, warning


def decoded(raw: bytes) -> tuple[str, str]:
    """The text and the name of its encoding."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return raw.decode("utf-16"), "UTF-16"
        except UnicodeDecodeError:
            raise Flaw(0, flaw("not_utf16")) from None
    try:
        return raw.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        if _damaged(raw):
            raise Flaw(line, flaw("not_utf8")) from None
        try:
            return raw.decode("gb18030"), "GB18030"
        except UnicodeDecodeError:
            raise Flaw(line, flaw("no_encoding")) from None


def _damaged(raw: bytes) -> bool:
    """Whether this is UTF-8 with a few wrong bytes: as GB18030 it would give other commands than were meant."""
    beyond = [c for c in raw.decode("utf-8", "replace") if c > "\x7f"]
    return beyond.count("\ufffd") * 2 < len(beyond)
