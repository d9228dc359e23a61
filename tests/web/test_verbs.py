"""`/api/v1`: one route per verb, with the values of the command line, and nothing but for its owner."""

import gzip
import itertools
import json
import os
import re
import signal

import pytest

from jostle.cli.verbs import VERBS
from tests.e2e.instance import alive, until
from tests.web import walk
from tests.web.test_stream import Heard, ended

WITHOUT = {"up", "down", "web", "demo", "burn", "completion"}


def test_each_verb_of_the_command_line_has_a_route():
    named = {path.split("/")[3] for _, path in walk.routes() if path.startswith("/api/v1/")}
    assert set(VERBS) - WITHOUT <= named


def test_s55_who_may_only_read_gets_numbers_codes_and_base_names_for_commands_and_paths(make_console, tmp_path):
    space = tmp_path / "hidden-place" / "space"
    (space / "command").mkdir(parents=True)
    (space / "command" / "command_gpu.txt").write_text("1\necho hidden-task\n2\n")
    console = make_console(workspace=space)
    first = console.instance.add("-g", "0", "--", "/nowhere/hidden-program", "hidden-argument")
    unnamed = console.instance.add("--hold", "--after-any", str(first), "--", "hidden-command")
    console.instance.end(first)
    console.post("/api/v1/run", {"file": console.instance.file("jobs: [{name: plain, run: 'true'}]", "sweep.yaml")})
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    paths = [path for method, path in walk.routes() if method == "GET" and path != walk.STREAM and not walk.of_page(path)]
    told = {
        path: console.script("GET", path, token=reader)
        for id in (first, unnamed)
        for path in (walk.filled(one, id=id) + f"?all=true&ids={first}" for one in paths)
    }
    stream = Heard(console, "?after=0", Authorization=f"Bearer {reader}")
    heard = json.dumps(stream.until(ended(first)))
    stream.close()
    for path, body in [*((path, one.body) for path, one in told.items()), ("the stream", heard.encode())]:
        for secret in ("hidden", str(space.parent), str(console.instance.home)):
            assert secret.encode() not in body, (path, secret, body)
    rows = told[f"/api/v1/ps?all=true&ids={first}"].json["jobs"]
    assert {row["name"] for row in rows} == {f"job {first}", f"job {unnamed}", "plain"}
    batches = told[f"/api/v1/batches?all=true&ids={first}"].json["batches"]
    assert ("sweep", "sweep.yaml") in {(one["name"], one["file"]) for one in batches}
    why = told[f"/api/v1/why/{first}?all=true&ids={first}"].json["reason"]
    assert why["code"] == "start_failed" and why["params"]["error"] == "…" and "…" in why["text"]
    (known,) = told[f"/api/v1/workspaces?all=true&ids={first}"].json["workspaces"]
    listed = console.script("GET", f"/api/commands/single/list?workspace={known['path']}", token=reader)
    assert known["path"] == "space" and listed.json["configs"][0]["file_name"] == "command_gpu.txt"


def test_who_comes_when_the_driver_is_lost_or_no_engine_runs_is_told_of_the_cards_as_they_were_known_last(make_console):
    two = "gpus: {count: 2, total: 24GiB}\n"
    console = make_console(gpus=None)
    assert console.get("/api/v1/gpus")["gpus"] == []  # nobody has ever read one
    console.instance.up(console.instance.scenario(two))
    console.instance.see_cards()
    console.instance.scenario(two + "mismatch: [{from: 0}]")
    until(lambda: console.instance.call("hello")["hold"] == "driver_mismatch", "the driver is lost")

    def unread(seen):
        told = [(gpu["index"], gpu["state"], gpu["available_mib"]) for gpu in seen["gpus"]]
        assert told == [(0, "unknown", 0), (1, "unknown", 0)]
        assert all(gpu["refusal"]["text"] for gpu in seen["gpus"]) and seen["read_at"] and seen["error"]

    unread(console.get("/api/v1/gpus"))
    stream = Heard(console, "?gpus=0.5")
    unread(stream.until(lambda got: got[0] == "gpus")[-1][1])
    stream.close()
    old = console.get("/api/gpu")  # as the page of the source knows it: none, and why
    assert (old["available"], old["gpu_count"], old["gpus"]) == (False, 0, []) and old["error"]
    console.instance.kill_engine()
    until(lambda: not console.get("/api/v1/gpus")["engine"], "no engine")
    unread(console.get("/api/v1/gpus"))
    told = console.script("GET", "/api/v1/gpus", **{"Accept-Language": "zh"}).json
    assert told["error"] == "引擎没有运行：用 `jostle up` 启动"


