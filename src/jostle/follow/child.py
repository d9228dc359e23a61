"""A command that runs as a child of ours, on cards that it does not have yet: it exists before they are asked for, so that they
can be tied to it, and begins when they are there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence

from jostle.errors import INTERRUPTED

FORWARDED = (signal.SIGTERM, signal.SIGHUP)


class WaitingChild:
    """A process that will become a command, or nothing if we die first. It is made before there are threads."""

    def __init__(self, command: Sequence[str]) -> None:
        heard, self._say = os.pipe()
        self._gone = False
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._say)
            _become(command, heard)
        os.close(heard)

    def go(self, env: dict[str, str]) -> int:
        """Its exit code, as a shell gives it. Ctrl-C is for the command."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
        before |= {number: signal.signal(number, lambda n, _: os.kill(self.pid, n)) for number in FORWARDED}
        os.write(self._say, json.dumps(env).encode())
        os.close(self._say)
        self._say = -1
        _, status = os.waitpid(self.pid, 0)
        self._gone = True
        for number, handler in before.items():
            signal.signal(number, handler)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        if self._say >= 0:
            os.close(self._say)
            self._say = -1
        if not self._gone:
            os.waitpid(self.pid, 0)


def _become(command: Sequence[str], heard: int) -> None:
    """Never returns."""
    try:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
        with open(heard, "rb") as pipe:
            message = pipe.read()
        if not message:
            os._exit(INTERRUPTED)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for number, handler in before.items():  # who was started deaf to them (nohup) stays so
            signal.signal(number, signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)
        os.environ.update(json.loads(message))
        os.execvp(command[0], list(command))
    except OSError as e:
        os.write(2, f"jostle: {command[0]}: {e.strerror}\n".encode("utf-8", "backslashreplace"))
        os._exit(127 if isinstance(e, FileNotFoundError) else 126)
    finally:
        os._exit(1)
