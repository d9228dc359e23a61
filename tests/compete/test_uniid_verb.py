"""`jostle uni-id`: what scripts call instead of inline Python (A24)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jostle.cli.main import main
from jostle.uniid import Entry, UniIdFile

Verb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verb:
    for name in ("JOSTLE_UNI_ID", "JOSTLE_UNI_ID_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "uni_id.json").write_text("{}")

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["uni-id", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def file(tmp_path: Path) -> UniIdFile:
    return UniIdFile(str(tmp_path / "logs" / "uni_id.json"))


def gone_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_a24_set_registers_and_reports(verb: Verb, file: UniIdFile) -> None:
    assert verb("set", "x", "--state", "running", "--pid", "4711", "--retry-count", "2") == (0, "", "")
    assert file.read() == {"x": Entry(4711, "running", 2)}
    assert verb("set", "x", "--state", "abnormal_exit", "--error-type", "oom")[0] == 0
    assert file.read() == {"x": Entry(4711, "abnormal_exit", 2, "oom")}
    assert verb("set", "x", "--state", "normal_exit")[0] == 0
    assert file.read() == {"x": Entry(4711, "normal_exit", 2)}


def test_a24_inside_a_run_neither_id_nor_file_need_be_named(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOSTLE_UNI_ID", "mine")
    monkeypatch.setenv("JOSTLE_UNI_ID_FILE", str(tmp_path / "new" / "u.json"))
    assert verb("set", "--state", "running", "--pid", str(os.getpid()))[0] == 0
    assert verb("get") == (0, f"running pid={os.getpid()} retry_count=0\n", "")
    code, _, err = verb("wait")
    assert code == 2 and "a run cannot wait for itself" in err


def test_a24_get_says_it_for_people_and_programs(verb: Verb, file: UniIdFile) -> None:
    file.put("x", pid=gone_pid(), state="running")
    file.put("y", pid=7, state="abnormal_exit", error_type="oom", retry_count=3)
    assert verb("get", "x")[1].endswith("(this process is gone)\n")
    assert verb("get", "y")[1] == "abnormal_exit pid=7 retry_count=3 error_type=oom\n"
    told = json.loads(verb("get", "y", "--json")[1])
    assert told == {
        "schema": 1, "file": file.path, "uni_id": "y", "pid": 7, "state": "abnormal_exit", "retry_count": 3, "error_type": "oom",
        "alive": None,
    }  # fmt: skip
    code, out, err = verb("get", "z")
    assert (code, out) == (4, "") and "there is no entry z" in err


def test_a24_list_shows_every_entry_in_any_shape(verb: Verb, file: UniIdFile, tmp_path: Path) -> None:
    assert verb("list")[1] == "" and "no entries" in verb("list")[2]
    Path(file.path).write_text(json.dumps({"bare": os.getpid(), "odd": [], "x": {"pid": 0, "state": "normal_exit"}}))
    rows = [line.split()[:4] for line in verb("list")[1].splitlines()[1:]]
    assert rows == [["bare", "running", str(os.getpid()), "yes"], ["x", "normal_exit", "0", "-"]]
    assert [e["uni_id"] for e in json.loads(verb("list", "--json")[1])["entries"]] == ["bare", "x"]
    assert verb("list", "--file", str(tmp_path / "none.json"))[0] == 0


@pytest.mark.parametrize(("state", "code"), [("normal_exit", 0), ("abnormal_exit", 1)])
def test_a24_wait_ends_with_the_word(verb: Verb, file: UniIdFile, state: str, code: int) -> None:
    file.put("x", pid=0, state="running")
    said = threading.Thread(target=lambda: file.put("x", state=state, error_type="oom"))
    said.start()
    assert verb("wait", "x")[0] == code
    said.join()
    told = json.loads(verb("wait", "x", "--json")[1])
    assert (told["ok"], told["state"]) == (code == 0, state)


def test_a24_wait_takes_a_cleaned_entry_for_success(verb: Verb, file: UniIdFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.put("x", pid=os.getpid(), state="running")
    monkeypatch.setattr("jostle.uniid.waiting.time.sleep", lambda seconds: file.remove("x"))  # while it waits
    assert verb("wait", "x") == (0, "", "")


def test_a24_wait_gives_up(verb: Verb, file: UniIdFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.put("x", pid=os.getpid(), state="running")
    code, _, err = verb("wait", "x", "--timeout", "0")
    assert code == 124 and "time is up" in err
    assert verb("wait", "nobody")[0] == 4
    monkeypatch.setattr("jostle.uniid.waiting.LAST_WORD", 0.0)
    file.put("x", pid=gone_pid())
    code, _, err = verb("wait", "x")
    assert code == 1 and "has ended without a word" in err


def test_a24_a29_clean_removes_zombie_records(verb: Verb, file: UniIdFile) -> None:
    file.put("zombie", pid=gone_pid(), state="running")
    file.put("bad", pid=0, state="abnormal_exit", error_type="oom")
    assert json.loads(verb("clean", "--json")[1])["removed"] == ["zombie"]
    assert "removed 1 record\n  bad" in verb("clean", "--all")[2]
    assert file.read() == {}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("set", "x"), "say what to set"),
        (("set", "--state", "running"), "which uni_id?"),
        (("get", "x", "--pid", "7"), "--pid belongs to `uni-id set`"),
        (("get", "x", "--timeout", "7"), "--timeout belongs to `uni-id wait`"),
        (("get", "x", "--all"), "--all belongs to `uni-id clean`"),
        (("list", "x"), "takes no id"),
        (("set", "x", "--pid", "-3"), "expected"),
        (("set", "x", "--state", "done"), "invalid choice"),
    ],
)
def test_a24_a_slip_is_told_in_one_sentence(verb: Verb, words: tuple[str, ...], text: str) -> None:
    code, out, err = verb(*words)
    assert (code, out) == (2, "") and text in err


def test_a24_without_a_file_it_says_where_it_looked(verb: Verb, file: UniIdFile) -> None:
    os.unlink(file.path)
    code, _, err = verb("list")
    assert code == 2 and "logs/uni_id.json and no script_process/uni_id.json here" in err
    code, _, err = verb("set", "x", "--pid", "1", "--file", "/dev/null/x.json")
    assert code == 1 and "/dev/null/x.json" in err


def test_a24_it_needs_no_engine_and_starts_none(tmp_path: Path) -> None:
    env = {**os.environ, "JOSTLE_HOME": str(tmp_path / "home"), "JOSTLE_UNI_ID_FILE": str(tmp_path / "u.json")}
    argv = [sys.executable, "-m", "jostle", "uni-id", "set", "x", "--state", "running", "--pid", "1"]
    subprocess.run(argv, env=env, check=True)
    assert not (tmp_path / "home").exists()
