"""What the store's events mean to somebody who does not look: entries of values without words, and of those a message.

Rules: an event is told once to a channel, and only if the channel asked for its kind. A job that is tried again has not failed.
A batch of one job is told as that job, where jobs are told. Names and numbers only: no command, no environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jostle.bounded import Bounds, child
from jostle.client import own_environment
from jostle.errors import JostleError
from jostle.notify.message import Message, cut, made
from jostle.store import batchreads
from jostle.store.reads import Reader
from jostle.wording import notices

Entry = dict[str, Any]
# kind of event -> what of core.kinds.NOTICES it is told as
TOLD = {
    "failed": "failed", "succeeded": "finished", "batch_ended": "batch", "quarantined": "gpu",
    "grown": "resized", "shrunk": "resized", "resized": "resized", "idle": "idle",
}  # fmt: skip
STANDING = ("add", "alloc", "start")
"""Keys of the batches that single commands, allocations and what runs in those lie in: nothing ends when they are empty."""
ORDER = ("test", "gpu", "batch", "failed", "finished", "resized", "idle", "free")
ITEMS = 100  # of a message that programs read
LARGEST_ITEMS = 32 << 10  # bytes of them
FAILED = 20  # jobs of a batch that are named
TABLED = 2000  # jobs of a batch whose logs are read for its table
TABLES = 5
TABLE = Bounds(60.0, 30, 2 << 30)
LONGEST_TABLE = 8 << 10


def wanted(event: Mapping[str, Any], about: Sequence[str]) -> bool:
    return TOLD.get(event["kind"]) in about


def entries(reader: Reader, events: Sequence[Mapping[str, Any]], about: Sequence[str]) -> list[Entry]:
    """Of the events those that this channel is told, with what the store knows of their jobs."""
    last = {event["batch"]: event["seq"] for event in events if event["kind"] == "batch_ended"}
    relevant = [
        event for event in events
        if wanted(event, about) and (event["kind"] != "batch_ended" or event["seq"] == last[event["batch"]])
    ]  # fmt: skip
    ids = {event["job"] for event in relevant if event["job"] is not None}
    jobs = {job["id"]: job for part in _parts(sorted(ids)) for job in reader.jobs(ids=part)}
    rows = (
        _batch(reader, event, about) if event["kind"] == "batch_ended" else _entry(event, jobs.get(event["job"]))
        for event in relevant
    )  # fmt: skip
    return [entry for entry in rows if entry is not None]


def _parts(ids: Sequence[int]) -> Iterable[Sequence[int]]:
    return (ids[k : k + 500] for k in range(0, len(ids), 500))


def _entry(event: Mapping[str, Any], job: Mapping[str, Any] | None) -> Entry | None:
    data = event["data"]
    entry: Entry = {"about": TOLD[event["kind"]], "event": event["kind"], "at": event["at"]}
    if event["kind"] == "quarantined":
        return {**entry, "gpu": data.get("gpu"), "uuid": data.get("uuid"), "reason": data.get("reason")}
    if job is None:
        return None  # removed since
    entry["allocation"] = not job["commands"]
    entry |= {"job": job["id"], "name": notices.short(job["name"]), "batch": job["batch"], "run": event["run"]}
    if event["kind"] in ("failed", "succeeded"):
        return {**entry, "after_s": job["ran_s"], "tries": job["attempt"], **_end(job)}
    cards = data.get("gpus")
    return {**entry, "gpus": cards if isinstance(cards, list) else job["gpus"], "since_s": data.get("idle_s")}


def _end(job: Mapping[str, Any]) -> Entry:
    kind = job["error_type"]
    return {"exit_code": job["exit_code"], "error_type": kind and notices.short(kind), "reason": job["reason"]}


def _batch(reader: Reader, event: Mapping[str, Any], about: Sequence[str]) -> Entry | None:
    sums = batchreads.sums(reader, batch=event["batch"])
    if not sums or sums[0].key in STANDING:
        return None
    one, jobs = sums[0], sum(sums[0].counts.values())
    if jobs == 1 and any(TOLD.get(state) in about for state in one.counts):
        return None  # it is told as the job
    began, ended = one.started_at, one.ended_at
    failures = reader.failures(0.0, batch=one.id)[::-1]
    failed = [
        {"event": "failed", "job": job["id"], "name": notices.short(job["name"]), "after_s": job["ran_s"], **_end(job)}
        for job in reader.jobs(ids=failures[:FAILED])
    ]  # fmt: skip
    return {
        "about": "batch", "event": "batch_ended", "at": event["at"], "batch": one.id, "name": notices.short(one.name or ""),
        "counts": one.counts, "jobs": jobs, "after_s": ended - began if began is not None and ended is not None else None,
        "failed": failed, "more_failed": max(0, len(failures) - FAILED),
    }  # fmt: skip


def with_tables(entries: Sequence[Entry], home: str, metrics: Sequence[str], language: str) -> list[Entry]:
    """The last few batches with the table that `jostle results` prints of each, if it finds any metric."""
    last = [entry["batch"] for entry in entries if entry["about"] == "batch"][-TABLES:]
    shown = [entry["about"] == "batch" and entry["batch"] in last for entry in entries]
    return [
        {**entry, "table": table(home, entry, metrics, language)} if tabled else entry
        for entry, tabled in zip(entries, shown, strict=True)
    ]


def table(home: str, entry: Entry, metrics: Sequence[str], language: str) -> str:
    if entry["jobs"] > TABLED:
        return ""
    env = {**own_environment(), "JOSTLE_HOME": home, "JOSTLE_LANG": language, "NO_COLOR": "1"}
    words = ["jostle", "results", "--tail=256KiB", *(f"--metric={metric}" for metric in metrics), "--", str(entry["batch"])]
    try:
        code, printed, _ = child(words, TABLE, env)
    except (JostleError, OSError):
        return ""
    return cut(printed.rstrip("\n"), LONGEST_TABLE) if code == 0 else ""


def message(
    entries: Sequence[Entry], *, host: str, at: float, language: str, notes: Sequence[str] = ()
) -> Message:  # fmt: skip
    """One message about all of these."""
    groups = {about: [entry for entry in entries if entry["about"] == about] for about in ORDER}
    groups = {about: these for about, these in groups.items() if these}
    alone = {entry["job"] for entry in groups.get("failed", ())}
    if "batch" in groups:  # what is told by itself need not be told again
        groups["batch"] = [
            {**entry, "failed": [one for one in entry["failed"] if one["job"] not in alone]} for entry in groups["batch"]
        ]  # fmt: skip
    items, room = [], LARGEST_ITEMS
    for entry in [entry for these in groups.values() for entry in these][:ITEMS]:
        item = _item(entry, language)
        room -= len(json.dumps(item))
        if room < 0:
            break
        items.append(item)
    title, text = notices.title(groups, host, language), notices.body(groups, host, at, language, notes)
    return made(at, list(groups), title, text, items)


def _item(entry: Entry, language: str) -> Entry:
    """The same for programs: of what failed in a batch the numbers, of a reason its code and its words."""
    item = {key: value for key, value in entry.items() if key not in ("table", "failed", "reason", "more_failed")}
    if "failed" in entry:
        item["failed"] = [one["job"] for one in entry["failed"]]
    if entry.get("reason"):
        item["reason"] = {"code": entry["reason"]["code"], "text": notices.because(entry["reason"], language)}
    return item
