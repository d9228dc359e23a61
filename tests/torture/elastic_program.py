"""A program that gets other cards while it runs, and leaves evidence of it in the same locks as torture_job.py.

    python -I -S elastic_program.py EVIDENCE WORLD [STEPS]

It holds the lock of each card of its list for as long as it uses it; one that cannot be had at once is an overlap. It tells the
simulated cards (in WORLD) what it uses, saves how far it is and goes on from there. It ends when EVIDENCE/end is there, or after
so many steps. One that keeps the cards it began with has no list but its variable.
"""

import fcntl
import json
import os
import signal
import sys
import time

EVIDENCE, WORLD = sys.argv[1:3]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 60
NUMBERS = (("job", "JOB_ID"), ("attempt", "ATTEMPT"), ("leg", "LEG"))
WHO = {name: int(os.environ.get(f"JOSTLE_{key}", "1")) for name, key in NUMBERS}
HELD: dict[str, int] = {}
TOLD: list[int] = []


def say(kind: str, **more: object) -> None:
    line = json.dumps({"kind": kind, "at": time.monotonic_ns(), **WHO, "pid": os.getpid(), **more}) + "\n"
    fd = os.open(f"{EVIDENCE}/elastic", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, line.encode())
    os.close(fd)


def use(cards: list[str]) -> None:
    os.makedirs(f"{WORLD}/use", exist_ok=True)
    path = f"{WORLD}/use/.{os.getpid()}"
    with open(path, "w") as f:
        f.write("".join(f"{card} 100 0\n" for card in cards))
    os.rename(path, f"{WORLD}/use/{os.getpid()}")


def move() -> None:
    listed, number = os.environ["CUDA_VISIBLE_DEVICES"], "1"
    if "JOSTLE_GPUS_FILE" in os.environ:
        with open(os.environ["JOSTLE_GPUS_FILE"]) as f:
            listed, number = f.read().split("\n")[:2]
    cards = listed.split(",")
    for card in [card for card in HELD if card not in cards]:
        os.close(HELD.pop(card))
    use(cards)
    for card in cards:
        if card not in HELD:
            HELD[card] = os.open(f"{EVIDENCE}/gpu-{card}.held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(HELD[card], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("overlap", card=card, number=int(number))
    say("list", cards=cards, number=int(number))


def save(step: int) -> None:
    path = f"{EVIDENCE}/saved-{WHO['job']}"
    with open(f"{path}.{os.getpid()}", "w") as f:
        f.write(str(step))
    os.rename(f"{path}.{os.getpid()}", path)


def main() -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda number, _: TOLD.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which the kernel sends to who is stopped when its shim dies
    path, step = f"{EVIDENCE}/saved-{WHO['job']}", 0
    if os.path.exists(path):
        with open(path) as f:
            step = int(f.read())
    say("begin", step=step)
    move()
    while not os.path.exists(f"{EVIDENCE}/end") and step < STEPS:
        time.sleep(0.01)
        step += 1
        if step % 10 == 0:
            save(step)
            say("saved", step=step)
        while TOLD:
            if TOLD.pop(0) == signal.SIGTERM:
                save(step)
                say("left", step=step)
                os._exit(143)
            move()
    say("end", step=step)
    os._exit(0)


if __name__ == "__main__":
    main()
