"""A run that stands still while its engine wants it to: the shim's side, and how the engine says so.

Rules. What is wanted lies in the run's directory: while the file `pause` is there, all processes of the run are stopped, and they
go on when it is not. So whoever dies, the next look finds what is wanted; SIGHUP, which shims are deaf to otherwise, only makes
the shim look at once. Parents are stopped before their children and go on after them: who waits for a child does not see it
stopped, as a shell with job control would take that for the end of its command. It is looked again until nobody of the run moves,
so a fork in between does not escape, and each second after that. What the program itself had stopped stays stopped. The engine
that wants it is not stopped, even if a job has started it. Whoever is to end goes on for it, and has its grace. Time in which a
run stands still is not time of the run.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from jostle import proc
from jostle.backends.local import process
from jostle.backends.local.commands import CommandTree
from jostle.backends.local.host import EnclosingAllocation
from jostle.failpoint import failpoint

FILE = "pause"
LOOK, FIRST_LOOK = 1.0, 0.01  # s between two looks at who stands still; while somebody moves, sooner, and twice as long each time
AT_ONCE = 8  # looks
PATIENCE = 0.1  # s between looks, after some of which nobody waits for a parent that is stuck in the kernel
STANDS = "TtZX"  # states of a process that does not move: stopped, stopped by its debugger, dead


class Halting(CommandTree):
    """The commands of a run that may be told to stand still."""

    def __init__(self, spec: dict[str, Any], log: int | None = None, host: EnclosingAllocation | None = None) -> None:
        super().__init__(spec, log, host)
        self._path = f"{spec['dir']}/{FILE}"
        self._halted_at: float | None = None
        self._halted: dict[int, int] = {}  # pid -> start ticks: those that we have stopped
        self._due_then: float | None = None  # the deadline that it had
        self._look_in = 0.0

    # ------------------------------------------------------------------ what is wanted

    def _step(self, at_most: float = 3600.0) -> None:
        super()._step(at_most if self._halted_at is None else min(at_most, self._look_in))
        if self._is_wanted():
            self._halt()
        elif self._halted_at is not None:
            self._go_on()

    def _spawn(self, command: str | list[str]) -> None:
        """No command begins while the run stands still."""
        while self._is_wanted():
            self._step()
        super()._spawn(command)

    def _is_wanted(self) -> bool:
        """Not while it is to end, or what is left of it, or of a leg."""
        return self._kill_at is None and os.path.lexists(self._path)

    def _term(self, grace: float) -> None:
        self._time_passes()
        super()._term(grace)  # which lets all of it go on
        self._halted.clear()

    # ------------------------------------------------------------------ time

    def _limit(self) -> None:
        super()._limit()
        if self._halted_at is not None:
            self._due_then, self._deadline = self._deadline, None

    def _time_stands(self) -> None:
        if self._halted_at is None:
            self._halted_at, self._look_in = time.monotonic(), 0.0
            self._due_then, self._deadline = self._deadline, None
            self.note("paused, as somebody else is on its GPUs; what it holds of their memory stays there")

    def _time_passes(self) -> None:
        if self._halted_at is not None:
            stood = time.monotonic() - self._halted_at
            self._halted_at = None
            self._began += stood
            self._deadline = None if self._due_then is None else self._due_then + stood
            self.note(f"goes on after a pause of {stood:.0f} s")

    # ------------------------------------------------------------------ processes

    def _halt(self) -> None:
        self._time_stands()
        failpoint("halt.before_stop")
        quiet = 0  # looks in a row that found nobody: after one, who is seen to stand may have left a child that was not
        for _ in range(AT_ONCE):
            quiet = 0 if self._stop_those_that_move() else quiet + 1
            if quiet == 2:
                break
        self._look_in = LOOK if quiet == 2 else min(max(FIRST_LOOK, self._look_in * 2), LOOK)
        failpoint("halt.stopped")

    def _stop_those_that_move(self) -> bool:
        """Of those that move, stops whoever's parent stands, or takes its time to."""
        processes = self._members()
        moving = {s.pid for s in processes if s.state not in STANDS}
        for s in processes:
            if s.pid in moving and (s.ppid not in moving or self._look_in > PATIENCE):
                self._halted[s.pid] = s.ticks
                proc.signal_proven(s.pid, signal.SIGSTOP, self._proof(s.ticks))
        return bool(moving)

    def _go_on(self) -> None:
        failpoint("halt.before_continue")
        for s in reversed(self._members()):
            if self._halted.get(s.pid) == s.ticks:
                proc.signal_proven(s.pid, signal.SIGCONT, self._proof(s.ticks))
        self._halted.clear()
        self._time_passes()
        failpoint("halt.continued")

    def _members(self) -> list[proc.Stat]:
        """All processes of the run, parents first."""
        processes = members(os.getpid(), besides=asker(self._path))
        if self._register is not None:
            processes += [s for pid in self._register.provable() if (s := proc.stat(pid)) is not None]
        return processes

    def _proof(self, ticks: int) -> Any:
        def proof(pid: int) -> bool:
            registered = self._register is not None and pid in self._register.provable()
            return proc.alive(pid, ticks) and (registered or process.is_descendant(pid))

        return proof


def members(shim: int, besides: int) -> list[proc.Stat]:
    """What descends from a shim, parents first, but not this process and what descends from it."""
    stats = (proc.stat(pid) for pid in proc.tree(shim, besides))
    return [s for s in stats if s is not None]


def asker(path: str) -> int:
    """The engine that wants a run to stand still; 0: that is not known."""
    try:
        with open(path, "rb", opener=_plainly) as f:
            text = f.read(16)
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def _plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


# ---------------------------------------------------------------------- the engine's end


def want(directory: str, *, paused: bool) -> bool:
    """Says in the run's directory what is wanted; whether that is another thing than before."""
    path = f"{directory}/{FILE}"
    try:
        if not paused:
            os.unlink(path)
            return True
        if os.path.lexists(path):
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(f"{path}.new", flags, 0o600)
        try:
            os.write(fd, str(os.getpid()).encode())
        finally:
            os.close(fd)
        os.rename(f"{path}.new", path)
    except OSError:
        return False  # it is so already; or a full disk, and it is tried again
    return True


def stands_still(directory: str, shim: int | None) -> bool:
    """Whether a run that is to stand still does: somebody of it is there, and nobody moves."""
    path = f"{directory}/{FILE}"
    if shim is None or not os.path.lexists(path):
        return False
    states = [s.state for s in members(shim, besides=os.getpid()) if s.state not in "ZX"]
    return bool(states) and all(state in STANDS for state in states)
