"""The exit record and the disk: when it must be forced there, and when the engine's word makes that needless."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jostle.backends.local import shim


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What was forced to the disk, by name, and whether the record had its name by then."""
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        directory = path if os.path.isdir(path) else os.path.dirname(path)
        seen.append((os.path.basename(path), os.path.exists(f"{directory}/exit")))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A run's directory, and its lock."""
    directory = tmp_path / "7.1"
    directory.mkdir()
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield str(directory), lock
    os.close(lock)


def test_an_end_that_no_engine_confirms_is_forced_to_the_disk(run: tuple[str, int], forced: list[tuple[str, bool]]) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        assert shim.write_exit(run[0], {"code": 3}, run[1], ours) == b""
    assert forced == [("exit", True), ("7.1", True)], "the record, and then its name"


def test_an_end_that_the_engine_has_need_not_be_forced(run: tuple[str, int], forced: list[tuple[str, bool]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"F")
        assert shim.write_exit(run[0], {"code": 3}, run[1], ours) == b"F"
    assert forced == []
