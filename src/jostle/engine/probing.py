"""The probe process as the engine sees it: asked to look, read without waiting, replaced when it dies or falls silent.

It may hang inside the driver and be unkillable: it is then abandoned, never waited for, and no second one is started while the
first is still stuck (one stuck child at the most). A fresh one waits for a driver that may have to start first, seconds a card.
One whose driver's library failed says so and ends (`spent`), for only a fresh process loads another.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

from jostle.core.devices import LEAST_STARTING, SILENT, STARTING
from jostle.core.reasons import Hold
from jostle.engine.loop import Loop

LISTED = "/proc/driver/nvidia/gpus"


class ProbeProcess:
    def __init__(self, loop: Loop, command: list[str], env: dict[str, str], heard: Callable[[bytes], None]) -> None:
        self.loop, self.command, self.env, self.heard = loop, command, env, heard
        self.child: subprocess.Popen[bytes] | None = None
        self.stuck: subprocess.Popen[bytes] | None = None  # killed, but the kernel cannot end it
        self.buffer = b""
        self.asked = 0
        self.period = 0.0
        self.owed_since: float | None = None  # since when an answer is due
        self.opening_since: float | None = None
        self.patience = LEAST_STARTING
        self.failures = 0
        self.start_at = 0.0
        self.spent = False  # it has said that it ends now
        self.trouble: Hold | None = None

    def open(self, now: float) -> None:
        try:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        except OSError as e:
            self.trouble = Hold("probe_unstarted", f"{e.strerror}")
            self._later(now)
            return
        assert self.child.stdout is not None
        fd = self.child.stdout.fileno()
        os.set_blocking(fd, False)
        self.buffer = b""
        self.owed_since = self.opening_since = now
        self.patience = max(LEAST_STARTING, STARTING * _listed())
        self.loop.watch(fd, self._readable)
        if self.period:
            self._write(f"rate {self.period:g}\n")
        if self.asked:
            self._write(f"look {self.asked}\n")  # what the last one was asked and may not have answered

    def _later(self, now: float) -> None:
        self.failures += 1
        self.start_at = now + min(2.0 ** (self.failures - 1), 60.0)

    def _write(self, line: str) -> None:
        if self.child is None or self.child.stdin is None:
            return
        try:
            os.write(self.child.stdin.fileno(), line.encode())
        except OSError:
            pass  # it is gone; its end of the other pipe tells

    def look(self, now: float) -> int:
        """Asks for a reading that begins after this moment; the number it will carry."""
        self.asked += 1
        if self.owed_since is None:
            self.owed_since = now
        self._write(f"look {self.asked}\n")
        return self.asked

    def rate(self, period: float) -> None:
        if period != self.period:
            self.period = period
            self._write(f"rate {period:g}\n")

    def watch(self, seconds: float) -> None:
        """Somebody looks: for so long it tells what each process does."""
        self._write(f"watch {seconds:g}\n")

    def _readable(self) -> None:
        assert self.child is not None and self.child.stdout is not None
        try:
            data = os.read(self.child.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.trouble = None if self.spent else Hold("probe_ended")
            self._drop()
            return
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        if len(self.buffer) > 16 << 20:
            self.buffer = b""  # whatever this is, it is not a snapshot
        for line in lines:
            self.owed_since = self.opening_since = None
            self.patience = SILENT
            self.spent = b'"spent":true' in line[:100]
            self.failures = self.failures if self.spent else 0
            self.trouble = None
            self.heard(line)

    def _drop(self) -> None:
        """Lets go of the child; kills it if it still lives."""
        child, self.child = self.child, None
        self.owed_since = self.opening_since = None
        if child is None:
            return
        assert child.stdin is not None and child.stdout is not None
        self.loop.unwatch(child.stdout.fileno())
        for pipe in (child.stdin, child.stdout):
            try:
                pipe.close()
            except OSError:
                pass  # flushing to a dead reader
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            self.stuck = child

    def tick(self, now: float) -> float | None:
        """Looks after the child; the next moment at which it wants to."""
        if self.stuck is not None and self.stuck.poll() is not None:
            self.stuck = None
        if self.child is not None:
            due = self.owed_since
            if due is None and self.period:
                due = now  # unasked readings come by themselves; the next one is owed from now on
                self.owed_since = now + self.period
            if due is not None and now - due > self.patience + self.period:
                self.trouble = Hold("probe_silent", f"{now - due:.0f}")
                self._drop()
                self._later(now)
            else:
                return (due or now) + self.patience + self.period
        if self.child is None and self.start_at == 0.0:
            self._later(now)
        if self.child is None and now >= self.start_at and self.stuck is None:
            self.start_at = 0.0
            self.open(now)
            return now + self.patience
        return max(self.start_at, now + 1.0)

    def close(self) -> None:
        self._drop()
        if self.stuck is not None:
            try:
                self.stuck.wait(1.0)
            except subprocess.TimeoutExpired:
                pass  # unkillable: left to the kernel


def _listed() -> int:
    """How many cards the driver's module has, whether or not they have started."""
    try:
        return len(os.listdir(LISTED))
    except OSError:
        return 0
