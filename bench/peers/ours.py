"""jostle itself, with simulated GPUs and a home of its own; everything it does for safety is on.

The queue is held by excluding every GPU and released by including them again, as a person would do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

from peers.base import Missing, Peer
from scene import MARK, TooSlow, children, command, end_marked, until
from tasks import HERE, Task

SOURCE = os.path.join(os.path.dirname(HERE), "src")
Answer = dict[str, Any]


class Jostle(Peer):
    name = "jostle"
    note = "all features on: durable commits, shims, leases, ledger, logs per run"
    can = frozenset({"hold", "one", "status", "multi", "share"})
    gib = 24  # of each simulated card

    @classmethod
    def prepare(cls) -> None:
        beside = os.path.join(os.path.dirname(sys.executable), "jostle")
        cls.program = [beside] if os.path.exists(beside) else [sys.executable, "-m", "jostle"]
        env = os.environ | ({} if len(cls.program) == 1 else {"PYTHONPATH": SOURCE})
        done = subprocess.run([*cls.program, "--version"], capture_output=True, text=True, timeout=30, env=env)
        if done.returncode:
            raise Missing(f"{' '.join(cls.program)} does not start: {(done.stderr.strip().splitlines() or [''])[-1]}")

    def start(self, slots: int, held: bool = False) -> None:
        self.slots = slots
        self.home = self.scene.path("home")
        self.scene.env["JOSTLE_HOME"] = self.home
        # in memory, as on servers, where /run/lock is a tmpfs: a claim is a file that is made and removed for each run
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else self.scene.dir
        self.leases = tempfile.mkdtemp(prefix="jb-leases-", dir=memory)
        self.scene.env["JOSTLE_LEASE_DIR"] = self.leases
        self.scene.env["JOSTLE_WEB"] = "off"
        if len(self.program) > 1:
            self.scene.env["PYTHONPATH"] = SOURCE
        self.up()
        if held:
            self.exclude(True)

    def up(self) -> None:
        self.scene.run([*self.program, "up", "--gpus", self.gpus()], timeout=30)
        self.pid = int(self.ask({"op": "hello"})["pid"])

    def gpus(self) -> str:
        return f"sim:{self.slots}x{self.gib}"

    def exclude(self, on: bool) -> None:
        until(lambda: len(self.ask({"op": "gpus"})["gpus"]) == self.slots, 10.0, "the first look at the GPUs")
        self.ask({"op": "exclude", "gpus": list(range(self.slots)), "on": on})

    def release(self) -> None:
        self.exclude(False)

    def submit(self, tasks: list[Task]) -> None:
        self.ask(self.request(tasks))

    def add(self, tasks: list[Task]) -> None:
        """One by one, into the standing batch, as `jostle add` does."""
        for task in tasks:
            request = self.request([task])
            request["batch"].update(key="bench", join=True)
            self.ask(request)

    def request(self, tasks: list[Task]) -> Answer:
        # the tasks need no more than this of their surroundings, and the mark by which the scene knows its own
        env = {name: value for name, value in self.scene.env.items() if name in ("PATH", "HOME", MARK)}
        return {
            "op": "submit",
            "batch": {"key": None, "name": "bench", "owner": None, "policy": {}},
            "context": {"env": env, "umask": 18, "limits": {}},
            "jobs": [self.job(task) for task in tasks],
            "once": None,
        }

    def job(self, task: Task) -> Answer:
        return {
            "name": f"t{task.number}",
            "queue": None,
            "commands": [task.argv()],
            "gpus": [task.gpus, task.gpus],
            "memory_mib": task.mib,
            "share": task.mib is not None,
            "env": {},
            "workdir": self.scene.dir,
            "log": None,
            "priority": 0,
            "needs": [],
            "begin": None,
            "time_limit": None,
            "retry": None,
            "tags": [],
            "leftovers": "kill",
        }

    def ask(self, request: Answer, seconds: float = 60.0) -> Answer:
        return self.ask_raw(json.dumps(request).encode() + b"\n", seconds)

    def ask_raw(self, line: bytes, seconds: float = 60.0) -> Answer:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(seconds)
            s.connect(os.path.join(self.home, "engine.sock"))
            s.sendall(line)
            with s.makefile("rb") as answers:
                answer: Answer = json.loads(answers.readline())
        if not answer.get("ok"):
            raise RuntimeError(f"the engine refused: {answer.get('error')}")
        return answer

    def answers(self) -> bool:
        try:
            return bool(self.ask({"op": "hello"}, 5.0))
        except (OSError, ValueError):
            return False

    def queued(self) -> int:
        return int(self.ask({"op": "hello"})["counts"].get("queued", 0))

    def ticks(self) -> tuple[int, float]:
        """How many the engine has made, and the seconds that they took."""
        told = self.ask({"op": "hello"})["tally"]["ticks"]
        return sum(told["counts"]), float(told["sum_s"])

    def one_argv(self, task: Task) -> list[str]:
        return [*self.program, "add", "--", *task.argv()]

    def file_argv(self, path: str) -> list[str]:
        return [*self.program, "run", "--detach", path]

    def status_argv(self) -> list[str]:
        return [*self.program, "ps"]

    def crash(self) -> None:
        """Kills the engine as a power cut would; its runs stay."""
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: not command(self.pid), 5.0, "the end of the engine")

    def processes(self) -> list[int]:
        """Engine, probe, fork server and spare shims: all that this home keeps alive when no job runs."""
        mine = set(super().processes())
        todo = [self.pid]
        while todo:
            pid = todo.pop()
            mine.add(pid)
            todo += [kid for kid in children(pid) if kid not in mine]
        return sorted(mine)

    def stop(self) -> None:
        try:
            self.ask({"op": "down", "stop_jobs": True, "now": True}, 10.0)
            until(lambda: not command(self.pid), 10.0, "down")
        except (OSError, ValueError, RuntimeError, TooSlow):
            end_marked(self.pid, self.scene.mark)  # the scene ends the rest
        finally:
            shutil.rmtree(self.leases, ignore_errors=True)


class JostleSharing(Jostle):
    """The same on cards that several jobs share, for the trace whose jobs ask for up to 72 GiB."""

    name = "jostle-share"
    gib = 80


class JostleLate(Jostle):
    """The same on cards that show a job's memory for a while after its end, as drivers do."""

    name = "jostle-late"
    free_lag = 0.2  # s

    def gpus(self) -> str:
        path = self.scene.path("late.json")
        with open(path, "w") as f:
            json.dump({"gpus": {"count": self.slots, "total": "24GiB"}, "runs": {"free_lag": self.free_lag}}, f)
        return f"sim:{path}"


def job_file(path: str, tasks: list[Task]) -> None:
    """The same tasks as a job file of ours, as a person would write it."""
    with open(path, "w") as f:
        f.write("jobs:\n")
        for task in tasks:
            f.write(f"  - name: t{task.number}\n    run: {' '.join(task.argv())}\n")
