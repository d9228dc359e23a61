"""Another process gets the pid of a dead shim or job (F10): it is never signalled, and the run is reported lost.

    unshare --pid --fork --mount --mount-proc --kill-child python pid_reuse.py TRIALS

Only in a PID namespace of its own (with its own /proc, in its own mount namespace): there the next pid can be chosen through
ns_last_pid. This process is the namespace's init. Prints one JSON line.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from jostle import client, proc
from jostle.backends.local.outside import runs_of
from jostle.client import Client
from jostle.store.reads import Reader

CATCHABLE = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})


def until(condition: Callable[[], Any], within: float = 60.0) -> Any:
    end = time.monotonic() + within
    while True:
        reap()
        got = condition()
        if got or time.monotonic() > end:
            return got
        time.sleep(0.005)


def reap() -> None:
    """As an init does; the foreigners are not reaped while they are looked at, so that their end can be seen."""
    for pid in proc.pids():
        stat = proc.stat(pid)
        if stat is not None and stat.state == "Z" and stat.ppid == os.getpid() and pid not in FOREIGN:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


FOREIGN: dict[int, str] = {}


def foreigner(pid: int, notes: str) -> bool:
    """A process with this very pid that notes every signal it gets; False if another was quicker to get the pid."""
    ready, told = os.pipe()
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(pid - 1))
    child = os.fork()
    if child == 0:
        os.setsid()
        os.environ.clear()

        def note(number: int, _: object) -> None:
            fd = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, f"{number}\n".encode())
            os.close(fd)

        for number in CATCHABLE:
            with contextlib.suppress(OSError):
                signal.signal(number, note)
        os.write(told, b"!")
        while True:
            signal.pause()
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
    FOREIGN[child] = notes
    return child == pid


def start_engine(home: str) -> Client:
    client.start_engine(home, gpus="sim:2x24", permanent=True)
    found = client.attempt(home)
    assert found is not None
    return found


def one_trial(home: str, k: int) -> dict[str, Any]:
    """Even trials: the engine dies with the run and the next one looks. Odd: it lives through it all."""
    to = start_engine(home)
    engine = to.call("hello")["pid"]
    where = f"{home}/pid-{k}"
    command = f"echo $$ > {where}.new; mv {where}.new {where}; exec sleep 600"
    context = {"env": {"PATH": os.environ["PATH"]}}
    job = to.call("submit", batch={}, context=context, jobs=[{"commands": [command], "workdir": "/"}])["ids"][0]
    assert until(lambda: os.path.exists(where) and (Reader(home).job(job) or {})["state"] == "running")
    with open(where) as f:
        main = int(f.read())
    shim = runs_of(Reader(home), job)[0]["shim_pid"]
    old = proc.stat(shim)
    assert old is not None
    if k % 2 == 0:
        os.kill(engine, signal.SIGKILL)
        assert until(lambda: proc.stat(engine) is None)
    else:
        os.kill(engine, signal.SIGSTOP)  # so that the pids are another's before it can look
    for pid in (shim, main):
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: proc.stat(shim) is None and proc.stat(main) is None)
    took = [foreigner(pid, f"{home}/notes-{k}-{pid}") for pid in (shim, main)]
    new = proc.stat(shim)
    differs = new is not None and new.ticks != old.ticks
    if k % 2 == 0:
        to.close()
        to = start_engine(home)
    else:
        os.kill(engine, signal.SIGCONT)
    if k % 4 >= 2:
        to.call("intent", ids=[job], do="cancel", now=True)  # may be refused: it has ended by then
    final = ("failed", "cancelled", "succeeded")
    row = until(lambda: next((r for r in Reader(home).jobs(ids=[job]) if r["state"] in final), None))
    runs = Reader(home).runs(job)
    result = {
        "reused": all(took) and differs, "state": row and row["state"], "reason": row and (row["reason"] or {}).get("code"),
        "runs": len(runs), "outcome": runs[0]["outcome"], "exit_code": runs[0]["exit_code"],
        "alive": all(proc.alive(pid, s.ticks) for pid in FOREIGN if (s := proc.stat(pid)) is not None) and len(FOREIGN) == 2,
        "signals": [n for n in FOREIGN.values() if os.path.exists(n)],
    }  # fmt: skip
    to.call("down")
    client.wait_gone(to)
    for pid in list(FOREIGN):
        os.kill(pid, signal.SIGKILL)  # our own children, not reaped yet
        os.waitpid(pid, 0)
        del FOREIGN[pid]
    return result


def main(trials: int) -> None:
    assert os.getpid() == 1, "this belongs into a PID namespace of its own"
    root = tempfile.mkdtemp(prefix="jostle-reuse-")
    try:
        os.mkdir(f"{root}/home", 0o700)
        print(json.dumps([one_trial(f"{root}/home", k) for k in range(trials)]), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
