"""The uni_id file: every shape is read, nothing of others is lost, and damage is told from a write that is not finished."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jostle import proc, uniid
from jostle.uniid import Entry, UniIdFile
from jostle.uniid import file as unifile

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "uni_id.json"


def written(path: Path, value: object) -> UniIdFile:
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return UniIdFile(str(path))


def gone_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


# --- A21: shapes


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        ({"pid": 7, "state": "running", "retry_count": 2}, Entry(7, "running", 2)),
        ({"pid": 7, "state": "abnormal_exit", "retry_count": 1, "error_type": "oom"}, Entry(7, "abnormal_exit", 1, "oom")),
        (7, Entry(7)),
        ("7", Entry(7)),
        (7.0, Entry(7)),
        (0, Entry(0)),
        ({"pid": "7"}, Entry(7, "running")),
        ({"pid": 0, "state": "running"}, Entry(0, "running")),
        ({"pid": None, "state": "normal_exit", "error_type": "none"}, Entry(0, "normal_exit")),
        ({"pid": -1, "state": 5, "retry_count": "x"}, Entry(0, "")),
        ({"pid": 10**30, "state": "running"}, Entry(0, "running")),
        ({}, Entry(0, "")),
    ],
)
def test_a21_an_entry_is_read_in_every_shape(path: Path, value: object, entry: Entry) -> None:
    assert written(path, {"x": value}).read() == {"x": entry}


@pytest.mark.parametrize("value", [None, True, [], "seven", 7.5, float("inf"), "٧" * 30])
def test_a21_an_entry_that_makes_no_sense_is_ignored_and_kept(path: Path, value: object) -> None:
    file = written(path, {"odd": value, "x": 7})
    assert file.read() == {"x": Entry(7)}
    file.put("y", pid=8, state="running")
    assert json.loads(path.read_text())["odd"] == value


def test_a21_fields_that_we_do_not_know_are_kept(path: Path) -> None:
    file = written(path, {"x": {"pid": 7, "state": "running", "host": "a"}, "y": 9})
    file.put("x", state="abnormal_exit", error_type="oom")
    file.put("y", state="normal_exit")
    assert json.loads(path.read_text()) == {
        "x": {"pid": 7, "state": "abnormal_exit", "host": "a", "error_type": "oom"},
        "y": {"pid": 9, "state": "normal_exit"},
    }
    file.put("x", state="normal_exit")
    assert "error_type" not in json.loads(path.read_text())["x"]


# --- A22: writing


def test_a22_a_new_file_gets_its_directory_and_the_mode_of_the_umask(path: Path) -> None:
    before = os.umask(0o022)
    try:
        UniIdFile(str(path)).put("x", pid=7, state="running", retry_count=0)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert json.loads(path.read_text()) == {"x": {"pid": 7, "state": "running", "retry_count": 0}}


@pytest.mark.parametrize("umask, modes", [(0o002, (0o755, 0o644)), (0o000, (0o755, 0o644)), (0o077, (0o700, 0o600))])
def test_a22_no_umask_lets_a_group_write_what_decides_about_success(tmp_path: Path, umask: int, modes: tuple[int, int]) -> None:
    """Whoever can write the file, or put another in its place, can say `normal_exit`."""
    path = tmp_path / "new" / "logs" / "uni_id.json"
    before = os.umask(umask)
    try:
        file = UniIdFile(str(path))
        file.put("x", pid=7, state="running")
        file.put("x", state="normal_exit")
    finally:
        os.umask(before)
    directories = {stat.S_IMODE(p.stat().st_mode) for p in (path.parent, path.parent.parent)}
    files = {stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    assert (directories, files) == ({modes[0]}, {modes[1]})


def test_a22_a_directory_that_was_opened_to_the_group_stays_so(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o775)
    UniIdFile(str(path)).put("x", pid=7)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o775


def test_a22_the_mode_of_an_old_file_is_kept_and_a_link_is_written_through(path: Path, tmp_path: Path) -> None:
    written(path, {})
    path.chmod(0o664)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    UniIdFile(str(link)).put("x", pid=7)
    assert link.is_symlink() and json.loads(path.read_text()) == {"x": {"pid": 7}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert sorted(p.name for p in path.parent.iterdir()) == ["uni_id.json", "uni_id.json.lock"]


def test_a22_a_lock_that_cannot_be_had_is_gone_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unifile, "PATIENCE", 0.05)
    file = written(path, {})
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file.put("x", pid=7)
    assert file.read() == {"x": Entry(7)}


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_a22_what_is_no_file_is_an_error_and_never_waited_for(path: Path, kind: str) -> None:
    path.parent.mkdir()
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(OSError):
        UniIdFile(str(path)).put("x", pid=7)
    with pytest.raises(OSError):
        UniIdFile(str(path)).read()


def put_one(path: str, n: int) -> None:
    UniIdFile(path).put(f"u{n}", pid=n, state="running")


def test_a29_writers_with_locks_lose_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unifile, "PATIENCE", 60.0)  # for all of them, one after the other, on a host that is busy
    crowd = [FORK.Process(target=put_one, args=(str(path), n)) for n in range(1, 25)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert [one.exitcode for one in crowd] == [0] * 24
    assert UniIdFile(str(path)).read() == {f"u{n}": Entry(n) for n in range(1, 25)}


# --- A22, A29: those who write without a lock


def test_a29_what_an_unlocked_writer_writes_into_the_replaced_file_is_taken_over(path: Path) -> None:
    """He has opened the file; we replace it; he writes and closes."""
    file = written(path, {"his": {"pid": 5, "state": "running"}, "other": 1})
    with path.open("r+") as his:
        file.change(lambda data: bool(data.update({"ours": {"pid": 7, "state": "running"}})) or True, settle=False)
        assert file.settle() is not None, "somebody has it open"
        his.truncate()
        json.dump({"his": {"pid": 5, "state": "normal_exit"}, "new": {"pid": os.getpid(), "state": "running"}}, his)
    while file.settle() is not None:
        time.sleep(0.005)
    said = file.read()
    assert said["his"].state == "normal_exit" and said["new"].pid == os.getpid()
    assert said["ours"].pid == 7 and said["other"].pid == 1, "what he did not know of is not removed"


def test_a29_a_write_between_our_look_and_our_rename_is_taken_over(path: Path) -> None:
    file = written(path, {"his": 5})

    def edit(data: dict[str, object]) -> bool:
        path.write_text(json.dumps({"his": {"pid": 5, "state": "abnormal_exit", "error_type": "oom"}}))
        data["ours"] = 7
        return True

    file.change(edit)
    assert file.read() == {"his": Entry(5, "abnormal_exit", 0, "oom"), "ours": Entry(7)}


def test_a29_a_late_write_never_takes_back_a_word_nor_brings_back_the_dead(path: Path) -> None:
    file = written(path, {"x": {"pid": 5, "state": "normal_exit"}})

    def edit(data: dict[str, object]) -> bool:
        path.write_text(json.dumps({"x": {"pid": 5, "state": "running"}, "old": {"pid": gone_pid(), "state": "running"}}))
        data["ours"] = 7
        return True

    file.change(edit)
    assert file.read() == {"x": Entry(5, "normal_exit"), "ours": Entry(7)}


def no_leases(fd: int, command: int, arg: int = 0) -> int:
    """A file system without leases, such as NFS."""
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_a29_where_no_lease_tells_of_writers_we_look_once_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "fcntl", no_leases)
    file = written(path, {})
    with path.open("r+") as his:
        file.change(lambda data: bool(data.update({"ours": 7})) or True, settle=False)
        assert file.settle() == unifile.LOOK_AGAIN
        json.dump({"his": {"pid": 5, "state": "normal_exit"}}, his)
        his.truncate()
    while (pause := file.settle()) is not None:
        time.sleep(pause)
    assert file.read() == {"ours": Entry(7), "his": Entry(5, "normal_exit")}


# --- A23: damage


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is damaged is damaged soon."""
    monkeypatch.setattr(unifile, "DAMAGED_AFTER", 0.02)


