"""Where an engine listens, and by which files of a home it and the notifier beside it are found."""

from __future__ import annotations

import os

SOCKET, LOCK, LOG = "engine.sock", "engine.lock", "engine.log"
NOTIFIER_LOCK = "notify/lock"
UP, DOWN = "up", "down"
"""A person's last word about the engine lies in the home as a file of that name. After `up` each one that is started stays; after
`down` none is started by who only follows jobs, until a verb starts one."""


class address:
    """A path for bind and connect that is never too long: beyond 107 bytes it leads through a descriptor of its directory."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, SOCKET)
        self.fd = -1
        if len(os.fsencode(self.path)) > 107:
            self.fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.path = f"/proc/self/fd/{self.fd}/{SOCKET}"

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)
