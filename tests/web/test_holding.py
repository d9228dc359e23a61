"""`/api/v1` for what a person holds and may hold: as the command line has it, and for its owner."""

import json

import pytest

from tests.e2e.instance import until
from tests.web.console import Console
from tests.web.test_metrics import scrape, value


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    made = Console(tmp_path_factory.mktemp("h"))
    made.reader = made.instance.ok("web", "--token", "--read-only").strip()
    yield made
    made.close()


def most(told):
    return {limit["name"]: limit["most"] for limit in told["limits"]}


def test_c3_limits_are_those_of_the_command_line_and_are_set_by_the_same_words(console):
    told = console.post("/api/v1/limits", {"set": {"max_total_gpus": 3, "max_gpus_per_task": 2}})
    assert most(told) | {"max_total_gpus": 3, "max_gpus_per_task": 2} == most(told)
    shown = console.instance.json("limits")
    assert {**shown, "limits": [{**limit, "by": one["by"]} for limit, one in zip(shown["limits"], told["limits"], strict=True)],
            "hold_text": ""} == console.get("/api/v1/limits")  # fmt: skip
    assert "jostle limits" in told["limits"][0]["by"]
    assert most(console.post("/api/v1/limits", {"set": {"max_total_gpus": None}}))["max_total_gpus"] is None
    assert set(most(console.post("/api/v1/limits", {"clear": ["max_gpus_per_task"]})).values()) == {None}
    (event,) = [event for event in console.instance.events("asked") if "max_total_gpus=3" in event["data"]["what"]]
    assert event["data"]["did"] == "limits"


def test_c3_what_is_beyond_a_limit_is_refused_with_its_numbers(console):
    console.post("/api/v1/limits", {"set": {"max_gpus_per_task": 1}})
    try:
        told = console.post("/api/v1/add?dry_run", {"run": "true", "workdir": "/", "gpus": 2})
        assert told["starts_now"] is False and any("1" in text for text in told["never"])
    finally:
        console.post("/api/v1/limits", {"clear": ["max_gpus_per_task"]})


@pytest.mark.parametrize("body", [
    {}, {"set": {"max_gpus": 1}}, *({"set": {"max_total_gpus": value}} for value in (-1, 1.5, "4", True, 10**12)),
    {"clear": ["x"]}, {"set": [1]}, {"other": 1}, {"set": {"": 1}},
])  # fmt: skip
def test_a_limit_that_is_none_is_refused_and_changes_nothing(console, body):
    before = console.get("/api/v1/limits")
    assert console.script("POST", "/api/v1/limits", body).status == 422
    assert console.get("/api/v1/limits") == before


def test_s27_s55_who_may_only_look_sees_numbers_and_no_file(console):
    told = console.script("GET", "/api/v1/limits", token=console.reader)
    assert told.status == 200 and (told.json["lab_file"], told.json["manager_file"]) == ("", "")
    assert console.script("POST", "/api/v1/limits", {"set": {"max_total_gpus": 1}}, token=console.reader).status == 403


def held(console, name):
    """The allocation of this name, when it has its cards."""

    def look():
        found = [one for one in console.get("/api/v1/alloc")["allocations"] if one["name"] == name]
        return found[0] if found and found[0]["state"] == "running" else None

    return until(look, f"{name} holds its cards")


@pytest.fixture
def allocated(console):
    """Makes allocations, and gives back what is left of them."""
    ids = []

    def make(**asked):
        told = console.post("/api/v1/alloc", asked)
        ids.append(told["id"])
        return told

    yield make
    left = {one["id"] for one in console.get("/api/v1/alloc")["allocations"]} & set(ids)
    if left:
        console.post("/api/v1/release", {"names": [str(id) for id in left], "now": True})
    console.instance.end(*ids)


