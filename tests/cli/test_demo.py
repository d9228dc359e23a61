"""The demo on a real terminal and without one: it shows what is so, and whatever ends it ends all that it has started."""

import http.client
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.instance import PATIENCE, SOURCE, hears_all, until

MARK = "JOSTLE_TEST_DEMO"
LOGIN = re.compile(r"http://localhost:(\d+)/ui/#code=([\w-]+)")


def environment(tmp_path, **more):
    """Everything that is started under it carries a mark; what it leaves lies in a directory of its own."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("JOSTLE_", "LC_"))}
    mine = {"TMPDIR": str(tmp_path / "tmp"), "JOSTLE_HOME": str(tmp_path / "own"), MARK: str(tmp_path), "PYTHONPATH": SOURCE}
    return {**kept, **mine, "LANG": "C.UTF-8", "TERM": "xterm", **more}


def marked(tmp_path):
    """The processes that live, of all that was started."""
    found, wanted = [], f"{MARK}={tmp_path}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def nothing_is_left(tmp_path):
    until(lambda: not marked(tmp_path), f"the end of {marked(tmp_path)}")
    assert list((tmp_path / "tmp").iterdir()) == [] and not (tmp_path / "own").exists()


class Terminal:
    """A person's, with the demo on it."""

    def __init__(self, tmp_path, **env):
        self.said = ""
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            hears_all()
            os.execve(sys.executable, [sys.executable, "-m", "jostle", "demo"], environment(tmp_path, **env))

    def hear(self):
        if self.keyboard is not None and select.select([self.keyboard], [], [], 0)[0]:
            try:
                self.said += os.read(self.keyboard, 65536).decode("utf-8", "replace")
            except OSError:
                pass
        return self.said

    def close(self):
        if self.keyboard is not None:
            os.close(self.keyboard)
        self.keyboard = None

    def end(self):
        """How it ended."""

        def look():
            self.hear()
            return os.waitpid(self.pid, os.WNOHANG)

        pid, status = 0, 0
        deadline = time.monotonic() + PATIENCE
        while not pid and time.monotonic() < deadline:
            pid, status = look()
            time.sleep(0.01)
        if not pid:
            os.kill(self.pid, signal.SIGTERM)
            raise AssertionError(f"it does not end: {self.said[-2000:]}")
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def terminal(tmp_path):
    made = []

    def make(**env):
        made.append(Terminal(tmp_path, **env))
        return made[0]

    yield make
    for one in made:
        one.close()
    until(lambda: not marked(tmp_path), "all is gone")


def asked(port, token, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return json.load(connection.getresponse())
    finally:
        connection.close()


def test_on_a_terminal_it_lives_until_ctrl_c_which_ends_all_of_it(terminal, tmp_path):
    screen = terminal()
    port = int(until(lambda: LOGIN.search(screen.hear()), "the URL of its console")[1])
    (home,) = (tmp_path / "tmp").iterdir()
    token = (home / "web" / "token").read_text().strip()
    seen = set()

    def alive():
        """What a console has to show, whenever somebody looks; each is noted when it is seen."""
        rows = asked(port, token, "/api/v1/ps?all")["jobs"]
        for row in rows:
            code = (row["reason"] or {}).get("code")
            if row["state"] == "failed" and row["error_type"]:
                seen.add("a failure with its reason")
            if code == "backoff":
                seen.add("a job in back-off")
            if row["state"] == "queued" and row["gpu_request"][0] > 1 and row["reason"]["text"]:
                seen.add("a job that wants many cards and is told why it waits")
        if sum(row["name"].startswith("cifar10 lr=") for row in rows) >= 6:
            seen.add("a sweep over seeds")
        cards = asked(port, token, "/api/v1/gpus")["gpus"]
        users = {h["user"] for card in cards for h in card["holders"] if h["run"] is None}
        seen.update(f"{user} is there" for user in users)
        if any(card["utilization"] == 0 and card["used_mib"] > 10_000 for card in cards):
            seen.add("an idle holder")
        screen.hear()
        return seen >= wanted

    wanted = {"a failure with its reason", "a job in back-off", "a job that wants many cards and is told why it waits",
              "a sweep over seeds", "alice is there", "dave is there", "an idle holder"}  # fmt: skip
    until(alive, f"{wanted - seen}")
    assert [entry["path"] for entry in asked(port, token, "/api/v1/workspaces")["workspaces"]] == [str(home / "workspace")]

    def mean():
        """Of the sweep's runs, over their seeds."""
        screen.hear()
        groups = asked(port, token, "/api/v1/results?target=1")["groups"]
        return any(cell["n"] for group in groups for cell in group["metrics"].values())

    until(mean, "the sweep has a result")
    until(lambda: "dave 20.0G" in screen.hear() and "Ctrl-C ends it" in screen.said, "the picture")
    os.write(screen.keyboard, b"\x03")
    assert screen.end() == 0
    nothing_is_left(tmp_path)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, "the terminal closes"])
