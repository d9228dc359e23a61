"""What a job is given and what becomes of it: environment, times, retries, dependencies, and the verbs that change it."""

from __future__ import annotations

import os
import resource
import time

import pytest

from tests.e2e.instance import Instance, alive, until


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Instance:
    return shared


def test_a_run_sees_who_and_where_it_is(jostle: Instance) -> None:
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "JOSTLE_JOB_ID", "JOSTLE_RUN", "JOSTLE_ATTEMPT", "JOSTLE_UNI_ID",
             "JOSTLE_QUEUE", "JOSTLE_GPUS", "PYTHONUNBUFFERED")  # fmt: skip
    id = jostle.add("-g", "2", "-q", "night", "--", "env")
    assert jostle.end(id) == ["succeeded"]
    env = dict(line.partition("=")[::2] for line in jostle.output(id).splitlines())
    (run,) = jostle.runs(id)
    cards = ",".join(map(str, run["gpus"]))
    assert len(run["gpus"]) == 2
    assert [env[name] for name in names] == [
        cards, "PCI_BUS_ID", str(id), f"{id}.1", "1", run["uni_id"], "night", cards, "1",
    ]  # fmt: skip


def test_a_job_without_gpus_sees_none(jostle: Instance) -> None:
    id = jostle.add("-g", "0", "--", 'echo "[$CUDA_VISIBLE_DEVICES]"')
    assert jostle.end(id) == ["succeeded"]
    assert (jostle.output(id), jostle.job(id)["gpus"]) == ("[]\n", [])


def test_directory_umask_limits_and_environment_are_those_of_the_submit(jostle: Instance) -> None:
    place = jostle.work / "place"
    place.mkdir()

    def strict() -> None:
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (321, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    env = {"COLOUR": "blue green", "TERM": "xterm", "SSH_AUTH_SOCK": "/nowhere"}
    say = "pwd; umask; ulimit -n; echo $COLOUR; echo [$TERM$SSH_AUTH_SOCK]; cat; echo $EXTRA"
    id = jostle.add("-e", "EXTRA=more", "--", say, cwd=place, preexec_fn=strict, env=env)
    assert jostle.end(id) == ["succeeded"]
    wanted = [str(place), "0027", "321", "blue green"]
    lines = jostle.output(id).splitlines()
    assert lines[:4] == wanted
    assert "/nowhere" not in lines[4] and "xterm" not in lines[4], "the terminal and the login are not the job's"
    assert lines[5:] == ["more"], "standard input is empty"


def test_captured_variables_are_not_shown(jostle: Instance) -> None:
    id = jostle.add("--", "true", env={"API_KEY": "hush-hush-9"})
    jostle.end(id)
    for words in (("show", str(id), "--json"), ("show", str(id)), ("ps", "--all", "--json")):
        assert "hush-hush-9" not in jostle.ok(*words)
    assert "hush-hush-9" not in jostle.log()


def test_a_job_begins_no_earlier_than_asked(jostle: Instance) -> None:
    asked = time.time()
    id, later = jostle.add("--begin", "+1s", "--", "date +%s.%N"), jostle.add("--begin", "+1h", "--", "true")
    assert jostle.call("why", id=later)["reason"]["code"] == "begin"
    jostle.ok("cancel", str(later))
    assert jostle.end(id) == ["succeeded"]
    assert float(jostle.output(id)) >= asked + 1.0


def test_the_time_limit_ends_the_whole_tree_as_timeout(jostle: Instance) -> None:
    id = jostle.add("--time-limit", "6s", "--", "sleep 600 & echo $! > limited; sleep 600")
    pid = jostle.pid_in("limited")
    assert jostle.end(id) == ["failed"]
    row = jostle.job(id)
    assert (row["error_type"], row["reason"]["code"], row["exit_code"] == 0) == ("timeout", "time_limit", False)
    until(lambda: not alive(pid))


def test_a_retry_is_a_new_numbered_run_after_a_pause_that_is_explained(jostle: Instance) -> None:
    script = 'echo try $JOSTLE_ATTEMPT $JOSTLE_UNI_ID; [ "$JOSTLE_ATTEMPT" -ge 2 ]'
    retry = {"max": 2, "backoff_after": 1, "backoff": 5.0}  # so long that it is seen on a slow host, too
    (id,) = jostle.submit({"commands": [script], "retry": retry})
    reason = jostle.reason(id, "backoff")
    assert "failed 1 time" in reason["text"]
    assert jostle.end(id) == ["succeeded"]
    row, runs = jostle.job(id), jostle.runs(id)
    assert (row["attempt"], row["retries"], [r["outcome"] for r in runs]) == (2, 1, ["failed", "succeeded"])
    assert runs[0]["uni_id"] != runs[1]["uni_id"]
    assert runs[1]["started_at"] - runs[0]["ended_at"] >= 4.99
    assert [jostle.output(id, n).split()[1] for n in (1, 2)] == ["1", "2"]


def test_no_retry_unless_asked_for(jostle: Instance) -> None:
    id = jostle.add("--", "false")
    assert jostle.end(id) == ["failed"]
    assert (jostle.job(id)["attempt"], jostle.job(id)["exit_code"]) == (1, 1)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried'; exit 1", "oom"),
        ("echo 'RuntimeError: shapes do not match'; exit 1", "runtime_error"),
        ("exit 7", "exit_code_7"),
        ("kill -SEGV $$", "signal_11"),
    ],
)
def test_the_kind_of_failure_is_told_apart(jostle: Instance, command: str, kind: str) -> None:
    (id,) = jostle.submit({"commands": [command], "gpus": [0, 0]})
    assert jostle.end(id) == ["failed"]
    assert jostle.job(id)["error_type"] == kind