def test_c2_an_allocation_is_made_shown_used_and_given_back(console, allocated):
    told = allocated(name="train", gpus=2, memory="20GiB", release_idle="2h", **{"for": "3h"}, priority=1)
    assert told["allocation"]["name"] == "train" and told["allocation"]["id"] == told["id"]
    one = held(console, "train")
    assert (len(one["gpus"]), one["memory_mib"], one["idle_release"], one["priority"]) == (2, 20480, 7200, 1)
    assert one["until"] == one["since"] + 3 * 3600 and one["reason"] is None
    (shown,) = console.instance.json("status")["allocations"]
    assert {**shown, "idle_s": None} == {**one, "idle_s": None}  # which grows
    run = console.post("/api/v1/start", {"name": "train", "run": 'echo "on $CUDA_VISIBLE_DEVICES"; sleep 600', "workdir": "/"})
    console.instance.reach(run["id"], "running")
    until(lambda: held(console, "train")["programs"], "the program is there")
    assert [program["id"] for program in held(console, "train")["programs"]] == [run["id"]]
    seen = f"on {','.join(map(str, one['gpus']))}"
    until(lambda: seen in console.get(f"/api/v1/logs/{run['id']}")["text"], "it sees its cards")
    refused = console.script("POST", "/api/v1/start", {"name": "train", "run": "true", "workdir": "/"})
    assert refused.status == 409 and refused.json["declined"]["code"] and refused.json["detail"]
    beside = {"run": ["echo", "$HOME; x"], "beside": True, "gpus": 1, "label": "look", "env": {"A": "b"}}
    second = console.post("/api/v1/start", {"name": "train", "workdir": "/", **beside})["id"]
    assert console.instance.end(second) == ["succeeded"] and console.get(f"/api/v1/logs/{second}")["text"] == "$HOME; x\n"
    assert console.post("/api/v1/release", {"names": "train"}) == {"ids": [told["id"]]}
    assert console.instance.end(told["id"], run["id"]) == ["succeeded", "cancelled"]
    assert console.get("/api/v1/alloc")["allocations"] == []
    asked = [(event["data"]["did"], event["data"]["what"]) for event in console.instance.events("asked")]
    assert {("alloc", "train"), ("start", "train"), ("release", "train")} <= set(asked)


def test_c2_with_now_it_holds_its_cards_or_is_refused_with_the_reason(console, allocated):
    told = allocated(name="three", gpus=3, now=True)
    assert told["allocation"]["state"] == "running" and len(told["allocation"]["gpus"]) == 3
    refused = console.script("POST", "/api/v1/alloc", {"name": "two", "gpus": 2, "now": True})
    assert refused.status == 409 and "two" in refused.json["detail"] and refused.json["declined"]["code"] == "not_now"
    assert [one["name"] for one in console.get("/api/v1/alloc")["allocations"]] == ["three"]
    waits = allocated(name="two", gpus=2)

    def why():
        return next(one["reason"] for one in console.get("/api/v1/alloc")["allocations"] if one["id"] == waits["id"])

    reason = until(why, "why it waits")
    assert reason["code"] == "gpus" and reason["text"]
    again = console.script("POST", "/api/v1/alloc", {"name": "two"})
    assert again.status == 409 and again.json["declined"]["params"]


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": "a\nb"}, *({"name": "x", "gpus": value} for value in (-1, 0.5, "x", [1], [1, 2, 3], True, "4-1")),
    {"name": "x", "memory": "much"}, {"name": "x", "for": "soon"}, {"name": "x", "for": -1}, {"name": "x", "other": 1},
    {"name": "x", "priority": 1e300}, {"name": "x", "tags": ["a\nb"]}, {"name": "x", "release_idle": "x"},
])  # fmt: skip
def test_an_allocation_that_makes_no_sense_is_refused(console, body):
    assert console.script("POST", "/api/v1/alloc", body).status == 422
    assert console.get("/api/v1/alloc")["allocations"] == []


