"""The verbs that only look: ps, show, why, status, gpus, logs, validate."""

import json
import os
import subprocess
import sys
import time

import pytest

from jostle import proc
from jostle.web import instances
from tests.cli.conftest import event

GPU = {
    "index": 0,
    "uuid": "GPU-a",
    "name": "Card",
    "total_mib": 24576,
    "used_mib": 4096,
    "free_mib": 20480,
    "available_mib": 20480,
    "utilization": 5,
    "temperature": 40,
    "power_w": 60.5,
    "state": "ok",
    "error": "",
    "refusal": None,
    "excluded": False,
    "runs": ["7.1"],
    "holders": [{"pid": 9, "user": "bob", "used_mib": 4096, "name": "python", "run": None}],
}


def ps_json(jostle, *argv):
    code, out, _ = jostle("ps", "--json", *argv)
    assert code == 0
    return json.loads(out)["jobs"]


def test_ps_of_nothing_says_so(jostle):
    assert jostle("ps") == (0, "", "no jobs: `jostle add -- COMMAND` queues one\n")


def test_ps_gives_the_contract(jostle, store):
    store(name="a", queue="q", gpus=[1, 2], memory_mib=100)
    row = ps_json(jostle)[0]
    wanted = {
        "id",
        "name",
        "queue",
        "batch",
        "state",
        "intent",
        "gpus",
        "gpu_uuids",
        "attempt",
        "retries",
        "exit_code",
        "error_type",
        "submitted_at",
        "started_at",
        "ended_at",
        "reason",
        "commands",
        "memory_mib",
        "gpu_request",
    }
    assert wanted <= set(row) and row["gpu_request"] == [1, 2] and row["commands"] == ["true"]


def test_without_an_engine_waiting_jobs_say_so(jostle, store):
    store()
    assert ps_json(jostle)[0]["reason"]["code"] == "no_engine"


def test_the_engines_reason_is_shown_for_the_first_of_its_shape(jostle, store, engine):
    id = store()
    shape = store.store.db.execute("SELECT shape FROM job WHERE id = ?", (id,)).fetchone()[0]
    engine.answers["reasons"] = {
        "shapes": {str(shape): {"code": "max_concurrent", "params": {"running": 2, "most": 2}, "gpus": []}},
        "now": 0,
    }
    assert "Its batch runs 2 jobs and may run 2 at once." in jostle("ps")[1]


def test_a_job_behind_others_of_its_queue_says_how_many(jostle, store, engine):
    first = store(rows=3, queue="q")
    reasons = {row["id"]: row["reason"] for row in ps_json(jostle)}
    assert reasons[first + 2]["code"] == "behind" and reasons[first + 2]["params"] == {"queue": "q", "n": 2, "job": first}


def test_places_in_a_queue_are_those_of_the_whole_queue_also_in_a_part_of_the_list(jostle, store, engine):
    first = store(rows=3, queue="q")
    store.store.db.execute("UPDATE job SET state = 'running' WHERE id = ?", (first,))
    other = store(queue="q")
    (batch,) = store.store.db.execute("SELECT batch FROM job WHERE id = ?", (other,)).fetchone()
    for argv in (("-s", "queued"), ("-b", str(batch))):
        told = {row["id"]: row["reason"]["params"] for row in ps_json(jostle, *argv) if row["state"] == "queued"}
        assert told[other] == {"queue": "q", "n": 3, "job": first}
        assert "behind 3 other jobs" in jostle("ps", *argv)[1]


def test_a_full_disk_is_told_beside_the_list(jostle, store, engine):
    """What has ended is still shown as running then."""
    store(state="running")
    engine.answers["reasons"] = {"shapes": {}, "now": 0.0, "hold": "disk_full"}
    assert "free some space" in jostle("ps")[2]


