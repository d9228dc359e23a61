"""The values that decisions are made of: what is (World) as plain, frozen, comparable data.

Rules: nothing here knows a clock, a file or chance. Sizes are MiB, durations seconds, instants seconds on the engine's own
clock. A GPU is known everywhere by its UUID, and on its node by its index. None means "not known" or "not asked for", never zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jostle.core.fields import RETRY, RULES
from jostle.core.reasons import Hold, Reason

RunId = tuple[int, int]
"""(job, number of the try, from 1). Written "17.2" for people."""

Amounts = tuple[tuple[str, int], ...]
"""How much of what, by name: of a counter, or of what a node has besides cards (core.stock)."""

LOCAL = "local"
"""The target that is this host, and its one node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """A process the driver shows on a GPU."""

    pid: int
    used_mib: int | None = None  # None: the driver does not say
    uid: int | None = None  # None: not in our /proc (container, hidepid, just gone)
    sid: int | None = None  # session id; of a run's processes that which its backend reports
    user: str = ""
    name: str = ""
    run: RunId | None = None  # ours, proven by session or marker
    kind: str = "compute"  # compute | graphics
    exe: str = ""  # the file it executes, by its base name; "": not known
    sm: int | None = None  # % of the card's processors that it keeps busy; None: nobody looks, or the driver does not say
    small_for: float = 0.0  # how long it has been below small_mib on a card without load but ours


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    uuid: str
    index: int
    name: str = ""
    pci: str = ""  # where it sits; "": the driver does not say
    state: str = "ok"  # ok | lost | unreadable | unknown (no fresh reading) | starting | mig (a parent of slices)
    error: str = ""  # what the driver said, when not ok
    total_mib: int = 0
    used_mib: int = 0
    free_mib: int = 0
    reserved_mib: int = 0  # what the driver keeps for itself: an empty card offers total − reserved
    compute_mode: str = "default"  # default | exclusive_process | prohibited
    silent_for: float = 0.0  # how long there has been no good answer for it; 0: not said
    no_handle: bool = False  # the driver lists it and gives no handle: what CUDA counts is not known
    utilization: int | None = None
    temperature: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fan: int | None = None  # % of its speed
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    holders: tuple[Holder, ...] = ()
    mean_used_mib: int = 0  # over the last 3 s, always warm
    mean_free_mib: int = 0
    mean_utilization: int | None = None
    idle_for: float = 0.0  # how long no foreign process, no unexplained memory and no load was seen
    excluded: bool = False  # by hand
    quarantine: tuple[tuple[int, int, int], ...] = ()  # (pid, job, run) of ended runs that are still on it: it is not handed out
    faulty: Reason | None = None  # why it is set aside until a person takes it back
    new_errors: int = 0  # uncorrectable ones of its memory, beyond those that are accounted for
    remap_failed: bool = False  # … and a broken row of it that could not be replaced
    mig_slice: bool = False
    left_at: float = -math.inf  # when a run of ours last left it (the engine's clock): what it used may show for a moment yet
    given_at: float = 0.0  # when this engine last handed it out (its clock); for choosing cards in turn


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A host whose cards we read. The cards of a run lie on one node; indices, ranges and courtesy are a node's own."""

    name: str
    gpus: tuple[Gpu, ...] = ()
    hold: Hold | None = None  # why nothing starts there
    cpus: int = 0  # cores that may be handed out
    host_memory_mib: int = 0  # … and memory of the host


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where runs can go. One that places is told node and cards; to another a job is handed over, and it chooses itself."""

    name: str
    places: bool = True
    nodes: tuple[Node, ...] = ()  # of one that places
    room: int | None = None  # how many more runs are handed over; None: without limit
    hold: Hold | None = None  # why nothing goes there


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """What a run of ours was given of one GPU, as it is recorded."""

    uuid: str
    index: int
    mib: int | None  # None: the whole card
    used_at_start_mib: int = 0  # of the whole card, when the run was decided


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """One run's hold on one GPU: ours, or that of another jostle (another user's, or another home's of this user)."""

    uuid: str
    mib: int | None  # None: the whole card
    uid: int
    run: RunId | None = None  # set if the run is this engine's
    sid: int = 0
    used_mib: int = 0  # measured use of its processes
    used_at_start_mib: int = 0  # of the whole card, when the run was decided
    automatic: bool = False  # of another home: nobody asked for it by hand (of our own runs their rules say it)
    held_s: float = 0.0  # of another home: for how long, as far as its claim shows
    inside: int | None = None  # the allocation whose promise it is a part of, while that lives


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """When a failed job is tried again. The default is never."""

    max: int | None = RETRY["max"].default  # None: without limit
    backoff_after: int = RETRY["backoff_after"].default
    backoff: float = RETRY["backoff"].default


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job that is ready: at the head of its queue, its dependencies met, not held, its time come."""

    id: int
    batch: int = 0
    shape: int = 0  # jobs of one shape are alike in everything that decides where and when they fit
    queue: str | None = None
    priority: int = 0
    rank: float = 0.0  # drawn once, for orders by chance
    place: int = 0  # position in its file or queue
    gpus_min: int = 1
    gpus_max: int = 1
    memory_mib: int | None = None  # per GPU; None: the whole card
    share: bool = False  # other runs of ours may use the same card
    time_limit: float | None = None
    ready_at: float = 0.0  # since when it could have started
    on: tuple[str, ...] = (LOCAL,)  # the targets that may have it, in the order in which they are tried
    cpus: int | None = None  # cores of the host
    host_memory_mib: int | None = None
    counters: Amounts = ()
    avoid: frozenset[str] = frozenset()  # cards it was squeezed on, or failed on within seconds
    inside: int | None = None  # the allocation (its job) on whose cards it runs, and on no others
    elastic: bool = False  # it begins with few cards, and gets more if nobody else could use them


Lane = tuple[Job, ...]
"""The first few ready jobs of one shape, in order; never empty. How many more there are a decision need not know."""


class LegEnd(NamedTuple):
    """How the commands ended that had to begin again on other cards."""

    order: int  # that gave them their cards, by its number
    code: int | None
    signal: int | None
    at: float  # wall time


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """What is known of a run's end; code None: unknown."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False  # it was told to end before it had: code 0 is no success then
    error: str = ""  # why it could not be started
    unable: bool = False  # … for want of processes or memory on the host: it has not begun, and that is no try
    lost: str = ""  # why nothing is known of its end: exit_unknown | host_rebooted
    tail: str = ""  # the end of its log, when it failed
    started_at: float | None = None  # wall time, for showing
    ended_at: float | None = None
    ran_for: float | None = None
    rss_mib: int | None = None
    leftovers: tuple[int, ...] = ()  # processes it left behind, which were ended
    said: str = ""  # what the program itself reported (SPEC A22): normal_exit | abnormal_exit; it overrules the code
    said_type: str = ""  # … and the kind of error it named
    inputs: str = ""  # whether its files were those of the fingerprint when it began: same | other | unknown
    released: str = ""  # of an allocation, by what it was: asked | time | process
    legs: tuple[LegEnd, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Elastic:
    """What is said and known of a run that may get other cards while it lives."""

    how: str  # restart | signal; hold: it has no program, and only people change it
    least: int
    most: int
    priority: int = 0
    listed: tuple[str, ...] = ()  # the cards that it is to use; those it holds besides it has not left yet
    busy: Reason | None = None  # why nothing else can be asked of it now
    resized_at: float = 0.0  # when its cards last changed, or it began
    lost_to_others: int = 0  # how often that took cards from it, within the last hour and soon after the change before
    tempted_for: float = 0.0  # s: so long it could have had more cards at once, and the change was too dear
    not_before: float = -math.inf  # after a try in vain …
    failed: str = ""  # … by this code
    load: float | None = None  # percent, the mean of its cards over a minute; None: that is not known


@dataclass(frozen=True, kw_only=True, slots=True)
class Pausing:
    """What is known of a run that stands still while somebody else is on its cards."""

    now: bool = False  # it was told to stand still: that is recorded
    since: float = -math.inf  # when it was told so, or to go on again; engine's clock
    times: int = 0  # how often it has stood still, without much time in between
    paused_s: float = 0.0  # how long in all, as far as it is over
    quiet_s: float | None = None  # for how long readings of all its cards have shown nobody else; None: they do not
    supervised: bool = True  # there is somebody who can stop all of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A try that may be alive, with what its job says about ending it."""

    id: RunId
    batch: int = 0
    state: str = "running"  # starting | running | stopping
    cancel: bool = False  # a person wants it to end
    kill: bool = False  # … at once
    uuids: tuple[str, ...] = ()
    target: str = LOCAL  # where it went
    node: str = LOCAL  # … and to which node of it
    on: tuple[str, ...] = (LOCAL,)  # the targets that may have its job
    cpus: int | None = None
    host_memory_mib: int | None = None
    counters: Amounts = ()
    memory_mib: int | None = None
    share: bool = False
    started_at: float = 0.0  # engine's clock
    time_limit: float | None = None
    failures: int = 0  # of its job, before this run
    excused: int = 0  # … and failures that were laid to faulty cards
    tried: tuple[tuple[str, float, str], ...] = ()  # cards of its job's earlier failed runs on one card: uuid, seconds, kind
    retry: Retry | None = None  # None: what the policy says
    peak_mib: int = 0  # the most one of its cards was seen to hold for it
    uni_id: str = ""
    ended: Exit | None = None  # set when the backend knows that it has ended
    voided: bool = False  # it never started and never will; no try is counted
    allocation: bool = False  # it starts nothing: it holds its cards for what runs inside it, and for its person
    idle_since: float | None = None  # an allocation: since when nothing of ours is on its cards or runs inside; None: it is used
    idle_release: float | None = None  # … and after so long it is released
    used: bool = False  # a process that its person started by hand is on its cards
    inside: int | None = None  # the allocation (its job) on whose cards it runs
    evicted: bool = False  # … which has been released
    elastic: Elastic | None = None
    intruded: tuple[str, ...] = ()  # of its cards, those that somebody else has come onto, and stayed
    yields: bool = False  # … and it leaves then
    yielding: bool = False  # it was told to
    yielded: int = 0  # how often its job has before, in all …
    yielded_lately: int = 0  # … and without much time in between
    pausing: Pausing | None = None  # … or it stands still then

    @property
    def paused(self) -> bool:
        return self.pausing is not None and self.pausing.now


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The rules of one batch (over those of the engine). What each is for, and what it may be, says core.fields."""

    gpus: tuple[int, ...] | None = RULES["gpus"].default
    gpu_left: int = RULES["gpu_left"].default
    min_gpu: int | None = RULES["min_gpu"].default
    max_gpu: int | None = RULES["max_gpu"].default
    share: bool = RULES["share"].default
    min_free_mib: int = RULES["min_free_mib"].default
    max_utilization: int | None = RULES["max_utilization"].default
    idle_for: float = RULES["idle_for"].default
    strangers: str = RULES["strangers"].default
    small_mib: int = RULES["small_mib"].default
    small_for: float = RULES["small_for"].default
    own_processes: str = RULES["own_processes"].default
    choice: str = RULES["choice"].default
    order: str = RULES["order"].default
    max_concurrent: int | None = RULES["max_concurrent"].default
    start_interval: float = RULES["start_interval"].default
    max_wait: float | None = RULES["max_wait"].default
    reserve_after: float = RULES["reserve_after"].default
    margin_mib: int = RULES["margin_mib"].default
    resize_interval: float = RULES["resize_interval"].default
    scale_up: int | None = RULES["scale_up"].default
    scale_down: int | None = RULES["scale_down"].default
    yield_after: float = RULES["yield_after"].default
    retry: Retry = Retry()
    on_failure: str = RULES["on_failure"].default
    command_limit: float | None = RULES["command_limit"].default
    automatic: bool = RULES["automatic"].default


class Cap(NamedTuple):
    """The most of something, and who says so."""

    most: int
    source: str  # one of core.limits.SOURCES


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many cards the person may hold, over all homes and above the rules of every batch; None: no limit. See core.limits."""

    max_total_gpus: Cap | None = None
    max_reserved_gpus: Cap | None = None
    max_manual_gpus: Cap | None = None
    max_gpus_per_task: Cap | None = None


UNLIMITED = Limits()


class Orphan(NamedTuple):
    """An allocation whose process has ended: the one that waited for its cards, or that it was tied to as it waited."""

    batch: int
    queued: bool
    awaited: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    now: float
    uid: int
    targets: tuple[Target, ...] = ()
    promises: tuple[Promise, ...] = ()
    runs: tuple[Run, ...] = ()
    lanes: tuple[Lane, ...] = ()
    policies: Mapping[int, Policy] = field(default_factory=dict)  # by batch
    policy: Policy = field(default_factory=Policy)  # where a batch has none
    limits: Limits = UNLIMITED
    last_start: Mapping[int, float] = field(default_factory=dict)  # by batch
    last_end: Mapping[int, float] = field(default_factory=dict)  # by batch: of a run, or of a job that was given up
    doubts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by card: see core.health
    counters: Mapping[str, int] = field(default_factory=dict)  # how much there is of each
    orphans: Mapping[int, Orphan] = field(default_factory=dict)  # by job
    turn: int = 0  # the batch that started last: the next in turn comes first
    hold: Hold | None = None  # why nothing may start at all, wherever (disk full)

    def policy_of(self, batch: int) -> Policy:
        return self.policies.get(batch, self.policy)

    @property
    def nodes(self) -> Iterator[tuple[str, Node]]:
        """Each node that we place runs on, with its target's name."""
        return ((target.name, node) for target in self.targets for node in target.nodes)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The cards of all nodes: for whoever looks for one by its UUID, and for nobody who counts or chooses."""
        return tuple(gpu for _, node in self.nodes for gpu in node.gpus)
