"""A program that gets other cards while it runs, and leaves evidence of it: what was held, and how far it had come.

    python -I elastic_job.py EVIDENCE WORLD

It counts steps, saves the number now and then, and goes on from there when it is started again. It holds a lock per card of its
list; one that cannot be had at once is written down as an overlap. It tells the simulated cards what it uses (WORLD: their
directory), so that a card which it has left shows nothing of it. It ends when EVIDENCE/go is there.
"""

import fcntl
import json
import os
import signal
import sys
import time

EVIDENCE, WORLD = sys.argv[1:3]
JOB = os.environ["JOSTLE_JOB_ID"]
LOCKS: dict[str, int] = {}
TOLD: list[int] = []


def say(kind: str, **more: object) -> None:
    who = {"job": int(JOB), "attempt": int(os.environ["JOSTLE_ATTEMPT"]), "pid": os.getpid()}
    line = json.dumps({"kind": kind, "at": time.time(), **who, **more})
    fd = os.open(f"{EVIDENCE}/journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def listed() -> list[str]:
    if "JOSTLE_GPUS_FILE" not in os.environ:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    with open(os.environ["JOSTLE_GPUS_FILE"]) as f:
        return f.readline().strip().split(",")


def move_to(cards: list[str]) -> None:
    """What is left is left before anything else is taken."""
    for card in [card for card in LOCKS if card not in cards]:
        os.close(LOCKS.pop(card))
    use(cards)
    for card in cards:
        if card not in LOCKS:
            LOCKS[card] = os.open(f"{EVIDENCE}/gpu-{card}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(LOCKS[card], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("overlap", card=card)


def use(cards: list[str]) -> None:
    os.makedirs(f"{WORLD}/use", exist_ok=True)
    path = f"{WORLD}/use/.{os.getpid()}"
    with open(path, "w") as f:
        f.write("".join(f"{card} 4000 90\n" for card in cards))
    os.rename(path, f"{WORLD}/use/{os.getpid()}")


def save(step: int) -> None:
    with open(f"{EVIDENCE}/saved-{JOB}.new", "w") as f:
        f.write(str(step))
    os.rename(f"{EVIDENCE}/saved-{JOB}.new", f"{EVIDENCE}/saved-{JOB}")


def main() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: TOLD.append(signal.SIGUSR1))
    signal.signal(signal.SIGTERM, lambda *_: TOLD.append(signal.SIGTERM))
    step = 0
    if os.path.exists(f"{EVIDENCE}/saved-{JOB}"):
        with open(f"{EVIDENCE}/saved-{JOB}") as f:
            step = int(f.read())
    cards = listed()
    move_to(cards)
    say("begin", leg=os.environ.get("JOSTLE_LEG"), cards=cards, step=step, visible=os.environ["CUDA_VISIBLE_DEVICES"])
    while not os.path.exists(f"{EVIDENCE}/go"):
        step += 1
        time.sleep(0.01)
        if step % 10 == 0:
            save(step)
        while TOLD:
            if TOLD.pop(0) == signal.SIGTERM:
                save(step)
                say("told to end", step=step)
                os._exit(143)
            cards = listed()
            move_to(cards)
            say("list", cards=cards, step=step)
    save(step)
    say("end", step=step)


if __name__ == "__main__":
    main()
