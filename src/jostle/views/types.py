"""The values of the views in their plain form, as --json gives them (docs/json.md) and a page will get them.

`text` is there once whoever shows them has put words to codes and numbers. Sizes are MiB, durations seconds, instants seconds
since 1970; None means unknown or not applicable.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Words(TypedDict, total=False):
    text: str


class Against(Words):
    """What is said against one card."""

    code: str
    params: dict[str, Any]


class Refusal(Against):
    index: int
    uuid: str


class Refusals(Words, total=False):
    gpus: list[Refusal]  # where cards are the reason
    decides: list[int]  # where in the text what decides begins and ends, if it is marked


class Reason(Refusals):
    code: str
    params: dict[str, Any]


class Estimate(TypedDict):
    """What runs that were like it tell of a job; None: no telling."""

    starts_at: float | None
    gpus: list[int] | None
    ends_at: float | None
    earliest_at: float | None
    latest_at: float | None
    runs: int
    limit_at: float | None


class Job(TypedDict):
    id: int
    name: str
    queue: str | None
    batch: int
    state: str
    intent: str
    attempt: int
    retries: int
    exit_code: int | None
    error_type: str | None
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    ran_s: float | None
    reason: Reason | None
    commands: list[str]
    memory_mib: int | None
    share: bool
    resize: str | None
    when_stranger: str
    leg: int | None  # of its last run, if its cards may change
    on: list[str]
    gpu_request: list[int]
    cpus: int | None
    host_memory_mib: int | None
    counters: dict[str, int]
    nice: int
    grace: float | None
    gpus: list[int]
    gpu_uuids: list[str]
    priority: int
    tags: list[str]
    time_limit: float | None
    workdir: str
    log: str | None
    retry: dict[str, Any] | None
    retry_of: int | None
    begin_at: float | None
    params: dict[str, str]
    fingerprint: str | None
    inside: int | None
    idle_release: float | None
    tied_to: int | None
    estimate: Estimate | None
    not_before: float
    place: float
    ready: int
    shape: int


class Jobs(TypedDict):
    engine: bool
    jobs: list[Job]


class Batch(TypedDict):
    id: int
    name: str
    file: str | None
    suite: str | None
    sweep: bool
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    jobs: int
    counts: dict[str, int]
    done_before: int
    left_s: float | None


class Batches(TypedDict):
    batches: list[Batch]


class Why(TypedDict):
    id: int
    state: str
    reason: Reason | None
    gpus: list[Refusal]
    behind: int
    engine: bool


class Shared(TypedDict):
    """Somebody who was on the cards of a run, too."""

    user: str | None
    job: int | None
    for_s: float


class Curve(TypedDict):
    """Of each stretch of its time the most memory that was seen, from its start on."""

    step_s: float
    mib: list[int | None]


class Profile(TypedDict):
    """How a run used its cards, as far as that was seen."""

    observed_s: float
    gpu_mib: int | None
    peak_at_s: float | None
    memory_p50_mib: int | None
    memory_p95_mib: int | None
    load_mean: float | None
    load_p95: int | None
    idle_share: float | None
    shared: list[Shared]
    curve: Curve | None


class Run(TypedDict):
    n: int
    uni_id: str
    state: str
    outcome: str | None
    shim_pid: int | None
    started_at: float
    ended_at: float | None
    ran_s: float | None
    exit_code: int | None
    signal: int | None
    error_type: str | None
    log: str
    peak_mib: int | None
    rss_mib: int | None
    memory_mib: int | None
    leftovers: list[int]
    inputs: str | None
    command_key: str | None
    gpu_name: str | None
    profile: Profile | None
    leg: int
    gpus: list[int]
    gpu_uuids: list[str]


class Event(TypedDict):
    seq: int
    at: float
    kind: str
    batch: int | None
    job: int | None
    run: int | None
    data: dict[str, Any]


class Need(TypedDict):
    id: int
    any: int
    state: str
    name: str


class Code(TypedDict):
    commit: str
    dirty: bool | None


class Process(TypedDict):
    """One of a run's; None: it cannot be seen, or is on no card."""

    pid: int
    command: str
    cpu_percent: float | None
    cpu_s: float | None
    rss_mib: int | None
    gpus: list[int]
    gpu_mib: int | None
    gpu_peak_mib: int | None
    sm: int | None
    ran_s: float | None


class Story(TypedDict):
    job: Job
    runs: list[Run]
    events: list[Event]
    needs: list[Need]
    code: Code | None
    processes: list[Process]


class Holder(TypedDict):
    pid: int
    user: str
    used_mib: int | None
    name: str
    exe: str
    sm: int | None
    run: str | None


class Beyond(TypedDict):
    run: str
    used_mib: int
    asked_mib: int


class OfEngine(TypedDict, total=False):
    """What only an engine says of a card."""

    paused: list[str]
    beyond: list[Beyond]
    idle_s: float | None
    free_at: float | None
    free_by: float | None


class CardFacts(OfEngine):
    index: int
    uuid: str
    name: str
    pci: str
    total_mib: int
    used_mib: int
    free_mib: int
    reserved_mib: int
    available_mib: int
    utilization: int | None
    temperature: int | None
    power_w: float | None
    power_limit_w: float | None
    fan: int | None
    sm_mhz: int | None
    memory_mhz: int | None
    state: str
    error: str
    excluded: bool
    refusal: Against | None
    runs: list[str]
    holders: list[Holder]


class Card(CardFacts, total=False):
    """As the views have it: why it is set aside, by code and numbers."""

    faulty: Reason | None
    quarantine: list[list[int]] | None  # pid, job and run of what has ended and is still on it


class WordedCard(CardFacts, total=False):
    quarantine: str | None  # both of these, in a sentence


class CardsFacts(TypedDict):
    engine: bool
    more: int | None
    spec: str
    age_s: float | None  # None: there was no reading yet
    read_at: float | None
    error: str


class Cards(CardsFacts):
    gpus: list[Card]


class WordedCards(CardsFacts):
    """What `gpus --json` gives."""

    gpus: list[WordedCard]


class Log(TypedDict):
    id: int
    path: str
    text: str


class Finding(TypedDict):
    """What a check of `doctor` has found: ok, warn or bad, a code and its numbers."""

    name: str
    verdict: str
    code: str
    params: dict[str, Any]


class Check(TypedDict):
    """A finding in words."""

    name: str
    verdict: str
    found: str
    advice: str


class Health(TypedDict):
    checks: list[Check]


class Measured(TypedDict):
    """One value, and where it was read."""

    value: float
    params: dict[str, str]
    job: int | None
    run: int | None
    log: str | None
    code: str | None


class MetricOfGroup(TypedDict):
    n: int
    mean: float
    std: float | None
    best: bool
    values: list[float]
    runs: list[Measured]


class ResultGroup(TypedDict):
    params: dict[str, str]
    shown: dict[str, str]
    runs: int
    metrics: dict[str, MetricOfGroup]


class BestOf(TypedDict):
    name: str
    best: str


class NotCounted(TypedDict):
    label: str
    params: dict[str, str]
    job: int | None
    run: int | None
    state: str | None
    log: str | None
    metric: str | None
    why: str
    reason: Reason


class Results(TypedDict):
    keys: list[str]
    seed_keys: list[str]
    metrics: list[BestOf]
    groups: list[ResultGroup]
    missing: list[NotCounted]
    notes: list[str]
