"""What decide() answers: decisions as comparable values, and a reason for everything that does not start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jostle.core.model import LOCAL, RunId
from jostle.core.reasons import Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    job: int
    uuids: tuple[str, ...]
    memory_mib: int | None  # the promise on each card; None: the whole card
    share: bool = False
    whole: tuple[str, ...] = ()  # of the cards, those that it has for itself, being hardly as large as what it asked for
    target: str = LOCAL
    node: str = LOCAL  # ""; the target chooses

    def mib_on(self, uuid: str) -> int | None:
        return None if uuid in self.whole else self.memory_mib


@dataclass(frozen=True, kw_only=True, slots=True)
class Resize:
    """A run that lives is to use these cards from now on."""

    run: RunId
    uuids: tuple[str, ...]
    reason: Reason
    memory_mib: int | None = None  # the promise on each card that it does not hold yet
    whole: tuple[str, ...] = ()  # of these, those that it has for itself

    def mib_on(self, uuid: str) -> int | None:
        return None if uuid in self.whole else self.memory_mib


@dataclass(frozen=True, kw_only=True, slots=True)
class Yield:
    """A run is told to end, and its job waits again: somebody else has come onto its cards."""

    run: RunId
    reason: Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """All processes of a run are to stand still: somebody else has come onto its cards."""

    run: RunId
    times: int  # how often it has, with this one, without much time in between
    reason: Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Continue:
    """A run that stands still goes on."""

    run: RunId
    reason: Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish:
    """The run has ended and so has its job."""

    run: RunId
    state: str  # succeeded | failed | cancelled
    error_type: str | None = None
    reason: Reason | None = None
    closes_queue: bool = False  # what waits behind it in its queue will not run


@dataclass(frozen=True, kw_only=True, slots=True)
class Requeue:
    """The run has ended (or never began); its job is queued again."""

    run: RunId
    not_before: float = 0.0
    counts: bool = True  # False: this was not a try
    yielded: bool = False  # … because it gave way to somebody else
    excused: bool = False  # … because a faulty card failed it
    error_type: str | None = None
    memory_mib: int | None = None  # the request of the next try
    avoid: tuple[str, ...] = ()  # cards the next try should not use
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    run: RunId
    kill: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Fail:
    """A job that waits will never run."""

    job: int
    batch: int
    reason: Reason
    state: str = "failed"  # or cancelled
    error_type: str | None = None
    closes_queue: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """A card is faulty: nothing of ours starts on it until a person takes it back."""

    uuid: str
    index: int
    reason: Reason  # worded as a refusal
    run: RunId | None = None  # the one that showed it …
    batch: int | None = None  # … and its batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """The jobs that are held against a card from now on; none: a run has lasted there."""

    uuid: str
    jobs: tuple[int, ...]


Decision = Start | Resize | Yield | Pause | Continue | Finish | Requeue | Stop | Fail | Quarantine | Doubt


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    decisions: tuple[Decision, ...] = ()
    waits: Mapping[int, Reason] = field(default_factory=dict)  # by shape: why the first of it does not start now
    wake_at: float | None = None  # when to decide again even if nothing happens
    keeps: Mapping[RunId, Reason] = field(default_factory=dict)  # why a run that may get other cards does not now
    kept_for: tuple[int, ...] = ()  # the big jobs that cards are kept for: of each node at most one
