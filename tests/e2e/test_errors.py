"""Bad files, bad options, damaged and foreign state: each gives a sentence that helps, the right exit code, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import types

import pytest

from jostle.intake import held
from jostle.session import Session
from jostle.store.store import version
from tests.e2e.instance import Instance


def test_a_bad_file_is_refused_whole_with_file_line_and_what_was_expected(instance: Instance) -> None:
    file = instance.file("jobs:\n  - {name: fine, run: 'true'}\n  - {name: bad, run: 'true', gpus: many}\n  - {rum: x}\n")
    for verb in ("run", "validate"):
        code, _, err = instance.run(verb, file)
        assert code == 6
        assert f'{file}:3: gpus: "many"' in err and "expected" in err
        assert f"{file}:4:" in err, "all errors are found at once"
        assert "Traceback" not in err
    assert not (instance.home / "jostle.db").exists(), "nothing was started for it"


ODD = [
    "", "jobs:", "jobs: {}", "- a", "jobs: [{run: 'true', after: nobody}]", "jobs:\n\t- {run: x}", "\xff\xfe",
    "jobs: [{run: x, gpus: -1}]", "jobs: [{name: a, run: x, after: b}, {name: b, run: x, after: a}]",
    "jobs: [{run: !!python/object:os.system x}]", "a: &a [*a]", "jobs: [{run: x, memory: .nan}]",
    "jobs: [{run: x}]\njobs: [{run: y}]",
]  # fmt: skip


def test_no_file_gets_a_traceback(instance: Instance) -> None:
    files = [instance.work / f"odd-{k}.yaml" for k in range(len(ODD))]
    for file, text in zip(files, ODD, strict=True):
        file.write_bytes(text.encode("latin-1"))
    code, _, err = instance.run("validate", *map(str, files))
    assert (code, "Traceback" in err) == (6, False), err
    for file in files:
        assert str(file) in err


@pytest.mark.parametrize("spec", ["sim:0x24", "sim:no-such-file.yaml", "quantum", "sim:"])
def test_gpus_that_make_no_sense_are_told(instance: Instance, spec: str) -> None:
    code, _, err = instance.run("gpus", "--gpus", spec)
    assert code != 0
    assert "Traceback" not in err
    assert spec.removeprefix("sim:") in err


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["limits", "set", "max_total_gpu=1"], 2, "没有限额 'max_total_gpu'；应为 max_total_gpus"),
        (["limits", "set", "max_total_gpus=x"], 2, "无法理解 max_total_gpus='x'；应为 0 到 1024 的整数，或 none"),
        (["limits", "set", "x"], 2, "无法理解 'x'；应为限额，例如 max_total_gpus=4"),
        (["limits", "set"], 2, "应为限额，例如 max_total_gpus=4"),
        (["alloc", "a", "--pid", str(1 << 22)], 2, f"没有可绑定占卡的进程 {1 << 22}"),  # the least that no process ever has
        (["notify", "test"], 2, "没有设置任何通知"),
        (["manage", "--start-program", "a"], 2, "没有可启动的程序"),
        (["manage", "--release", "a"], 5, "无法写入 /proc/log：No such file or directory；见配置中的 logging.file"),
    ],
)
def test_what_is_wrong_is_told_in_chinese(shared: Instance, words: list[str], exit_code: int, said: str) -> None:
    if words[0] == "manage":
        file = {"logging": {"file": "/proc/log"}} if "--release" in words else {}
        words = [*words, "--config", shared.file(json.dumps(file), "manager.json")]
        shared.run("alloc", "a", "--now")
    code, _, err = shared.run(*words, env={"JOSTLE_LANG": "zh"})
    assert code == exit_code and said in err


def test_that_cuda_has_begun_is_told_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda.autoinit", types.ModuleType("pycuda.autoinit"))
    for language, said in (("en", "CUDA has begun in this process (pycuda)"), ("zh", "此进程中 CUDA 已经启动（pycuda）")):
        monkeypatch.setenv("JOSTLE_LANG", language)
        with pytest.raises(held.CudaHasBegun) as caught:
            held.refuse_if_begun(Session())
        assert said in str(caught.value)


def damage(instance: Instance) -> bytes:
    path = instance.home / "jostle.db"
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 8192] = b"\0" * 8192
    path.write_bytes(data)
    return bytes(data)


def test_a_damaged_database_is_refused_kept_and_can_be_salvaged(instance: Instance) -> None:
    instance.up("sim:1x24")
    ids = instance.submit(*[{"commands": [f"echo {k}"]} for k in range(50)])
    instance.end(*ids)
    instance.ok("down")
    data = damage(instance)
    for words in (("up",), ("add", "--", "true")):
        code, _, err = instance.run(*words)
        assert code == 1
        assert "is damaged" in err and "jostle doctor --salvage" in err
        assert "Traceback" not in err
    assert (instance.home / "jostle.db").read_bytes() == data, "it was left as it is"
    code, _, err = instance.run("ps", "--all")
    assert "Traceback" not in err
    code, out, err = instance.run("doctor", "--salvage")
    assert (code, "job" in out) == (0, True), err
    (saved,) = [name for name in os.listdir(instance.home) if "salvaged" in name]
    os.replace(instance.home / saved, instance.home / "jostle.db")
    for rest in ("jostle.db-wal", "jostle.db-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(instance.home / rest)
    instance.up(None)


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"\0" * 2000])
def test_what_is_no_database_is_never_replaced_by_an_empty_one(instance: Instance, content: bytes) -> None:
    instance.home.mkdir(mode=0o700)
    path = instance.home / "jostle.db"
    path.write_bytes(content)
    path.chmod(0o600)
    code, _, err = instance.run("add", "--", "true")
    assert (code, "damaged" in err) == (1, True), err
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused_and_kept(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({})
    instance.end(id)
    instance.ok("down")
    with contextlib.closing(sqlite3.connect(instance.home / "jostle.db")) as db:
        db.execute("PRAGMA user_version = 999")
    code, _, err = instance.run("up")
    assert code == 1
    assert "newer jostle" in err and "upgrade" in err
    with contextlib.closing(sqlite3.connect(instance.home / "jostle.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (999,)
        assert db.execute("SELECT count(*) FROM job").fetchone() == (1,)
        db.execute(f"PRAGMA user_version = {version()}")
    instance.up(None)
    assert instance.states() == {id: "succeeded"}


def test_a_database_that_others_can_read_is_refused_with_the_chmod_to_run(instance: Instance) -> None:
    instance.up("sim:1x24")
    instance.ok("down")
    path = instance.home / "jostle.db"
    path.chmod(0o644)
    code, _, err = instance.run("up")
    assert (code, f"chmod 600 {path}" in err) == (5, True)
    path.chmod(0o600)
    instance.up(None)


def test_a_missing_database_beside_runs_is_not_begun_anew(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({})
    instance.end(id)
    instance.ok("down")
    os.rename(instance.home / "jostle.db", instance.root / "kept.db")
    code, _, err = instance.run("up")
    assert (code, "holds runs" in err, "put it back" in err) == (1, True, True)
    os.rename(instance.root / "kept.db", instance.home / "jostle.db")
    instance.up(None)
    assert instance.states() == {id: "succeeded"}


def test_a_database_whose_journal_was_lost_is_refused_until_a_person_accepts_it(instance: Instance) -> None:
    instance.up("sim:1x24")
    instance.submit({"intent": "hold"})
    instance.ok("down")
    instance.up(None)
    instance.submit({"intent": "hold"})
    instance.kill_engine()
    os.unlink(instance.home / "jostle.db-wal")
    for words in (("up",), ("add", "--", "true")):
        code, _, err = instance.run(*words)
        assert (code, "older than what was recorded" in err, "Traceback" in err) == (1, True, False)
    for words in (("ps",), ("show", "1"), ("status",)):
        code, out, err = instance.run(*words)
        assert out and "older than what was recorded" in err, "who only looks is told, too"
    code, out, _ = instance.run("doctor")
    (line,) = [line for line in out.splitlines() if line.startswith("database ")]
    assert code == 1 and " bad " in line and "jostle doctor --accept" in line
    assert "events 2 to 2 are given up" in instance.run("doctor", "--accept")[2]
    assert instance.add("--hold", "--", "true") == 2
    assert "nothing to accept" in instance.run("doctor", "--accept")[2]


@pytest.mark.parametrize("how", ["directory", "text"])
def test_a_database_that_cannot_be_read_gives_no_verb_a_traceback_and_is_kept(instance: Instance, how: str) -> None:
    instance.up("sim:1x24")
    instance.submit({"intent": "hold"})
    instance.ok("down")
    path = instance.home / "jostle.db"
    if how == "directory":
        path.unlink()
        path.mkdir()
        (path / "precious").touch()
    else:
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE job SET commands = CAST(x'5bff' AS TEXT)")
    before = sorted(path.iterdir()) if how == "directory" else path.read_bytes()
    verbs = (["up"], ["add", "--", "true"], ["ps"], ["show", "1"], ["logs", "1"], ["wait"], ["cancel", "1"])
    for words in verbs:
        code, out, err = instance.run(*words)
        assert code != 0 and str(path) in out + err and "Traceback" not in out + err, (words, code, out, err)
    code, out, err = instance.run("doctor")
    (line,) = [line for line in out.splitlines() if line.startswith("database ")]
    assert code == 1 and " bad " in line and ("is no file" if how == "directory" else "job: Could not decode") in line
    assert "Traceback" not in instance.log() + out + err
    assert (sorted(path.iterdir()) if how == "directory" else path.read_bytes()) == before


def test_a_bad_setting_is_told_with_its_name(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("policy: {gpu_left: many}\n")
    code, _, err = instance.run("up", "--gpus", "sim:1x24")
    assert code != 0
    assert "gpu_left" in err and "Traceback" not in err
    (instance.home / "config.yaml").write_text("policy: [\n")
    code, _, err = instance.run("up", "--gpus", "sim:1x24")
    assert code != 0
    assert "config.yaml" in err and "Traceback" not in err


def test_what_can_never_run_on_this_host_is_said_at_once(instance: Instance) -> None:
    """By whoever submits it when the cards have been read; an engine that starts slowly may have to answer before that."""
    instance.file("jobs: [{run: 'true'}, {run: 'true', gpus: 9}]")
    code, _, err = instance.run("validate", "jobs.yaml")
    assert code == 0 and "not checked" in err
    instance.file("gpus: sim:2x24", str(instance.home / "config.yaml"))
    instance.up(None)
    instance.see_cards()
    code, out, err = instance.run("add", "-g", "9", "--hold", "--", "true")
    assert (code, out) == (0, "1\n") and "needs 9 cards and may use 2" in err
    for words in (("-m", "48"), ("-g", "3")):
        code, _, err = instance.run("add", *words, "--strict", "--", "true")
        assert code == 6 and "can never start" in err
    assert instance.states() == {1: "queued"}, "nothing that was refused is queued"
    code, _, err = instance.run("validate", "jobs.yaml")
    assert code == 0 and "needs 9 cards and may use 2" in err and "not checked" not in err
    code, _, err = instance.run("run", "jobs.yaml", "--strict")
    assert code == 6 and "job 2" in err and instance.states() == {1: "queued"}
    code, out, err = instance.run("add", "-m", "24", "--", "true")
    assert (code, err) == (0, "") and instance.end(int(out)) == ["succeeded"]
    instance.ok("cancel", "1")