def test_ps_why_and_show_say_the_same_with_the_numbers_that_are_documented(jostle, store, engine, monkeypatch):
    """The engine's `why` as it is, on a clock that stands still."""
    from jostle.core.explain import explain
    from jostle.core.reasons import plain
    from jostle.store.reads import Reader

    wall = time.time()
    monkeypatch.setattr("jostle.views.waits.time.time", lambda: wall)
    first = store(rows=2, queue="q", state="running")
    store.store.db.execute("UPDATE job SET state = 'queued' WHERE id > ?", (first,))
    blocked = store(queue="q", needs=[["job", first, False]])
    alone = store(needs=[["job", first, False]])
    later = store(ready=2, begin_at=wall + 100, not_before=150.0)
    again = store(ready=2, retries=3, error_type="exit_code_3", not_before=80.0)
    voided = store(ready=2, attempt=3, not_before=51.0)

    def why(request):
        reader = Reader(engine.home)
        ahead, needs = reader.ahead(request["id"]), reader.needs(request["id"])
        told = explain(reader.job(request["id"]), now=50.0, wall=wall, ahead=ahead, needs=needs)
        return {"reason": told and plain(told), "behind": 0}

    engine.answers |= {"why": why, "reasons": {"shapes": {}, "now": 50.0}}
    wanted = {
        first + 1: ("behind", {"queue": "q", "n": 1, "job": first}),
        blocked: ("behind", {"queue": "q", "n": 2, "job": first}),
        alone: ("after", {"jobs": [first]}),
        later: ("begin", {"at": wall + 100, "left_s": 100.0}),
        again: ("backoff", {"failures": 3, "error_type": "exit_code_3", "left_s": 30.0}),
        voided: ("starting_soon", {}),
    }
    listed = {row["id"]: row["reason"] for row in ps_json(jostle)}
    for id, (code, params) in wanted.items():
        told = json.loads(jostle("why", id, "--json")[1])["reason"]
        shown = json.loads(jostle("show", id, "--json")[1])["job"]["reason"]
        assert (listed[id]["code"], listed[id]["params"]) == (code, params)
        assert {key: told[key] for key in listed[id]} == listed[id] and shown == told
    assert listed[again]["text"] == "It failed 3 times (last: exit_code_3) and is tried again in 30 s."


def test_held_and_blocked_jobs_say_so(jostle, store, engine):
    held = store(intent="hold")
    blocked = store(needs=[["job", held, False]])
    reasons = {row["id"]: row["reason"] for row in ps_json(jostle)}
    assert reasons[held]["code"] == "held"
    assert reasons[blocked]["code"] == "after" and reasons[blocked]["params"] == {"jobs": [held]}


def test_reasons_are_worded_in_the_language_of_the_reader(jostle, store, monkeypatch):
    store(
        state="failed",
        ended_at=time.time(),
        reason=json.dumps({"code": "time_limit", "params": {"limit_s": 60}, "text": "English"}),
    )
    monkeypatch.setenv("JOSTLE_LANG", "zh_CN.UTF-8")
    assert "时限" in ps_json(jostle)[0]["reason"]["text"]
    monkeypatch.setenv("JOSTLE_LANG", "en")
    assert "time limit" in ps_json(jostle)[0]["reason"]["text"]


def test_words_that_an_older_or_newer_version_stored_are_better_than_none(jostle, store, monkeypatch):
    known = {"code": "time_limit", "params": {"limit_s": 60}, "text": "Stored words."}
    strange = {"code": "moon_phase", "params": {"full": 1}, "text": "The moon was full."}
    first = store(state="failed", ended_at=time.time(), reason=json.dumps(known))
    second = store(state="failed", ended_at=time.time(), reason=json.dumps(strange))
    with store.store.transaction():
        store.store.event(time.time(), "failed", batch=1, job=second, run=1, reason=strange)
        store.store.event(time.time(), "failed", batch=1, job=first, run=1, reason=known)
    for language in ("en", "zh"):
        monkeypatch.setenv("JOSTLE_LANG", language)
        texts = [row["reason"]["text"] for row in ps_json(jostle)]
        assert texts[1] == "The moon was full." and "Stored words." not in texts[0]
        assert "the moon was full." in jostle("why", second)[1] and "Stored words." not in jostle("why", first)[1]
        for id, text in ((first, texts[0]), (second, texts[1])):
            told = json.loads(jostle("show", id, "--json")[1])
            assert told["job"]["reason"]["text"] == told["events"][-1]["data"]["reason"]["text"] == text


def test_ps_shows_what_ended_lately_and_at_least_ten(jostle, store):
    old = store(rows=15, state="succeeded", ended_at=time.time() - 90_000)
    new = store(rows=2, state="failed", ended_at=time.time() - 5)
    assert [row["id"] for row in ps_json(jostle)] == list(range(new + 2 - 10, new + 2))
    assert len(ps_json(jostle, "--all")) == 17 and ps_json(jostle, "--state", "failed")[0]["id"] == new > old


