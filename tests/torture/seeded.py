"""Which bugs are seeded, and for each the scene in which it must show: its jobs, and what holds when the engine is killed.

Nothing here is left to chance or to the pace of the host (see docs/reliability.md, "The harness"): the engine dies at a
failpoint, or when a condition holds; and whoever must live beyond the kill is held at a gate that opens after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import evidence
import harness
from evidence import Case, Wanted
from harness import PATIENCE, until

from jostle import proc
from jostle.client import Client, Lost

NO_CARD: dict[str, Any] = {"gpus": 0}  # starts at once, whatever else runs
CARD: dict[str, Any] = {"gpus": 1}
ALL_CARDS: dict[str, Any] = {"gpus": harness.CARDS}
QUEUED: dict[str, Any] = {"gpus": 1, "queue": "a"}
LEAVING: dict[str, Any] = {"gpus": 0, "flags": ("child",)}
SPAWNED = "engine.after_spawn=kill@1"  # then a run is open, and its shim has its order


@dataclass(frozen=True, kw_only=True)
class Hunt:
    jobs: tuple[dict[str, Any], ...] = (NO_CARD,)  # what is submitted in each cycle, see evidence.Wanted
    at: str = "acknowledged"  # when the engine is killed: a failpoint, or what is true of the jobs: acknowledged, running, ended
    then: tuple[dict[str, Any], ...] = ()  # what is submitted when that is true; killed when the engine has looked at these, too
    held: bool = False  # the jobs run until the next engine has looked at them
    neighbour: str = ""  # when it wants all cards: "before" our jobs, "beside" them, "after" the kill; else it wants none
    alone: bool = False  # the next engine comes when all that the killed one had started has ended
    kills: int = 2
    random: bool = False  # no scene: random jobs and moments
    harmless: bool = False  # a fault that the protocol survives: nothing may be found


BUGS: dict[str, Hunt] = {
    "ack_before_commit": Hunt(at="service.before_commit=kill@1"),
    "adopts_nothing": Hunt(at=SPAWNED),
    "cancel_forgotten": Hunt(at="cancel:engine.before_stop=kill@1"),
    "double_spawn": Hunt(random=True, kills=8, harmless=True),
    "exit_before_lock": Hunt(at="running", held=True),  # the bug itself opens the gate: they end while it looks
    "exit_code_always_zero": Hunt(jobs=({**NO_CARD, "end": "7"}, {**NO_CARD, "end": "sig9"}), at="ended"),
    "exit_not_written": Hunt(at=SPAWNED, alone=True),
    "final_not_final": Hunt(at="ended"),
    "forget_leases": Hunt(jobs=(CARD,), at="running", held=True, neighbour="beside"),
    "ignore_neighbours": Hunt(then=(CARD,), neighbour="before"),
    "leases_die_with_engine": Hunt(jobs=(CARD,), at="running", held=True, neighbour="after"),
    "ledger_forgets": Hunt(jobs=(CARD,) * harness.CARDS, at="running", then=(CARD,), held=True),
    "lost_dependants": Hunt(jobs=(NO_CARD, {**NO_CARD, "needs": (0,)})),
    "mark_failed_on_restart": Hunt(at=SPAWNED),
    "next_of_queue_forgotten": Hunt(jobs=(QUEUED, QUEUED)),
    "no_claim": Hunt(at="ended"),
    "no_subreaper": Hunt(jobs=(LEAVING,), at="ended"),
    "no_sweep": Hunt(jobs=(LEAVING,), at="ended"),
    "once_ignored": Hunt(at="service.after_commit=kill@1"),
    "queue_not_serial": Hunt(jobs=(QUEUED,), at="running", then=(QUEUED,), held=True),
    "requeue_on_restart": Hunt(at=SPAWNED),
    "requeue_without_void": Hunt(at=f"{SPAWNED},shim.before_claim=until:GATE"),
    "shim_dies_with_nursery": Hunt(at="running", held=True),
    "spawn_before_commit": Hunt(at="engine.reserved=kill@1", alone=True),
    "stop_with_engine": Hunt(at="running", held=True),
    "void_is_failure": Hunt(at="engine.before_spawn=kill@1"),
}

EACH_COMMIT = ("ack_before_commit", "exit_code_always_zero", "no_claim", "requeue_on_restart", "spawn_before_commit")


class Scene(harness.Torture):
    """The harness, with one and the same scene in each cycle."""

    def __init__(self, seed: int, plan: Hunt, bug: str | None, verbose: bool) -> None:
        super().__init__(seed, bug, verbose)
        self.plan = plan
        self.gate = self.new_gate()  # a file: those who are held wait for it

    def new_gate(self) -> str:
        self.serial += 1
        return f"{self.evidence}/gate{self.serial}"

    def cycle(self, armed: str = "") -> None:
        self.reap()
        plan, point = self.plan, armed if "=" in armed else ""
        taken = self.neighbour_takes() if plan.neighbour == "before" else ""
        behind, self.gate = self.gate, self.new_gate()
        os.environ["TORTURE_GATE"] = behind
        to = self.engine.start(point.replace("GATE", self.gate))
        open_gate(behind)
        if to is not None:
            try:
                self.play(to)
            except Lost:
                assert point, "the engine died, though nobody had killed it"
            if not point:
                self.engine.kill()
            self.engine.gone(PATIENCE)
        self._die(to, point.partition("=")[0] or f"jobs {armed}")
        if taken:
            open_gate(taken)
        if plan.neighbour == "after":
            self.look(self.neighbour(), self.near_case, (ALL_CARDS,))
        if plan.held:
            self.met("all runs have begun", lambda: all(self.begun(r) for r in self.living_runs()))
        if plan.alone:
            self.met("nothing of it is left", self.nothing_runs)

    def play(self, to: Client) -> None:
        """What people do before the kill."""
        for once, jobs in list(self.unanswered):
            self.submit(to, self.case, jobs, once)
        plan, gate = self.plan, self.gate if self.plan.held else ""
        self.met("the cards are known", lambda: to.call("gpus")["age_s"] is not None)
        jobs = self.ask(to, self.case, plan.jobs, gate)
        if plan.at == "running":
            self.met("they run", lambda: self.run_all(jobs))
        if plan.at == "ended":
            self.met("they have ended", lambda: self.ended(jobs))
        if plan.then:
            self.look(to, self.case, plan.then, gate)
        if plan.neighbour == "beside":
            self.look(self.neighbour(), self.near_case, (ALL_CARDS,))

    def drain(self) -> None:
        open_gate(self.gate)
        super().drain()

    def neighbour(self) -> Client:
        assert self.near_client is not None
        return self.near_client

    def neighbour_takes(self) -> str:
        """The neighbour gets all cards, until the gate that this names is opened."""
        gate = self.new_gate()
        jobs = self.ask(self.neighbour(), self.near_case, (ALL_CARDS,), gate)
        self.met("the neighbour has the cards", lambda: self.run_all(jobs))
        return gate

    def ask(self, to: Client, case: Case, like: Sequence[dict[str, Any]], gate: str = "") -> list[Wanted]:
        jobs: list[Wanted] = []
        for one in like:
            self.serial += 1
            needs = tuple(jobs[k].key for k in one.get("needs", ()))
            flags = (*one.get("flags", ()), *([f"gate:{gate}"] if gate else []))
            jobs.append(Wanted(**{**one, "key": f"j{self.serial}", "needs": needs, "flags": flags}))
        self.submit(to, case, jobs)
        return jobs

    def look(self, to: Client, case: Case, like: Sequence[dict[str, Any]], gate: str = "") -> None:
        """These are submitted and looked at: when the one after them runs, which needs no card, they run or must wait."""
        jobs = self.ask(to, case, [*like, NO_CARD], gate)
        self.met("they were looked at", lambda: self.run_all(jobs[-1:]))

    def met(self, what: str, condition: Callable[[], Any]) -> None:
        """Waits for it; if it never comes, the report says so: the bug itself may prevent it."""
        if not until(condition):
            self.missed[what] += 1

    # --- what is true

    def starts(self) -> list[dict[str, Any]]:
        keys = [*self.case.wanted, *self.near_case.wanted]
        return [dict(life.start) for life in evidence.read_journal(self.case.journal, keys)[0]]

    def run_all(self, jobs: Sequence[Wanted]) -> bool:
        """Each of them has said that it runs."""
        return {w.key for w in jobs} <= {start["key"] for start in self.starts()}

    def begun(self, run: Mapping[str, Any]) -> bool:
        return run["uni_id"] in {start["uni_id"] for start in self.starts()}

    def ended(self, jobs: Sequence[Wanted]) -> bool:
        """The store says so of each."""
        self.violations += evidence.note_finals(self.case)
        return {w.id for w in jobs} <= self.case.finals.keys()

    def nothing_runs(self) -> bool:
        """Beside the neighbour; a run that was never recorded is looked for, too."""
        self.reap()
        return set(proc.tree(os.getpid(), besides=self.near.pid or 0)) <= {self.near.pid, self.engine.pid}

    def living_runs(self) -> list[dict[str, Any]]:
        """Runs that the store calls open, and whose shim lives."""
        return [r for r in self._runs_since(0) if r["state"] != "ended" and proc.alive(r["shim_pid"], r["shim_ticks"])]


def open_gate(path: str) -> None:
    with open(path, "w"):
        pass


def hunt(name: str, seed: int, verbose: bool = False, seeded: bool = True) -> dict[str, Any]:
    """One run of the harness against an engine with this bug; `caught_by` names the invariants that did not hold.

    Without the bug (`seeded=False`) the same scene must show nothing, or it proves nothing about the bug.
    """
    plan = BUGS[name]
    began = time.monotonic()
    bug = name if seeded else None
    whole = harness.Torture(seed, bug, verbose) if plan.random else Scene(seed, plan, bug, verbose)
    try:
        try:
            found = whole.run(["" if plan.random else plan.at] * plan.kills, shims=False)
        except Lost:
            found = list(evidence.complaints(whole.engine.home))
            if not found:
                raise
        report = whole.report(time.monotonic() - began, found)
    finally:
        whole.close()
    stale = [v.text for v in found if v.invariant == "engine"]
    assert not stale, f"the seeded bug {name} does not fit the engine any more: {stale[0]}"
    return {**report, "caught_by": sorted({v.invariant for v in found}), "harmless": plan.harmless or not seeded}
