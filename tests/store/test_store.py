"""The database file: made whole, refused when damaged, newer or open to others, and never replaced by an empty one."""

import contextlib
import grp
import os
import pwd
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from functools import partial

import pytest

from jostle import failpoint
from jostle.backends.local.outside import remains
from jostle.core.model import Exit
from jostle.engine import checks
from jostle.errors import Damaged, DiskError, DiskFull, Forbidden, Invalid, JostleError
from jostle.store import intents, jobs, private, runs, store, texts
from jostle.store.file import NAME
from jostle.store.lanes import SHAPES, Lanes
from jostle.store.reads import Reader
from jostle.store.store import Store


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return str(path)


def fill(home, n=50):
    s = Store(home)
    request = checks.request({"jobs": [{"commands": [f"echo {i}"], "workdir": "/", "queue": f"q{i % 3}"} for i in range(n)]})
    with s.transaction():
        jobs.submit(s, request, at=1.0, now=1.0, rank=lambda: 0.5)
    s.close()
    return os.path.join(home, NAME)


def killed_after(home, act):
    """Another process does this with the store `s`, and dies of SIGKILL."""
    code = f"import os, sys; from jostle.store.store import Store; s = Store(sys.argv[1])\n{act}\nos.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, home]).returncode == -9


def test_a_new_database_is_private_and_has_its_tables(home):
    path = fill(home)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(Reader(home).jobs()) == 50


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o022])
def test_no_file_is_ever_looser_than_0600_whatever_the_umask(home, mask):
    """A watcher from outside would be racy: each creation is checked at its source."""
    code = (
        "import os, sys; os.umask(int(sys.argv[2])); real = os.open\n"
        "def spy(path, flags, mode=0o777, **kw):\n"
        "    if flags & os.O_CREAT: assert mode & 0o077 == 0, (path, oct(mode))\n"
        "    return real(path, flags, mode, **kw)\n"
        "os.open = spy\n"
        "from jostle.store.store import Store; s = Store(sys.argv[1])\n"
        "with s.transaction(): s.put('a', 1)\n"
        "names = os.listdir(sys.argv[1]); modes = {oct(os.stat(os.path.join(sys.argv[1], n)).st_mode & 0o777) for n in names}\n"
        "print(sorted(names), modes)"
    )
    out = subprocess.run([sys.executable, "-c", code, home, str(mask)], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['jostle.db', 'jostle.db-seen', 'jostle.db-shm', 'jostle.db-wal'] {'0o600'}"


def test_a_loose_directory_or_file_is_refused_with_the_chmod_to_run(home):
    path = fill(home)
    os.chmod(path, 0o644)
    with pytest.raises(Forbidden, match=f"chmod 600 {path}"):
        Store(home)
    os.chmod(path, 0o600)
    os.chmod(home, 0o755)
    with pytest.raises(Forbidden, match=f"chmod 700 {home}"):
        Store(home)


def test_a_linked_state_directory_is_refused(home, tmp_path):
    fill(home)
    os.symlink(home, tmp_path / "link")
    with pytest.raises(Forbidden, match="symbolic link"):
        Store(str(tmp_path / "link"))


def test_a_newer_schema_is_refused_and_kept(home):
    path = fill(home)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(Damaged, match="newer jostle"):
        Store(home)
    assert len(Reader(home).jobs()) == 50


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"\0" * 8192])
def test_an_empty_or_foreign_file_is_refused_and_left_alone(home, content):
    path = fill(home)
    for extra in ("-wal", "-shm"):
        if os.path.exists(path + extra):
            os.unlink(path + extra)
    with open(path, "wb") as f:
        f.write(content)
    with pytest.raises(Damaged, match="salvage"):
        Store(home)
    with open(path, "rb") as f:
        assert f.read() == content


def test_a_missing_database_beside_runs_is_refused(home):
    os.makedirs(os.path.join(home, "runs", "1.1"))
    with pytest.raises(Damaged, match=f"move {home}/runs away"):
        Store(home, partial(remains, home))
    os.rename(f"{home}/runs/1.1", f"{home}/runs/.spare")
    Store(home, partial(remains, home)).close()


