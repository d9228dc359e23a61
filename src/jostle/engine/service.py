"""What the engine does for its clients: one function per request. Writes of one round share one commit, and answers follow it."""

from __future__ import annotations

import math
import os
import random
import sys
from collections.abc import Callable, Collection
from typing import Any

from jostle import __version__, config
from jostle.core import kinds
from jostle.core.explain import explain
from jostle.core.model import RunId
from jostle.core.reasons import plain
from jostle.core.survey import survey
from jostle.engine import checks, outlook, shown
from jostle.engine.engine import Engine
from jostle.engine.followers import Followers
from jostle.engine.loop import Loop
from jostle.engine.place import Place
from jostle.engine.server import Peer, Server, failure
from jostle.errors import Invalid, JostleError, NoEngine, NotFound, Unwritten, Usage
from jostle.failpoint import failpoint
from jostle.store import intents, jobs
from jostle.store.amend import amend
from jostle.store.reads import Reader
from jostle.store.store import UNFIT

Answer = dict[str, Any]
IDLE_EXIT = 30.0
SILENT = "the GPUs do not answer: the probe waits for the driver"
FIRST_WITHIN = 1.0  # s after its start that a new engine waits for a first reading before it answers a submit
GPUS_WITHIN = 3.0  # s; a driver that takes longer is not waited for
NOT_UNDERSTOOD = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, *UNFIT)
"""What a request that is not what it should be may run into."""


