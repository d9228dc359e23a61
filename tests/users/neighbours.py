"""Several users with real uids on one host: each with a home, an engine and jobs of their own, all on the same simulated cards.

Needs root, but makes no accounts: uids that nobody has are enough. The package is copied to where they can read it, and the first
Python is taken that they can run.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from jostle import client, proc

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60.0
CARDS = 8
SPEC = f"sim:{CARDS}x24"


def until(condition: Callable[[], Any], within: float = PATIENCE, every: float = 0.02) -> Any:
    end = time.monotonic() + within
    while True:
        got = condition()
        if got or time.monotonic() > end:
            return got
        time.sleep(every)


def free_uids(count: int) -> list[int]:
    """Uids without an account and without a process."""
    taken = {proc.uid(pid) for pid in proc.pids()}
    found: list[int] = []
    uid = 61_000 + os.getpid() % 900 * 5  # two runs of these tests side by side take different ones
    while len(found) < count:
        uid += 1
        with contextlib.suppress(KeyError):
            pwd.getpwuid(uid)
            continue
        if uid not in taken:
            found.append(uid)
    return found


def python_for(uid: int) -> str | None:
    """An interpreter that this user can run."""
    base = getattr(sys, "_base_executable", sys.executable)
    for path in dict.fromkeys((sys.executable, base, "/usr/bin/python3", "/usr/local/bin/python3")):
        code = "import sqlite3, sys; sys.exit(sys.version_info < (3, 10))"
        try:
            argv = [path, "-I", "-c", code]
            done = subprocess.run(argv, user=uid, group=uid, extra_groups=[], cwd="/", env={}, capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


@functools.cache
def readable_code(python: str) -> str:
    """The package and our programs, where everybody can read them and nobody write; made once for all tests of a run."""
    code = tempfile.mkdtemp(prefix="jostle-users-code-")
    atexit.register(shutil.rmtree, code, ignore_errors=True)
    source = os.path.dirname(os.path.abspath(client.__file__))
    shutil.copytree(source, f"{code}/jostle", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tenant.py", "tenant_job.py"):
        shutil.copy(f"{HERE}/{name}", code)
    for folder, _, files in os.walk(code):
        os.chmod(folder, 0o755)
        for name in files:
            os.chmod(os.path.join(folder, name), 0o644)
    # they may not write here: without this, each of their processes would compile the whole package for itself
    subprocess.run([python, "-I", "-m", "compileall", "-q", code], check=True, stdout=subprocess.DEVNULL)
    return code


class Tenant:
    """One user."""

    def __init__(self, town: Town, uid: int) -> None:
        self.town, self.uid = town, uid
        self.home = f"{town.root}/home-{uid}"
        os.mkdir(self.home, 0o700)
        os.chown(self.home, uid, uid)
        argv = [town.python, "-I", "-S", f"{town.code}/tenant.py", town.code]
        self.child = self.run(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.engine = 0

    def run(self, argv: list[str], **more: Any) -> subprocess.Popen[str]:
        """A process of this user."""
        env = {
            "PATH": os.environ["PATH"], "HOME": self.home, "JOSTLE_HOME": f"{self.home}/jostle", "TOWN": self.town.root,
            "JOSTLE_LEASE_DIR": self.town.leases, "JOSTLE_SIM_DIR": self.town.sim,
        }  # fmt: skip
        child = subprocess.Popen(argv, user=self.uid, group=self.uid, extra_groups=[], env=env, cwd="/", text=True, **more)
        self.town.children.append(child)
        return child

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(json.dumps({"op": op, **fields}) + "\n")
        self.child.stdin.flush()
        answer: dict[str, Any] = json.loads(self.child.stdout.readline())
        assert "failed" not in answer, answer
        return answer

    def start(self, gpus: str = SPEC) -> None:
        self.engine = self.call("start", gpus=gpus)["pid"]
        assert proc.uid(self.engine) == self.uid

    def submit(self, count: int, seconds: float, *more: str, gpus: int = 1) -> list[int]:
        argv = [self.town.python, "-I", "-S", f"{self.town.code}/tenant_job.py", self.town.evidence, str(seconds), *more]
        job = {"commands": [argv], "gpus": [gpus, gpus], "workdir": "/"}
        context = {"env": {"PATH": os.environ["PATH"], "TOWN": self.town.root}, "umask": 0o022, "limits": {}}
        first, last = self.call("submit", batch={"name": str(self.uid)}, context=context, jobs=[job] * count)["ids"]
        return list(range(first, last + 1))

    def events(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("events", kind=kind)["events"]
        return found

    def states(self) -> dict[str, str]:
        found: dict[str, str] = self.call("states")["states"]
        return found

    def all_succeeded(self) -> bool:
        return set(self.states().values()) == {"succeeded"}

    def claims(self) -> list[str]:
        """The names of this user's visible claims."""
        mine = []
        for name in os.listdir(self.town.leases):
            with contextlib.suppress(OSError):
                if name.startswith("jostle-") and os.lstat(f"{self.town.leases}/{name}").st_uid == self.uid:
                    mine.append(name)
        return mine


