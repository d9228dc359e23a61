"""Cards for the process that asks: `with jostle.gpus(2, memory="20GiB") as g:` in a notebook or a script (SPEC C2).

They are an allocation that is tied to this process, so whatever becomes of it they are given back. CUDA looks at its variables
when it begins: where it has, cards can no longer be chosen, and that is an error instead of a surprise.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from jostle import proc, units
from jostle.core.runvariables import GPUS, VISIBLE
from jostle.errors import JostleError
from jostle.intake import allocations
from jostle.session import Session

CUDA_DEVICE = "/dev/nvidia-uvm"  # CUDA opens it when it begins, and what only looks at cards does not
_numbers = itertools.count(1)


class Cards(NamedTuple):
    """What this process holds."""

    name: str  # of the allocation
    id: int  # its job
    indices: list[int]  # of the cards, as the driver counts
    visible: str  # as CUDA_VISIBLE_DEVICES has them


class CudaHasBegun(JostleError):
    """Cards cannot be chosen any more."""


@contextlib.contextmanager
def gpus(
    count: int = 1, *, memory: str | int | None = None, name: str | None = None, time: str | float | None = None,
    now: bool = False, devices: str | None = None,
) -> Iterator[Cards]:  # fmt: skip
    """So many cards for this process, while the block lasts. `memory`: of each, such as "20GiB" (a bare number: GB); None: whole
    cards. `name`: what `jostle ps` calls it. `time`: released after that, such as "2h" or seconds. `now`: an error where they
    cannot be had at once. `devices`: of an engine that is started for it."""
    session = Session()
    refuse_if_begun(session)
    called = name or f"python-{os.getpid()}-{next(_numbers)}"
    mib = None if memory is None else units.size_mib(str(memory))
    limit = units.seconds(str(time)) if time is not None else None
    me = allocations.process(session, os.getpid())
    try:
        id = allocations.allocate(
            session, called, gpus=(count, count), memory_mib=mib, time_limit=limit, tied_to=me, devices=devices
        )
        try:
            env = allocations.held(session, id, now=now)
            with _set(env):
                yield Cards(called, id, [int(word) for word in env[GPUS].split(",")], env[VISIBLE])
        finally:
            allocations.give_up(session, id)
            allocations.wait_gone(session, id)
    finally:
        session.close()


@contextlib.contextmanager
def _set(env: dict[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def refuse_if_begun(session: Session) -> None:
    """Raises if CUDA has begun in this process. What is not imported is not imported for that."""
    if who := begun():
        raise CudaHasBegun(session.message("cuda_has_begun", who=who))


def begun() -> str:
    """By whom, as far as that can be told; "": it has not."""
    for module, asked in (("torch", _torch), ("numba.cuda", _numba), ("jax", _jax)):
        if module in sys.modules:
            with contextlib.suppress(Exception):  # of a version that we do not know; the device tells it, too
                if asked():
                    return module
    if "pycuda.autoinit" in sys.modules:
        return "pycuda"
    return CUDA_DEVICE if CUDA_DEVICE in proc.open_files(os.getpid()) else ""


def _torch() -> bool:
    return bool(sys.modules["torch"].cuda.is_initialized())


def _numba() -> bool:
    return bool(sys.modules["numba.cuda"].cudadrv.driver.driver.is_initialized)


def _jax() -> bool:
    return "cuda" in sys.modules["jax._src.xla_bridge"]._backends
