"""`jostle alloc NAME`, `release NAME`, `start NAME`: cards held under a name, and programs on them (SPEC C1, C2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.core.fields import JOB
from jostle.core.kinds import MAX_PID
from jostle.errors import Usage
from jostle.follow.ends import until_gone
from jostle.formats import spec
from jostle.intake import allocations, obtaining

WANTED = ("gpus", "memory_mib", "time_limit", "idle_release", "priority")  # options by what they say of an allocation
PER_CARD = JOB["memory_mib"].what
NO_CARDS = "false"  # what `eval $(jostle alloc … --export)` evaluates then: it fails, as a command would


def _read(field: str) -> Callable[[str], Any]:
    return checked(spec.reader(JOB[field].kind))


def alloc_options(p: Parser) -> None:
    p.usage = "jostle alloc NAME [options] [-- COMMAND [ARGS…]]"
    p.example("""
        jostle alloc train -g 2 --for 2h
        jostle alloc debug -g 1 -m 20GiB -- bash
        eval $(jostle alloc nb -g 1 --export)""")
    p.add_argument("name", metavar="NAME", type=checked(lambda t: spec.label(t, "a name")), help="what it is called")
    p.add_argument("-g", dest="gpus", metavar="N|N-M", type=_read("gpus"), default=[1, 1], help="how many cards (default 1)")
    p.add_argument("-m", "--memory", dest="memory_mib", metavar="SIZE", type=_read("memory_mib"),
                   help=f"{PER_CARD} (default: all of it)")  # fmt: skip
    p.add_argument("--for", dest="time_limit", metavar="TIME", type=_read("time_limit"), help="release it after this time")
    p.add_argument("--release-idle", dest="idle_release", metavar="TIME", type=_read("idle_release"),
                   help="release it when nothing of yours was on its cards for so long")  # fmt: skip
    p.add_argument("-p", "--priority", metavar="N", type=_read("priority"), default=0, help=JOB["priority"].what)
    p.add_argument("--now", action="store_true", help="exit 1 with the reason, instead of waiting for cards")
    p.add_argument("-d", "--detach", action="store_true", help="ask for it, print its job, and leave: it waits by itself")
    p.add_argument("--export", action="store_true", help="print it for `eval`; released when that shell ends")
    p.add_argument("--grow", action="store_true", help="if NAME exists already, let it have so many cards in all")
    p.number("--pid", low=1, high=MAX_PID, help="release it when this process ends")
    p.json_option()
    p.behind = "command"
    p.epilog = f"{p.epilog}\n\nA command behind `--` runs on the cards, in this terminal; then they are released."
    p.advice = _refused


def _refused(typed: Sequence[str]) -> str:
    """Before the options are read a shell that evaluates us is told to fail, too."""
    if "--export" in typed:
        print(NO_CARDS)
    return ""


def alloc(args: Namespace, terminal: Terminal) -> int:
    if not args.export:
        return _alloc(args, terminal)
    try:
        return _alloc(args, terminal)
    except BaseException:
        terminal.put(NO_CARDS)
        raise


def _alloc(args: Namespace, terminal: Terminal) -> int:
    if args.export and args.command:
        raise Usage("alloc: --export is for a shell that goes on, a command ends by itself; expected one of them")
    if args.detach:
        return _detached(args, terminal)
    if args.command:
        from jostle.follow.child import WaitingChild

        return _run(args, terminal, WaitingChild(args.command))
    tied_to = args.pid or (allocations.shell() if args.export else None)
    me = allocations.myself(terminal)
    id, env = obtaining.obtained(terminal, args.name, pid=tied_to, awaited_by=me, **_values(args, *WANTED, "now", "grow"))
    if args.export:
        from shlex import quote

        allocations.keep(terminal, id)  # first: what a shell evaluates is all or nothing, and its end gives the cards back anyway
        terminal.put("; ".join(f"export {key}={quote(value)}" for key, value in sorted(env.items())))
    else:
        _put(args, terminal, id, env, env["CUDA_VISIBLE_DEVICES"])
        allocations.keep(terminal, id)
    terminal.tell("alloc_held", name=args.name, gpus=env["JOSTLE_GPUS"], id=id)
    return 0


def _put(args: Namespace, terminal: Terminal, id: int, env: dict[str, str], text: str) -> None:
    if args.json:
        terminal.put_json({"schema": 1, "name": args.name, "id": id, "env": env})
    else:
        terminal.put(text)
    sys.stdout.flush()


def _detached(args: Namespace, terminal: Terminal) -> int:
    if args.command or args.export or args.now or args.grow:
        raise Usage("alloc: --detach does not wait for cards, and a command, --export, --now and --grow do; expected one of them")
    id = obtaining.asked(terminal, args.name, pid=args.pid, **_values(args, *WANTED))
    _put(args, terminal, id, {}, str(id))
    return 0


def _values(args: Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(args, name) for name in names}


def _run(args: Namespace, terminal: Terminal, waiting: Any) -> int:
    """The command in this terminal, from when the cards are there; it exists before, so that they end with it in any case."""
    try:
        id, env = obtaining.obtained(terminal, args.name, pid=waiting.pid, **_values(args, *WANTED, "now", "grow"))
        terminal.tell("alloc_runs", name=args.name, gpus=env["JOSTLE_GPUS"], id=id)
        code = waiting.go(env)
    finally:
        waiting.close()
    allocations.give_up(terminal, id)
    until_gone(terminal, id)
    return int(code)


def release_options(p: Parser) -> None:
    p.example("jostle release train")
    p.add_argument("names", nargs="+", metavar="NAME", help="what it is called, or its job id")
    p.add_argument("--now", action="store_true", help="kill what runs inside at once")


def release(args: Namespace, terminal: Terminal) -> int:
    for name in args.names:
        id = allocations.release(terminal, name, now=args.now)
        terminal.tell("alloc_releasing", name=name, id=id)
        until_gone(terminal, id)
        terminal.tell("alloc_released", name=name)
    return 0


def start_options(p: Parser) -> None:
    p.usage = "jostle start NAME [options] [-- COMMAND [ARGS…]]"
    p.example("""
        jostle start train -- python train.py
        jostle start train -t -- ipython
        jostle start train --beside -g 1 -- tensorboard --logdir runs""")
    p.add_argument("name", metavar="NAME", help="the allocation, or its job id")
    p.add_argument("-t", "--terminal", action="store_true", help="run it in this terminal, and stay until it has ended")
    p.add_argument("--beside", action="store_true", help="also while another program runs inside")
    p.add_argument("-g", dest="gpus", metavar="N", type=_read("gpus"), help="of its cards (default: all)")
    p.add_argument("-m", "--memory", dest="memory_mib", metavar="SIZE", type=_read("memory_mib"),
                   help=f"{PER_CARD} (default: what the allocation has)")  # fmt: skip
    p.add_argument("-n", "--name", dest="label", metavar="NAME", help="what the job is called")
    p.behind = "command"
    p.epilog = f"{p.epilog}\n\nWithout a command: the program_template of the file that `jostle manage` or `monitor` loaded last."


def start(args: Namespace, terminal: Terminal) -> int:
    variables: dict[str, str] = {}
    command, retry = args.command, None
    if not command:
        from jostle.manage.program import of_task

        program, variables, retry = of_task(terminal, args.name)
        command = [program]
    asked = _values(args, "beside", "gpus", "memory_mib", "label")
    if args.terminal:
        from jostle.cli.onterminal import bridged

        # no second try: whoever sits there sees how the first ended, and the terminal may be another's by then
        return bridged(terminal, lambda env: allocations.start(terminal, args.name, command, env={**variables, **env}, **asked))
    terminal.put(str(allocations.start(terminal, args.name, command, env=variables, retry=retry, **asked)))
    return 0
