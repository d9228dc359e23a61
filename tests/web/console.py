"""A console of its own for a test: a real engine with simulated cards, the real web process, real HTTP on a port of the system's.

What is sent can be said to the byte, for half of the tests are attacks.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.instance import PATIENCE, Instance


@contextlib.contextmanager
def kept(port: int = 0) -> Iterator[int]:
    """A port at which nobody listens, and that nobody else gets meanwhile; a console can be opened there."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        yield one.getsockname()[1]


class Told(NamedTuple):
    status: int
    heads: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Console:
    def __init__(
        self, root: Path, gpus: str | None = "sim:4x24", workspace: Path | None = None, words: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        self.instance = Instance(root)
        self.words = words
        self.workspace = workspace
        if gpus:
            self.instance.up(gpus)
            self.instance.see_cards()
        self.open()

    @classmethod
    def on(cls, instance: Instance, port: int) -> Console:
        """One that runs already; who started it ends it."""
        self = cls.__new__(cls)
        self.instance, self.port, self.token = instance, port, instance.ok("web", "--token").strip()
        return self

    def open(self, port: int = 0) -> None:
        words = ["web", *([str(self.workspace)] if self.workspace else []), "--port", str(port), *self.words]
        self.url = self.instance.ok(*words).strip()
        self.port = int(re.search(r":(\d+)/", self.url)[1])  # type: ignore[index]
        self.token = self.instance.ok("web", "--token").strip()

    def new_code(self) -> str:
        return self.instance.ok("web", "--url").strip().partition("#code=")[2]

    @property
    def pid(self) -> int:
        return int(re.search(r"pid (\d+)", self.instance.ok("web", "--list"))[1])  # type: ignore[index]

    def ask(
        self, method: str, path: str, body: Any = None, *, heads: dict[str, str] | None = None, raw: bytes | None = None
    ) -> Told:  # fmt: skip
        """One call, with these headers and no other; a body is sent as JSON."""
        sent = {} if body is None else {"Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            text = raw if raw is not None else json.dumps(body) if body is not None else None
            connection.request(method, path, text, {**sent, **(heads or {})})
            answer = connection.getresponse()
            return Told(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def script(self, method: str, path: str, body: Any = None, *, token: str | None = None, **heads: str) -> Told:
        """With the token, as a script does it."""
        return self.ask(method, path, body, heads={"Authorization": f"Bearer {token or self.token}", **heads})

    def get(self, path: str) -> Any:
        told = self.script("GET", path)
        assert told.status == 200, (path, told)
        return told.json

    def post(self, path: str, body: Any = None) -> Any:
        told = self.script("POST", path, body)
        assert told.status == 200, (path, told)
        return told.json

    @staticmethod
    def at_once(calls: Sequence[Callable[[], Told]]) -> list[Told]:
        """The answers to calls that are made side by side: each may have to wait for something."""
        with ThreadPoolExecutor(len(calls)) as callers:
            return [begun.result() for begun in [callers.submit(call) for call in calls]]

    def log_in(self, password: str | None = None) -> dict[str, str]:
        """The headers that a page sends from then on."""
        told = self.ask("POST", "/api/auth/login", {"password": password or self.token})
        assert told.json["success"], told
        return {"Cookie": told.heads["set-cookie"].partition(";")[0], "X-Jostle-Key": told.json["key"]}

    def bytes(self, sent: bytes, *, until_closed: bool = True) -> bytes:
        """What comes back for these very bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as sock:
            sock.sendall(sent)
            got = b""
            while until_closed or b"\r\n\r\n" not in got:
                part = sock.recv(65536)
                if not part:
                    break
                got += part
            return got

    def close(self) -> None:
        try:
            self.instance.ok("web", "--stop")
        finally:
            self.instance.close()