def test_a23_a_missing_file_is_no_warning(path: Path) -> None:
    heard: list[str] = []
    assert UniIdFile(str(path), heard.append).read() == {}
    assert not path.parent.exists() and heard == []


@pytest.mark.parametrize("text", ['{"x": {"pid": 7, "sta', ' {"x": nonsense}', "{{", "\0\0\0", '\0\0{"'])
def test_a23_a_damaged_file_is_kept_beside_and_replaced(path: Path, text: str, soon: None) -> None:
    heard: list[str] = []
    written(path, text)
    file = UniIdFile(str(path), heard.append)
    file.put("x", pid=8, state="running")
    assert file.read() == {"x": Entry(8)}
    [kept] = path.parent.glob("uni_id.json.damaged-*")
    assert kept.read_text() == text
    assert len(heard) == 1 and str(kept) in heard[0]


def test_a23_an_empty_file_is_replaced_with_a_warning_and_no_copy(path: Path) -> None:
    heard: list[str] = []
    written(path, "")
    UniIdFile(str(path), heard.append).put("x", pid=8)
    assert json.loads(path.read_text()) == {"x": {"pid": 8}}
    assert [*path.parent.glob("*.damaged-*")] == [] and "empty" in heard[0]


def test_a23_two_damaged_files_within_a_second_are_both_kept(path: Path, soon: None) -> None:
    for text in ("{one", "{two"):
        written(path, text).put("x", pid=8)
    assert {p.read_text() for p in path.parent.glob("*.damaged-*")} == {"{one", "{two"}