def test_what_is_not_there_is_not_started_on_or_released(console):
    assert console.script("POST", "/api/v1/release", {"names": ["nobody"]}).status == 404
    assert console.script("POST", "/api/v1/start", {"name": "nobody", "run": "true", "workdir": "/"}).status == 404
    for body in ({"workdir": "x"}, {"workdir": "/gone"}, {}, {"workdir": "/", "env": {"A=B": "x"}}, {"workdir": "/", "run": []}):
        told = console.script("POST", "/api/v1/start", {"name": "x", "run": "true", **body})
        assert told.status == 422, (body, told)


def test_what_could_never_be_had_is_refused_at_once(console):
    told = console.script("POST", "/api/v1/alloc", {"name": "many", "gpus": 9})
    assert told.status == 422 and "9" in told.json["detail"] and console.get("/api/v1/alloc")["allocations"] == []


def test_s27_s55_who_may_only_look_sees_allocations_without_commands(console, allocated):
    allocated(name="train", gpus=1, now=True)
    run = console.post("/api/v1/start", {"name": "train", "run": "sleep 600 # secret-of-mine", "workdir": "/"})["id"]
    console.instance.reach(run, "running")
    told = console.script("GET", "/api/v1/alloc", token=console.reader)
    (one,) = told.json["allocations"]
    program = {"id": run, "name": f"job {run}", "state": "running", "gpus": one["gpus"]}
    assert one["name"] == "train" and one["programs"] == [program]
    assert b"secret-of-mine" not in told.body
    acts = {"alloc": {"name": "x"}, "release": {"names": ["train"]}, "start": {"name": "train", "run": "id", "workdir": "/"}}
    for path, body in acts.items():
        assert console.script("POST", f"/api/v1/{path}", body, token=console.reader).status == 403


def test_c7_cards_of_a_running_job_that_agreed_to_it_are_set(console):
    """`set gpus=`, as the command line has it."""
    body = {"run": "sleep 600", "workdir": "/", "gpus": "1-3", "resize": "restart", "name": "elastic"}
    id = console.post("/api/v1/add", body)["id"]
    console.instance.reach(id, "running")
    told = console.post("/api/v1/set", {"ids": [id], "values": {"gpus": "1-2"}})
    assert told["done"] == [id]
    until(lambda: len(console.get(f"/api/v1/show/{id}")["job"]["gpus"]) == 2, "it has two cards")
    assert console.post("/api/v1/set", {"ids": ["elastic"], "values": {"gpus": 1}})["done"] == [id]
    until(lambda: len(console.get(f"/api/v1/show/{id}")["job"]["gpus"]) == 1, "it has one card")
    console.post("/api/v1/cancel", {"ids": [id], "now": True})
    console.instance.end(id)


def test_c9_the_picture_of_the_manager_is_that_of_the_command_line(console, allocated):
    allocated(name="train", gpus=2, now=True)
    told = console.get("/api/v1/manage")
    assert console.instance.ok("manage", "--status").startswith(told["text"])  # behind which stands the load of the host
    assert told == console.get("/api/v1/monitor")
    (node,), (task,) = told["nodes"], told["tasks"]
    assert (node["total"], node["free"], told["running"], told["pending"]) == (4, 2, 2, 0)
    assert (task["name"], task["gpus"], task["node"], task["allocation"]) == ("train", 2, node["name"], True)
    assert console.script("GET", "/api/v1/manage", token=console.reader).json["text"] == told["text"]


@pytest.fixture
def loads(console):
    """Puts a file of the manager in force, until the test is over."""
    path = console.instance.work / "gpu_manager_config.json"

    def put(**values):
        path.write_text(json.dumps(values))
        console.instance.ok("manage", "--config", str(path), "--allocate", "loads-it")
        console.instance.ok("release", "loads-it")
        return path

    yield put
    path.unlink()
    console.instance.ok("limits", "clear", "manager")


