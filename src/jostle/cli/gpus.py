"""`jostle gpus`: the cards, who uses them, and whether they may be taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.cli.parse import checked
from jostle.views import cards as views
from jostle.wording import sentences
from jostle.wording.reasons import trouble

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal

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


def gpus(args: Namespace, terminal: Terminal) -> int:
    if args.exclude or args.include:
        return change(args, terminal)
    seen = views.cards(terminal, args.devices)
    shown = [sentences.card(gpu, terminal.language) for gpu in seen.gpus]
    error = trouble(seen.error, terminal.language)
    if args.json:
        terminal.put_json({"schema": 1, **seen.plain(), "gpus": shown, "error": error})
    elif shown:
        terminal.put(table(shown, seen.engine, terminal))
    if error:
        terminal.say(f"jostle: {error}")
        return 1
    if not shown:
        terminal.say("jostle: no GPU here; try --gpus sim:8x24")
    elif not seen.engine and not args.json:
        why = "the engine has other GPUs" if terminal.engine_runs() else "no engine runs (`jostle up` starts one)"
        terminal.say(f"a single look at {seen.spec}: {why}, so nobody can say what may be taken")
    return 0


def table(gpus: list[dict[str, Any]], engine: bool, terminal: Terminal) -> str:
    """All columns where there is room; on a narrow screen those that decide."""
    head = HEAD if engine else HEAD_WITHOUT_ENGINE
    columns = range(len(head)) if terminal.width >= WIDE else NARROW
    rows = [[row[k] for k in columns] for row in (row_of(gpu, engine, zh=terminal.language == "zh") for gpu in gpus)]
    right = [place for place, k in enumerate(columns) if 2 <= k <= 7]
    return render.table([head[k] for k in columns], rows, columns=terminal.width, right=right, colours=terminal.colours)


def change(args: Namespace, terminal: Terminal) -> int:
    client = terminal.client()
    for numbers, on in ((args.exclude, True), (args.include, False)):
        if numbers:
            answer = client.call("exclude", gpus=numbers, on=on)
            excluded, faulty = answer["excluded"], answer.get("faulty")
            terminal.say(f"excluded: GPU {render.gpus(excluded)}" if excluded else "no GPU is excluded")
            if faulty:
                terminal.say(f"set aside as faulty: GPU {render.gpus(faulty)}")
    client.close()
    return 0


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
    order = sorted(sums, key=lambda who: (not who.startswith("job "), int(who[4:]) if who.startswith("job ") else 0))
    return ", ".join(f"{who} ({units.show_size(sums[who])}{mark.get(who, '')})" if sums[who] else who for who in order) or "-"
