"""Who may only look (S55): each field of each answer is listed as shown or not, and what was planted where it must not be seen is
in no answer, error or stream of any route."""

import json
import os
import re
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.instance import until
from tests.web import walk
from tests.web.console import Console
from tests.web.test_stream import Heard

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
PLANTED = "kanari"
OPAQUE = ("params", "data", "retry")  # of reasons and events: numbers, codes and names; what else they could hold is planted
STRANGER = f"/home/{PLANTED}-stranger/bin/python"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A console in which everything that must not be seen has the same word in it."""
    root = tmp_path_factory.mktemp("r") / f"{PLANTED} place"
    space = root / "space"
    files = {
        "command/command_gpu.txt": f"1\necho {PLANTED}; sleep 600\n2\n",
        "command/command_gpu_1.txt": f"1\n{PLANTED} {PLANTED}\n",  # with errors
        "config/gpu_manage.yaml": f"gpu_left: 0\nwork_dir: {root}\nlog_dir: {space}/logs\nmystery: {PLANTED}\n",
        "config/control_setting.yaml": "port: 31000\n" + "".join(
            f"{key}: {PLANTED}\n" for key in ("log-level", "bind-address", "log-dir", "target-yaml-path", "secret")
        ),
        "logs/x": f"{PLANTED}\n",
    }  # fmt: skip
    for name, text in files.items():
        (space / name).parent.mkdir(parents=True, exist_ok=True)
        (space / name).write_text(text)
    made = Console(root / "c", gpus=None, workspace=space)
    scene = f"gpus: {{count: 4, total: 24GiB}}\nstrangers: [{{user: bob, gpu: 0, used: 18GiB, name: train, exe: {STRANGER}}}]\n"
    made.instance.up(made.instance.scenario(scene))
    yield made
    made.close()


def sweep(world, values, name=None):
    """Its jobs, which are called after their values unless they are given a name."""
    text = f"command: true {{key}}\nmatrix: {{key: [{values}]}}\n" + (f"job: {{name: '{name}'}}\n" if name else "")
    return world.instance.json("run", "--detach", world.instance.file(text, "sweep.yaml"))["ids"]


@pytest.fixture(scope="module")
def jobs(world):
    """Jobs in every state that has words of its own, the first of them ended."""
    add = world.instance.add
    failed = add("-g", "0", "-e", f"PASS={PLANTED}", "--", f"echo {PLANTED}; exit 3")
    unstarted = add("-g", "0", "--", f"/nowhere/{PLANTED} and more words than a name that is made of them can hold", PLANTED)
    traced = add("-g", "0", "--", f"python3 -c 'raise ValueError(\"{PLANTED}\")'")
    waiting = add("-g", "4", "-n", "wide", "--", PLANTED)
    behind = add("--hold", "--after-any", str(failed), "-q", "line", "--", PLANTED)
    running = add("-n", "plain", "--", f"{world.instance.work}/../{PLANTED} || sleep 600")
    world.instance.end(failed, unstarted, traced)
    world.instance.reach(running, "running")
    world.post("/api/v1/run", {"file": world.instance.file("jobs: [{name: plain, run: 'true'}]", "filed.yaml")})
    swept = sweep(world, f"{PLANTED}-1, /x/{PLANTED}-2.y")
    swept += sweep(world, f"{PLANTED}-3, /{PLANTED}-4/y", "of{key.stem}{key.dir}")
    world.instance.end(*swept)
    after = add("--hold", "--after-any", str(swept[0]), "-n", "next", "--", "true")
    world.post("/api/scheduler/single/start")
    until(lambda: [one["state"] for one in world.get("/api/scheduler/running")["schedulers"]] == ["running"], "the scheduler")
    world.post("/api/v1/limits", {"set": {"max_total_gpus": 4}})
    world.post("/api/log/bind?mode=single&queue_id=7&process_index=0&log_path=logs/x")
    world.post("/api/v1/cancel", {"ids": [behind]})
    yield [failed, unstarted, traced, waiting, behind, running, *swept, after]
    world.post("/api/scheduler/single/stop")


@pytest.fixture(scope="module")
def reader(world):
    return world.instance.ok("web", "--token", "--read-only").strip()


def told(world, token, ids):
    """(path, answer) of every route that can be got, in both languages where there is a job to be told of."""
    place = "log_path=logs/x&queue_id=1&process_index=0&mode=single&all=true&within=0"
    for method, path in walk.routes():
        if method == "GET" and path != walk.STREAM and not walk.of_page(path):
            for id in ids if "{id}" in path else ids[:1]:
                for lang in ("en", "zh"):
                    asked = walk.filled(path, id=id) + f"?{place}&lang={lang}"
                    asked += "&ids=1-999" if "/wait" in path else f"&config_index={int(lang == 'zh')}"
                    yield path, world.script("GET", asked, token=token)


def fields(value, at=""):
    """The paths of everything that an answer has, with what stands there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if re.fullmatch(r"-?\d+", key) else key
            if name in OPAQUE:
                yield f"{at}{name}", inner
            else:
                yield from fields(inner, f"{at}{name}.")
        if not value and at:
            yield at.rstrip("."), None
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, at)
        if not value:
            yield at.rstrip("."), None
    else:
        yield at.rstrip("."), value


