"""Kills an engine over and over while it works, and checks at the end that nothing was lost, doubled, orphaned or misplaced.

The harness is child subreaper of all it starts: engines, nurseries, shims and jobs whose parents were killed become its own
children. So no pid it signals can be another's, how an engine ended is known from its wait status, and what is left at the end is
an orphan. A second engine (the neighbour) with a home of its own shares the cards and is never killed.
Only effective kills count: the engine had answered, or reached a named failpoint.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import evidence
from evidence import Case, Violation, Wanted

from jostle import client, proc
from jostle.client import Client, Lost
from jostle.errors import JostleError, NotFound

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.abspath(client.__file__))
CARDS, CARD_MIB = 4, 24 * 1024
DEVICES = f"sim:{CARDS}x24"
BACKLOG = 14  # jobs unfinished at most, so that ends and starts happen in every cycle
STALLED_AFTER = 30.0  # s in which nothing happens, though something should
PATIENCE = 60.0
FAIR = 15.0  # s to wait for what comes soon on any host, and not at all if something is wrong
PROMISED = 2.0  # s for an engine to be back
USUAL = 0.4  # s that it takes on an idle host: where it takes longer, a kill comes later too, or nothing is under way yet

_PR_SET_CHILD_SUBREAPER = 36
LOSES_THE_EXIT = ("shim.after_claim", "shim.before_exit_write", "shim.before_exit_rename")
HELD = ("long", "gate:/nowhere")  # of a job that is to be cancelled: it ends when it is told to, not before
STOP = "engine.before_stop"  # which only a cancel leads to
PREPARED = {"engine.before_void": "engine.before_spawn=kill@1"}  # what must have happened for it to be reached
SLOW = ("engine.after_spawn=kill@1,shim.before_claim=sleep:0.4",)
"""The shim is on its way to the claim while the engine dies and the next one looks."""
AT_START = ("engine.adopting", "engine.recovered", "engine.before_void", "store.mid_migration")


RESIZING = ("resize.", "legs.", "pause.", "halt.")  # what begins so is on the way of a resize, or of a pause: see elastic.py
ELSEWHERE = ("notify.", "store.mid_copy")  # of another process, or of an upgrade: killed at in tests/notify and tests/store


def failpoints(*, resizing: bool = False) -> list[str]:
    """Every name in the source, so that a new one is killed at from its first day."""
    found = set()
    for folder, _, files in os.walk(SOURCE):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    found.update(re.findall(r'failpoint\("([a-z_.]+)"\)', f.read()))
    return sorted(name for name in found if name.startswith(RESIZING) is resizing and not name.startswith(ELSEWHERE))


def until(condition: Callable[[], Any], within: float = PATIENCE, every: float = 0.01) -> Any:
    """What the condition gave when it first held, or its last answer when time ran out."""
    end = time.monotonic() + within
    while True:
        got = condition()
        if got or time.monotonic() > end:
            return got
        time.sleep(every)


class Engine:
    """One home and whichever engine serves it."""

    def __init__(self, home: str, bug: str | None = None, devices: str = DEVICES, config: str = "grace: 0.5\n") -> None:
        self.home, self.bug, self.devices = home, bug, devices
        self.pid = 0
        self.pidfd = -1
        self.slowest_start = 0.0
        self.pace = 1.0  # how much slower than usual the host is
        self.slow: list[tuple[float, str]] = []  # starts that took longer than we promise, and what was armed
        os.mkdir(home, 0o700)
        with open(f"{home}/config.yaml", "w") as f:
            f.write(config)

    def start(self, armed: str = "") -> Client | None:
        """A client of a fresh engine; None if that died on its way up."""
        os.environ["JOSTLE_FAILPOINTS"] = armed
        began = time.monotonic()
        try:
            with launched(self.bug):
                client.start_engine(self.home, gpus=self.devices, permanent=True)
        except JostleError as e:
            if not armed:
                with open(f"{self.home}/engine.log", errors="replace") as f:
                    raise AssertionError(f"{e}\n{f.read()[-3000:]}") from e
        finally:
            os.environ["JOSTLE_FAILPOINTS"] = ""
        with open(f"{self.home}/engine.lock") as f:
            self.pid = int(f.read() or 0)
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pidfd = os.pidfd_open(self.pid)  # our child by now: not reaped, so it is this very process
        found = client.attempt(self.home)
        try:
            if found is not None and found.call("hello")["pid"] == self.pid:
                took = time.monotonic() - began
                self.slowest_start = max(self.slowest_start, took)
                self.pace = min(max(1.0, took / USUAL), 5.0)
                if took > PROMISED:
                    self.slow.append((round(took, 2), armed))
                return found
        except Lost:
            pass
        return None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def gone(self, within: float = 0.0) -> bool:
        return bool(select.select([self.pidfd], [], [], within)[0])

    def ended_by(self) -> int:
        """Reaps the engine; the signal that ended it, 0 for none."""
        _, status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@contextlib.contextmanager
def launched(bug: str | None) -> Iterator[None]:
    """While it lasts, engines are started by buggy.py, with this bug in them."""
    if bug is None:
        yield
        return
    popen = subprocess.Popen
    daemon, buggy = os.path.join(SOURCE, "daemon.py"), os.path.join(HERE, "buggy.py")

    def other(argv: list[str], **more: Any) -> Any:
        return popen([buggy if word == daemon else word for word in argv], **more)

    os.environ["JOSTLE_BUG"] = bug
    subprocess.Popen = other  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        subprocess.Popen = popen  # type: ignore[misc]
        del os.environ["JOSTLE_BUG"]


class Torture:
    def __init__(self, seed: int, bug: str | None = None, verbose: bool = False) -> None:
        self.seed, self.rng, self.verbose = seed, random.Random(seed), verbose
        self.root = tempfile.mkdtemp(prefix="jostle-torture-")
        self.evidence, self.leases = f"{self.root}/evidence", f"{self.root}/leases"
        os.mkdir(self.evidence)
        os.mkdir(self.leases)
        self.token = f"torture-{os.getpid()}-{os.path.basename(self.root)}"
        self.before = {k: os.environ.get(k) for k in ("JOSTLE_LEASE_DIR", "JOSTLE_SIM_DIR", "JOSTLE_FAILPOINTS")}
        os.environ |= {"JOSTLE_LEASE_DIR": self.leases, "JOSTLE_SIM_DIR": f"{self.root}/sim", "JOSTLE_FAILPOINTS": ""}
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.engine, self.near = self.engines(bug)
        self.case = self._case(self.engine)
        self.near_case = self._case(self.near)
        self.near_client: Client | None = None
        self.unanswered: list[tuple[str, list[Wanted]]] = []  # submits of which we do not know whether they arrived
        self.kills: Counter[str] = Counter()  # effective ones, by phase
        self.missed: Counter[str] = Counter()  # failpoints that were armed and not reached
        self.violations: list[Violation] = []
        self.serial = 0
        self.said_at = time.monotonic()

    def engines(self, bug: str | None) -> tuple[Engine, Engine]:
        return Engine(f"{self.root}/home", bug), Engine(f"{self.root}/near")

    def _case(self, engine: Engine) -> Case:
        return Case(home=engine.home, journal=f"{self.evidence}/journal", wanted={}, total_mib=CARD_MIB)

    def say(self, text: str) -> None:
        if self.verbose:
            print(text, flush=True)

    # --- work

    def new_jobs(self) -> list[Wanted]:
        """A small batch of what people submit, by the seed."""
        r = self.rng
        jobs: list[Wanted] = []
        for _ in range(r.randint(1, 3)):
            self.serial += 1
            job = Wanted(key=f"j{self.serial}", seconds=round(r.uniform(0.0, 0.25), 3))
            kind = r.randrange(12)
            if kind <= 2:
                job.queue = r.choice("abc")
            elif kind == 3:
                job.gpus = r.choice((2, 3, 4))
            elif kind <= 5:
                job.mib = r.choice((6000, 9000, 15000))
            elif kind == 6:
                job.end, job.retries = f"fail{r.randint(1, 2)}:{r.randint(1, 99)}", 2
            elif kind == 7:
                job.end = r.choice(("1", "7", "sig9", "sig11"))
            elif kind == 8:
                job.flags = ("child",)
            elif kind == 9 and not any("long" in w.flags and not w.cancel_asked for w in self.case.wanted.values()):
                job.flags = HELD
            elif kind == 10 and jobs:
                job.needs = (jobs[-1].key,)
            elif kind == 11:
                job.gpus = 0
            jobs.append(job)
        return jobs

    def spec(self, job: Wanted, batch: list[Wanted]) -> dict[str, Any]:
        size = "-" if job.gpus == 0 else "x" if job.mib is None else str(job.mib)
        argv = [sys.executable, "-I", "-S", f"{HERE}/torture_job.py", self.evidence, job.key, size, str(job.seconds), job.end]
        keys = [w.key for w in batch]
        return {
            "name": job.key, "queue": job.queue, "commands": [[*argv, *job.flags]], "gpus": [job.gpus, job.gpus],
            "memory_mib": job.mib, "share": job.mib is not None, "workdir": "/",
            "needs": [["index", keys.index(needed), False] for needed in job.needs],
            "retry": {"max": job.retries, "backoff_after": 1, "backoff": 0.05} if job.retries else None,
        }  # fmt: skip

    def submit(self, to: Client, case: Case, jobs: list[Wanted], once: str | None = None) -> None:
        """Under an idempotency key: an answer that was lost is asked for again after the restart."""
        key = once or jobs[0].key
        for job in jobs:
            case.wanted[job.key] = job
        if case is self.case and once is None:
            self.unanswered.append((key, jobs))
        answer = to.call(
            "submit", once=key, jobs=[self.spec(job, jobs) for job in jobs], batch={"name": key},
            context={"env": {"PATH": os.environ["PATH"], "TORTURE": self.token}, "umask": 0o022, "limits": {}},
        )  # fmt: skip
        for k, job in enumerate(jobs):
            job.id = answer["ids"][0] + k
        if case is self.case:
            self.unanswered = [u for u in self.unanswered if u[0] != key]

    def cancel(self, to: Client, job: Wanted, now: bool) -> None:
        job.cancel_asked, job.kill_asked = True, job.kill_asked or now
        try:
            answer = to.call("intent", ids=[job.id], do="cancel", now=now)
        except NotFound as e:
            self.violations.append(Violation("lost", f"{job.key} was acknowledged, then: {e}"))
            return
        if job.id in answer["done"]:
            job.cancel_told_at = job.cancel_told_at or time.monotonic_ns()

    def unfinished(self) -> list[Wanted]:
        return [w for w in self.case.wanted.values() if w.id is None or w.id not in self.case.finals]

    def work(self, to: Client) -> None:
        """One thing a person may do, after what was not answered before; raises Lost when the engine dies of it."""
        for once, jobs in list(self.unanswered):
            self.submit(to, self.case, jobs, once)
        for job in self.unfinished():
            if job.cancel_asked and job.cancel_told_at is None:  # else those that end by a cancel alone keep all cards in the end
                self.cancel(to, job, now=job.kill_asked)
        running = [w for w in self.unfinished() if w.id is not None and not w.cancel_asked]
        long = [w for w in running if "long" in w.flags]
        choice = self.rng.random()
        if choice < 0.05 and running:
            self.cancel(to, self.rng.choice(running), now=self.rng.random() < 0.3)
        elif choice < 0.15 and long:
            self.cancel(to, long[0], now=False)
        elif choice < 0.25:
            to.call("gpus")
        elif len(self.unfinished()) < BACKLOG:
            self.submit(to, self.case, self.new_jobs())
        else:
            self.violations += evidence.note_finals(self.case)

    def neighbour_works(self) -> None:
        assert self.near_client is not None
        open_ = sum(self.near_client.call("hello")["counts"].get(s, 0) for s in ("queued", "starting", "running"))
        if open_ < 2:
            self.serial += 1
            self.submit(self.near_client, self.near_case, [Wanted(key=f"n{self.serial}", seconds=0.1)])

    # --- one kill after the other

    def cycle(self, armed: str = "") -> None:
        """Starts the engine, lets it work, and sees that it dies by SIGKILL: at a failpoint, or at a random moment."""
        self.reap()
        if self.rng.random() < 0.5:
            self.neighbour_works()
        name = armed.partition("=")[0]
        in_engine = name and not name.startswith(("shim.", "nursery."))
        armed_at = time.time()
        to = self.engine.start(armed)
        if to is not None and in_engine:
            self._work_until_gone(to, 5.0 * self.engine.pace)
        elif to is not None and name:
            self._shims_die(to, name, armed_at)
        elif to is not None:
            fuse = 0.0 if self.rng.random() < 0.15 else self.rng.uniform(0.0, 0.2) * self.engine.pace
            timer = threading.Timer(fuse, self.engine.kill)
            timer.start()
            self._work_until_gone(to, PATIENCE)
            timer.join()
            name = "random" if fuse else "just started"
        self._die(to, name)
        if name in LOSES_THE_EXIT:  # also if the engine was too slow to answer: it starts what is queued all the same
            self.case.shim_armed.append((armed_at, time.time()))

    def cancel_cycle(self, armed: str) -> None:
        """A running job is cancelled, and the engine dies while it sees to that: what was acknowledged must come about."""
        self.reap()
        to = self.engine.start()
        assert to is not None
        self.serial += 1
        job = Wanted(key=f"j{self.serial}", gpus=0, flags=HELD)
        self.submit(to, self.case, [job])
        until(lambda: job.id in {r["job"] for r in self._runs_since(0) if r["state"] == "running"})
        self._die(to, "random")
        to = self.engine.start(armed)
        if to is not None:
            with contextlib.suppress(Lost):
                self.cancel(to, job, now=False)
        point = armed.partition("=")[0]
        self._die(to, point if point == STOP else f"cancel, {point}", within=PATIENCE if point == STOP else 0.5)

    def _die(self, to: Client | None, phase: str, within: float = 0.0) -> None:
        """Kills the engine unless it is dead already, and sees how it ended."""
        if not self.engine.gone(PATIENCE if to is None else within):
            if phase not in ("random", "just started"):
                self.missed[phase] += 1
                phase = "random"
            self.engine.kill()
        if to is not None:
            to.close()
        ended_by = self.engine.ended_by()
        if ended_by != signal.SIGKILL:
            self.violations.append(Violation("engine", f"it ended by itself ({ended_by}) in phase {phase}: see its log"))
        self.kills[phase] += 1
        self.violations += evidence.note_finals(self.case) if os.path.exists(f"{self.engine.home}/jostle.db") else []
        now = time.monotonic()
        self.say(f"kill {sum(self.kills.values())}: {phase}, {len(self.unfinished())} jobs open, {now - self.said_at:.2f} s")
        self.said_at = now

    def _work_until_gone(self, to: Client, within: float) -> None:
        end = time.monotonic() + within
        try:
            while not self.engine.gone(0.01) and time.monotonic() < end:
                self.work(to)
        except Lost:
            self.engine.gone(PATIENCE)

    def _shims_die(self, to: Client, name: str, armed_at: float) -> None:
        """Runs of this engine lose their shim (or it its nursery) on the way; then the engine goes too."""
        jobs = self.new_jobs()
        try:
            self.submit(to, self.case, jobs)
            keys = {w.key for w in jobs}
            at_end = "exit" in name
            if name == "shim.after_claim" or at_end:
                until(lambda: self._claimed(armed_at), FAIR)
            else:
                until(lambda: self._requeued(armed_at) or name.startswith("nursery"), FAIR)
                self._work_until_gone(to, 0.1)
        except Lost:
            keys = set()
        self.engine.kill()
        self.engine.gone(PATIENCE)
        if at_end and keys:  # the shims come to their end while no engine hears them
            until(lambda: not self._shims_alive(armed_at), FAIR)

    def _runs_since(self, at: float) -> list[dict[str, Any]]:
        store = evidence.Store(self.engine.home)
        try:
            shim = "json_extract(handle, '$.pid') AS shim_pid, json_extract(handle, '$.ticks') AS shim_ticks"
            return store.rows(f"SELECT *, {shim} FROM run WHERE started_at >= {at}")
        finally:
            store.close()

    def _claimed(self, at: float) -> bool:
        return any(os.path.exists(f"{self.engine.home}/runs/{r['job']}.{r['n']}/claim") for r in self._runs_since(at))

    def _requeued(self, at: float) -> bool:
        return any(r["state"] == "ended" for r in self._runs_since(at))

    def _shims_alive(self, at: float) -> bool:
        open_ = [r for r in self._runs_since(at) if r["state"] != "ended"]
        short = [r for r in open_ if not self._is_long(r["job"])]
        return any(proc.alive(r["shim_pid"], r["shim_ticks"]) for r in short)

    def _is_long(self, job: int) -> bool:
        return any(w.id == job and "long" in w.flags for w in self.case.wanted.values())

    def kill_a_shim(self) -> None:
        """F5: the shim of a run dies, the run goes on; all that may be said of its end later is "unknown"."""
        for run in self._runs_since(0):
            if run["state"] != "running" or not proc.alive(run["shim_pid"], run["shim_ticks"]):
                continue
            if any(w.id == run["job"] and w.flags for w in self.case.wanted.values()):
                continue  # nobody would end it, or what it leaves behind: the run goes on, rightly
            pidfd = os.pidfd_open(run["shim_pid"])
            try:
                # a descendant of ours by the subreaper, and the very process that the run's record names
                if run["shim_pid"] in proc.tree(os.getpid()) and proc.alive(run["shim_pid"], run["shim_ticks"]):
                    self.case.shim_killed.add((run["job"], run["n"]))
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    return
            finally:
                os.close(pidfd)

    def reap(self) -> None:
        """Children by adoption; the engines are reaped by those who want to know how they ended."""
        for pid in proc.tree(os.getpid()):
            stat = proc.stat(pid)
            ours = stat is not None and stat.state == "Z" and stat.ppid == os.getpid()
            if ours and pid not in (self.engine.pid, self.near.pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    # --- the whole

    def open(self) -> None:
        self.near_client = self.near.start()

    def run(self, plan: Sequence[str], shims: bool = True) -> list[Violation]:
        """All the cycles of the plan (a failpoint's text each, or "" for a random moment), the drain and the checks."""
        self.open()
        for k, armed in enumerate(plan):
            if armed.startswith("cancel:"):
                self.cancel_cycle(armed.removeprefix("cancel:"))
            else:
                self.cycle(armed)
            if shims and k % 25 == 24:
                self.kill_a_shim()
        self.drain()
        return self.verdict()

    def drain(self) -> None:
        """No more kills: everything must come to its end by itself."""
        to = self.engine.start()
        assert to is not None, "the engine does not start"
        for once, jobs in list(self.unanswered):
            self.submit(to, self.case, jobs, once)
        for job in self.unfinished():
            if "long" in job.flags and job.cancel_told_at is None:
                self.cancel(to, job, now=False)
        quiet_since, last = time.monotonic(), -1
        while time.monotonic() - quiet_since <= STALLED_AFTER:  # else what has not ended by now is lost
            self.reap()
            hello = to.call("hello")
            busy = sum(hello["counts"].get(s, 0) for s in ("starting", "running", "stopping"))
            if not busy and not hello["counts"].get("queued", 0):
                break
            if hello["seq"] != last:
                quiet_since, last = time.monotonic(), hello["seq"]
            time.sleep(0.02)
        assert self.near_client is not None
        near = self.near_client
        until(lambda: not any(near.call("hello")["counts"].get(s) for s in ("queued", "starting", "running", "stopping")))
        for one in (to, near):
            one.call("gpus")  # a look at the cards: what is stale in the lease directory goes now
        until(lambda: not os.listdir(self.leases), FAIR)
        for engine, one in ((self.engine, to), (self.near, near)):
            one.call("down")
            client.wait_gone(one)
            if engine.gone(PATIENCE):
                engine.ended_by()

    def verdict(self) -> list[Violation]:
        def alone() -> bool:
            self.reap()
            return not self.left()

        until(alone, FAIR)  # who is about to say something has said it then
        found = self.violations + evidence.check(self.case) + evidence.check(self.near_case)
        found += [Violation("orphaned", f"process {pid} is left: {words}") for pid, words in self.left()]
        found += evidence.litter((self.engine.home, self.near.home), self.leases)
        found += [*evidence.complaints(self.engine.home), *evidence.complaints(self.near.home)]
        return list(dict.fromkeys(found))

    def left(self) -> list[tuple[int, str]]:
        """Living processes that this harness brought into being, by descent or by the token in their environment."""
        found = []
        descendants = set(proc.tree(os.getpid()))
        for pid in proc.pids():
            stat = proc.stat(pid)
            if stat is None or stat.state in "ZX" or pid == os.getpid():
                continue
            if pid in descendants or (proc.environ(pid) or {}).get("TORTURE") == self.token:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                    found.append((pid, f.read().replace(b"\0", b" ").decode(errors="replace").strip()))
        return found

    def close(self) -> None:
        """Ends whatever is left and takes the directory away; also after a failure."""
        os.environ.pop("TORTURE_GATE", None)
        for name, value in self.before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})

        def fell() -> bool:
            for pid, _ in self.left():
                # ours by descent or token (see left); a descendant's pid stays its own until we reap it
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            return not self.left()

        until(fell, every=0.02)
        shutil.rmtree(self.root, ignore_errors=True)

    def report(self, seconds: float, found: list[Violation]) -> dict[str, Any]:
        lives, _ = evidence.read_journal(self.case.journal, self.case.wanted)
        near, _ = evidence.read_journal(self.case.journal, self.near_case.wanted)
        return {
            "seed": self.seed, "kills": sum(self.kills.values()), "by_phase": dict(sorted(self.kills.items())),
            "not_reached": dict(self.missed), "seconds": round(seconds, 1), "jobs": len(self.case.wanted),
            "processes": len(lives), "neighbour_processes": len(near), "slowest_restart_s": round(self.engine.slowest_start, 2),
            "slow_restarts": self.engine.slow,
            "violations": [list(v) for v in found],
        }  # fmt: skip


