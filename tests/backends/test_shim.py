"""What a shim does with the commands of one run: real processes all the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench, MakeBench, mark

from jostle import proc
from jostle.backends.local import joblog, process

RUN = (7, 1)


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_the_exit_code_is_the_commands(bench: Bench, code: int) -> None:
    end = bench.carry(RUN, f"exit {code}")
    assert (end.code, end.signal, end.error) == (code, None, "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_death_by_signal_is_named(bench: Bench, number: int) -> None:
    end = bench.carry(RUN, f"kill -{int(number)} $$")
    assert (end.code, end.signal) == (128 + number, number)


def test_commands_run_in_order_until_one_fails(bench: Bench) -> None:
    end = bench.carry(RUN, "echo one", ["echo", "two"], "echo three; exit 4", "echo never")
    assert end.code == 4
    assert bench.log(RUN) == "one\ntwo\nthree\n"
    assert end.tail == "one\ntwo\nthree\n"


def test_words_of_an_argv_are_never_read_by_a_shell(bench: Bench) -> None:
    end = bench.carry(RUN, ["printf", "%s|", "$HOME", "; rm -rf x", "a b", "*"])
    assert end.code == 0 and end.tail == ""
    assert bench.log(RUN) == "$HOME|; rm -rf x|a b|*|"


def test_the_given_path_decides_which_program_it_is(bench: Bench) -> None:
    tool = bench.home / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    end = bench.carry(RUN, ["tool"], env={"PATH": f"/nowhere:{tool.parent}"})
    assert (end.code, bench.log(RUN)) == (0, "mine\n")


def test_a_run_sees_its_environment_directory_umask_and_limits_and_no_others(bench: Bench) -> None:
    (bench.home / "w").mkdir()
    end = bench.carry(
        RUN,
        "echo \"$X\"; pwd; umask; ulimit -n; env | wc -l; cat /proc/self/stat | cut -d' ' -f6; read line || echo no input",
        env={"X": "a\tb"},
        workdir=str(bench.home / "w"),
        umask=0o027,
        limits={"nofile": [333, 4096]},
    )
    assert end.code == 0
    lines = bench.log(RUN).splitlines()
    shim = json.loads((bench.dir(RUN) / "claim").read_text())["pid"]
    assert lines[:4] == ["a\tb", str(bench.home / "w"), "0027", "333"]
    assert int(lines[4]) <= 6  # PATH, X, the marker, and what bash adds
    assert lines[5:] == [str(shim), "no input"]


def test_signals_are_as_a_program_expects_them(bench: Bench) -> None:
    bench.carry(RUN, "grep -E 'SigBlk|SigIgn' /proc/self/status")
    blocked, ignored = (int(line.split()[1], 16) for line in bench.log(RUN).splitlines())
    libc_internal = 0b11 << 31  # signals 32 and 33, which no program can set
    assert (blocked, ignored & ~libc_internal) == (0, 0)


@pytest.mark.parametrize(
    ("command", "more", "code", "text"),
    [
        (["no-such-program"], {}, 127, "no-such-program: command not found"),
        (["/no/such/program"], {}, 127, "/no/such/program: No such file or directory"),
        (["/etc"], {}, 126, "/etc: Permission denied"),
        (["plain-file"], {"env": {"PATH": "/etc:."}}, 126, "plain-file: Permission denied"),
        ("true", {"workdir": "/no/such/dir"}, 127, "working directory /no/such/dir: No such file or directory"),
        ("true", {"log": "/proc/nowhere/log"}, 127, "log /proc/nowhere/log"),
        (["a\0b"], {}, 126, "embedded null byte"),
        (["true", "x" * 300_000], {}, 126, "true: Argument list too long"),
    ],
)
def test_a_start_that_fails_says_why_and_frees_the_gpu(
    bench: Bench, command: str | list[str], more: dict[str, object], code: int, text: str
) -> None:
    (bench.home / "plain-file").write_text("")
    end = bench.carry(RUN, command, wants=[("GPU-1", None)], **more)
    assert end.code == code
    assert text in end.error
    assert bench.local.claims() == []


def test_a_spec_larger_than_a_socket_buffer_arrives_whole(bench: Bench) -> None:
    big = {f"V{i}": "x" * 50_000 for i in range(20)}
    end = bench.carry(RUN, "echo ${#V0} ${#V19}", env=big)
    assert (end.code, bench.log(RUN)) == (0, "50000 50000\n")


def test_a_stop_ends_a_tree_that_ignores_term(bench: Bench) -> None:
    deaf = "trap '' TERM; (trap '' TERM; touch a; while :; do sleep 100; done) & touch b; while :; do sleep 100; done"
    bench.start(RUN, deaf, grace=0.2)
    bench.running(RUN, "a", "b")
    bench.stop(RUN, kill=False)
    end = bench.end(RUN)
    assert end.signal == signal.SIGKILL
    assert process.members(mark(*RUN)) == []


def test_a_stop_lets_a_program_finish_within_its_grace(bench: Bench) -> None:
    bench.start(RUN, "trap 'echo saved; exit 5' TERM; touch ready; while :; do sleep 0.05; done", grace=20.0)
    bench.running(RUN, "ready")
    bench.stop(RUN, kill=False)
    assert bench.end(RUN).code == 5
    assert "saved" in bench.log(RUN)


def test_a_kill_does_not_wait_for_the_grace(bench: Bench) -> None:
    bench.start(RUN, "trap '' TERM; touch ready; while :; do sleep 100; done", grace=1000.0)
    bench.running(RUN, "ready")
    bench.stop(RUN, kill=False)
    bench.stop(RUN, kill=True)
    assert bench.end(RUN).signal == signal.SIGKILL


def test_a_stop_keeps_later_commands_from_starting(bench: Bench) -> None:
    bench.start(RUN, "trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done", "touch second")
    bench.running(RUN, "ready")
    bench.stop(RUN, kill=False)
    end = bench.end(RUN)
    assert (end.code, end.stopped) == (0, True)
    assert not (bench.home / "second").exists()


DAEMON = "setsid sh -c 'trap \"\" HUP; echo $$ > pid; touch up; sleep 1000' & while [ ! -e up ]; do sleep 0.01; done"


def test_a_grandchild_in_a_session_of_its_own_is_swept(bench: Bench) -> None:
    end = bench.carry(RUN, DAEMON, wants=[("GPU-1", None)])
    pid = int((bench.home / "pid").read_text())
    assert end.code == 0
    assert pid in end.leftovers
    assert proc.stat(pid) is None
    assert bench.local.claims() == []


def test_leftovers_may_be_waited_for(bench: Bench) -> None:
    rest = "(while [ ! -e go ]; do sleep 0.01; done; touch done) & exit 3"
    bench.start(RUN, rest, leftovers="wait", wants=[("GPU-1", None)])
    bench.until(lambda: _children(bench, RUN) == 1 or None, what="only the leftover lives")
    bench.until(lambda: bench.has_begun(RUN))
    assert len(bench.local.claims()) == 1
    (bench.home / "go").touch()
    end = bench.end(RUN)
    assert (end.code, end.leftovers) == (3, ())
    assert (bench.home / "done").exists()


def _children(bench: Bench, run: tuple[int, int]) -> int:
    claim = bench.dir(run) / "claim"
    if not claim.exists():
        return -1
    pid = json.loads(claim.read_text())["pid"]
    kids = [s for s in map(proc.stat, proc.tree(pid)) if s is not None and s.ppid == pid]
    return len(kids)


def test_the_time_limit_holds_over_all_commands(bench: Bench) -> None:
    end = bench.carry(RUN, "true", "sleep 1000", "touch never", time_limit=0.3, grace=60.0)
    assert end.timed_out
    assert end.signal == signal.SIGTERM
    assert end.ran_for is not None and end.ran_for >= 0.3
    assert not (bench.home / "never").exists()


def test_a_run_within_its_time_limit_is_not_timed_out(bench: Bench) -> None:
    assert not bench.carry(RUN, "true", time_limit=60.0).timed_out


def test_an_older_log_is_put_aside(bench: Bench) -> None:
    log = bench.home / "logs" / "deep" / "x.log"
    for n, word in enumerate(("first", "second", "third"), start=1):
        bench.carry((n, 1), f"echo {word}", log=str(log))
    assert log.read_text() == "third\n"
    assert (log.with_name("x.log.1")).read_text() == "first\n"
    assert (log.with_name("x.log.2")).read_text() == "second\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_device_is_never_renamed_and_a_fifo_never_waited_for(bench: Bench) -> None:
    assert bench.carry((1, 1), "echo hi; exit 2", log="/dev/null").tail == ""
    os.mkfifo(bench.home / "fifo")
    assert "fifo" in bench.carry((2, 1), "echo hi", log=str(bench.home / "fifo")).error
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_log_over_its_cap_loses_its_middle(bench: Bench) -> None:
    flood = "echo the head; head -c 6000000 /dev/zero | tr '\\0' x; touch full; while [ ! -e go ]; do sleep 0.02; done; echo end"
    bench.start(RUN, flood, log_cap_mib=1)
    bench.running(RUN, "full")
    log = bench.dir(RUN) / "log"
    bench.until(lambda: log.stat().st_blocks * 512 < 1 << 20, what="the hole")
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0
    text = log.read_bytes()
    assert len(text) == 6000000 + len(b"the head\nend\n")
    assert text.startswith(b"the head\nxxx") and text.endswith(b"xxxend\n")
    assert len(re.findall(rb"\n\[jostle: +[\d.]+ MiB of this log were dropped here to keep it under 1 MiB\]\n", text)) == 1
    assert text.count(b"jostle:") == 1
    dropped = float(re.search(rb"([\d.]+) MiB of this log", text)[1])
    assert dropped == round(text.count(0) / (1 << 20), 1), "the line says how much is missing"


def test_a_log_is_under_its_cap_at_the_end_and_never_far_above_it(bench: Bench) -> None:
    """It prints far more than the cap, five times, and goes on each time when its log is under it again: else it would not end.
    The last time it does not wait for that."""
    cap, log = 8 << 20, bench.dir(RUN) / "log"
    flood = "head -c 50000000 /dev/zero | tr '\\0' x"
    under = f"until [ $(($(stat -c %b {log}) * 512)) -le {cap} ]; do sleep 0.02; done"
    end = bench.carry(RUN, f"for i in 1 2 3 4 5; do {flood}; {under}; done; {flood}", log_cap_mib=8)
    assert end.code == 0 and log.stat().st_size >= 300_000_000
    assert log.stat().st_blocks * 512 <= cap


def test_capping_what_is_no_file_does_nothing() -> None:
    r, w = os.pipe()
    try:
        assert joblog.cap_log(w, 0) is False
        assert joblog.tail(w) == ""
    finally:
        os.close(r)
        os.close(w)


def test_the_exit_record_holds_times_and_memory(bench: Bench) -> None:
    end = bench.carry(RUN, "true")
    assert end.started_at is not None and end.ended_at is not None and end.ran_for is not None
    assert end.started_at <= end.ended_at
    assert end.rss_mib is not None and end.rss_mib >= 1


def test_an_exit_record_is_written_when_the_disk_has_room_again(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "shim.before_exit_write=ENOSPC@1")
    bench = make_bench()
    bench.carry(RUN, "exit 9")
    bench.until((bench.dir(RUN) / "exit").exists)
    assert json.loads((bench.dir(RUN) / "exit").read_text())["code"] == 9


def test_an_error_in_the_shim_itself_is_an_end_with_a_reason(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "shim.after_claim=EIO")
    bench = make_bench()
    end = bench.carry(RUN, "touch never")
    assert end.code is None and "its shim failed" in end.error
    assert not (bench.home / "never").exists()


def test_jobs_are_to_go_before_those_who_look_after_them_when_memory_runs_out(bench: Bench) -> None:
    bench.start(RUN, "while [ ! -e go ]; do sleep 0.02; done; cat /proc/self/oom_score_adj")
    bench.until(lambda: bench.has_begun(RUN))
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert int(bench.log(RUN)) == min(1000, own + process.OOM_MORE)


def test_a_run_inherits_its_leases_and_nothing_else(bench: Bench) -> None:
    bench.carry(RUN, ["sh", "-c", "ls -l /proc/$$/fd | awk '{print $NF}'"], wants=[("GPU-1", None), ("GPU-2", 100)])
    shown = [line for line in bench.log(RUN).splitlines() if line.startswith("/") and "/fd" not in line]
    log, leases = str(bench.dir(RUN) / "log"), str(bench.lease_dir)
    life = str(bench.dir(RUN) / "claim")  # its lock is the proof that somebody of the run lives
    assert sorted(set(shown) - {"/dev/null", log}) == sorted([life, *(n for n in shown if n.startswith(leases))])
    assert len([n for n in shown if n.startswith(leases)]) == 2


def test_a_signal_needs_a_proof() -> None:
    child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    try:
        assert proc.signal_proven(child, signal.SIGKILL, lambda pid: False) is False
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        assert proc.signal_proven(child, signal.SIGKILL, process.is_descendant) is True
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert proc.signal_proven(child, signal.SIGKILL, lambda pid: True) is False
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise


def test_a28_each_command_has_its_own_time_limit(bench: Bench) -> None:
    """Three commands that together take longer than the limit of one."""
    end = bench.carry(RUN, "sleep 2", "sleep 2", "sleep 2", command_limit=5.0)
    assert (end.code, end.timed_out) == (0, False)


def test_a28_the_command_that_exceeds_its_limit_ends_the_run(bench: Bench) -> None:
    end = bench.carry(RUN, "true", "sleep 1000", "touch never", command_limit=0.3, grace=60.0)
    assert end.timed_out and end.signal == signal.SIGTERM
    assert not (bench.home / "never").exists()


@pytest.mark.parametrize("command", ["true", "rm -r {dir}", "echo a; sleep 0.1; exit 3"])
def test_a_run_with_its_log_elsewhere_leaves_no_empty_one_behind(bench: Bench, command: str) -> None:
    """Whether it ends at once, takes its time, or removes its own directory in the first moment."""
    end = bench.carry(RUN, command.format(dir=bench.dir(RUN)), log=str(bench.home / "mine"))
    assert (end.error, end.code) == ("", 3 if "exit" in command else 0)
    bench.forget(RUN)
    bench.until(lambda: not (bench.dir(RUN) / "log").exists(), what="no log of ours")
    assert (bench.home / "mine").exists()


def test_commands_that_end_at_once_are_not_told_as_started_one_that_follows_is(bench: Bench) -> None:
    bench.start(RUN, "true", "true", "until [ -e go ]; do sleep 0.01; done; exit 4")
    bench.until(lambda: bench.has_begun(RUN), what="the last command runs")
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 4


def test_a_log_that_is_the_runs_own_by_another_name_is_kept(bench: Bench) -> None:
    (bench.home / "other").symlink_to(bench.home)
    bench.carry(RUN, "echo kept", log=f"{bench.home}/other/runs/{RUN[0]}.{RUN[1]}/log")
    bench.forget(RUN)
    assert bench.log(RUN) == "kept\n"


def test_a_cleaner_that_empties_waiting_directories_costs_no_log(bench: Bench) -> None:
    bench.until(lambda: bench.local.capacity() >= 2)
    bench.until(lambda: len(list((bench.home / "runs").glob(".*/exit.new"))) == 2)
    for path in (bench.home / "runs").glob(".*/*"):
        path.unlink()
    assert bench.carry(RUN, "echo here").code == 0
    assert bench.log(RUN) == "here\n" and (bench.dir(RUN) / "claim").exists()
    shim = json.loads((bench.dir(RUN) / "claim").read_text())["pid"]
    runs = bench.home / "runs"
    bench.until(lambda: all((p / "lock").exists() for p in runs.glob(f".{shim}-*")), what="nor does it leave a directory behind")


def test_a_run_starts_though_somebody_removed_the_directory_of_all_runs(bench: Bench) -> None:
    bench.until(lambda: len(list((bench.home / "runs").glob(".*/exit.new"))) == bench.local.capacity() >= 2)
    shutil.rmtree(bench.home / "runs")
    assert bench.carry(RUN, "echo here").code == 0
    assert bench.log(RUN) == "here\n"


def test_a_start_that_was_called_off_leaves_no_directory(bench: Bench) -> None:
    reservation = bench.reserve(RUN)
    os.kill(reservation.pid, signal.SIGTERM)
    bench.give(reservation, bench.spec(RUN, ["true"]))
    bench.report(RUN, "not_started")
    bench.until(lambda: not [*(bench.home / "runs").glob(f".{reservation.pid}-*")], what="no directory is left")


@pytest.mark.parametrize(("more", "timed_out"), [({}, False), ({"time_limit": 3.0}, True)])
def test_a_run_that_is_stopped_before_its_last_command_has_not_succeeded(
    bench: Bench, more: dict[str, Any], timed_out: bool
) -> None:
    """Though the command that was under way ended well."""
    going = "trap 'touch told' TERM; touch going; until [ -e told ]; do sleep 0.01; done; true"
    bench.start(RUN, going, "touch never", **more)
    bench.until(lambda: (bench.home / "going").exists())
    if not timed_out:
        bench.stop(RUN, kill=False)
    end = bench.end(RUN)
    assert (end.code, end.stopped, end.timed_out) == (0, True, timed_out)
    assert not (bench.home / "never").exists()


def test_a_run_that_ended_before_it_was_told_to_is_not_stopped(bench: Bench) -> None:
    """A cancel that comes too late, while what it left behind is being ended."""
    deaf = "(trap 'touch told' TERM; touch deaf; while [ ! -e go ]; do sleep 0.01; done) & until [ -e deaf ]; do sleep 0.01; done"
    bench.start(RUN, deaf)
    bench.running(RUN, "told")
    bench.stop(RUN, kill=False)
    (bench.home / "go").touch()
    end = bench.end(RUN)
    assert (end.code, end.stopped) == (0, False)
