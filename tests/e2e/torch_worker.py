"""A training as torchrun starts it, one process per card, and its evidence: EVIDENCE/workers, a line for each thing it did.

The first process counts steps and saves on SIGTERM; each holds a lock on its card, and one that is not free is an overlap. It
ends well when EVIDENCE/go is there, and badly when EVIDENCE/crash is.
"""

import fcntl
import json
import os
import signal
import sys
import time

EVIDENCE, RANK, WORLD = os.environ["EVIDENCE"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SAVED = f"{EVIDENCE}/saved"


def say(kind: str, step: int) -> None:
    line = json.dumps({"kind": kind, "step": step, "rank": RANK, "world": WORLD, "card": CARD, "pid": os.getpid()})
    fd = os.open(f"{EVIDENCE}/workers", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def save(step: int) -> None:
    if RANK == 0:
        with open(f"{SAVED}.new", "w") as f:
            f.write(str(step))
        os.rename(f"{SAVED}.new", SAVED)


told: list[int] = []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
CARD = os.environ["CUDA_VISIBLE_DEVICES"].split(",")[int(os.environ["LOCAL_RANK"])]
lock = os.open(f"{EVIDENCE}/card-{CARD}", os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    say("overlap", -1)
step = 0
if os.path.exists(SAVED):
    with open(SAVED) as f:
        step = int(f.read())
say("begin", step)
while not os.path.exists(f"{EVIDENCE}/go"):
    time.sleep(0.01)
    step += 1
    if told:
        save(step)
        say("told to end", step)
        sys.exit(0 if "--ends-well" in sys.argv else 143)
    if os.path.exists(f"{EVIDENCE}/crash") and RANK == WORLD - 1:
        os._exit(7)
save(step)
say("end", step)
