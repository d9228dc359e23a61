"""`jostle burn [SECONDS] [MB]`: holds GPU memory for a while, to see others step aside; of a simulated card by saying so."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from jostle import units
from jostle.cli.parse import checked
from jostle.errors import JostleError
from jostle.formats import spec

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal


def burn_options(p: Parser) -> None:
    p.example("""
        jostle burn 60 500
        jostle add -m 2GiB -- jostle burn 30 1500""")
    p.add_argument("seconds", nargs="?", default=60.0, type=checked(units.seconds), help="default 60")
    p.add_argument(
        "memory_mb", nargs="?", default=500, type=checked(lambda t: spec.whole(t, 0, units.MAX_MIB)), help="default 500"
    )
    p.add_argument("--load", metavar="%", default=50, type=checked(lambda t: spec.whole(t, 0, 100)), help="of a simulated card")


def burn(args: Namespace, terminal: Terminal) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is held is given back
    cards = [card for card in os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",") if card]
    world = sim_dir(terminal)
    if world is not None:
        where = f"simulated GPU {','.join(cards) or 'none'}"
        terminal.say(f"holding {args.memory_mb} MiB of {where} for {units.show_duration(args.seconds)}")
        return in_world(world, cards, args)
    held = on_card(args.memory_mb)
    terminal.say(f"holding {args.memory_mb} MiB for {units.show_duration(args.seconds)}")
    time.sleep(args.seconds)
    del held
    return 0


def sim_dir(terminal: Terminal) -> str | None:
    """The simulated world this process lives in, if it does."""
    given = os.environ.get("JOSTLE_SIM_DIR")
    if given:
        return given
    client = terminal.engine_if_any()
    if client is None:
        return None
    found = client.call("hello").get("sim_dir")
    client.close()
    return str(found) if found else None


def in_world(world: str, cards: list[str], args: Namespace) -> int:
    folder = os.path.join(world, "use")
    mine, draft = os.path.join(folder, str(os.getpid())), os.path.join(folder, f".{os.getpid()}")
    try:  # around all of it: a SIGTERM may come the moment after the file is there
        hold(folder, mine, draft, [f"{card} {args.memory_mb} {args.load}\n" for card in cards])
        time.sleep(args.seconds)
    except OSError as e:
        raise JostleError(f"cannot write into the simulated world {world}: {e.strerror}") from e
    finally:
        for path in (mine, draft):
            try:
                os.unlink(path)
            except OSError:
                pass  # a probe cleans up after the dead, too
    return 0


def hold(folder: str, mine: str, draft: str, lines: list[str]) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(draft, "w") as f:
        f.writelines(lines)
    os.rename(draft, mine)  # a probe never reads half of it


def on_card(mib: int) -> Any:
    """Memory of a real GPU, by whatever library is there."""
    from importlib import import_module

    for library, hold in (("torch", _torch), ("cupy", _cupy)):
        try:
            module = import_module(library)
        except ImportError:
            continue
        try:
            return hold(module, mib << 20)
        except Exception as e:  # each library has errors of its own
            raise JostleError(f"{library} cannot hold {mib} MiB: {e}") from e
    raise JostleError("holding real GPU memory needs torch or cupy: pip install one of them, or use --gpus sim:8x24")


def _torch(torch: Any, size: int) -> Any:
    return torch.ones(size, dtype=torch.uint8, device="cuda")


def _cupy(cupy: Any, size: int) -> Any:
    return cupy.ones(size, dtype=cupy.uint8)