def test_the_history_of_the_cards_names_our_jobs_and_a_reader_learns_no_command_from_it(console):
    named, unnamed = console.instance.add("-n", "plain", "--", "true"), console.instance.add("--", "echo", "hidden-word")
    console.instance.end(named, unnamed)
    whole = console.get("/api/v1/history?since=1h")
    past = console.instance.json("gpus", "--history", "1h")
    assert whole.keys() == past.keys() and [card["uuid"] for card in whole["gpus"]] == [card["uuid"] for card in past["gpus"]]

    def names(told):
        return {span["job"]: span["name"] for card in told["gpus"] for span in card["spans"]}

    assert names(whole)[named] == "plain" and "hidden-word" in names(whole)[unnamed]
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    told = console.script("GET", "/api/v1/history?since=1h", token=reader)
    assert names(told.json)[named] == "plain" and names(told.json)[unnamed] == f"job {unnamed}"
    assert b"hidden-word" not in told.body
    (run,) = console.script("GET", f"/api/v1/show/{unnamed}", token=reader).json["runs"]
    assert run["command_key"] is None, "nor what it ran, values apart"
    for wrong in ("soon", "1s", "90d"):
        assert console.script("GET", f"/api/v1/history?since={wrong}").status == 422


def test_it_answers_what_the_command_line_answers(console):
    id = console.instance.add("-q", "same", "--hold", "--", "true")
    assert console.get(f"/api/v1/why/{id}") == console.instance.json("why", str(id))
    assert console.get(f"/api/v1/show/{id}") == console.instance.json("show", str(id))
    (row,) = [row for row in console.get("/api/v1/ps")["jobs"] if row["id"] == id]
    assert row in console.instance.json("ps")["jobs"]
    assert console.get(f"/api/v1/ps?id={id}")["jobs"] == [row]
    console.instance.know_cards()
    shown = console.get("/api/v1/gpus")
    assert {**shown, "age_s": 0} == {**console.instance.json("gpus"), "age_s": 0}
    zh = console.script("GET", f"/api/v1/why/{id}?lang=zh").json
    assert zh["reason"]["code"] == "held" and zh["reason"]["text"] != row["reason"]["text"]
    console.post("/api/v1/cancel", {"ids": [id]})


def test_a_job_is_added_held_changed_moved_released_cancelled_and_tried_again(console):
    new = {"run": "sleep 600", "workdir": str(console.instance.work), "queue": "story", "name": "first", "hold": True}
    one = console.post("/api/v1/add", new)["id"]
    two = console.post("/api/v1/add", {**new, "name": "second"})["id"]
    assert console.post("/api/v1/set", {"ids": [one, two], "values": {"priority": 7, "memory": "2GiB"}})["done"] == [one, two]
    assert [(row["priority"], row["memory_mib"]) for row in console.instance.jobs([one, two]).values()] == [(7, 2048)] * 2
    assert console.post("/api/v1/move", {"id": two, "to": {"before": one}})["done"] == [two]
    assert console.instance.job(two)["place"] < console.instance.job(one)["place"]
    assert console.post("/api/v1/unhold", {"ids": f"{one}-{two}"})["done"] == [one, two]
    console.instance.reach(two, "running")
    assert console.post("/api/v1/hold", {"ids": [one, two]})["done"] == [one]
    assert console.post("/api/v1/cancel", {"ids": [one, two], "now": True})["done"] == [one, two]
    assert console.instance.end(one, two) == ["cancelled", "cancelled"]
    again = console.post("/api/v1/retry", {"ids": [one]})["new"]
    assert list(again) == [str(one)]
    assert console.get(f"/api/v1/wait?ids={one},{two}&within=0") == {
        "schema": 1, "over": True, "ok": False, "jobs": {str(one): "cancelled", str(two): "cancelled"},
    }  # fmt: skip
    console.post("/api/v1/cancel", {"ids": [again[str(one)]], "now": True})
    console.instance.end(again[str(one)])