def test_after_after_any_and_skipped(jostle: Instance) -> None:
    good, bad = jostle.add("--", "sleep 0.1"), jostle.add("--", "sleep 0.1; exit 1")
    yes = jostle.add("--after", str(good), "--", "true")
    no = jostle.add("--after", f"{good},{bad}", "--", "true")
    further = jostle.add("--after", str(no), "--", "true")
    anyway = jostle.add("--after-any", str(bad), "--", "true")
    assert jostle.end(yes, no, further, anyway) == ["succeeded", "skipped", "skipped", "succeeded"]
    assert f"job {bad}" in jostle.ok("why", str(no))
    assert jostle.job(yes)["started_at"] >= jostle.job(good)["ended_at"]


def test_hold_unhold_move_set_and_cancel(jostle: Instance) -> None:
    script = "until [ -e verbs.go ]; do sleep 0.02; done"
    head, a, b, c = jostle.submit({"commands": [script], "queue": "v"}, *[{"queue": "v", "commands": ["sleep 0.02"]}] * 3)
    jostle.reach(head, "running")
    jostle.ok("hold", str(a))
    jostle.ok("move", str(c), "before", str(b))
    jostle.ok("set", str(b), "name=renamed", "priority=5", "memory=2GiB")
    code, _, err = jostle.run("move", str(head), "first")
    assert (code, "only a queued job can be moved" in err) == (1, True)
    jostle.ok("move", str(a), "last")
    (jostle.work / "verbs.go").touch()
    assert jostle.end(b, c) == ["succeeded", "succeeded"]
    rows = jostle.jobs()
    assert rows[c]["started_at"] < rows[b]["started_at"]
    assert (rows[b]["name"], rows[b]["priority"], rows[b]["memory_mib"]) == ("renamed", 5, 2048)
    assert (rows[a]["state"], jostle.json("why", str(a))["reason"]["code"]) == ("queued", "held")
    jostle.ok("unhold", str(a))
    assert jostle.end(a) == ["succeeded"]
    code, _, err = jostle.run("cancel", str(a))
    assert (code, "succeeded already" in err) == (1, True)


def test_retry_queues_what_ended_as_a_new_job(jostle: Instance) -> None:
    old = jostle.add("-n", "again", "--", "[ -e again.ok ]")
    assert jostle.end(old) == ["failed"]
    (jostle.work / "again.ok").touch()
    new = int(jostle.ok("retry", str(old)))
    assert jostle.end(new) == ["succeeded"]
    assert (jostle.job(old)["state"], jostle.job(new)["retry_of"]) == ("failed", old)