def test_many_waiting_rows_are_folded_in_the_table_only(jostle, store):
    store(rows=500)
    _, out, _ = jostle("ps")
    assert out.count("\n") == 102 and "and 400 more jobs waiting (101-500)" in out
    assert len(ps_json(jostle)) == 500 and jostle("ps", "--all")[1].count("\n") == 501


def test_hostile_names_are_shown_literally_and_in_one_line(jostle, store):
    store(name="<b>x</b> ../x -rf 🙂", tags=["y"])
    _, out, _ = jostle("ps")
    assert "<b>x</b> ../x -rf 🙂" in out and out.count("\n") == 2


@pytest.mark.parametrize("argv", [("--batch", "x"), ("--state", "sleeping"), ("--batch", "-1")])
def test_bad_filters_are_usage_errors(jostle, argv):
    assert jostle("ps", *argv)[0] == 2


def test_show_gives_job_runs_and_events(jostle, store):
    id = store(name="x", state="succeeded", ended_at=time.time())
    code, out, _ = jostle("show", id, "--json")
    told = json.loads(out)
    assert code == 0 and told["job"]["id"] == id and told["runs"] == [] and told["events"] == []
    assert f"job           {id}  x" in jostle("show", id)[1]


def test_show_says_why_a_run_was_tried_again_in_the_language_of_the_reader(jostle, store, monkeypatch):
    id = store()
    params = {"failures": 1, "error_type": "oom", "left_s": 0.0, "asked_mib": 2048, "peak_mib": 2040, "next_mib": 2560}
    with store.store.transaction():
        data = {"outcome": "failed", "error_type": "oom", "exit_code": 1, "reason": {"code": "oom_raised", "params": params}}
        store.store.event(time.time(), "requeued", batch=1, job=id, run=1, **data)
        store.store.event(
            time.time(), "cancelled", batch=1, job=id, run=1, reason={"code": "cancelled", "params": {}}, exit_code=5
        )
    again, cancelled = jostle("show", id)[1].splitlines()[-2:]
    assert again.endswith(
        "requeued (run 1): It ran out of GPU memory: it used 2040 MiB and had asked for 2048 MiB. "
        "It is tried again with 2560 MiB."
    )
    assert cancelled.endswith("cancelled (run 1): exit_code 5"), "a reason that says no more than the event"
    monkeypatch.setenv("JOSTLE_LANG", "zh")
    assert "requeued（第 1 次运行）：显存不足：用了 2040 MiB" in jostle("show", id)[1]


def test_a_job_that_does_not_exist_is_exit_code_4(jostle, store):
    store()
    for verb in ("show", "why", "logs"):
        code, out, err = jostle(verb, 99)
        assert (code, out) == (4, "") and "there is no job 99" in err


def test_why_lists_each_gpus_refusal(jostle, store, engine):
    id = store()
    refusal = {"index": 1, "uuid": "GPU-b", "code": "stranger", "params": {"user": "bob", "pid": 7, "used_mib": 1024}}
    engine.answers["why"] = {
        "job": {},
        "reason": {"code": "gpus", "params": {"fit": 0, "total": 2}, "gpus": [refusal]},
        "behind": 3,
    }
    _, out, _ = jostle("why", id)
    said = "used by bob (process 7, 1 GiB)"
    first = f"job {id} (job) is queued: 0 of 2 GPUs fit: 1 is used by others (bob 1)."
    assert out == f"{first}\n  3 jobs like it come before it\n  GPU 1: {said}\n"
    told = json.loads(jostle("why", id, "--json")[1])
    assert told["reason"]["code"] == "gpus" and told["gpus"] == [{**refusal, "text": said}] and told["behind"] == 3


def test_why_a_job_failed_is_read_from_the_store(jostle, store):
    id = store(state="failed", ended_at=time.time(), exit_code=3, error_type="exit_code_3")
    assert "exit_code_3" in jostle("why", id)[1]


def test_status_works_with_and_without_an_engine(jostle, home, engine):
    told = json.loads(jostle("status", "--json")[1])
    assert (told["running"], told["pid"], told["version"], told["uptime_s"]) == (True, 4711, "0.2.0", 61.0)
    assert told["paths"]["home"] == str(home) and told["counts"] == {"queued": 2}
    engine.stop()
    code, out, _ = jostle("status")
    assert code == 0 and "none runs" in out


