"""Who has no descriptor left to look at a process with does not say that it is gone."""

import contextlib
import os
import resource
import signal

import pytest

from jostle import client, proc
from jostle.backends.local import outside
from jostle.notify import process

RUN = {"n": 1, "ended_at": None}


@pytest.fixture
def child():
    pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    yield pid
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


@contextlib.contextmanager
def no_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def called_gone(home, pid):
    """By the client of an engine, the log of a run, and the notifier of a home."""
    over = outside.is_over(home, 1, {**RUN, "shim_pid": pid})
    return [client.condition(pid) == "process_gone", over, not process.engine_lives(home)]


def test_what_cannot_be_looked_at_is_not_gone_and_what_has_ended_is(tmp_path, child):
    home = str(tmp_path)
    (tmp_path / "engine.lock").write_text(f"{child}\n")
    with no_descriptors():
        blind, catches = called_gone(home, child), proc.catches(child, signal.SIGUSR1)
    assert (blind, catches) == ([False] * 3, None), "None: it may"
    assert called_gone(home, child) == [False] * 3 and proc.catches(child, signal.SIGUSR1) is False
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert called_gone(home, child) == [True] * 3, "nobody has waited for it yet"
