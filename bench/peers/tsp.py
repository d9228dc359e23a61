"""task-spooler: a queue with slots in C. One client process waits for each queued job; it knows slots, not GPUs."""

from __future__ import annotations

from peers.base import Peer
from peers.install import from_debian
from scene import command
from tasks import Task


class TaskSpooler(Peer):
    name = "tsp"
    note = "task-spooler (Debian): counts slots, knows no GPUs, forgets all when its server ends"
    can = frozenset({"hold", "one", "status", "multi"})
    most_queued = 800  # a little under 1,000 waiting clients the next submit blocks: it uses select()

    @classmethod
    def prepare(cls) -> None:
        cls.program = from_debian("task-spooler", "tsp")

    def start(self, slots: int, held: bool = False) -> None:
        self.slots = slots
        self.blocker: str | None = None
        self.scene.env.update(
            TS_SOCKET=self.scene.path("socket"),
            TS_SLOTS="1" if held else str(slots),
            TS_MAXCONN="2000",
            TS_MAXFINISHED="10000",
            TMPDIR=self.scene.dir,
        )
        self.scene.run(["sh", "-c", 'ulimit -n 4096; exec "$0" -S', self.program])
        if held:
            self.blocker = self.scene.run([self.program, "-n", "sleep", "3600"]).decode().strip()

    def submit(self, tasks: list[Task]) -> None:
        for task in tasks:
            self.scene.timed(self.one_argv(task))

    def one_argv(self, task: Task) -> list[str]:
        return [self.program, "-n", "-N", str(task.gpus), *task.argv()]

    def release(self) -> None:
        self.scene.run([self.program, "-S", str(self.slots)])
        self._unblock()

    def status_argv(self) -> list[str]:
        return [self.program, "-l"]

    def processes(self) -> list[int]:
        return [pid for pid in super().processes() if command(pid).startswith(self.program)]

    def stop(self) -> None:
        self._unblock()
        self.scene.run([self.program, "-K"], timeout=10)

    def _unblock(self) -> None:
        if self.blocker is not None:
            self.scene.run([self.program, "-k", self.blocker])
            self.blocker = None
