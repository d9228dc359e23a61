"""The start protocol from the engine's side: at most once, never lost, never another's process."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from local_bench import PATIENCE, Bench, MakeBench, mark

from jostle import proc
from jostle.backends.local import process
from jostle.backends.local.nursery import ANSWER_WITHIN, Nursery
from jostle.core.model import RunId
from jostle.core.reasons import Hold
from jostle.port import Adopted, Void

RUN = (7, 1)
NOBODY = 2**22 + 1  # more than a pid can be: a broken build under test must not hit a real process
FAR = 1e9  # later than anything that waits for its time
WAIT = "echo $$ > pid; touch up; while [ ! -e go ]; do sleep 0.02; done; exit 6"


def claim_of(bench: Bench, run: tuple[int, int] = RUN) -> dict[str, object]:
    found = json.loads((bench.dir(run) / "claim").read_text())
    assert isinstance(found, dict)
    return found


def shim_of(bench: Bench, run: tuple[int, int] = RUN) -> int:
    pid = claim_of(bench, run)["pid"]
    assert isinstance(pid, int)
    return pid


def handle(pid: int, ticks: int) -> str:
    return json.dumps({"pid": pid, "ticks": ticks, "boot": proc.boot_id()})


def adopted(handle: str, *, begun: bool = True) -> Adopted:
    """The run as the store of an earlier engine has it."""
    return Adopted(RUN, mark(*RUN), handle, begun)


def gone(pid: int) -> bool:
    s = proc.stat(pid)
    return s is None or s.state in "ZX"


def any_gone(*pids: int) -> bool:
    return any(map(gone, pids))


def reaped(pid: int) -> bool:
    return proc.stat(pid) is None


def other_than(bench: Bench, pid: int) -> bool:
    return bench.nursery() not in (None, pid)


# ---------------------------------------------------------------------- start


def test_a_run_is_claimed_then_alive_then_ended_and_says_each(bench: Bench) -> None:
    assert bench.poll(RUN).kind == "not_started"
    reservation = bench.start(RUN, WAIT, wants=[("GPU-0", None)])
    assert bench.poll(RUN).kind in ("starting", "alive")
    bench.until(lambda: bench.has_begun(RUN))
    assert bench.poll(RUN).session == reservation.pid
    claim = claim_of(bench)
    assert (claim["pid"], claim["ticks"], claim["boot"]) == (reservation.pid, reservation.ticks, proc.boot_id())
    assert claim["leases"] == list(reservation.names)
    bench.changes.clear()
    (bench.home / "go").touch()
    bench.until(lambda: RUN in bench.changes)
    assert bench.end(RUN).code == 6
    assert bench.local.claims() == []


def test_the_exit_record_says_what_the_message_said(bench: Bench) -> None:
    heard = bench.carry(RUN, "exit 3")
    bench.until((bench.dir(RUN) / "exit").exists)
    other = Bench(bench.home, bench.lease_dir)
    try:
        assert other.end(RUN) == heard
    finally:
        other.local.close()


def test_files_of_a_run_are_for_its_owner_only(bench: Bench) -> None:
    bench.carry(RUN, "umask 000; touch loose", umask=0)
    bench.until((bench.dir(RUN) / "exit").exists)
    modes = {p.name: p.stat().st_mode & 0o777 for p in bench.dir(RUN).iterdir()}
    assert modes == {"lock": 0o600, "claim": 0o600, "exit": 0o600, "log": 0o600}
    assert bench.dir(RUN).stat().st_mode & 0o777 == 0o700


def test_a_run_that_is_spawned_twice_runs_once(bench: Bench, make_bench: MakeBench) -> None:
    """By two engines of one home, as if a start had been forgotten: that of the other is another shim."""
    other = make_bench()
    for n in range(20):
        run = (n + 1, 1)
        first, second = bench.reserve(run), other.reserve(run)
        spec = bench.spec(run, [f"echo ran >> ran.{n}"])
        bench.give(first, spec)
        other.give(second, spec)
        bench.give(first, spec)
        assert bench.end(run).code == other.end(run).code == 0
        bench.forget(run)
        other.forget(run)
        bench.until(partial(any_gone, first.pid, second.pid), what="the loser leaves")
        assert (bench.home / f"ran.{n}").read_text() == "ran\n"


def test_a_voided_run_never_starts(bench: Bench) -> None:
    reservation = bench.reserve(RUN, [("GPU-0", None)])
    assert bench.local.void(RUN) is Void.NEVER
    assert bench.local.void(RUN) is Void.NEVER
    bench.give(reservation, bench.spec(RUN, ["touch never"]))
    bench.until(lambda: gone(reservation.pid))
    assert bench.report(RUN, "voided")
    assert not (bench.home / "never").exists()
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")


def test_a_run_that_has_started_cannot_be_voided(bench: Bench) -> None:
    bench.start(RUN, WAIT)
    bench.running(RUN, "up")
    assert bench.local.void(RUN) is Void.STARTED
    bench.until(lambda: bench.has_begun(RUN))


def test_voiding_races_with_the_start_and_exactly_one_wins(bench: Bench) -> None:
    outcomes: set[bool] = set()
    for n in itertools.count():
        if n >= 60 and (outcomes == {True, False} or n >= 150):
            break
        run = (n + 1, 1)
        bench.start(run, f"touch ran.{n}")
        if n % 3:
            select.select([], [], [], 0.0002 * (n % 10) * 2 ** (n // 10))  # another moment each time; a slow host needs longer
        voided = bench.local.void(run) is Void.NEVER
        report = bench.report(run, "voided" if voided else "ended")
        assert (bench.home / f"ran.{n}").exists() is not voided, report
        bench.forget(run)
        outcomes.add(voided)
    assert outcomes == {True, False}


def test_a_start_on_a_dead_spare_is_not_started_and_can_be_done_again(bench: Bench) -> None:
    reservation = bench.reserve(RUN, [("GPU-0", None)])
    os.kill(reservation.pid, signal.SIGKILL)
    bench.until(lambda: gone(reservation.pid))
    bench.give(reservation, bench.spec(RUN, ["touch never"]))
    bench.until(lambda: RUN in bench.changes)
    assert bench.poll(RUN).kind == "not_started"
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")
    assert bench.carry(RUN, "exit 4", wants=[("GPU-0", None)]).code == 4


def test_a_stop_before_the_claim_means_not_started(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench()
    reservation = bench.reserve(RUN)
    os.kill(reservation.pid, signal.SIGTERM)
    bench.give(reservation, bench.spec(RUN, ["touch never"]))
    assert bench.report(RUN, "not_started")
    assert not (bench.home / "never").exists()


# ---------------------------------------------------------------------- reuse


def hand_over(bench: Bench, runs: int, command: str) -> list[int]:
    """Run after run, each started before the last one is forgotten, as the engine does it; the shims' pids."""
    pids = []
    bench.until(lambda: bench.local.capacity() >= 2)
    for n in range(1, runs + 1):
        pids.append(bench.start((n, 1), command.format(n=n), wants=[("GPU-0", None)]).pid)
        bench.forget((n - 1, 1))
        assert bench.end((n, 1)).code == n
    return pids


