"""doctor, clean, burn, completion."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from jostle import __version__
from jostle.cli import completion
from jostle.core.fields import JOB
from jostle.engine.checks import SETTABLE
from jostle.probes import holding
from jostle.store import salvage
from jostle.store.reads import Reader
from jostle.store.store import Store
from jostle.views import health
from jostle.views.health import CHECKS, finding
from jostle.wording.health import FOUND, worded


def checks(jostle):
    code, out, _ = jostle("doctor", "--json")
    return code, {check["name"]: check for check in json.loads(out)["checks"]}


@pytest.fixture(autouse=True)
def simulated(home):
    (home / "config.yaml").write_text("gpus: sim:2x8\n")


def test_a_healthy_home_has_nothing_bad(jostle, store):
    store(state="succeeded", ended_at=time.time() - 5)
    code, found = checks(jostle)
    assert code == 0 and set(found) == set(CHECKS)
    assert found["database"]["verdict"] == "ok" and found["gpus"]["found"].startswith("2 GPUs by sim:2x8")


@pytest.mark.parametrize(("kind", "data", "whose"), [("republished", {}, "your runs"), ("vanished", {"uid": 4321}, "uid 4321")])
def test_doctor_says_that_claims_were_removed_while_they_were_held(jostle, home, kind, data, whose):
    for days in (30, 1):
        made = Store(str(home))
        with made.transaction():
            made.event(time.time() - days * 86400, kind, **data)
        made.close()
        found = checks(jostle)[1]["leases"]
        assert found["verdict"] == ("ok" if days == 30 else "warn")
    assert whose in found["found"] and "jostle-*" in found["advice"]


def test_errors_in_the_settings_are_one_finding(jostle, home):
    (home / "config.yaml").write_text("grase: 5\ngpu: sim:2x8\n")
    code, found = checks(jostle)
    assert code == 1 and [name for name, check in found.items() if "config.yaml" in check["found"]] == ["settings"]
    assert found["settings"]["found"].endswith('config.yaml:1: unknown key "grase"; expected grace? (and 1 more)')


@pytest.mark.parametrize(
    ("hold", "verdict", "words"),
    [
        ("disk_full", "bad", "; nothing starts at the moment: the disk with jostle's state is full"),
        ("gpus: no NVML on this host", "ok", None),
        ("driver_mismatch", "ok", None),
    ],
)
def test_a_hold_is_worded_and_one_of_the_gpus_is_rated_with_them_alone(jostle, engine, hold, verdict, words):
    engine.answers["hello"] = {**engine.answers["hello"], "version": __version__, "hold": hold}
    found = checks(jostle)[1]["engine"]
    assert found["verdict"] == verdict and (words or f"pid 4711, version {__version__}") in found["found"]
    assert hold not in found["found"]


@pytest.mark.parametrize(("hold", "verdict"), [(None, "warn"), ("driver_mismatch", "bad")])
def test_a_host_without_a_driver_is_no_fault_and_a_broken_driver_is(jostle, monkeypatch, hold, verdict):
    monkeypatch.setattr("jostle.views.cards.look", lambda devices, home: {"gpus": [], "error": "it says why", "hold": hold})
    assert checks(jostle)[1]["gpus"]["verdict"] == verdict


def test_the_devices_are_those_this_home_used_last(jostle, home, store):
    (home / "config.yaml").unlink()
    with store.store.transaction():
        store.store.put("spec", "sim:3x8")
    assert checks(jostle)[1]["gpus"]["found"].startswith("3 GPUs by sim:3x8")


def damage(home, store):
    """Overwrites pages in the middle of the file, as a bad disk would."""
    store(rows=3000)
    store.store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.store.db.close()
    path = home / "jostle.db"
    size = path.stat().st_size
    with open(path, "r+b") as f:
        f.seek(size // 2 // 4096 * 4096)
        f.write(os.urandom(8 * 4096))


def test_a_damaged_database_is_found_and_salvaged(jostle, home, store):
    damage(home, store)
    before = (home / "jostle.db").read_bytes()
    code, found = checks(jostle)
    assert code == 1 and found["database"]["verdict"] == "bad" and "--salvage" in found["database"]["advice"]
    assert "\n" not in found["database"]["found"]
    code, _out, err = jostle("doctor", "--salvage")
    assert code == 0 and "written to" in err
    new = next(home.glob("salvaged-*.db"))
    assert (home / "jostle.db").read_bytes() == before and new.stat().st_mode & 0o777 == 0o600
    db = sqlite3.connect(new)
    saved = db.execute("SELECT count(*) FROM job").fetchone()[0]
    db.close()
    assert 1000 < saved <= 3000 and salvage.complaints(str(new)) == []


def test_the_commands_that_salvage_prints_put_the_new_database_in_place(jostle, home, store, tmp_path):
    store(rows=50, queue="q")  # the store stays open, so that its journal lies beside it
    assert (home / "jostle.db-wal").stat().st_size > 0
    code, _, err = jostle("doctor", "--salvage")
    commands = [line.strip() for line in err.splitlines() if line.startswith("  ")]
    assert code == 0 and len(commands) == 3
    (tmp_path / "jostle").write_text(f'#!/bin/sh\nexec {sys.executable} -m jostle "$@"\n')
    (tmp_path / "jostle").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", "\n".join(commands)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (kept,) = home.glob("damaged-*")
    assert {"jostle.db", "jostle.db-wal"} <= set(os.listdir(kept))
    reader = Reader(str(home))
    assert len(reader.jobs()) == 50
    reader.db.close()
    opened = Store(str(home))  # an engine takes it, too
    opened.close()


def test_nothing_salvaged_is_no_new_database(jostle, home):
    (home / "jostle.db").write_bytes(b"not a database at all" * 500)
    os.chmod(home / "jostle.db", 0o600)
    code, _, err = jostle("doctor", "--salvage")
    assert code == 1 and "nothing can be read" in err and not list(home.glob("salvaged-*"))


def test_a_file_that_is_no_database_is_bad_and_no_crash(jostle, home):
    (home / "jostle.db").write_bytes(b"not a database at all" * 500)
    os.chmod(home / "jostle.db", 0o600)
    code, found = checks(jostle)
    assert code == 1 and found["database"]["verdict"] == "bad"


def test_each_finding_has_words_and_no_words_are_left_over():
    """A finding without words would be the doctor's own end."""
    source = pathlib.Path(health.__file__).read_text("utf-8")
    codes = set(re.findall(r'"(?:ok|warn|bad)"(?: if [^,]+)?(?: else "warn")?, "(\w+)", [{\w]', source))
    assert len(codes) > 35 and codes == set(FOUND)


