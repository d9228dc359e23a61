"""The consoles of a home: how many there are, which one a person gets, and by what files the source's scripts know them."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.e2e.instance import alive, until
from tests.web.console import Console, kept

ON = {"JOSTLE_WEB": ""}


@pytest.fixture
def home(instance):
    """It ends with no console left."""
    yield instance
    instance.run("web", "--stop")


@pytest.fixture
def space(home):
    root = home.root / "space"
    (root / "command").mkdir(parents=True)
    (root / "command" / "command_gpu.txt").write_text("1\nsleep 600\n2\n")
    return root


def listed(home):
    return [(int(line.split("pid ")[1].split()[0]), int(line.partition(":")[2].split()[0]))
            for line in home.ok("web", "--list").splitlines()]  # fmt: skip


def consoles(space):
    path = space / "control" / "logs" / "pid.json"
    return json.loads(path.read_text())["instances"] if path.exists() else []


def test_a39_multi_starts_so_many_anew_and_keep_existing_leaves_those_that_run(home, space):
    urls = home.ok("web", str(space), "--port", "0", "--multi", "2").splitlines()
    first = listed(home)
    assert len(urls) == 2 and all("/ui/#code=" in url for url in urls)
    assert len(first) == 2 and len({port for _, port in first}) == 2
    assert {int(url.split(":")[2].split("/")[0]) for url in urls} == {port for _, port in first}
    home.ok("web", "--port", "0", "--keep-existing")
    more = listed(home)
    assert more[:2] == first and len(more) == 3
    home.ok("web", "--port", "0", "--multi", "2", "--keep-existing")
    assert listed(home)[:3] == more and len(listed(home)) == 5
    home.ok("web", "--port", "0", "--multi", "1")
    (last,) = listed(home)
    assert last not in more and not any(alive(pid) for pid, _ in more)


def test_a39_stop_count_ends_the_oldest_and_status_shows_those_that_are_left(home, space):
    home.ok("web", str(space), "--port", "0", "--multi", "3")
    first, second, third = listed(home)
    stopped = home.ok("web", "--stop", "--count", "2")
    assert [f"pid {pid} " in line for (pid, _), line in zip((first, second), stopped.splitlines(), strict=True)] == [True, True]
    assert not alive(first[0]) and not alive(second[0]) and alive(third[0])
    status = home.ok("web", "--status")
    assert f"localhost:{third[1]}  pid {third[0]}  workspace {space}" in status and len(status.splitlines()) == 1
    assert f"localhost:{third[1]}, pid {third[0]}, workspace {space}" in home.ok("status")
    assert [(entry["instance"], entry["pid"]) for entry in consoles(space)] == [(1, third[0])]
    home.ok("web", "--stop")
    assert home.run("web", "--status")[1:] == ("", "no console runs\n")


@pytest.mark.parametrize("words", ["--multi 0", "--multi 21", "--multi x", "--stop --count 0", "--count 1", "--list --stop"])
def test_a39_a_number_of_consoles_that_is_none_is_a_usage_error(home, words):
    assert home.run("web", *words.split())[0] == 2 and home.ok("web", "--list") == ""


SHUT_DOWN = """
import json, os, signal, sys
instances = json.load(open(sys.argv[1])).get('instances', [])
for one in instances:
    os.kill(one['pid'], 0)
    print(one['instance'], one['url'], one['port'], one['start_time'])
    os.kill(one['pid'], signal.SIGTERM)
"""
"""What the source's shut_down.sh reads of an entry, and does."""


