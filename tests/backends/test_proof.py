"""Nothing is signalled on the word of a pid alone, and no claim is ever seen without its lock."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from jostle import proc
from jostle.backends.local import leases, process


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that has nothing to do with us."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield child
    child.kill()
    child.wait()


def anybody(pid: int) -> bool:
    """Leaves the proof to pid and start."""
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL])
def test_a_shims_pid_with_another_start_is_another_process_and_is_not_signalled(
    bystander: subprocess.Popen[bytes], number: int
) -> None:
    found = proc.stat(bystander.pid)
    assert found is not None
    assert process.signal_shim(bystander.pid, found.ticks - 1, number, anybody) is False
    assert process.signal_shim(bystander.pid, found.ticks + 1, number, anybody) is False
    os.kill(bystander.pid, 0)
    assert bystander.poll() is None
    assert process.signal_shim(bystander.pid, found.ticks, signal.SIGKILL, anybody) is True
    assert bystander.wait(60) == -signal.SIGKILL


def unlocked(directory: Path) -> list[str]:
    """Claims that another process could take for dead at this moment."""
    found = []
    for name in os.listdir(directory):
        if name.startswith("."):
            continue
        fd = os.open(directory / name, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found.append(name)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)
    return found


def test_at_no_line_of_the_code_is_a_claim_visible_without_its_lock(tmp_path: Path) -> None:
    """Each line that publishes is followed by a look: a neighbour may come at any of them."""
    looks: list[list[str]] = []

    def each(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == leases.__file__:
            looks.append(unlocked(tmp_path))
            return each
        return None

    before = sys.gettrace()
    sys.settrace(each)
    try:
        held = leases.publish_all(str(tmp_path), ["jostle-GPU-0~x~4711~0badcafe~1.1", "jostle-GPU-1~x~4711~0badcafe~1.1"])
    finally:
        sys.settrace(before)
    assert len(looks) > 10
    assert not any(looks)
    assert len([name for name in os.listdir(tmp_path) if not name.startswith(".")]) == 2
    leases.withdraw(str(tmp_path), held)
