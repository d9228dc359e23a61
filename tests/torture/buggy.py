"""The engine with one bug in it, to prove that the harness finds such bugs. Run in place of daemon.py, with JOSTLE_BUG=name.

With one argument it is the nursery of such an engine: shims are forked there, and some bugs are theirs.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src")
BUG = os.environ["JOSTLE_BUG"]
IS_ENGINE = len(sys.argv) > 2

ENGINE: dict[str, Callable[[], None]] = {}
SHIM: dict[str, Callable[[], None]] = {}


def bug(where: dict[str, Callable[[], None]]) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def known(patch: Callable[[], None]) -> Callable[[], None]:
        where[patch.__name__] = patch
        return patch

    return known


def swap(owner: Any, name: str, value: Any) -> Any:
    """Puts the bug in the place of what is right; a place that is not there any more, or called otherwise, is an error."""
    right = getattr(owner, name)
    if inspect.isfunction(right):
        called = inspect.signature(right).parameters.values()
        keywords = {p.name: None for p in called if p.kind is p.KEYWORD_ONLY}
        places = [None for p in called if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        inspect.signature(value).bind(*places, **keywords)
    setattr(owner, name, value)
    return right


def before(owner: Any, name: str, act: Callable[..., None]) -> None:
    """Does something else first, each time."""
    right = getattr(owner, name)

    def both(self: Any, *args: Any, **more: Any) -> Any:
        act(self, *args, **more)
        return right(self, *args, **more)

    swap(owner, name, both)


# --- the order of commit and act


@bug(ENGINE)
def spawn_before_commit() -> None:
    """The run is started while its record is not committed yet."""
    from jostle.engine.starting import Starting
    from jostle.port import Launch

    record = Starting.record

    def eager(self: Any, *args: Any, **more: Any) -> Any:
        answer = record(self, *args, **more)
        if isinstance(answer, tuple):
            run, spec = answer
            self._carried.backends[run.backend].start([Launch(run.id, run.handle, spec)])
        return answer

    swap(Starting, "record", eager)


@bug(ENGINE)
def ack_before_commit() -> None:
    """A submit is answered before it is on the disk."""
    from jostle.engine import service
    from jostle.failpoint import failpoint

    def eager(self: Any, writes: list[Any]) -> list[Any]:
        self.writes.begin()
        with self.store.transaction():
            for k, (peer, request) in enumerate(writes):
                self.server.answer(peer, self._write(request, first=k == 0))
            failpoint("service.before_commit")
        self.writes.recorded()
        return []

    swap(service.Service, "serve_writes", eager)


@bug(ENGINE)
def once_ignored() -> None:
    """A submit whose answer was lost is taken a second time."""
    from jostle.store import jobs

    submit = jobs.submit
    swap(jobs, "submit", lambda store, request, **more: submit(store, {**request, "once": None}, **more))


# --- what a restart does to runs


def at_restart(sql: str) -> None:
    from jostle.engine.engine import Engine

    def rewrite(self: Any, *_: Any) -> None:
        with self.store.transaction() as db:
            for statement in sql.split(";"):
                db.execute(statement)

    before(Engine, "open", rewrite)


@bug(ENGINE)
def requeue_on_restart() -> None:
    """What ran when the engine died is queued again."""
    at_restart("""UPDATE job SET state = 'queued', ready = 1 WHERE state IN ('starting', 'running');
                  UPDATE run SET state = 'ended', outcome = 'lost', ended_at = 1 WHERE state IN ('starting', 'running')""")


@bug(ENGINE)
def mark_failed_on_restart() -> None:
    """What ran when the engine died is called failed."""
    at_restart("""UPDATE job SET state = 'failed', ready = 0, ended_at = 1 WHERE state IN ('starting', 'running');
                  UPDATE run SET state = 'ended', outcome = 'failed', ended_at = 1 WHERE state IN ('starting', 'running')""")


@bug(ENGINE)
def final_not_final() -> None:
    """A restart calls the last success a failure of the engine."""
    at_restart("""DROP TRIGGER IF EXISTS job_final;
                  UPDATE job SET state = 'failed' WHERE id = (SELECT max(id) FROM job WHERE state = 'succeeded')""")


@bug(ENGINE)
def requeue_without_void() -> None:
    """A run that nobody has claimed yet is queued again though its shim may be about to claim it."""
    from jostle.backends.local.backend import Local
    from jostle.engine.carried import Carried
    from jostle.port import Phase, RunReport

    reports = Local.reports

    def hasty(self: Any, runs: Any = None) -> Any:
        unclaimed = {r.run for r in reports(self, runs) if r.kind in (Phase.STARTING, Phase.NOT_STARTED)}
        return [RunReport(run=r.run, kind=Phase.NOT_STARTED) if r.run in unclaimed else r for r in reports(self, runs)]

    swap(Local, "reports", hasty)
    swap(Carried, "_void", lambda self, run: setattr(run, "voided", True))


@bug(ENGINE)
def void_is_failure() -> None:
    """A run that never started counts as a failed one."""
    from jostle.core.model import Exit
    from jostle.engine.carried import Carried

    def wrong(self: Any, run: Any) -> None:
        run.exit = Exit(code=1)

    swap(Carried, "_void", wrong)


@bug(ENGINE)
def cancel_forgotten() -> None:
    """What people wanted of a running job does not survive a restart, nor that it was recorded as stopping for it."""
    from jostle.store import runs

    right = runs.open_runs

    def forgetful(store: Any) -> list[dict[str, Any]]:
        return [{**row, "intent": "run", "state": row["state"].replace("stopping", "running")} for row in right(store)]

    swap(runs, "open_runs", forgetful)


@bug(ENGINE)
def adopts_nothing() -> None:
    """Open runs of an earlier engine are not looked at again."""
    from jostle.store import runs

    swap(runs, "open_runs", lambda store: [])


@bug(ENGINE)
def exit_before_lock() -> None:
    """Looks for the exit record first and tests the lock afterwards; those who are held at the gate end in between."""
    from jostle.backends.local.records import RunDir

    right_exit, right_locked = RunDir.exit, RunDir.locked
    early: dict[str, Any] = {}

    def locked(self: Any, claim: Any, boot: str) -> bool:
        early[self.path] = right_exit(self)
        with open(os.environ["TORTURE_GATE"], "w"):
            pass
        end = time.monotonic() + 10.0
        # nobody of it is left, the shim neither: a process that lives on is reason enough to look once more, and rightly
        while early[self.path] is None and claim is not None and not self.deserted(claim.pid) and time.monotonic() < end:
            time.sleep(0.01)
        return right_locked(self, claim, boot)

    swap(RunDir, "locked", locked)
    swap(RunDir, "exit", lambda self: early.pop(self.path, None))


# --- leases


@bug(ENGINE)
def forget_leases() -> None:
    """Claims on cards are not published."""
    from jostle.backends.local.leasedir import Directory

    swap(Directory, "publish", lambda self, names, *, automatic=False: [])


@bug(ENGINE)
def leases_die_with_engine() -> None:
    """The engine alone holds the claims, so they end with it and not with the run."""
    from jostle.backends.local import backend as local

    kept: list[int] = []

    def alone(sock: Any, spec: Any, fds: Any) -> None:
        kept.extend(os.dup(fd) for fd in fds)
        send(sock, spec, [])

    send = swap(local, "send_spec", alone)


@bug(ENGINE)
def ignore_neighbours() -> None:
    """Cards that another jostle has claimed are taken all the same, whatever they show."""
    from jostle.backends.local.backend import Local
    from jostle.backends.local.leasedir import Directory
    from jostle.engine.observe import Observer

    claims = Local.claims
    swap(Local, "claims", lambda self, uuids=None: [c for c in claims(self, uuids) if c.ours])
    swap(Directory, "contested", lambda self, uuids, allowed: False)
    blind(Observer)


def blind(observer: Any) -> None:
    """The cards look empty, as they do while a run has not allocated yet."""
    from dataclasses import replace

    gpus = observer.gpus

    def empty(self: Any, now: float) -> Any:
        bare = {"holders": (), "used_mib": 0, "mean_used_mib": 0}
        return tuple(replace(g, **bare, free_mib=g.total_mib, mean_free_mib=g.total_mib) for g in gpus(self, now))

    swap(observer, "gpus", empty)


@bug(ENGINE)
def ledger_forgets() -> None:
    """Promises of running jobs are not counted, only what the cards show already."""
    from jostle.engine.cards import KnownCards
    from jostle.engine.observe import Observer

    swap(KnownCards, "promises", lambda *_: ())
    blind(Observer)


# --- order and dependants


@bug(ENGINE)
def lost_dependants() -> None:
    """Nobody tells those who wait that what they waited for has ended."""
    from jostle.store import ends, runs

    swap(ends, "settle_dependants", lambda *_, **__: None)
    swap(runs, "settle_dependants", lambda *_, **__: None)


@bug(ENGINE)
def next_of_queue_forgotten() -> None:
    """The end of a job does not make the next of its queue ready."""
    from jostle.store import ends

    right = ends.tell_end

    def wrong(*args: Any, **more: Any) -> None:
        refresh, ends.refresh_queue = ends.refresh_queue, lambda *_: None
        try:
            right(*args, **more)
        finally:
            ends.refresh_queue = refresh

    from jostle.store import runs

    swap(ends, "tell_end", wrong)
    swap(runs, "tell_end", wrong)


@bug(ENGINE)
def queue_not_serial() -> None:
    """Every job of a queue is ready at once."""
    from jostle.store import ends, jobs, readiness

    def wrong(store: Any, queue: str, now: float) -> None:
        for (id,) in store.db.execute("SELECT id FROM job WHERE queue = ? AND state = 'queued'", (queue,)).fetchall():
            readiness._mark_ready(store, id, now)

    for room in (readiness, ends, jobs):
        swap(room, "refresh_queue", wrong)


# --- the shim


@bug(ENGINE)
@bug(SHIM)
def double_spawn() -> None:
    """Every run is handed to two shims. The claim makes this harmless: it must find nothing."""
    if IS_ENGINE:
        from jostle.backends.local.backend import Local
        from jostle.backends.local.contact import send_spec
        from jostle.port import Denied

        start = Local.start

        def twice(self: Any, launches: Any) -> None:
            for launch in launches:
                held = self._reserved[launch.run].held
                fds = [os.dup(one.fd) for one in held]
                start(self, [launch])
                if self._pool.spares:
                    spare = self._pool.spares.pop()
                    place = {"dir": self._dir(launch.run).path, "boot": self._boot, "ticks": spare.ticks}
                    claims = [f"{self._lease_dir}/{one.name}" for one in held]
                    send_spec(spare.sock, {**launch.spec, **place, "claims": claims}, fds)
                    self._pool.hang_up(spare)
                for fd in fds:
                    os.close(fd)

        swap(Local, "start", twice)
        reserve = Local.reserve

        def patient(self: Any, *args: Any, **more: Any) -> Any:
            """One spare is left for the second."""
            if len(self._pool.spares) >= 2:
                return reserve(self, *args, **more)
            self.want(6)
            return Denied.ASKED

        swap(Local, "reserve", patient)


@bug(ENGINE)
@bug(SHIM)
def no_claim() -> None:
    """Every run is handed to two shims, and a claim that exists does not stop the second."""
    double_spawn()
    from jostle.backends.local.sparedir import SpareDir

    right = SpareDir.take

    def careless(self: SpareDir, directory: str, claim: bytes) -> bool:
        return right(self, directory, claim) or True

    swap(SpareDir, "take", careless)


@bug(SHIM)
def exit_code_always_zero() -> None:
    """The end of a run is inferred, not measured."""
    from jostle.backends.local.commands import CommandTree

    record = CommandTree.record
    swap(CommandTree, "record", lambda self: {**record(self), "code": 0, "signal": None})


@bug(SHIM)
def no_subreaper() -> None:
    """Who leaves his parents is not the shim's any more."""
    from jostle.backends.local import shim

    swap(shim, "_prctl", lambda *_: 0)


