"""What a verb has at hand: this home, a reader of the store, a client of the engine, and the person's terminal.

Everything is fetched when it is first used, so that a verb pays only for what it needs; tests hand in another desk.
"""

from __future__ import annotations

import os
import sys

from jostle.errors import NoEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jostle.client import Client
    from jostle.store.reads import Reader


class Desk:
    def __init__(self, *, only_warn: bool = False) -> None:
        self.only_warn = only_warn  # this verb uses a home, too, in whose place others could put another
        self._home = ""
        self._reader: Reader | None = None

    @property
    def home(self) -> str:
        if not self._home:
            from jostle.config import home

            self._home = home(only_warn=self.only_warn)
        return self._home

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            from jostle.store.reads import Reader

            self._reader = Reader(self.home)
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def client(self, *, start: bool = True, gpus: str | None = None) -> Client:
        from jostle.client import connect

        return connect(self.home, start=start, gpus=gpus)

    def engine_if_any(self) -> Client | None:
        """For verbs that also work without one."""
        try:
            return self.client(start=False)
        except NoEngine:
            return None

    def engine_runs(self) -> bool:
        client = self.engine_if_any()
        if client is not None:
            client.close()
        return client is not None

    def no_engine(self) -> str:
        """What to think of unfinished jobs that nobody looks after."""
        if self.language == "zh":
            return "引擎没有运行：以下是上一个引擎结束时的状态；用 `jostle up` 继续"
        return "no engine runs: this is how it was when the last one ended; `jostle up` goes on"

    @property
    def language(self) -> str:
        env = os.environ
        chosen = env.get("JOSTLE_LANG") or env.get("LC_ALL") or env.get("LC_MESSAGES") or env.get("LANG") or ""
        return "zh" if chosen.lower().startswith("zh") else "en"

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def colours(self) -> bool:
        return self.terminal and not os.environ.get("NO_COLOR")

    @property
    def width(self) -> int:
        """Columns to fill; a file or pipe takes lines of any length."""
        try:
            return os.get_terminal_size(1).columns or 80 if self.terminal else 10_000
        except OSError:
            return 10_000

    def put(self, text: str) -> None:
        """Data."""
        if not text.isprintable():
            text = self._fit_for_screen(text)
        try:
            print(text)
        except UnicodeEncodeError:  # a terminal of an older alphabet, or a name that was never text
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "backslashreplace") + b"\n")

    def _fit_for_screen(self, text: str) -> str:
        if not sys.stdout.isatty():
            return text
        from jostle.cli import screen

        return screen.data(text)

    def put_json(self, value: Any) -> None:
        import json

        self.put(json.dumps(value, separators=(",", ":")))

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