class Town:
    """What they share."""

    def __init__(self, users: int) -> None:
        self.uids = free_uids(users)
        self.root = tempfile.mkdtemp(prefix="jostle-users-")
        os.chmod(self.root, 0o755)
        self.code = ""
        self.leases, self.sim, self.evidence = (f"{self.root}/{n}" for n in ("leases", "sim", "evidence"))
        self.children: list[subprocess.Popen[str]] = []
        self.python = python_for(self.uids[0]) or ""
        self.tenants: list[Tenant] = []

    def open(self) -> None:
        self.code = readable_code(self.python)
        for path in (self.leases, self.sim, self.evidence):
            os.mkdir(path)
            os.chmod(path, 0o1777)
        self.tenants = [Tenant(self, uid) for uid in self.uids]

    def world(self, **script: Any) -> str:
        """Simulated cards with a script."""
        path = f"{self.root}/world.json"
        with open(path, "w") as f:
            json.dump({"gpus": {"count": CARDS, "total": "24GiB"}, **script}, f)
        os.chmod(path, 0o644)
        return f"sim:{path}"

    def journal(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for name in os.listdir(self.evidence):
            if name.startswith("journal-"):
                with open(f"{self.evidence}/{name}") as f:
                    lines += map(json.loads, f)
        return sorted(lines, key=lambda line: line["at"])

    def left(self) -> list[int]:
        """Living processes of these uids: nobody else has them."""
        found = []
        for pid in proc.pids():
            stat = proc.stat(pid)
            if proc.uid(pid) in self.uids and stat is not None and stat.state not in "ZX":
                found.append(pid)
        return found

    def close(self) -> None:
        def fell() -> bool:
            for pid in self.left():
                with contextlib.suppress(OSError):
                    pidfd = os.pidfd_open(pid)
                    with contextlib.closing(os.fdopen(pidfd, "rb", 0)):
                        if proc.uid(pid) in self.uids:
                            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            return not self.left()

        until(fell)
        for child in self.children:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        shutil.rmtree(self.root, ignore_errors=True)


def overlaps(lines: list[dict[str, Any]]) -> list[str]:
    """Two on one card: seen by the jobs themselves, or by their times."""
    seen = [line for line in lines if line["kind"] == "overlap"]
    found = [f"card {line['card']} was not free for job {line['job']} of {line['uid']}" for line in seen]
    on: dict[str, tuple[int, int]] = {}
    for line in lines:
        who = (line["uid"], line["job"])
        for card in line.get("cards", ()):
            if line["kind"] == "start":
                if card in on:
                    found.append(f"{who} started on card {card} while {on[card]} was there")
                on[card] = who
            elif line["kind"] == "end" and on.get(card) == who:
                del on[card]
    return found


@contextlib.contextmanager
def town(users: int) -> Iterator[Town]:
    whole = Town(users)
    try:
        whole.open()
        yield whole
    finally:
        whole.close()
