"""One jostle of its own for a test: the real command line, the real engine, real processes, in a directory that nobody else uses.

Rules: whatever happens is waited for as a condition with a deadline. At the end the engine is gone and so is every process that
was started under this home; what had to be ended by force is an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jostle import config, proc
from jostle.backends.local.outside import runs_of
from jostle.client import Client, attempt, connect, wait_gone
from jostle.errors import NoEngine
from jostle.store.reads import Reader
from jostle.wording.sentences import worded

PATIENCE = 60.0  # s; only something broken takes so long
FINAL = ("succeeded", "failed", "cancelled", "skipped")
SOURCE = str(Path(__file__).parents[2] / "src")


def until(condition: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """What the condition gave when it held."""
    deadline = time.monotonic() + patience
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what or condition}")
        time.sleep(0.01)


def hears_all() -> None:
    """In a child: a nohup or a shell's `&` around these tests makes nobody deaf who is under test."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def listening(child: subprocess.Popen[str]) -> None:
    """Until a client that follows a batch has told of a start: from then on it hears signals."""
    assert child.stdout is not None
    for line in child.stdout:
        if "started" in line:
            return
    raise AssertionError(f"it ended without a word of a start: {child.stderr and child.stderr.read()}")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def _works_in(pid: int, root: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(root)
    except OSError:
        return False  # gone, or not ours


def remove(place: Path) -> None:
    """A directory in which processes make and remove things meanwhile."""
    until(lambda: shutil.rmtree(place, ignore_errors=True) or not place.exists(), f"{place} is gone")


def modes(root: Path) -> dict[Path, int]:
    """Of all that lies there, and of the place itself; what goes away while we look is left out."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                found[path] = path.lstat().st_mode
    return found


def said(reason: dict[str, Any] | None) -> str:
    """A reason as it is read; the store and the engine have codes and numbers."""
    return str(worded(reason, "en")["text"]) if reason else ""


class Instance:
    """A home, what was started for it, and the verbs."""

    def __init__(self, root: Path, **env: str) -> None:
        self.root = root
        self.home = root / "home"
        self.work = root / "work"
        self.work.mkdir(parents=True)
        self.children: list[subprocess.Popen[str]] = []
        self._reader: Reader | None = None
        self._inode = 0
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("JOSTLE_", "CUDA_", "LC_", "XDG_"))}
        self.env = {**kept, "JOSTLE_HOME": str(self.home), "PYTHONPATH": SOURCE, "LANG": "C.UTF-8", "JOSTLE_WEB": "off", **env}

    # --- verbs

    def start(self, *words: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        options = {"preexec_fn": hears_all, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.work, **options}
        child = subprocess.Popen(
            [sys.executable, "-m", "jostle", *words], env={**self.env, **(env or {})},
            text=True, stdin=subprocess.DEVNULL, **options,
        )  # fmt: skip
        self.children.append(child)
        return child

    def run(self, *words: str, **options: Any) -> tuple[int, str, str]:
        """Exit code, stdout, stderr of a verb."""
        child = self.start(*words, **options)
        out, err = child.communicate(timeout=PATIENCE)
        return child.returncode, out, err

    def ok(self, *words: str, **options: Any) -> str:
        code, out, err = self.run(*words, **options)
        assert code == 0, (words, code, out, err)
        return out

    def json(self, *words: str, **options: Any) -> Any:
        return json.loads(self.ok(*words, "--json", **options))

    def up(self, gpus: str | None = "sim:4x24", env: dict[str, str] | None = None, **options: Any) -> None:
        """As `jostle up` does, but in this process: a verb of its own costs a tenth of a second each time."""
        if options:
            self.ok("up", *(["--gpus", gpus] if gpus else []), env=env, **options)
            return
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update({**self.env, **(env or {})})
        try:
            client = connect(config.home(), gpus=gpus)
        finally:
            os.environ.clear()
            os.environ.update(before)
        with contextlib.closing(client):
            client.call("up")

    def add(self, *words: str, **options: Any) -> int:
        return int(self.ok("add", *words, **options))

    def file(self, text: str, name: str = "jobs.yaml") -> str:
        path = self.work / name
        path.write_text(text)
        return str(path)

    def scenario(self, text: str) -> str:
        """The spec of a scenario; writing it again changes the world."""
        path = self.root / "scenario.yaml"
        fresh = self.root / "scenario.new"
        fresh.write_text(text)
        os.replace(fresh, path)
        return f"sim:{path}"

    # --- without the command line, where that is not what is tested

    def client(self) -> Client:
        found = attempt(str(self.home))
        assert found is not None, "no engine answers: " + self.log()
        return found

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        client = self.client()
        try:
            return client.call(op, **fields)
        finally:
            client.close()

    def submit(self, *jobs: dict[str, Any], once: str | None = None, **head: Any) -> list[int]:
        """One batch, quickly; a job is what differs from `true` on one GPU."""
        full = [{"workdir": str(self.work), "commands": ["true"], **job} for job in jobs]
        context = {"env": {"PATH": os.environ["PATH"]}, "umask": 0o022, "limits": {}}
        answer = self.call("submit", batch=head, context=context, jobs=full, once=once)
        first, last = answer["ids"]
        return list(range(first, last + 1))

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """One for as long as the database is the same file: opening it anew at each look would cost more than the look."""
        path = self.home / "jostle.db"
        inode = path.stat().st_ino if path.exists() else 0
        if self._reader is None or self._inode != inode:
            self._forget_reader()
            self._reader, self._inode = Reader(str(self.home)), inode
        yield self._reader

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def job(self, id: int) -> dict[str, Any]:
        with self.reader() as reader:
            found = reader.job(id)
        assert found is not None
        return found

    def newest(self, n: int = 1) -> list[dict[str, Any]]:
        with self.reader() as reader:
            return reader.jobs(newest=n)

    def jobs(self, ids: list[int] | None = None) -> dict[int, dict[str, Any]]:
        with self.reader() as reader:
            return {row["id"]: row for row in reader.jobs(ids=ids)}

    def runs(self, id: int) -> list[dict[str, Any]]:
        with self.reader() as reader:
            return runs_of(reader, id)

    def states(self, ids: list[int] | None = None) -> dict[int, str]:
        return {id: row["state"] for id, row in self.jobs(ids).items()}

    def events(self, kind: str, job: int | None = None) -> list[dict[str, Any]]:
        with self.reader() as reader:
            return [e for e in reader.events(job=job, limit=1_000_000) if e["kind"] == kind]

    def reach(self, id: int, *states: str) -> dict[str, Any]:
        until(lambda: self.job(id)["state"] in states, f"job {id} {states}")
        return self.job(id)

    def end(self, *ids: int) -> list[str]:
        """How these ended."""
        wanted = list(ids)
        until(lambda: all(s in FINAL for s in self.states(wanted).values()), f"the end of {ids}")
        found = self.states(wanted)
        return [found[id] for id in ids]

    def reason(self, id: int, code: str) -> dict[str, Any]:
        """The reason with this code, when the engine gives it."""

        def look() -> Any:
            reason = self.call("why", id=id)["reason"]
            return worded(reason, "en") if reason and reason["code"] == code else None

        found = until(look, f"job {id} waits with {code}; last {self.call('why', id=id)['reason']}")
        assert isinstance(found, dict)
        return found

    def output(self, id: int, n: int = 1) -> str:
        """What it has written so far: nothing, if it is not there yet."""
        log = self.home / "runs" / f"{id}.{n}" / "log"
        return log.read_text() if log.exists() else ""

    def log(self) -> str:
        path = self.home / "engine.log"
        return path.read_text() if path.exists() else ""

    # --- processes

    @property
    def engine(self) -> int:
        return int(self.call("hello")["pid"])

    def see_cards(self) -> None:
        """Until the engine has read its cards: one that starts slowly answers before that, and cannot say much."""
        until(lambda: self.call("gpus")["age_s"] is not None, "the cards are read")

    def know_cards(self) -> None:
        """Until the engine knows of every card what is on it: after the end of a run it does not, until its next look."""
        until(lambda: all(card["state"] != "unknown" for card in self.call("gpus")["gpus"]), "each card is known again")

    def kill_engine(self, number: int = signal.SIGKILL) -> int:
        pid = self.engine
        os.kill(pid, number)
        until(lambda: not alive(pid), "the end of the engine")
        return pid

    def made(self, *names: str) -> None:
        """Until the jobs have made these files in the working directory."""
        until(lambda: all((self.work / name).exists() for name in names), f"{names}")

    def pid_in(self, name: str) -> int:
        """The pid that a job wrote into a file."""
        path = self.work / name
        return int(until(lambda: path.exists() and path.read_text().strip(), name))

    def processes(self) -> list[int]:
        """Everything that was started under this home, by what its environment says."""
        mark = f"JOSTLE_HOME={self.home}\0".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/environ", "rb") as f:
                        if mark in f.read() + b"\0" and alive(int(name)):
                            found.append(int(name))
                except OSError:
                    continue  # gone, or not ours
        return found

    def _is_down(self) -> bool:
        """Asks an engine that still answers to end; one that was killed may seem to, for a moment."""
        client = attempt(str(self.home))
        if client is None:
            return True
        try:
            client.call("down", stop_jobs=True, now=True)
            wait_gone(client, PATIENCE)
        except NoEngine:
            client.close()
        return False

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        self._forget_reader()
        try:
            until(self._is_down, "the end of the engine")
        finally:
            self._nothing_left()

    def _remaining(self) -> set[int]:
        """Also commands of a run, which have the environment of who submitted it: they work in our directory."""
        here = {pid for pid in proc.pids() if pid != os.getpid() and _works_in(pid, self.root) and alive(pid)}
        return here.union(self.processes())

    def _nothing_left(self) -> None:
        """Whatever a test that failed has left is ended, and told."""
        left: set[int] = set()
        try:
            until(lambda: not self._remaining(), "the end of all processes")
        except AssertionError:
            left = self._remaining()
            named = {pid: Path(f"/proc/{pid}/cmdline").read_bytes()[:200] for pid in left if alive(pid)}
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left behind: {named}") from None
