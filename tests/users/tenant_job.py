"""A job that shows whether it is alone on its cards, also among users who cannot lock each other's files.

    python -I -S tenant_job.py DIRECTORY SECONDS [use SIM_DIR MIB]

It makes a file per card with O_EXCL in a directory that everybody may write to, and takes it away at its end. One that exists
already is an overlap. With `use` it tells the simulated world what it uses, as a process that has allocated would show.
"""

import json
import os
import sys
import time


def say(directory: str, kind: str, **more: object) -> None:
    who = {"uid": os.getuid(), "job": int(os.environ["JOSTLE_JOB_ID"])}
    line = json.dumps({"kind": kind, "at": time.monotonic_ns(), **who, **more})
    fd = os.open(f"{directory}/journal-{os.getuid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def main(directory: str, seconds: str, *use: str) -> None:
    cards = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    made = []
    say(directory, "start", cards=cards)
    for card in cards:
        try:
            os.close(os.open(f"{directory}/gpu-{card}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            made.append(card)
        except FileExistsError:
            say(directory, "overlap", card=card)
    if use:
        with open(f"{use[1]}/use/{os.getpid()}", "w") as f:
            f.writelines(f"{card} {use[2]}\n" for card in cards)
    time.sleep(float(seconds))
    for card in made:
        os.unlink(f"{directory}/gpu-{card}")
    say(directory, "end", cards=cards)


if __name__ == "__main__":
    main(*sys.argv[1:])
