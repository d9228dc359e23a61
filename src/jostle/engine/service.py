"""What the engine does for its clients: one function per request. Writes of one round share one commit, and answers follow it."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from jostle.core.model import RunId
from jostle.engine import checks, outlook
from jostle.engine.answers import GPUS_WITHIN, Answers
from jostle.engine.engine import Engine
from jostle.engine.followers import Followers
from jostle.engine.loop import Loop
from jostle.engine.preview import Preview
from jostle.engine.server import Peer, Server, failure
from jostle.engine.whereabouts import Whereabouts
from jostle.engine.writes import WRITES, Writes
from jostle.errors import JostleError, NoEngine, Unwritten, Usage
from jostle.failpoint import failpoint
from jostle.store.reads import Reader
from jostle.store.store import UNFIT

Answer = dict[str, Any]
IDLE_EXIT = 30.0
FIRST_WITHIN = 1.0  # s after its start that a new engine waits for a first reading before it answers a submit
NOT_UNDERSTOOD = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, *UNFIT)
"""What a request that is not what it should be may run into."""


class Service:
    def __init__(self, engine: Engine, loop: Loop, *, permanent: bool, paths: Mapping[str, str | None] | None = None) -> None:
        """`paths`: where backend and probe keep what is theirs, for who asks."""
        self.engine, self.cards, self.journal = engine, engine.cards, engine.journal
        self.store, self.clock = engine.store, engine.clock
        self.permanent = permanent
        self.server = Server(loop, engine.home, self.request)
        self.whereabouts = Whereabouts(engine.home, self.store, self.server)
        self.reader = Reader(engine.home)
        self.pending: list[tuple[Peer, dict[str, Any]]] = []
        self.followers = Followers(self.store, self.reader, self.server)
        self.writes = Writes(engine, engine.cards)
        self.answers = Answers(engine, engine.cards, self.reader, paths or {})
        self.previews = Preview(engine, self.writes)
        self.began = self.quiet_since = self.clock.now()
        self.housekeeping_at = 0.0
        self.leaving = False
        self.waiting_for: frozenset[RunId] = frozenset()
        self.answer_at: float | None = None  # when those who asked for the GPUs are answered without a new reading
        self.journal.after_commit.append(self.followers.push)

    # --- requests come in; those of one round are answered together

    def request(self, peer: Peer, request: dict[str, Any]) -> None:
        now = self.clock.now()
        early = self.cards.age(now) is None and now < self.began + FIRST_WITHIN
        if early and request["op"] == "submit" and outlook.demanding(request.get("jobs")):
            self.cards.after_next_look(lambda: self.pending.append((peer, request)))
            self.answer_at = min(self.answer_at or math.inf, self.began + FIRST_WITHIN)
            return  # it waits for the first reading, which tells whether it can ever run; see `overdue`
        self.pending.append((peer, request))

    def serve(self) -> None:
        batch, self.pending = self.pending, []
        writes = [(p, r) for p, r in batch if r["op"] in WRITES]
        answers: list[tuple[Peer, Answer]] = []
        if writes:
            answers = self.serve_writes(writes)
        for peer, answer in answers:
            self.server.answer(peer, answer)
        for peer, request in batch:
            if request["op"] not in WRITES:
                self._serve_read(peer, request)
        if writes:
            self.engine.soon()
            self.followers.push()

    def serve_writes(self, writes: list[tuple[Peer, dict[str, Any]]]) -> list[tuple[Peer, Answer]]:
        """One transaction; a request that fails is undone by itself."""
        answers = []
        if not self.store.in_place():
            gone = NoEngine(f"the state of this engine is not in {self.engine.home} any more: it takes nothing more")
            return [(peer, refused(gone)) for peer, _ in writes]
        self.writes.begin()
        try:
            with self.store.transaction():
                for k, (peer, request) in enumerate(writes):
                    answers.append((peer, self._write(request, first=k == 0)))
                failpoint("service.before_commit")
        except Unwritten as e:
            return [(peer, failure(e.code, str(e))) for peer, _ in writes]
        failpoint("service.after_commit")
        self.writes.recorded()
        return answers

    def _write(self, request: dict[str, Any], *, first: bool) -> Answer:
        try:
            with self.store.part(first=first), self.writes.part():
                answer = WRITES[request["op"]](self.writes, request)
                self.writes.audit(request)
                return {"ok": True, **answer}
        except (JostleError, *NOT_UNDERSTOOD) as e:
            return refused(e)

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

    # --- reads, and the engine's own life

    def hello(self, peer: Peer, request: dict[str, Any]) -> Answer:
        answer = self.answers.hello(counts=bool(request.get("counts", True)), resources=bool(request.get("resources")))
        return {**answer, "permanent": self.permanent, "seq": self.followers.seq}

    def up(self, peer: Peer, request: dict[str, Any]) -> Answer:
        self.permanent = True
        return self.hello(peer, request)

    def why(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return self.answers.why(request)

    def reasons(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return self.answers.reasons()

    def limits(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return self.answers.limits()

    def room(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        return None if self._after_a_look(peer, request) else self.answers.room(request)

    def held(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return self.answers.held(request)

    def history(self, peer: Peer, request: dict[str, Any]) -> Answer:
        return self.answers.history(request)

    def check(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """What of these jobs could never run here, without queueing them."""
        checked = checks.request(request)
        never = self.writes.hopeless(checked)
        return {"checked": never is not None, "never": outlook.listed(never, checked["jobs"])}

    def gpus(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        return None if self._after_a_look(peer, request) else self.answers.gpus()

    def preview(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        """What would become of these jobs if they were queued now."""
        return None if self._after_a_look(peer, request) else self.previews.answer(request)

    def what_if(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        """What other rules would mean now."""
        return None if self._after_a_look(peer, request) else self.previews.what_if(request)

    def _after_a_look(self, peer: Peer, request: dict[str, Any]) -> bool:
        """Whether it is answered when a new reading of the GPUs has come, or by `overdue`, as the last is too old."""
        age = self.cards.age(self.clock.now())
        old = (age is None or age > 0.5) and not request.get("again") and not self.cards.starting()
        if old:
            again = {**request, "again": True}
            self.cards.after_next_look(lambda: self._serve_read(peer, again))
            self.cards.look()
            self.answer_at = self.answer_at or self.clock.now() + GPUS_WITHIN
        return old

    def overdue(self, now: float) -> None:
        """Those who wait for a reading that does not come are told what is known."""
        if self.answer_at is not None and now >= self.answer_at:
            self.answer_at = None
            self.cards.answer_waiting()

    def subscribe(self, peer: Peer, request: dict[str, Any]) -> Answer | None:
        rows = bool(request.get("rows", True))
        self.followers.add(peer, int(request.get("after") or 0), request.get("batch"), rows=rows)
        return None

    def down(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """Running jobs go on, unless they are to be stopped; then the engine goes when those have that it can reach."""
        open_ids, absent = self.engine.open_ids(), self.engine.carried.absent()
        if request.get("stop_jobs"):
            self.waiting_for = open_ids - absent
            self.writes.begin()
            with self.store.transaction():
                running = sorted({run[0] for run in open_ids})
                self.writes.cancel(running, bool(request.get("now")), self.clock.wall(), self.clock.now())
            self.writes.recorded()
            self.engine.stop_all()
        self.leave()
        grace = self.engine.carried.longest_grace()
        return {"pid": os.getpid(), "runs": len(open_ids), "absent": len(absent), "grace_s": grace}

    def make_way(self, peer: Peer, request: dict[str, Any]) -> Answer:
        """Ends in favour of an engine with other GPUs, if nothing is at stake."""
        blind = not self.engine.open_ids() and not self.cards.facts()  # nothing could ever start here
        if self.reader.busy() and not blind:
            raise JostleError(
                f"an engine with other GPUs ({self.engine.devices}) is busy: wait for its jobs, or cancel them, "
                f"or use another JOSTLE_HOME for {request.get('gpus')}"
            )
        self.leave()
        return {}

    def leave(self) -> None:
        """No more requests; the engine ends when the runs that it waits for are gone."""
        self.leaving = self.writes.leaving = True

    # --- between rounds

    def finished(self, now: float) -> bool:
        """Whether the engine should end now."""
        if self.leaving:
            return not (self.waiting_for & self.engine.open_ids())
        busy = self.permanent or self.server.peers or self.engine.open_ids() or self.engine.lanes
        if busy:
            self.quiet_since = now
        elif now - self.quiet_since >= IDLE_EXIT:
            return not self.reader.busy()
        return False

    def step(self, now: float) -> None:
        """Whatever is due."""
        if now >= self.housekeeping_at:
            self.housekeeping()
            self.housekeeping_at = now + (5.0 if self.permanent else 2.0)
        self.overdue(now)

    def next_at(self) -> float:
        """When the next step is due."""
        return self.housekeeping_at if self.answer_at is None else min(self.housekeeping_at, self.answer_at)

    def housekeeping(self) -> None:
        self.server.listen_again()
        if not self.whereabouts.keep():
            self.waiting_for = frozenset()
            self.leave()
        for uid, times in self.server.refused.items():
            many = f" ({times} times)" if times > 1 else ""
            print(f"refused a connection by uid {uid}{many}", file=sys.stderr, flush=True)
            self.journal.event("refused", uid=uid, times=times)
        self.server.refused.clear()


def refused(e: Exception) -> Answer:
    if isinstance(e, JostleError):
        return failure(e.code, str(e), getattr(e, "about", None))
    print(f"a request was not understood: {e!r}", file=sys.stderr, flush=True)
    return failure("invalid", f"the request cannot be understood: {e}")


READS: dict[str, Callable[[Service, Peer, dict[str, Any]], Answer | None]] = {
    "hello": Service.hello, "up": Service.up, "why": Service.why, "reasons": Service.reasons, "gpus": Service.gpus,
    "check": Service.check, "preview": Service.preview, "what_if": Service.what_if,
    "history": Service.history, "limits": Service.limits, "room": Service.room, "held": Service.held,
    "subscribe": Service.subscribe, "down": Service.down, "yield": Service.make_way,
}  # fmt: skip
