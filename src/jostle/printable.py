"""Text from anybody as one line that can be kept, named by and written anywhere: what cannot be printed is a space."""

from __future__ import annotations


def one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
