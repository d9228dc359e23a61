"""The resource manager of the source (SPEC C1, C3, C5, C6, C9, C12), with real engines and processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.instance import PATIENCE, Instance, alive, hears_all, until

EXAMPLE = Path(__file__).parents[2] / "examples" / "manager"
HOST = socket.gethostname()
FILE = "gpu_manager_config.json"

# of the document that the manager was made after, as it stands there
WORKFLOW = """
# 1. 启动资源管理器
python scripts/gpu_resource_manager.py &

# 2. 分配 GPU 给任务
python scripts/gpu_resource_manager.py --allocate training_task_1

# 3. 启动训练程序
python scripts/gpu_resource_manager.py --start-program training_task_1

# 4. 监控状态
python scripts/gpu_resource_manager.py --status

# 5. 完成后释放资源
python scripts/gpu_resource_manager.py --release training_task_1
"""


@pytest.fixture
def home(instance: Instance) -> Iterator[Instance]:
    """Four cards; what is in the working directory is the manager's."""
    instance.up("sim:4x24")
    instance.see_cards()
    yield instance


def configured(instance: Instance, **values: Any) -> Path:
    path = instance.work / FILE
    fresh = instance.work / "fresh"
    fresh.write_text(json.dumps(values))
    os.replace(fresh, path)
    return path


def at_work(instance: Instance, *words: str) -> subprocess.Popen[str]:
    """A monitor whose pictures somebody reads, else it would wait for that."""
    child = instance.start(*words)
    assert child.stdout is not None
    threading.Thread(target=child.stdout.read, daemon=True).start()
    return child


