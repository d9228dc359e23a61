"""`jostle up`, `jostle down`, `jostle status`: the engine itself."""

from __future__ import annotations

import os
import time

from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.errors import Usage


def up_options(p: Parser) -> None:
    p.example("""
        jostle up                   the engine and the console; prints a URL for one login
        jostle up --gpus sim:8x24 --no-web""")
    from jostle.cli.web import place_options

    place_options(p)
    p.add_argument("--no-web", action="store_true", help="only the engine")
    p.devices_option("the set of devices")


def up(args: Namespace, terminal: Terminal) -> int:
    """Returns when the engine answers."""
    from jostle import client, config
    from jostle.cli.web import opened
    from jostle.views.status import arrival
    from jostle.web import instances, place

    if args.directory is not None:
        place.check(os.path.abspath(args.directory))
    settings = config.load(terminal.home)
    gpus = config.devices(args.gpus) if args.gpus else None
    before, now = client.up(terminal.home, gpus, terminal.tell)
    code, values = arrival(before, now)
    terminal.tell(code, **values)
    if not gpus and settings.get("gpus", now["gpus_spec"]) != now["gpus_spec"]:
        terminal.tell("engine_other_gpus", gpus=settings["gpus"])
    without = instances.hindrance()
    if not without and not args.no_web:
        opened(args, terminal)
    elif without == "console_missing" and not args.no_web:
        terminal.tell(without)
    return 0


def down_options(p: Parser) -> None:
    p.example("""
        jostle down                 running jobs go on
        jostle down --stop-jobs""")
    p.add_argument("--stop-jobs", action="store_true", help="end the running jobs first")
    p.add_argument("--now", action="store_true", help="with --stop-jobs: kill them at once")


def down(args: Namespace, terminal: Terminal) -> int:
    from jostle.address import DOWN
    from jostle.client import attempt, keep_word
    from jostle.client import down as ended
    from jostle.notifier import stop
    from jostle.web.instances import stop_all

    if args.now and not args.stop_jobs:
        raise Usage("down: --now is for --stop-jobs; without it running jobs go on")
    if stop_all(terminal.home):
        terminal.tell("console_down")
    client = attempt(terminal.home, terminal.tell)
    if client is None:
        keep_word(terminal.home, DOWN)
        stop(terminal.home)
        terminal.tell("engine_none")
        return 0
    runs, absent = ended(client, stop_jobs=args.stop_jobs, now=args.now)
    stop(terminal.home)
    counts = {"jobs_stopped": runs - absent, "jobs_not_stopped": absent} if args.stop_jobs else {"jobs_go_on": runs}
    terminal.say(terminal.message("engine_down") + "".join(terminal.message(code, n=n) for code, n in counts.items() if n))
    return 0


def status_options(p: Parser) -> None:
    p.example("jostle status")
    p.json_option()


def status(args: Namespace, terminal: Terminal) -> int:
    from jostle.views.status import overview
    from jostle.web.instances import listed
    from jostle.wording import sentences
    from jostle.wording.labels import status_lines

    answer = sentences.status(overview(terminal, listed(terminal.home)), terminal.language)
    if args.json:
        terminal.put_json({"schema": 1, **answer})
    else:
        terminal.put("\n".join(status_lines(answer, time.time(), terminal.language)))
    return 0
