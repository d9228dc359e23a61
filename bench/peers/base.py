"""What a participant offers so that it can be measured. README.md says how to add one.

Rules that keep the comparison fair: `submit` returns when the participant has accepted the tasks in its own way, not
before; a participant is measured as it comes, and a tuned one says so in its `note`; what it cannot do it leaves out of
`can`, and the table shows a dash.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from scene import Scene
from tasks import Task


class Missing(Exception):
    """The participant cannot take part on this machine; says why."""


class Peer:
    name = "?"
    note = ""  # what a reader should know beside its figures
    can: frozenset[str] = frozenset()
    """hold: keeps a queue that cannot run yet · one: takes one job by its command · status: shows its queue by a
    command · multi: jobs of several GPUs · share: several jobs on a card by memory"""
    most_queued = 1_000_000
    seconds_per_task = 0.0  # beyond 0.1 it is given few tasks, and none where it would take minutes

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @classmethod
    def prepare(cls) -> None:
        """Installs or builds what is needed, in a place of our own; raises Missing."""

    def start(self, slots: int, held: bool = False) -> None:
        raise NotImplementedError

    def submit(self, tasks: list[Task]) -> None:
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError

    def one_argv(self, task: Task) -> list[str]:
        """The command that submits one task."""
        raise NotImplementedError

    def status_argv(self) -> list[str]:
        raise NotImplementedError

    def processes(self) -> list[int]:
        """All that waits together with the queue: daemons, helpers, clients; not the tasks."""
        return self.scene.members()

    def stop(self) -> None:
        """Asks it to end; the scene ends what remains."""


@contextmanager
def on_stage(kind: type[Peer], slots: int, held: bool = False) -> Iterator[Peer]:
    """A started participant in a scene of its own, gone afterwards whatever happens."""
    scene = Scene(kind.name)
    peer = kind(scene)
    try:
        peer.start(slots, held)
        yield peer
    finally:
        try:
            peer.stop()
        except Exception:  # it may never have started, or be gone: the scene ends what is left
            pass
        scene.close()


def found(program: str) -> str:
    path = shutil.which(program)
    if not path:
        raise Missing(f"{program} is not installed")
    return path
