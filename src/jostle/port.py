"""What the engine and a backend say to each other. A backend carries runs; the engine knows it by these values and calls only.

Rules. No call blocks, and none fails for what a host or a cluster may do: who must wait has a process of its own, and tells what
it learns through the Recipient. An act may come twice and does what once does, by the id of the run. Silence is no news: of a run
that a backend cannot say anything about now it says nothing. A handle is the backend's own text: the engine records it with the
run, gives it back after a restart, and never looks into it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeGuard

from jostle.core.model import Exit, LegEnd, RunId
from jostle.core.reasons import Hold


class Phase(str, Enum):
    STARTING = "starting"  # it is on its way: nothing of it was seen to begin yet
    WAITING = "waiting"  # a cluster keeps it in a queue of its own
    ALIVE = "alive"  # it has begun
    ENDED = "ended"  # told again until the run is forgotten
    NOT_STARTED = "not_started"  # nobody is about to begin it, as far as can be seen; void() makes sure
    VOIDED = "voided"  # it has never begun, and never will
    GONE = "gone"  # it had begun, nobody of it lives, and how it ended will not be known


class Footing(NamedTuple):
    """Which cards a run has that may get others, and what became of the last order to it."""

    effective: int  # the order whose list of cards is in effect, by its number; 1: the cards that it began with
    order: int  # the last one of which it is known whether it was taken
    taken: bool
    cards: tuple[str, ...]  # that it holds: those of the list, and those that it has not left yet
    why: str = ""  # not taken: a code
    ended: tuple[LegEnd, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReport:
    """What a backend knows of a run now."""

    run: RunId
    kind: Phase
    exit: Exit | None = None  # ENDED
    cause: str = ""  # GONE: exit_unknown | host_rebooted
    why: str = ""  # WAITING: the cluster's own word for it
    supervised: bool = True  # ALIVE: somebody will tell of its end
    pids: tuple[int, ...] = ()  # ALIVE: what its commands left and it waits for; of one that nobody supervises, all that is known
    session: int | None = None  # that its processes on this host's cards belong to, if they do
    handle: str | None = None  # to be recorded; None: as it was
    still: bool = False  # ALIVE: it was told to stand still, and all its processes are stopped
    footing: Footing | None = None  # ALIVE: of a run that may get other cards; None: it is not, or nobody can say now


class Void(Enum):
    NEVER = "never"  # the run has not begun, and from now on it cannot
    STARTED = "started"
    UNKNOWN = "unknown"  # nobody can say now


class Adopted(NamedTuple):
    """A run that an earlier engine has recorded and not seen end."""

    run: RunId
    uni_id: str
    handle: str
    begun: bool  # that it has begun is recorded
    order: int = 0  # the last one to it that is recorded, by its number; 0: it keeps the cards it has


class Launch(NamedTuple):
    """A run that is recorded, and is to begin."""

    run: RunId
    handle: str  # from its reservation; "" where cards are not ours to reserve
    spec: Mapping[str, Any]  # see engine/launch.py


class Resizing(NamedTuple):
    """An order that is recorded: a run that lives is to use these cards, and no others."""

    run: RunId
    number: int  # more than any before it
    cards: tuple[str, ...]
    env: Mapping[str, str]  # how its commands know them


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserved:
    """Cards are held for a run; it is recorded with this handle before it is started."""

    handle: str
    session: int | None = None  # as in a RunReport


class Tenure(NamedTuple):
    """How cards are held, and the most that claims of this user may hold (whatever home they are of), with this one."""

    automatic: bool = False  # nobody asked for them by hand
    total: int | None = None  # … in all
    alike: int | None = None  # … in this way


BY_HAND = Tenure()


class Denied(Enum):
    REFUSED = "refused"  # another was quicker, or it would be too many cards, or there is `trouble`
    ASKED = "asked"  # not now: the backend wakes the engine when it is worth asking again
    TAKEN = "taken"  # there has been a run of this id, which the store does not know: another is to be asked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """A live hold on a GPU, anybody's."""

    uuid: str
    mib: int | None  # None: the whole card
    run: RunId  # as its own home numbers it
    session: int | None = None  # as in a RunReport
    name: str
    uid: int  # whose it is; -1 if even that is hidden
    ours: bool  # this home's
    vanished: bool = False  # what showed it is gone, its holder is not
    automatic: bool = False  # nobody asked for it by hand
    since: float | None = None  # wall time; None: not known


class Recipient(Protocol):
    """The engine, as its backends know it."""

    def changed(self, run: RunId) -> None: ...  # there is a new report of it
    def about_to_end(self, run: RunId) -> None: ...  # its end is about to be told; its cards are its own no more
    def wake(self) -> None: ...  # what could not be done may be worth another try, and tick() has something to do
    def noted(self, run: RunId, kind: str, data: Mapping[str, Any]) -> None: ...  # an event of its story


class Watcher(Protocol):
    """The engine's loop: calls back when a descriptor can be read."""

    def watch(self, fd: int, callback: Callable[[], None]) -> None: ...
    def unwatch(self, fd: int) -> None: ...


class Backend(Protocol):
    places: bool  # whether cards are chosen by us: then it is a Placing one; else the runs are handed over

    @property
    def trouble(self) -> Hold | None: ...  # why nothing can be started, or nothing with a GPU; None: it can
    def open(self, rows: Sequence[Adopted], listener: Recipient) -> None: ...  # adopts them
    def close(self) -> None: ...  # runs go on
    def tick(self, now: float) -> float | None: ...  # what time brings about; when to call again
    def capacity(self) -> int | None: ...  # how many more runs it would take now; None: any number
    def log_path(self, run: RunId, uni_id: str) -> str: ...  # where its output will be, unless its job names a file
    def start(self, launches: Sequence[Launch]) -> None: ...
    def reports(self, runs: Collection[RunId] | None = None) -> Sequence[RunReport]: ...  # of these, or of all
    def stop(self, runs: Collection[RunId], *, kill: bool) -> None: ...  # may have to be said again
    def void(self, run: RunId) -> Void: ...
    def forget(self, runs: Collection[RunId]) -> None: ...  # their ends are in the store


class Placing(Backend, Protocol):
    """A backend on nodes whose cards we read and choose: reserve, then record, then start."""

    def claims(self, uuids: Collection[str]) -> Sequence[Claimed]: ...  # every live one on these cards
    def reserve(
        self, run: RunId, node: str, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *, alone: bool,
        tenure: Tenure = BY_HAND,
    ) -> Reserved | Denied: ...  # `wants`: cards with MiB, None: all; `claim_names`: those that were counted with
    def withdraw(self, runs: Collection[RunId]) -> None: ...  # what was reserved could not be recorded
    def reserve_more(
        self, run: RunId, wants: Sequence[tuple[str, int | None]], claim_names: frozenset[str], *, alone: bool,
        tenure: Tenure = BY_HAND,
    ) -> Denied | None: ...  # further cards for a run that lives; None: they are held for it
    def resize(self, orders: Sequence[Resizing]) -> None: ...  # what was reserved more is given to it
    def pause(self, run: RunId, *, paused: bool) -> None: ...  # all its processes stand still, or go on; said again now and then
    def give_up(self, run: RunId, order: int, cards: Collection[str]) -> None: ...  # not on its list, and nobody of it is on them


def is_placing(backend: Backend) -> TypeGuard[Placing]:
    return backend.places
