"""`jostle manage` with the flags of the source's manager, and `jostle monitor` (SPEC C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.core.kinds import MAX_GPUS
from jostle.errors import Usage
from jostle.formats.managerfile import NAME

if TYPE_CHECKING:
    from jostle.manage.loading import Loaded


def manage_options(p: Parser) -> None:
    p.usage = "jostle manage [--config FILE] [--monitor-only|--manage|--daemon]\n       jostle manage [--config FILE] ACT"
    p.example("""
        jostle manage --status
        jostle manage --allocate exp_train --gpus 4
        jostle manage --start-program exp_train
        jostle manage --release exp_train
        jostle manage --daemon          keep the floor of the configuration, in the background""")
    monitor_flags(p)
    p.add_argument("--monitor-only", action="store_true", help="only show the status, as without any option")
    act = p.add_mutually_exclusive_group()
    act.add_argument("--status", action="store_true", help="nodes, tasks and their cards, once")
    act.add_argument("--allocate", metavar="TASK", help="hold cards under this name")
    act.add_argument("--release", metavar="TASK", help="give its cards back; also by the id of its job")
    act.add_argument("--start-program", metavar="TASK", help="start the program of the configuration on its cards")
    p.number("--quick-get", to=act, low=1, high=MAX_GPUS, help="hold N cards at once, or exit 1")
    p.number("--request", to=act, low=1, high=MAX_GPUS, help="ask for N cards, and wait in the queue")
    act.add_argument("--use", metavar="ID", help="start the program on the cards of this job; without one, print them")
    act.add_argument("-m", dest="system", action="store_true", help="the host: CPU, memory, disk, network, load, processes")
    p.number("--gpus", low=1, high=MAX_GPUS, metavar="N", help="with --allocate: how many cards (default 1)")
    p.number("-i", dest="interval", low=1, high=86400, metavar="S", help="seconds between two pictures")


def monitor_options(p: Parser) -> None:
    p.example("""
        jostle monitor
        jostle monitor --manage         also keep the floor of the configuration""")
    monitor_flags(p)
    p.number("-i", dest="interval", low=1, high=86400, metavar="S", help="seconds between two pictures")


def monitor_flags(p: Parser) -> None:
    p.add_argument("--config", metavar="FILE", help=f"the configuration (default: {NAME} in this directory, if it is there)")
    p.add_argument("--manage", action="store_true", help="also keep cards for you: min_reserved_gpus to max_reserved_gpus")
    p.add_argument("--daemon", action="store_true", help="the same, in the background")


def manage(args: Namespace, terminal: Terminal) -> int:
    from jostle.manage.acts import ACTS, Acts
    from jostle.manage.loading import Loaded

    if args.gpus is not None and not args.allocate:
        raise Usage("manage: --gpus is for --allocate")
    if args.monitor_only and (args.manage or args.daemon):
        raise Usage("manage: --monitor-only holds nothing, --manage and --daemon do; expected one of them")
    act = next((name for name in ACTS if getattr(args, name) is not None and getattr(args, name) is not False), "")
    if act and (args.manage or args.daemon or args.monitor_only):
        raise Usage(f"manage: --{act.replace('_', '-')} does one thing and ends; expected it without --manage or --daemon")
    loaded = Loaded(terminal, args.config)
    if not act:
        return at_work(args, terminal, loaded)
    acts = Acts(terminal, loaded, terminal.put_now, gpus=args.gpus or 1, interval=args.interval)
    return acts.do(act, getattr(args, act))


def monitor(args: Namespace, terminal: Terminal) -> int:
    from jostle.manage.loading import Loaded

    return at_work(args, terminal, Loaded(terminal, args.config))


def at_work(args: Namespace, terminal: Terminal, loaded: Loaded) -> int:
    from jostle.manage import background

    if args.daemon:
        if args.interval is not None:
            raise Usage("manage: -i is for pictures, and --daemon shows none; expected one of them")
        pid, log = background.start(terminal, loaded)
        terminal.tell("manage_daemon", pid=pid, log=log)
        return 0
    return background.monitor(terminal, loaded, manages=args.manage, interval=args.interval, put=terminal.put_now)