def test_no_mutation_of_the_file_is_answered_by_an_empty_store_or_a_crash(home, tmp_path):
    """F24: 60 seeded bit flips, zeroed blocks and truncations: either it says so, or every acknowledged job is there."""
    path = fill(home, 300)
    refused = 0
    for seed in range(60):
        rng = random.Random(seed)
        copy = tmp_path / f"m{seed}"
        copy.mkdir(mode=0o700)
        target = copy / NAME
        shutil.copy(path, target)
        os.chmod(target, 0o600)
        data = bytearray(target.read_bytes())
        kind = seed % 3
        if kind == 0:
            for _ in range(20):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            at = rng.randrange(0, len(data), 4096)
            data[at : at + 4096] = bytes(4096)
        else:
            del data[rng.randrange(100, len(data)) :]
        target.write_bytes(data)
        try:
            s = Store(str(copy))
            ids = [r[0] for r in s.db.execute("SELECT id FROM job ORDER BY id")]
            s.db.close()
            assert ids == list(range(1, 301)), f"seed {seed}: jobs vanished in silence"
        except (JostleError, sqlite3.DatabaseError) as e:
            refused += 1
            assert str(e)
        assert target.stat().st_size > 0
    assert refused > 30


def test_a_migration_keeps_a_copy_and_is_all_or_nothing(home, monkeypatch):
    path = fill(home)
    before = store.version()
    real = store.script
    monkeypatch.setattr(store, "MIGRATIONS", [*store.MIGRATIONS, "second.sql"])
    monkeypatch.setattr(store, "script", lambda name: "CREATE TABLE extra (x);" if name == "second.sql" else real(name))
    env = "import sys; from jostle.store import store; real = store.script\n" \
          "store.MIGRATIONS.append('second.sql')\n" \
          "store.script = lambda n: 'CREATE TABLE extra (x);' if n == 'second.sql' else real(n)\n" \
          "store.Store(sys.argv[1])"  # fmt: skip
    for place in ("store.mid_migration", "store.mid_copy", "store.mid_copy", "store.mid_migration"):
        died = subprocess.run([sys.executable, "-c", env, home], env={**os.environ, "JOSTLE_FAILPOINTS": f"{place}=kill"})
        assert died.returncode == -9
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA user_version").fetchone()[0] == before
        db.close()
        assert len([n for n in os.listdir(home) if f".schema{before}-" in n]) == 1, "however often it is killed"
    s = Store(home)
    assert s.db.execute("SELECT count(*) FROM extra").fetchone()[0] == 0
    assert len(jobs.unfinished(s)) == 50
    s.close()
    (backup,) = [n for n in os.listdir(home) if f".schema{before}-" in n]
    assert not [n for n in os.listdir(home) if "copying" in n]
    with contextlib.closing(sqlite3.connect(os.path.join(home, backup))) as copy:
        assert copy.execute("SELECT count(*) FROM job").fetchone() == (50,)
        assert copy.execute("PRAGMA user_version").fetchone() == (before,)
    assert stat.S_IMODE(os.stat(os.path.join(home, backup)).st_mode) == 0o600


@pytest.mark.parametrize("what", ["pipe", "folder", "link"])
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_what_is_no_journal_beside_the_database_is_refused_and_hangs_nobody(home, end, what):
    path = fill(home) + end
    assert not os.path.lexists(path)
    {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda path: os.symlink("/dev/zero", path)}[what](path)
    for opens in (Store, Reader):
        with pytest.raises(Damaged, match=f"jostle.db{end} is no file"):
            opens(home)
    os.rmdir(path) if what == "folder" else os.unlink(path)
    Store(home).close()
    assert len(Reader(home).jobs()) == 50


def test_a_database_of_the_first_version_is_brought_up_to_date_with_all_its_jobs(home):
    path = os.path.join(home, NAME)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(store.script("schema.sql") + "PRAGMA user_version = 1;")
    db.execute("INSERT INTO batch (id, policy, submitted_at) VALUES (1, '{}', 0)")
    db.execute("INSERT INTO shape (id, key) VALUES (1, '[1, 0, 1, 1, null, false, null, []]')")
    db.execute("INSERT INTO context (id, digest, data) VALUES (1, 'd', '{}')")
    db.execute("""INSERT INTO job (id, batch, context, shape, name, place, sort, priority, gpus_min, gpus_max, share, commands,
        env, workdir, leftovers, tags, submitted_at, ready)
        VALUES (1, 1, 1, 1, 'old', 1, 1, 0, 1, 1, 0, '["true"]', '{}', '/', 'kill', '[]', 0, 1)""")
    db.close()
    with pytest.raises(JostleError, match="older jostle: `jostle up` brings it up to date"):
        Reader(home).jobs()
    failpoint.arm("store.mid_migration=ENOSPC")
    for _ in range(2):
        with pytest.raises(OSError):
            Store(home)
    failpoint.arm("")
    assert not [name for name in os.listdir(home) if ".schema" in name], "what failed leaves no copy each time it is tried"
    Store(home).close()
    (row,) = Reader(home).jobs()
    assert (row["name"], row["params"], row["fingerprint"]) == ("old", {}, None)


