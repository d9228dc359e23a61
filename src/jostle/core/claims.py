"""The names of lease claims: a claim says everything in its name, for nothing inside a shared directory is trusted.

    jostle-<uuid>~<x|MiB>~<sid>~<home8>~<job>.<n>      e.g. jostle-GPU-sim-0000-0003~20480~41233~a1b2c3d4~17.1

`x` is the whole card, `sid` the session (pid of the run's shim), `home8` tells two homes of one user apart.
A name is read strictly: what name_of() would not have written is not a claim. Who holds it is the file's owner.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jostle.core.model import RunId

PREFIX = "jostle-"

_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_NAME = re.compile(
    rf"jostle-(?P<uuid>[^~/\s]+)~(?P<mib>x|{_NUMBER})~(?P<sid>{_NUMBER})~(?P<home>[0-9a-f]{{8}})"
    rf"~(?P<job>{_NUMBER})\.(?P<n>{_NUMBER})",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One run's hold on one GPU, as its file's name says it."""

    uuid: str
    mib: int | None  # None: the whole card
    sid: int
    home: str  # 8 hex digits
    run: RunId


def name_of(claim: Claim) -> str:
    size = "x" if claim.mib is None else str(claim.mib)
    job, n = claim.run
    return f"{PREFIX}{claim.uuid}~{size}~{claim.sid}~{claim.home}~{job}.{n}"


def parse(name: str) -> Claim | None:
    """The claim that a file of this name is; None for anything else."""
    if len(name) > 255:
        return None
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    size = found["mib"]
    return Claim(
        uuid=found["uuid"],
        mib=None if size == "x" else int(size),
        sid=int(found["sid"]),
        home=found["home"],
        run=(int(found["job"]), int(found["n"])),
    )
