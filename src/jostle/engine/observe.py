"""Facts into values: the probe's lines become Gpus, claims and open runs become Promises.

An unreadable card is not free, an old reading is no reading, and after one of our runs ended its cards count as unknown until a
look that began later (Observer.distrust). A card may be late by itself: then its reading is as old as it says, and answers the
look that it says, not the one that the snapshot answers.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from jostle.core.ledger import ORDINARY_UID
from jostle.core.model import LOCAL, Gpu, Holder, Lease, Node, Promise, RunId, Target
from jostle.core.reasons import Hold
from jostle.engine.health import Health
from jostle.port import Claimed

WINDOW, APART = 3.0, 0.09
SAMPLES_APART = 0.9  # s between two samples of a card or a run, however often it is read
"""Averages are over this long, of samples this far apart."""
FRESH_FOR = 0.7
"""A choice is made on readings no older than this."""
KNOWN_FOR = 600.0
"""What an ended run left on a card is told from strangers for so long; all that is older is forgotten at once, now and then."""
UNSEEN = 30.0
"""What a card did between two readings further apart is not known: an engine at rest looks every 10 s."""
STEADY_LOAD = 5
"""Percent of utilisation up to which a card counts as idle."""


class Samples:
    """What one card showed lately, and its averages."""

    __slots__ = ("_taken", "_totals", "at", "newest", "steady_since")

    def __init__(self) -> None:
        self._taken: deque[tuple[float, int, int, int]] = deque()
        self._totals = [0, 0, 0]
        self.newest: tuple[int, int, int] | None = None
        self.steady_since = 0.0  # since when nothing changed
        self.at = math.inf  # of the last reading; none yet

    def add(self, now: float, used: int, free: int, load: int) -> None:
        taken, totals, self.at = self._taken, self._totals, now
        if not taken or now - taken[-1][0] >= APART:
            taken.append((now, used, free, load))
            if self.newest != (used, free, load):
                self.newest, self.steady_since = (used, free, load), now
            totals[0] += used
            totals[1] += free
            totals[2] += load
        while taken[0][0] < now - WINDOW:
            _, used, free, load = taken.popleft()
            totals[0] -= used
            totals[1] -= free
            totals[2] -= load

    def means(self) -> tuple[int, int, int]:
        n = len(self._taken)
        return self._totals[0] // n, self._totals[1] // n, self._totals[2] // n


class Observer:
    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.snapshot: dict[str, Any] = {"gpus": [], "error": None, "hold": None, "driver": None}
        self.processes: dict[str, list[dict[str, Any]]] = {}  # of it, by card
        self.tail = b""  # the part of the last line that tells of GPUs, to see at a glance whether anything changed
        self.read_at = -1e9
        self.probe_at = 0.0  # that moment by the probe's clock
        self.looked = 0
        self.moving = False  # an average is not yet that of what is read now
        self.distrusted: dict[str, int] = {}  # uuid -> number of the look that will settle it
        self.samples: dict[str, Samples] = {}
        self.idle_since: dict[str, float] = {}  # by its readings, which have followed each other closely since
        self.small_mib = 512  # the most that any policy calls small
        self.small_since: dict[tuple[str, int, Any], float] = {}  # card, pid, start -> since when: foreign processes
        self.left_at: dict[str, float] = {}  # when a run of ours last left a card
        self.excluded: set[str] = set()
        self.health = Health()
        self.peaks: dict[RunId, int] = {}
        self.sessions: dict[int, RunId] = {}  # session of its processes -> run, open ones
        self.marks: dict[str, RunId] = {}  # uni_id -> run, open ones and those that ended lately
        self.ended: dict[RunId, float] = {}  # when, in that order
        self.placed: dict[RunId, frozenset[str]] = {}
        self.allocations: set[RunId] = set()
        self.allocated: dict[str, RunId] = {}  # card -> the allocation that has it; of several the first
        self.given_at: dict[str, float] = {}  # when each card was last given to a run
        self.company: dict[RunId, frozenset[tuple[str, int]]] = {}  # (uuid, pid) of strangers who were there before it

    # --- runs come and go

    def run_opened(
        self, run: RunId, uni_id: str, sid: int | None, uuids: Iterable[str], *, allocation: bool = False
    ) -> None:  # fmt: skip
        if sid:
            self.sessions[sid] = run
        self.marks[uni_id] = run
        self.placed[run] = frozenset(uuids)
        if allocation:
            self.allocations.add(run)
            self.allocated = {**dict.fromkeys(self.placed[run], run), **self.allocated}
        if self.looked_once:
            self.company[run] = self._strangers(self.placed[run])

    def has_used(self, run: RunId, mib: int) -> None:
        """At some moment, on one card; perhaps while an earlier engine looked."""
        self.peaks[run] = max(self.peaks.get(run, 0), mib)

    def run_resized(self, run: RunId, uuids: Iterable[str], more: Iterable[str]) -> None:
        """It holds these cards now, some of them since this moment."""
        self.placed[run] = frozenset(uuids)
        if run in self.allocations:
            others = {uuid: holder for uuid, holder in self.allocated.items() if holder != run}
            self.allocated = {**dict.fromkeys(self.placed[run], run), **others}
        if self.looked_once:
            self.company[run] = self.company.get(run, frozenset()) | self._strangers(frozenset(more))

    def run_ended(self, run: RunId, now: float) -> None:
        """It is known for a while yet, so that what it left on a card is told from strangers."""
        self.ended[run] = now
        self.placed.pop(run, None)
        if run in self.allocations:
            self.allocations.remove(run)
            self.allocated = {uuid: holder for uuid, holder in self.allocated.items() if holder != run}
        self.company.pop(run, None)
        self.peaks.pop(run, None)
        if now - next(iter(self.ended.values())) > 2 * KNOWN_FOR:
            self.ended = {r: at for r, at in self.ended.items() if now - at <= KNOWN_FOR}
            kept = self.ended.keys() | self.placed.keys()
            self.sessions = {k: v for k, v in self.sessions.items() if v in kept}
            self.marks = {k: v for k, v in self.marks.items() if v in kept}

    def distrust(self, uuids: Iterable[str], look: int, now: float) -> None:
        """A run of ours ended: these cards are not believed to be free before look number `look` has been answered."""
        for uuid in uuids:
            self.left_at[uuid] = now
            self.distrusted[uuid] = look
            self.samples.pop(uuid, None)  # the averages were of the run that ended, and say nothing about others

    # --- readings

    def hear(self, line: bytes, now: float) -> bool:
        """Takes one snapshot; False if it tells nothing new."""
        cut = line.find(b'"gpus":')
        tail = line[cut:] if cut >= 0 else b""
        head = line[:cut].rstrip(b", ") + b"}" if tail and tail == self.tail else line
        try:
            data = json.loads(head)
        except (ValueError, RecursionError):
            return False
        if not shaped(data, complete=head is line):
            return False  # garbage is no reading; silence will be noticed
        asked = data.get("asked") or 0
        if head is line:
            self.snapshot = data
            self.processes = {g["uuid"]: g["procs"] for g in data["gpus"]}
        trouble = {k: data.get(k) for k in ("error", "hold", "driver")}
        changed = head is line or self.snapshot | trouble != self.snapshot
        changed = changed or bool(self.distrusted) or self.moving  # averages follow a change for as long as they reach back
        self.snapshot.update(trouble)
        self.tail = tail
        self.read_at, self.probe_at = now, data.get("at") or 0.0
        self.looked = max(self.looked, asked)
        if self.distrusted:
            late = {g["uuid"]: g["asked"] for g in self.snapshot["gpus"] if g.get("asked") is not None}
            self.distrusted = {u: n for u, n in self.distrusted.items() if n > late.get(u, self.looked)}
        self._sample(now)
        return changed

    def _sample(self, now: float) -> None:
        self.moving, since, self.small_since = False, self.small_since, {}
        for g in self.snapshot["gpus"]:
            uuid, at = g["uuid"], self.card_read_at(g)
            if g["state"] != "ok":
                self.samples.pop(uuid, None)
                self.idle_since.pop(uuid, None)
                continue
            samples = self.samples.get(uuid)
            if samples is None:
                samples = self.samples[uuid] = Samples()
            if at - samples.at > UNSEEN or self._used_by_others(g):
                self.idle_since[uuid] = at
            self.idle_since.setdefault(uuid, at)
            samples.add(at, g["used_mib"], g["free_mib"], g["utilization"] or 0)
            self.moving = self.moving or samples.steady_since > now - WINDOW
            if g["procs"] and self._calm(g, now):
                small = [key for p in g["procs"] if (key := self._small(g, p))]
                self.small_since.update({key: since.get(key, now) for key in small})
            for p in g["procs"]:
                run = self.run_of(p, uuid)
                if run is not None and p["used_mib"]:
                    used = sum(q["used_mib"] or 0 for q in g["procs"] if self.run_of(q, uuid) == run)
                    self.has_used(run, used)

    def _used_by_others(self, g: Mapping[str, Any]) -> bool:
        return (g["utilization"] or 0) > STEADY_LOAD or any(self.run_of(p, g["uuid"]) is None for p in g["procs"])

    def _calm(self, g: Mapping[str, Any], now: float) -> bool:
        """Whether the card carries no load but that of runs of ours, which shows for a while after their end."""
        uuid = g["uuid"]
        if now - self.left_at.get(uuid, -1e9) <= WINDOW or self.is_ours(uuid):
            return True
        return g["utilization"] is not None and g["utilization"] <= STEADY_LOAD

    def _small(self, g: Mapping[str, Any], p: Mapping[str, Any]) -> tuple[str, int, Any] | None:
        """A foreign process that uses little; where the driver does not say how much, the card's use bounds it."""
        used = g["used_mib"] if p["used_mib"] is None else p["used_mib"]
        return (g["uuid"], p["pid"], p.get("ticks")) if p["uid"] != self.uid and used < self.small_mib else None

    def run_of(self, p: Mapping[str, Any], uuid: str = "") -> RunId | None:
        """Ours by session or by the marker in its environment; only processes of our own user can be. On a card of an allocation
        whatever else our user has there belongs to that."""
        if p["uid"] != self.uid:
            return None
        run = self.sessions.get(p["sid"]) if p["sid"] else None
        return run or (self.marks.get(p["mark"]) if p["mark"] else None) or self.allocated.get(uuid)

    def is_ours(self, uuid: str) -> bool:
        """Whether a run of ours holds the card."""
        return any(uuid in cards for cards in self.placed.values())

    def used_mib(self) -> dict[str, int]:
        """By card, of those that could be read."""
        return {g["uuid"]: g["used_mib"] for g in self.snapshot["gpus"] if g["state"] == "ok"}

    def index(self, uuid: str) -> int | None:
        """Of a card that is seen; for showing."""
        return next((int(g["index"]) for g in self.snapshot["gpus"] if g["uuid"] == uuid), None)

    def fresh(self, now: float) -> bool:
        return now - self.read_at <= FRESH_FOR

    def card_read_at(self, g: Mapping[str, Any]) -> float:
        """When a card of the last snapshot was read, by the engine's clock."""
        read_at = g.get("read_at")
        return self.read_at if read_at is None else self.read_at - max(0.0, self.probe_at - read_at)

    def gpus(self, now: float) -> tuple[Gpu, ...]:
        return tuple(self._gpu(g, now) for g in self.snapshot["gpus"])

    def _gpu(self, g: Mapping[str, Any], now: float) -> Gpu:
        uuid = g["uuid"]
        state, error = g["state"], g.get("error") or ""
        age, since = now - self.card_read_at(g), g.get("silent_since")
        if state in ("ok", "starting") and age > FRESH_FOR:
            state, error = "unknown", f"the last reading is {age:.0f} s old"
        elif state == "ok" and uuid in self.distrusted:
            state, error = "unknown", "a run ended here; the next reading is on its way"
        holders = tuple(
            Holder(pid=p["pid"], used_mib=p["used_mib"], uid=p["uid"], sid=p["sid"], user=p["user"] or "", name=p["name"] or "",
                   run=self.run_of(p, uuid), kind=p.get("kind") or "compute", exe=p.get("exe") or "", sm=p.get("sm"),
                   small_for=now - self.small_since.get((uuid, p["pid"], p.get("ticks")), now))
            for p in g["procs"]
        )  # fmt: skip
        left = [h for h in holders if h.run is not None and h.run in self.ended]
        load = g["utilization"] or 0
        samples = self.samples.get(uuid)
        mean_used, mean_free, mean_load = samples.means() if samples is not None else (g["used_mib"], g["free_mib"], load)
        return Gpu(
            uuid=uuid, index=g["index"], name=g["name"] or "", pci=g.get("pci") or "", state=state, error=error,
            total_mib=g["total_mib"], used_mib=g["used_mib"], free_mib=g["free_mib"], utilization=g["utilization"],
            temperature=g.get("temperature"),
            power_w=g.get("power_w"), power_limit_w=g.get("power_limit_w"), fan=g.get("fan"), sm_mhz=g.get("sm_mhz"),
            memory_mhz=g.get("memory_mhz"), holders=holders, mean_used_mib=mean_used, mean_free_mib=mean_free,
            mean_utilization=None if g["utilization"] is None else mean_load,
            idle_for=now - self.idle_since.get(uuid, now),
            excluded=uuid in self.excluded, given_at=self.given_at.get(uuid, 0.0),
            left_at=self.left_at.get(uuid, -math.inf),
            quarantine=tuple((h.pid, *h.run) for h in left if h.run),
            silent_for=0.0 if since is None else now - self.read_at + max(0.0, self.probe_at - since),
            no_handle=bool(g.get("no_handle")), mig_slice=bool(g.get("mig_slice")), reserved_mib=g.get("reserved_mib") or 0,
            compute_mode=g.get("compute_mode") or "default", faulty=self.health.faulty.get(uuid),
            new_errors=self.health.new_errors(g), remap_failed=self.health.new_row(g),
        )  # fmt: skip

    @property
    def looked_once(self) -> bool:
        return self.read_at > 0

    def _strangers(self, uuids: frozenset[str]) -> frozenset[tuple[str, int]]:
        return frozenset(
            (g["uuid"], p["pid"])
            for g in self.snapshot["gpus"]
            if g["uuid"] in uuids
            for p in g["procs"]
            if p["uid"] is not None and p["uid"] >= ORDINARY_UID and p["uid"] != self.uid
        )

    def intruders(self) -> list[tuple[RunId, str, int]]:
        """(run, uuid, pid) of other people's processes that came onto a card after it had been given to a run."""
        intruders = []
        for run, uuids in self.placed.items():
            there = self._strangers(uuids) if uuids else frozenset()
            # of a run that an earlier engine started, the first reading says who was there before
            intruders += [(run, uuid, pid) for uuid, pid in sorted(there - self.company.setdefault(run, there))]
        return intruders

    def intruded(self, run: RunId, small_mib: int, *, shares: bool) -> list[str]:
        """The cards of a run with somebody else, who uses more than a little, or of whom that is not told. If it does not share
        with others he has come after it: where he was it would not have begun, whoever saw that."""
        uuids = self.placed.get(run, frozenset())
        if not uuids:
            return []
        there = self._strangers(uuids)
        new = there - self.company.setdefault(run, there) if shares else there
        used = {(uuid, p["pid"]): p["used_mib"] for uuid in uuids for p in self.processes.get(uuid, ())}
        return sorted({uuid for uuid, pid in new if (mib := used.get((uuid, pid))) is None or mib >= small_mib})

    def misplaced(self) -> list[tuple[RunId, str, int]]:
        """(run, uuid, pid) of processes of ours on cards they were not given."""
        misplaced = []
        for g in self.snapshot["gpus"]:
            for p in g.get("procs", ()):
                run = self.run_of(p)
                if run is not None and run in self.placed and self.placed[run] and g["uuid"] not in self.placed[run]:
                    misplaced.append((run, str(g["uuid"]), int(p["pid"])))
        return misplaced

    def used_by_session(self, uuid: str) -> dict[int, int]:
        by_session: dict[int, int] = {}
        for p in self.processes.get(uuid, ()):
            if p["sid"]:
                by_session[p["sid"]] = by_session.get(p["sid"], 0) + (p["used_mib"] or 0)
        return by_session

    def used_by_run(self, uuid: str, run: RunId) -> int:
        return sum(p["used_mib"] or 0 for p in self.processes.get(uuid, ()) if self.run_of(p, uuid) == run)