def json_columns_of_schema():
    """Of each script the columns of which a comment says that they hold JSON."""
    table = ""
    for line in "\n".join(map(store.script, store.MIGRATIONS)).splitlines():
        table = made[1] if (made := re.match(r"CREATE TABLE ([a-z_]+)", line)) else table
        if found := re.match(r"(?:ALTER TABLE (\w+) ADD COLUMN)?\s*(\w+)\s+TEXT\b.*--.*\bJSON\b", line):
            yield found[1] or table, found[2]


def test_every_column_of_the_schema_that_holds_json_is_looked_at():
    known = {(table, column) for table, (columns, _) in texts.TABLES.items() for column in columns}
    told = set(json_columns_of_schema())
    assert len(told) > 12 and told - known == set()


@pytest.mark.parametrize("column", ["paused", "yielding"])
def test_what_an_engine_begins_with_is_looked_at_before_it_begins(home, column):
    s = Store(home)
    submitted(s, {})
    with s.transaction():
        runs.begin(s, (1, 1), batch=1, uni_id="1", memory_mib=None, share=False, log="/log", leases=[], at=100.0, now=10.0)
        s.db.execute(f"UPDATE run SET {column} = '[half'")
    s.close()
    with pytest.raises(Damaged, match=f"run 1: {column} is not what was written there"):
        Store(home)


def test_migrations_are_all_scripts_there_are_each_once_and_in_turn():
    assert ["schema.sql", *(f"schema{n}.sql" for n in range(2, store.version() + 1))] == store.MIGRATIONS


def submitted(s, *given, **head):
    full = [{"commands": ["true"], "workdir": "/", **job} for job in given]
    request = checks.request({"batch": head, "jobs": full})
    with s.transaction():
        return jobs.submit(s, request, at=100.0, now=10.0, rank=lambda: 0.5)


def test_b7_a_job_whose_work_was_done_is_skipped_names_the_run_and_lets_those_after_it_start(home):
    s = Store(home)
    submitted(s, {"done_by": [7, 2], "params": {"lr": "1e-5"}, "fingerprint": "f"}, {"needs": [["index", 0, False]]})
    first, second = Reader(home).jobs()
    reason = first["reason"]
    assert (first["state"], reason["code"], reason["params"]) == ("skipped", "done_before", {"job": 7, "run": 2})
    assert (first["params"], first["fingerprint"]) == ({"lr": "1e-5"}, "f")
    assert (second["state"], second["ready"]) == ("queued", 1)
    assert [e["kind"] for e in Reader(home).events()] == ["submitted", "skipped"]
    s.close()


def test_b7_a_batch_of_nothing_but_done_work_has_ended(home):
    s = Store(home)
    submitted(s, {"done_by": [7, 1]}, {"done_by": [8, 1], "queue": "q"}, about={"file": "/x"})
    assert [e["kind"] for e in Reader(home).events()][-1] == "batch_ended"
    assert jobs.unfinished(s) == [] and Reader(home).batch(1)["about"] == {"file": "/x"}
    s.close()


def test_b7_only_a_recorded_success_counts_as_done(home):
    s = Store(home)
    submitted(s, *({"fingerprint": f} for f in ("good", "good", "bad", "waiting")))
    with s.transaction():
        for id, outcome in ((1, "succeeded"), (2, "succeeded"), (3, "failed")):
            runs.begin(s, (id, 1), batch=1, uni_id=str(id), memory_mib=None, share=False, log=f"/log{id}",
                       leases=[], at=100.0, now=10.0)  # fmt: skip
            runs.finish(s, (id, 1), batch=1, state=outcome, exit=Exit(code=0), error_type=None, reason=None,
                        peak_mib=0, at=101.0, now=11.0)  # fmt: skip
    found = Reader(home).last_runs(["good", "bad", "waiting", "unknown"])
    assert {key: [(run.id, run.log, run.outcome) for run in kept] for key, kept in found.items()} == {
        "good": [((2, 1), "/log2", "succeeded")], "bad": [((3, 1), "/log3", "failed")],
    }  # fmt: skip
    s.close()


