"""The scheduler log: lines, rotation, several writers; and files that are watched."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.compete.schedlog import SchedulerLog
from jostle.compete.watched import Watched
from jostle.formats.filemark import mark

SOURCE = str(Path(__file__).parents[2] / "src")

WRITER = """
import sys
from jostle.compete import schedlog
schedlog.PATIENCE = float(sys.argv[3])
log = schedlog.SchedulerLog(sys.argv[1], limit=4000, backups=100)
for k in range(300):
    log.write(f"{sys.argv[2]} {k}\\nsecond line of {sys.argv[2]} {k}")
"""


def test_a31_a_line_has_its_time_and_level(tmp_path: Path) -> None:
    log = SchedulerLog(str(tmp_path / "logs" / "compete_gpu.log"))
    log.write("Task started\n  on GPU 4")
    log.write("\x1b[2Jgone", "ERROR")
    lines = (tmp_path / "logs" / "compete_gpu.log").read_text().splitlines()
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(stamp + " INFO Task started", lines[0]) and re.fullmatch(stamp + " INFO   on GPU 4", lines[1])
    assert re.fullmatch(stamp + " ERROR �\\[2Jgone", lines[2]) and list(log.last) == lines
    log.close()


def test_a31_it_rotates_and_keeps_five(tmp_path: Path) -> None:
    path = tmp_path / "compete_gpu.log"
    log = SchedulerLog(str(path), limit=1000)
    for k in range(200):
        log.write(f"line {k}")
    log.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["compete_gpu.log", *(f"compete_gpu.log.{n}" for n in range(1, 6))]
    files = [tmp_path / f"compete_gpu.log.{n}" for n in range(5, 0, -1)] + [path]
    assert all(f.stat().st_size <= 1000 for f in files)
    told = [int(line.rsplit(" ", 1)[1]) for f in files for line in f.read_text().splitlines()]
    assert told == list(range(told[0], 200)), "in order, without a gap"


def test_a31_several_schedulers_write_and_rotate_at_once_and_nothing_is_lost_or_mixed(tmp_path: Path) -> None:
    path = tmp_path / "compete_gpu.log"
    env = {**os.environ, "PYTHONPATH": SOURCE}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"w{n}", "60"], env=env) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == 2400
    told = {line.split(" INFO ")[1] for line in lines}
    assert told == {f"{second}w{n} {k}" for second in ("", "second line of ") for n in range(4) for k in range(300)}


def test_a31_a_reader_who_keeps_its_lock_does_not_stop_it(tmp_path: Path) -> None:
    path = tmp_path / "compete_gpu.log"
    path.write_text("x" * 3990)
    with open(path) as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "w", "0.5"], env={**os.environ, "PYTHONPATH": SOURCE})
        try:
            assert writer.wait(60) == 0
        finally:
            writer.kill()
            writer.wait()
    assert path.read_text().endswith("second line of w 299\n") and (tmp_path / "compete_gpu.log.1").exists()


def test_a_log_that_was_removed_or_moved_away_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "compete_gpu.log"
    log = SchedulerLog(str(path))
    log.write("one")
    path.rename(tmp_path / "kept")
    log.write("two")
    path.unlink()
    log.write("three")
    log.close()
    assert path.read_text().endswith("INFO three\n") and (tmp_path / "kept").read_text().endswith("INFO one\n")


def test_a14_a_file_has_changed_when_it_is_another_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "gpu_manage.yaml"
    path.write_text("a: 1\n")
    watched = Watched(str(path), mark(str(path)))
    assert not watched.changed() and not watched.changed()
    path.write_text("")  # an editor is half-way
    assert not watched.changed()
    path.write_text("a: 22\n")
    assert not watched.changed()
    assert watched.changed()
    assert not watched.changed()
    path.unlink()
    assert not watched.changed() and not watched.changed()
    path.write_text("a: 333\n")
    assert not watched.changed()
    assert watched.changed()


def test_a14_a_file_that_is_missing_twice_is_gone_once_and_when_it_is_back_it_has_changed(tmp_path: Path) -> None:
    path, kept = tmp_path / "gpu_manage.yaml", tmp_path / "kept"
    path.write_text("a: 1\n")
    watched = Watched(str(path), mark(str(path)))
    path.rename(kept)  # as an editor does for a moment
    assert [watched.changed(), watched.gone()] == [False, False]
    kept.rename(path)
    assert [watched.changed(), watched.gone(), watched.changed(), watched.gone()] == [False] * 4
    path.rename(kept)
    looks = [(watched.changed(), watched.gone()) for _ in range(4)]
    assert looks == [(False, False), (False, True), (False, False), (False, False)]
    kept.rename(path)
    assert [watched.changed(), watched.changed(), watched.changed()] == [False, True, False]
    assert not Watched(str(tmp_path / "never"), None).gone()


def test_a31_where_there_are_no_locks_it_rotates_and_goes_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    log = SchedulerLog(str(tmp_path / "compete_gpu.log"), limit=1000)
    for k in range(200):
        log.write(f"line {k}")
    log.close()
    assert (tmp_path / "compete_gpu.log").read_text().endswith("line 199\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["compete_gpu.log", *(f"compete_gpu.log.{n}" for n in range(1, 6))]


def test_a31_one_that_cannot_be_renamed_grows(tmp_path: Path) -> None:
    path = tmp_path / "compete_gpu.log"
    (tmp_path / "compete_gpu.log.1" / "in the way").mkdir(parents=True)
    log = SchedulerLog(str(path), limit=100, backups=1)
    for k in range(20):
        log.write(f"line {k}")
    log.close()
    assert len(path.read_text().splitlines()) == 20
