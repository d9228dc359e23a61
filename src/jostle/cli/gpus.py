"""`jostle gpus`: the cards, who uses them, and whether they may be taken. Without an engine, one look by a probe of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.cli.parse import checked

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.desk import Desk
    from jostle.cli.parse import Parser

WIDE = 110  # columns of a terminal
NARROW = (0, 2, 3, 4, 5, 8, 9)
HEAD = ("GPU", "NAME", "USED", "TOTAL", "FREE FOR YOU", "LOAD", "°C", "W", "HELD BY", "MAY BE TAKEN")
HEAD_WITHOUT_ENGINE = (*HEAD[:4], "FREE", *HEAD[5:9], "STATE")


def gpus_options(p: Parser) -> None:
    p.example("""
        jostle gpus
        jostle gpus --exclude 3         no job of ours starts there any more
        jostle gpus --gpus sim:8x24""")
    p.add_argument("--exclude", metavar="N", type=checked(units.numbers), help="do not use these cards: 3 or 0,4-7")
    p.add_argument("--include", metavar="N", type=checked(units.numbers), help="use them again, also those set aside as faulty")
    p.add_argument("--gpus", dest="devices", metavar="SPEC", help="look once at these devices: nvml, sim:8x24 or sim:FILE")
    p.json_option()


def gpus(args: Namespace, desk: Desk) -> int:
    if args.exclude or args.include:
        return change(args, desk)
    answer = asked(desk, args.devices)
    engine = answer.pop("engine")
    if args.json:
        desk.put_json({"schema": 1, "engine": engine, **answer})
    elif answer["gpus"]:
        desk.put(table(answer["gpus"], engine, desk))
    if answer.get("error"):
        desk.say(f"jostle: {answer['error']}")
        return 1
    if not answer["gpus"]:
        desk.say("jostle: no GPU here; try --gpus sim:8x24")
    elif not engine and not args.json:
        why = "the engine has other GPUs" if desk.engine_runs() else "no engine runs (`jostle up` starts one)"
        desk.say(f"a single look at {answer['spec']}: {why}, so nobody can say what may be taken")
    return 0


def table(gpus: list[dict[str, Any]], engine: bool, desk: Desk) -> str:
    """All columns where there is room; on a narrow screen those that decide."""
    head = HEAD if engine else HEAD_WITHOUT_ENGINE
    columns = range(len(head)) if desk.width >= WIDE else NARROW
    rows = [[row[k] for k in columns] for row in (row_of(gpu, engine, zh=desk.language == "zh") for gpu in gpus)]
    right = [place for place, k in enumerate(columns) if 2 <= k <= 7]
    return render.table([head[k] for k in columns], rows, columns=desk.width, right=right, colours=desk.colours)


def asked(desk: Desk, devices: str | None) -> dict[str, Any]:
    """What the engine knows; a look of our own where none runs, or none with these devices."""
    from jostle import config

    wanted = config.devices(devices) if devices else None
    client = desk.engine_if_any()
    if client is not None:
        try:
            if wanted is None or wanted == client.call("hello")["gpus_spec"]:
                return {**worded(client.call("gpus"), desk.language), "engine": True}
        finally:
            client.close()
    return {**without_engine(wanted or spec_of(desk), desk.home), "engine": False}


def worded(answer: dict[str, Any], language: str) -> dict[str, Any]:
    """What the engine said of the cards, with words."""
    from jostle.wording import reasons, sentences

    cards = [sentences.card(gpu, language) for gpu in answer["gpus"]]
    return {**answer, "gpus": cards, "error": reasons.hold_text(answer["error"], reasons.language(language))}


def change(args: Namespace, desk: Desk) -> int:
    client = desk.client()
    for numbers, on in ((args.exclude, True), (args.include, False)):
        if numbers:
            answer = client.call("exclude", gpus=numbers, on=on)
            excluded, faulty = answer["excluded"], answer.get("faulty")
            desk.say(f"excluded: GPU {render.gpus(excluded)}" if excluded else "no GPU is excluded")
            if faulty:
                desk.say(f"set aside as faulty: GPU {render.gpus(faulty)}")
    client.close()
    return 0


def spec_of(desk: Desk) -> str:
    """The devices of the engine, or those that one started now would have."""
    from jostle import config

    client = desk.engine_if_any()
    if client is not None:
        found = client.call("hello")["gpus_spec"]
        client.close()
        if found:
            return str(found)
    return str(config.load(desk.home).get("gpus") or desk.reader.meta("spec") or "nvml")


def without_engine(spec: str, home: str) -> dict[str, Any]:
    """A single look: what the driver shows, without the ledger that only an engine has."""
    seen = look(spec, home)
    return {
        "gpus": [from_snapshot(gpu) for gpu in seen["gpus"]],
        "spec": spec,
        "age_s": 0.0,
        "error": seen["error"] or "",
    }


def look(spec: str, home: str) -> dict[str, Any]:
    """One snapshot; of simulated cards in the world that the engine of this home would show."""
    from jostle import config
    from jostle.probes.serve import one_shot

    config.check_devices(spec)
    if spec.startswith("sim:"):
        os.environ["JOSTLE_SIM_DIR"], os.environ["JOSTLE_LEASE_DIR"] = config.sim_dir(home), config.lease_dir(home, spec)
    return one_shot(spec)


def from_snapshot(gpu: dict[str, Any]) -> dict[str, Any]:
    keys = (
        "index",
        "uuid",
        "name",
        "total_mib",
        "used_mib",
        "free_mib",
        "utilization",
        "temperature",
        "power_w",
        "state",
        "error",
    )
    holders = [
        {"pid": p["pid"], "user": p["user"], "used_mib": p["used_mib"], "name": p["name"], "exe": p["exe"], "run": None}
        for p in gpu["procs"]
    ]
    return {
        **{key: gpu[key] for key in keys}, "available_mib": gpu["free_mib"] if gpu["state"] == "ok" else 0,
        "reserved_mib": gpu.get("reserved_mib") or 0, "holders": holders, "refusal": None, "excluded": False, "runs": [],
    }  # fmt: skip


def row_of(gpu: dict[str, Any], engine: bool = True, *, zh: bool = False) -> tuple[str, ...]:
    """The last column: with an engine whether the card may be taken, without one only how it is."""
    refusal = gpu["refusal"]
    good = "yes" if engine else "ok"
    verdict = refusal["text"] if refusal else good if gpu["state"] == "ok" else gpu["error"] or gpu["state"]
    return (
        str(gpu["index"]), gpu["name"], units.show_size(gpu["used_mib"]), units.show_size(gpu["total_mib"]),
        units.show_size(gpu["available_mib"]), _number(gpu["utilization"], "%"), _number(gpu["temperature"]),
        _number(gpu["power_w"]), holders(gpu, zh), verdict,
    )  # fmt: skip


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.0f}{unit}"


def holders(gpu: dict[str, Any], zh: bool = False) -> str:
    """`job 17 (12 GiB, asked for 8 GiB), bob (4 GiB)`: our runs by number, others by name."""
    sums: dict[str, int | None] = {}
    for h in gpu["holders"]:
        who = f"job {h['run'].split('.')[0]}" if h["run"] else h["user"] or f"pid {h['pid']}"
        before = sums.get(who, 0)
        sums[who] = None if before is None or h["used_mib"] is None else before + int(h["used_mib"])
    for run in gpu.get("runs") or ():
        sums.setdefault(f"job {run.split('.')[0]}", 0)  # it holds the card but uses nothing yet
    asked = {f"job {b['run'].split('.')[0]}": units.show_size(b["asked_mib"]) for b in gpu.get("beyond") or ()}
    mark = {who: f"，只要求了 {size}" if zh else f", asked for {size}" for who, size in asked.items()}
    return ", ".join(f"{who} ({units.show_size(mib)}{mark.get(who, '')})" if mib else who for who, mib in sums.items()) or "-"
