"""Signals, deaths and stand-stills of the engine and of shims: what jobs notice of them (F4-F8, F12, F14-F16, F18-F20)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from jostle import client, proc
from tests.e2e.instance import SOURCE, Instance, alive, remove, said, until

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done; exit {1}"


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Instance:
    return shared


# --- the engine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_engine_and_touches_no_job(jostle: Instance, number: int) -> None:
    name = f"signal-{int(number)}"
    (id,) = jostle.submit({"commands": [WAITING.format(name, 5)]})
    pid = jostle.pid_in(name)
    jostle.reach(id, "running")
    jostle.kill_engine(number)
    assert alive(pid)
    assert "running jobs go on" in jostle.log()
    jostle.up(None)
    (jostle.work / f"{name}.go").touch()
    assert jostle.end(id) == ["failed"]
    assert (jostle.job(id)["exit_code"], jostle.job(id)["attempt"]) == (5, 1)


def test_a_hang_up_is_no_reason_to_end(jostle: Instance) -> None:
    pid = jostle.engine
    os.kill(pid, signal.SIGHUP)
    (id,) = jostle.submit({"gpus": [0, 0]})
    assert jostle.end(id) == ["succeeded"]
    assert jostle.engine == pid


def test_an_engine_that_stood_still_while_jobs_ended_tells_the_truth_afterwards(jostle: Instance) -> None:
    ids = jostle.submit(*[{"commands": [WAITING.format(f"still{code}", code)], "time_limit": 60} for code in (0, 3)])
    pids = [jostle.pid_in("still0"), jostle.pid_in("still3")]
    engine = jostle.engine
    os.kill(engine, signal.SIGSTOP)
    try:
        for name in ("still0.go", "still3.go"):
            (jostle.work / name).touch()
        until(lambda: not any(map(alive, pids)))
    finally:
        os.kill(engine, signal.SIGCONT)
    assert jostle.end(*ids) == ["succeeded", "failed"]
    rows = jostle.jobs(ids)
    assert [(rows[i]["exit_code"], rows[i]["attempt"]) for i in ids] == [(0, 1), (3, 1)]


def test_a_socket_that_is_removed_comes_back_and_jobs_do_not_notice(make_instance: Callable[..., Instance]) -> None:
    instance = make_instance()
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("gpus: sim:1x24\n")
    id = instance.add("--", WAITING.format("here", 0))
    pid, engine = instance.pid_in("here"), instance.engine
    for name in ("engine.sock", "engine.lock"):
        os.unlink(instance.home / name)
    assert len(instance.json("ps")["jobs"]) == 1
    other = instance.add("-g", "0", "--", "true")  # finds no socket, tries to start an engine, and waits for the one there is
    assert instance.end(other) == ["succeeded"]
    assert (instance.engine, alive(pid)) == (engine, True), "there is still one engine, and the same"
    (instance.work / "here.go").touch()
    assert instance.end(id) == ["succeeded"]


def daemon(home: Path) -> subprocess.Popen[str]:
    code = os.path.join(SOURCE, "jostle", "daemon.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", code, str(home), "sim:1x24"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, cwd="/", start_new_session=True, env={**os.environ, "JOSTLE_HOME": str(home)},
    )  # fmt: skip


def settled(children: list[subprocess.Popen[str]]) -> bool:
    return sum(child.poll() is None for child in children) <= 1


def holds(home: Path, pid: int) -> bool:
    return (home / "engine.lock").read_text() == str(pid)


def test_of_engines_that_race_for_one_home_exactly_one_lives(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    for _ in range(7):
        racers = [daemon(instance.home) for _ in range(4)]
        try:
            until(partial(settled, racers), "the end of all but one")
            (winner,) = [r for r in racers if r.poll() is None]
            assert {r.returncode for r in racers if r is not winner} == {1}
            until(partial(holds, instance.home, winner.pid))
        finally:
            for racer in racers:
                if racer.poll() is None:
                    racer.terminate()
                racer.communicate(timeout=60)


def test_the_second_of_two_engines_is_told_who_is_there_and_writes_nothing(instance: Instance) -> None:
    instance.up("sim:1x24")
    before = (instance.home / "jostle.db").read_bytes(), instance.events("submitted")
    r, w = os.pipe()
    code = os.path.join(SOURCE, "jostle", "daemon.py")
    child = subprocess.run(
        [sys.executable, "-I", "-S", code, str(instance.home), "sim:2x24", "--ready", str(w)],
        input="{}", text=True, pass_fds=[w], timeout=60, check=False,
    )  # fmt: skip
    os.close(w)
    with open(r) as pipe:
        assert pipe.read() == f"taken {instance.engine}\n"
    assert child.returncode == 0, "the one that was asked only forks"
    assert ((instance.home / "jostle.db").read_bytes(), instance.events("submitted")) == before


def test_a_dead_engines_socket_is_replaced_and_a_link_in_its_place_is_not_followed(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    victim = instance.root / "victim"
    victim.write_text("precious")
    os.symlink(victim, instance.home / "engine.sock")
    instance.up("sim:1x24")
    assert victim.read_text() == "precious"
    instance.kill_engine()
    assert (instance.home / "engine.sock").exists(), "the dead leave theirs behind"
    instance.up(None)
    assert instance.call("hello")["pid"]


def test_a_home_with_a_long_path_has_a_socket_all_the_same(make_instance: Callable[..., Instance]) -> None:
    instance = make_instance("x" * 120)
    assert len(str(instance.home / "engine.sock")) > 108
    instance.up("sim:1x24")
    (id,) = instance.submit({})
    assert instance.end(id) == ["succeeded"]


# --- shims and their runs


def shim_of(instance: Instance, id: int) -> int:
    return int(instance.runs(id)[-1]["shim_pid"])


def test_a_run_whose_shim_was_killed_goes_on_keeps_its_card_and_ends_as_unknown(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({"commands": [WAITING.format("lonely", 0)]})
    pid = instance.pid_in("lonely")
    instance.reach(id, "running")
    os.kill(shim_of(instance, id), signal.SIGKILL)
    until(lambda: instance.events("unsupervised", id), "it is noticed")
    assert alive(pid)
    (second,) = instance.submit({})
    assert instance.reason(second, "gpus")["gpus"][0]["code"] == "taken"
    (instance.work / "lonely.go").touch()
    assert instance.end(id) == ["failed"]
    row = instance.job(id)
    assert (row["reason"]["code"], row["exit_code"]) == ("exit_unknown", None), "exit 0 that nobody saw is no success"
    assert instance.end(second) == ["succeeded"]


def test_an_unsupervised_run_can_be_cancelled(jostle: Instance) -> None:
    (id,) = jostle.submit({"commands": [WAITING.format("stop-me", 0)]})
    pid = jostle.pid_in("stop-me")
    jostle.reach(id, "running")
    os.kill(shim_of(jostle, id), signal.SIGKILL)
    until(lambda: jostle.events("unsupervised", id))
    jostle.ok("cancel", str(id))
    until(lambda: not alive(pid))
    assert jostle.end(id) == ["cancelled"]


@pytest.mark.parametrize("shim", ["ends", "killed"])
def test_a_run_whose_directory_was_removed_is_not_started_again(instance: Instance, shim: str) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({"commands": ["echo >> begun; " + WAITING.format("bereft", 0)]})
    pid = instance.pid_in("bereft")
    instance.reach(id, "running")
    instance.kill_engine()
    remove(instance.home / "runs")
    if shim == "killed":
        os.kill(shim_of(instance, id), signal.SIGKILL)
    instance.up()
    if shim == "killed":
        until(lambda: instance.events("unsupervised", id), "it is noticed")
    assert alive(pid) and instance.job(id)["state"] == "running"
    (instance.work / "bereft.go").touch()
    assert instance.end(id) == ["failed"] and instance.job(id)["reason"]["code"] == "exit_unknown"
    assert [row["outcome"] for row in instance.runs(id)] == ["lost"]
    assert (instance.work / "begun").read_text() == "\n"


def test_a_run_lost_with_its_shim_is_tried_again_if_its_retry_says_so(jostle: Instance) -> None:
    script = 'echo $$ > "lost-$JOSTLE_ATTEMPT"; [ $JOSTLE_ATTEMPT = 2 ] || exec sleep 600'
    once, again = jostle.submit(
        {"commands": ["echo $$ > lost-once; exec sleep 600"]},
        {"commands": [script], "retry": {"max": 1, "backoff_after": 1, "backoff": 0.05}},
    )
    for id, name in ((once, "lost-once"), (again, "lost-1")):
        pid = jostle.pid_in(name)
        jostle.reach(id, "running")
        shim = shim_of(jostle, id)
        os.kill(shim, signal.SIGSTOP)  # so that it cannot see its child die
        for member in (pid, shim):
            os.kill(member, signal.SIGKILL)
    assert jostle.end(once, again) == ["failed", "succeeded"]
    assert jostle.job(once)["reason"]["code"] == "exit_unknown"
    assert [r["outcome"] for r in jostle.runs(again)] == ["lost", "succeeded"]


def test_what_a_job_left_in_a_session_of_its_own_is_swept_before_the_card_is_given_on(instance: Instance) -> None:
    instance.up("sim:1x24")
    stray = "setsid bash -c 'trap \"\" HUP; echo $$ > stray; sleep 60' & until [ -s stray ]; do sleep 0.01; done"
    left, after = instance.submit(
        {"commands": [stray], "queue": "q"},
        {"commands": ["kill -0 $(cat stray) 2>/dev/null && echo alive || echo gone"], "queue": "q"},
    )  # fmt: skip
    assert instance.end(left, after) == ["succeeded", "succeeded"]
    assert instance.output(after) == "gone\n"
    assert instance.runs(left)[0]["leftovers"], "they are named"


def test_a_tree_that_ignores_the_request_to_end_is_killed_after_the_grace(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("grace: 0.3\n")
    instance.up("sim:1x24")
    script = "trap '' TERM; (trap '' TERM; echo $BASHPID > inner; sleep 60) & echo $$ > outer; wait"
    (id,) = instance.submit({"commands": [script]})
    pids = [instance.pid_in("inner"), instance.pid_in("outer")]
    instance.ok("cancel", str(id))
    assert instance.end(id) == ["cancelled"]
    assert not any(map(alive, pids))
    row = instance.job(id)
    assert row["ended_at"] - instance.events("cancel_wanted", id)[0]["at"] >= 0.25


@pytest.mark.parametrize("orphaned", [False, True], ids=["", "without its shim"])
def test_a_job_has_the_grace_that_it_asked_for_whoever_sees_to_its_end(instance: Instance, orphaned: bool) -> None:
    """One beside it that asked for none is killed after that of the settings; it saves for as long as it takes."""
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("grace: 0.3\n")
    instance.up("sim:2x24")
    saves = "trap 'touch told; until [ -e go ]; do sleep 0.02; done; touch saved; exit 0' TERM; echo $$ > up; "
    slow, deaf = instance.submit(
        {"commands": [saves + "while :; do sleep 0.02; done"], "grace": 3600.0},
        {"commands": ["trap '' TERM; echo $$ > deaf; while :; do sleep 0.02; done"]},
    )
    pid, _ = instance.pid_in("up"), instance.pid_in("deaf")
    if orphaned:
        for id in (slow, deaf):
            os.kill(instance.runs(id)[0]["shim_pid"], signal.SIGKILL)
    instance.ok("cancel", str(slow))
    instance.made("told")
    instance.ok("cancel", str(deaf))
    assert instance.end(deaf) == ["cancelled"] and alive(pid)
    assert instance.job(slow)["grace"] == 3600.0
    (instance.work / "go").touch()
    assert instance.end(slow) == ["cancelled"]
    assert (instance.work / "saved").exists()


def test_who_ends_all_jobs_waits_for_as_long_as_one_of_them_may_take(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    instance.up("sim:1x24")
    saves = "trap 'touch told; until [ -e go ]; do sleep 0.02; done; exit 0' TERM; echo $$ > up; while :; do sleep 0.02; done"
    (id,) = instance.submit({"commands": [saves], "grace": 3600.0})
    instance.pid_in("up")
    monkeypatch.setattr(client, "GONE_WITHIN", 0.01)
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(client.down, instance.client(), stop_jobs=True)
        instance.made("told")
        (instance.work / "go").touch()
        assert ended.result(60) == (1, 0)
    assert instance.job(id)["state"] == "cancelled"


def test_a_job_killed_from_outside_says_so_and_hints_at_memory(jostle: Instance) -> None:
    (id,) = jostle.submit({"commands": ["kill -9 $$"], "gpus": [0, 0]})
    assert jostle.end(id) == ["failed"]
    row = jostle.job(id)
    assert (row["error_type"], row["exit_code"]) == ("signal_9", 137)
    assert "memory" in jostle.ok("why", str(id))


def test_a_job_that_ran_out_of_host_memory_fails_by_itself(jostle: Instance) -> None:
    script = "ulimit -v 200000; exec python3 -c 'x = bytearray(1 << 30)'"
    (id,) = jostle.submit({"commands": [script], "gpus": [0, 0]})
    assert jostle.end(id) == ["failed"]
    assert jostle.job(id)["exit_code"] == 1


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"commands": [["/no/such/program"]]}, "No such file"),
        ({"commands": [["/etc/passwd"]]}, "Permission denied"),
        ({"commands": [["./badly"]]}, "No such file"),
        ({"commands": ["true"], "workdir": "/no/such/place"}, "/no/such/place"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_started_says_why_once_and_frees_its_card(
    jostle: Instance, job: dict[str, object], words: str
) -> None:
    bad = jostle.work / "badly"
    bad.write_text("#!/no/interpreter\n")
    bad.chmod(0o755)
    (id,) = jostle.submit(job)
    assert jostle.end(id) == ["failed"]
    row = jostle.job(id)
    assert (row["error_type"], row["attempt"], words in said(row["reason"])) == ("start_failed", 1, True), row["reason"]
    (wide,) = jostle.submit({"gpus": [4, 4]})
    assert jostle.end(wide) == ["succeeded"]


def test_jobs_that_meddle_with_their_own_keepers_hurt_only_themselves(jostle: Instance) -> None:
    """S42: a killed shim, closed descriptors."""
    murder, closed, honest = jostle.submit(
        {"commands": ["kill -9 $PPID; sleep 0.1; exit 0"]},
        {"commands": ["for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done; sleep 0.05; exit 0"]},
        {},
    )  # fmt: skip
    assert jostle.end(murder, closed, honest) == ["failed", "succeeded", "succeeded"]
    assert jostle.job(murder)["exit_code"] is None


FORGED = {
    "exit": 'echo \'{"code": 0, "ended_at": 1}\' > exit', "link": "ln -s /etc/hostname exit",
    "pipe": "rm -f exit.new; mkfifo exit.new", "folder": "rm -f exit.new; mkdir exit.new",
    "claim": 'rm claim; echo \'{"void": true}\' > claim', "nothing": "rm -rf *",
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_s41_what_a_job_writes_among_the_records_of_its_own_run_makes_it_no_success(jostle: Instance, what: str) -> None:
    name = f"forged-{what}"
    meddling = f"cd {jostle.home}/runs/$JOSTLE_RUN && {FORGED[what]}; cd {jostle.work}; "
    (id,) = jostle.submit({"commands": [meddling + WAITING.format(name, 9)]})
    shim = proc.stat(jostle.pid_in(name))
    (other,) = jostle.submit({})
    assert jostle.end(other) == ["succeeded"] and jostle.job(id)["state"] == "running", "it lives, whatever it wrote"
    (jostle.work / f"{name}.go").touch()
    assert jostle.end(id) == ["failed"] and jostle.job(id)["exit_code"] == 9
    log = f"{jostle.home}/runs/{id}.1/log"
    until(lambda: shim is None or log not in proc.open_files(shim.ppid), "its shim is done with it, whatever it found there")


def test_s42_a_job_that_kills_its_engine_goes_on_and_is_neither_lost_nor_run_twice(jostle: Instance) -> None:
    pid = jostle.engine
    (id,) = jostle.submit({"commands": [f"echo begun >> killer-runs; kill -9 {pid}; " + WAITING.format("killer", 7)]})
    jostle.made("killer")
    until(lambda: not alive(pid), "the end of the engine")
    (jostle.work / "killer.go").touch()
    jostle.up()
    assert jostle.end(id) == ["failed"] and jostle.job(id)["exit_code"] == 7
    assert (jostle.work / "killer-runs").read_text() == "begun\n" and len(jostle.runs(id)) == 1


def test_nothing_listens_on_the_network(jostle: Instance) -> None:
    inodes = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/net/{table}") as f:
            inodes |= {line.split()[9] for line in f.readlines()[1:]}
    for pid in jostle.processes():
        for target in proc.open_files(pid):
            assert target.removeprefix("socket:[").removesuffix("]") not in inodes or not target.startswith("socket:")
