"""A person's way to their jobs: their home, a reader of its store, a client of its engine, their language, and their ear.

Everything is fetched when it is first used, so that nobody pays for more than they need. The session of the command line is
cli.terminal; a program hears what is said as warnings.
"""

from __future__ import annotations

import os

from jostle.address import DOWN
from jostle.errors import NoEngine, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jostle.client import Client
    from jostle.store.reads import Reader


class Session:
    def __init__(self, *, only_warn: bool = False) -> None:
        self.only_warn = only_warn  # this verb uses a home, too, in whose place others could put another
        self._home = ""
        self._reader: Reader | None = None
        self.starts_engine = True  # where one is needed and none runs

    @property
    def home(self) -> str:
        if not self._home:
            from jostle.config import home

            self._home = home(only_warn=self.only_warn, tell=self.tell)
        return self._home

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            from jostle.store.reads import Reader

            self._reader = Reader(self.home)
            if (lost := self._reader.lost()) is not None:
                self.say(lost)
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def client(self, *, start: bool = True, gpus: str | None = None) -> Client:
        from jostle.client import connect

        return connect(self.home, start=start and self.starts_engine, gpus=gpus, tell=self.tell, language=self.language)

    def client_again(self, *, gpus: str | None = None) -> Client:
        """For who follows and has lost the engine: it is started again, but not one that a person has stopped."""
        stopped = os.path.lexists(os.path.join(self.home, DOWN))
        try:
            return self.client(start=not stopped, gpus=gpus)
        except NoEngine as e:
            raise Stopped(f"the engine of {self.home} was stopped by `jostle down`") if stopped else e from None

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

    def engine_answers(self) -> bool:
        """The same; one that is there and does not answer is told of."""
        from jostle.client import Lost, Silent

        client = self.engine_if_any()
        if client is None:
            return False
        try:
            client.call("hello")
        except Silent:
            pass  # it has been said, and it may go on
        except Lost:
            return False
        finally:
            client.close()
        return True

    @property
    def language(self) -> str:
        env = os.environ
        chosen = env.get("JOSTLE_LANG") or env.get("LC_ALL") or env.get("LC_MESSAGES") or env.get("LANG") or ""
        return "zh" if chosen.lower().startswith("zh") else "en"

    def message(self, code: str, /, **values: Any) -> str:
        """The words of wording.messages in the person's language."""
        from jostle.wording.text import message

        return message(code, self.language, **values)

    def spelled(self, option: str) -> str:
        """How what a program calls so is called where the person said it."""
        return option

    def tell(self, code: str, /, **values: Any) -> None:
        self.say(self.message(code, **values))

    def say(self, text: str) -> None:
        """A message to the person, in words."""
        import warnings

        warnings.warn(text, stacklevel=2)