def test_whatever_is_wrong_says_what_to_do():
    source = pathlib.Path(health.__file__).read_text("utf-8")
    wrong = set(re.findall(r'"(?:warn|bad)"(?: if [^,]+)?(?: else "warn")?, "(\w+)", [{\w]', source))
    assert len(wrong) > 20 and [code for code in sorted(wrong) if not all(FOUND[code][1])] == []


def test_a_check_that_fails_is_a_finding():
    def broken(terminal):
        raise RuntimeError("boom")

    check = worded(finding("x", broken, None), "en")
    assert check["verdict"] == "bad" and check["found"] == "the check itself failed: RuntimeError: boom"


@pytest.mark.parametrize("code", FOUND)
def test_each_finding_is_said_in_both_languages_with_the_same_values(code):
    for english, chinese in FOUND[code]:
        assert sorted(re.findall(r"{(\w+)", english)) == sorted(re.findall(r"{(\w+)", chinese))
        assert bool(english) == bool(chinese)


@pytest.fixture
def runs(home, store):
    """Run directories of: an old job, a new one, an unfinished one, one unknown to the store, and something else."""
    old = store(state="succeeded", ended_at=time.time() - 40 * 86400)
    new = store(state="succeeded", ended_at=time.time() - 5)
    unfinished = store(state="running")
    names = [f"{old}.1", f"{old}.2", f"{new}.1", f"{unfinished}.1", "999.1", "notes"]
    for name in names:
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "lock").touch()
        (home / "runs" / name / "log").write_text("x" * 5000)
    return names


def test_clean_removes_only_what_old_finished_jobs_left(jostle, home, runs):
    _, _, err = jostle("clean", "--dry-run")
    assert err.startswith("2 run directories") and len(os.listdir(home / "runs")) == 6
    assert jostle("clean")[0] == 0
    assert sorted(os.listdir(home / "runs")) == sorted(runs[2:])


def test_clean_has_the_engine_forget_old_events(jostle, home, runs, store, engine):
    engine.answers["prune"] = {"events": 2}
    with store.store.transaction():
        for age, job in ((40, 1), (40, None), (40, 3), (1, 1)):  # 3 is not finished
            store.store.event(time.time() - age * 86400, "moved", job=job)
    assert "2 events would be removed" in jostle("clean", "--dry-run")[2] and not engine.asked("prune")
    assert "2 events removed" in jostle("clean")[2]
    assert abs(engine.asked("prune")[0]["before"] - (time.time() - 30 * 86400)) < 60