def ended(child: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    """Its exit code, and what it said."""
    child.send_signal(number)
    child.wait(PATIENCE)
    assert child.stderr is not None
    return child.returncode, child.stderr.read()


def of_floor(instance: Instance, *states: str) -> list[dict[str, Any]]:
    rows = instance.jobs().values()
    return [row for row in rows if "floor" in row["tags"] and row["state"] in (states or ("starting", "running"))]


def test_c1_c9_the_workflow_of_the_source_runs_word_for_word(instance: Instance) -> None:
    """As its document prints it, with a script of the same name that is nothing but `jostle manage`."""
    shutil.copytree(EXAMPLE, instance.work, dirs_exist_ok=True)
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("gpus: sim:4x24\n")
    env = {**instance.env, "PATH": f"{os.path.dirname(sys.executable)}:{instance.env['PATH']}"}
    trains = f"until grep -qs 'trains on' {instance.home}/runs/*/log; do sleep 0.05; done\n"  # who goes by hand is slower
    last = "\nkill $!\nwait $!\necho monitor ended with $?\n"
    # what the monitor prints stays apart
    apart = WORKFLOW.replace("# 4.", f"{trains}exec > status\n# 4.").replace("# 5.", "exec > rest\n# 5.")
    script = "set -e\n" + apart + last
    run = subprocess.run(
        ["bash", "-c", script], cwd=instance.work, env=env, capture_output=True, text=True,
        timeout=PATIENCE, preexec_fn=hears_all,
    )  # fmt: skip
    assert run.returncode == 0, (run.stdout, run.stderr)
    holds = f"Task training_task_1: 1 GPU on {HOST} (running)"
    assert holds in run.stdout.splitlines() and "GPU Resource Manager Status" in run.stdout, "as --allocate and the monitor tell"
    status = (instance.work / "status").read_text()
    assert status.count("GPU Resource Manager Status") == status.splitlines().count(holds) == 1, "the one that was asked for"
    assert "monitor ended with 0" in (instance.work / "rest").read_text()
    assert "the program of training_task_1 keeps the cards that it starts with" in run.stderr, "its scaling has no `resize`"
    program = next(row for row in instance.jobs().values() if row["commands"])
    instance.end(*instance.jobs())
    assert program["gpus"] == [0] and "trains on 0" in instance.output(program["id"])
    log = (instance.work / "gpu_manager.log").read_text()
    for act in ("allocate training_task_1: done", "start-program training_task_1: done", "release training_task_1: done"):
        assert act in log


STATUS = rf"""={{60}}
GPU Resource Manager Status
={{60}}
Total Nodes: 1
Total GPUs: 4
Free GPUs: 1
Allocated GPUs: 3
Active Tasks: 3

Node Details:
-{{40}}
{re.escape(HOST)}: 1/4 free \(3 allocated\)

Task Allocations:
-{{40}}
Task one: 1 GPU on {re.escape(HOST)} \(running\)
Task two: 2 GPUs on {re.escape(HOST)} \(running\)
Task X: 2 GPUs on pending \(pending\), place 1, priority 0

Own GPUs: 3 running, 2 pending
Host: CPU [\d.]+%, memory [\d.]+/[\d.]+ GB \(\d+%\), disk [\d.]+/[\d.]+ GB \(\d+%\), load [\d.]+ [\d.]+ [\d.]+
"""


def test_c9_the_status_is_that_of_the_source_with_what_waits_and_the_host(home: Instance) -> None:
    assert home.ok("manage", "--allocate", "one") == f"Task one: 1 GPU on {HOST} (running)\n"
    home.ok("manage", "--allocate", "NDFS_two", "--gpus", "2")
    code, out, err = home.run("manage", "--allocate", "X", "--gpus", "2")
    assert (code, out) == (0, "Task X: 2 GPUs on pending (pending), place 1, priority 0\n") and "1 of 4 GPUs fit" in err
    assert re.fullmatch(STATUS, home.ok("manage", "--status"))


def test_c3_a_request_above_a_limit_of_the_file_is_refused_with_the_numbers(home: Instance) -> None:
    """Also where it would have to wait for one's own; and what the person said before is not overwritten by a file."""
    home.ok("limits", "set", "max_total_gpus=3")
    configured(home, max_total_gpus=4, max_gpus_per_task=2)
    code, _, err = home.run("manage", "--allocate", "big", "--gpus", "3")
    assert code != 0 and "it needs 3 cards, and max_gpus_per_task is 2, set in the manager's file" in err
    home.ok("manage", "--allocate", "a", "--gpus", "2")
    code, _, err = home.run("manage", "--allocate", "b", "--gpus", "2")
    assert code == 1
    assert "You hold 2 cards that count for max_total_gpus, which is 3, set by you (`jostle limits`); 2 are needed" in err
    assert "b" not in {row["name"] for row in home.jobs().values() if row["state"] in ("queued", "running")}
    assert "b: " in (home.work / "gpu_manager.log").read_text()
    said = {limit["name"]: (limit["most"], limit["source"]) for limit in home.json("limits")["limits"]}
    assert said == {
        "max_total_gpus": (3, "own"), "max_reserved_gpus": (2, "manager_default"), "max_manual_gpus": (6, "manager_default"),
        "max_gpus_per_task": (2, "manager"),
    }  # fmt: skip
    home.ok("limits", "clear", "manager")
    assert {limit["source"] for limit in home.json("limits")["limits"]} == {"own", None}


def test_c1_the_flags_of_the_later_code(home: Instance) -> None:
    """Cards at once or not at all, a place in the queue, the program on a job's cards, release by id, adopted jobs, the host."""
    configured(home, managed_job_prefixes=["NDFS_"])
    assert home.ok("manage", "--quick-get", "3") == f"Task quick-1: 3 GPUs on {HOST} (running)\n"
    code, _, err = home.run("manage", "--quick-get", "2")
    assert code == 1 and "quick-2 was refused" in err
    assert home.ok("manage", "--request", "2").startswith("Task request-1: 2 GPUs on pending (pending)")
    held = next(row for row in home.jobs().values() if row["name"] == "quick-1")
    assert home.ok("manage", "--use", str(held["id"])) == "0,1,2\n"
    adopted = home.add("-n", "NDFS_old", "--", "sleep", "600")
    home.reach(adopted, "running")
    assert f"Task old: 1 GPU on {HOST} (running)" in home.ok("manage", "--status")
    home.ok("manage", "--release", str(adopted))
    home.ok("manage", "--release", str(held["id"]))
    assert set(home.end(adopted, held["id"])) == {"cancelled", "succeeded"}
    code, _, err = home.run("manage", "--release", "nobody")
    assert code == 4 and "jostle alloc nobody" in err
    code, _, err = home.run("manage", "--start-program", "nobody")
    assert code == 4 and "jostle alloc nobody" in err
    child = home.start("manage", "-m", "-i", "1")
    assert child.stdout is not None
    seen = [child.stdout.readline().split(":")[0] for _ in range(8)]
    assert seen == ["Host", "CPU", "Load", "Memory", "Swap", "Disk", "Network", "GPUs"]
    child.send_signal(signal.SIGINT)


def test_c5_the_file_is_read_again_when_it_changes_and_a_wrong_one_changes_nothing(home: Instance) -> None:
    configured(home, monitor_interval=0.2, max_total_gpus=3)
    child = at_work(home, "monitor")
    most = lambda: home.json("limits")["limits"][0]["most"]  # noqa: E731
    until(lambda: most() == 3, "its limits hold")
    configured(home, monitor_interval=0.2, max_total_gpus="many")
    log = home.work / "gpu_manager.log"
    until(lambda: log.exists() and "max_total_gpus: the text" in log.read_text(), "what is wrong is told")
    assert most() == 3
    configured(home, monitor_interval=0.2, max_total_gpus=2)
    until(lambda: most() == 2, "the new ones hold")
    code, err = ended(child)
    assert code == 0 and "has changed and is loaded again" in err and f"{FILE}:1: max_total_gpus" in err
    code, _, err = home.run("manage", "--status", "--config", "nowhere.json")
    assert code == 6 and "nowhere.json: cannot be read" in err


def test_c6_the_floor_is_kept_while_the_monitor_lives_and_gives_way_to_own_jobs(home: Instance) -> None:
    configured(home, monitor_interval=0.2, min_reserved_gpus=1, max_reserved_gpus=2)
    child = at_work(home, "monitor", "--manage")
    until(lambda: len(of_floor(home)) == 2, "one card, and another")
    assert all(len(row["gpus"]) == 1 for row in of_floor(home))
    held = {limit["name"]: limit["held"] for limit in home.json("limits")["limits"]}
    assert (held["max_total_gpus"], held["max_reserved_gpus"], held["max_manual_gpus"]) == (2, 2, 0)
    code, _, err = home.run("monitor", "--manage")
    assert code == 1 and f"kept by pid {child.pid} already" in err
    (all_cards,) = home.submit({"gpus": [4, 4], "commands": ["sleep 600"]})
    home.reach(all_cards, "running")
    assert of_floor(home) == []
    home.call("intent", ids=[all_cards], do="cancel", now=True)
    until(lambda: len(of_floor(home)) == 2, "it is back")
    child.kill()
    until(lambda: of_floor(home) == [], "it ended with the monitor, though that said nothing")


def test_c3_c6_a_card_of_the_floor_that_is_used_is_its_persons_and_is_not_given_back(home: Instance) -> None:
    """A job of ours that waited for cards had the floor end the program on its card."""
    configured(home, monitor_interval=0.2, min_reserved_gpus=2, max_reserved_gpus=2)
    at_work(home, "monitor", "--manage")
    until(lambda: len(of_floor(home, "running")) == 2, "two cards")
    used, other = sorted(of_floor(home), key=lambda row: row["id"])
    program = int(home.ok("start", used["name"], "--", "sleep", "600"))
    home.reach(program, "running")
    held = {limit["name"]: limit["held"] for limit in home.json("limits")["limits"]}
    assert (held["max_reserved_gpus"], held["max_manual_gpus"]) == (1, 1)
    (rest,) = home.submit({"gpus": [3, 3], "commands": ["sleep 600"]})
    home.reach(rest, "running")
    assert home.job(other["id"])["state"] == "succeeded", "what is only held gives way"
    assert home.states([used["id"], program]) == {used["id"]: "running", program: "running"}


def test_c6_never_by_itself_and_not_where_the_lab_or_the_file_forbids_it(instance: Instance) -> None:
    lab = instance.root / "lab.yaml"
    lab.write_text("max_reserved_gpus: 0\n")
    instance.env["JOSTLE_LIMITS_FILE"] = str(lab)
    instance.up()
    instance.see_cards()
    configured(instance, monitor_interval=0.1)
    child = instance.start("monitor")
    assert child.stdout is not None
    pictures = 0
    while pictures < 5:
        pictures += "Resource Manager" in child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate()
    assert instance.jobs() == {}
    child = at_work(instance, "manage", "--manage")
    assert child.stderr is not None
    assert child.stderr.readline() == "keeps no cards: max_reserved_gpus is 0, set in the lab's file\n"
    lab.write_text("max_reserved_gpus: 1\n")
    until(lambda: len(of_floor(instance)) == 1, "one is allowed now")
    configured(instance, monitor_interval=0.1, auto_manage=False)
    until(lambda: of_floor(instance) == [], "its file says no")
    assert ended(child, signal.SIGINT)[0] == 130
    assert "auto_manage is false" in (instance.work / "gpu_manager.log").read_text()


def test_c1_c6_a_daemon_is_at_work_when_it_is_left_and_gives_its_cards_back(home: Instance) -> None:
    configured(home, monitor_interval=0.2, max_reserved_gpus=1)
    _, _, err = home.run("manage", "--daemon")
    found = re.search(r"\(pid (\d+)\) and writes to (\S+);", err)
    assert found, err
    pid, log = int(found[1]), Path(found[2])
    assert alive(pid) and os.getsid(pid) != os.getsid(0) and log == home.work / "gpu_manager.log"
    until(lambda: len(of_floor(home)) == 1, "its floor")
    code, _, err = home.run("manage", "--daemon")
    assert code == 1 and f"kept by pid {pid} already" in err
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid) and of_floor(home) == [], "it is gone, and so are its cards")
    assert "asks for 1 card" in log.read_text()


