"""The names of lease claims: a claim says everything in its name, for nothing inside a shared directory is trusted.

    jostle-<uuid>~<MiB|x|xMiB>~<sid>~<home8>~<job>.<n>
    jostle-GPU-sim-0000-0003~20480~41233~a1b2c3d4~17.731904226518000001

A number is a promise on a card that others may share; `x` is the whole card, `x20480` the whole card for a run that expects to
use so much. `sid` the session (pid of the run's shim), `home8` tells two homes of one user apart. The last six digits of `n` are
the number of the try; those before it are drawn by chance, so that nobody can take a name before its owner does. (Version 0.2.0
wrote none, and reads them as part of a number that it needs for its own claims only.)
A name is read strictly: what name_of() would not have written is not a claim. Who holds it is the file's owner.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jostle.core.model import RunId

PREFIX = "jostle-"
TRIES = 10**6  # of a job; more are rare, and are then told by another number
TAGS = 10**12

_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_NAME = re.compile(
    rf"jostle-(?P<uuid>[^~/\s]+)~(?P<alone>x?)(?P<mib>{_NUMBER}|(?<=x))~(?P<sid>{_NUMBER})~(?P<home>[0-9a-f]{{8}})"
    rf"~(?P<job>{_NUMBER})\.(?P<n>{_NUMBER})",
    re.ASCII,
)


HOLDER = "jostle-alloc"
"""What the process that holds an allocation calls itself: it computes nothing, whatever cards it claims."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One run's hold on one GPU, as its file's name says it."""

    uuid: str
    mib: int | None  # what the run expects to use; None: all there is
    alone: bool = False  # nobody else may use the card; always so without a size
    sid: int
    home: str  # 8 hex digits
    run: RunId
    tag: int = field(default=0, compare=False)  # drawn by chance, below TAGS; 0: none. It says nothing about the claim

    def __post_init__(self) -> None:
        if self.mib is None:
            object.__setattr__(self, "alone", True)


def name_of(claim: Claim) -> str:
    size = "x" * claim.alone + ("" if claim.mib is None else str(claim.mib))
    job, n = claim.run
    number = claim.tag * TRIES + n if n < TRIES else n
    return f"{PREFIX}{claim.uuid}~{size}~{claim.sid}~{claim.home}~{job}.{number}"


def parse(name: str) -> Claim | None:
    """The claim that a file of this name is; None for anything else."""
    if len(name) > 255:
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return Claim(
        uuid=match["uuid"],
        mib=int(match["mib"]) if match["mib"] else None,
        alone=bool(match["alone"]),
        sid=int(match["sid"]),
        home=match["home"],
        run=(int(match["job"]), int(match["n"]) % TRIES),
        tag=int(match["n"]) // TRIES,
    )