@pytest.mark.parametrize(
    ("hold", "probe", "lines"),
    [
        ("disk_full", "", ["hold:   Nothing starts at the moment: the disk with jostle's state is full; free some space, and it "
                           "goes on by itself."]),
        ("gpus: no NVML here", "no NVML here", ["GPUs:   no NVML here"]),
        ("gpus: no NVML here", "the probe hangs",
         ["hold:   No job with a GPU starts at the moment: no NVML here.", "GPUs:   the probe hangs"]),
    ],
)  # fmt: skip
def test_status_words_a_hold_and_says_nothing_twice(jostle, engine, hold, probe, lines):
    engine.answers["hello"] = {**engine.answers["hello"], "hold": hold, "probe": probe}
    assert jostle("status")[1].splitlines()[1:-3] == lines
    assert json.loads(jostle("status", "--json")[1])["hold"] == hold


def test_status_says_where_the_console_is(jostle, home, engine):
    """It is this very process, as its record says."""
    assert "web:    no console runs; `jostle up` starts one" in jostle("status")[1].splitlines()
    assert json.loads(jostle("status", "--json")[1])["consoles"] == []
    me = proc.stat(os.getpid())
    about = {"pid": os.getpid(), "port": 29214, "bind": None, "workspace": "/data/w", "socket": None}
    instances.record(str(home), instances.Instance(**about, ticks=me.ticks, boot_id=proc.boot_id(), started_at=0.0))
    assert json.loads(jostle("status", "--json")[1])["consoles"] == [about]
    assert f"web:    localhost:29214, pid {os.getpid()}, workspace /data/w" in jostle("status")[1].splitlines()


def test_gpus_shows_who_holds_what(jostle, engine):
    engine.answers["gpus"] = {"gpus": [GPU], "spec": "sim", "age_s": 0.1, "error": ""}
    _, out, _ = jostle("gpus")
    assert "job 7, bob (4 GiB)" in out and out.rstrip().endswith("yes")
    assert json.loads(jostle("gpus", "--json")[1])["gpus"] == [{**GPU, "free_at": None, "free_by": None}]


def test_gpus_can_be_excluded_and_included(jostle, engine):
    engine.answers["exclude"] = lambda request: {"excluded": request["gpus"] if request["on"] else []}
    assert jostle("gpus", "--exclude", "1,3")[2] == "excluded: GPU 1,3\n"
    assert jostle("gpus", "--include", "1")[2] == "no GPU is excluded\n"
    assert [(r["gpus"], r["on"]) for r in engine.asked("exclude")] == [([1, 3], True), ([1], False)]


def test_gpus_without_an_engine_asks_a_probe_of_its_own(jostle, home):
    (home / "config.yaml").write_text("gpus: sim:2x8\n")
    told = json.loads(jostle("gpus", "--json")[1])
    assert [gpu["total_mib"] for gpu in told["gpus"]] == [8192, 8192] and told["gpus"][0]["holders"] == []


def test_gpus_without_an_engine_looks_at_the_devices_of_last_time_and_promises_nothing(jostle, home, store):
    with store.store.transaction():
        store.store.put("spec", "sim:3x8")
    code, out, err = jostle("gpus")
    assert code == 0 and out.count("\n") == 4 and "no engine runs" in err
    assert "TAKEN" not in out and "yes" not in out and "FOR YOU" not in out


def test_gpus_of_other_devices_than_the_engines_is_a_look_of_our_own(jostle, engine):
    engine.answers["gpus"] = {"gpus": [GPU], "spec": "sim:2x24", "age_s": 0.1, "error": ""}
    assert "Card" in jostle("gpus", "--gpus", "sim:2x24")[1]
    _, out, err = jostle("gpus", "--gpus", "sim:3x8")
    assert "Card" not in out and out.count("\n") == 4 and "the engine has other GPUs" in err


STALE = "no engine runs: this is how it was when the last one ended; `jostle up` goes on\n"


def test_unfinished_jobs_without_an_engine_are_shown_with_a_warning(jostle, store):
    id = store(state="running")
    assert jostle("ps")[2] == STALE and jostle("show", id)[2] == STALE
    for state, intent in (("running", "run"), ("stopping", "cancel"), ("queued", "run"), ("queued", "hold")):
        store.store.db.execute("UPDATE job SET state = ?, intent = ?", (state, intent))
        assert jostle("why", id)[2] == STALE
    assert json.loads(jostle("why", id, "--json")[1])["engine"] is False
    assert json.loads(jostle("ps", "--json")[1])["engine"] is False