def test_c6_it_ends_when_nothing_of_ours_has_run_for_so_long(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("floor_idle: 2s\n")
    instance.up()
    instance.see_cards()
    configured(instance, monitor_interval=0.2)
    (first,) = instance.submit({"commands": ["until [ -e go ]; do sleep 0.02; done"]})
    instance.reach(first, "running")
    child = at_work(instance, "monitor", "--manage")
    until(lambda: of_floor(instance), "beside a job there is one")
    (instance.work / "go").touch()
    log = instance.work / "gpu_manager.log"
    until(lambda: log.exists() and "nothing of yours has run for long" in log.read_text(), "it has ended")
    until(lambda: not of_floor(instance), "its cards are free")
    (id,) = instance.submit({"commands": ["sleep 600"]})
    instance.reach(id, "running")
    until(lambda: of_floor(instance), "it is back with the next job")
    assert ended(child)[0] == 0


def test_c1_who_ends_the_engine_is_not_overruled_by_a_monitor(home: Instance) -> None:
    configured(home, monitor_interval=0.2)
    child = at_work(home, "monitor", "--manage")
    until(lambda: of_floor(home), "a floor")
    home.ok("down")
    log = home.work / "gpu_manager.log"
    until(lambda: log.exists() and "no engine runs, so no cards are kept" in log.read_text(), "it sees that")
    assert not home.json("status")["running"]
    home.up(None)
    until(lambda: of_floor(home), "and goes on with the next")
    assert ended(child)[0] == 0


def test_c12_the_log_is_put_aside_when_it_is_full_and_keeps_its_level(home: Instance) -> None:
    configured(home, logging={"file": "logs/manager.log", "max_size": 1024, "backup_count": 2, "level": "WARNING"})
    (home.work / "logs").mkdir()
    (home.work / "logs" / "manager.log").write_text("x" * 1020 + "\n")
    home.ok("manage", "--allocate", "a")
    assert (home.work / "logs" / "manager.log").read_text() == "x" * 1020 + "\n", "what was done is below its level"
    for _ in range(12):
        home.run("manage", "--release", "nobody")
    names = sorted(path.name for path in (home.work / "logs").iterdir())
    assert names == ["manager.log", "manager.log.1", "manager.log.2"]
    assert "ERROR release nobody: there is no task nobody" in (home.work / "logs" / "manager.log").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpus", "2"], "--gpus is for --allocate"),
        (["--monitor-only", "--manage"], "expected one of them"),
        (["--status", "--daemon"], "--status does one thing and ends"),
        (["--allocate", "a", "--gpus", "0"], "--gpus"),
        (["--quick-get", "0"], "argument --quick-get: '0' is not understood; expected a whole number from 1 to 1024"),
        (["--request", "0"], "argument --request: '0' is not understood; expected a whole number from 1 to 1024"),
        (["--daemon", "-i", "5"], "--daemon shows none"),
    ],
)
def test_c1_flags_that_do_not_go_together_are_told(shared: Instance, words: list[str], said: str) -> None:
    code, _, err = shared.run("manage", *words)
    assert code == 2 and said in err


