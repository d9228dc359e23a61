"""`jostle compete` for someone whose settings or tasks do not suit the host, or whose files are not where they were."""

from __future__ import annotations

import os

import pytest

from tests.e2e.instance import Instance, modes, until
from tests.e2e.space import WAIT, Space, ended


def test_a32_the_first_state_file_knows_the_gpus(jostle: Instance) -> None:
    space = Space(jostle, "first", f"1\n{WAIT % 'go'}\n1\n", "use_all_gpus: false\ncompete_gpus: [2, 3]\n")
    client = space.start()
    (first,) = until(space.states, "a state file")
    space.file("go").touch()
    assert ended(client)[0] == 0
    assert (first["gpus_used"], first["gpus_available"]) == ([2, 3], list(range(8)))


def test_what_this_host_does_not_have_is_told_at_the_start(jostle: Instance) -> None:
    tasks = f"1\n{WAIT % 'go'}\n1\n\n2\ntrue\n100\n"
    settings = "use_all_gpus: false\ncompete_gpus: [0, 8, 9]\nprocess_json_path: /proc/x/uni.json\n"
    space = Space(jostle, "warned", tasks, settings)
    client = space.start()
    space.says("Processes running according to /proc/x/uni.json")
    assert space.log().count(" WARNING compete_gpus names 8, 9; this host has 0-7\n") == 1
    assert space.log().count(" WARNING /proc/x/uni.json (process_json_path) cannot be written: No such file or directory") == 1
    space.says("can never start")
    warned = [line for line in space.log().split("\n") if " WARNING " in line and "can never start" in line]
    assert len(warned) == 1 and "queue 2 task 1: true: It can never start with the cards this host has" in warned[0]
    assert "queue 2 task 1: true: It can never start" in space.run("--status")[1], "the status names it"
    until(lambda: "INFO " + warned[0].split(" WARNING ")[1] in space.log(), "in the log, too")
    client.terminate()
    code, told = ended(client)
    summary = told[told.rindex(": 2 cancelled") :]
    assert code == 130 and "queue 2 task 1: true: It can never start" in summary, "and so does the summary"
    assert "queue 1 task 1" not in summary


def test_a_task_that_can_never_start_ends_its_batch_with_max_wait_and_the_summary_names_it(jostle: Instance) -> None:
    space = Space(jostle, "given-up", "1\ntrue\n1\n\n2\ntrue\n100\n", "use_all_gpus: false\ncompete_gpus: [4]\nmax_wait: 5\n")
    code, out, _ = space.run()
    summary = out.split("INFO batch ")[-1]
    assert code == 1 and "1 succeeded, 1 failed" in summary and "queue 2 task 1: true: It can never start" in summary


def test_a14_settings_that_are_removed_stay_and_are_read_when_they_are_back(jostle: Instance) -> None:
    space = Space(jostle, "removed", f"1\n{WAIT % 'go'}\n1\n", "gpu_left: 1\n")
    client = space.start()
    space.state(state="running")
    (space.root / "config" / "gpu_manage.yaml").unlink()
    space.says("WARNING config/gpu_manage.yaml is gone: the settings stay as they are")
    space.settings("gpu_left: 2\n")
    space.says("INFO config/gpu_manage.yaml is back")
    space.says("config/gpu_manage.yaml has changed: gpu_left 1 → 2")
    space.file("go").touch()
    code, told = ended(client)
    assert code == 0 and told.count("is gone") == 1


def test_the_same_seed_draws_the_same_order(jostle: Instance) -> None:
    tasks = "\n".join(f"{queue}\necho {queue} >> {{work_dir}}/order\n1\n" for queue in range(1, 9))
    orders = []
    for name in ("seed-a", "seed-b"):
        space = Space(jostle, name, tasks, "use_all_gpus: false\ncompete_gpus: [5]\n")
        code, out, err = space.run("--seed", "4")
        assert code == 0, out + err
        orders.append(space.lines("order"))
    assert orders[0] == orders[1] and len(orders[0]) == 8
    assert space.run("--seed", "x")[0] == 2


def test_validate_checks_several_task_files_and_tells_the_errors_of_all(jostle: Instance) -> None:
    space = Space(jostle, "checked", "1\ntrue\n1\n\n2\ntrue\n1\n")
    space.commands("1\ntrue\n2\n1\n", "command_gpus.txt")
    files = ["command/command_gpu.txt", "command/command_gpus.txt"]
    code, out, err = jostle.run("validate", *files, cwd=space.root)
    assert (code, out, err) == (0, "good: 3 jobs, 3 queues, 2 batches\n", "")
    space.commands("one\necho no number\n", "command_gpu_1.txt")
    space.commands("two\necho no number\n", "command_gpus.txt")
    space.commands("# nothing\n", "command_gpu_2.txt")
    jostle.file("jobs: [{rum: x}]\n", "bad.yaml")
    files += ["command/command_gpu_1.txt", "command/command_gpu_2.txt", str(jostle.work / "bad.yaml")]
    code, _, err = jostle.run("validate", *files, cwd=space.root)
    assert code == 6
    for file in ("command_gpus.txt:", "command_gpu_1.txt:", "command_gpu_2.txt holds no task", "bad.yaml:"):
        assert file in err, err
    told = jostle.run("validate", "--json", *files, cwd=space.root)[1]
    assert told.count('"file":') >= 4
    assert "give it alone" in jostle.run("run", *files[:2], cwd=space.root)[2]