def test_jobs_are_called_by_name_where_something_is_done_and_by_number_only_where_one_looks(console):
    new = {"run": "true", "workdir": str(console.instance.work), "queue": "called", "hold": True}
    one, two = (console.post("/api/v1/add", {**new, "name": name})["id"] for name in ("by name", "x,y"))
    assert console.post("/api/v1/set", {"ids": ["by name", two], "values": {"priority": 7}})["done"] == [one, two]
    assert console.post("/api/v1/hold", {"ids": "queue:called"})["done"] == [one, two]
    assert console.script("POST", "/api/v1/cancel", {"ids": "by nane"}).status == 404
    assert console.script("POST", "/api/v1/retry", {"ids": "by name"}).status == 404
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    tried = [console.script("GET", f"/api/v1/wait?ids={word}&within=0", token=reader) for word in ("name:x,y", "name:z")]
    assert [(answer.status, b"did you mean" in answer.body) for answer in tried] == [(422, False)] * 2
    assert console.post("/api/v1/cancel", {"ids": ["name:x,y", "by name"]})["done"] == [one, two]


def test_where_no_job_is_meant_nothing_is_done_and_nothing_refused(console):
    """As docs/api.md has it, and as the command line, where that is no failure."""
    id = console.instance.add("--hold", "--", "true")
    console.post("/api/v1/cancel", {"ids": "all"})  # and what other tests have left held
    for ids in ([], "all", ["all"]):
        assert console.post("/api/v1/unhold", {"ids": ids}) == {"done": [], "refused": [], "new": {}}
    assert console.script("POST", "/api/v1/unhold", {"ids": [id]}).status == 409


def test_every_change_leaves_who_asked_for_it(console):
    page = console.log_in()
    new = {"run": "true", "workdir": str(console.instance.work), "hold": True, "name": "audited"}
    id = console.ask("POST", "/api/v1/add", new, heads=page).json["id"]
    console.post("/api/v1/cancel", {"ids": [id]})
    console.post("/api/v1/gpus", {"exclude": [3]})
    console.post("/api/v1/gpus", {"include": [3]})
    asked = [event["data"] for event in console.instance.events("asked")][-4:]
    done = [(one["did"], one["what"]) for one in asked]
    assert done == [("add", "audited"), ("cancel", str(id)), ("exclude", "3"), ("include", "3")]
    assert asked[0]["who"].startswith("web, session ") and asked[1]["who"] == "web, all token"


def test_what_is_refused_changes_nothing_and_leaves_no_trace_of_a_change(console):
    before = len(console.instance.events("asked"))
    assert console.script("POST", "/api/v1/cancel", {"ids": [10**9]}).status == 404
    assert len(console.instance.events("asked")) == before


def test_once_takes_a_job_once(console):
    new = {"run": "true", "workdir": str(console.instance.work), "once": "this-one", "hold": True}
    ids = {console.post("/api/v1/add", new)["id"] for _ in range(3)}
    assert len(ids) == 1
    console.post("/api/v1/cancel", {"ids": list(ids)})


def test_a_dry_run_queues_nothing_and_tells_where_it_would_start(console):
    console.instance.know_cards()
    before = console.instance.newest()
    would = console.post("/api/v1/add?dry_run=true", {"run": "true", "workdir": "/", "gpus": 1})
    assert would["starts_now"] is True and would["never"] == [] and would["reason"] is None
    (index,) = would["gpus"]
    assert would["text"] == f"starts now on GPU {index}" and would["holds"] == "You would then hold 1 card."
    assert next(card for card in would["cards"] if card["index"] == index)["refusal"] is None
    never = console.post("/api/v1/add?dry_run=true", {"run": "true", "workdir": "/", "memory": "900GiB"})
    assert len(never["never"]) == 1 and never["starts_now"] is False and never["reason"]["code"] == "impossible"
    code, out, _ = console.instance.run("add", "--dry-run", "-g", "1", "--", "true")
    assert (code, out.splitlines()[0]) == (0, f"starts now on GPU {index}")
    assert console.instance.newest() == before


WRONG_JOBS = [
    {}, {"run": ""}, {"run": "true", "name": "a\nb"}, {"run": "true", "name": "x" * 10_000}, {"run": "true", "queue": "a\rb"},
    {"run": "true", "tags": ["a\0"]}, {"run": "true", "gpus": -1}, {"run": "true", "memory": "NaN"},
    {"run": "true", "gpus": "1e309"},
    {"run": "true", "env": {"A=B": "c"}}, {"run": "true", "env": {"A": "c\0"}}, {"run": "true", "workdir": "relative"},
    {"run": "true", "workdir": "/nowhere"}, {"run": "true", "workdir": 7}, {"run": "true", "unknown": 1},
    {"run": "true", "once": 3}, {"run": "true", "priority": True}, {"run": "true", "after": "nobody"},
]  # fmt: skip


