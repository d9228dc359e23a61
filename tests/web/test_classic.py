"""The paths of the source system (SPEC A36), each with its parameters, answers and error codes; and who must not use them."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from jostle import proc
from tests.e2e.instance import alive, until
from tests.web.console import Console

FILE = """\
# the cars
1
echo car-one; sleep 600
2

# the flowers, beside them
2  # queue
"echo flower"
3

1
echo car-two
2
"""
RULES = """\
# courtesy
check_time: 1  # s
gpu_left: 1    # for others
retry_config:
  max_retry_before_backoff: 3
  backoff_duration: 600
"""


class Space:
    """A workspace of its own, and its console."""

    def __init__(self, root: Path) -> None:
        self.root = root / "space"
        for name in ("command", "config", "logs"):
            (self.root / name).mkdir(parents=True)
        self.fresh()
        self.console = Console(root / "c", workspace=self.root)

    def fresh(self) -> None:
        for path in (self.root / "command").iterdir():
            path.unlink()
        (self.root / "command" / "command_gpu.txt").write_text(FILE)
        (self.root / "config" / "gpu_manage.yaml").write_text(RULES)

    def text(self, name="command_gpu.txt"):
        return (self.root / "command" / name).read_text()

    def ask(self, method, path, body=None, **heads):
        return self.console.script(method, f"/api/{path}", body, **heads)

    def get(self, path):
        return self.console.get(f"/api/{path}")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    made = Space(tmp_path_factory.mktemp("a36"))
    yield made
    made.console.close()


@pytest.fixture
def space(one):
    one.fresh()
    return one


# --- cards


def test_a36_gpu(space):
    told = space.get("gpu")
    assert set(told) >= {
        "available", "gpu_count", "total_memory", "used_memory", "total_memory_human", "used_memory_human", "memory_percent",
        "total_processes", "active_users", "active_user_count", "gpus", "host", "timestamp",
    }  # fmt: skip
    assert told["available"] is True and told["gpu_count"] == 4 and told["total_memory"] == 4 * 24 << 30
    card = told["gpus"][0]
    assert set(card) >= {
        "index", "name", "uuid", "memory", "utilization", "temperature", "fan_speed", "power", "clocks", "driver_version",
        "processes",
    }  # fmt: skip
    assert set(card["memory"]) >= {"total", "used", "free", "percent", "total_human", "used_human", "free_human"}
    assert set(card["power"]) == {"draw", "limit", "draw_human", "limit_human"} and set(card["utilization"]) == {"gpu", "memory"}
    assert card["power"]["limit"] == 300 and card["power"]["limit_human"] == "300W"
    assert card["fan_speed"] is not None and card["clocks"]["sm"] > 0 and card["clocks"]["memory"] > 0
    host = told["host"]
    assert host["hostname"] == os.uname().nodename and host["cpu"]["count"] == os.cpu_count() and host["memory"]["total"] > 0
    until(lambda: space.get("gpu")["host"]["cpu"]["percent"] is not None, "a tick of the processors since the look before")


def test_a36_gpu_processes(space):
    console = space.console
    id = console.instance.add("--", "sleep 600")
    console.instance.reach(id, "running")
    (process,) = until(lambda: space.get("gpu/processes")["processes"], "its use of the card")
    assert set(process) >= {
        "gpu_index", "gpu_name", "pid", "name", "username", "gpu_memory", "gpu_memory_human", "gpu_memory_percent",
        "gpu_sm_utilization", "cpu_percent", "memory_percent", "running_time", "type", "command",
    }  # fmt: skip
    until(lambda: space.get("gpu/processes")["processes"][0]["gpu_sm_utilization"] == 90, "what it does, as somebody looks")
    assert process["run"] == f"{id}.1" and process["gpu_memory"] > 0 and process["memory_percent"] is not None
    assert process["command"] and len(process["command"]) <= 200
    seen = space.get("gpu")
    assert seen["total_processes"] == 1 and seen["active_users"] == [process["username"]] and seen["used_memory"] > 0
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    (hidden,) = console.script("GET", "/api/gpu/processes", token=reader).json["processes"]
    assert hidden["command"] == "" and hidden["pid"] == process["pid"]
    console.post("/api/v1/cancel", {"ids": [id], "now": True})
    console.instance.end(id)


@pytest.mark.parametrize("path", ["gpu/status", "gpu/state"])
def test_a36_gpu_status(space, path):
    assert set(space.get(path)) == {"available", "nvitop_available", "timestamp"} and space.get(path)["available"] is True


def test_a36_no_engine_is_said_and_a_card_that_cannot_be_read_is_an_error_of_its_own(make_console):
    console = make_console(gpus=None)
    told = console.get("/api/gpu")
    assert (told["available"], told["gpu_count"], told["gpus"]) == (False, 0, []) and told["error"]
    assert console.get("/api/gpu/processes") == {"processes": [], "count": 0}
    scene = "gpus: {count: 2, total: 24GiB}\nfaults: [{gpu: 1, state: lost}]\n"
    console.instance.up(console.instance.scenario(scene))
    cards = until(lambda: console.get("/api/gpu")["gpus"], "a reading")
    assert [("error" in card) for card in cards] == [False, True] and set(cards[1]) == {"index", "name", "uuid", "error"}


# --- task files


def test_a36_commands_list_all_and_read(space):
    listed = space.get("commands/single/list")
    assert listed["mode"] == "single"
    assert listed["configs"] == [
        {"index": 0, "name": "config 1", "file_path": str(space.root / "command" / "command_gpu.txt"),
         "file_name": "command_gpu.txt", "exists": True}
    ]  # fmt: skip
    assert space.get("commands/multi/list")["configs"][0]["exists"] is False
    read = space.get("commands/single")
    assert read["mode"] == "single" and read["config_index"] == 0 and read["config_name"] == "config 1"
    assert read["queues"] == [
        {"id": 1, "processes": [{"id": 1, "commands": ["echo car-one; sleep 600"], "gpu_count": 1, "memory": 2},
                                {"id": 2, "commands": ["echo car-two"], "gpu_count": 1, "memory": 2}]},
        {"id": 2, "processes": [{"id": 1, "commands": ["echo flower"], "gpu_count": 1, "memory": 3}]},
    ]  # fmt: skip
    (config,) = space.get("commands/single/all")["configs"]
    assert config == {"index": 0, "name": "config 1", "file_name": "command_gpu.txt", "queues": read["queues"]}
    missing = space.get("commands/multi?config_index=7")
    assert missing["queues"] == [] and missing["config_name"] == "config 8"


WRONG = ["commands/both/list", "commands/x", "commands/x/all", "scheduler/x/state", "commands/single?config_index=-1"]


@pytest.mark.parametrize("path", WRONG)
def test_a36_another_mode_or_index_is_400(space, path):
    assert space.ask("GET", path).status == 400


def test_a36_what_is_saved_unchanged_changes_not_a_byte(space):
    queues = space.get("commands/single")["queues"]
    told = space.ask("PUT", "commands/single", {"queues": queues})
    assert told.status == 200 and told.json["queues_count"] == 2
    assert set(told.json) == {"message", "mode", "config_index", "queues_count"}
    assert space.text() == FILE


def test_a36_an_edit_keeps_comments_and_the_old_file(space):
    queues = space.get("commands/single")["queues"]
    queues[1]["processes"][0]["memory"] = 7.5
    queues[0]["processes"].append({"commands": ["echo new", "echo more"], "memory": 1})
    assert space.ask("PUT", "commands/single", {"queues": queues}).status == 200
    text = space.text()
    assert "# the cars" in text and "# the flowers, beside them" in text and "2  # queue" in text and "7.5" in text
    again = space.get("commands/single")["queues"]
    commands = [process["commands"] for process in again[0]["processes"]]
    assert commands == [["echo car-one; sleep 600"], ["echo car-two"], ["echo new", "echo more"]]
    assert space.text("command_gpu.txt.backup") == FILE
    told = space.ask("POST", "commands/single/reset").json
    assert told == {"message": "command_gpu.txt is as it was", "mode": "single", "config_index": 0}
    assert space.text() == FILE


def test_a36_what_cannot_be_written_is_400_with_all_reasons_and_nothing_is_saved(space):
    bad = [{"commands": [], "memory": 1}, {"commands": ["a\nb"], "memory": 1}, {"commands": ["ok"], "memory": -1}]
    told = space.ask("PUT", "commands/single", {"queues": [{"id": 1, "processes": bad}]})
    assert told.status == 400 and [f"process {k}" in told.json["detail"] for k in (1, 2, 3)] == [True] * 3
    for body in ({}, {"queues": 3}, {"queues": [{"id": "x", "processes": []}]}, [], {"queues": [{"id": 1}]}):
        assert space.ask("PUT", "commands/single", body).status == 400
    assert space.text() == FILE


def test_a36_new_configs_count_on_and_can_be_deleted_but_the_first(space):
    told = space.ask("POST", "commands/single/new").json["config"]
    assert told["index"] == 1 and told["file_name"] == "command_gpu_1.txt" and Path(told["file_path"]).read_text() == ""
    assert space.ask("POST", "commands/single/new").json["config"]["index"] == 2
    assert space.ask("POST", "commands/multi/new").json["config"]["file_name"] == "command_gpus.txt"
    assert [c["index"] for c in space.get("commands/single/list")["configs"]] == [0, 1, 2]
    assert set(space.ask("DELETE", "commands/single/1").json) == {"message"}
    assert [c["index"] for c in space.get("commands/single/list")["configs"]] == [0, 2]
    assert space.ask("DELETE", "commands/single/1").status == 404
    assert space.ask("DELETE", "commands/single/0").status == 400
    assert space.ask("POST", "commands/single/reset?config_index=2").status == 400  # there is no backup


def test_s54_of_two_editors_the_second_learns_of_the_first(space):
    first = space.ask("GET", "commands/single")
    seen = first.heads["etag"]
    queues = first.json["queues"]
    queues[0]["processes"][0]["memory"] = 9
    saved = space.ask("PUT", "commands/single", {"queues": queues}, **{"If-Match": seen})
    assert saved.status == 200 and saved.heads["etag"] != seen
    assert space.ask("PUT", "commands/single", {"queues": []}, **{"If-Match": seen}).status == 412
    assert space.get("commands/single")["queues"][0]["processes"][0]["memory"] == 9


@pytest.mark.parametrize("how", ["link", "hard link", "folder"])
def test_s54_nothing_is_saved_through_a_link(space, tmp_path, how):
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text(FILE)
    path = space.root / "command" / "command_gpu.txt"
    path.unlink()
    if how == "folder":
        (space.root / "command").rmdir()
        (tmp_path / "command").mkdir()
        (tmp_path / "command" / "command_gpu.txt").write_text(FILE)
        (space.root / "command").symlink_to(tmp_path / "command")
    else:
        path.symlink_to(elsewhere) if how == "link" else os.link(elsewhere, path)
    try:
        told = space.ask("PUT", "commands/single", {"queues": []})
        assert told.status in (403, 409)
        assert elsewhere.read_text() == FILE
        assert how != "folder" or (tmp_path / "command" / "command_gpu.txt").read_text() == FILE
    finally:
        if how == "folder":
            (space.root / "command").unlink()
            (space.root / "command").mkdir()


@pytest.mark.parametrize("call", ["scheduler/single/start", "v1/compete", "v1/import"])
def test_s54_no_scheduler_or_import_reads_a_task_file_through_a_link(space, tmp_path, call):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret\n")
    path = space.root / "command" / "command_gpu.txt"
    path.unlink()
    path.symlink_to(secret)
    try:
        told = space.ask("POST", call, {} if call.startswith("v1/") else None)
        assert told.status == 403 and "link" in told.json["detail"] and b"the secret" not in told.body
    finally:
        path.unlink()


def test_an_editor_sees_errors_at_their_lines_and_what_would_be_queued(space):
    draft = FILE + "\n3\necho broken\n"
    told = space.ask("POST", "v1/commands/single/preview", {"text": draft}).json
    assert told["tasks"] == 3 and [flaw["line"] for flaw in told["flaws"]] == [16]
    assert "+echo broken" in told["diff"]
    queues = told["queues"]
    queues[0]["processes"].reverse()
    turned = space.ask("POST", "v1/commands/single/preview", {"text": FILE, "queues": queues}).json
    assert turned["text"].index("car-two") < turned["text"].index("car-one") and "# the cars" in turned["text"]
    assert space.text() == FILE
    read = space.ask("GET", "v1/commands/single")
    assert read.json["text"] == FILE and read.json["exists"] is True
    assert space.ask("PUT", "v1/commands/single", {"text": FILE}).status == 428
    assert space.ask("PUT", "v1/commands/single", {"text": draft}, **{"If-Match": read.heads["etag"]}).status == 422
    good = FILE + "\n3\necho good\n1\n"
    assert space.ask("PUT", "v1/commands/single", {"text": good}, **{"If-Match": read.heads["etag"]}).status == 200
    assert space.text() == good
    assert space.ask("PUT", "v1/commands/single", {"text": FILE}, **{"If-Match": read.heads["etag"]}).status == 412


def test_what_would_become_of_each_task_is_told_before_it_is_started(space):
    space.console.instance.see_cards()
    before = space.console.instance.newest()
    told = space.ask("POST", "v1/commands/single/outlook", {"text": FILE + "\n4\necho too-large\n4000\n"}).json
    assert told["known"] and told["drawn"] == "which of them come first is drawn by chance when they are queued"
    *tasks, large = told["tasks"]
    second = next(task for task in tasks if task["after"])
    assert tasks[second["after"][0]]["queue"] == second["queue"] and not second["starts"]
    assert large["text"] in told["never"][0] and not large["starts"]
    assert len(told["never"]) == 1
    assert space.text() == FILE and space.console.instance.newest() == before


# --- rules


def test_what_saving_rules_would_do_is_told_with_the_difference_and_nothing_is_saved(space):
    path = space.root / "config" / "gpu_manage.yaml"
    before = path.read_text()
    told = space.ask("POST", "v1/rules/preview", {"max_gpu": 7}).json
    assert any(line.startswith("+max_gpu: 7") for line in told["diff"]) and told["after"]["limits"][1] == 7
    assert told["before"]["available"] == told["after"]["available"] and told["waiting"] == []
    assert space.ask("POST", "v1/rules/preview", {}).json["diff"] == []
    assert space.ask("POST", "v1/rules/preview", {"max_gpu": "many"}).status == 422
    assert space.ask("POST", "v1/rules/preview", {"log_dir": "/tmp"}).status == 403
    assert path.read_text() == before


PLACES = ("work_dir", "log_dir", "process_json_path", "gpu_command_file", "gpus_command_file", "commands_path")


def test_a36_config(space):
    told = space.get("config")
    assert told["check_time"] == 1 and told["gpu_left"] == 1 and told["use_all_gpus"] is True and told["work_dir"] is None
    assert told["retry_config"]["backoff_duration"] == 600 and told["compete_gpus"] == list(range(10))
    # a form sends everything back as a browser has it: nothing changes, no key is added
    sent = json.loads(json.dumps(told), parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text))
    saved = space.ask("PUT", "config", sent)
    assert saved.status == 200 and saved.json["status"] == "ok"
    path = space.root / "config" / "gpu_manage.yaml"
    assert path.read_text() == RULES
    told = space.ask("PUT", "config", {**sent, "gpu_left": 2, "retry_config": {"backoff_duration": 60}}).json
    assert told["data"]["gpu_left"] == 2 and told["data"]["retry_config"]["backoff_duration"] == 60
    assert path.read_text() == RULES.replace("gpu_left: 1 ", "gpu_left: 2 ").replace("600", "60")


WRONG_RULES = [
    {"gpu_left": "many"}, {"gpu_left": -1}, {"check_time": 0}, {"use_all_gpus": 3}, {"unknown": 1}, {"retry_config": {"x": 1}},
    {"gpu_left": {"a": 1}}, {"strangers": "eat"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_RULES, ids=range(len(WRONG_RULES)))
def test_a36_config_that_is_wrong_is_400_and_nothing_is_saved(space, wrong):
    assert space.ask("PUT", "config", wrong).status == 400
    assert (space.root / "config" / "gpu_manage.yaml").read_text() == RULES


@pytest.mark.parametrize("key", PLACES)
def test_s51_no_place_on_the_disk_is_changed_from_a_browser(space, key):
    assert space.ask("PUT", "config", {key: "/etc"}).status == 403
    assert (space.root / "config" / "gpu_manage.yaml").read_text() == RULES


def test_rules_for_a_form(space):
    told = space.get("v1/rules")
    assert told["said"] == ["check_time", "gpu_left", "retry_config.backoff_duration", "retry_config.max_retry_before_backoff"]
    assert told["text"] == RULES and told["flaws"] == [] and told["values"]["gpu_left"] == 1 and "log_dir" in told["fixed"]


# --- schedulers


def start(space, path="scheduler/single/start?config_index=0"):
    told = space.ask("POST", path)
    assert told.status == 200, told
    return told.json


def test_a36_a_scheduler_is_a_process_of_its_own_and_can_be_stopped_by_mode(space):
    told = start(space)
    assert set(told) == {"success", "message", "pid", "log_file", "config_file"} and told["success"] is True
    pid = told["pid"]
    assert b"compete" in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert Path(told["log_file"]).name == "scheduler_single_0.log" and told["config_file"].endswith("command_gpu.txt")
    until(lambda: (space.root / "logs" / "state" / f"{pid}.json").exists(), "its state file")
    assert space.get("scheduler/status")["single"]["0"] == {"running": True, "pid": pid, "exit_code": None}
    assert space.get("scheduler/state")["multi"]["0"]["running"] is False
    (running,) = until(lambda: [s for s in space.get("scheduler/running")["schedulers"] if s["state"] == "running"], "it runs")
    assert running["pid"] == pid and running["mode"] == "single" and running["config_index"] == 0
    assert set(running) >= {
        "state", "started_at", "finished_at", "total_tasks", "pending_tasks", "running_tasks", "completed_tasks", "failed_tasks",
        "gpus_used", "gpus_available", "gpu_assignments", "queues", "last_log_lines", "last_error",
    }  # fmt: skip
    for name in ("state", "status"):
        state = space.get(f"scheduler/single/{name}")
        assert state["running"] is True and state["pid"] == pid and state["total_tasks"] == 3, name
    assert space.get("v1/compete")["schedulers"][0]["pid"] == pid
    again = space.ask("POST", "scheduler/single/start")
    assert again.status == 400 and str(pid) in again.json["detail"]
    assert space.ask("DELETE", "commands/single/0").status == 400
    content = until(
        lambda: space.get("log/content?mode=single&queue_id=1&process_index=0")["content"], "what the first task prints"
    )
    assert content == "car-one\n"
    reader = space.console.instance.ok("web", "--token", "--read-only").strip()
    hidden = space.console.script("GET", "/api/scheduler/running", token=reader)
    assert hidden.status == 200 and b"car-one" not in hidden.body and b"echo" not in hidden.body
    told = space.ask("POST", "scheduler/single/stop")
    assert told.status == 200 and told.json["success"] is True
    until(lambda: not alive(pid), "its end")
    assert not (space.root / "logs" / "state" / f"{pid}.json").exists()
    until(lambda: not space.get("scheduler/status")["single"]["0"]["running"], "its exit code is known")
    assert space.get("scheduler/status")["single"]["0"] == {"running": False, "pid": None, "exit_code": 130}
    for name in ("state", "status"):
        assert space.get(f"scheduler/single/{name}") == {"running": False, "pid": None, "exit_code": 130}
    assert space.ask("POST", "scheduler/single/stop").status == 400
    assert [e["data"]["did"] for e in space.console.instance.events("asked")][-2:] == ["start", "stop"]


def test_a36_a_scheduler_is_stopped_by_its_pid_or_by_kill(space):
    pid = start(space)["pid"]
    assert space.ask("POST", f"scheduler/stop/{pid}").json["success"] is True
    until(lambda: not alive(pid), "its end")
    assert space.ask("POST", f"scheduler/stop/{pid}").status == 404
    pid = space.ask("POST", "v1/compete", {"mode": "single", "fresh": True}).json["pid"]
    os.kill(pid, signal.SIGTERM)
    until(lambda: not space.get("scheduler/status")["single"]["0"]["running"], "its end")
    assert space.get("scheduler/status")["single"]["0"]["exit_code"] == 130


def test_page_and_terminal_agree_on_which_schedulers_run_whatever_state_files_there_are(tmp_path):
    space = Space(tmp_path / "a:single:b")
    (space.root / "command" / "command_gpus.txt").write_text("1\nsleep 600\n1\n1\n")
    console = space.console
    try:
        pid = start(space, "scheduler/multi/start")["pid"]
        state = space.root / "logs" / "state"
        until(lambda: (state / f"{pid}.json").exists(), "its state file")
        state.rename(tmp_path / "old")
        state.touch()  # no folder: none can be written
        shown = console.instance.run("compete", "--status", str(space.root))
        (listed,) = space.get("scheduler/running")["schedulers"]
        assert listed["pid"] == pid and f"Scheduler {pid} (multi, config 1): {listed['state']}" in shown[1]
        assert space.get("v1/compete")["schedulers"] == [listed]
        state.unlink()
        (tmp_path / "old").rename(state)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not space.get("scheduler/status")["multi"]["0"]["running"], "its end")
        assert (state / f"{pid}.json").exists() and space.get("scheduler/running")["schedulers"] == []
        assert console.instance.run("compete", "--status", str(space.root), "--mode", "multi")[0] == 1
    finally:
        console.close()


def test_a36_what_cannot_start_is_400(space):
    for path in ("scheduler/multi/start", "scheduler/single/start?config_index=5", "scheduler/x/start"):
        assert space.ask("POST", path).status == 400
    (space.root / "command" / "command_gpu.txt").write_text("1\necho\n")
    told = space.ask("POST", "scheduler/single/start")
    assert told.status == 400 and told.json["flaws"][0]["file"].endswith("command_gpu.txt")
    (space.root / "command" / "command_gpu.txt").write_text("# nothing\n")
    assert space.ask("POST", "scheduler/single/start").status == 400


def test_s25_s53_no_other_process_is_stopped_whatever_a_state_file_says(space):
    console = space.console
    child = console.instance.start("burn", "600", "100")
    me = proc.stat(child.pid)
    folder = space.root / "logs" / "state"
    folder.mkdir(exist_ok=True)
    forged = {
        "pid": child.pid, "mode": "single", "config_index": 0, "config_file": "x", "state": "running",
        "host": os.uname().nodename, "boot_id": proc.boot_id(), "start_ticks": me.ticks, "batch": 1, "queues": {},
    }  # fmt: skip
    (folder / f"{child.pid}.json").write_text(json.dumps(forged))
    try:
        for pid in (child.pid, 1, os.getpid(), console.pid, console.instance.engine, 0, -1, 2**40):
            assert space.ask("POST", f"scheduler/stop/{pid}").status == 404, pid
        assert space.ask("POST", "scheduler/single/stop").status == 400
        assert space.get("scheduler/running")["schedulers"] == []
        assert alive(child.pid)
    finally:
        (folder / f"{child.pid}.json").unlink()
        child.kill()


def test_s58_a_scheduler_knows_no_secret_and_its_files_are_private(space):
    told = start(space)
    known = Path(f"/proc/{told['pid']}/environ").read_bytes() + Path(f"/proc/{told['pid']}/cmdline").read_bytes()
    assert space.console.token.encode() not in known
    assert re.search(r"^Umask:\s*0?077$", Path(f"/proc/{told['pid']}/status").read_text(), re.M)
    space.ask("POST", "scheduler/single/stop")
    until(lambda: not alive(told["pid"]), "its end")


# --- logs


PLACE = "mode=single&config_index=0&queue_id=1&process_index=0"


def test_a36_a_log_file_is_bound_read_and_unbound(space):
    (space.root / "logs" / "mine.txt").write_text("".join(f"line {k}\n" for k in range(500)) + "<script>\x1b[31m\x00 end")
    told = space.ask("POST", f"log/bind?{PLACE}&log_path=logs/mine.txt")
    assert told.status == 200 and told.json["success"] is True
    bound = space.get("log/bindings")["single_0_1_0"]
    assert {key: bound[key] for key in ("mode", "config_index", "queue_id", "process_index", "log_path")} == {
        "mode": "single", "config_index": 0, "queue_id": 1, "process_index": 0, "log_path": "logs/mine.txt",
    }  # fmt: skip
    assert json.loads((space.root / "control" / "logs" / "log_bindings.json").read_text()) == space.get("log/bindings")
    assert space.text() == FILE
    read = space.get(f"log/content?{PLACE}&tail_lines=2")
    assert read["content"] == "line 499\n<script>\x1b[31m\x00 end" and read["total_lines"] == 501 and read["success"] is True
    same = space.get(f"log/read?log_path={space.root}/logs/mine.txt&tail_lines=2")
    assert same["content"] == read["content"]
    assert space.ask("DELETE", f"log/bind?{PLACE}").json["success"] is True
    assert space.get("log/bindings") == {}
    assert space.ask("DELETE", f"log/bind?{PLACE}").json["success"] is False
    assert space.get("log/content?mode=single&queue_id=9&process_index=0")["success"] is False


FAILING = "retry_config: {max_retries: 0, on_failure: continue}\n"


@pytest.mark.parametrize("first", ["exit 3", "echo never"])
def test_the_log_of_a_process_is_that_of_its_place_after_blocks_before_it_were_removed(space, first):
    instance = space.console.instance
    path = space.root / "command" / "command_gpu.txt"
    last = f"after {first}"  # not what lies in the file of this name from the time before
    rest = f"1\necho two\n1\n\n1\necho {last}; sleep 600\n1\n"
    path.write_text(f"1\n{first}\n1\n\n{rest}")
    (space.root / "config" / "gpu_manage.yaml").write_text(FAILING)
    waits = first != "exit 3"
    blocker = instance.add("-g", "4", "--", "sleep 600") if waits else None
    if blocker:
        instance.reach(blocker, "running")
    pid = start(space)["pid"]
    job = next(row["id"] for row in instance.newest(3) if row["commands"] == [first])
    instance.reach(job, "queued" if waits else "failed")
    if waits:
        instance.ok("set", str(job + 2), "name=queue 1 task 9: mine")
    os.kill(pid, signal.SIGHUP)  # it leaves its tasks as they are
    until(lambda: not alive(pid), "its end")
    path.write_text(rest)
    start(space)
    if blocker:
        instance.reach(job, "cancelled")
        instance.call("intent", ids=[blocker], batch=None, do="cancel", now=True)
    logs = lambda: [Path(run["log"]) for run in instance.runs(job + 2)]  # noqa: E731
    until(lambda: any(log.exists() and last in log.read_text() for log in logs()), "what the last task prints")
    contents = [space.get(f"log/content?mode=single&queue_id=1&process_index={k}")["content"] for k in range(2)]
    assert space.ask("POST", "scheduler/single/stop").status == 200
    assert contents == ["two\n", f"{last}\n"]


OUTSIDE = [
    "../../etc/passwd", "%2e%2e%2fetc/passwd", "..%c0%afetc/passwd", "/etc/passwd", "logs/%00", "//proc/self/root/etc/passwd",
    "logs/../config/gpu_manage.yaml", "logs-secret/x", "logs/../logs-secret/x", "/proc/self/environ",
    "logs/../../c/home/web/token",
    "logs", "logs/", "", "#", "?", "logs/nothing.log", "command/command_gpu.txt", "config/gpu_manage.yaml",
]  # fmt: skip


@pytest.mark.parametrize("content", ["[" * 200_000, "{", "[]", '{"single_0_1_0": 5}'])
def test_a_file_of_bindings_that_is_none_is_told(space, content):
    path = space.root / "control" / "logs" / "log_bindings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    try:
        told = space.ask("GET", "log/bindings")
        assert told.status == 409 and "log_bindings.json is damaged" in told.json["detail"]
    finally:
        path.unlink()


@pytest.mark.parametrize("path", OUTSIDE)
def test_a38_s18_s19_no_file_beyond_the_log_folders_is_read_or_bound(space, path):
    (space.root / "logs-secret").mkdir(exist_ok=True)
    (space.root / "logs-secret" / "x").write_text("secret")
    told = space.ask("GET", f"log/read?log_path={path}")
    assert told.status in (400, 404), told
    if "nothing" not in path:
        assert space.ask("POST", f"log/bind?{PLACE}&log_path={path}").status in (400, 404)
    assert space.get("log/bindings") == {}


@pytest.mark.parametrize("how", ["link", "hard link", "folder", "pipe"])
def test_s20_s52_no_link_or_pipe_in_a_log_folder_is_read(space, tmp_path, how):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    inside = space.root / "logs" / "inside"
    path = inside
    if how == "link":
        inside.symlink_to(secret)
    elif how == "hard link":
        os.link(secret, inside)
    elif how == "pipe":
        os.mkfifo(inside)
    else:
        inside.symlink_to(tmp_path)
        path = inside / "secret"
    try:
        told = space.ask("GET", f"log/read?log_path={path}")
        assert told.status in (403, 409) and b"the secret" not in told.body
    finally:
        inside.unlink()


# --- settings


def test_a36_a37_settings(space):
    told = space.get("settings")
    assert set(told) == {"port", "bind-address", "allow-lan", "log-level", "secret", "target-yaml-path", "log-dir"}
    assert all(set(one) == {"value", "requires_restart", "warning", "description"} for one in told.values())
    assert told["port"]["value"] == 29214 and told["secret"]["value"] is None
    saved = space.ask("PUT", "settings", {"port": 31000, "log-level": "debug", "secret": None})
    assert saved.status == 200 and saved.json["requires_restart"] == ["port", "log-level"] and saved.json["warnings"] == []
    assert (space.root / "config" / "control_setting.yaml").read_text() == "port: 31000\nlog-level: debug\n"
    for wrong in ({"port": 0}, {"port": "x"}, {"log-level": "loud"}, {"nothing": 1}, {"secret": "admin"}, {"secret": 5}):
        assert space.ask("PUT", "settings", wrong).status == 400
    (space.root / "config" / "control_setting.yaml").unlink()


def test_a38_s51_a_browser_opens_nothing_to_others_and_moves_no_folder(space):
    told = space.ask("PUT", "settings", {"bind-address": "0.0.0.0", "allow-lan": True})
    assert told.status == 200 and len(told.json["warnings"]) == 2 and told.json["requires_restart"] == []
    assert not (space.root / "config" / "control_setting.yaml").exists()
    for key in ("target-yaml-path", "log-dir"):
        assert space.ask("PUT", "settings", {key: "/etc"}).status == 403


def test_a36_a37_a38_a_new_secret_is_the_token_and_never_in_the_file(space):
    old, new = space.console.token, "Zx9-quite-another-one-Q7"
    page = space.console.log_in()
    assert space.ask("PUT", "settings", {"secret": new}).status == 200
    space.console.token = new
    assert space.console.script("GET", "/api/settings", token=old).status == 401
    assert space.console.ask("GET", "/api/settings", heads=page).status == 401
    assert new not in space.console.script("GET", "/api/settings").body.decode()
    assert not any(new in path.read_text() for path in (space.root / "config").iterdir())


# --- who must not


def test_the_workspaces_of_a_console_are_those_it_knows(space, tmp_path):
    (space_path,) = [one["path"] for one in space.get("v1/workspaces")["workspaces"] if one["current"]]
    assert space_path == str(space.root)
    (tmp_path / "command").mkdir()
    for path in ("commands/single/list", "config", "scheduler/status", "v1/rules"):
        assert space.ask("GET", f"{path}?workspace={tmp_path}").status == 404
        assert space.ask("GET", f"{path}?workspace={space.root}").status == 200


def test_s55_who_may_only_read_sees_no_file(space):
    reader = space.console.instance.ok("web", "--token", "--read-only").strip()
    (space.root / "logs" / "mine.txt").write_text("text")
    commands = ("commands/single", "commands/single/all", "v1/commands/single", "v1/rules")
    for path in (*commands, "log/bindings", "log/read?log_path=logs/mine.txt", f"log/content?{PLACE}"):
        assert space.console.script("GET", f"/api/{path}", token=reader).status == 403, path
    assert set(space.console.script("GET", "/api/config", token=reader).json).isdisjoint({"work_dir", "log_dir"})


def test_classic_the_page_of_the_source_gets_in_with_its_cookie_from_its_own_origin_only(make_console, tmp_path):
    (tmp_path / "w" / "command").mkdir(parents=True)
    console = make_console(gpus=None, workspace=tmp_path / "w", words=("--classic",))
    cookie = {"Cookie": console.log_in()["Cookie"]}
    own = {**cookie, "Sec-Fetch-Site": "same-origin"}
    assert console.ask("GET", "/api/commands/single/list", heads=own).status == 200
    assert console.ask("PUT", "/api/commands/single", {"queues": []}, heads=own).status == 200
    for heads in (cookie, {**cookie, "Sec-Fetch-Site": "same-site"}, {**cookie, "Sec-Fetch-Site": "none"}):
        assert console.ask("GET", "/api/commands/single/list", heads=heads).status == 403
    assert console.ask("GET", "/api/v1/ps", heads=own).status == 403  # which is not of the source
