"""Whether the engine's state is still where people look for it: homes are removed, moved, and hidden by others' directories."""

from __future__ import annotations

import sys

from jostle.engine.server import Server
from jostle.store.store import Store


class Whereabouts:
    def __init__(self, home: str, store: Store, server: Server) -> None:
        self.home, self.store, self.server = home, store, server
        self.trouble = ""

    def keep(self) -> bool:
        """Puts a missing socket back, but only where our state is: elsewhere it would take submits that nobody finds again.
        False: there is no way back."""
        trouble, lost = "", False
        if self.store.in_place():
            try:
                if not self.server.present():
                    self.server.reopen()
            except OSError as e:
                trouble = f"the socket in {self.home} cannot be put back ({e.strerror}): trying again"
        else:
            lost = self.store.lost()
            what = "was removed, or another is in its place: it takes nothing more and ends" if lost else (
                "is not in its place (moved, or not to be seen): nothing starts until it is back"
            )  # fmt: skip
            trouble = f"the state of this engine at {self.home} {what}"
        if trouble and trouble != self.trouble:
            print(trouble, file=sys.stderr, flush=True)
        self.trouble = trouble
        return not lost
