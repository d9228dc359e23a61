"""`jostle compete` as someone uses it who knows the source system: a workspace, its files, signals, and what is left behind."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

from tests.e2e.instance import PATIENCE, Instance, alive, until
from tests.e2e.space import WAIT, Space, ended


def task(name: str, queue: int, body: str = "sleep 0.2") -> str:
    """A block that notes its GPU and its times."""
    note = f"echo {name} %s $CUDA_VISIBLE_DEVICES $(date +%%s.%%N) >> {{work_dir}}/story"
    return f"{queue} # queue\n{note % 'begin'}\n{body}\n{note % 'end'}\n2 # GB\n"


def story(space: Space) -> dict[str, tuple[int, float, float]]:
    """Task -> its GPU, begin and end."""
    begins, ends = {}, {}
    for line in space.lines("story"):
        name, what, gpu, at = line.split()
        (begins if what == "begin" else ends)[name] = (int(gpu), float(at))
    return {name: (gpu, at, ends[name][1]) for name, (gpu, at) in begins.items()}


def test_a15_a16_the_worked_example_on_gpus_4_and_7(jostle: Instance) -> None:
    queues = {1: "ab", 2: "cde", 3: "f"}
    space = Space(
        jostle, "worked", "\n".join(task(name, queue) for queue, names in queues.items() for name in names),
        "use_all_gpus: false\ncompete_gpus: [4, 7]\n",
    )  # fmt: skip
    code, out, err = space.run()
    assert (code, err) == (0, ""), out
    told = story(space)
    assert sorted(told) == list("abcdef") and {gpu for gpu, _, _ in told.values()} == {4, 7}
    for names in queues.values():
        for before, after in itertools.pairwise(names):
            assert told[before][2] <= told[after][1], f"{before} before {after}"
    for name, (gpu, begin, end) in told.items():
        beside = [o for o, (other, b, e) in told.items() if o != name and other == gpu and b < end and begin < e]
        assert beside == [], f"{name} and {beside} on GPU {gpu} at once"
    assert space.states() == [] and "Queue 2: 🟢 IDLE, Pending=0, Running=0, Completed=3, Failed=0" in space.log()
    assert space.log() == out, "a stdout that is no terminal gets the same lines"
    assert json.loads((space.root / "logs" / "uni_id.json").read_text()) == {}


def test_a25_a_failing_task_blocks_its_queue_and_no_other_through_a_backoff(jostle: Instance) -> None:
    tries = "echo {uni_id} >> {work_dir}/tries; echo 'CUDA out of memory'; [ -e {work_dir}/other ]"
    first = f"1\n{tries}\n1\n\n1\ncp {{work_dir}}/other {{work_dir}}/after\n1\n\n"
    tasks = first + f"2\n{WAIT % 'failed'}\n1\n\n2\ntouch {{work_dir}}/other\n1\n"
    retry = "retry_config: {max_retry_before_backoff: 1, backoff_duration: 1}\n"
    space = Space(jostle, "retry", tasks, "use_all_gpus: false\ncompete_gpus: [0, 1]\n" + retry)
    client = space.start()

    def retrying() -> list[Any]:
        return [q for s in space.states() if (q := s["queues"]["1"])["processes"][0]["status"] == "retrying"]

    queue = until(retrying, "a retry")[0]
    assert (queue["status"], queue["pending_tasks"], queue["last_error"]) == ("running", 2, "oom")
    assert not space.file("after").exists()
    space.file("failed").touch()  # only now does the other queue go on, and what it makes lets the failing task succeed
    code, told = ended(client)
    assert code == 0 and space.file("after").exists(), told
    ids = space.lines("tries")
    assert len(ids) >= 2 and len(set(ids)) == len(ids), "each try has a uni_id of its own"
    kept = json.loads((space.root / "logs" / "uni_id.json").read_text())
    assert {(e["state"], e["error_type"]) for e in kept.values()} == {("abnormal_exit", "oom")} and set(kept) == set(ids[:-1])
    logs = sorted(p.name for p in (space.root / "logs" / "tasks").glob("single_1_queue1_task1.log*"))
    assert len(logs) == len(ids), "each try has a log of its own"


def test_a30_a32_a33_while_it_runs_it_can_be_watched_and_sigterm_stops_its_tasks(jostle: Instance) -> None:
    run = "echo $$ > {work_dir}/pid; exec sleep 600"
    space = Space(jostle, "watched", f"1\n{run}\n4\n\n1\ntrue\n4\n", "use_all_gpus: false\ncompete_gpus: [2, 3]\ngpu_left: 1\n")
    client = space.start()
    pid = int(until(lambda: (space.lines("pid") or [""])[0], "pid"))
    state = space.state(state="running", running_tasks=1, gpus_used=[2])
    assert (state["pid"], state["mode"], state["config_index"], state["total_tasks"]) == (client.pid, "single", 0, 2)
    assert state["config_file"] == str(space.root / "command" / "command_gpu.txt")
    assert state["gpu_assignments"] == {"2": 1} and state["gpus_available"] == list(range(8))
    assert [p["status"] for p in state["queues"]["1"]["processes"]] == ["running", "pending"]
    until(lambda: any("started" in line for line in space.state(running_tasks=1)["last_log_lines"]), "the last lines")

    code, out, err = space.run("--status")
    uni_id = jostle.runs(jostle.newest(2)[0]["id"])[0]["uni_id"]
    assert code == 0 and f"Scheduler {client.pid} (single, " in out, err
    assert "Queue 1: 🔴 BUSY, Pending=1, Running=1, Completed=0, Failed=0" in out
    gpu = r"GPU 2: Available=\d+\.\dGB, User Python Processes=\d, Running Tasks=1\n  Running Task \(Queue 1\): echo"
    assert re.search(gpu, out)
    assert f"  {uni_id}: pid=" in out and "GPU 3:" not in out
    before = space.log().count("Tasks: Total=2")
    client.send_signal(signal.SIGUSR1)
    until(lambda: space.log().count("Tasks: Total=2") > before, "a status on request")

    code, out, err = space.run()
    assert code == 1 and f"process {client.pid} runs" in err and f"kill {client.pid}" in err
    client.send_signal(signal.SIGTERM)
    code, told = ended(client)
    assert code == 130 and "cancelling the batch" in told, told
    until(lambda: not alive(pid), "the end of the task")
    assert space.states() == [] and [r["state"] for r in jostle.newest(2)] == ["cancelled", "cancelled"]
    code, out, err = space.run("--status")
    assert (code, out) == (1, "") and "no scheduler of" in err


def test_a33_after_kill_9_the_same_command_goes_on_with_what_was_edited_meanwhile(jostle: Instance) -> None:
    def block(name: str, then: str = "true") -> str:
        return f"echo {name} >> {{work_dir}}/ran\n{then}\n1,1\n"

    done, runs, gone, waits = block("done"), block("runs", WAIT % "go"), block("gone"), block("waits")
    space = Space(jostle, "killed", "\n".join((done, runs, gone, waits)), "use_all_gpus: false\ncompete_gpus: [4]\n")
    client = space.start()
    until(lambda: space.lines("ran") == ["done", "runs"], "the second task")
    space.state(pid=client.pid)
    client.kill()
    client.communicate()
    assert [s["pid"] for s in space.states()] == [client.pid]
    space.commands("\n".join((done, runs, block("new"), waits)))
    again = space.start()
    space.says("1 new, 1 task dropped")
    until(lambda: [s["pid"] for s in space.states()] == [again.pid], "the state file of the one that is there")
    space.says(f"removed the state file of scheduler {client.pid}")
    space.says("is not finished: resumed (1 pending, 1 running, 1 completed)")
    space.file("go").touch()
    code, told = ended(again)
    assert code == 0, told
    assert space.lines("ran") == ["done", "runs", "new", "waits"], "nothing twice, in the order of the file"
    code, told = ended(space.start())
    assert code == 0 and space.lines("ran")[4:] == ["done", "runs", "new", "waits"], "after a finished one everything runs again"


def test_a33_tasks_that_ended_while_no_scheduler_was_there_are_told_and_not_run_again(jostle: Instance) -> None:
    space = Space(jostle, "alone", f"1\necho once >> {{work_dir}}/ran; {WAIT % 'go'}\n1\n\n1\ntouch {{work_dir}}/second\n1\n")
    client = space.start()
    until(lambda: space.lines("ran") == ["once"], "the first task")
    client.kill()
    client.communicate()
    assert "is not finished: `jostle compete` attaches to it" in space.run("--status")[2]
    space.file("go").touch()
    assert jostle.end(*(row["id"] for row in jostle.newest(2))) == ["succeeded", "succeeded"]
    code, out, _ = space.run()
    assert code == 0 and "ended while no scheduler was there: 2 completed" in out and space.lines("ran") == ["once"]
    assert space.run()[0] == 0 and space.lines("ran") == ["once", "once"]


def test_a33_fresh_starts_over(jostle: Instance) -> None:
    tasks = f"1\necho one >> {{work_dir}}/ran; {WAIT % 'go'}\n1\n\n1\necho two >> {{work_dir}}/ran\n1\n"
    space = Space(jostle, "fresh", tasks, "use_all_gpus: false\ncompete_gpus: [5]\n")
    client = space.start()
    until(lambda: space.lines("ran") == ["one"], "the first task")
    client.kill()
    client.communicate()
    again = space.start("--fresh")
    until(lambda: space.lines("ran") == ["one", "one"], "the first task again")
    space.file("go").touch()
    code, told = ended(again)
    assert code == 0 and "cancelling 2 tasks, then starting over" in told
    assert space.lines("ran") == ["one", "one", "two"]


def test_a33_a_hang_up_leaves_the_tasks_running_and_nohup_is_not_hung_up(jostle: Instance) -> None:
    space = Space(jostle, "hung", f"1\ntouch {{work_dir}}/going; {WAIT % 'go'}\n1\n", "use_all_gpus: false\ncompete_gpus: [6]\n")
    client = space.start()
    space.made("going")
    space.says("started")
    client.send_signal(signal.SIGHUP)
    code, told = ended(client)
    assert code == 129 and "the tasks run on" in told and space.states() == []
    until(lambda: jostle.newest()[0]["state"] == "running", "it runs on")
    nohup = subprocess.Popen(
        ["nohup", sys.executable, "-m", "jostle", "compete"], cwd=space.root, env=jostle.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    jostle.children.append(nohup)
    space.state(state="running")
    nohup.send_signal(signal.SIGHUP)
    space.file("go").touch()
    assert ended(nohup)[0] == 0
    assert jostle.newest()[0]["attempt"] == 1


def test_a14_edited_settings_take_effect_while_it_runs(jostle: Instance) -> None:
    tasks = f"1\ntouch {{work_dir}}/one; {WAIT % 'go'}\n1\n\n2\ntouch {{work_dir}}/two; {WAIT % 'go'}\n1\n"
    space = Space(jostle, "reload", tasks, "use_all_gpus: false\ncompete_gpus: [0]\n")
    client = space.start()
    until(lambda: space.file("one").exists() or space.file("two").exists(), "one of the two")
    space.settings("use_all_gpus: false\ncompete_gpus: [0, many]\n")
    space.says("gpu_manage.yaml:3: compete_gpus")
    space.says("the settings stay as they were")
    space.settings("use_all_gpus: false\ncompete_gpus: [0, 1]\nwork_dir: ../elsewhere\n")
    space.made("one")
    space.made("two")
    space.says("config/gpu_manage.yaml has changed: compete_gpus [0] → [0, 1]")
    space.says("work_dir null → ../elsewhere; takes effect at the next start")
    assert space.state(gpus_used=[0, 1])
    space.commands("1\ntrue\n1\n")
    space.says("command/command_gpu.txt has changed: it is read at the next `jostle compete`")
    space.file("go").touch()
    assert ended(client)[0] == 0


def test_a7_a33_several_at_once_each_with_its_own_pid_and_files(jostle: Instance) -> None:
    def tasks(name: str, gpus: str = "") -> str:
        return f"1\necho $CUDA_VISIBLE_DEVICES > {{work_dir}}/{name}; {WAIT % 'go'}\n{gpus}1\n"

    space = Space(jostle, "several", tasks("first"), "use_all_gpus: true\n")
    space.commands(tasks("second"), "command_gpu_1.txt")
    space.commands(tasks("wide", "2\n"), "command_gpus.txt")
    space.commands("# nothing\n", "command_gpu_2.txt")
    kinds: tuple[tuple[str, ...], ...] = ((), ("--config-index", "1"), ("--mode", "multi"))
    clients = [space.start(*words) for words in kinds]
    for name in ("first", "second", "wide"):
        space.made(name)
    running = ("running", 1)
    until(lambda: [(s["state"], s["running_tasks"]) for s in space.states()] == [running] * 3, "three state files")
    found = {s["pid"]: (s["mode"], s["config_index"]) for s in space.states()}
    assert found == dict(zip((c.pid for c in clients), (("single", 0), ("single", 1), ("multi", 0)), strict=True))
    told = space.run("--status")[1]
    assert told.count("Scheduler ") == 3 and told.count("Queue 1: 🔴 BUSY") == 3, "queue 1 of each is its own"
    assert space.run("--status", "--mode", "multi")[1].count("Scheduler ") == 1
    for client, number in zip(clients[:2], (1, 2), strict=True):
        head = f"Scheduler {client.pid} (single, config {number}): running"
        assert head in told
        until(lambda head=head: f" INFO {head}\n" in space.log(), "a status that says whose it is")
    space.file("go").touch()
    assert [ended(client)[0] for client in clients] == [0, 0, 0]
    cards = [gpu for name in ("first", "second", "wide") for gpu in space.lines(name)[0].split(",")]
    assert len(cards) == len(set(cards)) == 4
    assert (space.root / "logs" / "compete_gpus.log").exists() and (space.root / "logs" / "uni_id_gpus.json").exists()
    code, out, _ = space.run("--config-index", "2")
    assert code == 0 and "holds no task" in out


def test_a12_an_inherited_cuda_visible_devices_restricts_the_range(jostle: Instance) -> None:
    space = Space(jostle, "visible", "1\necho $CUDA_VISIBLE_DEVICES >> {work_dir}/gpu\n1\n")
    uuid = jostle.call("gpus")["gpus"][6]["uuid"]
    for visible in ("3", uuid):
        assert space.run(env={"CUDA_VISIBLE_DEVICES": visible})[0] == 0
    assert space.lines("gpu") == ["3", "6"]


def test_a6_nothing_of_a_bad_file_is_run_and_lenient_runs_the_rest(jostle: Instance) -> None:
    space = Space(jostle, "bad", "one\necho no number\n\n1\ntouch {work_dir}/good\n1\n")
    code, out, err = space.run()
    assert code == 6 and "command_gpu.txt:" in err and not (space.root / "logs").exists(), out
    code, out, err = space.run("--lenient")
    assert (code, err) == (0, "") and "WARNING" in out and space.file("good").exists()


def test_a25_a_task_that_fails_for_good_ends_its_queue_and_the_exit_status_is_1(jostle: Instance) -> None:
    tasks = "1\nexit 3\n1\n\n1\ntouch {work_dir}/never\n1\n\n2\ntouch {work_dir}/other\n1\n"
    space = Space(jostle, "final", tasks, "retry_config: {max_retries: 0}\n")
    code, out, _ = space.run()
    assert code == 1 and space.file("other").exists() and not space.file("never").exists()
    assert "Queue 1: 🟢 IDLE, Pending=0, Running=0, Completed=0, Failed=2" in out and "ERROR failed" in out


def test_a_reader_of_its_output_that_goes_away_does_not_end_it(jostle: Instance) -> None:
    space = Space(jostle, "pipe", f"1\n{WAIT % 'go'}\n1\n\n1\ntouch {{work_dir}}/second\n1\n")
    client = space.start()
    assert client.stdout is not None
    until(client.stdout.readline)
    client.stdout.close()
    client.stdout = None
    space.says("started")
    space.file("go").touch()
    assert client.wait(PATIENCE) == 0 and space.file("second").exists()


def test_a33_of_two_that_are_started_at_once_one_runs(jostle: Instance) -> None:
    space = Space(jostle, "twice", f"1\necho once >> {{work_dir}}/ran; {WAIT % 'go'}\n1\n")
    both = [space.start(), space.start()]
    until(lambda: any(child.poll() is not None for child in both), "one of the two")
    late, first = sorted(both, key=lambda child: child.poll() is None)
    code, told = ended(late)
    assert code == 1 and f"process {first.pid} runs" in told
    space.file("go").touch()
    assert ended(first)[0] == 0 and space.lines("ran") == ["once"]


def test_a33_when_the_engine_is_killed_the_scheduler_starts_another_and_goes_on(jostle: Instance) -> None:
    space = Space(jostle, "engine", f"1\ntouch {{work_dir}}/going; {WAIT % 'go'}\n1\n\n1\ntouch {{work_dir}}/second\n1\n")
    client = space.start()
    space.made("going")
    space.says("started")
    jostle.kill_engine()
    space.file("go").touch()
    code, told = ended(client)
    assert code == 0 and space.file("second").exists() and "the engine is back" in told


def test_on_a_terminal_it_shows_a_live_view_and_leaves_a_clean_screen(jostle: Instance) -> None:
    import fcntl
    import pty
    import struct
    import termios

    space = Space(jostle, "terminal", f"1\n{WAIT % 'go'}\n1\n\n1\ntrue\n1\n")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "jostle", "compete"], cwd=space.root, env={**jostle.env, "TERM": "xterm"}, stdin=theirs,
        stdout=theirs, stderr=theirs,
    )  # fmt: skip
    jostle.children.append(child)  # type: ignore[arg-type]
    os.close(theirs)
    space.says("started")
    space.settings("gpu_left: 1\n")
    space.says("gpu_left 0 → 1")
    space.file("go").touch()
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is gone
    os.close(ours)
    assert child.wait(PATIENCE) == 0
    text = seen.decode()
    assert "2 tasks in 1 queue" in text and "1 running, 1 queued" in text and "gpu_left 0 → 1" in text
    assert "Tasks: Total" not in text, "the status goes to the log"
    assert re.search(r"\x1b\[2F\x1b\[Jbatch \d+: 2 succeeded\r\n\Z", text)