def test_a21_a31_a32_nothing_of_a_workspace_can_be_written_by_the_group_whatever_the_umask(jostle: Instance) -> None:
    space = Space(jostle, "umask", f"1\ntouch {{work_dir}}/made\n{WAIT % 'go'}\n1\n", "log_dir: deep/logs\n")
    client = space.start(umask=0o002)
    states = space.root / "deep" / "logs" / "state"
    until(lambda: [*states.glob("*.json")] and space.file("made").exists(), "a state file, and a task that runs")
    found = modes(space.root / "deep")
    loose = [str(path.relative_to(space.root)) for path, mode in found.items() if mode & 0o022]
    loose += [str(path) for path, mode in modes(jostle.home / "runs").items() if mode & 0o077]
    space.file("go").touch()
    assert ended(client)[0] == 0
    assert loose == [] and {"uni_id.json", "state", "tasks", "compete_gpu.log"} <= {path.name for path in found}
    assert space.file("made").stat().st_mode & 0o777 == 0o664, "the task has the umask of whoever submitted it"


@pytest.mark.skipif(os.geteuid() != 0, reason="a group that is not ours needs root")
def test_a21_logs_that_others_can_write_are_told_with_what_to_do(jostle: Instance) -> None:
    space = Space(jostle, "loose", "1\ntrue\n1\n")
    logs = space.root / "logs"
    logs.mkdir()
    mates = "others of the group 61999"
    for mode, who, way in ((0o757, "everybody", "o-w"), (0o775, mates, "g-w"), (0o1777, "", ""), (0o755, "", "")):
        os.chown(logs, -1, 61_999)
        logs.chmod(mode)
        code, out, _ = space.run()
        told = [line.partition(" WARNING ")[2] for line in out.split("\n") if "can be changed by" in line]
        line = f"{logs.resolve()} can be changed by {who}, who could say how tasks ended: run `chmod {way} {logs.resolve()}`"
        assert (code, told) == (0, [line] if who else [])


SHIPPED = """\
gpu_left: 1
min_gpu: 3
max_gpu: 8
gpu_command_file: command_gpu.txt  # the source ships these names without a directory, with the files in command/
gpus_command_file: command_gpus.txt
"""


def test_a7_a9_the_workspace_that_the_source_ships_starts_and_every_verb_finds_its_tasks(jostle: Instance) -> None:
    space = Space(jostle, "shipped", f"# 队列ID\n1\n# 命令\n{WAIT % 'go'}\n# 显存需求(GB)\n20\n", SHIPPED)
    space.commands("# 队列ID\n1\ntrue\n# GPU数量需求\n2\n20\n", "command_gpus.txt")
    client = space.start()
    space.state(state="running", running_tasks=1)
    status = space.run("--status")
    assert status[0] == 0 and "Queue 1: 🔴 BUSY" in status[1]
    for verb in ("validate", "import"):
        code, out, err = jostle.run(verb, ".", cwd=space.root)
        assert (code, err) == (0, ""), out
    space.file("go").touch()
    assert ended(client)[0] == 0
    assert space.run("--mode", "multi")[0] == 0
    assert jostle.run("run", ".", cwd=space.root)[0] == 0


def test_a9_every_verb_names_the_key_the_line_and_what_exists(jostle: Instance) -> None:
    space = Space(jostle, "misnamed", "1\ntrue\n1\n", "gpu_command_file: commands_gpu.txt\n")
    for words in (("compete",), ("compete", "--status"), ("run", "."), ("validate", "."), ("import", ".")):
        code, out, err = jostle.run(*words, cwd=space.root)
        assert (code, out) == (4, ""), words
        assert "config/gpu_manage.yaml:2: gpu_command_file: there is no" in err, words
        assert "; there is command/command_gpu.txt: name that, or remove the key" in err, words


def test_a21_a_process_json_path_that_names_somebodys_program_leaves_it_alone(jostle: Instance) -> None:
    space = Space(jostle, "foreign", "1\ntrue\n1\n", "process_json_path: ../train.py\n")
    space.file("train.py").write_text("print('mine')\n")
    code, out, _ = space.run()
    assert code == 0, "the exit code decides"
    assert out.count("(process_json_path) cannot be written: it holds something that is no JSON object, and is not replaced") == 1
    assert space.file("train.py").read_text() == "print('mine')\n"
    assert [*space.work.glob("train.py.*")] in ([], [space.file("train.py.lock")])
