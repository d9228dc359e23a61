"""A job that leaves evidence of itself: what the invariants are checked against comes from here, and not from the engine.

    python -I -S torture_job.py DIRECTORY KEY MIB|x|- SECONDS END [flag…]

It appends one line to DIRECTORY/journal when it starts and one before it ends (O_APPEND, one write each), and holds a flock per
GPU (shared if it promised MiB, else exclusive) and per queue for as long as any process of it lives. A lock that cannot be had
at once is written down as an overlap: two were on one card, or in one serial queue, at the same time.
END is an exit code, `sigN` (dies of that signal), or `failK:C` (exits with C the first K times, then with 0).
Flags: `child` leaves a grandchild in a session of its own behind; `stubborn` does not mind SIGTERM; `gate:PATH` goes on until
that file is there.
"""

import fcntl
import json
import os
import signal
import sys
import time

WHO: dict[str, object] = {
    "job": int(os.environ["JOSTLE_JOB_ID"]),
    "attempt": int(os.environ["JOSTLE_ATTEMPT"]),
    "uni_id": os.environ["JOSTLE_UNI_ID"],
}


def say(directory: str, kind: str, **more: object) -> None:
    line = json.dumps({"kind": kind, "at": time.monotonic_ns(), **WHO, "pid": os.getpid(), **more}) + "\n"
    fd = os.open(f"{directory}/journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, line.encode())
    os.close(fd)


def hold(directory: str, name: str, how: int) -> None:
    fd = os.open(f"{directory}/{name}.held", os.O_RDWR | os.O_CREAT, 0o666)  # open for life
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        say(directory, "overlap", what=name)


def exit_code(directory: str, key: str, end: str) -> int:
    if not end.startswith("fail"):
        return int(end.removeprefix("sig"))
    times, _, code = end.removeprefix("fail").partition(":")
    fd = os.open(f"{directory}/tries-{key}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, b".")
    tries = os.fstat(fd).st_size
    os.close(fd)
    return int(code) if tries <= int(times) else 0


def leave_grandchild() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()


def main(directory: str, key: str, mib: str, seconds: str, end: str, *flags: str) -> None:
    cards = [c for c in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if c]
    queue = os.environ.get("JOSTLE_QUEUE", "")
    WHO["key"] = key

    def told_to_stop(*_: object) -> None:
        say(directory, "end", code=143, told=True)
        os._exit(143)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in flags else told_to_stop)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    say(directory, "start", cards=cards, mib=int(mib) if mib.isdecimal() else None, queue=queue, parent=os.getppid())
    if mib != "-":
        for card in cards:
            hold(directory, f"gpu-{card}", fcntl.LOCK_EX if mib == "x" else fcntl.LOCK_SH)
    if queue:
        hold(directory, f"queue-{queue}", fcntl.LOCK_EX)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    if "child" in flags:
        leave_grandchild()
    time.sleep(float(seconds))
    for gate in (flag[5:] for flag in flags if flag.startswith("gate:")):
        while not os.path.exists(gate):
            time.sleep(0.01)
    code = exit_code(directory, key, end)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    say(directory, "end", code=128 + code if end.startswith("sig") else code, told=False)
    if end.startswith("sig"):
        signal.signal(code, signal.SIG_DFL) if code != signal.SIGKILL else None
        os.kill(os.getpid(), code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