def test_a39_pid_json_is_where_and_as_the_scripts_of_the_source_read_it(home, space):
    home.ok("web", str(space), "--port", "0", "--multi", "2")
    path = space / "control" / "logs" / "pid.json"
    entries = consoles(space)
    assert [(entry["pid"], entry["port"]) for entry in entries] == listed(home)
    assert [list(entry) for entry in entries] == 2 * [
        ["instance", "pid", "port", "host", "ip", "url", "start_time", "start_timestamp"]
    ]
    assert all(entry["url"] == f"http://127.0.0.1:{entry['port']}" for entry in entries)
    assert all(abs(entry["start_timestamp"] - time.time()) < 600 for entry in entries)
    done = subprocess.run([sys.executable, "-c", SHUT_DOWN, str(path)], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1", "2"]
    until(lambda: not path.exists(), "the consoles have left, and the last has removed the file")
    until(lambda: home.ok("web", "--list") == "", "and are gone")


def test_a39_an_entry_of_a_console_that_was_killed_goes_and_that_of_another_program_stays(home, space):
    home.ok("web", str(space), "--port", "0")
    ((pid, _),) = listed(home)
    path = space / "control" / "logs" / "pid.json"
    theirs = {"instance": 1, "pid": os.getpid(), "port": 29214, "url": "http://10.0.0.1:29214", "start_time": "x"}
    ended = subprocess.Popen(["true"])  # and nobody has waited for it
    until(lambda: not alive(ended.pid), "it has ended")
    path.write_text(json.dumps({"instances": [theirs, {**theirs, "pid": ended.pid}, *consoles(space)]}))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it is dead")
    home.ok("web", str(space), "--port", "0")
    ((new, _),) = listed(home)
    assert [(entry["instance"], entry["pid"]) for entry in consoles(space)] == [(1, os.getpid()), (2, new)]
    assert consoles(space)[0] == theirs
    ended.wait()


def test_a39_an_entry_whose_pid_is_by_now_that_of_a_younger_process_goes(home, space):
    path = space / "control" / "logs" / "pid.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"instances": [{"instance": 1, "pid": os.getpid(), "port": 29214}]}))
    os.utime(path, (1e9, 1e9))  # long before this process began
    home.ok("web", str(space), "--port", "0")
    assert [entry["pid"] for entry in consoles(space)] == [pid for pid, _ in listed(home)]


@contextlib.contextmanager
def locked(*folders):
    """As any user can who may read them."""
    with contextlib.ExitStack() as held:
        for folder in folders:
            fd = os.open(folder, os.O_RDONLY)
            held.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield


def test_who_locks_the_folders_of_a_workspace_holds_up_neither_scheduler_nor_console_nor_saving(home, space):
    home.up("sim:2x24")
    logs = space / "control" / "logs"
    logs.mkdir(parents=True)
    with locked(space, space / "command", space / "control", logs):
        scheduler = home.start("compete", str(space))
        until(lambda: "running" in home.states().values(), "its task runs")
        scheduler.send_signal(signal.SIGTERM)
        scheduler.communicate(timeout=60)
        home.ok("web", str(space), "--port", "0")
        ((_, port),) = listed(home)
        console = Console.on(home, port)
        queues = [{"id": 1, "processes": [{"commands": ["true"]}]}]
        told = console.script("PUT", "/api/commands/single", {"queues": queues})
        assert told.status == 200, told
        home.ok("web", "--stop")
    assert "true" in (space / "command" / "command_gpu.txt").read_text()
    assert sorted(os.listdir(space / "command")) == ["command_gpu.txt", "command_gpu.txt.backup"]
    assert list(logs.iterdir()) == []


@pytest.mark.parametrize("what", ["a link", "no json", "a pipe", "a link to its folder"])
def test_a39_what_lies_in_the_place_of_pid_json_is_neither_followed_nor_in_the_way(home, space, what):
    folder, other = space / "control" / "logs", home.root / "other"
    other.mkdir()
    (other / "pid.json").write_text("mine")
    (space / "control").mkdir()
    if what == "a link to its folder":
        folder.symlink_to(other)
    else:
        folder.mkdir()
    if what == "a link":
        (folder / "pid.json").symlink_to(other / "pid.json")
    elif what == "no json":
        (folder / "pid.json").write_text("[1")
    elif what == "a pipe":
        os.mkfifo(folder / "pid.json")
    home.ok("web", str(space), "--port", "0")
    assert len(listed(home)) == 1 and (other / "pid.json").read_text() == "mine"
    if "link" not in what:
        assert len(consoles(space)) == 1


def test_a39_app_status_json_names_each_scheduler_that_runs_and_no_other(home, space):
    home.up("sim:2x24")
    home.ok("web", str(space), "--port", "0")
    path = space / "control" / "logs" / "app_status.json"
    scheduler = home.start("compete", str(space))
    until(path.exists, "the scheduler stands in it")
    assert json.loads(path.read_text()) == {"single_0": {"pid": scheduler.pid, "running": True}}
    scheduler.send_signal(signal.SIGTERM)
    scheduler.communicate(timeout=60)
    assert not path.exists()
    killed = home.start("compete", str(space))
    until(path.exists, "the next one stands in it")
    killed.kill()
    killed.communicate(timeout=60)
    again = home.start("compete", str(space))
    until(lambda: str(again.pid) in path.read_text(), "the last one")
    assert json.loads(path.read_text()) == {"single_0": {"pid": again.pid, "running": True}}, "alone"
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=60)


def say(space, text):
    path = space / "config" / "control_setting.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


STARTED = "Started server process"  # which is of the level info of the server below, and of our debug


