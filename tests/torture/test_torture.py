"""kill -9 at random moments and at every failpoint (F1-F3), seeded bugs that must be found, reused pids (F10), a reboot (F11).

The harness is a process of its own: it becomes child subreaper of all it starts, which a test runner should not be.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import harness
import pytest
import seeded
from evidence import Case, Violation, Wanted, check, read_journal

from jostle import client, proc
from jostle.backends.local.outside import runs_of
from jostle.store.reads import Reader
from jostle.store.store import Store

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = int(os.environ.get("TORTURE_SEED", "20240229"))


def ran(*argv: str, within: float = 280.0) -> subprocess.CompletedProcess[str]:
    """A script of this directory; told to end, and given time to clean up, if it takes too long."""
    path = os.pathsep.join([os.path.dirname(harness.SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path}
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        out, err = child.communicate(timeout=within)
    finally:
        if child.poll() is None:
            child.terminate()
            child.communicate()
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def test_nothing_is_lost_doubled_orphaned_or_misplaced_in_sixty_kills() -> None:
    done = ran(sys.executable, f"{HERE}/run.py", "--kills", "60", "--seed", str(SEED), "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    print({k: v for k, v in report.items() if k != "violations"})
    assert report["violations"] == []
    assert report["kills"] >= 60
    assert report["jobs"] > 40 and report["neighbour_processes"] > 5
    # a busy machine may keep one from being reached in time, but not more
    assert len(set(harness.failpoints()) - set(report["by_phase"])) <= 1, report["not_reached"]


@pytest.mark.parametrize("name", seeded.EACH_COMMIT)
def test_a_seeded_bug_is_found(name: str) -> None:
    done = ran(sys.executable, f"{HERE}/run.py", "--bug", name, "--seed", str(SEED), "--json")
    assert done.returncode == 0, done.stderr or done.stdout[-3000:]
    assert json.loads(done.stdout)[name]["caught_by"]


def test_a_seeded_bug_that_harms_nobody_is_not_found() -> None:
    """Else the engine with bugs in it would not work at all, and each of them be "found"."""
    done = ran(sys.executable, f"{HERE}/run.py", "--bug", "double_spawn", "--seed", str(SEED), "--json")
    assert done.returncode == 0, done.stderr or done.stdout[-3000:]
    assert json.loads(done.stdout)["double_spawn"]["caught_by"] == []


@pytest.mark.parametrize("name", sorted(seeded.BUGS))
def test_every_seeded_bug_fits_the_engine_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but a few are looked for only now and then: one that had become stale would find nothing for weeks."""
    monkeypatch.setenv("JOSTLE_BUG", name)
    monkeypatch.setattr(sys, "path", [HERE, *sys.path])
    monkeypatch.setattr(sys, "argv", ["buggy.py", "as", "an", "engine"])
    monkeypatch.delitem(sys.modules, "buggy", raising=False)
    buggy = importlib.import_module("buggy")
    monkeypatch.setattr(buggy, "setattr", monkeypatch.setattr, raising=False)  # what is right is put back after the test
    patches = [where[name] for where in (buggy.ENGINE, buggy.SHIM) if name in where]
    assert patches
    for patch in patches:
        patch()


def test_there_are_a_dozen_seeded_bugs() -> None:
    assert len([h for h in seeded.BUGS.values() if not h.harmless]) >= 12


# --- the invariants themselves


def test_the_invariants_see_a_lost_a_doubled_and_a_misreported_job(tmp_path: Any) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = Store(str(home))
    with store.transaction() as db:
        db.execute("INSERT INTO batch (id, policy, submitted_at) VALUES (1, '{}', 0)")
        for id, state in ((1, "running"), (2, "succeeded"), (3, "succeeded")):
            db.execute(
                """INSERT INTO job (id, batch, context, shape, name, place, sort, priority, gpus_min, gpus_max, share,
                   commands, env, workdir, leftovers, tags, submitted_at, state, attempt)
                   VALUES (?, 1, 1, 1, ?, 1, 1, 0, 1, 1, 0, '[]', '{}', '/', 'kill', '[]', 0, ?, 1)""",
                (id, f"j{id}", state),
            )
            db.execute(
                """INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at, outcome, exit_code)
                   VALUES (?, 1, ?, ?, 0, '', 0, 0, ?, ?)""",
                (id, f"u{id}", *(("ended", "succeeded", 0) if id > 1 else ("running", None, None))),
            )
            db.execute("INSERT INTO lease (job, n, uuid, idx, mib, used_at_start) VALUES (?, 1, 'GPU-0', 0, NULL, 0)", (id,))
            if id > 1:
                store.event(0.0, state, job=id)
    store.close()
    told: list[dict[str, Any]] = []

    def tell(job: int, pid: int, start: int, end: int, code: int) -> None:
        who = {"job": job, "attempt": 1, "uni_id": f"u{job}", "key": f"j{job}", "pid": pid}
        told.append({"kind": "start", "at": start, "cards": ["0"], "mib": None, "queue": "", **who})
        told.append({"kind": "end", "at": end, "code": code, "told": False, **who})

    tell(2, 1 << 22, 10, 20, 0)
    tell(2, (1 << 22) + 1, 15, 25, 0)
    tell(3, (1 << 22) + 2, 30, 40, 3)
    journal = tmp_path / "journal"
    journal.write_text("".join(json.dumps(line) + "\n" for line in told))
    wanted = {f"j{id}": Wanted(key=f"j{id}", id=id) for id in (1, 2, 3, 4)}
    found = check(Case(home=str(home), journal=str(journal), wanted=wanted, total_mib=24576))
    assert Violation("lost", "job 1 (j1) stays running") in found
    assert Violation("lost", "j4 was acknowledged as job 4; the store has []") in found
    assert any(v.invariant == "doubled" and v.text.startswith("job 2 succeeded more than once") for v in found)
    assert Violation("exit code", "run (3, 1) ended with 3, the store says 0") in found
    assert "overlap" in {v.invariant for v in found}
    assert len(read_journal(str(journal), ["j2"])[0]) == 2