def listed():
    """By path: (shown, not shown), as the page of the API has them; None, None: it is refused."""
    table = PAGE.read_text("utf-8").partition("## Who may only look")[2].partition("## ")[0]
    known = {}
    for paths, *cells in re.findall(r"^\| (`GET .*?) \| (.*?) \| (.*?) \|$", table, re.M):
        fields = (None, None) if "403" in cells[1] else tuple(set(re.findall(r"`([^`]+)`", cell)) for cell in cells)
        known |= dict.fromkeys(re.findall(r"`GET (\S+)`", paths), fields)
    return known


def nothing_planted(answers):
    for where, body in answers:
        at = body.find(PLANTED.encode())
        assert at < 0, (where, body[max(0, at - 300) : at + 100])


def test_s55_nothing_that_was_planted_is_in_any_answer_error_or_stream(world, jobs, reader):
    stream = Heard(world, "?after=0&gpus=1", Authorization=f"Bearer {reader}")
    last = world.instance.call("hello")["seq"]
    heard = stream.until(lambda got: got[0] == "event" and got[2] >= last)
    heard += stream.until(lambda got: got[0] == "gpus")
    stream.close()
    answers = [(path, answer.body) for path, answer in told(world, reader, jobs)]
    assert len(answers) > 60
    nothing_planted([*answers, ("the stream", json.dumps(heard).encode())])


def test_s55_nor_while_the_engine_does_not_answer_or_nothing_can_be_claimed(world, jobs, reader):
    """What is then said names files: for the owner, who has to do something about it."""
    stream = Heard(world, "?gpus=1", Authorization=f"Bearer {reader}")
    stream.until(lambda got: got[0] == "engine")
    engine = world.instance.engine
    os.kill(engine, signal.SIGSTOP)
    try:
        paths = ("/api/gpu", "/api/v1/gpus", f"/api/v1/why/{jobs[3]}")
        calls = [partial(world.script, "GET", path, token=reader) for path in paths]
        *answers, to_owner = world.at_once([*calls, partial(world.script, "GET", "/api/v1/gpus")])
        silent = [(path, answer.body) for path, answer in zip(paths, answers, strict=True)]
        assert PLANTED in to_owner.json["detail"]
        heard = stream.until(lambda got: got[0] == "engine" and got[1]["running"] is None)
    finally:
        os.kill(engine, signal.SIGCONT)
    leases = world.instance.home / "leases"
    leases.rename(world.instance.home / "away")
    try:
        leases.write_text("")
        world.instance.add("-n", "claiming", "--", "true")
        owner = until(lambda: world.get("/api/v1/status")["hold"], "that it says so")
        assert PLANTED in owner
        heard += stream.until(lambda got: got[0] == "engine" and got[1]["hold"])
        paths = ("/api/v1/status", "/api/v1/ps", f"/api/v1/why/{jobs[3]}", f"/api/v1/show/{jobs[3]}")
        held = [(path, world.script("GET", path, token=reader).body) for path in paths]
    finally:
        leases.unlink()
        (world.instance.home / "away").rename(leases)
        stream.close()
    nothing_planted([*silent, *held, ("the stream", json.dumps(heard).encode())])


def test_s55_each_field_is_listed_as_shown_or_not_and_what_is_not_is_empty(world, jobs, reader):
    known, wrong = listed(), []
    for path, answer in told(world, reader, jobs):
        shown, hidden = known.get(path, (set(), set()))
        if path.endswith("openapi.json") or answer.status in (400, 404, 422):
            continue
        if (shown is None) != (answer.status == 403):
            wrong.append(f"{path}: {answer.status}")
        elif "json" not in answer.heads["content-type"]:
            wrong += [f"{path} is not listed"] if path not in known else []
        elif answer.status == 200:
            for field, value in fields(answer.json):
                if field not in shown | hidden:
                    wrong.append(f"{path}: {field} is not listed: may who only looks see it?")
                elif field in hidden and value not in (None, "", 0, "…", [], {}):
                    wrong.append(f"{path}: {field} is shown: {value!r}")
    assert not wrong, "\n".join(sorted(set(wrong)))
