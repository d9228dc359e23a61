"""`jostle demo`: jobs compete with scripted strangers for simulated GPUs.

On a terminal it is a live picture, with a console, until Ctrl-C; elsewhere a line for each thing that happens, and it ends by
itself. Whatever ends it: what it has started ends with it.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.cli.watching import screen_size
from jostle.wording import sentences

if TYPE_CHECKING:
    from jostle.demo.stage import Stage

REDRAW = 0.5
TOLD = 3  # jobs of which the picture says why they wait


def demo_options(p: Parser) -> None:
    p.example("jostle demo")


def demo(args: Namespace, terminal: Terminal) -> int:
    from jostle.demo.shows import LONG, SHORT
    from jostle.demo.stage import outcome, stage, told_to_end
    from jostle.web.instances import hindrance

    heard = told_to_end()
    show, without = LONG if terminal.interactive else SHORT, hindrance()
    with stage(show, console=not without) as scene:
        terminal.put(terminal.message(show.story))
        if without:
            terminal.tell(without)
        if terminal.interactive:
            live(scene, terminal, heard)
            return 0 if heard == [signal.SIGINT] else 128 + heard[0] if heard else 1
        if scene.console is not None:
            count = len(scene.asked("/api/v1/gpus")["gpus"])
            terminal.put(terminal.message("demo_console", url=f"http://localhost:{scene.console.port}", n=count))
        follow(scene, terminal, heard)
        if heard:
            return 128 + heard[0]
        end = outcome(scene.reader)
    counts = {"succeeded": end.succeeded, "jobs": end.jobs, "tries": end.tries, "clashes": end.clashes}
    terminal.put(terminal.message("demo_outcome", took=f"{end.took_s:.1f}", **counts))
    return 0 if end.succeeded == end.jobs else 1


def follow(scene: Stage, terminal: Terminal, heard: list[int]) -> None:
    """A line for each thing that happens."""
    from jostle.follow.progress import Progress

    progress = Progress(scene.reader.jobs(), terminal.language)
    for seconds, event in scene.events(lambda: bool(heard) or progress.over):
        if line := progress.take(event):
            terminal.put(f"{seconds:5.1f}s  {line}")


def live(scene: Stage, terminal: Terminal, heard: list[int]) -> None:
    """Until a signal comes, or the terminal is gone."""
    drawn = 0
    try:
        while not heard:
            scene.go_on()
            text = f"\x1b[{drawn}F\x1b[J" if drawn else ""
            if url := scene.fresh_login():
                text += terminal.message("demo_login", url=url) + "\n"
            columns, rows = screen_size()
            lines = picture(scene, terminal, columns - 1)[: rows - 2]
            sys.stdout.write(text + "\n".join(lines) + "\n")
            sys.stdout.flush()
            drawn = len(lines)
            time.sleep(REDRAW)
        sys.stdout.write("\x1b[0m\n")  # a terminal that is interrupted forgets the rest of the picture
        terminal.tell("demo_ends")
    except OSError:
        pass  # nobody looks any more


def picture(scene: Stage, terminal: Terminal, columns: int) -> list[str]:
    from jostle.demo.stage import telling

    rows = scene.jobs(terminal.language)
    names = {row["id"]: row["name"] for row in rows}
    lines = ["", *(card(gpu, names, terminal, columns) for gpu in scene.cards()), "", scene.counts(terminal.language)]
    for row in telling(rows, TOLD):
        why = render.cut(f"  {row['name']}: {render.plain(sentences.beside(row['reason']))}", columns - len(row["state"]))
        lines.append(render.paint(row["state"], render.OF_STATE[row["state"]], terminal.colours) + why)
    return [*lines, "", terminal.message("demo_ctrl_c")]


def card(g: dict[str, Any], names: dict[int, str], terminal: Terminal, columns: int) -> str:
    full = round(20 * g["used_mib"] / max(1, g["total_mib"]))
    bar = render.paint("█" * full, "blue" if g["runs"] else "magenta", terminal.colours) + "░" * (20 - full)
    mine = ", ".join(names.get(int(run.partition(".")[0]), run) for run in g["runs"])
    others = ", ".join(f"{h['user']} {(h['used_mib'] or 0) / 1024:.1f}G" for h in g["holders"] if h["run"] is None)
    who = render.cut(f"{mine}  ({others})" if mine and others else mine or others or g["error"] or "free", columns - 44)
    head = f"GPU {g['index']}  {bar}  {g['used_mib'] / 1024:4.1f}/{g['total_mib'] / 1024:.0f} GiB  "
    return head + render.paint(who, "green" if mine else "", terminal.colours)
