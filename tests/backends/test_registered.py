"""A run's part in the uni_id file: its entry, its word, the processes it hands over to. Real shims, and people's real scripts."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench, MakeBench, mark

from jostle import proc
from jostle.backends.local.registered import Register
from jostle.core.model import Exit
from jostle.uniid import Entry, UniIdFile, entry_of

RUN = (7, 1)
ME = mark(7, 1)
SEED = Path(__file__).parent / "seed_002"
"""The shell code printed in the old documents, as it stands."""

STARTED_WITHIN = 8.0  # s; a time limit in which a busy host has started the program that says a word
SET = f"{sys.executable} {Path(__file__).parent / 'say.py'}"


def file(bench: Bench) -> Path:
    return bench.home / "script_process" / "uni_id.json"


def entries(bench: Bench) -> dict[str, Any]:
    try:
        found = json.loads(file(bench).read_text())
    except (OSError, ValueError):
        return {}
    assert isinstance(found, dict)
    return found


def more(bench: Bench, **given: Any) -> dict[str, Any]:
    return {"uni_id_file": str(file(bench)), "failures": 2, "leftovers": "wait", **given}


def carry(bench: Bench, *commands: str, **given: Any) -> Exit:
    return bench.carry(RUN, *commands, **more(bench, **given))


def word(state: str, kind: str = "", pid: str = "0") -> str:
    """A command that says a word as people's scripts do: in place and without a lock."""
    return f"{SET} {ME} {state} {pid} {kind}"


# --- the entry


def test_a21_a22_the_entry_is_there_before_the_first_command_and_gone_after_success(bench: Bench) -> None:
    end = carry(bench, "cat script_process/uni_id.json", umask=0o022)
    shim = json.loads((bench.dir(RUN) / "claim").read_text())["pid"]
    assert json.loads(bench.log(RUN)) == {ME: {"pid": shim, "state": "running", "retry_count": 2}}
    assert (end.code, end.said, entries(bench)) == (0, "", {})
    assert file(bench).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("command", "given", "kind"),
    [
        ("exit 3", {}, "exit_code_3"),
        ("kill -9 $$", {}, "signal_9"),
        ("echo CUDA out of memory; exit 1", {}, "oom"),
        ("echo RuntimeError: x; exit 1", {}, "runtime_error"),
        ("sleep 1000", {"time_limit": 0.2}, "timeout"),
    ],
)
def test_a27_the_entry_of_a_failure_is_kept_with_its_kind(bench: Bench, command: str, given: dict[str, Any], kind: str) -> None:
    carry(bench, command, **given)
    assert entry_of(entries(bench)[ME])._replace(pid=0) == Entry(0, "abnormal_exit", 2, kind)  # type: ignore[union-attr]


def test_a22_without_a_uni_id_file_nothing_is_written(bench: Bench) -> None:
    end = bench.carry(RUN, "true")
    assert (end.said, end.said_type) == ("", "") and not file(bench).parent.exists()


@pytest.mark.parametrize("place", ["/proc/nowhere/uni_id.json", "/dev/null/x.json", "/etc", "/dev/null"])
def test_a22_a_file_that_cannot_be_written_does_not_touch_the_task(bench: Bench, place: str) -> None:
    end = carry(bench, "echo did it", "exit 4", uni_id_file=place)
    assert (end.code, end.error) == (4, "")
    assert "did it\n" in bench.log(RUN) and f"jostle: {place}: " in bench.log(RUN)


def test_a22_an_entry_that_another_writer_wiped_out_is_put_back(bench: Bench) -> None:
    bench.start(RUN, "while [ ! -e go ]; do sleep 0.02; done", **more(bench))
    bench.until(lambda: ME in entries(bench))
    for wiped in ("{}", '{"other": 1}', f'{{"{ME}": null}}'):
        file(bench).write_text(wiped)
        bench.until(lambda: (entries(bench).get(ME) or {}).get("state") == "running", what=f"put back after {wiped}")
    file(bench).unlink()
    bench.until(lambda: ME in entries(bench), what="put back after the file was removed")
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