def test_finished_jobs_and_a_running_engine_are_no_reason_to_warn(jostle, store, engine):
    id = store(state="running")
    engine.answers["why"] = {"job": {}, "reason": None, "behind": 0}
    assert jostle("ps")[2] == "" and jostle("show", id)[2] == "" and jostle("why", id)[2] == ""
    assert json.loads(jostle("ps", "--json")[1])["engine"] is json.loads(jostle("why", id, "--json")[1])["engine"] is True
    engine.stop()
    store.store.db.execute("UPDATE job SET state = 'succeeded', ended_at = 1")
    assert jostle("ps")[2] == "" and jostle("show", id)[2] == ""


def test_an_error_in_somebody_elses_words_is_not_obeyed_by_the_terminal(jostle, store):
    id = store(state="failed", ended_at=1.0, error_type="\x1b[31mEVIL\n2026 forged", attempt=1)
    for verb in ("show", "why"):
        _, out, _ = jostle(verb, id)
        assert "EVIL 2026 forged" in out and "\x1b" not in out


def test_why_takes_several_ids(jostle, store, engine):
    engine.answers["why"] = {"reason": None, "behind": 0}
    first = store(rows=3, intent="hold")
    store(state="succeeded", ended_at=time.time())
    assert jostle("why", "1-2")[1].count("\n") == 2 and jostle("why", "all")[1].count("\n") == 3
    told = json.loads(jostle("why", "all", "--json")[1])
    assert [job["id"] for job in told["jobs"]] == [first, first + 1, first + 2]
    assert json.loads(jostle("why", first, "--json")[1])["id"] == first


def test_why_of_more_jobs_than_anyone_reads_is_a_usage_error(jostle, store):
    store(rows=101)
    code, _, err = jostle("why", "all")
    assert code == 2 and "jostle ps" in err


def reason(code, **params):
    return json.dumps({"code": code, "params": params})


@pytest.mark.parametrize(
    ("fields", "english", "chinese"),
    [
        ({"state": "cancelled", "reason": reason("cancelled")}, "job 1 (job) was cancelled.", "任务 1（job）已取消。"),
        (
            {"state": "skipped", "reason": reason("after_failed", job=9, state="failed")},
            "job 1 (job) was skipped: job 9, which it comes after, ended as failed.",
            "任务 1（job）已跳过：它所依赖的任务 9 以 失败 结束。",
        ),
        (
            {"state": "failed", "attempt": 1, "reason": reason("time_limit", limit_s=60)},
            "job 1 (job) failed: it ran longer than its time limit of 60 s.\n  `jostle logs 1` shows its output",
            "任务 1（job）已失败：运行时间超过了时限 60 秒。\n  用 `jostle logs 1` 查看输出",
        ),
        ({"state": "failed", "exit_code": 3}, "job 1 (job) failed: exit code 3.", "任务 1（job）已失败：退出码 3。"),
        ({"state": "succeeded"}, "job 1 (job) succeeded.", "任务 1（job）已成功。"),
        ({"state": "running"}, "job 1 (job) is running.", "任务 1（job）正在运行。"),
        (
            {"state": "stopping"},
            "job 1 (job) is stopping: it is being cancelled; its processes are ending.",
            "任务 1（job）正在停止：正在取消，等待其进程结束。",
        ),
        (
            {"intent": "hold"},
            "job 1 (job) is queued: a person holds it back; `jostle unhold` lets it go.",
            "任务 1（job）正在排队：已被人工暂缓；用 `jostle unhold` 放行。",
        ),
    ],
)
def test_why_is_one_sentence_that_says_nothing_twice(jostle, store, monkeypatch, fields, english, chinese):
    store(**{"ended_at": None if fields.get("state") in (None, "running", "stopping") else time.time(), **fields})
    assert jostle("why", 1)[1] == english + "\n"
    monkeypatch.setenv("JOSTLE_LANG", "zh")
    assert jostle("why", 1)[1] == chinese + "\n"


def test_a_reason_beside_its_state_does_not_say_the_state_again(jostle, store):
    now = time.time()
    store(state="cancelled", ended_at=now, reason=reason("cancelled"))
    store(state="skipped", ended_at=now, reason=reason("after_failed", job=9, state="failed"))
    first, second = jostle("ps")[1].splitlines()[1:]
    assert first.split()[-1] == "-" and second.endswith("-  Job 9, which it comes after, ended as failed.")
    assert "state         cancelled\n" in jostle("show", 1)[1]