def test_a_shim_whose_run_is_final_carries_another(bench: Bench) -> None:
    pids = hand_over(bench, 12, "echo {n}; exit {n}")
    assert len(set(pids)) <= 4
    bench.until(lambda: all((bench.dir((n, 1)) / "exit").exists() for n in range(1, 13)), what="the records of all")
    for n in range(1, 13):
        assert json.loads((bench.dir((n, 1)) / "exit").read_text())["code"] == n
        assert bench.log((n, 1)) == f"{n}\n"
    assert bench.local.claims() == []


def test_a_stop_for_an_ended_run_does_not_reach_the_next_run_of_its_shim(bench: Bench) -> None:
    bench.until(lambda: bench.local.capacity() >= 2)
    assert bench.carry((1, 1), "true").code == 0
    bench.stop((1, 1), kill=True)
    bench.forget((1, 1))
    held = next(h for n in range(2, 100) if (h := bench.reserve((n, 1))).pid == shim_of(bench, (1, 1)))
    bench.give(held, bench.spec(held.run, [WAIT]))
    bench.running(held.run, "up")
    assert shim_of(bench, held.run) == shim_of(bench, (1, 1))
    bench.stop((1, 1), kill=True)
    (bench.home / "go").touch()
    assert bench.end(held.run).code == 6