def test_a23_a_file_damaged_during_the_run_is_kept_and_replaced(bench: Bench) -> None:
    bench.start(RUN, "while [ ! -e go ]; do sleep 0.02; done", **more(bench))
    bench.until(lambda: ME in entries(bench))
    file(bench).write_text('{"half": {"pid": 1')
    bench.until(lambda: ME in entries(bench), what="the entry again")
    [kept] = file(bench).parent.glob("uni_id.json.damaged-*")
    assert kept.read_text() == '{"half": {"pid": 1'
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0
    assert f"kept as {kept}" in bench.log(RUN)


# --- words


@pytest.mark.parametrize(
    ("said", "kind", "code"),
    [("normal_exit", "", 1), ("normal_exit", "", 0), ("abnormal_exit", "oom", 0), ("abnormal_exit", "", 5)],
)
def test_a22_the_word_of_a_script_is_heard_beside_its_exit_code(bench: Bench, said: str, kind: str, code: int) -> None:
    end = carry(bench, f"{word(said, kind)}; exit {code}")
    assert (end.said, end.said_type, end.code) == (said, kind, code)
    assert (ME in entries(bench)) == (said == "abnormal_exit")


def test_a22_the_last_word_counts(bench: Bench) -> None:
    end = carry(bench, f"{word('abnormal_exit', 'oom')}; {word('normal_exit')}; exit 1")
    assert end.said == "normal_exit"


def test_a22_a_word_is_about_the_command_that_said_it(bench: Bench) -> None:
    end = carry(bench, f"{word('normal_exit')}; exit 1", "echo second; exit 9", "echo never")
    assert (end.code, end.said, bench.log(RUN)) == (9, "", "second\n")


def test_a22_a_bad_word_ends_the_task_whatever_the_exit_code(bench: Bench) -> None:
    end = carry(bench, word("abnormal_exit", "oom"), "touch never")
    assert (end.code, end.said, end.said_type) == (0, "abnormal_exit", "oom")
    assert not (bench.home / "never").exists()