# --- identities


def namespace() -> list[str] | None:
    """How to get a PID namespace with a /proc of its own; None if this host gives us none."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    for more in ([], ["--user", "--map-root-user"]):
        argv = [unshare, *more, "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
        done = subprocess.run([*argv, "sh", "-c", "echo 99 > /proc/sys/kernel/ns_last_pid"], capture_output=True)
        if done.returncode == 0:
            return argv
    return None


def test_a_process_that_got_a_dead_runs_pid_is_never_signalled_and_the_run_is_lost() -> None:
    inside = namespace()
    if inside is None:
        pytest.skip("no PID namespace can be made here (it takes root, or user namespaces)")
    done = ran(*inside, sys.executable, f"{HERE}/pid_reuse.py", "10")
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)
    reused = [t for t in trials if t["reused"]]
    assert len(reused) >= 8, trials
    for trial in trials:
        assert trial["alive"] and trial["signals"] == [], trial
        assert trial["state"] in ("failed", "cancelled") and trial["exit_code"] is None and trial["runs"] == 1, trial
        assert trial["state"] == "cancelled" or trial["reason"] == "exit_unknown", trial


Start = Callable[[str], client.Client]


@pytest.fixture
def start(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Engines of one home in a boot of a given name; whatever they leave is ended."""
    home, token = tmp_path / "home", f"reboot-{os.getpid()}"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("REBOOT_TEST", token)
    opened: list[client.Client] = []

    def begin(boot: str) -> client.Client:
        monkeypatch.setenv("JOSTLE_TEST_BOOT_ID", boot)
        client.start_engine(str(home), gpus="sim:2x24")
        found = client.attempt(str(home))
        assert found is not None
        opened.append(found)
        return found

    yield begin
    for one in opened:
        with contextlib.suppress(Exception):
            one.call("down", stop_jobs=True, now=True)
            client.wait_gone(one, 10)
        one.close()
    end_marked(token)


def marked(token: str) -> list[int]:
    found = [pid for pid in proc.pids() if pid != os.getpid() and (proc.environ(pid) or {}).get("REBOOT_TEST") == token]
    return [pid for pid in found if (s := proc.stat(pid)) is not None and s.state not in "ZX"]


def end_marked(token: str) -> None:
    def gone() -> bool:
        for pid in marked(token):
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(pid)
                try:
                    if (proc.environ(pid) or {}).get("REBOOT_TEST") == token:
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                finally:
                    os.close(pidfd)
        return not marked(token)

    assert harness.until(gone)


def test_after_a_reboot_a_run_is_lost_and_never_silently_run_again(start: Start, tmp_path: Any) -> None:
    home, token = str(tmp_path / "home"), os.environ["REBOOT_TEST"]
    to = start("boot-one")
    command = f"echo $JOSTLE_RUN >> {tmp_path}/ran; [ $JOSTLE_ATTEMPT = 2 ] || exec sleep 600"
    plain = {"commands": [command], "workdir": "/", "name": "plain"}
    again = {**plain, "name": "again", "retry": {"max": 1, "backoff_after": 1, "backoff": 0.0}}
    context = {"env": {"PATH": os.environ["PATH"], "REBOOT_TEST": token}}
    to.call("submit", batch={}, context=context, jobs=[plain, again])
    ran_file = tmp_path / "ran"
    assert harness.until(lambda: ran_file.exists() and len(ran_file.read_text().split()) == 2)
    assert harness.until(lambda: to.call("hello")["counts"] == {"running": 2})
    shims = [runs_of(Reader(home), job)[0]["shim_pid"] for job in (1, 2)]
    pidfds = [os.pidfd_open(pid) for pid in (to.call("hello")["pid"], *shims)]
    for pidfd in pidfds:  # the power goes
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
    end_marked(token)
    to = start("boot-two")
    assert harness.until(lambda: set(to.call("hello")["counts"]) <= {"failed", "succeeded"})
    first, second = Reader(home).jobs()
    assert (first["state"], first["reason"]["code"], first["exit_code"]) == ("failed", "host_rebooted", None)
    assert len(Reader(home).runs(1)) == 1
    # only what the job itself allows is tried again, under a number of its own
    assert second["state"] == "succeeded" and [r["n"] for r in Reader(home).runs(2)] == [1, 2]
    assert sorted(ran_file.read_text().split()) == ["1.1", "2.1", "2.2"]
