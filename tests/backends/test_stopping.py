"""Who is signalled when a run is to end: the shim that has its lock, or whoever carries its marker. Never another."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest
from local_bench import Bench, MakeBench, mark

from jostle import proc
from jostle.port import Adopted

RUN, OTHER = (7, 1), (8, 1)
WAIT = "touch up-$JOSTLE_UNI_ID; while [ ! -e go ]; do sleep 0.02; done; exit 6"


def begin(bench: Bench, run: tuple[int, int], command: str = WAIT) -> str:
    """Its handle, once its own processes live."""
    held = bench.start(run, command)
    bench.running(run, f"up-{mark(*run)}")
    return held.handle


def names(pid: int) -> dict[str, object]:
    """What a handle or a claim says of this process."""
    s = proc.stat(pid)
    assert s is not None
    return {"pid": pid, "ticks": s.ticks, "boot": proc.boot_id()}


def adopt(make_bench: MakeBench, run: tuple[int, int], handle: str) -> Bench:
    return make_bench(rows=[Adopted(run, mark(*run), handle, True)])


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of this user that is none of ours, and leads a session as shims do."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield child.pid
    child.kill()
    child.wait()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Those that would have been sent by this process; none is, and so none has to be waited for."""
    sent: list[int] = []
    for sender in ("signal.pidfd_send_signal", "os.kill"):
        monkeypatch.setattr(sender, lambda process, number: sent.append(number))
    return sent


def without_shim_and_directory(bench: Bench, command: str = WAIT) -> str:
    handle = begin(bench, RUN, command)
    os.kill(json.loads(handle)["pid"], signal.SIGKILL)
    bench.unsupervised(RUN)
    shutil.rmtree(bench.dir(RUN))
    assert bench.is_unsupervised(RUN)
    return handle


def test_a_run_without_shim_and_directory_is_ended_by_its_marker(bench: Bench) -> None:
    without_shim_and_directory(bench)
    bench.stop(RUN, kill=False)
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_a_run_without_shim_and_directory_that_does_not_listen_is_killed(bench: Bench) -> None:
    without_shim_and_directory(bench, "trap '' TERM; " + WAIT)
    bench.stop(RUN, kill=False)
    assert bench.is_unsupervised(RUN)
    bench.stop(RUN, kill=True)
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_a_run_without_shim_and_directory_is_ended_by_an_engine_that_did_not_start_it(
    bench: Bench, make_bench: MakeBench
) -> None:
    second = adopt(make_bench, RUN, without_shim_and_directory(bench))
    second.stop(RUN, kill=False)
    assert second.report(RUN, "gone").cause == "exit_unknown"


def test_a_run_of_which_nothing_but_its_marker_is_known_lives_and_can_be_ended(bench: Bench, make_bench: MakeBench) -> None:
    without_shim_and_directory(bench)
    second = adopt(make_bench, RUN, "unreadable")
    assert second.is_unsupervised(RUN)
    second.stop(RUN, kill=False)
    assert second.report(RUN, "gone").cause == "exit_unknown"


def test_a_shim_whose_directory_is_gone_is_still_asked_to_end_its_run(bench: Bench, make_bench: MakeBench) -> None:
    """It has the run's lock open, which is proof enough; what hides its marker is ended by nobody else."""
    handle = begin(bench, RUN, f"exec env -i /bin/sh -c 'touch up-{mark(*RUN)}; exec sleep 600'")
    shutil.rmtree(bench.dir(RUN))
    second = adopt(make_bench, RUN, handle)
    second.stop(RUN, kill=False)
    assert bench.end(RUN).signal == signal.SIGTERM


def test_a_handle_that_names_a_stranger_is_no_proof(make_bench: MakeBench, stranger: int, signals: list[int]) -> None:
    bench = adopt(make_bench, RUN, json.dumps(names(stranger)))
    for kill in (False, True):
        bench.stop(RUN, kill=kill)
    assert signals == []


def test_a_claim_that_names_a_stranger_is_no_proof(bench: Bench, make_bench: MakeBench, stranger: int) -> None:
    """The job could have written it, while its true shim holds the lock."""
    handle = begin(bench, RUN)
    (bench.dir(RUN) / "claim").write_text(json.dumps({**names(stranger), "uni_id": mark(*RUN), "leases": []}))
    second = adopt(make_bench, RUN, handle)
    second.stop(RUN, kill=False)
    assert bench.end(RUN).signal == signal.SIGTERM, "its processes have its marker"
    assert os.waitpid(stranger, os.WNOHANG) == (0, 0)


def test_a_handle_that_names_the_shim_of_another_run_is_no_proof(
    bench: Bench, make_bench: MakeBench, signals: list[int]
) -> None:
    second = adopt(make_bench, RUN, begin(bench, OTHER))
    for kill in (False, True):
        second.stop(RUN, kill=kill)
    assert signals == []
    bench.stop(OTHER, kill=False)
    assert signals == [signal.SIGTERM, signal.SIGCONT], "its own engine may"
    (bench.home / "go").touch()
    assert bench.end(OTHER).code == 6


PIDS, TICKS = (10**30, 1 << 31, 0, -1, True, None), (10**30, -1, None)


@pytest.mark.parametrize("key, number", [("pid", n) for n in PIDS] + [("ticks", n) for n in TICKS])
def test_a_handle_whose_numbers_are_no_process_costs_its_run_only(make_bench: MakeBench, key: str, number: int | None) -> None:
    """It is opened, and says of the run that how it ended will not be known."""
    bench = adopt(make_bench, RUN, json.dumps({**names(os.getpid()), key: number}))
    bench.stop(RUN, kill=True)
    report = bench.poll(RUN)
    assert (report.kind, report.cause, report.session) == ("gone", "exit_unknown", None)
