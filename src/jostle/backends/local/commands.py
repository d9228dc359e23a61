"""The commands of one run and everything that descends from them, from the first start to the last death.

Everything a shim waits for comes as a signal (a child's end, a stop, a kill) or as a deadline, and is seen to in one
place, `_step`. A stop is TERM to the whole tree, KILL after the grace. What is left when the last command has ended is
ended too, or waited for. A run that takes part in the uni_id protocol (`registered`) also has a word of its own about how each
command ended, and goes on while a process that it registered lives.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from jostle import proc
from jostle.backends.local import conda, inputs, joblog, process
from jostle.backends.local.host import EnclosingAllocation
from jostle.backends.local.legs import Legs
from jostle.backends.local.registered import Register
from jostle.core import failure
from jostle.core.states import ABNORMAL, NORMAL

WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGIO)
STOPS = (signal.SIGTERM, signal.SIGUSR1)  # end the run in good order; at once
LOG_LOOK = 1.0  # s; what is printed within it may pass the cap
LINGER = 0.1  # `exec > >(tee log)`: what ends by itself when the main process has ended is not left behind
AT_WORK = 2.0  # nor is, for so long, what only waits for a core or the disk: on a busy host tee gets none within LINGER
# A shutdown tells the shim and its program to end in one sweep, in any order, and the program may be gone before we have heard
# anything. So a stop that is heard while the commands run, or within MOMENT after, counts as earlier than their end: exit code 0
# is no success then. The other error, a run that is cancelled in the moment in which it ends by itself, is the lesser one:
# nobody takes it for done.
MOMENT = 0.1
REGISTERED_LOOK = 0.25  # nothing tells us when a process ends that is not our descendant
LEFTOVERS_FOR, GIVE_UP = 5.0, 10.0  # s: what a run leaves has so long until SIGKILL; what survives that for so long is stuck
NO_PROCESS = (errno.EAGAIN, errno.ENOMEM)
FORK_TRIES_FOR = 30.0  # for the first command: then the card is given back, for others may have what they need
SETTLED = 0.003  # what lives so long has started; until then the cores are its own, and what ends sooner says so


class CommandTree:
    """The commands of one run and everything that descends from them."""

    def __init__(self, spec: dict[str, Any], log: int | None = None, host: EnclosingAllocation | None = None) -> None:
        self.spec = spec
        self._host = host  # the allocation it runs in, with whose release it is stopped
        self.error = ""
        self.empty = True  # no child is left
        self.log = log
        self._log_look: float | None = None
        self._main = 0
        self._group_waits = False  # the kernel has not taken yet how much all of it gives way
        self._status: int | None = None  # wait status of the last command
        self._code: int | None = None  # where there is no wait status: it could not be started
        self._unable = False  # … for want of processes or memory, and nothing of the run has begun
        self._rss = 0
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        self._deadline: float | None = None
        self._timed_out = False
        self._stopping = False
        self._asked = False  # by a person, or by the engine in their name
        self._kill_at: float | None = None  # not None: SIGKILL is due then
        self._killing_since: float | None = None
        self._leftovers: list[int] = []
        self._stopped = False  # told to end before its last command had, or while what it registered or left was waited for
        self._last = False  # it has come to its last command
        self._inputs = ""  # whether its files are those of its fingerprint
        self._said_so = False  # that it has started
        self.legs: Legs | None = None  # of a run whose cards may change
        self._register = Register(spec, self.note) if spec.get("uni_id_file") else None
        self.waits_for: Callable[[list[int]], None] = lambda pids: None  # hears whom a run whose commands have ended waits for

    # ------------------------------------------------------------------ start

    def execute(self, started: Callable[[], None]) -> None:
        """One command after the other, until one fails or we are stopped."""
        if self.log is None:
            try:
                self.log = joblog.open_log(self.spec["log"], again=self.spec.get("failures", 0) > 0)
            except OSError as e:
                self._refuse(f"log {self.spec['log']}", e)
                return
        if self.spec.get("inputs"):
            self._inputs = inputs.compared(self.spec["inputs"])
        self._one_after_the_other(started)
        while self._begins_again():
            self._one_after_the_other(started)
        self._ended, self._ended_at = time.monotonic(), time.time()

    def _one_after_the_other(self, started: Callable[[], None]) -> None:
        commands = self.spec["commands"]
        for n, command in enumerate(commands):
            self._main, self._status, self._last = 0, None, n + 1 == len(commands)
            if self._register is not None:
                self._register.begin()
            self._spawn(command)
            if self._started_at is None:
                self._clocks()
            self._limit()
            if self._main and not self._said_so:
                self._step(SETTLED)
                self._said_so = self._status is None
                if self._said_so:
                    started()
                    json.dumps(self.record())  # in vain, as rehearse(): the end of the run is to find its pages ready
            while self._main and self._status is None and not self._in_vain():
                self._step()
            if self.error:
                self.note(f"cannot be started: {self.error}")
            if self._stopping or self.error or self._ends_leg() or not self._went_well():
                self._stopped = self._stopped or (self._stopping and not self._last)
                break

    def _ends_leg(self) -> bool:
        return self.legs is not None and self.legs.ends_leg

    def end_leg(self) -> bool:
        """Tells the commands to end, as they are to begin again on other cards; False: they have not begun, or it is too late."""
        self._reap()
        if self._stopping or not self._main or self._status is not None or self._ended is not None:
            return False
        self._term(float(self.spec["grace"]))
        return True

    def _begins_again(self) -> bool:
        """Whether there is another leg, once nobody of the one before is left."""
        if self.legs is None or not self.legs.ends_leg:
            return False
        while not self.empty and not self._stopping and not self._in_vain():
            self._step()
        if self._stopping or not self.empty or self.error:
            self._stopped = True
            return False
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        self.legs.next_leg(code, -code if code is not None and code < 0 else None)
        self._kill_at = self._killing_since = None
        return True

    def _went_well(self) -> bool:
        if self._register is None:
            return self._status == 0
        self._register.last_look()
        return failure.succeeded(self._status, self._register.said)

    def note(self, text: str) -> None:
        if self.log is not None:
            joblog.note(self.log, text)

    def _clocks(self) -> None:
        self._began, self._started_at = time.monotonic(), time.time()
        if self.spec.get("log_cap_mib"):
            self._log_look = self._began + LOG_LOOK

    def _limit(self) -> None:
        """The run as a whole has a limit, and each command its own; the nearer one counts."""
        in_all, each = self.spec.get("time_limit"), self.spec.get("command_limit")
        due = [] if in_all is None else [self._began + in_all]
        due += [] if each is None else [time.monotonic() + each]
        self._deadline = min(due, default=None)

    def _spawn(self, command: str | list[str]) -> None:
        argv = command if isinstance(command, list) else [process.shell(), "-c", conda.hooked(command, self.spec["env"])]
        if self.spec.get("nice"):
            self._group_waits = not process.give_way(self.spec["nice"])
        began, pause = time.monotonic(), 0.05
        self._deadline = None  # no time runs while there is nothing to run
        while not self._stopping:
            try:
                self._main = process.spawn(argv, self.spec, self.log if self.log is not None else 1)
                self.empty = False
                process.raise_oom_score(self._main)
                self._began += time.monotonic() - began
                return
            except OSError as e:
                first, waited = self._started_at is None, time.monotonic() - began
                self._unable = first and e.errno in NO_PROCESS
                if e.errno not in NO_PROCESS or (first and waited > self.spec.get("patience", FORK_TRIES_FOR)):
                    self._refuse(e.filename or argv[0], e)
                    return
                if pause == 0.05:
                    self.note(f"no process can be had ({e.strerror}); waiting for one")
            except ValueError as e:  # a NUL in a word or a variable
                self.error, self._code = f"{argv[0]!r}: {e}", 126
                return
            self._step(pause)  # the host is out of processes or memory: that is not this run's fault
            pause = min(5.0, pause * 2)

    def _refuse(self, what: str, e: OSError) -> None:
        self.error = f"{what}: {e.strerror}"
        self._code = 127 if e.errno in (errno.ENOENT, errno.ENOTDIR) else 126

    # ------------------------------------------------------------------ wait

    def _step(self, at_most: float = 3600.0) -> None:
        """Waits for the next thing that happens, and sees to it."""
        now = time.monotonic()
        registered = None if self._register is None else self._register.due
        resized = None if self.legs is None else self.legs.due
        hosted = None if self._host is None else self._host.due
        dues = (self._deadline, self._kill_at, self._log_look, registered, resized, hosted)
        due = [d for d in dues if d is not None]
        wait = max(0.0, min(at_most, *(d - now for d in due))) if due else at_most
        heard = signal.sigtimedwait(WAITED_FOR, wait)
        self._reap()
        self._obey(heard)  # after the reaping: what came before an end that we have seen is heard now
        if self._register is not None:
            self._register.step(time.monotonic())
        if self.legs is not None:
            self.legs.step(self.end_leg)
        if self._host is not None and self._host.released(time.monotonic()):
            self.stop(kill=False)
        self._deadlines(time.monotonic())

    def _obey(self, heard: signal.struct_siginfo | None) -> None:
        """Sees to every stop that has come by now; who sent it is not known."""
        heard = heard or signal.sigtimedwait(STOPS, 0)
        while heard is not None:
            if heard.si_signo in STOPS:
                self._asked = True
                self._stopped = self._stopped or self._ended is None or time.monotonic() - self._ended < MOMENT
                self.stop(kill=heard.si_signo == signal.SIGUSR1)
            heard = signal.sigtimedwait(STOPS, 0)

    def _alive(self) -> bool:
        return not self.empty or (self._register is not None and self._register.waits())

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.empty = True
                return
            if pid == 0:
                return
            self._rss = max(self._rss, usage.ru_maxrss)
            if pid == self._main:
                self._status = status

    def _deadlines(self, now: float) -> None:
        if self._deadline is not None and now >= self._deadline and self._alive():
            self._deadline = None
            if not self._stopping:
                self._timed_out = True
                self.stop(kill=False)
        if self._kill_at is not None and now >= self._kill_at and self._alive():
            self._killing_since = self._killing_since or now
            # again and again: a tree can grow while it is felled; but who is only waited for is not asked so often
            self._kill_at = now + (1.0 if self.empty else 0.02)
            self._signal_tree(signal.SIGKILL)
        if self._log_look is not None and now >= self._log_look:
            self._log_look = now + (LOG_LOOK / 20 if self._cap_log() else LOG_LOOK)
            if self._group_waits:
                self._group_waits = not process.give_way(self.spec["nice"])

    def _cap_log(self) -> bool:
        return self.log is not None and joblog.cap_log(self.log, self.spec["log_cap_mib"] << 20)

    # ------------------------------------------------------------------ stop

    def stop(self, *, kill: bool) -> None:
        """TERM to the tree, KILL after the grace; or KILL at once. Said again it changes nothing, unless to hurry."""
        now = time.monotonic()
        self._reap()  # what ended before it was told to, ended by itself
        self._stopped = self._stopped or self._goes_on()
        if kill:
            self._kill_at = now
        elif not self._stopping:
            self._term(float(self.spec["grace"]))
        self._stopping = True

    def _goes_on(self) -> bool:
        """A command runs, or what the run waits for beyond its commands."""
        if self._main != 0 and self._status is None:
            return True
        registered = self._register is not None and self._register.waits()
        return registered or (not self.empty and self.spec.get("leftovers", "kill") == "wait")

    def _term(self, grace: float) -> None:
        at = time.monotonic() + grace
        self._kill_at = at if self._kill_at is None else min(at, self._kill_at)
        self._signal_tree(signal.SIGTERM)
        self._signal_tree(signal.SIGCONT)

    def _signal_tree(self, number: int) -> None:
        for pid in proc.tree(os.getpid()):
            proc.signal_proven(pid, number, process.is_descendant)
        if self._register is not None:
            self._register.signal(number, let_go=self._asked)

    def _in_vain(self) -> bool:
        if self._register is not None and not self._asked and self.empty:
            return False  # only a process is left that may be at work for this task, and that we must not end
        return self._killing_since is not None and time.monotonic() - self._killing_since > GIVE_UP

    def sweep(self) -> None:
        """Sees to what the commands left behind, until nobody is left or what is left cannot be killed."""
        self._reap()
        if self._register is not None:
            self._handed_over(self._register)
        now = time.monotonic()
        soon, late = now + LINGER, now + AT_WORK
        while not self.empty and not self._stopping and (now < soon or (now < late and process.at_work())):
            self._step(max(soon - now, 0.05))
            now = time.monotonic()
        if not self.empty and self.spec.get("leftovers", "kill") == "wait":
            self._wait_for_leftovers()
        elif not self.empty and not self._stopping:
            self._leftovers = process.living()
            self._term(LEFTOVERS_FOR)
        while self._alive():
            if self._in_vain():
                self._leftovers = process.living()
                return
            self._step(3600.0 if self._register is None else REGISTERED_LOOK)

    def _handed_over(self, register: Register) -> None:
        """The commands have ended, but not what they registered: the run goes on (SPEC A22), and so does its time."""
        if self._stopping or not register.waits():
            return
        for pid in register.strangers():
            self.note(f"the commands have ended; waiting for process {pid}, which was registered")
        tell_at: float | None = time.monotonic() + LINGER
        while not self._stopping and register.waits():
            if tell_at is not None and time.monotonic() >= tell_at:
                tell_at = None
                self.waits_for(register.living())
            self._step(LINGER if tell_at is not None else REGISTERED_LOOK)
        self._over()

    def _wait_for_leftovers(self) -> None:
        """The run goes on, and so does its time, until what the commands left running has ended too."""
        if not self._stopping:
            pids = process.living()
            self.note(f"the commands have ended; waiting for what they left running: process {', '.join(map(str, pids))}")
            self.waits_for(pids)
        while not self._stopping and self._alive():
            self._step(3600.0 if self._register is None else REGISTERED_LOOK)
        self._over()

    def _over(self) -> None:
        """What was waited for beyond the commands has ended, or was told to."""
        self._stopped = self._stopped or self._stopping
        self._ended, self._ended_at = time.monotonic(), time.time()

    # ------------------------------------------------------------------ end

    def record(self) -> dict[str, Any]:
        """The fields of core.model.Exit."""
        code, number = self._code, None
        if self._status is not None:
            code = os.waitstatus_to_exitcode(self._status)
            if code < 0:
                number, code = -code, 128 - code
        if self._log_look is not None:
            self._cap_log()
        word, said_type = ("", "") if self._register is None else (self._register.said, self._register.said_type)
        return {
            "code": code,
            "signal": number,
            "timed_out": self._timed_out,
            "stopped": self._stopped and not (self._last and word == NORMAL),  # by its word it had nothing left to do
            "error": self.error,
            "unable": self._unable and bool(self.error),
            "tail": joblog.tail(self.log) if (code != 0 or word == ABNORMAL) and self.log is not None else "",
            "started_at": self._started_at,
            "ended_at": self._ended_at or time.time(),
            "ran_for": (self._ended or time.monotonic()) - self._began,
            "rss_mib": self._rss // 1024,
            "leftovers": self._leftovers,
            "said": word,
            "said_type": said_type,
            "inputs": self._inputs,
            "legs": [] if self.legs is None else self.legs.state()["ended"],
            "log_id": None if self.log is None else joblog.identity(self.log),
        }

    def last_word(self) -> None:
        """Hears whether we are told to end in this moment, and what the run's processes said before the last of them ended."""
        if self._status == 0 and not self._stopped:
            self._obey(None)
        if self._register is not None:
            self._register.last_look()

    def conclude(self, record: dict[str, Any]) -> None:
        """Leaves the verdict where the run's scripts look for it."""
        if self._register is not None:
            self._register.conclude(record)

    def close(self) -> None:
        if self._register is not None:
            self._register.close()
        if self.legs is not None:
            self.legs.close()