@pytest.fixture
def register(bench: Bench) -> Iterator[Register]:
    """A run's register without the run."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})  # as in a shim
    made = Register(bench.spec(RUN, ["true"], **more(bench)), lambda text: None)
    made.begin()
    yield made
    facts = {"error": "", "tail": "", "timed_out": False, "stopped": False, "signal": None, "said": "", "said_type": ""}
    made.conclude({"code": 0, **facts})
    made.close()
    signal.sigtimedwait({signal.SIGIO}, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("inotify", [True, False])
def test_a22_a_word_that_another_writer_wipes_out_has_been_heard(bench: Bench, register: Register, inotify: bool) -> None:
    """He read the file before the word was said, and writes it back; the word is put back, but not at once again and again."""
    if not inotify:
        assert register._watch is not None
        register._watch.close()
        register._look_at = 0.0
    stale, now = file(bench).read_text(), time.monotonic()
    said = json.dumps({ME: {"pid": 0, "state": "abnormal_exit", "error_type": "oom"}})
    file(bench).write_text(said)
    register.step(now)
    for _ in range(2):
        file(bench).write_text(stale)
        register.step(now := now + 2.0)
        assert (register.said, register.said_type) == ("abnormal_exit", "oom")
        assert entries(bench)[ME]["error_type"] == "oom", "put back"
    file(bench).write_text(stale)
    register.step(now + 0.01)
    assert file(bench).read_text() == stale and register.due is not None
    register.step(register.due)
    register.step(now + 2.0)
    assert entries(bench)[ME]["error_type"] == "oom"


def test_a22_a_process_registered_after_a_word_begins_a_new_part(bench: Bench) -> None:
    """The first part said that it went well; the second registers itself and is killed: the exit code decides."""
    second = f"sleep 1000 & {word('running', '', '$!')}; kill -9 $!; wait $!; exit 137"
    end = carry(bench, f"{word('normal_exit')}; {second}")
    assert (end.said, end.code) == ("", 137)


def test_a29_an_entry_from_before_this_run_is_no_word(bench: Bench) -> None:
    file(bench).parent.mkdir()
    file(bench).write_text(json.dumps({ME: {"pid": 1, "state": "normal_exit"}}))
    end = carry(bench, "exit 1")
    assert (end.said, end.code) == ("", 1)


def test_a29_a_word_written_into_a_replaced_file_is_heard(bench: Bench) -> None:
    """The script has the file open when we, or another of us, replace it."""
    late = "import sys, json; f = open(sys.argv[1], 'r+'); open('open', 'w'); sys.stdin.read(); f.truncate(); "
    late += f"json.dump({{{ME!r}: {{'pid': 0, 'state': 'abnormal_exit', 'error_type': 'oom'}}}}, f)"
    os.mkfifo(bench.home / "go")
    bench.start(RUN, f"{sys.executable} -c {shlex.quote(late)} script_process/uni_id.json < go; exit 0", **more(bench))
    go = os.open(bench.home / "go", os.O_WRONLY)
    bench.running(RUN, "open")
    other = UniIdFile(str(file(bench)))
    other.change(lambda data: bool(data.update({"other": 1})) or True, settle=False)
    os.close(go)
    end = bench.end(RUN)
    other.close()
    assert (end.said, end.said_type) == ("abnormal_exit", "oom")
    assert entries(bench)["other"] == 1


# --- hand-over


def test_a22_a_task_goes_on_while_a_process_that_it_registered_lives(bench: Bench) -> None:
    child = f"{sys.executable} -c 'import os; open(\"ready\", \"w\"); os.read(os.open(\"go\", os.O_RDONLY), 1)'"
    os.mkfifo(bench.home / "go")
    script = f"nohup setsid {child} > /dev/null 2>&1 & {word('running', '', '$!')}; exit 0"
    bench.start(RUN, script, **more(bench, leftovers="kill"))
    bench.running(RUN, "ready")
    bench.until(lambda: len(proc.tree(os.getpid())) and entries(bench).get(ME, {}).get("pid"))
    bench.until(lambda: bench.has_begun(RUN))
    os.close(os.open(bench.home / "go", os.O_WRONLY))
    end = bench.end(RUN)
    assert (end.code, end.leftovers, entries(bench)) == (0, (), {})


def test_a22_the_word_of_the_background_process_is_the_last_one(bench: Bench) -> None:
    inner = f"(until [ -e go ]; do sleep 0.02; done; {word('abnormal_exit', 'runtime_error')})"
    bench.start(RUN, f"{inner} & {word('running', '', '$!')}; touch left; exit 0", **more(bench))
    bench.running(RUN, "left")
    (bench.home / "go").touch()
    end = bench.end(RUN)
    assert (end.code, end.said, end.said_type) == (0, "abnormal_exit", "runtime_error")


@pytest.fixture
def stranger(bench: Bench) -> Any:
    """A process that is no descendant of the shim; its environment as asked for."""
    made: list[subprocess.Popen[bytes]] = []

    def make(**env: str) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(["sleep", "1000"], env={"PATH": os.environ["PATH"], **env}, start_new_session=True))
        return made[-1]

    yield make
    for child in made:
        child.kill()
        child.wait()


def test_a22_a_registered_process_of_another_parent_is_waited_for(bench: Bench, stranger: Any) -> None:
    other = stranger()
    bench.start(RUN, word("running", "", str(other.pid)), **more(bench))
    bench.until(lambda: "waiting for process" in (bench.log(RUN) if (bench.dir(RUN) / "log").exists() else ""))
    bench.until(lambda: bench.has_begun(RUN))
    other.kill()
    other.wait()
    end = bench.end(RUN)
    assert (end.code, end.said) == (0, "")


def test_a22_the_time_limit_holds_while_a_registered_process_is_waited_for(bench: Bench, stranger: Any) -> None:
    other = stranger(JOSTLE_UNI_ID=ME)
    end = carry(bench, word("running", "", str(other.pid)), time_limit=STARTED_WITHIN)
    assert (end.timed_out, end.stopped, other.wait(60)) == (True, True, -signal.SIGTERM)
    assert entries(bench)[ME]["state"] == "abnormal_exit"


def test_a22_a_stop_ends_a_registered_process_that_is_provably_of_this_run_only(bench: Bench, stranger: Any) -> None:
    for n, env in enumerate(({proc.MARK: mark(1, 1)}, {}), start=1):
        other, run = stranger(**env), (n, 1)
        say = word("running", "", str(other.pid)).replace(ME, mark(n, 1))
        bench.start(run, say, **more(bench))
        log = bench.dir(run) / "log"
        bench.until(lambda log=log: log.exists() and "waiting for process" in log.read_text())
        bench.stop(run, kill=False)
        bench.end(run)
        if env:
            assert other.wait(60) == -signal.SIGTERM
        else:
            assert other.poll() is None and "it is let go, not ended" in log.read_text()


def test_a22_what_may_still_be_at_work_is_not_let_go_by_a_time_limit(bench: Bench, stranger: Any) -> None:
    """Else the next try would run beside it. A person who wants the run to end is obeyed."""
    other = stranger()
    bench.start(RUN, word("running", "", str(other.pid)), **more(bench, time_limit=STARTED_WITHIN, grace=0.2))
    log = bench.dir(RUN) / "log"
    bench.until(lambda: log.exists() and "it is waited for, not ended" in log.read_text())
    bench.until(lambda: bench.has_begun(RUN))
    assert other.poll() is None
    bench.stop(RUN, kill=False)
    end = bench.end(RUN)
    assert end.timed_out and other.poll() is None


def test_a22_a_registered_process_keeps_its_run_open_when_the_shim_is_killed(bench: Bench, stranger: Any) -> None:
    other = stranger()
    bench.start(RUN, word("running", "", str(other.pid)), **more(bench))
    bench.until(lambda: "waiting for process" in (bench.log(RUN) if (bench.dir(RUN) / "log").exists() else ""))
    os.kill(json.loads((bench.dir(RUN) / "claim").read_text())["pid"], signal.SIGKILL)
    report = bench.unsupervised(RUN)
    assert report.pids == (other.pid,)
    other.kill()
    other.wait()
    assert bench.until(lambda: r if (r := bench.poll(RUN)).kind == "gone" else None)


def test_a22_a_word_about_an_earlier_command_is_no_success_of_a_run_that_was_stopped(bench: Bench) -> None:
    end = carry(bench, f"{word('normal_exit')}; sleep 1000", "touch never", time_limit=1.0, grace=0.5)
    assert (end.stopped, end.timed_out, (bench.home / "never").exists()) == (True, True, False)
    assert entries(bench)[ME]["error_type"] == "timeout"


def test_a22_a_word_about_the_last_command_holds_though_it_was_stopped(bench: Bench) -> None:
    """It has done what it was for, and did not find its end."""
    end = carry(bench, "true", f"{word('normal_exit')}; sleep 1000", time_limit=STARTED_WITHIN, grace=0.5)
    assert (end.stopped, end.timed_out, end.said, entries(bench)) == (False, True, "normal_exit", {})


@pytest.mark.parametrize("said", ["normal_exit", "abnormal_exit"])
def test_a22_the_word_counts_though_the_shim_was_killed_before_it_was_said(bench: Bench, said: str) -> None:
    command = "touch began; while [ ! -e go ]; do sleep 0.01; done; " + word(said, "oom")
    bench.start(RUN, command, **more(bench))
    bench.running(RUN, "began")
    os.kill(json.loads((bench.dir(RUN) / "claim").read_text())["pid"], signal.SIGKILL)
    bench.until(lambda: bench.is_unsupervised(RUN) or None)
    (bench.home / "go").touch()
    report = bench.until(lambda: r if (r := bench.poll(RUN)).kind != "alive" else None)
    assert report.kind == "ended" and report.exit is not None
    assert (report.exit.code, report.exit.said, report.exit.said_type) == (None, said, "oom")


def test_a22_what_is_waited_for_is_told_in_the_log(bench: Bench) -> None:
    bench.start(RUN, "(while [ ! -e go ]; do sleep 0.01; done) & true", **more(bench))
    log = bench.dir(RUN) / "log"
    bench.until(lambda: log.exists() and "waiting for what they left running: process" in log.read_text())
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


def test_a29_a_pid_is_taken_with_its_start_so_that_its_next_owner_is_not_waited_for(
    bench: Bench, register: Register, stranger: Any
) -> None:
    other = stranger()
    UniIdFile(str(file(bench))).put(ME, pid=other.pid, state="running")
    register.last_look()
    assert register.waits()
    register._pids[other.pid] -= 1  # as if the process that was registered had started earlier, and had this pid
    assert not register.waits()


@pytest.mark.parametrize("pid", ["0", "1", "2", "4194304", "-5", "999999999999"])
def test_a22_a_pid_that_can_be_nobody_of_ours_is_not_waited_for(bench: Bench, pid: str) -> None:
    assert carry(bench, word("running", "", pid)).code == 0


# --- the scripts of seed 002, verbatim


def pipeline(bench: Bench, program: str) -> str:
    """run_pipeline.sh in the manner of the old documents."""
    (bench.home / "train.py").write_text(program)
    (bench.home / "run_pipeline.sh").write_text(f"""