def test_a_narrow_screen_shows_the_columns_that_decide(jostle, engine, monkeypatch):
    monkeypatch.setattr("jostle.cli.terminal.Terminal.width", 80)
    refusal = {"code": "stranger", "params": {"user": "bob", "pid": 9, "used_mib": 4096}}
    engine.answers["gpus"] = {"gpus": [{**GPU, "refusal": refusal}], "spec": "sim", "age_s": 0.1, "error": ""}
    head, row = jostle("gpus")[1].splitlines()
    assert head.split("  ")[0] == "GPU" and "MAY BE TAKEN" in head and "°C" not in head
    assert "used by bob" in row and len(row) <= 80


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"gpus": [1, 1]}, "1 GPU, the whole card"),
        ({"gpus": [8, 8]}, "8 GPUs, whole cards"),
        ({"gpus": [1, 4], "memory_mib": 2048}, "1-4 GPUs with 2 GiB each"),
        ({"gpus": [1, 1], "memory_mib": 2048, "share": True}, "1 GPU with 2 GiB, shared with other jobs"),
        ({"gpus": [0, 0]}, "no GPU"),
    ],
)
def test_what_a_job_asks_for_is_counted_rightly(jostle, store, fields, words):
    assert f"asks for      {words}\n" in jostle("show", store(**fields))[1]


@pytest.fixture
def logged(store, tmp_path):
    """A job with a run whose log holds these bytes."""

    def logged(data, state="succeeded"):
        id = store(state=state, attempt=1, ended_at=time.time() if state == "succeeded" else None)
        path = tmp_path / f"log{id}"
        if data is not None:
            path.write_bytes(data)
        store.store.db.execute(
            "INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at) VALUES (?, 1, ?, 'running', 0, ?, 0, 0)",
            (id, f"u{id}", str(path)),
        )
        return id, path

    return logged


def test_logs_pass_bytes_as_they_are(logged, capfdbinary):
    id, _ = logged(b"a\xff\x1b[31mred\n")
    from jostle.cli.main import main

    assert main(["logs", str(id)]) == 0
    assert capfdbinary.readouterr().out == b"a\xff\x1b[31mred\n"


