"""`jostle compete` where things go wrong around it: files that were edited or forged, two starts at once, an old terminal."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from jostle import proc
from tests.e2e.instance import PATIENCE, Instance, until
from tests.e2e.space import WAIT, Space, ended

ONE_CARD = "use_all_gpus: false\ncompete_gpus: [%d]\n"


def killed(space: Space, *ran: str) -> None:
    """A scheduler that was killed when these tasks had begun."""
    client = space.start()
    until(lambda: space.lines("ran") == list(ran), f"{ran}")
    client.kill()
    client.communicate()


def test_a33_renumbered_queues_run_nothing_twice(jostle: Instance) -> None:
    def tasks(queue: int) -> str:
        bodies = ("echo done", f"echo runs >> {{work_dir}}/ran; {WAIT % 'go'}; echo ran", "echo waits")
        return "\n".join(f"{queue}\n{body} >> {{work_dir}}/ran\n1\n" for body in bodies)

    space = Space(jostle, "renumbered", tasks(1), "use_all_gpus: false\ncompete_gpus: [0, 7]\n")
    killed(space, "done", "runs")
    space.commands(tasks(5))
    again = space.start()
    space.says("1 new, 1 task dropped")
    jostle.reason(jostle.newest()[0]["id"], "behind")
    space.file("go").touch()
    code, told = ended(again)
    assert code == 0 and space.lines("ran") == ["done", "runs", "ran", "waits"], told


def test_a33_another_work_dir_runs_nothing_again_and_holds_for_what_has_not_started(jostle: Instance) -> None:
    out = jostle.work / "moved" / "ran"
    tasks = (
        f"1\necho done {{work_dir}} >> {out}\n1\n\n1\necho runs >> {out}; {WAIT % 'go'}; pwd >> {out}\n1\n\n"
        f"1\necho {{work_dir}} $JOSTLE_UNI_ID_FILE >> {out}; pwd >> {out}\n1\n"
    )
    space = Space(jostle, "moved", tasks, ONE_CARD % 1)
    killed(space, f"done {space.work}", "runs")
    (space.work / "other").mkdir()
    space.settings(ONE_CARD % 1 + "work_dir: ../other\nlog_dir: ./logs2\nprocess_json_path: ./logs2/ids.json\n")
    again = space.start()
    until(lambda: "1 task not started yet" in _read(space.root / "logs2" / "compete_gpu.log"), "the move is told")
    space.file("go").touch()
    code, told = ended(again)
    ids, other = space.root / "logs2" / "ids.json", space.work / "other"
    assert code == 0 and "edited meanwhile" not in told and "resumed (1 pending, 1 running, 1 completed)" in told
    assert space.lines("ran")[2:] == [str(space.work), f"{other} {ids}", str(other)]
    assert os.listdir(space.root / "logs2" / "tasks") == ["single_1_queue1_task3.log"]


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a33_an_unedited_file_keeps_a_task_that_was_raised_to_the_whole_card(jostle: Instance) -> None:
    first = f"touch {{work_dir}}/tried; {WAIT % 'seen'}; echo CUDA out of memory; exit 1"
    task = f"1\nif [ -e {{work_dir}}/tried ]; then {WAIT % 'go'}; exit 0; fi; {first}\n22\n"
    space = Space(jostle, "raised", task, ONE_CARD % 2 + "retry_config: {max_retry_before_backoff: 1, backoff_duration: 2}\n")
    client = space.start()
    space.made("tried")
    until(lambda: jostle.call("gpus")["gpus"][2]["used_mib"] > 20_000, "its use is seen, else its end teaches nothing")
    space.file("seen").touch()
    until(lambda: (row := jostle.newest()[0])["state"] == "queued" and row["memory_mib"] is None, "the whole card")
    client.kill()
    client.communicate()
    again = space.start()
    space.says("is not finished: resumed")
    space.file("go").touch()
    code, told = ended(again)
    assert code == 0 and "edited" not in told and "1 completed" not in told, told


LOCKS = """
import signal, sys
from jostle.follow.feed import Feed
from jostle.compete.resume import locked
from jostle.formats import workspace
feed = Feed(None, after=0, batch=None)
if sys.argv[3] == "impatient":
    feed.items.put(("signal", signal.SIGTERM))
with locked(sys.argv[1], workspace.find(sys.argv[2]), feed):
    print("held", flush=True)
    sys.stdin.read()