def test_c5_c8_the_program_of_the_template_starts_on_the_cards_of_its_task(home: Instance) -> None:
    template = {"command": "echo from {gpu_list}", "args": ["--gpus", "{gpu_list}", "a b"], "env_vars": {"SEEN": "on {gpu_list}"}}
    configured(home, program_template=template)
    home.ok("manage", "--allocate", "NDFS_t", "--gpus", "2")
    id = int(home.ok("manage", "--start-program", "t"))
    home.end(id)
    assert "from 0,1 --gpus 0,1 a b" in home.output(id)
    assert home.job(id)["name"] == "t"
    configured(home)
    code, _, err = home.run("manage", "--start-program", "NDFS_t")
    assert code == 2 and "program_template" in err


def test_c5_a_program_whose_task_still_waits_for_its_cards_is_not_said_to_run(home: Instance) -> None:
    configured(home, program_template={"command": "true"})
    home.ok("alloc", "all", "-g", "4", "--now")
    home.ok("manage", "--allocate", "t")
    code, out, err = home.run("manage", "--start-program", "t")
    assert (code, err) == (0, f"the program of task t waits as job {out.strip()}: it starts when it has its cards\n")
    home.ok("release", "all")
    assert home.end(int(out)) == ["succeeded"]


LISTENS = (
    "import os, signal, time\n"
    "def heard(*_):\n"
    "    print('cards', open(os.environ['JOSTLE_GPUS_FILE']).read().split()[0], flush=True)\n"
    "signal.signal(signal.SIGUSR1, heard)\n"
    "heard()\n"
    "while True: time.sleep(0.1)\n"
)


