"""Any sequence of submits, wishes, crashes and GPU changes, against a model that is simple enough to be right."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jostle import failpoint
from jostle.store import intents
from tests.engine.fakes import Host
from tests.engine.test_engine import CRASHPOINTS, check

FINAL = {"succeeded", "failed", "cancelled", "skipped"}


class Life(RuleBasedStateMachine):
    """A host whose engine may die at any point; people who submit, cancel, hold and retry; cards that others use."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.mkdtemp(prefix="jostle-life-")
        self.host = Host(self.home, gpus=3)
        self.known: set[int] = set()  # every id a submit was answered with
        self.queue: dict[int, str | None] = {}
        self.wanted: dict[int, str] = {}  # run | hold | cancel
        self.ended: dict[int, str] = {}  # final states as first seen
        self.retried: set[int] = set()

    def teardown(self) -> None:
        failpoint.arm("")
        try:
            for id in [i for i, want in self.wanted.items() if want == "hold" and i not in self.ended]:
                self.unhold(id)
            self.host.disk.strangers, self.host.probe.silent = {}, False
            self.host.settle(step=2.0)
            self.nothing_final_changes()
            check(self.host)
            self.queues_were_serial()
        finally:
            self.host.let_go()
            self.host.store.db.close()
            shutil.rmtree(self.home)

    # --- what happens

    @rule(
        queue=st.sampled_from([None, "a", "b"]), gpus=st.sampled_from([[1, 1], [1, 1], [2, 2], [1, 3], [0, 0]]),
        memory=st.sampled_from([None, 8000, 14000]), share=st.booleans(), seconds=st.floats(0.05, 8),
        code=st.sampled_from([0, 0, 1]), tries=st.sampled_from([0, 0, 2]), after=st.booleans(), count=st.integers(1, 3),
    )  # fmt: skip
    def submit(
        self, queue: str | None, gpus: list[int], memory: int | None, share: bool, seconds: float, code: int, tries: int,
        after: bool, count: int,
    ) -> None:  # fmt: skip
        retry = {"max": tries, "backoff_after": 2, "backoff": 3.0} if tries else None
        needs = [["job", max(self.known), False]] if after and self.known else []
        memory = memory if gpus[1] else None
        share = share and memory is not None
        job = {"queue": queue, "gpus": gpus, "memory_mib": memory, "share": share, "retry": retry, "needs": needs}
        for id in self.host.submit(*[job] * count):
            assert id not in self.known, "an id is given once"
            self.known.add(id)
            self.queue[id], self.wanted[id] = queue, "run"
            self.host.disk.durations[id] = (seconds, code, "")

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.known)))
        before = self.host.states()[id]
        why = self.host.cancel(id)
        if before in FINAL:
            assert why is not None
            return
        self.wanted[id] = "cancel"
        if before == "queued":
            assert self.host.states()[id] == "cancelled"

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.known)))
        if self.host.request(lambda: intents.hold(self.host.store, id, True, at=0, now=self.host.clock.at)) is None:
            self.wanted[id] = "hold"

    @precondition(lambda self: "hold" in self.wanted.values())
    @rule(data=st.data())
    def unhold_one(self, data: st.DataObject) -> None:
        self.unhold(data.draw(st.sampled_from([i for i, want in self.wanted.items() if want == "hold"])))

    def unhold(self, id: int) -> None:
        if self.host.request(lambda: intents.hold(self.host.store, id, False, at=0, now=self.host.clock.at)) is None:
            self.wanted[id] = "run"

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.ended)))
        failpoint.arm("")  # asked twice, it would be two new jobs
        new, refused = self.host.request(lambda: intents.retry(self.host.store, [id], at=0, now=self.host.clock.at))
        assert bool(new) != bool(refused)
        if id in self.retried:
            assert new == {}, "its copy is the one to be tried again"
        if refused:
            return
        self.retried.add(id)
        self.known.add(new[id])
        self.queue[new[id]], self.wanted[new[id]] = self.queue[id], "run"
        self.host.disk.durations[new[id]] = (0.5, 0, "")

    @rule(point=st.sampled_from(CRASHPOINTS), nth=st.integers(1, 3))
    def arm_a_crash(self, point: str, nth: int) -> None:
        failpoint.arm(f"{point}=crash@{nth}")

    @rule()
    def crash(self) -> None:
        self.host.crash()
        self.host.boot()

    @rule(point=st.sampled_from(["store.before_commit", "engine.reserved"]))
    def fill_the_disk_for_a_moment(self, point: str) -> None:
        failpoint.arm(f"{point}=ENOSPC@1")
        self.host.step(0.5)
        failpoint.arm("")

    @rule(taken=st.lists(st.sampled_from(["GPU-0", "GPU-1", "GPU-2"]), unique=True, max_size=2))
    def strangers(self, taken: list[str]) -> None:
        self.host.disk.strangers = dict.fromkeys(taken, 20_000)

    @rule(silent=st.booleans())
    def probe(self, silent: bool) -> None:
        self.host.probe.silent = silent

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.3, 2.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.host.step(seconds)

    # --- what must hold at every moment

    @invariant()
    def nothing_final_changes(self) -> None:
        states = self.host.states()
        assert set(states) == self.known, "nothing is lost, nothing appears"
        for id, state in self.ended.items():
            assert states[id] == state
        self.ended.update({id: s for id, s in states.items() if s in FINAL})

    @invariant()
    def no_card_is_used_twice_and_no_job_runs_twice(self) -> None:
        assert self.host.disk.overlaps == []
        assert self.host.disk.doubled == []

    @invariant()
    def what_is_held_or_cancelled_while_queued_does_not_start(self) -> None:
        for id, want in self.wanted.items():
            if want == "hold" and id not in self.ended:
                assert self.host.states()[id] == "queued"
                assert not [p for p in self.host.disk.alive(self.host.clock.at) if p.run[0] == id]

    def queues_were_serial(self) -> None:
        for name in ("a", "b"):
            spans = sorted((p.began, p.ends) for p in self.host.disk.processes.values() if self.queue[p.run[0]] == name)
            assert all(first[1] <= second[0] for first, second in pairwise(spans)), spans


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=60, stateful_step_count=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
