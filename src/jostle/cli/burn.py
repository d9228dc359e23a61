"""`jostle burn [SECONDS] [MB]`: holds GPU memory for a while, to see others step aside; of a simulated card by saying so."""

from __future__ import annotations

import os
import signal
import sys
import time

from jostle import units
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.core.kinds import MAX_MIB
from jostle.probes import holding
from jostle.views.status import simulated_world


def burn_options(p: Parser) -> None:
    p.example("""
        jostle burn 60 500
        jostle add -m 2GiB -- jostle burn 30 1500""")
    p.add_argument("seconds", nargs="?", default=60.0, type=checked(units.seconds), help="default 60")
    p.number("memory_mb", nargs="?", metavar="memory_mb", default=500, high=MAX_MIB, help="default 500")
    p.number("--load", metavar="%", default=50, high=100, help="of a simulated card")


def burn(args: Namespace, terminal: Terminal) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is held is given back
    cards = [card for card in os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",") if card]
    world = simulated_world(terminal)
    duration = units.show_duration(args.seconds)
    if world is not None:
        terminal.say(f"holding {args.memory_mb} MiB of simulated GPU {','.join(cards) or 'none'} for {duration}")
        with holding.simulated(world, cards, args.memory_mb, args.load):
            time.sleep(args.seconds)
        return 0
    held = holding.real(args.memory_mb)
    terminal.say(f"holding {args.memory_mb} MiB for {duration}")
    time.sleep(args.seconds)
    del held
    return 0