def here(gpus: tuple[Gpu, ...], hold: Hold | None = None, **more: int) -> Target:
    """This host as a target with one node; `more`: what it has besides cards."""
    return Target(name=LOCAL, nodes=(Node(name=LOCAL, gpus=gpus, hold=hold, **more),))


TEXT, NUMBER, MAYBE = (str,), (int,), type(None)
TIME = (int, float, MAYBE)
HEAD: dict[str, tuple[type, ...]] = dict.fromkeys(("error", "hold", "driver"), (str, MAYBE)) | {"asked": (int, MAYBE), "at": TIME}
CARD: dict[str, tuple[type, ...]] = {
    "uuid": TEXT, "state": TEXT, "name": (str, MAYBE), "index": NUMBER, "total_mib": NUMBER, "used_mib": NUMBER,
    "free_mib": NUMBER, "utilization": (int, MAYBE), "procs": (list,), "reserved_mib": (int, MAYBE), "compute_mode": (str, MAYBE),
    "ecc_uncorrected": (int, MAYBE), "remap_failed": (bool, MAYBE), "temperature": TIME, "power_w": TIME,
    "no_handle": (bool, MAYBE), "asked": (int, MAYBE), "read_at": TIME, "silent_since": TIME,
    "pci": (str, MAYBE),
}  # fmt: skip
PROC: dict[str, tuple[type, ...]] = {
    "pid": NUMBER, "used_mib": (int, MAYBE), "uid": (int, MAYBE), "sid": (int, MAYBE), "user": (str, MAYBE), "name": (str, MAYBE),
    "mark": (str, MAYBE), "kind": (str, MAYBE), "exe": (str, MAYBE), "sm": (int, MAYBE),
}  # fmt: skip


