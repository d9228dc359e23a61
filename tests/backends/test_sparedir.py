"""A run's directory is made before there is a run, and exactly one ever takes the run's name."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from jostle.backends.local import sparedir
from jostle.backends.local.records import RunDir
from jostle.backends.local.sparedir import SpareDir


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs"
    path.mkdir(mode=0o700)
    return path


def test_the_name_is_taken_once_and_what_appears_is_whole(runs: Path) -> None:
    first, second = SpareDir(str(runs)), SpareDir(str(runs))
    assert first.take(f"{runs}/1.1", b'{"first": 1}') and not second.take(f"{runs}/1.1", b'{"second": 2, "longer": true}')
    assert (runs / "1.1" / "claim").read_bytes() == b'{"first": 1}'
    assert {p.name for p in (runs / "1.1").iterdir()} == {"claim", "lock", "log", "exit.new"}
    with open(runs / "1.1" / "lock") as f, pytest.raises(BlockingIOError):
        fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    second.discard()
    assert [p.name for p in runs.iterdir()] == ["1.1"]
    first.close()


def test_a_shorter_claim_leaves_nothing_of_a_longer_one(runs: Path) -> None:
    (runs / "1.1").mkdir()
    (runs / "1.1" / "claim").touch()
    one = SpareDir(str(runs))
    assert not one.take(f"{runs}/1.1", b"a very long claim")
    assert one.take(f"{runs}/2.1", b"short")
    assert (runs / "2.1" / "claim").read_bytes() == b"short"
    one.close()


def test_void_and_start_exclude_each_other(runs: Path) -> None:
    one = SpareDir(str(runs))
    assert RunDir(str(runs), (1, 1)).void() and RunDir(str(runs), (1, 1)).void()
    assert not one.take(f"{runs}/1.1", b"{}")
    assert one.take(f"{runs}/2.1", b'{"pid": 1, "ticks": 1, "boot": "b", "uni_id": "u"}')
    assert not RunDir(str(runs), (2, 1)).void()
    one.close()
    assert sorted(p.name for p in runs.iterdir()) == ["1.1", "2.1"], "a void that came too late leaves nothing"


def test_a_directory_that_an_older_version_left_without_a_claim_can_be_made_void(runs: Path) -> None:
    (runs / "1.1").mkdir()
    (runs / "2.1").mkdir()
    (runs / "2.1" / "lock").touch()
    (runs / "3.1").mkdir()
    (runs / "3.1" / "claim").write_text('{"pid": 1, "ticks": 1, "boot": "b", "uni_id": "u"}')
    assert [RunDir(str(runs), (n, 1)).void() for n in (1, 2, 3)] == [True, True, False]
    assert sorted(p.name for p in runs.iterdir()) == ["1.1", "2.1", "3.1"]


def test_of_many_processes_exactly_one_gets_the_run(runs: Path) -> None:
    for n in range(10):
        gate, gate_w = os.pipe()
        children = []
        for _ in range(6):
            pid = os.fork()
            if pid == 0:
                code = 2
                try:
                    os.close(gate_w)
                    mine = SpareDir(str(runs))
                    os.read(gate, 1)  # end of file: all at once
                    code = 0 if mine.take(f"{runs}/{n}.1", str(os.getpid()).encode()) else 1
                finally:
                    os._exit(code)
            children.append(pid)
        os.close(gate)
        os.close(gate_w)
        codes = {pid: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children}
        winners = [pid for pid, code in codes.items() if code == 0]
        assert sorted(codes.values()) == [0, 1, 1, 1, 1, 1]
        assert (runs / f"{n}.1" / "claim").read_text() == str(winners[0])


def test_what_killed_spares_left_is_swept_and_what_the_living_have_is_not(runs: Path) -> None:
    child = os.fork()
    if child == 0:
        SpareDir(str(runs))
        os._exit(0)
    os.waitpid(child, 0)
    (runs / f".{child}-1").mkdir()  # killed before it had a lock
    (runs / f".{os.getpid()}-1").mkdir()  # about to get one
    far = SpareDir(str(runs))
    os.rename(far.path, runs / f".{child}-2")  # of a living one whose pid means nothing here
    (runs / "5.1").mkdir()
    sparedir.sweep(str(runs))
    assert {p.name for p in runs.iterdir()} == {"5.1", f".{os.getpid()}-1", f".{child}-2"}


def test_one_whose_files_a_cleaner_removed_says_so(runs: Path) -> None:
    one = SpareDir(str(runs))
    assert one.is_complete()
    os.unlink(f"{one.path}/log")
    assert not one.is_complete()
    one.discard()
    assert list(runs.iterdir()) == []


def test_a_disk_that_takes_no_claim_is_an_error_and_not_another_who_was_quicker(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = SpareDir(str(runs))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: len(data) - 1)
    with pytest.raises(OSError) as caught:
        one.take(f"{runs}/1.1", b"claim")
    assert caught.value.errno == errno.ENOSPC and not (runs / "1.1").exists()
    assert not RunDir(str(runs), (1, 1)).void(), "and then nobody can say that it will never start"
    one.discard()
    assert list(runs.iterdir()) == []


def test_one_that_cannot_be_made_leaves_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def full(path: str, *more: int) -> int:
        if path.endswith("/claim"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, *more)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError):
        SpareDir(str(runs))
    assert list(runs.iterdir()) == []


def test_the_directory_of_all_runs_is_made_again_if_somebody_removed_it(runs: Path) -> None:
    runs.rmdir()
    one, two = SpareDir(str(runs)), SpareDir(str(runs))
    assert stat.S_IMODE(runs.stat().st_mode) == 0o700
    assert one.take(f"{runs}/1.1", b"{}")
    one.close()
    two.discard()


def test_a_home_that_is_gone_is_not_made_again(runs: Path) -> None:
    runs.rmdir()
    runs.parent.rename(runs.parent.with_name("elsewhere"))
    with pytest.raises(FileNotFoundError):
        SpareDir(str(runs))
