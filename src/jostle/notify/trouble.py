"""Why a message was not delivered: a code and its values, worded in wording.notices.

Rules: no value is ever a secret, nor text that a server chose freely: that may repeat ours. `whole`: it is the way that is in
trouble, so that no other message would come through either; else it is this one message.
"""

from __future__ import annotations

from typing import Any


class Undelivered(Exception):
    def __init__(self, code: str, /, *, whole: bool = True, wait: float | None = None, **params: Any) -> None:
        super().__init__(code)
        self.code, self.params = code, params
        self.whole = whole
        self.wait = wait  # s that whoever refused asks us to wait

    @property
    def plain(self) -> dict[str, Any]:
        return {"code": self.code, "params": self.params}