def test_c9_the_picture_of_the_manager_knows_the_names_of_the_file_that_is_loaded(console, allocated, loads):
    """It had those of no file: adopted jobs were missing."""
    path = loads(job_prefix="LAB_", managed_job_prefixes=["LAB_", "old-"])
    ids = [console.instance.add("-n", name, "--", "sleep", "600") for name in ("LAB_one", "old-two", "NDFS_none")]
    for id in ids:
        console.instance.reach(id, "running")
    told = console.get("/api/v1/manage")
    assert [task["name"] for task in told["tasks"]] == ["one", "old-two"]
    assert console.instance.ok("manage", "--status").startswith(told["text"])
    assert console.script("GET", "/api/v1/manage", token=console.reader).json["text"] == told["text"]
    path.write_text("{ half")
    assert console.get("/api/v1/manage")["running"] == 3, "who edits it is shown something all the same"
    console.post("/api/v1/cancel", {"ids": ids, "now": True})
    console.instance.end(*ids)


def test_c5_without_a_command_the_program_of_the_file_that_is_loaded_is_started(console, allocated, loads):
    """With its tries, and told that it will not grow."""
    program = {"command": "test -e again || { touch again; exit 1; }; echo on {gpu_list}", "retry": 1}
    loads(program_template=program, scaling={"enabled": True})
    allocated(name="train", gpus=1, now=True)
    told = console.post("/api/v1/start", {"name": "train", "workdir": str(console.instance.work)})
    assert console.instance.end(told["id"]) == ["succeeded"] and len(console.instance.runs(told["id"])) == 2
    (said,) = told["messages"]
    assert "train keeps the cards" in said and "scaling.resize is not set" in said
    nothing = console.script("POST", "/api/v1/start?lang=zh", {"name": "nobody", "workdir": "/"})
    assert nothing.status == 404 and "没有名为 nobody 的占卡" in nothing.json["detail"]


def test_what_is_held_and_may_be_held_is_in_the_metrics(console, allocated):
    allocated(name="train", gpus=2, now=True)
    console.post("/api/v1/limits", {"set": {"max_total_gpus": 3}})
    try:
        samples = scrape(console)
        assert [value(samples, "jostle_allocations", state=state) for state in ("running", "queued")] == [1, 0]
        assert value(samples, "jostle_user_gpus", counted="total") == 2 == value(samples, "jostle_user_gpus", counted="manual")
        assert value(samples, "jostle_user_gpus_limit", counted="total") == 3
        assert not any(name == "jostle_user_gpus_limit" and ("counted", "manual") in labels for name, labels in samples)
    finally:
        console.post("/api/v1/limits", {"clear": ["max_total_gpus"]})


def test_c2_a_stranger_on_what_is_only_held_is_told_with_his_name(tmp_path):
    world = "gpus: {count: 1, total: 24GiB}\n"
    (tmp_path / "scenario.yaml").write_text(world)
    made = Console(tmp_path / "c", gpus=f"sim:{tmp_path}/scenario.yaml")
    try:
        made.post("/api/v1/alloc", {"name": "train"})
        id = held(made, "train")["id"]
        until(lambda: str(id) in made.instance.call("reasons")["idle"], "its card was seen without him")
        (tmp_path / "fresh").write_text(world + "strangers: [{gpu: 0, user: alice, used: 10GiB}]\n")
        (tmp_path / "fresh").replace(tmp_path / "scenario.yaml")
        told = until(lambda: (why := held(made, "train")["reason"]) and why["code"] == "visited" and why, "he is told")
        assert (told["params"]["user"], told["params"]["gpu"]) == ("alice", 0)
        assert "alice came onto GPU 0" in told["text"]
        (row,) = [row for row in made.get("/api/v1/ps")["jobs"] if row["id"] == id]
        assert row["reason"]["text"] == told["text"]
        assert made.get(f"/api/v1/why/{id}")["reason"]["text"] == told["text"]
    finally:
        made.close()
