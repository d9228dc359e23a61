"""Kills engines, shims and programs in the midst of resizes, and sees that no card was held twice and none is left behind.

    python tests/torture/elastic.py --kills 300 [--seed S] [--json] [-v]

Jobs that get other cards all the time (by signal, and by beginning again), an allocation that grows, shrinks and is released,
with programs inside it, jobs of one and two cards that need some of theirs, a neighbour who takes what is free, and strangers
who come and go: so there is always a resize under way, or about to be; and one that is paused when they come. Engines die at
random moments and at each step of a resize and of a pause, shims at each of theirs, programs whenever it hits them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import evidence
import harness
from evidence import Violation, Wanted
from harness import FAIR, HERE, PATIENCE, until
from pauses import CARDS, POLITE, SHIM, WITHIN, PausingTorture

from jostle import proc
from jostle.client import Client, Lost
from jostle.errors import Declined

PROGRAMS = ("restart", "signal", "signal")
ALLOCATION = "held"
ELASTIC = "r.ended_at IS NULL AND j.resize IS NOT NULL AND r.leg > 1"
HELD = "SELECT id, state FROM job WHERE commands = '[]' AND ended_at IS NULL"
INSIDE = "r.ended_at IS NULL AND (j.commands = '[]' OR j.inside IS NOT NULL)"


class Ordinary(evidence.Store):
    """The jobs that the plain invariants are about."""

    def jobs(self) -> dict[int, dict[str, Any]]:
        return {id: row for id, row in super().jobs().items() if not row["name"].startswith(("e-", ALLOCATION))}

    def runs(self) -> dict[tuple[int, int], dict[str, Any]]:
        mine = self.jobs()
        return {id: run for id, run in super().runs().items() if id[0] in mine}


class ElasticTorture(PausingTorture):
    # --- work

    def open(self) -> None:
        super().open()
        self.midst = Counter()
        self.orphans: dict[int, float] = {}  # programs whose shim we killed -> since when
        self.resized = self.orders = self.pauses = 0

    def new_jobs(self) -> list[Wanted]:
        self.serial += 1
        cards = self.rng.choice((1, 1, 2))
        return [Wanted(key=f"j{self.serial}", seconds=round(self.rng.uniform(0.02, 0.15), 3), gpus=cards)]

    def elastic_jobs(self) -> list[dict[str, Any]]:
        """Those that have not ended, by the store."""
        store = evidence.Store(self.engine.home)
        try:
            return store.rows("SELECT id, name, state, resize, attempt FROM job WHERE ended_at IS NULL AND resize IS NOT NULL")
        finally:
            store.close()

    def keep_programs(self, to: Client) -> None:
        living = Counter(row["resize"] for row in self.elastic_jobs())
        for how in PROGRAMS:
            if living[how] > 0:
                living[how] -= 1
            else:
                self.submit_elastic(to, how)

    def submit_elastic(self, to: Client, how: str) -> None:
        self.serial += 1
        argv = [sys.executable, "-I", "-S", f"{HERE}/elastic_program.py", self.evidence, f"{self.root}/sim"]
        job = {"name": f"e-{self.serial}", "commands": [argv], "gpus": [1, 3], "resize": how, "workdir": "/"}
        self._send(to, job)

    def work(self, to: Client) -> None:
        for once, jobs in list(self.unanswered):
            self.submit(to, self.case, jobs, once)
        self.keep_programs(to)
        choice = self.rng.random()
        running = [row for row in self.elastic_jobs() if row["state"] == "running"]
        if choice < 0.45 and running:
            low = self.rng.randint(1, 2)
            self.ask(to, self.rng.choice(running)["id"], low, self.rng.randint(low, 3))
        elif choice < 0.6:
            self.strangers(*self.rng.sample(range(CARDS), self.rng.choice((0, 0, 1, 2))))
        elif choice < 0.7:
            self.allocate(to)
        elif choice < 0.8:
            self.keep_polite(to)
        elif len(self.unfinished()) < 4:
            self.submit(to, self.case, self.new_jobs())
        else:
            self.violations += evidence.note_finals(self.case)
        time.sleep(0.01)

    def ask(self, to: Client, job: int, low: int, high: int) -> None:
        to.call("intent", ids=[job], do="set", values={"gpus": [low, high]})

    def neighbour_works(self) -> None:
        """He has a home of his own, and takes at once what nobody claims."""
        assert self.near_client is not None
        counts = self.near_client.call("hello")["counts"]
        for _ in range(3 - sum(counts.get(s, 0) for s in ("queued", "starting", "running"))):
            self.serial += 1
            self.submit(self.near_client, self.near_case, [Wanted(key=f"n{self.serial}", seconds=0.15)])

    def allocate(self, to: Client) -> None:
        """An allocation is there, grows, shrinks, gets a program, or is released."""
        held, choice = self._rows(HELD), self.rng.random()
        if not held:
            self.serial += 1
            self._send(to, {"name": ALLOCATION, "commands": [], "gpus": [1, 1], "workdir": "/"})
        elif choice < 0.2:
            to.call("intent", ids=[held[0]["id"]], do="cancel")
        elif choice < 0.6:
            self.start_inside(to, held[0]["id"])
        elif held[0]["state"] == "running":
            n = self.rng.randint(1, 2)
            self.ask(to, held[0]["id"], n, n)

    def start_inside(self, to: Client, allocation: int) -> None:
        self.serial += 1
        steps = str(self.rng.randint(1, 60))
        argv = [sys.executable, "-I", "-S", f"{HERE}/elastic_program.py", self.evidence, f"{self.root}/sim", steps]
        with contextlib.suppress(Declined):  # it is about to go
            self._send(to, {"name": f"{ALLOCATION}-{self.serial}", "commands": [argv], "inside": allocation, "workdir": "/"})

    # --- kills

    def under_way(self) -> list[dict[str, Any]]:
        """Runs that have an order whose fate is not recorded, with their shims."""
        return self._rows(
            f"SELECT {SHIM} FROM run r JOIN leg l USING (job, n) WHERE r.ended_at IS NULL AND l.outcome IS NULL"
        )

    def _die(self, to: Client | None, phase: str, within: float = 0.0) -> None:
        if os.path.exists(f"{self.engine.home}/jostle.db"):
            self.midst["engine"] += bool(self.under_way())
        super()._die(to, phase, within)

    def cycle(self, armed: str = "") -> None:
        self.reap()
        self.end_orphans()
        if self.rng.random() < 0.5:
            self.neighbour_works()
        name = armed.partition("=")[0]
        to = self.engine.start(armed)
        if to is not None and name.startswith("legs."):
            self._shim_dies(to, name)
        elif to is not None and name.startswith(("pause.", "halt.")):
            self._dies_in_a_pause(to, name)
        elif to is not None and name:
            self._work_until_gone(to, WITHIN)
        elif to is not None:
            self._random(to)
            name = "random"
        self._die(to, name if name.startswith(("resize.", "pause.")) else "random")

    def _random(self, to: Client) -> None:
        """The engine dies at a random moment; now and then a shim or a program before it."""
        fuse = threading.Timer(self.rng.uniform(0.1, 1.0) * self.engine.pace, self.engine.kill)
        fuse.start()
        victim = self.rng.random()
        try:
            until(lambda: self._work_once(to) and (self.under_way() or self.engine.gone()), 2.0)
            if victim < 0.3:
                self._kill(self.kill_shim, "shim")
                self.neighbour_works()
            elif victim < 0.45:
                self._kill(self.kill_program, "program")
        except Lost:
            pass
        self._work_until_gone(to, PATIENCE)
        fuse.join()

    def _work_once(self, to: Client) -> bool:
        self.work(to)
        return True

    def _kill(self, act: Callable[[], bool], whom: str) -> None:
        midst = bool(self.under_way())
        if act():
            self.kills[whom] += 1
            self.midst[whom] += midst

    def _shim_dies(self, to: Client, name: str) -> None:
        """A run of this engine is resized until its shim comes to the place where it dies."""
        how = "signal" if name in ("legs.before_signal", "legs.before_give_up") else "restart"
        known = {row["id"] for row in self.elastic_jobs()}
        try:
            for row in self.elastic_jobs():
                to.call("intent", ids=[row["id"]], do="cancel")
            self.strangers()
            self.submit_elastic(to, how)
            fresh = until(lambda: [r for r in self.elastic_jobs() if r["id"] not in known and r["state"] == "running"], FAIR)
            end = time.monotonic() + WITHIN
            while fresh and time.monotonic() < end:
                ((shim, ticks),) = self._shims(fresh[0]["id"]) or ((0, 0),)
                if not proc.alive(shim, ticks):
                    self.kills[name] += 1
                    self.midst["shim"] += 1
                    return
                n = self.rng.randint(1, 3)
                self.ask(to, fresh[0]["id"], n, n)
                time.sleep(0.05)
            self.missed[name] += 1
        except (Lost, ValueError):
            self.missed[name] += 1

    def kill_shim(self) -> bool:
        which = INSIDE if self.rng.random() < 0.3 else ELASTIC  # one of an allocation, or of what runs inside it
        some = self._rows(f"SELECT {SHIM} FROM run r JOIN job j ON j.id = r.job WHERE {which}")
        open_runs = some if some and which == INSIDE else self.under_way() or some
        return any(self._signal(run["shim"], run["ticks"]) for run in self.rng.sample(open_runs, len(open_runs)))

    def kill_program(self) -> bool:
        living = [line for line in self.lines("begin") if proc.stat(line["pid"]) is not None]
        for line in self.rng.sample(living, len(living)):
            stat = proc.stat(line["pid"])
            if stat is not None and stat.state not in "ZX" and self._signal(stat.pid, stat.ticks):
                return True
        return False

    def _signal(self, pid: int, ticks: int) -> bool:
        """Only a descendant of ours: not reaped, so it is this very process."""
        if pid not in proc.tree(os.getpid()) or not proc.alive(pid, ticks):
            return False
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def end_orphans(self) -> None:
        """Programs whose shim is dead go on, rightly; after a while they are killed, or they would have all cards in the end."""
        now = time.monotonic()
        for line in self.lines("begin"):
            stat = proc.stat(line["pid"])
            if stat is None or stat.state in "ZX" or stat.ppid != os.getpid():
                continue
            if now - self.orphans.setdefault(line["pid"], now) > 3.0:
                self._signal(stat.pid, stat.ticks)

    # --- the end

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        path = f"{self.evidence}/elastic"
        if not os.path.exists(path):
            return []
        with open(path) as f:
            return [line for line in map(json.loads, f) if not kinds or line["kind"] in kinds]

    def drain(self) -> None:
        with open(f"{self.evidence}/end", "w"):
            pass
        self.strangers()
        to = self.engine.start()
        assert to is not None, "the engine does not start"
        until(lambda: not self.stopped(), FAIR)
        self.violations += [Violation("stopped", f"process {pid} stands still, and nothing says so") for pid in self.stopped()]
        for row in [*self._rows(HELD), *self._rows(POLITE)]:
            to.call("intent", ids=[row["id"]], do="cancel")
        to.call("down")
        harness.client.wait_gone(to)
        if self.engine.gone(PATIENCE):
            self.engine.ended_by()
        super().drain()

    def verdict(self) -> list[Violation]:
        def alone() -> bool:
            self.reap()
            return not self.left()

        until(alone, FAIR)
        found = self.violations + evidence.check(self.case, Ordinary) + evidence.check(self.near_case)
        found += [Violation("orphaned", f"process {pid} is left: {words}") for pid, words in self.left()]
        found += evidence.litter((self.engine.home, self.near.home), self.leases)
        found += [*evidence.complaints(self.engine.home), *evidence.complaints(self.near.home), *self._elastic_invariants()]
        return list(dict.fromkeys(found))

    def _elastic_invariants(self) -> Iterator[Violation]:
        for line in self.lines("overlap"):
            yield Violation("overlap", f"GPU {line['card']}: {line['job']}.{line['attempt']}, leg {line['leg']}, was not alone")
        begun: dict[tuple[int, int], list[int]] = defaultdict(list)
        saved: dict[int, int] = {}
        for line in self.lines("begin", "saved", "left"):
            if line["kind"] != "begin":
                saved[line["job"]] = line["step"]
                continue
            begun[line["job"], line["attempt"]].append(line["leg"])
            if line["step"] < saved.get(line["job"], 0):
                was = saved[line["job"]]
                yield Violation("lost", f"leg {line['leg']} of {line['job']} began at {line['step']}: {was} were saved")
        for run, legs in begun.items():
            if legs != sorted(set(legs)):
                yield Violation("doubled", f"run {run} began its legs {legs}")
        recorded = {
            (row["job"], row["n"], row["leg"]): sorted(str(int(uuid[-4:])) for uuid in json.loads(row["uuids"]))
            for row in self._rows("SELECT job, n, leg, uuids FROM leg")
        }
        for line in self.lines("list"):
            told = recorded.get((line["job"], line["attempt"], line["number"]))
            if line["number"] > 1 and told != sorted(line["cards"]):
                yield Violation("doubled", f"{line['job']}.{line['attempt']} has {line['cards']}, recorded is {told}")
        outcomes = Counter(row["outcome"] for row in self._rows("SELECT outcome FROM leg"))
        self.resized, self.orders = outcomes["done"], outcomes.total()
        self.pauses = self._rows("SELECT count(*) AS n FROM event WHERE kind = 'paused'")[0]["n"]

    def report(self, seconds: float, found: list[Violation]) -> dict[str, Any]:
        told = super().report(seconds, found)
        inside = self._rows("SELECT count(*) AS n FROM run r JOIN job j ON j.id = r.job WHERE j.inside IS NOT NULL")[0]["n"]
        counts = {"orders": self.orders, "resizes": self.resized, "pauses": self.pauses}
        counts |= {"programs": len(self.lines("begin")), "inside": inside}
        return {**told, "in_the_midst": dict(self.midst), **counts}


def plan_of(kills: int, rng: random.Random) -> list[str]:
    """Each step of a resize first, then random moments and more of them."""
    points = [f"{name}=kill@1" for name in harness.failpoints(resizing=True)]
    plan = points[:]
    rng.shuffle(plan)
    while len(plan) < kills:
        plan.append(rng.choice(points) if rng.random() < 0.3 else "")
    return plan


def torture(kills: int, seed: int, *, verbose: bool = False) -> dict[str, Any]:
    began = time.monotonic()
    whole = ElasticTorture(seed, None, verbose)
    try:
        found = whole.run(plan_of(kills, whole.rng), shims=False)
        return whole.report(time.monotonic() - began, found)
    finally:
        whole.close()


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kills", type=int, default=30)
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--json", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true")
    args = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all is cleaned up
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    report = torture(args.kills, seed, verbose=args.verbose)
    print(json.dumps(report) if args.json else json.dumps(report, indent=1), flush=True)
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