def test_whatever_ends_it_nothing_is_left_behind(terminal, tmp_path, how):
    screen = terminal()
    until(lambda: LOGIN.search(screen.hear()), "the URL of its console")
    if isinstance(how, str):
        screen.close()
    else:
        os.kill(screen.pid, how)
    assert screen.end() in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    nothing_is_left(tmp_path)


def test_told_to_end_while_it_starts_it_leaves_nothing_behind(terminal, tmp_path):
    screen = terminal()
    until(lambda: list((tmp_path / "tmp").iterdir()) if (tmp_path / "tmp").exists() else None, "its home")
    os.write(screen.keyboard, b"\x03\x03")
    assert screen.end() in (0, 128 + signal.SIGINT)
    nothing_is_left(tmp_path)


def test_without_a_terminal_it_ends_by_itself_and_its_console_has_answered(tmp_path):
    words = [sys.executable, "-m", "jostle", "demo"]
    done = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert re.search(r"its console answers on http://localhost:\d+: 4 cards", done.stdout)
    assert "14 of 14 jobs succeeded" in done.stdout and "whole cards given out twice: 0." in done.stdout
    nothing_is_left(tmp_path)


def test_it_tells_its_story_in_the_language_of_the_person(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-u", "-m", "jostle", "demo"], env=environment(tmp_path, JOSTLE_LANG="zh", JOSTLE_WEB="off"),
        encoding="utf-8", stdout=subprocess.PIPE, preexec_fn=hears_all,
    )  # fmt: skip
    lines = [child.stdout.readline() for _ in range(3)]
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE)
    assert "模拟 GPU" in lines[0] and "队列" in lines[1] and "启动" in lines[2]
    nothing_is_left(tmp_path)


def test_what_a_demo_left_that_was_killed_is_gone_when_the_next_has_been(terminal, tmp_path):
    screen = terminal()
    until(lambda: LOGIN.search(screen.hear()), "the URL of its console")
    os.kill(screen.pid, signal.SIGKILL)
    assert screen.end() == -signal.SIGKILL and marked(tmp_path)
    env = {**environment(tmp_path), "JOSTLE_WEB": "off"}
    child = subprocess.Popen(
        [sys.executable, "-u", "-m", "jostle", "demo"], env=env, text=True, stdout=subprocess.PIPE, preexec_fn=hears_all
    )  # fmt: skip
    assert "simulated GPUs" in child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE)
    nothing_is_left(tmp_path)


HIDES = """\
import importlib.util as u
found = u.find_spec
u.find_spec = lambda name, package=None: None if name == "fastapi" else found(name, package)
"""


@pytest.mark.parametrize("why", ["off", "not installed"])
def test_without_a_console_it_says_so_and_goes_on(tmp_path, why):
    env = environment(tmp_path, JOSTLE_WEB="off" if why == "off" else "")
    if why != "off":
        (tmp_path / "sitecustomize.py").write_text(HIDES)
        env["PYTHONPATH"] = f"{tmp_path}:{SOURCE}"
    child = subprocess.Popen(
        [sys.executable, "-u", "-m", "jostle", "demo"], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=hears_all,
    )  # fmt: skip
    lines = []
    while not any("started" in line for line in lines):
        lines.append(child.stdout.readline())
        assert lines[-1], lines
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 128 + signal.SIGTERM, out
    assert any(("JOSTLE_WEB is off" if why == "off" else "jostle[web]") in line for line in lines), lines
    nothing_is_left(tmp_path)
