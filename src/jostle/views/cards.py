"""The cards, who uses them, and whether they may be taken. Without an engine, one look by a probe of its own.

Where none can be read, those that were known last: unknown, of which nothing is free, with the runs of ours that hold them.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jostle.core.states import OPEN, READ
from jostle.views import estimates

if TYPE_CHECKING:
    from jostle.session import Session
    from jostle.views.types import Card
    from jostle.views.types import Cards as Plain


class CardReading(NamedTuple):
    gpus: list[Card]
    devices: str
    age_s: float | None
    error: str  # why they cannot be read: a hold, or words of the driver
    engine: bool  # whether an engine said it, who alone knows what may be taken
    more: int | None = None  # how many more may be held; None: any number
    read_at: float | None = None  # when a card could last be read, if none can now and that is known

    def plain(self) -> Plain:
        return {
            "engine": self.engine, "gpus": self.gpus, "more": self.more, "spec": self.devices, "age_s": self.age_s,
            "read_at": self.read_at, "error": self.error,
        }  # fmt: skip

    @property
    def read(self) -> bool:
        """Whether any of them can be."""
        return any(gpu["state"] in READ for gpu in self.gpus)


def cards(session: Session, devices: str | None = None) -> CardReading:
    """What the engine knows; a look of our own where none runs, or none with these devices."""
    from jostle import config

    devices = config.devices(devices) if devices else None
    client = session.engine_if_any()
    if client is not None:
        try:
            if devices is None or devices == client.call("hello")["gpus_spec"]:
                answer = client.call("gpus")
                estimates.free(answer["gpus"], session)
                seen = CardReading(answer["gpus"], answer["spec"], answer["age_s"], answer["error"], True, answer.get("more"))
                return remembered(seen, session) if seen.error and not seen.read else seen
        finally:
            client.close()
    return without_engine(devices or devices_of(session), session)


def seen_by_engine(session: Session) -> list[dict[str, Any]] | None:
    """The cards as the engine sees them; None if none answers."""
    from jostle.errors import JostleError

    try:
        client = session.client(start=False)
    except (JostleError, OSError):
        return None
    try:
        gpus: list[dict[str, Any]] = client.call("gpus")["gpus"]
        return gpus
    except (JostleError, OSError):
        return None
    finally:
        client.close()


def devices_of(session: Session) -> str:
    """The devices of the engine, or those that one started now would have."""
    from jostle import config
    from jostle.core.devices import DEFAULT

    client = session.engine_if_any()
    if client is not None:
        devices = client.call("hello")["gpus_spec"]
        client.close()
        if devices:
            return str(devices)
    return str(config.load(session.home).get("gpus") or session.reader.meta("spec") or DEFAULT)


def without_engine(devices: str, session: Session) -> CardReading:
    """A single look: what the driver shows, without the ledger that only an engine has; and whose the cards are, by what the last
    engine recorded."""
    snapshot = look(devices, session.home)
    gpus = _with_runs([from_snapshot(gpu) for gpu in snapshot["gpus"]], session)
    seen = CardReading(gpus, devices, 0.0, snapshot["error"] or "", False)
    return remembered(seen, session) if seen.error and not gpus else seen


def remembered(seen: CardReading, session: Session) -> CardReading:
    """Of a reading without cards, those that the last good one had; of one whose cards are all unread, since when they are."""
    if seen.gpus:
        return seen if seen.age_s is None else seen._replace(read_at=time.time() - seen.age_s)
    kept = session.reader.meta("cards") or {}
    if not kept or session.reader.meta("spec") != seen.devices:
        return seen
    excluded = session.reader.meta("excluded") or ()
    gpus = [{**_unknown(card), "excluded": card["uuid"] in excluded} for card in kept["gpus"]]
    return seen._replace(gpus=_with_runs(gpus, session), read_at=kept["read_at"])


def _unknown(card: dict[str, Any]) -> dict[str, Any]:
    """A card of which nothing is known but that it is there: never one that is free."""
    reading = {**card, "used_mib": 0, "free_mib": 0, "state": "unknown", "error": "", "procs": []}
    return {
        **from_snapshot(reading), "refusal": {"code": "unknown", "params": {}},
        "quarantine": None, "paused": [], "beyond": [], "idle_s": None, "free_at": None, "free_by": None,
    }  # fmt: skip


def _with_runs(gpus: list[dict[str, Any]], session: Session) -> list[Card]:
    """By what the last engine recorded."""
    held = [(uuid, row) for row in session.reader.jobs(states=OPEN) for uuid in row["gpu_uuids"]]
    for gpu in gpus:
        gpu["runs"] = [f"{row['id']}.{row['attempt']}" for uuid, row in held if uuid == gpu["uuid"]]
    return cast("list[Card]", gpus)


def look(devices: str, home: str) -> dict[str, Any]:
    """One snapshot; of simulated cards in the world that the engine of this home would show."""
    from jostle import config
    from jostle.core.devices import world
    from jostle.probes.serve import one_shot

    config.check_devices(devices)
    if world(devices) is not None:
        os.environ["JOSTLE_SIM_DIR"], os.environ["JOSTLE_LEASE_DIR"] = config.sim_dir(home), config.lease_dir(home, devices)
    return one_shot(devices)


def from_snapshot(gpu: dict[str, Any]) -> dict[str, Any]:
    keys = (
        "index", "uuid", "name", "total_mib", "used_mib", "free_mib", "utilization", "temperature", "power_w", "power_limit_w",
        "fan", "sm_mhz", "memory_mhz", "state", "error",
    )  # fmt: skip
    holders = [
        {**{key: p[key] for key in ("pid", "user", "used_mib", "name", "exe")}, "sm": None, "run": None}
        for p in gpu["procs"]
    ]
    return {
        **{key: gpu.get(key) for key in keys}, "pci": gpu.get("pci") or "",
        "available_mib": gpu["free_mib"] if gpu["state"] == "ok" else 0,
        "reserved_mib": gpu.get("reserved_mib") or 0, "holders": holders, "refusal": None, "excluded": False, "runs": [],
    }  # fmt: skip
