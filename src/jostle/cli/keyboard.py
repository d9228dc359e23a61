"""The person at a terminal, who is asked what one Ctrl-C is to do: cancel a night's work, detach or go on."""

from __future__ import annotations

import os
import select

from jostle.cli.terminal import Terminal
from jostle.follow.followed import CANCEL, DETACH, GO_ON

WORDS = {"c": CANCEL, "d": DETACH, "g": GO_ON, "": GO_ON}


class Keyboard:
    """Is asked only where a person can see the question and answer it."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.typed = ""  # since the question, up to the end of its line

    def there(self) -> bool:
        """Whether there is a person at the screen and at the keyboard, and both are ours now."""
        try:
            return self.terminal.interactive and os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return False

    def ask(self, batch: int) -> None:
        self.typed = ""
        self.terminal.put_now(self.terminal.message("ask", batch=batch))

    def answer(self, batch: int) -> str:
        """What is there of one; what is not understood is asked for again."""
        try:
            if not select.select([0], [], [], 0)[0]:
                return ""
            more = os.read(0, 4096).decode("utf-8", "replace")
        except OSError:
            more = ""  # the keyboard has gone
        self.typed += more
        if more and "\n" not in self.typed:
            return ""
        answer = WORDS.get(self.typed.strip().lower()[:1], "")
        if not answer:
            self.ask(batch)
        return answer