@pytest.mark.parametrize("job", WRONG_JOBS, ids=range(len(WRONG_JOBS)))
def test_s23_s32_s33_a_job_that_makes_no_sense_is_refused_with_words(console, job):
    told = console.script("POST", "/api/v1/add", {"workdir": "/", **job})
    assert told.status in (404, 422) and told.json["detail"]


NAMES = ["<script>alert(1)</script>", "../x", "-rf", "💥 مرحبا", "' or 1=1 --", "{__class__}", "%s $(x)"]


@pytest.mark.parametrize("name", NAMES)
def test_s23_s29_a_name_is_a_name_and_comes_back_as_it_was(console, name):
    id = console.post("/api/v1/add", {"run": "true", "workdir": "/", "name": name, "queue": name, "hold": True})["id"]
    (row,) = console.get(f"/api/v1/ps?id={id}")["jobs"]
    assert (row["name"], row["queue"]) == (name, name)
    console.post("/api/v1/cancel", {"ids": [id]})


QUERIES = [
    "ps?state=id;drop", "ps?state=%27%20or%201=1", "ps?batch=1;x", "ps?batch=-1", "ps?id=%27", "ps?id=-1", "logs/1?lines=-1",
    "logs/1?from=-5", "logs/1?limit=99999999999", "logs/1?run=0", "stream?after=-1", "stream?gpus=inf", "wait?ids=x", "wait",
    "logs/1e3", "show/0x10", "why/NaN", "results?metric=x%3D(", "ps?batch=99999999999999999999",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_s21_s24_s26_a_query_that_is_none_is_refused(console, query):
    assert console.script("GET", f"/api/v1/{query}").status in (404, 422)


@pytest.mark.parametrize("start", [12, 10**14, 2**62 - 1])
def test_s21_a_place_behind_the_end_of_a_log_has_nothing(console, start):
    id = console.instance.add("-g", "0", "--", "echo printed")
    console.instance.end(id)
    told = console.get(f"/api/v1/logs/{id}?from={start}")
    assert (told["text"], told["from"], told["to"], told["size"], told["over"]) == ("", start, start, 8, True)
    stream = Heard(console, f"?log={id}&from={start}")
    assert stream.until(lambda got: got[0] == "log")[-1][1]["text"] == ""
    stream.close()


def test_a_flag_of_a_query_needs_no_value_and_means_true(console):
    def ids(query):
        return [job["id"] for job in console.get(f"/api/v1/ps?{query}")["jobs"]]

    before = ids("all")
    assert "starts_now" in console.post("/api/v1/add?dry_run", {"run": "true", "workdir": "/tmp"})
    assert ids("all") == ids("all=true") == before and ids("short") == ids("short=true")


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("GET", "ps?short=perhaps", None, "short: expected true or false"),
        ("GET", "ps?batch=x", None, "batch: expected a whole number"),
        ("GET", "ps?batch=0", None, "batch: expected 1 or more"),
        ("GET", "logs/1?lines=100001", None, "lines: expected 100000 at the most"),
        ("GET", "wait?ids=1&within=soon", None, "within: expected a number"),
        ("GET", "wait", None, "ids: it is needed"),
        ("POST", "compete/stop", {"pid": "7"}, "pid: expected a whole number"),
        ("POST", "compete/stop", {"pid": 7, "hard": 1}, "hard: there is no such key"),
        ("POST", "validate", {"file": ""}, "file: expected a text"),
        ("POST", "hold", {"ids": [1.5]}, "ids.0: expected a whole number; ids.0: expected a text; ids: expected a text"),
        ("POST", "validate", [], "the body: expected a mapping"),
    ],
)
def test_a_query_or_body_that_is_wrong_is_told_what_is_expected(console, method, path, body, words):
    told = console.script(method, f"/api/v1/{path}", body)
    assert (told.status, told.json["detail"]) == (422, words)
    chinese = console.script(method, f"/api/v1/{path}", body, **{"Accept-Language": "zh-CN"}).json["detail"]
    assert "expected" not in chinese and len(chinese.split("; ")) == len(words.split("; "))
    assert all(re.search(r"[\u4e00-\u9fff]", part) for part in chinese.split("; "))


