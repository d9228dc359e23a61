"""What was answered is there, or its loss is said (F25): side files missing after a kill, older copies, broken texts."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.engine import checks
from jostle.errors import Damaged, JostleError
from jostle.store import jobs, salvage
from jostle.store.file import NAME
from jostle.store.reads import Reader
from jostle.store.store import Store

SUBMITS = """import os, sys
from jostle.engine import checks
from jostle.store import jobs
from jostle.store.store import Store
s = Store(sys.argv[1])
for k in range(int(sys.argv[2])):
    request = checks.request({"jobs": [{"commands": [f"echo {k}"], "workdir": "/"}]})
    with s.transaction(durable=k % 2 == 0):
        jobs.submit(s, request, at=1.0, now=1.0, rank=lambda: 0.5)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def home(tmp_path: Path) -> str:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    Store(str(path)).close()
    return str(path)


def killed(home: str, submits: int) -> None:
    """Another process takes so many jobs, one after another, and dies."""
    assert subprocess.run([sys.executable, "-c", SUBMITS, home, str(submits)]).returncode == -9


def contents(home: str) -> dict[str, bytes]:
    return {name: Path(home, name).read_bytes() for name in os.listdir(home) if not name.endswith("-shm")}


def count(home: str) -> int:
    s = Store(home)
    try:
        return len(jobs.unfinished(s))
    finally:
        s.close()


@pytest.mark.parametrize("missing", [("-shm",), ("-wal",), ("-shm", "-wal"), ()])
@pytest.mark.parametrize("before", [0, 3])
def test_side_files_missing_after_a_kill_lose_nothing_in_silence(home: str, missing: tuple[str, ...], before: int) -> None:
    """F25: nothing that was answered is missing; what cannot be had back is refused and left as it is."""
    if before:
        killed(home, before)
        assert count(home) == before  # some of it is in the file itself
    killed(home, 4)
    for suffix in missing:
        os.unlink(f"{home}/{NAME}{suffix}")
    left = contents(home)
    try:
        found = count(home)
    except Damaged as e:
        assert "-wal" in missing and "older than what was recorded" in str(e) and "jostle doctor --accept" in str(e)
        assert contents(home).items() >= left.items(), "it was left as it is"
    else:
        assert found == before + 4


def test_an_older_copy_is_refused_in_the_same_boot_until_a_person_accepts_it(home: str) -> None:
    killed(home, 2)
    assert count(home) == 2
    shutil.copy(f"{home}/{NAME}", f"{home}/copy")
    killed(home, 3)
    assert count(home) == 5
    os.replace(f"{home}/copy", f"{home}/{NAME}")
    with pytest.raises(Damaged, match="its newest event is 2, and 5 was there"):
        Store(home)
    with pytest.raises(Damaged):
        Store(home)
    from jostle.store import seen

    assert (seen.accept(f"{home}/{NAME}", 5), seen.accept(f"{home}/{NAME}", 2), seen.accept(f"{home}/{NAME}", 2)) == (0, 5, 0)
    assert count(home) == 2


def test_after_a_reboot_the_journal_is_believed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a power cut took was never said to be safe; that file was not forced to the disk, the journal was."""
    killed(home, 3)
    os.unlink(f"{home}/{NAME}-wal")
    monkeypatch.setenv("JOSTLE_TEST_BOOT_ID", "another-boot")
    assert count(home) == 0


def test_a_database_that_is_gone_within_the_boot_is_not_begun_anew(home: str) -> None:
    killed(home, 1)
    for suffix in ("", "-wal", "-shm"):
        os.unlink(f"{home}/{NAME}{suffix}")
    with pytest.raises(Damaged, match="is missing: put it back"):
        Store(home)
    assert not os.path.exists(f"{home}/{NAME}")


def test_what_is_undone_is_never_noted_as_recorded(home: str) -> None:
    """Else the next engine would miss what never was."""
    s = Store(home)
    with contextlib.suppress(RuntimeError), s.transaction():
        s.event(1.0, "held")
        raise RuntimeError
    with s.transaction() as db:
        db.execute("SAVEPOINT request")
        s.event(1.0, "held")
        db.execute("ROLLBACK TO request")
        db.execute("RELEASE request")
    s.close()
    assert count(home) == 0


def filled(home: str, n: int = 3) -> str:
    s = Store(home)
    request = checks.request({"jobs": [{"commands": [f"echo {k}"], "workdir": "/"} for k in range(n)]})
    with s.transaction():
        jobs.submit(s, request, at=1.0, now=1.0, rank=lambda: 0.5)
    s.close()
    return f"{home}/{NAME}"


JSON = [("job", "commands"), ("job", "env"), ("batch", "policy"), ("shape", "key"), ("context", "data"), ("meta", "value"),
        ("event", "data")]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "column", "broken"),
    [*((*where, "CAST(x'fffe41' AS TEXT)") for where in [*JSON, ("job", "name")]), *((*where, "'[\"echo'") for where in JSON),
     *((*where, "'5'") for where in [*JSON, ("job", "targets")] if where != ("meta", "value"))],
)  # fmt: skip
def test_broken_text_is_said_and_kept_and_what_is_whole_can_be_salvaged(
    home: str, tmp_path: Path, table: str, column: str, broken: str
) -> None:
    path = filled(home)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        if table == "meta":
            db.execute("INSERT INTO meta VALUES ('spec', '1')")
        db.execute(f"UPDATE {table} SET {column} = {broken} WHERE rowid = (SELECT min(rowid) FROM {table})"
                   if table != "meta" else f"UPDATE meta SET value = {broken} WHERE key = 'spec'")  # fmt: skip
    before = Path(path).read_bytes()
    if table != "event":  # the engine reads no old events
        with pytest.raises(Damaged, match="damaged"):
            Store(home)
    reader = Reader(home)
    for look in (reader.jobs, lambda: reader.batch(1), lambda: reader.meta("spec"), reader.events):
        with contextlib.suppress(JostleError):
            look()
    assert Path(path).read_bytes() == before
    (said, *_) = salvage.complaints(path)
    assert table in said and column in said
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    salvage.salvage(path, str(new / NAME))
    s = Store(str(new))
    assert s.db.execute("SELECT count(*) FROM job").fetchone()[0] in (2, 3)
    s.close()


@pytest.mark.parametrize("what", ["a directory", "no file"])
def test_what_is_no_file_in_place_of_the_database_is_said_and_left(home: str, what: str) -> None:
    path = f"{home}/{NAME}"
    for suffix in ("", "-wal", "-shm", "-seen"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)
    os.mkdir(path) if what == "a directory" else os.mkfifo(path, 0o600)
    with pytest.raises(Damaged, match=f"is {what}. It was left as it is"):
        Store(home)
    if what == "a directory":
        with pytest.raises(JostleError, match="cannot be read"):
            Reader(home).jobs()
    with pytest.raises(Damaged):
        salvage.salvage(path, f"{home}/new")
    assert os.path.exists(path)