@pytest.mark.parametrize("wrong", [{"params": []}, {"params": {"a": 1}}, {"fingerprint": ""}, {"done_by": [1]}, {"done_by": 3}])
def test_what_cannot_be_of_a_sweep_is_refused(home, wrong):
    s = Store(home)
    with pytest.raises(Invalid):
        submitted(s, wrong)
    s.close()


def test_a_full_disk_is_told_as_such(home, monkeypatch):
    s = Store(home)
    limit = s.db.execute("PRAGMA page_count").fetchone()[0] + 2
    s.db.execute(f"PRAGMA max_page_count = {limit}")
    with pytest.raises(DiskFull, match="no space left"), s.transaction():
        s.put("big", "x" * 100_000)
    assert s.get("big") is None
    s.db.execute("PRAGMA max_page_count = 1000000")
    with s.transaction():
        s.put("big", "y")
    assert s.get("big") == "y"
    s.close()


def test_readiness_of_queues_costs_no_walk_over_the_queue(home):
    """The plans of the per-tick queries use their indices: the cost of a tick does not grow with what waits."""
    fill(home, 10)
    s = Store(home)

    def plan(sql, *args):
        return " ".join(r[3] for r in s.db.execute("EXPLAIN QUERY PLAN " + sql, args))

    assert "job_ready" in plan(SHAPES) and "SCAN job" not in plan(SHAPES)
    assert "job_wake" in plan("SELECT min(not_before) FROM job WHERE ready = 2")
    assert "job_queue_ready" in plan("UPDATE job SET ready = 0 WHERE queue = ? AND ready > 0 AND id <> ?", "q", 1)
    # whatever a finished job brings about is looked up, too: every statement of an end is watched
    seen = []
    s.db.set_trace_callback(seen.append)
    with s.transaction():
        intents.cancel(s, [3], False, at=1.0, now=1.0)
    s.db.set_trace_callback(None)
    steps = [r[3] for q in seen if q.startswith(("SELECT", "UPDATE")) for r in s.db.execute("EXPLAIN QUERY PLAN " + q)]
    walks = [step for step in steps if step.startswith("SCAN") and step.split()[-1] not in ("chosen", "c")]  # what is meant
    assert len(seen) > 6 and any("chosen" in q for q in seen) and walks == []
    s.close()


def test_a_home_without_a_database_reads_as_empty(home):
    r = Reader(home)
    assert (r.jobs(), r.counts(), r.last_id(), r.job(1)) == ([], {}, None, None)


def test_a_reader_opened_before_the_database_exists_finds_it_later(home):
    r = Reader(home)
    assert r.jobs() == []
    fill(home, 2)
    assert [row["id"] for row in r.jobs()] == [1, 2]
    r.close()


def test_a_reader_serves_any_thread_and_several_at_once(home):
    fill(home, 200)
    r = Reader(home)
    found, begin = [], threading.Barrier(4)

    def read():
        begin.wait()
        for _ in range(20):
            found.append((len(r.jobs()), r.counts(), r.job(7)["id"]))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(200, {"queued": 200}, 7)] * 80
    r.close()


def test_a_commit_waits_for_the_disk_unless_told_not_to(home):
    s = Store(home)
    levels = []
    for durable in (True, False, False, True, False):
        with s.transaction(durable=durable) as db:
            db.execute("UPDATE meta SET value = value")
            levels.append(db.execute("PRAGMA synchronous").fetchone()[0])
    assert levels == [2, 1, 1, 2, 1]


def test_what_did_not_wait_for_the_disk_outlives_the_process(home):
    killed_after(home, "with s.transaction(durable=False): s.put('a', 1)")
    assert Store(home).get("a") == 1


