"""What a verb has at hand: a session, and the place where a person types and reads; that may also be a file or a pipe."""

from __future__ import annotations

import os
import sys

from jostle.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Terminal(Session):
    @property
    def interactive(self) -> bool:
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def colours(self) -> bool:
        return self.interactive and not os.environ.get("NO_COLOR")

    @property
    def width(self) -> int:
        """Columns to fill; a file or pipe takes lines of any length."""
        try:
            return os.get_terminal_size(1).columns or 80 if self.interactive else 10_000
        except OSError:
            return 10_000

    def put(self, text: str) -> None:
        """Data."""
        if not text.isprintable() and sys.stdout.isatty():
            from jostle.cli import screen

            text = screen.data(text)
        try:
            print(text)
        except UnicodeEncodeError:  # a terminal of an older alphabet, or a name that was never text
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "backslashreplace") + b"\n")

    def put_now(self, text: str) -> None:
        """… which is seen at once, also by who reads a pipe."""
        self.put(text)
        sys.stdout.flush()

    def put_json(self, value: Any) -> None:
        import json

        self.put(json.dumps(value, separators=(",", ":")))

    def spelled(self, option: str) -> str:
        return "--" + option.replace("_", "-")

    def say(self, text: str) -> None:
        """A message to the person."""
        sys.stdout.flush()
        if not text.isprintable():
            from jostle.cli import screen

            text = screen.message(text)
        try:
            print(text, file=sys.stderr, flush=True)
        except UnicodeEncodeError:
            print(text.encode("ascii", "backslashreplace").decode(), file=sys.stderr, flush=True)