"""


def starting(jostle: Instance, space: Space) -> subprocess.Popen[str]:
    """A process that has the lock of the workspace until it is spoken to."""
    words = [sys.executable, "-c", LOCKS, str(jostle.home), str(space.root), ""]
    first = subprocess.Popen(words, env=jostle.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    jostle.children.append(first)
    assert first.stdout is not None and first.stdout.readline() == "held\n"
    return first


def test_a14_what_is_edited_between_reading_and_the_first_task_is_seen(jostle: Instance) -> None:
    space = Space(jostle, "early", f"1\n{WAIT % 'go'}\n1\n", "use_all_gpus: false\ncompete_gpus: [0]\nunheard_of: 1\n")
    first = starting(jostle, space)
    client = space.start()
    space.says("unheard_of")  # it has read its files, and waits
    space.settings("use_all_gpus: false\ncompete_gpus: [0, 1]\n")
    space.commands("1\ntrue\n1\n")
    first.communicate("", timeout=PATIENCE)
    space.says("config/gpu_manage.yaml has changed: compete_gpus [0] → [0, 1]")
    space.says("command/command_gpu.txt has changed")
    space.file("go").touch()
    assert ended(client)[0] == 0


def test_a33_of_two_that_start_at_once_one_waits_even_if_an_editor_saves_the_file_in_between(jostle: Instance) -> None:
    space = Space(jostle, "saved", "1\ntrue\n1\n")
    first = starting(jostle, space)
    file = space.root / "command" / "command_gpu.txt"
    (space.root / "saved").write_text(file.read_text())
    (space.root / "saved").rename(file)
    second = [sys.executable, "-c", LOCKS, str(jostle.home), str(space.root), "impatient"]
    tried = subprocess.run(second, env=jostle.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert tried.stdout == "" and "another `jostle compete` is just starting" in tried.stderr
    space.commands("2\ntrue\n1\n", "command_gpu_1.txt")
    assert space.run("--config-index", "1")[0] == 0, "another config is not held up"
    first.communicate("", timeout=PATIENCE)
    assert space.run()[0] == 0


def test_forged_state_files_hold_up_and_end_neither_a_scheduler_nor_its_status(jostle: Instance) -> None:
    space = Space(jostle, "forged", f"1\ntouch {{work_dir}}/going; {WAIT % 'go'}\n1\n")
    directory = space.root / "logs" / "state"
    directory.mkdir(parents=True)
    os.mkfifo(directory / "6.json")
    (directory / "5.json").write_text('{"pid": 5, "x": ' + "[" * 100_000 + "]" * 100_000 + "}")
    client = space.start()
    space.made("going")
    batch = json.loads(until(lambda: _read(directory / f"{client.pid}.json"), "the state file"))["batch"]
    me = proc.stat(os.getpid())
    assert me is not None
    alive = {"pid": me.pid, "host": socket.gethostname(), "boot_id": proc.boot_id(), "start_ticks": me.ticks}
    full: dict[str, Any] = {**alive, "mode": "single", "config_index": 0, "config_file": "\x1b[31mEVIL\n", "state": "running"}
    for content in (
        alive, {**alive, "batch": batch}, {**full, "batch": {"a": 1}}, {**full, "batch": batch, "mode": "x"},
        {**full, "batch": batch},
    ):  # fmt: skip
        (directory / f"{me.pid}.json").write_text(json.dumps(content))
        code, out, err = space.run("--status")
        assert (code, err, out.count("Scheduler ")) == (0, "", 1) and "\x1b" not in out, content
    (directory / f"{me.pid}.json").unlink()
    (directory / "6.json").unlink()
    space.file("go").touch()
    assert ended(client)[0] == 0


def test_what_a_script_says_of_its_failure_is_not_obeyed_by_the_terminal(jostle: Instance) -> None:
    ids = '{"state": "abnormal_exit", "pid": 0, "error_type": "\\u001b[31mEVIL\\n2026 forged"}'
    task = f"""1\necho '{{"{{uni_id}}": {ids}}}' > {{work_dir}}/compete_gpu_retry/logs/uni_id.json; exit 1\n1\n"""
    space = Space(jostle, "escapes", task, "retry_config: {max_retries: 0}\n")
    code, out, _ = space.run()
    row = jostle.newest()[0]
    assert code == 1 and "EVIL" in row["error_type"], "else this proves nothing"
    shown = [jostle.ok("show", str(row["id"])), jostle.ok("why", str(row["id"])), out]
    assert all("EVIL" in text and "\x1b" not in text and "\n2026 forged" not in text for text in shown), shown


def test_on_a_terminal_of_an_older_alphabet_the_live_view_goes_on(jostle: Instance) -> None:
    import pty

    space = Space(jostle, "ascii", f"1\n: é日本; {WAIT % 'go'}\n1\n\n1\ntrue\n1\n", ONE_CARD % 3 + '"\\e[31mEVIL": 1\n')
    ours, theirs = pty.openpty()
    plain = {"TERM": "xterm", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    child = subprocess.Popen(
        [sys.executable, "-m", "jostle", "compete"], cwd=space.root, env={**jostle.env, **plain}, stdin=theirs, stdout=theirs,
        stderr=theirs,
    )  # fmt: skip
    jostle.children.append(child)  # type: ignore[arg-type]
    os.close(theirs)
    space.says("started")
    space.file("go").touch()
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is gone
    os.close(ours)
    assert child.wait(PATIENCE) == 0 and b"2 succeeded" in seen and b"Traceback" not in seen, seen
    assert b"EVIL" in seen and b"\x1b[31m" not in seen, "warnings of its files are told without what a terminal would obey"