@bug(SHIM)
def no_sweep() -> None:
    """What the commands left behind is not ended."""
    from jostle.backends.local.commands import CommandTree

    swap(CommandTree, "sweep", lambda self: setattr(self, "empty", True))


@bug(SHIM)
def shim_dies_with_nursery() -> None:
    """The shim does not outlive those who made it."""
    from jostle.backends.local import shim

    prctl = shim._prctl

    def tied(option: int, *rest: int) -> int:
        prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
        return int(prctl(option, *rest))

    swap(shim, "_prctl", tied)


@bug(SHIM)
def stop_with_engine() -> None:
    """A shim that does not hear its engine any more stops its run."""
    from jostle.backends.local import shim
    from jostle.backends.local.commands import CommandTree

    step, carry = CommandTree._step, shim.carry
    heard: list[Any] = []

    def listening(self: Any, at_most: float = 3600.0) -> None:
        step(self, min(at_most, 0.02))
        if heard:
            try:
                gone = heard[0].recv(1, 0x40 | 0x2) == b""  # MSG_DONTWAIT | MSG_PEEK
            except BlockingIOError:
                gone = False
            if gone:
                self.stop(kill=False)

    def carried(spec: Any, leases: Any, sock: Any, sparedir: Any) -> Any:
        heard[:] = [sock]
        return carry(spec, leases, sock, sparedir)

    swap(CommandTree, "_step", listening)
    swap(shim, "carry", carried)


@bug(SHIM)
def exit_not_written() -> None:
    """The end is told to a living engine only."""
    from jostle.backends.local import shim

    swap(shim, "write_exit", lambda *_: b"")


def main() -> int:
    if IS_ENGINE:
        from jostle import daemon
        from jostle.backends.local import nursery

        nursery.__file__ = os.path.abspath(__file__)
        swap(nursery, "KEPT", (*nursery.KEPT, "JOSTLE_BUG"))
        ENGINE.get(BUG, lambda: None)()
        return daemon.main(sys.argv[1:])
    from jostle.backends.local import nursery

    SHIM.get(BUG, lambda: None)()
    try:
        nursery.main(sys.argv[1])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return 0


if __name__ == "__main__":
    if BUG not in ENGINE | SHIM:
        sys.exit(json.dumps({"unknown bug": BUG}))
    sys.exit(main())
