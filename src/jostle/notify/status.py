"""How notifications stand, as values: whether the process runs, and of each channel what waits, was sent and went wrong. Nothing
secret is in it: of an address only its host."""

from __future__ import annotations

from typing import Any, TypedDict

from jostle import notifier
from jostle.notify import deliver, spool
from jostle.notify.channels import subscribers


class ChannelStatus(TypedDict):
    name: str
    kind: str
    host: str  # that it goes to; "" if its address cannot be had
    events: list[str]
    flaw: dict[str, Any] | None  # what keeps it from being used at all: a trouble
    damaged: bool  # its spool cannot be read
    waiting: int  # messages
    oldest_at: float | None  # of them
    sent: int
    sent_at: float | None
    failing_since: float | None  # None: the last try went well, or there was none
    error: dict[str, Any] | None  # the last trouble
    error_at: float | None
    next_at: float | None  # when it is tried again
    dropped: int
    dropped_why: dict[str, Any] | None


class Status(TypedDict):
    running: bool
    pid: int | None
    log: str
    channels: list[ChannelStatus]


def status(home: str) -> Status:
    """Errors of config.yaml are for the caller."""
    record = notifier.facts(home)
    return {
        "running": bool(record) or notifier.runs(home), "pid": record.get("pid"), "log": f"{spool.folder(home)}/notify.log",
        "channels": [_channel(home, channel) for channel, _ in subscribers(home)],
    }  # fmt: skip


def _channel(home: str, channel: deliver.Channel) -> ChannelStatus:
    flaw = deliver.flaw(channel)
    try:
        kept, damaged = spool.load(spool.path_of(home, channel.name)) or dict(spool.FRESH), False
    except ValueError:
        kept, damaged = dict(spool.FRESH), True
    queue, failing = kept["queue"], kept["failing_since"]
    return {
        "name": channel.name, "kind": channel.kind, "host": deliver.where(channel), "events": list(channel.events),
        "flaw": flaw.plain if flaw else None, "damaged": damaged, "waiting": len(queue),
        "oldest_at": min((one["made_at"] for one in queue), default=None), "sent": kept["sent"], "sent_at": kept["sent_at"],
        "failing_since": failing, "error": kept["error"], "error_at": kept["error_at"],
        "next_at": kept["next_at"] if failing is not None and queue else None,
        "dropped": kept["dropped"], "dropped_why": kept["dropped_why"],
    }  # fmt: skip
