"""The probe process: `python -m jostle.probes.serve DEVICES`, DEVICES = nvml or sim:….

stdin, a command a line: `rate SECONDS` (period of unasked snapshots; 0 = none) · `look N` (a snapshot at once, with
"asked": N) · `watch SECONDS` (somebody looks: for so long the load of each process is told, too). Anything else is ignored.
stdout, a snapshot a line, each by one write, the first at once. End of stdin is the end: a probe never outlives its engine. It
keeps no inherited file, for one of them could be a lock. A card that does not answer is left to a thread of its own (relay.py);
the snapshot in which it is late is followed by one when it has answered. A driver that hangs as a whole, hangs all of it, and
the engine replaces it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from _thread import start_new_thread
from typing import TYPE_CHECKING, Any

from jostle import proc
from jostle.core.devices import EXPECTED, known, world
from jostle.errors import JostleError, Usage
from jostle.probes.command import command
from jostle.probes.snapshot import Hung, Reading, Relieved, Source, failed

if TYPE_CHECKING:
    from jostle.probes.relay import Relay

RATE = 0.5  # s, until told otherwise
_LONGEST = 4096  # bytes of a command; more without a line's end is garbage
_LONGEST_WATCH = 60.0  # s
_IN, _OUT = 0, 1
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def probe(devices: str) -> Source:
    if devices == "nvml":
        try:
            from jostle.probes.nvml import Nvml
        except ImportError as e:
            return _Without(f"nvidia-ml-py cannot be loaded ({e}): pip install nvidia-ml-py, or try --gpus sim:8x24")
        return Nvml()
    simulated = world(devices)
    if simulated is not None:
        from jostle.probes.sim import Sim

        return Sim(simulated)
    raise Usage(f"--gpus {devices}: expected {EXPECTED}")


class _Without:
    """The probe of a host on which none can be had."""

    spent = False

    def __init__(self, error: str) -> None:
        self._error = error

    def read(self, asked: int | None = None, again: bool = True) -> Reading:
        return failed(self._error)

    def watch(self, seconds: float) -> None: ...


class ProbeServer:
    """Answers commands until stdin ends."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._relay: Relay | None = getattr(source, "relay", None)
        self._seq = 0
        self._rate = RATE
        self._rest = b""
        self._asked: int | None = None  # the look that is being answered
        self._last = 0.0

    def run(self) -> None:
        if self._relay is None:
            self._lead()
            return
        start_new_thread(self._thread, (False,))
        start_new_thread(self._thread, (True,))
        while not _ended(None):
            pass
        os._exit(0)  # whatever hangs

    def _thread(self, stands_by: bool) -> None:
        """Who leads may get stuck in a card. Then the one that stands by leads, and starts another to stand by."""
        assert self._relay is not None
        try:
            if stands_by:
                self._relay.stand_by()
                start_new_thread(self._thread, (True,))
            self._lead()
        except Relieved:
            return
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)

    def _lead(self) -> None:
        """From the answer that is due (the first, or the one at which another got stuck) to the end."""
        self._answer(self._asked)
        self._last = time.monotonic()
        news = [] if self._relay is None else [self._relay.news]
        while not self._source.spent:
            left = None if self._rate <= 0 else max(0.0, self._last + self._rate - time.monotonic())
            ready = select.select([_IN, *news], [], [], left)[0]
            if _IN in ready:
                data = os.read(_IN, 65536)
                if not data:
                    return
                if not self._obey(data):
                    continue
            elif ready:
                os.read(news[0], 4096)
                self._answer(None, again=False)
                continue
            else:
                self._answer(None)
            self._last = time.monotonic()

    def _obey(self, data: bytes) -> bool:
        """Whether a snapshot was written."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:
            self._rest = b""
        latest = None
        for line in lines:
            asked = self._command(line.split())
            latest = asked if asked is not None else latest
        if latest is not None:
            self._answer(latest)  # one reading that begins now answers all that asked before
        return latest is not None

    def _command(self, words: list[bytes]) -> int | None:
        """The number of a look; None after everything else."""
        try:
            verb, value = words
            if len(value) > 18:
                return None
            if verb == b"look":
                return int(value)
            if verb == b"rate":
                rate = float(value)
                self._rate = rate if 0 <= rate < 1e6 else self._rate  # also false for nan
            if verb == b"watch":
                self._source.watch(min(float(value), _LONGEST_WATCH))
        except ValueError:
            pass
        return None

    def _answer(self, asked: int | None, again: bool = True) -> None:
        start = time.perf_counter()
        self._asked = asked
        reading = self._read(asked, again)
        self._asked = None
        self._seq += 1
        took = round((time.perf_counter() - start) * 1000, 3)
        at = time.monotonic()  # not rounded, or a card could be silent since later than this
        head: dict[str, Any] = {"seq": self._seq, "asked": asked, "took_ms": took, "at": at}
        if self._source.spent:
            head["spent"] = True  # the engine need not wonder why it ends
        _write(_encode({**head, **reading}).encode() + b"\n")

    def _read(self, asked: int | None, again: bool) -> Reading:
        while True:
            try:
                return self._source.read(asked, again)
            except Relieved:
                raise
            except Hung:
                if _ended(50):  # deaf for a moment to all but the end of the engine
                    os._exit(0)
            except Exception as e:  # a bug in a probe must not look like a dead driver for ever
                return failed(f"the probe failed: {type(e).__name__}: {e}")


def _ended(within_ms: int | None) -> bool:
    """Whether the engine has closed its end, or does so in this time; None: as long as it takes."""
    poll = select.poll()
    poll.register(_IN, 0)
    return bool(poll.poll(within_ms))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_OUT, data) :]


def one_shot(devices: str, timeout: float = 10.0) -> dict[str, Any]:
    """One snapshot from a probe process of its own: a driver that hangs or crashes does so elsewhere."""
    import subprocess

    if not known(devices):
        probe(devices)
    child = subprocess.Popen(
        command(devices),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdin and child.stdout
    answer, deadline = None, time.monotonic() + timeout
    try:
        while (newer := _next_line(child.stdout.fileno(), deadline)) is not None:
            answer = newer
            if b'"starting"' not in newer:
                break  # else what is late may still come in time
    finally:
        child.kill()
        child.stdin.close()
        child.stdout.close()
        try:
            child.wait(1)
        except subprocess.TimeoutExpired:
            child.returncode = -signal.SIGKILL  # stuck inside the driver: abandoned, it ends when the driver lets it
    if answer:
        snapshot: dict[str, Any] = json.loads(answer)
        return snapshot
    silence = f"no answer from the GPUs in {timeout:g} s: the driver is starting, or hangs"
    error = silence if answer is None else "the probe crashed inside the driver"
    return {"seq": 0, "asked": None, "took_ms": None, **failed(error)}


def _next_line(fd: int, deadline: float) -> bytes | None:
    """None: not in time. Empty: it ended without one."""
    data = b""
    while not data.endswith(b"\n"):
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        part = os.read(fd, 65536)
        if not part:
            return b""
        data += part
    return data


def main(argv: list[str]) -> int:
    proc.close_inherited()
    os.umask(0o077)  # what it makes in a home is private unless it says otherwise
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the engine is gone: so are we
    try:
        if len(argv) != 1:
            raise Usage("usage: python -m jostle.probes.serve DEVICES")
        ProbeServer(probe(argv[0])).run()
    except JostleError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
