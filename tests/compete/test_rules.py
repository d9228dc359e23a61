"""What compete asks of the engine, in virtual time: queues of its own, retries by policy, closed queues, amendments."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from jostle.core.decide import decide
from jostle.core.failure import error_type, succeeded
from jostle.core.model import Exit, Gpu, Policy, Retry
from jostle.core.plan import Finish, Requeue
from jostle.core.reasons import Reason
from jostle.core.variables import filled
from jostle.engine import checks, launch
from jostle.errors import Invalid, NotFound
from jostle.store import intents
from jostle.store import jobs as jobs_in_store
from jostle.store.amend import amend
from jostle.store.reads import Reader
from tests.core.worlds import ended, gpus, world
from tests.engine.fakes import Host

COMPETE: dict[str, Any] = {
    "retry": {"max": None, "backoff_after": 3, "backoff": 600.0}, "on_failure": "stop", "order": "random", "strangers": "share",
}  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> Host:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Host(str(home))


def submit(host: Host, *jobs: dict[str, Any], policy: dict[str, Any] = COMPETE, own: bool = True) -> list[int]:
    full = [{"commands": ["true"], "workdir": "/", "memory_mib": 1024, **job} for job in jobs]
    head = {"policy": policy, **({"queues": "own"} if own else {})}
    request = checks.request({"batch": head, "jobs": full})
    answer = host.request(
        lambda: jobs_in_store.submit(host.store, request, at=host.clock.wall(), now=host.clock.now(), rank=lambda: 0.5)
    )
    first, last = answer["ids"]
    return list(range(first, last + 1))


def change(host: Host, **request: Any) -> dict[str, Any]:
    checked = checks.amendment(request)
    answer: dict[str, Any] = host.request(
        lambda: amend(host.store, checked, at=host.clock.wall(), now=host.clock.now(), rank=lambda: 0.5)
    )
    host.engine.rules_changed(request["batch"])
    return answer


def rows(host: Host) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in Reader(host.home).jobs()}


# --- variables (A5)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("run {uni_id} on {available_gpu}={gpu_list}", "run abc on 4,7=4,7"),
        ("cd {work_dir}; awk '{print $1}' ${uni_id}", "cd {work_dir}; awk '{print $1}' ${uni_id}"),
        ('{"a": {}} {uni_id:x}', '{"a": {}} {uni_id:x}'),
        ("{{uni_id}} { uni_id } {uni_id", "{abc} { uni_id } {uni_id"),
    ],
)  # fmt: skip
def test_a5_variables_are_filled_in_raw_never_after_a_dollar_and_other_braces_stay(text: str, seen: str) -> None:
    assert filled(text, {"uni_id": "abc", "available_gpu": "4,7", "gpu_list": "4,7"}) == seen


def spec_of(env: dict[str, str]) -> dict[str, Any]:
    row = {
        "id": 1, "batch": 7, "queue": "7/3", "commands": json.dumps(["go {uni_id} {available_gpu}", ["say", "{gpu_list}"]]),
        "env": json.dumps(env), "workdir": "/", "log": None, "time_limit": None, "leftovers": "wait", "inputs": None,
        "retries": 2, "gpus_min": 2, "gpus_max": 2, "memory_mib": None,
    }  # fmt: skip
    job = defaultdict(lambda: None, row)  # what else a job can ask for was not asked for
    cards = [Gpu(uuid="GPU-4", index=4), Gpu(uuid="GPU-7", index=7)]
    context: dict[str, Any] = {"env": {}, "umask": 0o022, "limits": {}}
    policy = Policy(command_limit=60.0)
    return launch.spec(job, context, (1, 3), "abc", "/h/log", cards, cards, {}, policy, grace=5.0, placed=True)


def test_a5_a21_only_a_job_of_the_protocol_has_its_variables_filled_and_knows_the_file() -> None:
    inside, outside = spec_of({"JOSTLE_UNI_ID_FILE": "/w/logs/uni_id.json"}), spec_of({})
    assert inside["commands"] == ["go abc 4,7", ["say", "4,7"]]
    assert (inside["uni_id_file"], inside["failures"], inside["command_limit"]) == ("/w/logs/uni_id.json", 2, 60.0)
    assert inside["env"]["JOSTLE_UNI_ID_FILE"] == "/w/logs/uni_id.json" and inside["env"]["JOSTLE_QUEUE"] == "3"
    assert outside["commands"] == ["go {uni_id} {available_gpu}", ["say", "{gpu_list}"]] and outside["uni_id_file"] is None


# --- queues


def test_a15_queues_of_two_workspaces_do_not_wait_for_each_other(host: Host) -> None:
    one = submit(host, {"queue": "1"}, {"queue": "1"})
    two = submit(host, {"queue": "1"})
    host.step()
    host.step(1)
    states = host.states()
    assert [states[id] for id in (*one, *two)] == ["running", "queued", "running"]
    assert [rows(host)[id]["queue"] for id in (*one, *two)] == ["1/1", "1/1", "2/1"]


def test_a16_in_multi_mode_the_most_cards_come_first_then_the_lowest_queue_number(host: Host) -> None:
    ids = submit(
        host, *({"queue": q, "gpus": [n, n]} for q, n in (("10", 2), ("9", 2), ("1", 1), ("2", 3))),
        policy={**COMPETE, "order": "gpus-desc"},
    )  # fmt: skip
    for id in ids:
        host.disk.durations[id] = (10.0, 0, "")
    host.settle()
    began = {id: host.disk.processes[(id, 1)].began for id in ids}
    ten, nine, one, two = ids
    assert began[two] == began[one] < began[nine] == began[ten], "three cards first; the fourth goes to whoever fits it"
    assert list(host.disk.processes) == [(two, 1), (one, 1), (nine, 1), (ten, 1)], "queue 9 before queue 10"


# --- retries (A25, A26)


def test_a25_a_failing_task_blocks_its_queue_and_no_other_through_three_retries_and_a_back_off(host: Host) -> None:
    bad, after, other, last = submit(host, {"queue": "1"}, {"queue": "1"}, {"queue": "2"}, {"queue": "2"})
    host.disk.durations[bad] = (20.0, 1, "RuntimeError: no")
    began = host.clock.at
    while len(starts(host, bad)) < 4:
        assert host.clock.at < began + 1000
        host.step(1)
        assert (after, 1) not in host.disk.processes, "its queue is busy while it retries and while it waits"
    host.step(1)
    assert host.states()[other] == host.states()[last] == "succeeded", "the other queue went on"
    gaps = [b - a - 20 for a, b in zip(starts(host, bad), starts(host, bad)[1:], strict=False)]
    assert [round(gap / 600) for gap in gaps] == [0, 0, 1], "each third failure waits for 10 minutes"
    assert (rows(host)[bad]["retries"], rows(host)[bad]["error_type"]) == (3, "runtime_error")
    ids = [run["uni_id"] for run in Reader(host.home).runs(bad)]
    assert len(set(ids)) == len(ids) == 4, "each attempt has an id of its own"
    host.disk.durations[bad] = (5.0, 0, "")
    host.settle()
    assert (after, 1) in host.disk.processes and set(host.states().values()) == {"succeeded"}


def starts(host: Host, job: int) -> list[float]:
    return [p.began for run, p in sorted(host.disk.processes.items()) if run[0] == job]


def test_a25_at_the_cap_the_rest_of_the_queue_is_not_started_and_other_queues_go_on(host: Host) -> None:
    policy = {**COMPETE, "retry": {"max": 1, "backoff_after": 3, "backoff": 1.0}}
    bad, rest, end, other = submit(host, {"queue": "1"}, {"queue": "1"}, {"queue": "1"}, {"queue": "2"}, policy=policy)
    host.disk.durations[bad] = (20.0, 3, "")
    host.settle()
    assert host.states() == {bad: "failed", rest: "skipped", end: "skipped", other: "succeeded"}
    told = rows(host)
    assert [told[id]["reason"]["code"] for id in (rest, end)] == ["queue_failed"] * 2
    assert told[rest]["reason"]["params"] == {"job": bad} and told[bad]["retries"] == 1
    events = [(e["kind"], e["job"]) for e in Reader(host.home).events() if e["kind"] in ("failed", "skipped", "batch_ended")]
    assert events == [("failed", bad), ("skipped", end), ("skipped", rest), ("batch_ended", None)], "the cause comes first"


def test_b4_a_wait_that_was_too_long_closes_its_queue_where_failures_do(host: Host) -> None:
    host.disk.strangers = dict.fromkeys(host.disk.uuids(), 24000)
    late, rest = submit(host, {"queue": "1"}, {"queue": "1"}, policy={**COMPETE, "max_wait": 5.0})
    host.settle(at_most=60)
    assert host.states() == {late: "failed", rest: "skipped"}
    kinds = [e["kind"] for e in Reader(host.home).events() if e["job"] in (late, rest) or e["kind"] == "batch_ended"]
    assert kinds == ["failed", "skipped", "batch_ended"]


def test_a25_on_failure_continue_lets_the_queue_go_on(host: Host) -> None:
    policy = {**COMPETE, "retry": {"max": 0}, "on_failure": "continue"}
    bad, rest = submit(host, {"queue": "1"}, {"queue": "1"}, policy=policy)
    host.disk.durations[bad] = (20.0, 3, "")
    host.settle()
    assert host.states() == {bad: "failed", rest: "succeeded"}


def test_a25_a_task_cancelled_by_a_person_frees_its_queue(host: Host) -> None:
    stuck, rest = submit(host, {"queue": "1"}, {"queue": "1"})
    host.disk.durations[stuck] = (10_000.0, 0, "")
    host.step()
    host.step(1)
    assert host.cancel(stuck) is None
    host.settle()
    assert host.states() == {stuck: "cancelled", rest: "succeeded"}


def test_a25_a_queue_shared_with_another_batch_is_closed_for_its_own_jobs_only(host: Host) -> None:
    (bad,) = submit(host, {"queue": "q"}, policy={"on_failure": "stop"}, own=False)
    (mine,) = submit(host, {"queue": "q"}, policy={}, own=False)
    host.disk.durations[bad] = (20.0, 1, "")
    host.settle()
    assert host.states() == {bad: "failed", mine: "succeeded"}


@pytest.mark.parametrize(
    ("end", "kind", "good"),
    [
        ({"code": 1, "said": "normal_exit"}, None, True),
        ({"code": 0, "said": "abnormal_exit", "said_type": "oom"}, "oom", False),
        ({"code": 0, "said": "abnormal_exit", "said_type": "nan_loss"}, "nan_loss", False),
        ({"code": 0, "said": "abnormal_exit", "said_type": "unknown"}, "unknown", False),
        ({"code": 1, "said": "abnormal_exit", "said_type": "unknown", "tail": "RuntimeError"}, "runtime_error", False),
        ({"code": 2}, "exit_code_2", False),
        ({"code": 0}, None, True),
    ],
)
def test_a22_a26_the_word_of_the_program_overrules_the_exit_code(end: dict[str, Any], kind: str | None, good: bool) -> None:
    assert succeeded(end["code"], end.get("said", "")) is good
    run = ended(1, **{"ran_for": 60.0, **end})
    (decision,) = decide(world(runs=(run,), gpus=gpus(1), policy=Policy(retry=Retry(max=None)))).decisions
    if good:
        assert isinstance(decision, Finish) and decision.state == "succeeded"
    else:
        assert isinstance(decision, Requeue) and decision.error_type == kind == error_type(**end)


def test_a_failure_that_only_the_program_knew_of_is_explained_as_such() -> None:
    run = ended(1, 0, code=0, said="abnormal_exit", said_type="nan_loss")
    (decision,) = decide(world(runs=(run,), gpus=gpus(1))).decisions
    assert isinstance(decision, Finish) and decision.reason is not None
    assert (decision.state, decision.error_type, decision.reason.code) == ("failed", "nan_loss", "reported")
    assert isinstance(run.ended, Exit)


# --- a batch that is changed while it runs (A14, A33)


def test_a14_new_rules_hold_for_what_waits_and_for_what_runs(host: Host) -> None:
    bad, second = submit(host, {"queue": "1"}, {"queue": "2"}, policy={**COMPETE, "max_concurrent": 1})
    host.disk.durations[bad] = host.disk.durations[second] = (20.0, 1, "")
    host.step()
    host.step(1)
    assert sorted(host.states().values()) == ["queued", "running"]
    change(host, batch=1, policy={**COMPETE, "retry": {"max": 0}})
    host.step(1)
    assert "queued" not in host.states().values()
    host.settle()
    assert set(host.states().values()) == {"failed"}, "no retries any more, also for the one that ran already"


def test_a33_blocks_that_are_gone_new_or_moved_are_taken_over(host: Host) -> None:
    first, second, third = submit(host, {"queue": "1"}, {"queue": "1"}, {"queue": "1"})
    host.disk.durations[first] = (50.0, 0, "")
    host.step()
    host.step(1)
    answer = change(
        host, batch=1, queues="own", drop=[first, second], owner=[1, 2],
        jobs=[{"commands": ["new"], "workdir": "/", "queue": "1"}, {"commands": ["newer"], "workdir": "/", "queue": "1"}],
        order=[["index", 1], ["job", third], ["index", 0]],
    )  # fmt: skip
    assert answer["ids"] == [4, 5] and [id for id, _ in answer["refused"]] == [first], "what runs is not dropped"
    host.settle()
    began = sorted((id for id in (first, third, 4, 5)), key=lambda id: starts(host, id)[0])
    assert began == [first, 5, third, 4] and host.states()[second] == "cancelled"
    assert rows(host)[4]["queue"] == "1/1"
    batch = Reader(host.home).batch(1)
    assert batch is not None and batch["owner"] == [1, 2] and batch["policy"]["on_failure"] == "stop"


def test_a33_a_resume_does_not_put_the_next_task_before_another_try_of_the_one_that_runs(host: Host) -> None:
    first, second, third = submit(host, {"queue": "1"}, {"queue": "1"}, {"queue": "1"})
    host.disk.durations[first], host.disk.durations[second] = (1.0, 0, ""), (20.0, 3, "")
    host.step()
    host.step(2)
    host.step(2)
    assert host.states() == {first: "succeeded", second: "running", third: "queued"}
    for _ in range(2):
        change(host, batch=1, queues="own", owner=[1, 2], order=[["job", id] for id in (first, second, third)])
    host.disk.durations[second] = (20.0, 0, "")  # its second try
    host.settle()
    assert len(starts(host, second)) == 2 and starts(host, third)[0] >= starts(host, second)[1] + 20
    assert [rows(host)[id]["place"] for id in (first, second, third)] == [1, 2, 3]


def test_a33_a_block_that_was_put_before_a_task_that_has_begun_comes_after_it(host: Host) -> None:
    begun, rest = submit(host, {"queue": "1"}, {"queue": "1"})
    host.disk.durations[begun] = (2.0, 3, "")
    host.step()
    host.step(2)
    assert rows(host)[begun]["state"] == "queued", "it waits for its second try"
    block = {"commands": ["new"], "workdir": "/", "queue": "1"}
    change(host, batch=1, queues="own", jobs=[block], order=[["index", 0], ["job", rest], ["job", begun]])
    host.disk.durations[begun] = (2.0, 0, "")
    host.settle()
    assert starts(host, begun)[1] < starts(host, 3)[0] < starts(host, rest)[0]


def test_a25_what_has_begun_is_not_overtaken_by_hand(host: Host) -> None:
    bad, other, last = submit(host, {"queue": "1"}, {"queue": "1"}, {"queue": "1"})
    host.disk.durations[bad] = (2.0, 3, "")
    host.step()
    host.step(2)
    assert rows(host)[bad]["state"] == "queued", "it waits a little, having failed so quickly"
    at = {"at": host.clock.wall(), "now": host.clock.now()}
    with host.store.transaction():
        for id, to in ((bad, "last"), (other, {"before": bad})):
            assert intents.move(host.store, id, to, **at) == Reason("has_begun", {"job": bad})
        assert intents.move(host.store, last, "first", **at) is None
    assert Reader(host.home).ahead(last) == (1, bad) and Reader(host.home).ahead(other) == (2, bad)


def test_an_amendment_that_is_sent_twice_adds_its_jobs_once(host: Host) -> None:
    submit(host, {"queue": "1"})
    wanted = {"batch": 1, "queues": "own", "once": "key", "jobs": [{"commands": ["new"], "workdir": "/", "queue": "1"}]}
    assert change(host, **wanted)["ids"] == change(host, **wanted)["ids"] == [2, 2]
    assert len(rows(host)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": "one"}, {"batch": 1, "owner": [1]}, {"batch": 1, "drop": "all"}, {"batch": 1, "policy": {"gpu_left": -1}},
        {"batch": 1, "jobs": [{"commands": []}]}, {"batch": 1, "order": [["index", 0]]}, {"batch": 1, "order": [["next", 0]]},
        {"batch": 1, "jobs": {"a": 1}}, {"batch": 1, "once": 1},
    ],
)  # fmt: skip
def test_an_amendment_that_cannot_be_understood_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        checks.amendment(wrong)


def test_a_batch_that_does_not_exist_cannot_be_amended(host: Host) -> None:
    with pytest.raises(NotFound):
        change(host, batch=99, drop=[])


def test_nobody_can_take_the_queues_of_a_batch_that_is_yet_to_come(host: Host) -> None:
    submit(host, {"queue": "1"})
    with pytest.raises(Invalid, match="queue 3/1 would be a queue of batch 3, which does not exist"):
        submit(host, {"queue": "3/1"}, own=False)
    (behind,) = submit(host, {"queue": "1/1"}, own=False)
    assert rows(host)[behind]["queue"] == "1/1" and rows(host)[behind]["ready"] == 0, "behind the one of batch 1"