def shaped(data: Any, *, complete: bool) -> bool:
    """Whether a line of the probe is a snapshot (`complete`), or the part of one before its GPUs."""
    if not isinstance(data, dict) or not fits(data, HEAD):
        return False
    if not complete:
        return True
    cards = data.get("gpus")
    return isinstance(cards, list) and all(fits(g, CARD) and all(fits(p, PROC) for p in g["procs"]) for g in cards)


def fits(value: Any, shape: Mapping[str, tuple[type, ...]]) -> bool:
    return isinstance(value, dict) and all(map(isinstance, map(value.get, shape), shape.values()))  # of each card, at each look


def promises(
    observer: Observer, claims: Iterable[Claimed], leases: Mapping[RunId, Iterable[Lease]],
    inside: Mapping[RunId, int] | None = None, wall: float = 0.0,
) -> tuple[Promise, ...]:  # fmt: skip
    """Holds on GPUs: of our open runs from the record, of all others (and of what ended runs left behind) from live claims.
    `inside`: the runs that are in an allocation. `wall`: the time by which claims are dated."""
    within = inside or {}
    promised = [
        Promise(uuid=lease.uuid, mib=lease.mib, uid=observer.uid, run=run, used_mib=observer.used_by_run(lease.uuid, run),
                used_at_start_mib=lease.used_at_start_mib, inside=within.get(run))
        for run, held in leases.items()
        for lease in held
    ]  # fmt: skip
    recorded = {(promise.run, promise.uuid) for promise in promised}
    for c in claims:
        sid = c.session or 0
        if c.ours and (c.run, c.uuid) in recorded and observer.sessions.get(sid) == c.run:
            continue  # else it is of another life of this home, or on a card that the run should not have
        used = observer.used_by_session(c.uuid).get(sid, 0)
        held = max(0.0, wall - c.since) if c.since is not None else 0.0
        promised.append(Promise(uuid=c.uuid, mib=c.mib, uid=c.uid, sid=sid, used_mib=used, automatic=c.automatic, held_s=held))
    return tuple(promised)