def plan_of(kills: int, rng: random.Random, only: list[str] | None = None, points: bool = True) -> list[str]:
    """Failpoints first come each once, those of the recovery nested; the rest are random moments and further failpoints."""
    plan: list[str] = []
    names = only if only is not None else failpoints() if points else []
    if "store.mid_migration" in names:
        plan.append("store.mid_migration=kill")
    if names and only is None:
        # while little else is committed, so that the numbers meet what the cancel brings about
        plan += [f"cancel:store.{when}_commit=kill@{k}" for when, ks in (("before", (2, 3)), ("after", (2, 3, 4))) for k in ks]
        plan += SLOW
    rest = [n for n in names if n != "store.mid_migration"]
    while rest and len(plan) < kills:
        rng.shuffle(rest)
        for name in rest:
            plan += _steps(name, rng)
            if only is None and rng.random() < 0.7:
                plan.append("")
        if only is None:
            break
    while len(plan) < kills:
        plan += _steps(rng.choice(rest), rng) if rest and rng.random() < 0.3 else [""]
    return plan


def _steps(name: str, rng: random.Random) -> list[str]:
    if name == STOP:
        return [f"cancel:{name}=kill@1"]
    steps = [PREPARED[name]] if name in PREPARED else []
    if name in AT_START:
        again = rng.choice(AT_START[:2])
        return [*(steps or [""]), f"{name}=kill@1", f"{again}=kill@1"]
    nth = 1 if name.startswith("shim.") else rng.randint(1, 3)
    return [*steps, f"{name}=kill@{nth}"]


def torture(
    kills: int, seed: int, *, bug: str | None = None, only: list[str] | None = None, points: bool = True, verbose: bool = False
) -> dict[str, Any]:
    began = time.monotonic()
    whole = Torture(seed, bug, verbose)
    try:
        found = whole.run(plan_of(kills, whole.rng, only, points))
        return whole.report(time.monotonic() - began, found)
    finally:
        whole.close()


def shown(report: dict[str, Any]) -> str:
    return json.dumps(report, indent=1)