def test_a_job_that_is_asked_for_wrongly_is_told_so_in_chinese(console):
    for body in ({}, {"workdir": "/nowhere at all"}, {"workdir": "/", "hold": 3}, {"workdir": "/", "run": "x", "gpus": "many"},
                 {"workdir": "/", "run": "x", "rnu": 1}):  # fmt: skip
        told = console.script("POST", "/api/v1/add", body, **{"Accept-Language": "zh-CN"})
        assert told.status == 422 and re.search(r"[\u4e00-\u9fff]", told.json["detail"]), told


def test_a_job_that_is_asked_for_wrongly_is_in_no_file(console):
    for dry in ("", "?dry_run"):
        told = console.script("POST", f"/api/v1/add{dry}", {"workdir": "/", "run": "true", "gpu": 1, "priority": "x"})
        wrong = 'unknown key "gpu"; expected gpus?\npriority: "x" is not understood; expected a whole number'
        assert told.status == 422 and told.json["code"] == "invalid" and "flaws" not in told.json
        assert told.json["detail"].startswith(wrong)


@pytest.mark.parametrize("id", [10**9, 2**63, -1, 1.5, "1e3", "c0ffee-1234", "1;drop", True, None, [], {}])
@pytest.mark.parametrize("verb", ["cancel", "hold", "retry"])
def test_s26_a_job_that_is_none_is_refused(console, verb, id):
    assert console.script("POST", f"/api/v1/{verb}", {"ids": [id]}).status in (404, 422)


def test_s28_a_job_that_runs_or_has_ended_is_not_changed(console):
    id = console.instance.add("--", "true")
    console.instance.end(id)
    for verb, more in (("set", {"values": {"priority": 1}}), ("hold", {}), ("cancel", {})):
        told = console.script("POST", f"/api/v1/{verb}", {"ids": [id], **more})
        assert told.status == 409 and told.json["refused"][0]["id"] == id
    (why,) = told.json["refused"]
    assert why == {"id": id, "code": "ended_already", "params": {"job": id, "state": "succeeded"}, "text": told.json["detail"]}
    assert why["text"] == f"job {id} is succeeded already"
    zh = console.script("POST", "/api/v1/cancel?lang=zh", {"ids": [id]}).json
    assert zh["refused"][0]["code"] == why["code"] and zh["detail"] == f"任务 {id} 早已结束（成功）"


def test_long_answers_are_compressed_for_who_takes_that_and_short_ones_and_logins_never(console):
    id = console.instance.add("--", "seq 1 5000")
    console.instance.end(id)
    for path, long in ((f"/api/v1/logs/{id}?lines=5000", True), (f"/api/v1/logs/{id}?lines=3", False)):
        plain = console.script("GET", path)
        packed = console.script("GET", path, **{"Accept-Encoding": "gzip"})
        assert "content-encoding" not in plain.heads
        assert ("content-encoding" in packed.heads, len(packed.body) < len(plain.body)) == (long, long)
        assert (gzip.decompress(packed.body) if long else packed.body) == plain.body
    told = console.ask("POST", "/api/auth/login", {"password": console.token}, heads={"Accept-Encoding": "gzip"})
    assert told.json["success"] and "content-encoding" not in told.heads


def test_a_log_is_read_from_its_end_and_from_any_place_on(console):
    id = console.instance.add("--", "printf 'ä%.0s' $(seq 1000); echo; seq 1 5000; echo end")
    console.instance.end(id)
    last = console.get(f"/api/v1/logs/{id}?lines=2")
    assert last["text"] == "5000\nend\n" and last["over"] is True and last["to"] == last["size"]
    at, text = 0, ""
    for _ in itertools.count():
        part = console.get(f"/api/v1/logs/{id}?from={at}&limit=777")
        text, at = text + part["text"], part["to"]
        if part["over"]:
            break
    assert text == console.instance.output(id)
    assert console.script("GET", f"/api/v1/logs/{id}?from=99999999").json["text"] == ""


LOGS = {
    "symlink": "ln -s /etc/passwd", "hard link": "ln secret", "pipe": "mkfifo", "directory": "mkdir", "device": "ln -s /dev/zero",
}  # fmt: skip


@pytest.mark.parametrize("what", LOGS)
def test_s20_s52_what_a_job_puts_in_the_place_of_its_log_is_not_read(console, what):
    work = console.instance.work
    (work / "secret").write_text("the secret\n")
    log = work / f"replaced-{what.replace(' ', '-')}.log"
    id = console.instance.add("--log", str(log), "--", f"rm {log}; {LOGS[what]} {log}")
    console.instance.end(id)
    told = console.script("GET", f"/api/v1/logs/{id}")
    assert told.status == 409 and b"secret\n" not in told.body and b"root:" not in told.body
    log.rmdir() if what == "directory" else log.unlink()