@pytest.mark.parametrize("text", ["#!/bin/bash\necho mine\n", "import os\n", "[1, 2]", "7", "notes: {a: b}\n", "nonsense"])
def test_a23_a_file_that_was_never_ours_is_not_replaced(path: Path, text: str, soon: None) -> None:
    for change in (lambda f: f.put("x", pid=8), lambda f: f.remove("x"), lambda f: f.clean()):
        with pytest.raises(OSError, match="is no JSON object, and is not replaced"):
            change(written(path, text))
    assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir() if not p.name.endswith(".lock")] == [path.name]


def test_a23_a_reader_leaves_a_damaged_file_alone_and_says_so(path: Path, soon: None) -> None:
    heard: list[str] = []
    written(path, "nonsense")
    assert UniIdFile(str(path), heard.append).read() == {}
    assert path.read_text() == "nonsense" and "damaged" in heard[0]


def test_a23_a_file_that_is_just_being_written_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script has truncated the file and not written it yet: that is not damage."""
    monkeypatch.setattr(unifile, "DAMAGED_AFTER", 30.0)
    monkeypatch.setattr(unifile, "PATIENCE", 30.0)
    file = written(path, "")
    writer = threading.Thread(target=path.write_text, args=('{"x": 7}',))
    writer.start()
    assert file.read() == {"x": Entry(7)}
    writer.join()


# --- A24: the functions


def test_a24_the_functions_know_both_shapes(path: Path) -> None:
    gone = gone_pid()
    ours = os.getpid()
    content = {
        "bare": ours,
        "record": {"pid": ours, "state": "running"},
        "over": {"pid": ours, "state": "normal_exit"},
        "gone": {"pid": gone, "state": "running"},
        "none": {"pid": 0, "state": "running"},
        "odd": [],
    }
    written(path, content)
    assert uniid.get_all_processes(str(path)) == content
    assert uniid.get_running_processes(str(path)) == {"bare": ours, "record": ours}
    assert uniid.is_process_running("bare", str(path)) and not uniid.is_process_running("nobody", str(path))
    uniid.wait_for_completion("gone", check_interval=60, path=str(path))


def test_a24_waiting_ends_when_the_process_does(path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        written(path, {"x": child.pid})
        assert uniid.is_process_running("x", str(path))
        assert child.stdin is not None
        child.stdin.close()
        uniid.wait_for_completion("x", check_interval=0.01, path=str(path))


def test_a24_the_file_is_found_where_scripts_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOSTLE_UNI_ID_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert uniid.default_path() is None and uniid.get_all_processes() == {}
    written(tmp_path / "script_process" / "uni_id.json", {"old": 0})
    assert [*uniid.get_all_processes()] == ["old"]
    written(tmp_path / "logs" / "uni_id.json", {"new": 0})
    assert [*uniid.get_all_processes()] == ["new"]
    monkeypatch.setenv("JOSTLE_UNI_ID_FILE", str(tmp_path / "script_process" / "uni_id.json"))
    assert [*uniid.get_all_processes()] == ["old"]


# --- A29: pids that are another's, and zombie records


def test_a29_a_pid_that_another_run_has_by_now_is_not_running(path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={proc.MARK: "another"}) as child:
        file = written(path, {"x": child.pid, "another": child.pid})
        assert uniid.get_running_processes(str(path)) == {"another": child.pid}
        assert file.clean() == ["x"]


def test_a29_a_process_younger_than_the_file_is_not_the_one_it_names(path: Path) -> None:
    written(path, {"x": os.getpid()})
    assert uniid.is_process_running("x", str(path))
    os.utime(path, (0, 0))  # as after a reboot: the file is older than every process
    assert not uniid.is_process_running("x", str(path))


def test_a29_cleaning_removes_zombie_records_and_keeps_failures(path: Path) -> None:
    gone, ours = gone_pid(), os.getpid()
    content = {
        "zombie": {"pid": gone, "state": "running"},
        "bare": gone,
        "good": {"pid": gone, "state": "normal_exit"},
        "bad": {"pid": gone, "state": "abnormal_exit", "error_type": "oom"},
        "alive": {"pid": ours, "state": "running"},
        "none": {"pid": 0, "state": "running"},
    }
    file = written(path, content)
    assert file.clean() == ["zombie", "bare", "good"]
    assert [*file.read()] == ["bad", "alive", "none"]
    assert file.clean() == []
    assert file.clean(everything=True) == ["bad"]


def test_nothing_is_imported_by_using_it(path: Path) -> None:
    """A shim may use it days after the package was replaced on disk."""
    code = f"""
import sys
from jostle.uniid import UniIdFile
before = set(sys.modules)
heard = []
f = UniIdFile({str(path)!r}, heard.append)
f.put("x", pid=1, state="running"); f.read(); f.clean(); f.remove("x")
open({str(path)!r}, "wb").write(b"\\xef\\xbb\\xbf{{damaged \\xff")
f.put("x", pid=1)
print(heard, set(sys.modules) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "damaged" in done.stdout and done.stdout.endswith("set()\n")