def test_a_shim_is_its_old_self_for_every_run(bench: Bench) -> None:
    """Umask, limits and descriptors of one run are not those of the next."""
    bench.until(lambda: bench.local.capacity() >= 2)
    look = "umask; ulimit -n; readlink /proc/$$/fd/* | grep -c {leases}; exit 1"
    for n in range(1, 9):
        more = {"umask": 0o077, "limits": {"nofile": [100 + n, 4096]}} if n % 2 else {"umask": 0o022}
        command = look.format(leases=bench.lease_dir)
        bench.start((n, 1), command, wants=[("GPU-0", None)] * (n % 2) + [("GPU-1", None)], **more)
        bench.forget((n - 1, 1))
        bench.end((n, 1))
        mask, files, leases = bench.log((n, 1)).split()
        assert (mask, leases) == (("0077", "2") if n % 2 else ("0022", "1"))
        assert (files == str(100 + n)) == bool(n % 2)
    bench.local.want(3)
    bench.forget((8, 1))

    def quiet() -> bool:
        shims = {shim_of(bench, (n, 1)) for n in range(1, 9)} & bench.shims()
        # thrice /dev/null, socket; of the next run lock, log, claim, and the lock on that
        return bool(shims) and all(len(os.listdir(f"/proc/{p}/fd")) == 8 for p in shims)

    bench.until(quiet, what="used shims hold nothing but their socket and the next run's directory")


def test_a_shim_that_left_somebody_behind_is_not_used_again(bench: Bench) -> None:
    bench.local.want(1)
    end = bench.carry((1, 1), "setsid sleep 1000 & sleep 0.01")
    assert end.leftovers
    first = shim_of(bench, (1, 1))
    bench.forget((1, 1))
    bench.until(lambda: gone(first))
    assert bench.carry((2, 1), "true").code == 0


def test_a_shim_that_cannot_write_its_exit_record_is_free_once_the_store_has_it(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "shim.before_exit_write=ENOSPC")
    bench = make_bench()
    pids = hand_over(bench, 6, "exit {n}")
    assert len(set(pids)) <= 4
    bench.forget((6, 1))
    assert not (bench.dir((1, 1)) / "exit").exists()


def test_a_shim_that_cannot_write_its_exit_record_stays_alive_without_an_engine(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "shim.before_exit_rename=ENOSPC@1")
    bench = make_bench()
    reservation = bench.start(RUN, WAIT)
    bench.running(RUN, "up")
    bench.local.close()
    second = make_bench(rows=[adopted(reservation.handle)])
    (bench.home / "go").touch()
    assert second.end(RUN).code == 6


# ---------------------------------------------------------------------- the look


def test_no_short_run_is_ever_called_lost(make_bench: MakeBench) -> None:
    """Polled all the time by a second engine's eyes, which have only the files to go by."""
    bench = make_bench()
    eyes = Bench(bench.home, bench.lease_dir)
    bench.local.want(4)
    polls, seen = 0, set()
    try:
        for n in range(150):
            run = (n + 1, 1)
            bench.start(run, ["true"])
            deadline = time.monotonic() + PATIENCE
            while (report := eyes.poll(run)).kind != "ended":
                assert report.kind in ("not_started", "starting", "alive"), (run, report)
                assert time.monotonic() < deadline
                seen.add(report.kind)
                polls += 1
                if polls % 3 == 0:
                    bench.loop.turn(0)
            assert report.exit is not None and report.exit.code == 0
            assert bench.end(run).code == 0
            bench.forget(run)
    finally:
        eyes.local.close()
    assert {"not_started", "alive"} <= seen and polls > 150


def test_a_killed_shim_leaves_an_unsupervised_run_whose_exit_stays_unknown(bench: Bench) -> None:
    bench.start(RUN, WAIT, wants=[("GPU-0", None)])
    bench.running(RUN, "up")
    main = int((bench.home / "pid").read_text())
    os.kill(shim_of(bench), signal.SIGKILL)
    bench.changes.clear()
    bench.until(lambda: RUN in bench.changes)
    report = bench.poll(RUN)
    assert report.kind == "alive" and not report.supervised and main in report.pids
    assert len(bench.local.claims()) == 1  # the GPU is still held, by the job itself
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone").cause == "exit_unknown"
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")