def test_c7_a_program_that_says_how_it_takes_part_grows_within_all_limits(home: Instance) -> None:
    """It takes the place of its task, and has what the file, its limit for a task and the person let it have."""
    (home.work / "listens.py").write_text(LISTENS)
    scaling = {"min_gpus": 1, "max_gpus": 4, "scale_up_threshold": 0.0, "scale_down_threshold": 0.0, "resize": "signal"}
    configured(home, max_gpus_per_task=3, scaling=scaling, program_template={"command": f"exec {sys.executable} listens.py"})
    home.ok("limits", "set", "max_total_gpus=2")
    home.ok("manage", "--allocate", "grows")
    id = int(home.ok("manage", "--start-program", "NDFS_grows"))
    home.reach(id, "running")
    job = home.job(id)
    assert (job["gpu_request"], job["name"], job["inside"]) == ([1, 2], "grows", None)
    until(lambda: len(home.job(id)["gpus"]) == 2, "it has grown")
    until(lambda: "cards 0,1" in home.output(id), "and was told")
    assert f"Task grows: 2 GPUs on {HOST} (running)" in home.ok("manage", "--status")
    code, _, err = home.run("manage", "--start-program", "grows")
    assert code == 1 and f"runs already, as job {id}" in err
    home.ok("manage", "--release", "grows")
    assert home.end(id) == ["cancelled"]


def test_c1_c5_the_plain_verbs_know_the_program_and_the_prefix_of_the_file_that_is_loaded(home: Instance) -> None:
    assert home.run("start", "x")[0] != 0
    again = "test -e again || { touch again; exit 1; }; echo $A on {gpu_list}"
    configured(home, program_template={"command": again, "env_vars": {"A": "b"}, "retry": 1})
    home.ok("manage", "--allocate", "NDFS_x")
    id = int(home.ok("start", "NDFS_x"))
    assert home.end(id) == ["succeeded"]
    assert "b on 0" in home.output(id, 2)
    home.ok("release", "NDFS_x")


def test_c9_a_program_that_fails_in_its_allocation_is_tried_again(home: Instance) -> None:
    configured(home, program_template={"command": "test -e second || { touch second; exit 1; }", "retry": 2})
    home.ok("manage", "--allocate", "again")
    id = int(home.ok("manage", "--start-program", "again"))
    assert home.end(id) == ["succeeded"] and len(home.runs(id)) == 2