@pytest.mark.parametrize(("lines", "shown"), [(1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n"), (0, "")])
def test_the_last_lines_of_a_log_are_found_from_its_end(jostle, logged, lines, shown):
    id, _ = logged(b"a\nb\nc\n")
    assert jostle("logs", id, "-n", lines)[1] == shown


def test_the_last_lines_of_a_big_log_are_right_across_blocks(jostle, logged):
    text = "".join(f"line {k}\n" for k in range(50_000))
    id, _ = logged(text.encode())
    assert jostle("logs", id, "-n", "30000")[1] == "".join(f"line {k}\n" for k in range(20_000, 50_000))


def test_a_log_that_is_a_link_or_a_fifo_is_not_opened(jostle, logged, tmp_path):
    id, path = logged(None)
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", path)
    code, out, err = jostle("logs", id)
    assert (code, out) == (1, "") and "cannot be opened" in err
    path.unlink()
    os.mkfifo(path)
    assert jostle("logs", id)[0] == 1


def test_a_job_that_has_printed_nothing_says_what_to_do(jostle, store):
    code, _, err = jostle("logs", store())
    assert code == 4 and "jostle logs -f" in err


def test_following_a_log_ends_with_its_job(jostle, logged, store):
    import threading

    id, path = logged(b"first\n", state="running")

    def later():
        from jostle.store.store import connect

        with open(path, "ab") as f:
            f.write(b"second\n")
        db = connect(store.store.path)
        db.execute("UPDATE job SET state = 'succeeded', ended_at = 1 WHERE id = ?", (id,))
        db.close()

    timer = threading.Timer(0.2, later)
    timer.start()
    assert jostle("logs", "-f", id)[1] == "first\nsecond\n"
    timer.join()


def test_following_a_job_that_nobody_starts_ends_with_what_to_do(jostle, store):
    code, out, err = jostle("logs", "-f", store())
    assert (code, out) == (3, "") and "is queued and has printed nothing, and no engine runs: `jostle up` goes on" in err


@pytest.mark.parametrize("sign", ["the shim is gone", "it left its record"])
def test_following_a_log_ends_with_its_run_where_no_engine_records_the_end(logged, store, home, sign):
    """While the run lives it is said what is waited for; then the end is seen from outside."""
    id, path = logged(b"first\n", state="running")
    shim = subprocess.Popen(["sleep", "600"])
    try:
        store.store.db.execute("UPDATE run SET handle = json_object('pid', ?, 'ticks', 1, 'boot', '')", (shim.pid,))
        (home / "runs" / f"{id}.1").mkdir(parents=True)
        argv = [sys.executable, "-m", "jostle", "logs", "-f", str(id)]
        client = subprocess.Popen(argv, env={**os.environ, "JOSTLE_HOME": str(home)}, stdout=-1, stderr=-1, text=True)
        waits = client.stderr.readline()
        with open(path, "ab") as f:
            f.write(b"last\n")
        if sign == "it left its record":
            (home / "runs" / f"{id}.1" / "exit").touch()
        else:
            shim.kill()
            shim.wait()
        out, err = client.communicate(timeout=60)
    finally:
        shim.kill()
        shim.wait()
    assert waits == f"no engine runs: job {id} is followed until its run is over; `jostle up` starts one\n"
    assert (client.returncode, out) == (0, "first\nlast\n")
    assert err == f"the run of job {id} is over, and no engine runs to say how it ended: `jostle up` goes on\n"


def test_following_a_log_shows_each_later_try_also_one_that_was_over_at_once(jostle, logged, store, tmp_path, monkeypatch):
    id, _ = logged(b"first\n", state="running")
    slept = []

    def meanwhile(seconds):  # while it sleeps the job is tried twice more, and ends
        slept.append(seconds)
        for n, text in ((2, "second\n"), (3, "third\n")):
            path = tmp_path / f"again{n}"
            path.write_text(text)
            store.store.db.execute(
                "INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at) "
                "VALUES (?, ?, ?, 'running', 0, ?, 0, 0)",
                (id, n, f"u{id}-{n}", str(path)),
            )
        store.store.db.execute("UPDATE job SET state = 'failed', ended_at = 1 WHERE id = ?", (id,))

    monkeypatch.setattr("jostle.cli.logs.time.sleep", meanwhile)
    assert jostle("logs", "-f", id)[:2] == (0, "first\nsecond\nthird\n")
    assert len(slept) == 1


@pytest.mark.parametrize("voided", [False, True])
def test_following_tries_that_share_one_path_loses_none(jostle, logged, store, monkeypatch, voided):
    """A run that has not begun still names the file of the one before, which is put aside when it begins."""
    id, path = logged(b"first\n", state="running")
    db = store.store.db

    def recorded(n, outcome=None):
        db.execute(
            "INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at, outcome) "
            "VALUES (?, ?, ?, 'starting', 0, ?, 0, 0, ?)",
            (id, n, f"u{id}-{n}", str(path), outcome),
        )

    def begins(text):
        path.rename(f"{path}.{len(list(path.parent.glob(path.name + '.*'))) + 1}")
        path.write_text(text)

    if voided:
        recorded(2, "voided")
    recorded(2 + voided)
    steps = [
        lambda: begins("second\n"),
        lambda: recorded(3 + voided),
        lambda: begins("third\n"),
        lambda: db.execute("UPDATE job SET state = 'succeeded', ended_at = 1 WHERE id = ?", (id,)),
    ]
    monkeypatch.setattr("jostle.cli.logs.time.sleep", lambda seconds: steps.pop(0)())
    code, out, err = jostle("logs", "-f", id)
    assert (code, out) == (0, "first\nsecond\nthird\n")
    assert [line for line in err.splitlines() if "again" in line] == [
        f"job {id} is tried again (run {2 + voided})",
        f"job {id} is tried again (run {3 + voided})",
    ]


def with_a_hole(path, before, hole, after):
    with path.open("wb") as f:
        f.write(before)
        f.seek(hole, os.SEEK_CUR)
        f.write(after)


def test_what_was_dropped_of_a_log_is_skipped_however_it_is_read(jostle, logged):
    id, path = logged(b"")
    before = b"\nfirst\n".rjust(8192, b".")
    with_a_hole(path, before, 1 << 31, b"x" * 200_000 + b"\nlast\n")
    assert path.stat().st_size > 1 << 31
    _, out, _ = jostle("logs", id)
    assert out == before.decode() + "x" * 200_000 + "\nlast\n"
    assert jostle("logs", id, "-n", "3")[1] == "first\n" + "x" * 200_000 + "\nlast\n", "from its end, too"
    assert json.loads(jostle("logs", id, "--json")[1])["text"] == out


def test_a_log_that_ends_in_a_hole_is_read_to_its_end(jostle, logged):
    all_there_is = "all there is\n".rjust(1 << 16, ".")
    id, path = logged(all_there_is.encode())
    os.truncate(path, 1 << 31)
    assert jostle("logs", id)[1] == all_there_is
    assert jostle("logs", id, "-n", "1")[1] == all_there_is


def test_validate_tells_good_files_and_all_errors(jostle, tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("jobs:\n  - {run: x, queue: q}\n  - run: y\n")
    bad.write_text("jobs:\n  - run: x\n    gpus: -1\n  - runn: y\n")
    code, out, err = jostle("validate", good)
    assert (code, out) == (0, "good: 2 jobs, 1 queue\n") and err.startswith("not checked: ")
    code, out, err = jostle("validate", bad)
    assert (code, out) == (6, "") and [line.split(":")[:2] for line in err.splitlines()] == [
        [str(bad), "3"],
        [str(bad), "4"],
        [str(bad), "4"],
    ]
    told = json.loads(jostle("validate", "--json", bad)[1])
    assert told["ok"] is False and told["errors"][0]["line"] == 3


def test_events_made_for_tests_look_like_the_engines():
    assert set(event(1, "running", 2)) == {"seq", "at", "kind", "batch", "job", "run", "data"}


def test_an_unknown_batch_is_not_found(jostle, store):
    store()
    assert jostle("ps", "-b", 77) == (4, "", "jostle: there is no batch 77\n")


def test_held_is_a_state_to_ask_for(jostle, store):
    store()
    held, failed = store(intent="hold"), store(state="failed", ended_at=time.time())
    assert [row["id"] for row in ps_json(jostle, "-s", "held")] == [held]
    assert [row["id"] for row in ps_json(jostle, "-s", "held", "-s", "failed")] == [held, failed]


def test_the_newest_failures_of_a_day_are_shown_whatever_ended_since_and_the_rest_is_counted(jostle, store):
    now = time.time()
    store(rows=5, state="failed", ended_at=now - 90_000)
    for k in range(25):
        store(name=f"bad{k}", state="failed", ended_at=now - 20_000 + k)
    store(rows=50, state="succeeded", ended_at=now - 10)
    _, out, _ = jostle("ps")
    assert [line.split()[1] for line in out.splitlines() if " failed  " in line] == [f"bad{k}" for k in range(5, 25)]
    assert out.count(" succeeded ") == 30
    assert out.splitlines()[-2:] == [
        "… and 5 more that failed in the last day; `jostle ps --state failed` lists them",
        "… and 20 more that ended lately; `jostle ps --all` lists them",
    ]
    assert len(ps_json(jostle, "-s", "failed")) == 30


def test_many_failures_at_once_are_the_newest_twenty_and_a_count(jostle, store):
    store(rows=40, state="failed", ended_at=time.time())
    _, out, _ = jostle("ps")
    assert out.count(" failed  ") == 20 and out.splitlines()[-1].startswith("… and 20 more that failed in the last day;")
    assert out.splitlines()[1].split()[0] == "21" and "ended lately" not in out


def test_many_finished_rows_are_folded_in_the_table_only(jostle, store):
    store(rows=50, state="succeeded", ended_at=time.time())
    _, out, _ = jostle("ps")
    assert out.count("\n") == 32 and "… and 20 more that ended lately; `jostle ps --all` lists them" in out
    assert out.split("\n")[1].split()[0] == "21"
    assert len(ps_json(jostle)) == 50 and jostle("ps", "--all")[1].count("\n") == 51


def test_show_tells_what_it_comes_after_and_how_it_is_retried(jostle, store):
    first = store(name="prepare")
    retry = {"max": 3, "backoff_after": 2, "backoff": 600.0}
    _, out, _ = jostle("show", store(needs=[["job", first, False]], retry=retry))
    assert f"comes after   {first} prepare (queued)" in out
    assert "retry         at most 3 times; a pause of 10m" in out and "after every 2 failures" in out
    _, out, _ = jostle("show", store(retry={**retry, "max": 1}))
    assert "retry         at most 1 time\n" in out, "that pause would never come"


def test_a_directory_that_does_not_exist_is_a_warning(jostle, tmp_path):
    (tmp_path / "a.yaml").write_text("jobs: [{run: a, workdir: later}]")
    code, out, err = jostle("validate", tmp_path / "a.yaml")
    assert code == 0 and "good" in out and f"warning: workdir {tmp_path}/later does not exist" in err
