"""Memory of cards, held on purpose: of simulated ones by saying so in their world, of real ones by whatever library is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from jostle.errors import JostleError


@contextlib.contextmanager
def simulated(world: str, cards: Sequence[str], mib: int, utilization: int) -> Iterator[None]:
    """So much of each of these cards, for this process."""
    folder = os.path.join(world, "use")
    mine, draft = os.path.join(folder, str(os.getpid())), os.path.join(folder, f".{os.getpid()}")
    try:  # around all of it: a signal may end us the moment after the file is there
        os.makedirs(folder, exist_ok=True)
        with open(draft, "w") as f:
            f.writelines(f"{card} {mib} {utilization}\n" for card in cards)
        os.rename(draft, mine)  # a probe never reads half of it
        yield
    except OSError as e:
        raise JostleError(f"cannot write into the simulated world {world}: {e.strerror}") from e
    finally:
        for path in (mine, draft):
            with contextlib.suppress(OSError):
                os.unlink(path)  # a probe cleans up after the dead, too


def real(mib: int) -> Any:
    """What holds the memory for as long as it is kept."""
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
