"""torchrun on the cards that a job has now, one process each:

    jobs:
      - gpus: 1-4
        resize: restart
        run: python -m jostle.torchrun train.py --lr 0.1

What follows is for torchrun: its options, the script, the script's arguments. A change of cards ends it and begins it again
with as many processes as there are cards then; so the script saves on SIGTERM and goes on from there (examples/elastic has one).
Without jostle it takes the cards of CUDA_VISIBLE_DEVICES, or all. docs/resources.md says more.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from jostle import elastic

SAFE = {
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else --max-restarts hangs: restarted workers read where those before them were
    "GLOO_SOCKET_IFNAME": "lo",  # all of them are on this host
}
"""Unless the environment says otherwise."""


def program() -> list[str]:
    """That of the Python which runs this, for its scripts are to have its packages; else the one on the PATH."""
    torch = find_spec("torch")
    if torch is not None and torch.origin is not None:  # not a mere directory of that name
        return [sys.executable, "-m", "torch.distributed.run"]
    path = shutil.which("torchrun")
    if path is None:
        raise SystemExit(f"jostle.torchrun: {sys.executable} has no torch, and there is no torchrun on the PATH")
    return [path]


def options(rendezvous: int) -> list[str]:
    """One process per card. They meet in a file that has no name (torchrun unpickles what it finds there, and its usual
    meeting place is a port that everybody can write to)."""
    return [
        "--nnodes=1",
        f"--nproc-per-node={len(elastic.current().cards) or 'gpu'}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=/proc/self/fd/{rendezvous}",
        "--rdzv-conf=store_type=file",
        "--local-addr=127.0.0.1",
    ]


def main(words: Sequence[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(0 if words else 2)
    argv = program() + options(os.memfd_create("rendezvous", 0)) + list(words)  # of an option said twice, the last counts
    os.execve(argv[0], argv, {**SAFE, **os.environ})


if __name__ == "__main__":
    main(sys.argv[1:])
