"""The state of all as numbers with few labels, for curves and alarms. What nobody can tell is left out, never zero.

Labels are cards, states and codes of ours: nothing that people name, so their number is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from jostle.core.states import ALL, OUTCOMES, UNFINISHED
from jostle.store import allocationreads
from jostle.views.limits import COUNTED

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.types import Card

MIB = 1 << 20
PAUSED = ("pausing", "paused", "paused_until")


class Sample(NamedTuple):
    name: str
    value: float
    labels: Mapping[str, str] = {}


def metrics(session: Session) -> Iterator[Sample]:
    """Of one moment. An engine that does not answer is not up."""
    from jostle import __version__

    engine, gpus, reasons, limits = _engine(session)
    yield Sample("jostle_info", 1, {"version": __version__})
    yield Sample("jostle_engine_up", int(bool(engine)))
    counts = session.reader.counts()
    yield from (Sample("jostle_jobs", counts.get(state, 0), {"state": state}) for state in ALL)
    held = Counter(row["state"] for row in allocationreads.allocations(session.reader))
    yield from (Sample("jostle_allocations", held[state], {"state": state}) for state in UNFINISHED)
    for code, n in waiting(session.reader.waiting_by_shape(), reasons).items():
        yield Sample("jostle_jobs_waiting", n, {"reason": code})
    if reasons is not None:
        paused = [reason for reason in (reasons.get("running") or {}).values() if reason["code"] in PAUSED]
        yield Sample("jostle_jobs_paused", len(paused))
    if engine:
        yield Sample("jostle_engine_uptime_seconds", engine["uptime_s"])
        yield Sample("jostle_engine_hold", int(bool(engine["hold"])))
        yield from _limits(limits) if limits else ()  # one of an older version has none
        yield from _tally(engine["tally"]) if "tally" in engine else ()  # one of an older version counts nothing
        if gpus["age_s"] is not None:
            yield Sample("jostle_gpu_reading_age_seconds", gpus["age_s"])
        for gpu in gpus["gpus"]:
            yield from _card(gpu)


def _engine(session: Session) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, dict[str, Any]]:
    """What it says of itself, the cards, what waits, and of limits."""
    from jostle.errors import JostleError, NoEngine

    client = session.engine_if_any()
    if client is None:
        return {}, {}, None, {}
    try:
        hello, gpus, reasons = client.call("hello", counts=False), client.call("gpus"), client.call("reasons")
        try:
            return hello, gpus, reasons, client.call("limits")
        except NoEngine:
            raise
        except JostleError:
            return hello, gpus, reasons, {}
    except NoEngine:
        return {}, {}, None, {}
    finally:
        client.close()


def waiting(groups: Sequence[tuple[str | None, int | None, int]], reasons: Mapping[str, Any] | None) -> Counter[str]:
    """How many jobs wait for which reason. A group is a code that the rows tell, or a shape of which the engine knows it."""
    shapes = (reasons or {}).get("shapes") or {}
    counts: Counter[str] = Counter()
    for code, shape, n in groups:
        if reasons is None and code != "held":
            counts["no_engine"] += n
        else:
            counts[code or (shapes.get(str(shape)) or {}).get("code") or "starting_soon"] += n
    return counts


def _limits(answer: Mapping[str, Any]) -> Iterator[Sample]:
    for counted, n in answer["held"].items():
        yield Sample("jostle_user_gpus", n, {"counted": counted})
    for name, counted in COUNTED.items():
        if (cap := answer["limits"].get(name)) is not None:
            yield Sample("jostle_user_gpus_limit", cap["most"], {"counted": counted})


def _tally(done: Mapping[str, Any]) -> Iterator[Sample]:
    yield Sample("jostle_runs_started_total", done["started"])
    for outcome in OUTCOMES:
        yield Sample("jostle_runs_ended_total", done["ended"].get(outcome, 0), {"outcome": outcome})
    ticks = done["ticks"]
    for limit, n in zip([*map(str, ticks["limits_s"]), "+Inf"], accumulate(ticks["counts"]), strict=True):
        yield Sample("jostle_tick_seconds_bucket", n, {"le": limit})
    yield Sample("jostle_tick_seconds_sum", ticks["sum_s"])
    yield Sample("jostle_tick_seconds_count", sum(ticks["counts"]))


def _card(gpu: Card) -> Iterator[Sample]:
    card = {"gpu": str(gpu["index"]), "uuid": str(gpu["uuid"])}
    read = gpu["state"] == "ok"
    yield Sample("jostle_gpu_info", 1, {**card, "model": str(gpu["name"])})
    yield Sample("jostle_gpu_readable", int(read), card)
    yield Sample("jostle_gpu_free", int(read and gpu["refusal"] is None), card)
    yield Sample("jostle_gpu_excluded", int(gpu["excluded"]), card)
    yield Sample("jostle_gpu_set_aside", int(bool(gpu["faulty"] or gpu["quarantine"])), card)
    yield Sample("jostle_gpu_runs", len(gpu["runs"]), card)
    if read:
        yield Sample("jostle_gpu_strangers", sum(holder["run"] is None for holder in gpu["holders"]), card)
        for what, mib in (("total", gpu["total_mib"]), ("used", gpu["used_mib"]), ("available", gpu["available_mib"])):
            yield Sample(f"jostle_gpu_memory_{what}_bytes", mib * MIB, card)
        if gpu["utilization"] is not None:
            yield Sample("jostle_gpu_utilization_ratio", gpu["utilization"] / 100, card)
        if gpu["temperature"] is not None:
            yield Sample("jostle_gpu_temperature_celsius", gpu["temperature"], card)
        if gpu["power_w"] is not None:
            yield Sample("jostle_gpu_power_watts", gpu["power_w"], card)