def test_sync_is_for_what_did_not_wait_and_says_when_the_disk_fails(home, monkeypatch):
    s = Store(home)
    calls = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: calls.append(os.readlink(f"/proc/self/fd/{fd}")))
    journal = os.path.realpath(s.path) + "-wal"
    s.sync()
    assert calls == [journal], "the process before may not have lived to do it"
    with s.transaction():
        s.put("a", 1)
    s.sync()
    assert calls == [journal]
    with s.transaction(durable=False):
        s.put("a", 2)
    with s.transaction():
        pass  # waits for the disk, but has nothing to write
    s.sync()
    s.sync()
    assert calls == [journal, journal]


def test_after_an_error_of_the_disk_the_journal_is_not_believed_but_written_anew(home, monkeypatch):
    """Linux drops what it could not write, and says "done" the next time: all behind such a hole is lost in a power cut."""
    s = Store(home)
    s.sync()
    with s.transaction(durable=False):
        s.put("a", 1)
    failpoint.arm("store.before_sync=EIO")
    with pytest.raises(DiskError, match="reports an error"):
        s.sync()
    with pytest.raises(DiskError), s.transaction():
        s.put("b", 1)
    failpoint.arm("")
    monkeypatch.setattr(os, "fdatasync", lambda fd: pytest.fail("its word is not taken any more"))
    before = os.path.getsize(s.path + "-wal")
    s.sync()
    assert before > 0 and os.path.getsize(s.path + "-wal") == 0
    with s.transaction():
        s.put("c", 1)
    os.truncate(shutil.copy(s.path, home + "/copy"), os.path.getsize(s.path))  # the file alone, without any journal
    with contextlib.closing(sqlite3.connect(home + "/copy")) as db:
        assert dict(db.execute("SELECT key, value FROM meta WHERE key IN ('a', 'b', 'c')")) == {"a": "1"}