def test_a37_a_start_obeys_port_and_log_level_of_the_settings_file_and_says_that_its_secret_is_no_use(home, space):
    log = home.home / "web" / "web.log"
    with kept() as port:
        path = say(space, f"port: {port}\nlog-level: debug\nsecret: hunter2\n")
        code, _, err = home.run("web", str(space))
        assert code == 0 and f"{path}: secret is not used" in err and "hunter2" not in err and "warning: port" not in err
        assert [at for _, at in listed(home)] == [port]
        until(lambda: STARTED in log.read_text(), "it tells what it does")
        console = Console.on(home, port)
        assert console.ask("GET", "/api/settings", heads={"Authorization": "Bearer hunter2"}).status == 401
        told = console.get("/api/settings")
        assert told["port"]["value"] == port and told["secret"]["value"] is None and "not used" in told["secret"]["warning"]
        home.ok("web", "--stop")
    log.unlink()
    say(space, "port: 1\nlog-level: error\n")
    home.ok("web", str(space), "--port", "0")  # what is said on the command line is said last
    ((_, other),) = listed(home)
    assert other not in (1, port) and Console.on(home, other).get("/api/health")
    home.ok("web", "--stop")
    assert STARTED not in log.read_text()


def test_a37_what_the_settings_file_says_without_effect_is_told_and_moves_nothing(home, space):
    path = say(
        space,
        "port: many\nlog-level: loud\nbind-address: 0.0.0.0\nallow-lan: true\ntarget-yaml-path: else/rules.yaml\nlog-dir: else\n",
    )
    code, _, err = home.run("web", str(space), "--port", "0")
    keys = ("port", "log-level", "bind-address", "allow-lan", "target-yaml-path", "log-dir")
    assert code == 0 and [f"{path}: {key} is not used: " in err for key in keys] == [True] * len(keys)
    ((_, port),) = listed(home)
    console = Console.on(home, port)
    told = console.get("/api/settings")
    for key, place in (("target-yaml-path", "config/gpu_manage.yaml"), ("log-dir", "control/logs")):
        assert told[key]["requires_restart"] is False and told[key]["warning"] == f"has no effect: it is always {place}"
    assert console.script("PUT", "/api/config", {"max_gpu": 3}).status == 200
    assert "max_gpu: 3" in (space / "config" / "gpu_manage.yaml").read_text()
    (space / "logs").mkdir()
    (space / "logs" / "mine.txt").write_text("mine")
    where = "mode=single&queue_id=1&process_index=0"
    assert console.script("POST", f"/api/log/bind?{where}&log_path=logs/mine.txt").status == 200
    assert (space / "control" / "logs" / "log_bindings.json").exists() and not (space / "else").exists()


def test_a37_a_settings_file_as_the_source_ships_it_is_told_nothing_of(home, space):
    say(space, "bind-address: 127.0.0.1\nallow-lan: false\ntarget-yaml-path: ./config/gpu_manage.yaml\nlog-dir: control/logs/\n")
    code, _, err = home.run("web", str(space), "--port", "0")
    assert code == 0 and "is not used" not in err


def test_two_who_ask_at_once_get_one_console(home, space):
    home.up("sim:1x24")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        wanted = str(free.getsockname()[1])
    asking = [home.start("up", str(space), "--port", wanted, env=ON) for _ in range(3)]
    urls = [child.communicate(timeout=60)[0] for child in asking]
    assert [child.returncode for child in asking] == [0, 0, 0]
    ((_, port),) = listed(home)
    assert [url.partition("#")[0] for url in urls] == 3 * [f"http://localhost:{port}/ui/"]


def test_a_console_of_another_version_makes_way_and_it_is_said(home, space):
    home.up("sim:1x24")
    home.ok("up", str(space), "--port", "0", env=ON)
    ((pid, port),) = listed(home)
    record = home.home / "web" / "instances" / f"{pid}.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": "0.1.9", "of_a_newer_one": 1}))
    code, out, err = home.run("up", env=ON)
    ((new, at),) = listed(home)
    assert code == 0 and new != pid and at == port and f":{port}/" in out and not alive(pid)
    assert f"the console on port {port} has started anew: the one that ran was of version 0.1.9" in err
    code, _, err = home.run("up", env=ON)
    assert code == 0 and "anew" not in err and listed(home) == [(new, port)]


def test_one_thing_at_a_time_is_asked_of_web(home):
    code, out, err = home.run("web", "--url", "--token")
    assert (code, out) == (2, "") and "not allowed with" in err


def test_a_directory_that_anybody_can_write_is_no_workspace_and_nothing_is_started(home):
    shared = home.root / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    code, out, err = home.run("up", str(shared), "--gpus", "sim:1x24", env=ON)
    assert (code, out) == (5, "") and "is no workspace" in err and "name a directory of your own" in err
    assert home.run("web", str(shared))[0] == 5
    assert home.ok("web", "--list") == "" and "none runs" in home.ok("status")


def test_a_directory_of_ones_own_can_become_a_workspace_and_it_is_said(home):
    fresh = home.root / "fresh"
    fresh.mkdir()
    code, _, err = home.run("web", str(fresh), "--port", "0")
    assert code == 0 and f"note: {fresh} is no workspace yet" in err and f"  workspace {fresh}  " in home.ok("web", "--list")