def test_an_unsupervised_run_can_be_stopped(bench: Bench) -> None:
    bench.start(RUN, "trap '' TERM; " + WAIT)
    bench.running(RUN, "up")
    os.kill(shim_of(bench), signal.SIGKILL)
    bench.unsupervised(RUN)
    bench.stop(RUN, kill=False)
    assert bench.is_unsupervised(RUN)
    bench.stop(RUN, kill=True)
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_a_process_that_hides_its_marker_still_holds_the_lease(bench: Bench) -> None:
    bench.start(RUN, "exec env -i /bin/sh -c '" + WAIT + "'", wants=[("GPU-0", None)])
    bench.running(RUN, "up")
    os.kill(shim_of(bench), signal.SIGKILL)
    assert bench.unsupervised(RUN).pids == ()
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone")


SIT = """
import fcntl, sys
f = open(sys.argv[1])
print("open", flush=True)
fcntl.flock(f, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def sitter(path: Path) -> Iterator[Callable[[], object]]:
    """A process that takes the lock on a file as soon as it can be had, and keeps it; gives how to wait until it has it."""
    argv = [sys.executable, "-I", "-S", "-c", SIT, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        try:
            assert child.stdout.readline() == b"open\n"
            yield child.stdout.readline
        finally:
            child.kill()


def test_the_lock_of_a_stranger_on_a_claim_is_not_the_life_of_its_run(bench: Bench) -> None:
    bench.start(RUN, WAIT, wants=[("GPU-0", None)])
    bench.running(RUN, "up")
    (claim,) = bench.lease_dir.iterdir()
    main = int((bench.home / "pid").read_text())
    with sitter(claim) as has_it:
        os.kill(shim_of(bench), signal.SIGKILL)
        bench.until(lambda: main in bench.poll(RUN).pids, what="it is unsupervised")
        assert len(bench.local.claims()) == 1, "the job itself still has it"
        os.kill(main, signal.SIGKILL)
        has_it()
        assert bench.report(RUN, "gone").cause == "exit_unknown"
        bench.until(lambda: bench.local.claims() == [] and not claim.exists(), what="the claim goes, whoever has locked it")


def test_what_hides_its_marker_and_closes_its_lease_is_still_known_to_live(bench: Bench) -> None:
    bench.start(RUN, f"exec env -i /bin/sh -c '{WAIT}'")
    bench.running(RUN, "up")
    os.kill(shim_of(bench), signal.SIGKILL)
    assert bench.unsupervised(RUN).pids == ()
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone").cause == "exit_unknown"


def test_a_run_of_an_older_shim_is_known_to_live_by_its_lease(bench: Bench) -> None:
    bench.start(RUN, "exec env -i /bin/sh -c '" + WAIT + "'", wants=[("GPU-0", None)])
    bench.running(RUN, "up")
    old = claim_of(bench)
    del old["life"]
    (bench.dir(RUN) / "claim").unlink()
    (bench.dir(RUN) / "claim").write_text(json.dumps(old))
    os.kill(shim_of(bench), signal.SIGKILL)
    assert bench.unsupervised(RUN).pids == ()
    assert [c.ours for c in bench.local.claims()] == [True]
    (bench.home / "go").touch()
    assert bench.report(RUN, "gone")
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")


def test_a_run_of_another_boot_is_gone(bench: Bench) -> None:
    bench.dir(RUN).mkdir()
    me = {"pid": NOBODY, "ticks": 1, "boot": "another", "uni_id": "x", "leases": []}
    (bench.dir(RUN) / "claim").write_text(json.dumps(me))
    assert (bench.poll(RUN).kind, bench.poll(RUN).cause) == ("gone", "host_rebooted")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": "0", "ended_at": 1}', '{"code": 0}', "[" * 100_000, "\0"])
def test_a_forged_or_damaged_exit_record_is_no_success(bench: Bench, text: str) -> None:
    bench.dir(RUN).mkdir()
    me = {"pid": NOBODY, "ticks": 1, "boot": proc.boot_id(), "uni_id": "x", "leases": []}
    (bench.dir(RUN) / "claim").write_text(json.dumps(me))
    (bench.dir(RUN) / "exit").write_text(text)
    assert bench.poll(RUN).cause == "exit_unknown"


def test_a_fifo_or_link_in_place_of_a_record_is_not_read(bench: Bench) -> None:
    bench.dir(RUN).mkdir()
    os.mkfifo(bench.dir(RUN) / "claim")
    (bench.dir(RUN) / "exit").symlink_to("/dev/zero")
    (bench.dir(RUN) / "lock").symlink_to("/nowhere")
    assert bench.poll(RUN).kind == "gone"
    assert bench.local.void(RUN) is not Void.NEVER


def test_a_job_that_removes_its_lock_is_still_seen_alive(bench: Bench, make_bench: MakeBench) -> None:
    bench.start(RUN, WAIT)
    bench.running(RUN, "up")
    (bench.dir(RUN) / "lock").unlink()
    eyes = Bench(bench.home, bench.lease_dir)
    try:
        assert eyes.poll(RUN).kind == "alive"
    finally:
        eyes.local.close()


# ---------------------------------------------------------------------- identity


def test_a_pid_that_became_anothers_is_never_signalled_nor_adopted(bench: Bench, make_bench: MakeBench) -> None:
    stranger = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    try:
        s = proc.stat(stranger)
        assert s is not None
        bench.dir(RUN).mkdir()
        me = {"pid": stranger, "ticks": s.ticks - 1, "boot": proc.boot_id(), "uni_id": "u", "leases": []}
        (bench.dir(RUN) / "claim").write_text(json.dumps(me))
        second = make_bench(rows=[adopted(handle(stranger, s.ticks - 1))])
        second.stop(RUN, kill=False)
        second.stop(RUN, kill=True)
        assert second.poll(RUN).cause == "exit_unknown"
        assert not process.is_member(stranger, ticks=s.ticks, uni_id="u")
        assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


def test_a_pid_of_another_boot_is_never_signalled(bench: Bench) -> None:
    stranger = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {proc.MARK: "u"})
    try:
        s = proc.stat(stranger)
        assert s is not None
        bench.dir(RUN).mkdir()
        me = {"pid": stranger, "ticks": s.ticks, "boot": "another", "uni_id": "u", "leases": []}
        (bench.dir(RUN) / "claim").write_text(json.dumps(me))
        bench.stop(RUN, kill=True)
        assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


# ---------------------------------------------------------------------- the engine dies

ENGINE = """
import sys, time
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from local_bench import Bench
bench = Bench(Path(sys.argv[3]), Path(sys.argv[4]))
r = bench.start((7, 1), sys.argv[5], wants=[("GPU-0", None)])
bench.until(lambda: bench.has_begun((7, 1)))
bench.until(lambda: bench.local.capacity() >= 2)
print(r.pid, r.ticks, bench.nursery(), *(bench.shims() - {r.pid}), flush=True)
bench.until(lambda: False)
"""


def engine(tmp_path: Path, command: str) -> tuple[subprocess.Popen[str], list[int]]:
    for name in ("home", "leases"):
        (tmp_path / name).mkdir(exist_ok=True)
    here = Path(__file__).parent
    args = [str(here), str(here.parents[1] / "src"), str(tmp_path / "home"), str(tmp_path / "leases"), command]
    child = subprocess.Popen([sys.executable, "-c", ENGINE, *args], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        return child, [int(n) for n in child.stdout.readline().split()]


def test_a_run_outlives_its_engine_and_the_next_one_adopts_it(tmp_path: Path, make_bench: MakeBench) -> None:
    first, (pid, ticks, *_) = engine(tmp_path, WAIT)
    first.kill()
    first.wait()
    bench = make_bench(rows=[adopted(handle(pid, ticks))])
    report = bench.poll(RUN)
    assert (report.kind, report.supervised, report.session) == ("alive", True, pid)
    assert [(c.ours, c.claim.run) for c in bench.local.claims()] == [(True, RUN)]
    bench.local.tick(FAR)
    assert bench.ear.notes == [], "no claim is missing"
    (bench.home / "go").touch()
    bench.until(lambda: RUN in bench.changes, what="the adopted shim's end is an event")
    assert bench.end(RUN).code == 6
    bench.forget(RUN)
    assert bench.local.claims() == []


def test_an_adopted_run_can_be_stopped(tmp_path: Path, make_bench: MakeBench) -> None:
    first, (pid, ticks, *_) = engine(tmp_path, WAIT)
    first.kill()
    first.wait()
    bench = make_bench(rows=[adopted(handle(pid, ticks))])
    bench.stop(RUN, kill=False)
    assert bench.end(RUN).signal == signal.SIGTERM


def test_an_adopted_run_whose_claim_was_deleted_is_published_again(tmp_path: Path, make_bench: MakeBench) -> None:
    first, (pid, ticks, *_) = engine(tmp_path, WAIT)
    first.kill()
    first.wait()
    for claim in (tmp_path / "leases").iterdir():
        claim.unlink()
    bench = make_bench(rows=[adopted(handle(pid, ticks))])
    assert bench.local.claims() == []
    bench.local.tick(FAR)
    assert [(run, kind) for run, kind, _ in bench.ear.notes] == [(RUN, "republished")]
    assert [c.ours for c in bench.local.claims()] == [True]


def test_with_the_engine_its_nursery_and_spares_end_and_nothing_else(tmp_path: Path, make_bench: MakeBench) -> None:
    first, (pid, _, *idle) = engine(tmp_path, WAIT)
    assert len(idle) >= 3 and not any(gone(p) for p in idle)
    first.kill()
    first.wait()
    bench = make_bench()
    bench.until(lambda: all(gone(p) for p in idle), what="nursery and spares end")
    assert not gone(pid)


def test_closing_leaves_runs_alone(bench: Bench, make_bench: MakeBench) -> None:
    reservation = bench.start(RUN, WAIT)
    bench.running(RUN, "up")
    bench.local.close()
    second = make_bench(rows=[adopted(reservation.handle)])
    (bench.home / "go").touch()
    assert second.end(RUN).code == 6


def test_no_shim_keeps_a_file_of_the_engine_open(bench: Bench, tmp_path: Path) -> None:
    secret = os.open(tmp_path / "engine.lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)  # the worst case
    second = Bench(bench.home, tmp_path / "leases")
    try:
        second.start(RUN, WAIT)
        second.running(RUN, "up")
        pids = [shim_of(second), *second.shims(), int((bench.home / "pid").read_text())]
        for pid in pids:
            assert not [path for path in proc.open_files(pid) if "engine.lock" in path]
        assert proc.open_files(pids[0]), "there is something to see"
    finally:
        second.stop(RUN, kill=True)
        second.end(RUN)
        second.local.close()
        os.close(secret)


# ---------------------------------------------------------------------- nursery


def test_a_killed_nursery_is_replaced(bench: Bench) -> None:
    for _ in range(3):
        bench.until(lambda: bench.local.capacity() >= 2)
        before = bench.nursery()
        assert before is not None
        os.kill(before, signal.SIGKILL)
        bench.until(partial(other_than, bench, before))
        assert bench.until(partial(reaped, before), what="no zombie")
    for n in range(4):
        assert bench.carry((n + 1, 1), f"exit {n}").code == n


def test_a_killed_spare_is_replaced(bench: Bench) -> None:
    bench.until(lambda: bench.local.capacity() >= 2)
    victims = bench.shims()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    bench.until(lambda: len(bench.shims() - victims) >= 2)
    assert bench.carry(RUN, "true").code == 0


def test_a_nursery_that_cannot_be_started_is_tried_ever_more_rarely(tmp_path: Path) -> None:
    class Nothing:
        def watch(self, fd: int, callback: object) -> None:
            raise AssertionError("there is nothing to watch")

        def unwatch(self, fd: int) -> None:
            raise AssertionError("there is nothing to watch")

    nursery = Nursery(watcher=Nothing(), python=str(tmp_path / "no-python"), runs="", arrived=lambda pid, sock: None)
    nursery.start()
    assert nursery.trouble == Hold("no_nursery", os.strerror(errno.ENOENT)) and not nursery.ready
    now, pauses = 0.0, []
    for _ in range(14):
        at = nursery.tick(now)
        if at is not None:
            pauses.append(at - now)
            now = at
    assert pauses == sorted(pauses) and pauses[-1] > 1.0


def test_a_nursery_that_does_not_answer_is_replaced(bench: Bench) -> None:
    bench.until(lambda: bench.local.capacity() >= 2)
    stuck = bench.nursery()
    assert stuck is not None
    os.kill(stuck, signal.SIGSTOP)
    bench.until(lambda: Path(f"/proc/{stuck}/stat").read_text().rpartition(") ")[2].startswith("T"))
    bench.local.want(4)
    now = time.monotonic()
    bench.local.tick(now)
    bench.local.tick(now + ANSWER_WITHIN + 1)
    bench.until(lambda: bench.local.capacity() >= 4)
    assert bench.nursery() != stuck
    assert bench.until(lambda: proc.stat(stuck) is None)


def test_a_host_out_of_processes_is_waited_out(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "nursery.before_fork=EAGAIN@2")
    bench = make_bench()
    bench.until(lambda: bench.local.capacity() >= 2)
    assert bench.carry(RUN, "true").code == 0


# ---------------------------------------------------------------------- failpoints

BEFORE = ("shim.before_claim",)
AFTER = ("shim.after_claim", "shim.before_exit_write", "shim.before_exit_rename", "shim.after_exit_rename")


@pytest.mark.parametrize("place", BEFORE)
def test_a_shim_killed_before_its_claim_has_not_started(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", f"{place}=kill")
    bench = make_bench()
    bench.start(RUN, "touch never", wants=[("GPU-0", None)])
    bench.until(lambda: RUN in bench.changes)
    assert bench.poll(RUN).kind == "not_started"
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")
    assert not (bench.home / "never").exists()


@pytest.mark.parametrize("place", AFTER)
def test_a_shim_killed_after_its_claim_is_an_unknown_exit_or_the_true_one(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", f"{place}=kill")
    bench = make_bench()
    eyes = Bench(bench.home, bench.lease_dir)
    try:
        reservation = bench.start(RUN, "touch ran; exit 5", wants=[("GPU-0", None)])
        bench.until(lambda: gone(reservation.pid))
        report = eyes.poll(RUN)
        if place == "shim.after_exit_rename":
            assert report.exit is not None and report.exit.code == 5
        else:
            assert (report.kind, report.cause) == ("gone", "exit_unknown")
        if place != "shim.after_claim":
            assert bench.end(RUN).code == 5  # the living engine heard it
        bench.until(lambda: bench.local.claims() == [], what="the claim goes when the engine hears that its shim has died")
    finally:
        eyes.local.close()


@pytest.mark.parametrize("place", BEFORE)
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_claim_that_cannot_be_made_costs_no_try(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, place: str, error: str
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", f"{place}={error}")
    bench = make_bench()
    bench.start(RUN, "touch never", wants=[("GPU-0", None)])
    assert bench.report(RUN, "not_started")
    bench.until(lambda: bench.local.claims() == [], what="the GPU is given back")
    assert not (bench.home / "never").exists()


def test_an_end_is_announced_before_it_is_read_and_nothing_else_is(bench: Bench) -> None:
    """The engine asks for a look at the cards then: they have been given back already."""
    announced: list[RunId] = []

    def look(run: RunId) -> None:
        assert bench.ear.changes.count(run) == told, "its end is not told yet"
        assert bench.local.claims() == []
        announced.append(run)

    bench.ear.about_to_end = look  # type: ignore[method-assign]
    bench.start(RUN, "until [ -e go ]; do sleep 0.01; done", wants=[("GPU-0", None)])
    bench.until(lambda: bench.has_begun(RUN))
    assert announced == []
    told = bench.ear.changes.count(RUN)
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0 and announced == [RUN]
    reservation = bench.start((2, 1), "sleep 1000")
    bench.until(lambda: bench.has_begun((2, 1)))
    os.kill(reservation.pid, signal.SIGKILL)  # its end of file is no last word
    bench.unsupervised((2, 1))
    assert announced == [RUN]


def test_a_process_that_shows_no_environment_for_an_instant_is_not_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is while it becomes another program; a run without cards has nothing else to be known by."""
    reservation = bench.start(RUN, "sleep 1000")
    bench.until(lambda: bench.has_begun(RUN))
    os.kill(reservation.pid, signal.SIGKILL)
    bench.unsupervised(RUN)
    real, answers = process.members, [True, False]
    monkeypatch.setattr(process, "members", lambda uni_id: [] if not answers.pop() else real(uni_id))
    assert bench.is_unsupervised(RUN) and answers == []