def test_a_journal_that_others_read_is_written_anew_later(home):
    """And nobody waits for them meanwhile: the engine has other things to do."""
    s = Store(home)
    with s.transaction(durable=False):
        s.put("a", 1)
    s.holed = True
    said = []
    s.db.set_trace_callback(said.append)
    with contextlib.closing(sqlite3.connect(s.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM meta").fetchall()
        with pytest.raises(DiskError, match="another program keeps the journal open"):
            s.sync()
        assert s.holed
    s.sync()
    assert not s.holed
    moved = [(said[i - 1], said[i + 1]) for i, sql in enumerate(said) if "TRUNCATE" in sql]
    assert moved == [("PRAGMA busy_timeout = 0", "PRAGMA busy_timeout = 5000")] * 2


def test_the_journal_of_a_killed_engine_is_not_built_upon(home):
    """The disk may have failed under it, and who knew of that is gone."""
    killed_after(home, "with s.transaction(): s.put('a', 1)")
    assert os.path.getsize(f"{home}/jostle.db-wal") > 0
    with contextlib.closing(sqlite3.connect(f"{home}/jostle.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM meta").fetchall()
        Store(home).db.close()  # while others read it is left, and that is no reason not to begin
    s = Store(home)
    assert os.path.getsize(f"{home}/jostle.db-wal") == 0 and s.get("a") == 1 and not s.holed


def test_without_a_journal_each_commit_waits_for_the_disk(home, monkeypatch):
    """Some file systems allow none; then there is nothing that could be synced later."""
    monkeypatch.setattr(store, "journal_of", lambda path: path)
    s = Store(home)
    with s.transaction(durable=False) as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2
        s.put("a", 1)


def test_an_error_of_the_disk_while_the_journal_is_moved_is_remembered(home, monkeypatch):
    s = Store(home)

    class Failing:
        def execute(self, sql):
            raise sqlite3.OperationalError("disk I/O error")

    with s.transaction():
        s.db.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", [(f"k{i}", "1" * 4000) for i in range(1500)])
    monkeypatch.setattr(s, "db", Failing())
    s.checkpoint()
    assert s.holed


def test_numbers_of_events_never_come_twice(home):
    s = Store(home)
    with s.transaction():
        for _ in range(5):
            s.event(1.0, "reloaded")
        assert intents.prune_events(s, 2.0) == 4
        s.event(3.0, "reloaded")
    assert s.db.execute("SELECT seq FROM event ORDER BY seq").fetchall() == [(5,), (6,)]


def test_as_many_old_events_are_told_of_as_are_removed(home):
    fill(home, 2)
    s, reader = Store(home), Reader(home)
    with s.transaction():
        for job in (None, 1, None):
            s.event(1.0, "moved", job=job)
    expected = reader.events_before(9e9)
    with s.transaction():
        assert intents.prune_events(s, 9e9) == expected > 0
    assert reader.events_before(9e9) == 0


@pytest.mark.parametrize("name", ["a?b", "a#b", "100%", "%3f", "a b&c=d", "图"])
def test_a_home_may_be_called_anything(tmp_path, name):
    home = tmp_path / name
    home.mkdir(mode=0o700)
    fill(str(home), 3)
    assert len(Reader(str(home)).jobs()) == 3 and NAME in os.listdir(home)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_cancelled_together_ends_as_it_would_one_by_one(tmp_path, seed):
    rng = random.Random(seed)
    kinds = [("index", False), ("index", True)]
    given = [
        {"commands": ["true"], "workdir": "/", "queue": rng.choice([None, "a", "b"]),
         "needs": [[kind, rng.randrange(k), any_end] for kind, any_end in rng.sample(kinds, rng.randint(0, 1)) if k]}
        for k in range(12)
    ]  # fmt: skip
    chosen = sorted(rng.sample(range(1, 25), rng.randint(1, 20)))
    found = []
    for name, cancels in (("together", [chosen]), ("one by one", [[id] for id in reversed(chosen)])):
        (tmp_path / name).mkdir(mode=0o700)
        s = Store(str(tmp_path / name))
        with s.transaction():
            for _ in range(2):
                jobs.submit(s, checks.request({"jobs": given}), at=1.0, now=1.0, rank=lambda: 0.5)
            for ids in cancels:
                done, refused = intents.cancel(s, ids, False, at=2.0, now=2.0)
                assert sorted(done) == ids and refused == []
        ends = s.db.execute("SELECT id, state, ready, intent, reason, ended_at FROM job ORDER BY id").fetchall()
        events = s.db.execute("SELECT kind, batch, job, data FROM event ORDER BY kind, batch, job").fetchall()
        found.append((ends, events))
        s.close()
    assert found[0] == found[1]


def test_each_that_is_cancelled_has_its_event_in_the_order_that_was_asked_for(home):
    fill(home, 5)
    s = Store(home)
    with s.transaction():
        intents.cancel(s, [4, 2, 4, 3], False, at=2.0, now=2.0)
    assert [(e["job"], e["kind"], e["at"]) for e in Reader(home).events(after=1)] == [(id, "cancelled", 2.0) for id in (4, 2, 3)]


def test_a_cancel_takes_as_many_statements_for_many_jobs_as_for_few(tmp_path):
    """One for each would keep everybody waiting."""

    def statements(n):
        (tmp_path / str(n)).mkdir(mode=0o700)
        s = Store(str(tmp_path / str(n)))
        chain = [{"commands": ["true"], "workdir": "/", "needs": [["index", k - 1, False]] * bool(k)} for k in range(n)]
        with s.transaction():
            jobs.submit(s, checks.request({"jobs": chain}), at=1.0, now=1.0, rank=lambda: 0.5)
        said = []
        s.db.set_trace_callback(said.append)
        with s.transaction():
            intents.cancel(s, range(1, n + 1), False, at=2.0, now=2.0)
        s.db.set_trace_callback(None)
        assert Reader(str(tmp_path / str(n))).counts() == {"cancelled": n}
        named = [sql for sql in said if sql.startswith("INSERT INTO chosen")]  # which jobs are meant: in memory, and only that
        return len({sql for sql in said if sql not in named})  # one that fires triggers is told again for each

    assert statements(4) == statements(40)


class Counted(int):
    """A number that counts how often it is looked up in a table."""

    looked_up = 0

    def __hash__(self):
        Counted.looked_up += 1
        return super().__hash__()


def test_trying_many_jobs_again_takes_for_each_what_it_takes_for_few(tmp_path, monkeypatch):
    def looked_up(n):
        home = tmp_path / str(n)
        home.mkdir(mode=0o700)
        fill(str(home), n)
        s = Store(str(home))
        with s.transaction():
            intents.cancel(s, range(1, n + 1), False, at=2.0, now=2.0)
            monkeypatch.setattr(Counted, "looked_up", 0)
            new, refused = intents.retry(s, [Counted(id) for id in range(1, n + 1)], at=3.0, now=3.0)
        assert new == {id: n + id for id in range(1, n + 1)} and refused == []
        return Counted.looked_up

    assert looked_up(40) == 10 * looked_up(4) > 0


@pytest.mark.parametrize("first", [True, False])
def test_a_part_that_fails_is_undone_by_itself(home, first):
    s = Store(home)
    request = checks.request({"jobs": [{"commands": ["true"], "workdir": "/"}] * 3})

    def submit():
        return jobs.submit(s, request, at=1.0, now=1.0, rank=lambda: 0.5)

    with s.transaction():
        if not first:
            submit()
        with pytest.raises(JostleError, match="no"), s.part(first=first):
            submit()
            raise JostleError("no")
        with s.part():
            again = submit()
    assert again["ids"] == ([1, 3] if first else [4, 6])
    assert Reader(home).counts() == {"queued": again["ids"][1]} and len(Reader(home).batches()) == again["batch"]
    assert [[job.id for job in lane] for lane in s.lanes.read(8)] == [[k, k + 1, k + 2] for k in range(1, again["ids"][1], 3)]
    s.close()


def test_what_is_ready_is_known_after_any_history_as_if_it_were_read_for_the_first_time(home):
    """Submits, cancels, holds, moves, changes, starts, retries, ends, and transactions that are undone in the middle."""
    s, rng = Store(home), random.Random(3)

    class Undone(Exception):
        pass

    def one(id):
        at = {"at": 1.0, "now": 1.0}
        open_ = s.db.execute("SELECT id, attempt FROM job WHERE state = 'starting' ORDER BY id").fetchall()
        acts = [
            lambda: intents.cancel(s, [id, id + 1], False, **at),
            lambda: intents.hold(s, id, rng.random() < 0.5, **at),
            lambda: intents.move(s, id, rng.choice(["first", "last"]), **at),
            lambda: intents.change(s, id, {"priority": rng.randint(0, 3), "queue": rng.choice([None, "a", "b"])}, **at),
            lambda: jobs.submit(s, checks.request({"jobs": [
                {"commands": ["true"], "workdir": "/", "queue": rng.choice([None, "a", "b"]), "gpus": [n, n]} for n in (1, 1, 2)
            ]}), rank=rng.random, **at),
        ]  # fmt: skip
        state = s.db.execute("SELECT state, ready FROM job WHERE id = ?", (id,)).fetchone()
        if state == ("queued", 1):
            n = runs.job_to_start(s, id)["attempt"] + 1
            about = {"batch": 1, "uni_id": f"u{id}.{n}", "memory_mib": None, "share": False}
            acts = [lambda: runs.begin(s, (id, n), log="l", leases=[], **about, **at), *acts]
        if open_:
            run = rng.choice(open_)
            how = {"exit": Exit(code=1), "error_type": "exit_code_1", "reason": None, "peak_mib": 0, **at}
            more = {"outcome": "failed", "counts": True, "not_before": 0.0, "memory_mib": 8 * rng.randint(1, 2), "avoid": ()}
            acts.append(lambda: runs.requeue(s, run, excused=False, **more, **how))
        rng.choice(acts)()

    with s.transaction():
        jobs.submit(s, checks.request({"jobs": [{"commands": ["true"], "workdir": "/"}] * 5}), at=1.0, now=1.0, rank=rng.random)
    undone = compared = 0
    for _ in range(400):
        last = s.next_job - 1
        try:
            with s.transaction():
                one(rng.randint(1, last - 1))
                if rng.random() < 0.3:
                    s.lanes.read(2)
                if rng.random() < 0.2:
                    raise Undone
        except Undone:
            s.next_job, undone = last + 1, undone + 1
        if rng.random() < 0.7:
            with contextlib.closing(sqlite3.connect(f"file:{home}/{NAME}?mode=ro", uri=True)) as other:
                assert s.lanes.read(2) == Lanes(other).read(2)
            compared += 1
    assert undone > 40 and compared > 200
    s.close()


@pytest.mark.parametrize(("group", "listed", "others"), [("students", False, True), ("me", False, False), ("lab", True, False)])
def test_a_group_whose_members_are_not_listed_is_taken_for_a_group_of_others(tmp_path, monkeypatch, group, listed, others):
    """Directory services give accounts by name and number, and often no list of them."""
    me = pwd.struct_passwd(("me", "x", os.getuid(), 4242, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me] if listed else [])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((group, "x", gid, [])))
    tmp_path.chmod(0o770)
    assert bool(private.writers(str(tmp_path))[0]) is others