def test_cancel_ends_a_running_job_and_now_does_not_wait(jostle: Instance) -> None:
    script = "trap 'echo ending; exit 0' TERM; echo $$ > {0}; while :; do sleep 0.02; done"
    gently, now = jostle.submit({"commands": [script.format("gently")]}, {"commands": ["trap '' TERM; " + script.format("now")]})
    pids = [jostle.pid_in("gently"), jostle.pid_in("now")]
    jostle.ok("cancel", str(gently))
    jostle.ok("cancel", str(now), "--now")
    states = jostle.end(gently, now)
    assert states[1] == "cancelled"
    assert states[0] in ("cancelled", "succeeded") and "ending" in jostle.output(gently), "exit 0 is a success"
    until(lambda: not any(map(alive, pids)))


def test_wait_tells_whether_they_succeeded_and_gives_up_in_time(jostle: Instance) -> None:
    good, bad = jostle.add("--", "sleep 0.1"), jostle.add("--", "false")
    assert jostle.run("wait", str(good))[0] == 0
    assert jostle.run("wait", f"{good},{bad}")[0] == 1
    (long,) = jostle.submit({"commands": ["sleep 600"]})
    code, _, err = jostle.run("wait", str(long), "--timeout", "0.2s")
    assert (code, "time is up" in err) == (124, True)
    assert jostle.run("wait", "99999")[0] == 4
    jostle.ok("cancel", str(long), "--now")
    assert jostle.run("wait", str(long))[0] == 1


def test_each_run_has_its_own_log_and_an_older_one_is_put_aside(jostle: Instance) -> None:
    for text in ("one", "two"):
        id = jostle.add("--log", "out.txt", "--", "echo", text)
        jostle.end(id)
    assert (jostle.work / "out.txt").read_text() == "two\n"
    assert (jostle.work / "out.txt.1").read_text() == "one\n"
    assert jostle.ok("logs", str(id)) == "two\n"


def test_commands_run_one_after_another_in_shells_of_their_own_until_one_fails(jostle: Instance) -> None:
    (id,) = jostle.submit({"commands": ["cd /; x=1", "pwd; echo [$x]", "exit 5", "echo never"]})
    assert jostle.end(id) == ["failed"]
    assert (jostle.output(id), jostle.job(id)["exit_code"]) == (f"{jostle.work}\n[]\n", 5)


def test_why_a_command_could_not_be_started_stands_in_its_log(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({"commands": [["no-such-program"]]})
    assert instance.end(id) == ["failed"]
    assert "cannot be started: no-such-program: command not found" in instance.ok("logs", str(id))


def test_a31_each_try_has_a_log_of_its_own_also_at_a_path_of_the_persons_choice(instance):
    instance.up("sim:1x24")
    log = instance.work / "logs" / "task.log"
    log.parent.mkdir()
    job = {"log": str(log), "retry": {"max": 2, "backoff_after": 3, "backoff": 0.0}}
    tries = '[ $JOSTLE_ATTEMPT = 2 ] || echo "try $JOSTLE_ATTEMPT"; [ $JOSTLE_ATTEMPT = 3 ]'
    (id,) = instance.submit({**job, "commands": [tries]})
    assert instance.end(id) == ["succeeded"]
    told = [instance.ok("logs", str(id), "--run", str(n)) for n in (1, 2, 3)]
    assert told == ["try 1\n", "", "try 3\n"]
    assert instance.ok("logs", str(id), "--run", "1", "--path").strip() == f"{log}.1"
    (again,) = instance.submit({**job, "commands": ["echo another"]})
    instance.end(again)
    assert [instance.ok("logs", str(id), "--run", str(n)) for n in (1, 3)] == ["try 1\n", "try 3\n"], "after others"


def test_a22_a_word_that_is_no_text_does_not_end_the_engine(instance):
    """A Chinese message cut in mid-character: every engine that read this end died of it."""
    instance.up("sim:1x24")
    file = instance.work / "uni_id.json"
    say = (
        'python3 -c "import json, os; f = os.environ[\'JOSTLE_UNI_ID_FILE\']; d = json.load(open(f)); '
        "d['{uni_id}'].update(state='abnormal_exit', error_type='\\\\ud800\\\\x1b[31mcut'); json.dump(d, open(f, 'w'))\""
    )
    (id,) = instance.submit({"env": {"JOSTLE_UNI_ID_FILE": str(file)}, "commands": [say], "leftovers": "wait"})
    assert instance.end(id) == ["failed"]
    row = instance.job(id)
    assert row["error_type"] == "[31mcut" and row["reason"]["code"] == "reported"
    assert instance.end(*instance.submit({})) == ["succeeded"], "the engine lives"
