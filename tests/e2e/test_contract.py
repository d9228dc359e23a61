"""What others build on: the JSON of each reading verb, the exit codes, and a sentence for every kind of wait."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.instance import Instance, until

NULL = type(None)
JOB: dict[str, tuple[type, ...]] = {
    "id": (int,), "name": (str,), "queue": (str, NULL), "batch": (int,), "state": (str,), "intent": (str,), "gpus": (list,),
    "gpu_uuids": (list,), "attempt": (int,), "retries": (int,), "exit_code": (int, NULL), "error_type": (str, NULL),
    "submitted_at": (float,), "started_at": (float, NULL), "ended_at": (float, NULL), "reason": (dict, NULL), "commands": (list,),
    "memory_mib": (int, NULL), "gpu_request": (list,),
}  # fmt: skip
GPU: dict[str, tuple[type, ...]] = {
    "index": (int,), "uuid": (str,), "name": (str,), "total_mib": (int,), "used_mib": (int,), "free_mib": (int,),
    "available_mib": (int,), "utilization": (int, NULL), "temperature": (int, NULL), "power_w": (float, int, NULL),
    "holders": (list,), "state": (str,), "refusal": (dict, NULL),
}  # fmt: skip
HOLDER: dict[str, tuple[type, ...]] = {"pid": (int,), "user": (str,), "used_mib": (int, NULL), "run": (str, NULL)}
RUN: dict[str, tuple[type, ...]] = {
    "n": (int,), "uni_id": (str,), "state": (str,), "gpus": (list,), "gpu_uuids": (list,), "started_at": (float,), "log": (str,),
}  # fmt: skip
EVENT: dict[str, tuple[type, ...]] = {"seq": (int,), "at": (float,), "kind": (str,), "data": (dict,)}
REASON: dict[str, tuple[type, ...]] = {"code": (str,), "text": (str,)}


def holds(value: Any, shape: dict[str, tuple[type, ...]]) -> None:
    for key, kinds in shape.items():
        assert key in value, key
        assert isinstance(value[key], kinds), (key, value[key])


@pytest.fixture(scope="module")
def jostle(shared: Instance) -> Instance:
    running, failed, waits = shared.submit(
        {"commands": ["sleep 600"], "memory_mib": 4096, "gpus": [2, 2], "name": "busy"},
        {"commands": ["exit 3"]},
        {"gpus": [9, 9], "queue": "q", "commands": [["echo", "a b"], "true"]},
    )
    shared.reach(running, "running")
    shared.end(failed)
    shared.reason(waits, "impossible_count")
    return shared


def test_ps(jostle: Instance) -> None:
    found = jostle.json("ps")
    assert found["schema"] == 1
    assert [row["state"] for row in found["jobs"][:3]] == ["running", "failed", "queued"]
    for row in found["jobs"]:
        holds(row, JOB)
        if row["reason"]:
            holds(row["reason"], REASON)
    busy, failed, waits = found["jobs"][:3]
    assert (len(busy["gpus"]), len(busy["gpu_uuids"]), busy["gpu_request"], busy["memory_mib"]) == (2, 2, [2, 2], 4096)
    assert (failed["exit_code"], failed["error_type"], failed["attempt"]) == (3, "exit_code_3", 1)
    assert (waits["commands"], waits["reason"]["code"]) == (["echo 'a b'", "true"], "impossible_count")


def test_gpus(jostle: Instance) -> None:
    found = until(lambda: next(iter([g for g in [jostle.json("gpus")] if any(c["holders"] for c in g["gpus"])]), None))
    assert (found["schema"], len(found["gpus"])) == (1, 4)
    for gpu in found["gpus"]:
        holds(gpu, GPU)
        for holder in gpu["holders"]:
            holds(holder, HOLDER)
    taken = [gpu for gpu in found["gpus"] if gpu["holders"]]
    assert {h["run"] for gpu in taken for h in gpu["holders"]} == {"1.1"}
    assert all(gpu["refusal"]["code"] == "taken" for gpu in taken)


def test_why(jostle: Instance) -> None:
    found = jostle.json("why", "3")
    holds(found["reason"], REASON)
    assert isinstance(found["gpus"], list)


def test_why_names_each_card_that_refuses(jostle: Instance) -> None:
    (id,) = jostle.submit({"gpus": [3, 3]})
    jostle.reason(id, "gpus")
    found = jostle.json("why", str(id))
    assert {g["code"] for g in found["reason"]["gpus"]} == {"taken"}
    for refusal in found["reason"]["gpus"]:
        holds(refusal, {"index": (int,), "uuid": (str,), "code": (str,), "text": (str,)})
    jostle.ok("cancel", str(id))


def test_show(jostle: Instance) -> None:
    found = jostle.json("show", "1")
    holds(found["job"], JOB)
    for run in found["runs"]:
        holds(run, RUN)
    for event in found["events"]:
        holds(event, EVENT)
    assert [e["kind"] for e in found["events"]][:2] == ["starting", "running"]


def test_status(jostle: Instance) -> None:
    found = jostle.json("status")
    holds(found, {"pid": (int,), "version": (str,), "uptime_s": (float,), "counts": (dict,), "paths": (dict,)})
    assert found["pid"] == jostle.engine
    assert found["paths"]["home"] == str(jostle.home)


def test_data_goes_to_stdout_and_messages_to_stderr(jostle: Instance) -> None:
    code, out, err = jostle.run("why", "12345")
    assert (code, out) == (4, "")
    assert err.startswith("jostle: ") and "12345" in err
    assert "\x1b[" not in jostle.ok("ps", env={"TERM": "xterm"}), "colours are for terminals"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ps",), 0), (("frobnicate",), 2), (("add",), 2), (("ps", "--nope"), 2), (("why", "one:"), 2), (("why", "98765"), 4),
        (("why", "one"), 4), (("logs", "98765"), 4), (("cancel", "98765"), 4), (("set", "3", "colour=red"), 2),
        (("add", "-m", "lots", "--", "true"), 2),
        (("run", "no-such-file.yaml"), 6), (("validate", "no-such-file.yaml"), 6), (("wait", "3", "--timeout", "0.05s"), 124),
        (("wait", "2"), 1), (("--help",), 0), (("add", "--after", "98765", "--", "true"), 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)  # fmt: skip
def test_exit_codes(jostle: Instance, words: tuple[str, ...], code: int) -> None:
    found, out, err = jostle.run(*words)
    assert found == code, (out, err)
    assert "Traceback" not in err
    assert code == 0 or err


def test_an_engine_that_goes_away_in_the_middle_is_3(instance: Instance) -> None:
    instance.up("sim:1x24", env={"JOSTLE_FAILPOINTS": "service.before_commit=kill@1"})
    code, out, err = instance.run("add", "--", "true")
    assert (code, out, "went away" in err) in ((3, "", True), (0, "1\n", False)), "unless it asks again by itself"


def test_every_kind_of_wait_has_a_sentence_with_numbers(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("grace: 600\n")  # one that is told to end is looked at before it has
    instance.up("sim:4x24")
    forever = {"commands": ["sleep 600"]}
    cpu = {"gpus": [0, 0]}
    (blocker,) = instance.submit({**forever, "gpus": [3, 3], "name": "blocker"})
    instance.reach(blocker, "running")
    gpus, big, many, after, held = instance.submit(
        {"gpus": [2, 2]}, {"memory_mib": 100 << 10}, {"gpus": [9, 9]}, {"needs": [["job", blocker, False]]}, {"intent": "hold"}
    )
    (limit,) = instance.submit({}, policy={"min_gpu": 0, "max_gpu": 2})
    (never,) = instance.submit({"gpus": [3, 3]}, policy={"min_gpu": 0, "max_gpu": 2})
    _, most = instance.submit({**cpu, **forever}, {**cpu, "time_limit": 9}, policy={"max_concurrent": 1})
    _, interval = instance.submit(cpu, {**cpu, "time_limit": 9}, policy={"start_interval": 600})
    first, behind = instance.submit(*[{**cpu, **forever, "queue": "night"}] * 2)
    begin = instance.add("-g", "0", "--begin", "+2h", "--", "true")
    (backoff,) = instance.submit({**cpu, "commands": ["exit 3"], "retry": {"max": 1, "backoff_after": 1, "backoff": 90}})
    (stopping,) = instance.submit({**cpu, "commands": ["trap '' TERM; touch stops; while :; do sleep 0.05; done"]})
    instance.made("stops")
    instance.ok("cancel", str(stopping))
    wanted = {
        gpus: ("gpus", rf"1 of 4 GPUs fit \(2 needed\): 3 are taken by your jobs \({blocker}\)"),
        big: ("impossible", "100 GiB.*23.5 GiB"),
        many: ("impossible_count", "9 cards.*4"), after: ("after", f"job {blocker}"), held: ("held", "jostle unhold"),
        limit: ("limit", "hold 3 cards.*2"), never: ("impossible_limit", "3 cards.*2"),
        most: ("max_concurrent", "runs 1 job and may run 1"), interval: ("start_interval", "10 min"),
        behind: ("behind", f"behind 1 other job of queue night; job {first}"), begin: ("begin", r"2 h|1 h 59 min|\d\d:\d\d"),
        backoff: ("backoff", r"failed 1 time .*\d+ s"), stopping: ("cancelling", "being cancelled"),
    }  # fmt: skip
    for id, (code, words) in wanted.items():
        instance.reason(id, code)
        found = instance.json("why", str(id))["reason"]
        assert found["code"] == code, (id, found)
        assert re.search(words, found["text"]), found["text"]
        assert found["text"].endswith(".")
        assert "?" not in found["text"] and "{" not in found["text"]
    assert instance.ok("why", str(gpus), env={"JOSTLE_LANG": "zh"}) != instance.ok("why", str(gpus))
    instance.ok("cancel", "all", "--now")


def test_every_kind_of_end_has_a_sentence(instance: Instance) -> None:
    instance.up("sim:1x24")
    code, killed, missing, long, oom, after = instance.submit(
        {"commands": ["exit 3"]}, {"commands": ["kill -9 $$"]}, {"commands": [["/no/such"]]},
        {"commands": ["sleep 60"], "time_limit": 0.1}, {"commands": ["echo CUDA out of memory; exit 1"]},
        {"needs": [["index", 0, False]]},
    )  # fmt: skip
    wanted = {code: "exit code 3", killed: "signal 9, killed", missing: "could not be started: /no/such: No such file",
              long: "longer than its time limit", oom: "GPU memory", after: f"job {code}"}  # fmt: skip
    instance.end(*wanted)
    for id, words in wanted.items():
        assert words in instance.ok("why", str(id)), (id, instance.ok("why", str(id)))
