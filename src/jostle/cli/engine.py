"""`jostle up`, `jostle down`, `jostle status`: the engine itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli import render
from jostle.core.states import SUMMED
from jostle.errors import Usage

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal



def up_options(p: Parser) -> None:
    p.example("""
        jostle up                   the engine and the console; prints a URL for one login
        jostle up --gpus sim:8x24 --no-web""")
    from jostle.cli.web import place_options

    place_options(p)
    p.add_argument("--no-web", action="store_true", help="only the engine")
    p.add_argument("--gpus", metavar="SPEC", help="the set of devices: nvml, sim:8x24 or sim:FILE")


def up(args: Namespace, terminal: Terminal) -> int:
    """Returns when the engine answers. An engine of another version makes way, one that runs reads the settings again."""
    from jostle import __version__, config
    from jostle.client import attempt, connect, start_engine

    settings = config.load(terminal.home)
    gpus = config.devices(args.gpus) if args.gpus else None
    before: dict[str, Any] = {}
    client = attempt(terminal.home)
    if client is None:
        start_engine(terminal.home, gpus=gpus, permanent=True)
    else:
        before = client.call("hello")
        if before["version"] == __version__:
            client.close()
        else:
            leave(client)
            # its jobs run on its devices; whether others may take their place is for the new one to say
            start_engine(terminal.home, gpus=before["gpus_spec"] or None, permanent=True)
    client = connect(terminal.home, gpus=gpus)
    hello = client.call("up")
    same = before.get("pid") == hello["pid"]
    if same:
        client.call("reload", config=settings)
    client.close()
    terminal.say(arrival(before, hello, same))
    if not gpus and settings.get("gpus", hello["gpus_spec"]) != hello["gpus_spec"]:
        terminal.say(f"config.yaml names other GPUs ({settings['gpus']}): `jostle up --gpus {settings['gpus']}` changes to them")
    from jostle.cli.web import with_engine

    with_engine(args, terminal)
    return 0


def arrival(before: dict[str, Any], now: dict[str, Any], same: bool) -> str:
    """What has become of the engine that ran, if one did."""
    facts = f"pid {now['pid']}, GPUs {now['gpus_spec'] or 'nvml'}"
    if same:
        return f"the engine runs already: {facts}; settings reloaded"
    if not before:
        return f"the engine is up: {facts}"
    if before["version"] != now["version"]:
        return f"the engine is up: {facts}; it replaces one of version {before['version']}"
    return f"the engine is up: {facts}; it replaces an idle one with GPUs {before['gpus_spec'] or 'nvml'}"


def down_options(p: Parser) -> None:
    p.example("""
        jostle down                 running jobs go on
        jostle down --stop-jobs""")
    p.add_argument("--stop-jobs", action="store_true", help="end the running jobs first")
    p.add_argument("--now", action="store_true", help="with --stop-jobs: kill them at once")


def down(args: Namespace, terminal: Terminal) -> int:
    from jostle.client import attempt

    if args.now and not args.stop_jobs:
        raise Usage("down: --now is for --stop-jobs; without it running jobs go on")
    from jostle.cli.web import closed

    closed(terminal)
    client = attempt(terminal.home)
    if client is None:
        terminal.say("no engine runs")
        return 0
    runs = leave(client, stop_jobs=args.stop_jobs, now=args.now)
    went_on = render.count(runs, "running job goes", "running jobs go") + " on"
    ended = render.count(runs, "running job was", "running jobs were") + " stopped"
    terminal.say("the engine is down" + (f"; {ended if args.stop_jobs else went_on}" if runs else ""))
    return 0


def leave(client: Any, *, stop_jobs: bool = False, now: bool = False) -> int:
    """Returns when the engine is gone; how many runs it had."""
    from jostle.client import wait_gone

    answer = client.call("down", stop_jobs=stop_jobs, now=now)
    wait_gone(client)
    return int(answer.get("runs") or 0)


def status_options(p: Parser) -> None:
    p.example("jostle status")
    p.json_option()


def status(args: Namespace, terminal: Terminal) -> int:
    from jostle.views.status import status as look
    from jostle.wording.reasons import trouble

    found = look(terminal)
    told = {"schema": 1, **found, "probe": trouble(found["probe"], terminal.language)}
    if args.json:
        terminal.put_json(told)
    else:
        terminal.put("\n".join(lines(told, terminal.language)))
    return 0


def lines(told: dict[str, Any], language: str) -> list[str]:
    if told["running"]:
        first = f"engine: pid {told['pid']}, version {told['version']}, up for {units.show_duration(told['uptime_s'])}, "
        first += f"GPUs {told['gpus_spec'] or 'nvml'}"
    else:
        first = "engine: none runs; any verb that needs one starts it"
    found = [first]
    if told["hold"] and told["hold"] != f"gpus: {told['probe']}":  # else the next line says it
        from jostle.wording.sentences import on_hold

        found.append(f"hold:   {on_hold(told['hold'], language)}")
    if told["probe"]:
        found.append(f"GPUs:   {told['probe']}")
    counts = ", ".join(f"{told['counts'][s]:,} {s}" for s in SUMMED if told["counts"].get(s))
    return [*found, f"jobs:   {counts or 'none'}", f"home:   {told['paths']['home']}"]