SCRIPT_DIR="$(cd "$(dirname "$0")" && pwd)"
UNI_ID=$2
LOG_FILE="$SCRIPT_DIR/train.log"
. {SEED}/functions.sh
python train.py > "$LOG_FILE" 2>&1 &
PY_PID=$!
update_uni_id_status "$UNI_ID" "running" "$PY_PID" "none"
wait $PY_PID
EXIT_CODE=$?
. {SEED}/verdict.sh
""")
    return f"bash run_pipeline.sh --uni_id {ME}"


@pytest.fixture
def python(bench: Bench) -> dict[str, str]:
    """A PATH on which `python` and `python3` are this one."""
    (bench.home / "bin").mkdir()
    for name in ("python", "python3"):
        (bench.home / "bin" / name).symlink_to(sys.executable)
    return {"PATH": f"{bench.home}/bin:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("program", "said", "kind"),
    [
        ("print('fine')", "normal_exit", ""),
        ("raise SystemExit('torch.cuda.OutOfMemoryError: CUDA out of memory')", "abnormal_exit", "oom"),
        ("raise RuntimeError('mat1 and mat2')", "abnormal_exit", "runtime_error"),
        ("import os; os.kill(os.getpid(), 9)", "abnormal_exit", "unknown"),
    ],
)
def test_a24_the_shell_functions_of_seed_002_work_verbatim(
    bench: Bench, python: dict[str, str], program: str, said: str, kind: str
) -> None:
    end = carry(bench, pipeline(bench, program), env=python)
    assert (end.said, end.said_type) == (said, kind)
    kept = entries(bench)
    assert (ME in kept) == (said == "abnormal_exit")
    if kept:
        assert kept[ME]["state"] == "abnormal_exit" and kept[ME]["retry_count"] == 2


@pytest.mark.parametrize("folder", ["", "scripts"])
@pytest.mark.parametrize(("program", "said"), [("print('fine')", "normal_exit"), ("raise RuntimeError('x')", "abnormal_exit")])
def test_a22_a24_the_word_of_an_older_script_is_heard_though_the_settings_name_another_file(
    bench: Bench, python: dict[str, str], program: str, said: str, folder: str
) -> None:
    """Such scripts end with exit code 0 whatever they report, and no config of the old documents names their file."""
    command = pipeline(bench, program)
    if folder:
        (bench.home / folder).mkdir()
        for name in ("run_pipeline.sh", "train.py"):
            (bench.home / name).rename(bench.home / folder / name)
        command = f"cd {bench.home}/{folder} && {command.replace('run_pipeline.sh', f'{bench.home}/{folder}/run_pipeline.sh')}"
    end = carry(bench, command, env=python, uni_id_file=str(bench.home / "logs" / "uni_id.json"))
    assert (end.code, end.said) == (0, said)
    theirs = json.loads((bench.home / folder / "script_process" / "uni_id.json").read_text())
    assert (ME in theirs) == (said == "abnormal_exit")
    ours = json.loads((bench.home / "logs" / "uni_id.json").read_text())
    assert (ours.get(ME) or {}).get("error_type") == ("runtime_error" if said == "abnormal_exit" else None)


def test_a24_the_bare_pid_of_seed_002_is_a_registration(bench: Bench, python: dict[str, str]) -> None:
    program = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nraise SystemExit(3)\n"
    (bench.home / "discovering.py").write_text("open('began', 'w')\n" + program)
    script = f"SCRIPT_DIR={bench.home}; UNI_ID={ME}\n. {SEED}/bare_pid.sh\n"
    bench.start(RUN, script, **more(bench, env=python))
    bench.until(lambda: isinstance(entries(bench).get(ME), int), what="the bare pid")
    bench.running(RUN, "began")
    (bench.home / "go").touch()
    end = bench.end(RUN)
    assert (end.code, end.said) == (3, "")
    assert entries(bench)[ME]["error_type"] == "exit_code_3"


# --- A20: conda


@pytest.fixture
def conda(bench: Bench) -> Path:
    base = bench.home / "it's conda"
    (base / "etc" / "profile.d").mkdir(parents=True)
    (base / "bin").mkdir()
    (base / "bin" / "conda").write_text("#!/bin/sh\necho 'CondaError: Run conda init' >&2; exit 1\n")
    (base / "bin" / "conda").chmod(0o755)
    (base / "etc" / "profile.d" / "conda.sh").write_text('conda() { export CONDA_ENV="$2"; echo "$1 $2"; }\nfalse\n')
    return base


@pytest.mark.parametrize("how", ["exe", "path", "home", "noted"])
def test_a20_conda_activate_works_in_each_command(make_bench: MakeBench, how: str, request: pytest.FixtureRequest) -> None:
    bench = request.getfixturevalue("bench")
    base = request.getfixturevalue("conda")
    env = {"exe": {"CONDA_EXE": f"{base}/bin/conda"}, "path": {"PATH": f"{base}/bin:{os.environ['PATH']}"}}.get(how)
    if env is None:
        env = {"HOME": str(bench.home)}
        if how == "home":
            base.rename(bench.home / "miniconda3")
        else:
            (bench.home / ".conda").mkdir()
            (bench.home / ".conda" / "environments.txt").write_text(f"/nowhere\n{base}\n")
    end = bench.carry(RUN, 'conda activate "my env" && echo "in $CONDA_ENV"', "echo ${CONDA_ENV-none}; conda deactivate", env=env)
    assert end.code == 0
    assert bench.log(RUN).splitlines() == ["activate my env", "in my env", "none", "deactivate "]


def test_a20_the_hook_changes_nothing_else_about_a_command(bench: Bench, conda: Path) -> None:
    env = {"CONDA_EXE": f"{conda}/bin/conda"}
    script = '# first line\nset -eu\nconda activate x\necho $LINENO "$#" "a  b"\nfalse\necho never'
    end = bench.carry(RUN, script, env=env)
    assert (end.code, bench.log(RUN)) == (1, "activate x\n4 0 a  b\n")


@pytest.mark.parametrize("command", ["miniconda activate", "conda activated", "conda-activate x", "my.conda activate"])
def test_a20_only_commands_that_activate_are_hooked(bench: Bench, conda: Path, command: str) -> None:
    from jostle.backends.local.conda import hooked

    assert hooked(command, {"CONDA_EXE": f"{conda}/bin/conda"}) == command
    assert hooked("conda activate x", {"PATH": "/nowhere", "CONDA_EXE": "conda"}) == "conda activate x"
