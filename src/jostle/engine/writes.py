"""What people ask to be changed: one function per request, each inside the transaction of its round.

What a change means for the engine's memory counts only when it is recorded: `recorded` does that, for what was not undone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from jostle.core import kinds
from jostle.core.fields import LIMITS
from jostle.core.limits import MANAGER, OWN
from jostle.core.reasons import Reason, kept
from jostle.engine import checks, outlook
from jostle.engine.cards import KnownCards
from jostle.engine.engine import Engine
from jostle.errors import Invalid, JostleError, NotFound, Usage
from jostle.store import intents, jobs
from jostle.store.amend import amend

Answer = dict[str, Any]
Request = dict[str, Any]


class Writes:
    def __init__(self, engine: Engine, cards: KnownCards) -> None:
        self._engine, self._cards, self._store, self._clock = engine, cards, engine.store, engine.clock
        self.leaving = False  # the engine is about to end: nothing is queued any more
        self._then: list[Callable[[], None]] = []  # of the present transaction, what counts when it is recorded

    def begin(self) -> None:
        """A transaction begins."""
        self._then = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """One request of it; if that fails, nothing follows from it."""
        before = len(self._then)
        try:
            yield
        except BaseException:
            del self._then[before:]
            raise

    def recorded(self) -> None:
        """It is committed: what people want is known to the runs only now."""
        then, self._then = self._then, []
        for act in then:
            act()

    def audit(self, request: Request) -> None:
        """Who asked for a change, where that is more than this user: recorded with it or not at all."""
        by = request.get("by")
        if by is not None:
            who, did, what = (checks.remark(by, key) for key in ("who", "did", "what"))
            self._store.event(self._clock.wall(), "asked", who=who, did=did, what=what)

    def note(self, request: Request) -> Answer:
        """A change that is none of the store's, for the record."""
        if request.get("by") is None:
            raise Invalid("note needs `by`: who, did and what")
        return {}

    def submit(self, request: Request) -> Answer:
        if self.leaving:
            raise JostleError("the engine is about to end: try again in a moment")
        checked = checks.request(request)
        rank = random.Random(checked["batch"].get("seed")).random  # without a seed: any order
        never = self.hopeless(checked)
        if request.get("strict"):
            outlook.refuse(never, checked["jobs"])
        answer = jobs.submit(self._store, checked, at=self._clock.wall(), now=self._clock.now(), rank=rank)
        listed = outlook.listed(never, checked["jobs"], answer["ids"][0])
        return {**answer, "never": listed} if listed else answer

    def hopeless(self, checked: Request) -> outlook.Never:
        """What of these jobs could never run here."""
        known = self._engine.rules
        policy = known.of_values(checked["batch"].get("policy") or {})
        targets, counters = self._engine.targets(outlook.cards(self._cards.facts())), known.settings.get("counters") or {}
        return outlook.hopeless(targets, policy, known.limits, counters, checked["jobs"])

    def amend(self, request: Request) -> Answer:
        """Another owner, other rules or other jobs for a batch that runs."""
        change = checks.amendment(request)
        answer = amend(self._store, change, at=self._clock.wall(), now=self._clock.now(), rank=random.random)
        self._then.append(lambda: self._engine.rules_changed(change["batch"]))
        return answer

    def intent(self, request: Request) -> Answer:
        do = request.get("do")
        ids = self._ids(request)
        at, now = self._clock.wall(), self._clock.now()
        if do == "retry":
            new, declined = intents.retry(self._store, ids, at=at, now=now)
            return {"done": list(new), "refused": plain(declined), "new": new}
        if do == "cancel":
            done, declined = self.cancel(ids, bool(request.get("now")), at, now)
            return {"done": done, "refused": plain(declined), "new": {}}
        acts: dict[str, Callable[[int], Reason | None]] = {
            "hold": lambda id: intents.hold(self._store, id, True, at=at, now=now),
            "unhold": lambda id: intents.hold(self._store, id, False, at=at, now=now),
            "keep": lambda id: intents.keep(self._store, id),
            "move": lambda id: intents.move(self._store, id, checks.destination(request.get("to")), at=at, now=now),
            "set": lambda id: self.change(id, checks.settable(request.get("values")), at, now),
        }
        if do not in acts:
            raise Usage(f"an intent is one of {', '.join([*acts, 'cancel', 'retry'])}, not {do!r}")
        answers = [(id, acts[do](id)) for id in ids]
        done = [id for id, why in answers if why is None]
        return {"done": done, "refused": plain((id, why) for id, why in answers if why is not None), "new": {}}

    def change(self, id: int, values: dict[str, Any], at: float, now: float) -> Reason | None:
        why = intents.change(self._store, id, values, at=at, now=now)
        if why is None and "gpus" in values:
            least, most = values["gpus"]
            self._then.append(lambda: self._engine.resizer.asked(id, least, most))
        return why

    def _ids(self, request: Request) -> list[int]:
        if request.get("batch") is not None:
            return jobs.unfinished(self._store, int(request["batch"]))
        ids = request.get("ids")
        if not isinstance(ids, list) or not all(kinds.is_integer(i, 1, kinds.MAX_ID) for i in ids):
            raise Invalid("ids must be a list of job numbers")
        return ids

    def cancel(self, ids: list[int], kill: bool, at: float, now: float) -> tuple[list[int], intents.Declined]:
        done, declined = intents.cancel(self._store, ids, kill, at=at, now=now)
        self._then.append(lambda: self._engine.people_want(dict.fromkeys(done, "kill" if kill else "cancel")))
        return done, declined

    def exclude(self, request: Request) -> Answer:
        on, at = bool(request.get("on")), self._clock.wall()
        cards = [(g["index"], g["uuid"]) for g in self._cards.facts()]  # the slices of one have its index
        indices = request.get("gpus") or []
        unknown = sorted(set(indices) - {i for i, _ in cards})
        if unknown:
            raise NotFound(f"there is no GPU {', '.join(map(str, unknown))} here")
        uuids = [uuid for i in indices for index, uuid in cards if index == i]
        excluded = {*self._cards.excluded, *uuids} if on else {*self._cards.excluded} - {*uuids}
        self._store.put("excluded", sorted(excluded))
        self._then.append(lambda: self._cards.exclude(excluded))
        faulty = self._cards.faulty if on else self._pardon(uuids, at)
        self._store.event(at, "excluded" if on else "included", gpus=indices, uuids=uuids)
        out, sick = (sorted({i for i, uuid in cards if uuid in set_of}) for set_of in (excluded, faulty))
        return {"excluded": out, "faulty": sick}

    def _pardon(self, uuids: list[str], at: float) -> Collection[str]:
        """What a person takes back is no longer set aside as faulty, and what was held against it is forgotten."""
        health = self._cards.pardon(uuids, at)
        self._then.append(lambda: self._engine.pardoned(health, uuids))
        return health.faulty

    def prune(self, request: Request) -> Answer:
        """Forgets what happened before a moment, and what was captured for jobs that ended before it."""
        before = request.get("before")
        if before is None or not kinds.number(before):
            raise Invalid("prune needs `before`, an instant in seconds")
        self._then += [self._engine.forget_contexts, self._store.forget]
        return {name: prune(self._store, float(before)) for name, prune in intents.PRUNED.items()}

    def reload(self, request: Request) -> Answer:
        settings = request.get("config") or {}
        policy = checks.settings(settings)
        self._store.event(self._clock.wall(), "reloaded")
        self._then.append(lambda: self._engine.reload(settings, policy))
        return {}


    def set_limits(self, request: Request) -> Answer:
        """How many cards the person may hold, by their own word, or by a manager's file that they have loaded."""
        if "manager" in request:
            self._store.put(MANAGER, checks.manager_limits(request["manager"]))
        values = {**self._store.get(OWN, {}), **checks.limits(request.get("set") or {})}
        cleared = request.get("clear") or []
        if unknown := sorted(set(cleared) - set(LIMITS)):
            raise Invalid(f"there is no limit {', '.join(unknown)}: only {', '.join(LIMITS)}")
        self._store.put(OWN, {name: most for name, most in values.items() if name not in cleared and most is not None})
        self._store.event(self._clock.wall(), "limits")
        self._then.append(self._engine.rules.limits_changed)
        return {}


def plain(declined: Iterable[tuple[int, Reason]]) -> list[tuple[int, dict[str, Any]]]:
    return [(id, kept(why)) for id, why in declined]


WRITES: dict[str, Callable[[Writes, Request], Answer]] = {
    "submit": Writes.submit, "amend": Writes.amend, "intent": Writes.intent, "exclude": Writes.exclude,
    "reload": Writes.reload, "prune": Writes.prune, "note": Writes.note, "set_limits": Writes.set_limits,
}  # fmt: skip