def test_s49_a_download_is_good_once_and_for_its_session_only(console):
    id = console.instance.add("-n", 'a/b"c', "--", "printf '<script>x</script>\\033[31m'")
    console.instance.end(id)
    mine, other = console.log_in(), console.log_in()
    cookie = {"Cookie": mine["Cookie"]}
    url = console.ask("POST", f"/api/v1/logs/{id}/ticket", heads=mine).json["url"]
    assert console.ask("GET", url).status == 401
    assert console.ask("GET", url, heads={"Cookie": other["Cookie"]}).status == 404  # and the ticket is gone
    assert console.ask("GET", url, heads=cookie).status == 404
    url = console.ask("POST", f"/api/v1/logs/{id}/ticket", heads=mine).json["url"]
    told = console.ask("GET", url, heads=cookie)
    assert told.body == b"<script>x</script>\x1b[31m" and told.heads["content-type"].startswith("text/plain")
    assert told.heads["x-content-type-options"] == "nosniff"
    assert told.heads["content-disposition"] == f'attachment; filename="jostle-{id}.1.log"'
    assert console.ask("GET", url, heads=cookie).status == 404
    assert console.ask("GET", f"/api/v1/logs/{id}", heads=cookie).status == 403


def test_a_file_is_validated_tried_and_run(console):
    path = console.instance.file("jobs:\n- {name: one, run: 'true'}\n- {name: two, run: 'true'}\n", "filed.yaml")
    assert console.post("/api/v1/validate", {"file": path})["jobs"] == 2
    assert [job["name"] for job in console.post("/api/v1/run?dry_run=true", {"file": path})["jobs"]] == ["one", "two"]
    (batch,) = console.post("/api/v1/run", {"file": path})["batches"]
    assert console.instance.end(*batch["ids"]) == ["succeeded", "succeeded"]
    wrong = console.instance.file("jobs:\n- {name: one, run: 'true', gpus: many}\n", "wrong.yaml")
    told = console.post("/api/v1/validate", {"file": wrong})
    assert told["ok"] is False and told["errors"][0]["line"] == 2
    assert console.script("POST", "/api/v1/run", {"file": wrong}).status == 422
    assert console.script("POST", "/api/v1/run", {"file": "--help"}).status == 422
    assert console.script("POST", "/api/v1/validate", {"file": "/nowhere.yaml"}).json["ok"] is False


def test_the_console_survives_the_engine_and_starts_another_when_one_is_needed(console):
    first = console.instance.add("--", "true")
    console.instance.end(first)
    console.instance.kill_engine()
    assert console.get(f"/api/v1/ps?id={first}")["jobs"][0]["state"] == "succeeded"
    assert console.get("/api/v1/status")["running"] is False
    assert console.get("/api/v1/gpus")["engine"] is False
    id = console.post("/api/v1/add", {"run": "true", "workdir": "/"})["id"]
    assert console.instance.end(id) == ["succeeded"]
    assert console.get("/api/v1/status")["running"] is True


def test_f49_the_engine_does_not_notice_the_end_of_the_console(console):
    engine, pid = console.instance.engine, console.pid
    id = console.instance.add("--", "sleep 600")
    console.instance.reach(id, "running")
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the end of the console")
    assert console.instance.engine == engine and console.instance.job(id)["state"] == "running"
    assert console.instance.ok("web", "--list") == ""
    console.open()
    assert console.get(f"/api/v1/ps?id={id}")["jobs"][0]["state"] == "running"
    console.post("/api/v1/cancel", {"ids": [id], "now": True})
    console.instance.end(id)


@pytest.mark.parametrize("asked", [
    ("GET", "logs/1?from=9223372036854775807"), ("GET", "stream?log=1&from=9223372036854775808"),
    ("POST", "run?dry_run=true", {"file": "/x", "suites": ["\0"]}), ("POST", "clean", {"older_than": "\0"}),
    ("POST", "import", {"file": "/x", "mode": "\0"}),
])  # fmt: skip
def test_s21_s31_a_number_or_text_that_no_system_takes_is_refused(console, asked):
    console.instance.end(console.instance.add("--", "true"))
    method, path, *body = asked
    assert console.script(method, f"/api/v1/{path}", *body).status == 422