class Service:
    def __init__(self, engine: Engine, loop: Loop, *, permanent: bool) -> None:
        self.engine, self.store = engine, engine.store
        self.permanent = permanent
        self.server = Server(loop, engine.home, self._request)
        self.place = Place(engine.home, self.store, self.server)
        self.reader = Reader(engine.home)
        self.pending: list[tuple[Peer, dict[str, Any]]] = []
        self.followers = Followers(self.store, self.reader, self.server)
        self.began = engine.clock.now()
        self.quiet_since = self.began
        self.leaving = False  # no more requests; ends when `stopping` runs are gone
        self.waiting_for: set[RunId] = set()
        self.wanted: dict[int, str] = {}  # cancels of the present transaction
        self.then: list[Callable[[], None]] = []  # what else counts when it is recorded
        self.answer_at: float | None = None  # when those who asked for the GPUs are answered without a new reading
        engine.after_commit.append(self.followers.push)

    # --- requests come in; those of one round are answered together

    def _request(self, peer: Peer, request: dict[str, Any]) -> None:
        now, observer = self.engine.clock.now(), self.engine.observer
        early = not observer.looked_once and now < self.began + FIRST_WITHIN
        if early and request["op"] == "submit" and outlook.demanding(request.get("jobs")):
            self.engine.after_look.append(lambda: self.pending.append((peer, request)))
            self.answer_at = min(self.answer_at or math.inf, self.began + FIRST_WITHIN)
            return  # it waits for the first reading, which tells whether it can ever run; see `overdue`
        self.pending.append((peer, request))

    def serve(self) -> None:
        batch, self.pending = self.pending, []
        writes = [(p, r) for p, r in batch if r["op"] in WRITES]
        answers: list[tuple[Peer, Answer]] = []
        if writes:
            answers = self._serve_writes(writes)
        for peer, answer in answers:
            self.server.answer(peer, answer)
        for peer, request in batch:
            if request["op"] not in WRITES:
                self._serve_read(peer, request)
        if writes:
            self.engine.soon()
            self.followers.push()

    def _serve_writes(self, writes: list[tuple[Peer, dict[str, Any]]]) -> list[tuple[Peer, Answer]]:
        """One transaction; a request that fails is undone by itself."""
        answers = []
        if not self.store.in_place():
            gone = NoEngine(f"the state of this engine is not in {self.engine.home} any more: it takes nothing more")
            return [(peer, refused(gone)) for peer, _ in writes]
        next_ids = self.store.next_job, self.store.next_batch
        self.wanted, self.then = {}, []
        try:
            with self.store.transaction() as db:
                for peer, request in writes:
                    db.execute("SAVEPOINT request")
                    before = self.store.next_job, self.store.next_batch
                    try:
                        answer = {"ok": True, **WRITES[request["op"]](self, request)}
                        self._audit(request)
                    except (JostleError, *NOT_UNDERSTOOD) as e:
                        db.execute("ROLLBACK TO request")
                        self.store.next_job, self.store.next_batch = before
                        self.store.shapes.clear()
                        answer = refused(e)
                    db.execute("RELEASE request")
                    answers.append((peer, answer))
                failpoint("service.before_commit")
        except Unwritten as e:
            self.store.next_job, self.store.next_batch = next_ids
            return [(peer, failure(e.code, str(e))) for peer, _ in writes]
        failpoint("service.after_commit")
        self._cancelled()
        for act in self.then:
            act()
        return answers

    def _serve_read(self, peer: Peer, request: dict[str, Any]) -> None:
        handler = READS.get(request["op"])
        try:
            if handler is None:
                raise Usage(f"the engine does not know the request {request['op']!r}")
            answer = handler(self, peer, request)
        except (JostleError, *NOT_UNDERSTOOD) as e:
            answer = refused(e)
        if answer is not None:
            self.server.answer(peer, {"ok": True, **answer})

    def _audit(self, request: dict[str, Any]) -> None:
        """Who asked for a change, where that is more than this user: recorded with it or not at all."""
        by = request.get("by")
        if by is not None:
            who, did, what = (checks.remark(by, key) for key in ("who", "did", "what"))
            self.store.event(self.engine.clock.wall(), "asked", who=who, did=did, what=what)

    # --- writes

    def note(self, request: dict[str, Any]) -> Answer:
        """A change that is none of the store's, for the record."""
        if request.get("by") is None:
            raise Invalid("note needs `by`: who, did and what")
        return {}

    def submit(self, request: dict[str, Any]) -> Answer:
        e = self.engine
        if self.leaving:
            raise JostleError("the engine is about to end: try again in a moment")
        checked = checks.request(request)
        rank = random.Random(checked["batch"].get("seed")).random  # without a seed: any order
        hopeless = self._hopeless(checked)
        if request.get("strict"):
            outlook.refuse(hopeless, checked["jobs"])
        answer = jobs.submit(self.store, checked, at=e.clock.wall(), now=e.clock.now(), rank=rank)
        never = outlook.told(hopeless, checked["jobs"], answer["ids"][0])
        return {**answer, "never": never} if never else answer

    def _hopeless(self, checked: dict[str, Any]) -> dict[Any, Any] | None:
        rules = {**(self.engine.settings.get("policy") or {}), **(checked["batch"].get("policy") or {})}
        return outlook.hopeless(self.engine.observer, checks.policy(rules), checked["jobs"])

    def check(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """What of these jobs could never run here, without queueing them."""
        checked = checks.request(request)
        found = self._hopeless(checked)
        return {"checked": found is not None, "never": outlook.told(found, checked["jobs"])}

    def amend(self, request: dict[str, Any]) -> Answer:
        """Another owner, other rules or other jobs for a batch that runs."""
        e = self.engine
        change = checks.amendment(request)
        answer = amend(self.store, change, at=e.clock.wall(), now=e.clock.now(), rank=random.random)
        e.policies.pop(change["batch"], None)
        return answer

    def intent(self, request: dict[str, Any]) -> Answer:
        do = request.get("do")
        ids = self._ids(request)
        at, now = self.engine.clock.wall(), self.engine.clock.now()
        if do == "retry":
            new, refused = intents.retry(self.store, ids, at=at, now=now)
            return {"done": list(new), "refused": refused, "new": new}
        if do == "cancel":
            done, refused = self._cancel(ids, bool(request.get("now")), at, now)
            return {"done": done, "refused": refused, "new": {}}
        acts: dict[str, Callable[[int], str | None]] = {
            "hold": lambda id: intents.hold(self.store, id, True, at=at, now=now),
            "unhold": lambda id: intents.hold(self.store, id, False, at=at, now=now),
            "move": lambda id: intents.move(self.store, id, checks.destination(request.get("to")), at=at, now=now),
            "set": lambda id: intents.change(self.store, id, checks.settable(request.get("values")), at=at, now=now),
        }
        if do not in acts:
            raise Usage(f"an intent is one of {', '.join([*acts, 'cancel', 'retry'])}, not {do!r}")
        done, refused = [], []
        for id in ids:
            why = acts[do](id)
            if why is None:
                done.append(id)
            else:
                refused.append((id, why))
        return {"done": done, "refused": refused, "new": {}}

    def _ids(self, request: dict[str, Any]) -> list[int]:
        if request.get("batch") is not None:
            return jobs.unfinished(self.store, int(request["batch"]))
        ids = request.get("ids")
        if not isinstance(ids, list) or not all(kinds.whole(i, 1, kinds.MAX_ID) for i in ids):
            raise Invalid("ids must be a list of job numbers")
        return ids

    def _cancel(self, ids: list[int], kill: bool, at: float, now: float) -> tuple[list[int], list[tuple[int, str]]]:
        done, refused = intents.cancel(self.store, ids, kill, at=at, now=now)
        self.wanted.update(dict.fromkeys(done, "kill" if kill else "cancel"))
        return done, refused

    def _cancelled(self) -> None:
        """What people want is known to the runs only when it is recorded."""
        wanted, self.wanted = self.wanted, {}
        for run in self.engine.open_runs.values():
            if run.id[0] in wanted and run.intent != "kill":
                run.intent = wanted[run.id[0]]

    def exclude(self, request: dict[str, Any]) -> Answer:
        on = bool(request.get("on"))
        observer, at = self.engine.observer, self.engine.clock.wall()
        cards = [(g["index"], g["uuid"]) for g in observer.snapshot["gpus"]]  # the slices of one have its index
        wanted = request.get("gpus") or []
        unknown = sorted(set(wanted) - {i for i, _ in cards})
        if unknown:
            raise NotFound(f"there is no GPU {', '.join(map(str, unknown))} here")
        uuids = [uuid for i in wanted for index, uuid in cards if index == i]
        excluded = observer.excluded.union(uuids) if on else observer.excluded.difference(uuids)
        self.store.put("excluded", sorted(excluded))
        self.then.append(lambda: setattr(observer, "excluded", excluded))
        faulty = observer.health.faulty if on else self._pardon(uuids, at)
        self.store.event(at, "excluded" if on else "included", gpus=wanted, uuids=uuids)
        out, sick = (sorted({i for i, uuid in cards if uuid in those}) for those in (excluded, faulty))
        return {"excluded": out, "faulty": sick}

    def _pardon(self, uuids: list[str], at: float) -> Collection[str]:
        """What a person takes back is no longer set aside as faulty, and what was held against it is forgotten."""
        e = self.engine
        health = e.observer.health.pardon([g for g in e.observer.gpus(e.clock.now()) if g.uuid in uuids], at)
        health.keep(self.store)
        self.then.append(lambda: e.pardoned(health, uuids))
        return health.faulty

    def prune(self, request: dict[str, Any]) -> Answer:
        """Forgets what happened before a moment, and what was captured for jobs that ended before it."""
        before = request.get("before")
        if before is None or not kinds.number(before):
            raise Invalid("prune needs `before`, an instant in seconds")
        self.then += [self.engine.contexts.clear, self.store.forget]
        return {name: prune(self.store, float(before)) for name, prune in intents.PRUNED.items()}

    def reload(self, request: dict[str, Any]) -> Answer:
        settings = request.get("config") or {}
        policy = checks.settings(settings)
        self.store.event(self.engine.clock.wall(), "reloaded")
        self.then.append(lambda: self.engine.reload(settings, policy))
        return {}

    # --- reads

    def hello(self, peer: Peer, request: dict[str, Any]) -> Answer:
        e = self.engine
        return {
            "version": __version__, "pid": os.getpid(), "gpus_spec": e.spec, "home": e.home, "lease_dir": e.lease_dir,
            "uptime_s": round(e.clock.now() - self.began, 1),
            "sim_dir": config.sim_dir(e.home) if e.spec.startswith("sim:") else None,
            "counts": self.reader.counts(), "hold": e.hold(), "permanent": self.permanent,
            "driver": e.observer.snapshot["driver"], "probe": e.trouble() or self._owed(),
            "seq": self.followers.seq, "kept_for": e.kept_for,
        }  # fmt: skip

    def up(self, peer: Peer, request: dict[str, Any]) -> Answer:
        self.permanent = True
        return self.hello(peer, request)

    def why(self, peer: Peer, request: dict[str, Any]) -> Answer:
        row = self.reader.job(int(request.get("id") or 0))
        if row is None:
            raise NotFound(f"there is no job {request.get('id')}")
        reason = explain(
            row, shape_reason=self.engine.waits.get(row["shape"]), now=self.engine.clock.now(), wall=self.engine.clock.wall(),
            ahead=self.reader.ahead(row["id"]), needs=self.reader.needs(row["id"]),
        )  # fmt: skip
        reason = reason or self.engine.beyond().get(row["id"])
        row["reason"] = plain(reason) if reason else row["reason"]
        behind = self.reader.alike(row["shape"], row["id"]) if row["ready"] == 1 else 0
        return {"job": row, "reason": row["reason"], "behind": behind}

    def reasons(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return {
            "shapes": {shape: plain(reason) for shape, reason in self.engine.waits.items()},
            "running": {job: plain(reason) for job, reason in self.engine.beyond().items()},
            "hold": self.engine.hold(), "now": self.engine.clock.now(),
        }  # fmt: skip

    def gpus(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        now = self.engine.clock.now()
        if now - self.engine.observer.read_at > 0.5 and not request.get("again") and not self.engine.starting():
            again = {**request, "again": True}
            self.engine.after_look.append(lambda: self._serve_read(peer, again))
            self.engine.probe.look(now)
            self.answer_at = self.answer_at or now + GPUS_WITHIN
            return None  # answered when the reading has come, or by `overdue`
        gpus = self.engine.observer.gpus(now)
        found = survey(self.engine.world(now, gpus, self.engine.backend.claims({g.uuid for g in gpus})))
        return {
            "gpus": [shown.gpu(g, *found[g.uuid], self.engine.open_runs.values()) for g in gpus],
            "spec": self.engine.spec,
            "age_s": round(now - self.engine.observer.read_at, 2) if self.engine.observer.looked_once else None,
            "error": self.engine.trouble() or ("" if self.engine.observer.fresh(now) else SILENT),
        }

    def _owed(self) -> str:
        """An engine at rest looks rarely; only a reading that was asked for is missed."""
        since, now = self.engine.probe.owed_since, self.engine.clock.now()
        return SILENT if since is not None and now - since > GPUS_WITHIN else ""

    def overdue(self, now: float) -> None:
        """Those who wait for a reading that does not come are told what is known."""
        if self.answer_at is not None and now >= self.answer_at:
            self.answer_at = None
            waiting, self.engine.after_look = self.engine.after_look, []
            for answer in waiting:
                answer()

    def subscribe(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        self.followers.add(peer, int(request.get("after") or 0), request.get("batch"))
        return None

    def down(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """Running jobs go on, unless they are to be stopped; then the engine goes when they have."""
        if request.get("stop_jobs"):
            self.waiting_for = set(self.engine.open_runs)
            with self.store.transaction():
                running = sorted({run[0] for run in self.waiting_for})
                self._cancel(running, bool(request.get("now")), self.engine.clock.wall(), self.engine.clock.now())
            self._cancelled()
            self.engine.ending = True
            self.engine.soon()
        self.leaving = True
        return {"pid": os.getpid(), "runs": len(self.engine.open_runs)}

    def make_way(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """Ends in favour of an engine with other GPUs, if nothing is at stake."""
        blind = not self.engine.open_runs and not self.engine.observer.snapshot["gpus"]  # nothing could ever start here
        if self.reader.busy() and not blind:
            raise JostleError(
                f"an engine with other GPUs ({self.engine.spec or 'nvml'}) is busy: wait for its jobs, or cancel them, "
                f"or use another JOSTLE_HOME for {request.get('gpus')}"
            )
        self.leaving = True
        return {}

    # --- between rounds

    def finished(self, now: float) -> bool:
        """Whether the engine should end now."""
        if self.leaving:
            return not (self.waiting_for & self.engine.open_runs.keys())
        busy = self.permanent or self.server.peers or self.engine.open_runs or self.engine.lanes
        if busy:
            self.quiet_since = now
        elif now - self.quiet_since >= IDLE_EXIT:
            return not self.reader.busy()
        return False

    def housekeeping(self, now: float) -> float:
        self.server.listen_again()
        if not self.place.keep():
            self.leaving, self.waiting_for = True, set()
        for uid in self.server.refused:
            print(f"refused a connection by uid {uid}", file=sys.stderr, flush=True)
            self.engine.journal("refused", uid=uid)
        self.server.refused.clear()
        return now + (5.0 if self.permanent else 2.0)


def refused(e: Exception) -> Answer:
    if isinstance(e, JostleError):
        return failure(e.code, str(e), getattr(e, "about", None))
    print(f"a request was not understood: {e!r}", file=sys.stderr, flush=True)
    return failure("invalid", f"the request cannot be understood: {e}")


WRITES: dict[str, Callable[[Service, dict[str, Any]], Answer]] = {
    "submit": Service.submit, "amend": Service.amend, "intent": Service.intent, "exclude": Service.exclude,
    "reload": Service.reload, "prune": Service.prune, "note": Service.note,
}  # fmt: skip

READS: dict[str, Callable[[Service, Peer, dict[str, Any]], Answer | None]] = {
    "hello": Service.hello, "up": Service.up, "why": Service.why, "reasons": Service.reasons, "gpus": Service.gpus,
    "check": Service.check,
    "subscribe": Service.subscribe, "down": Service.down, "yield": Service.make_way,
}  # fmt: skip