def test_clean_starts_no_engine_for_nothing(jostle, home):
    assert jostle("clean")[0] == 0 and not (home / "engine.lock").exists()


def test_clean_leaves_what_a_process_still_holds(jostle, home, runs):
    with open(home / "runs" / runs[0] / "lock") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert "still held" in jostle("clean")[2]
    assert (home / "runs" / runs[0]).exists() and not (home / "runs" / runs[1]).exists()


def test_clean_does_not_follow_links(jostle, home, runs, tmp_path):
    (tmp_path / "mine").write_text("keep")
    os.symlink(tmp_path, home / "runs" / runs[0] / "link")
    jostle("clean")
    assert (tmp_path / "mine").read_text() == "keep" and not (home / "runs" / runs[0]).exists()


def test_a34_burn_says_in_the_simulated_world_what_it_holds_and_takes_it_back(home, tmp_path):
    env = {**os.environ, "JOSTLE_SIM_DIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "1,3"}
    child = subprocess.Popen([sys.executable, "-m", "jostle", "burn", "600", "700"], env=env, stderr=subprocess.DEVNULL)
    use = tmp_path / "use" / str(child.pid)
    deadline = time.monotonic() + 60
    while not use.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert use.read_text() == "1 700 50\n3 700 50\n"
    child.terminate()
    assert child.wait(60) == 143 and not use.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb_and_option(jostle, shell):
    code, out, _ = jostle("completion", shell)
    assert code == 0 and all(verb in out for verb in completion.VERBS)
    assert all(f"{JOB[name].key}=" in out for name in SETTABLE)
    assert ("-l stop-jobs" if shell == "fish" else "--stop-jobs") in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_good_shell(jostle, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(jostle("completion", shell)[1])
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("cancel ''", ["last", "all", "1", "2", "3", "train-1"]),
        ("set 3 ti", ["time_limit="]),
        ("set 3", ["3"]),
        ("cancel ti", []),
        ("why tr", ["train-1"]),
    ],
)
def test_completion_offers_ids_names_and_what_can_be_set_in_bash(jostle, tmp_path, home, store, words, offered):
    store(rows=2, name="train-1")
    store(name="$(touch completed) `touch completed`")  # compgen expands what it is given
    script = tmp_path / "script"
    script.write_text(jostle("completion", "bash")[1])
    shim = tmp_path / "jostle"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m jostle "$@"\n')
    shim.chmod(0o755)
    typed = f"COMP_WORDS=(jostle {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))"
    ask = f"source {script}; {typed}; _jostle; echo ${{COMPREPLY[@]}}"
    env = {**os.environ, "JOSTLE_HOME": str(home), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout.split() == offered, done.stderr
    assert not (tmp_path / "completed").exists()


def test_clean_removes_snapshots_that_no_unfinished_job_runs_from(jostle, home, store):
    unfinished = store(state="running")
    for name in ("used", "old", "new"):
        (home / "frozen" / name / "tree").mkdir(parents=True)
        (home / "frozen" / name / "tree" / "code.py").write_text("pass")
        (home / "frozen" / name / "about.json").write_text('{"files": ["code.py"], "links": []}')
    with store.store.transaction() as db:
        about = f'{{"frozen": {{"path": "{home}/frozen/used/tree"}}}}'
        db.execute("UPDATE batch SET about = ? WHERE id = (SELECT batch FROM job WHERE id = ?)", (about, unfinished))
    month = time.time() - 40 * 86400
    for name in ("used", "old"):
        os.utime(home / "frozen" / name, (month, month))
    assert "1 snapshot and" in jostle("clean", "--dry-run")[2] and (home / "frozen" / "old").exists()
    assert jostle("clean")[0] == 0
    assert sorted(os.listdir(home / "frozen")) == ["new", "used"]


def test_a34_a_burn_that_is_ended_the_moment_it_holds_takes_it_back(tmp_path, monkeypatch):
    """SIGTERM between the file's appearance and the wait."""

    def ended(*paths):
        os_rename(*paths)
        raise SystemExit(143)

    os_rename = os.rename
    monkeypatch.setattr(os, "rename", ended)
    with pytest.raises(SystemExit), holding.simulated(str(tmp_path), ["0"], 1, 0):
        pass
    assert os.listdir(tmp_path / "use") == []
