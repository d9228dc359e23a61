"""C11: the notifier beside a real engine: it comes with it, dies and comes back, tells what happened, and ends when it should.
S43: its secrets are nowhere to be found."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from jostle import notifier, proc
from jostle.client import attempt
from tests.e2e.instance import Instance, alive, modes, remove, until
from tests.notify.receivers import Letters, Posts, free_port, http_server, mail_server

SECRET = "k3y-0f-th3-h00k-7391"
TOKEN = "T0KEN-in-the-address-5521"


@pytest.fixture
def instance(tmp_path):
    made = Instance(tmp_path / "i")
    made.home.mkdir(mode=0o700)
    yield made
    until(made._is_down, "the end of the engine")
    notifier.stop(str(made.home))  # one that waits for somebody who is not there would wait on
    made.close()


def configure(instance, channels, **more):
    said = {"gather": "0s", "allow_private": ["localhost"], **more, "channels": channels}
    fresh = instance.home / "config.new"
    fresh.write_text(json.dumps({"notify": said}))
    os.replace(fresh, instance.home / "config.yaml")


def hook(port, *events, path="/hook", **more):
    return {"kind": "webhook", "url": f"http://localhost:{port}{path}", "events": list(events or ("failed", "finished")), **more}


def letterbox(port, *events, **more):
    box = {"host": "localhost", "port": port, "security": "none", "from": "j@lab.example", "to": "me@lab.example"}
    return {"kind": "mail", **box, "events": list(events), **more}


def items(posts, about=None):
    return [item for body in posts.bodies() for item in body["data"]["items"] if about in (None, item["about"])]


def workers(instance):
    """Guard and worker, in this order."""
    guard = notifier.facts(str(instance.home)).get("pid")
    if not guard or not alive(guard):
        return []
    try:
        tasks = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
    except OSError:
        return []  # it has just gone
    return [guard, *filter(alive, map(int, tasks))]


def running(instance):
    """When it is at work: a worker that comes before the engine has made its store ends, and another is started."""
    log = instance.home / "notify" / "notify.log"
    until(lambda: log.exists() and f"of what happens in {instance.home}" in log.read_text(), "it says whom it tells")
    return until(lambda: (found := workers(instance)) and len(found) == 2 and found, "the notifier and its worker")


def test_c11_it_comes_with_the_engine_and_tells_by_mail_and_webhook_what_became_of_jobs_and_batches(instance):
    letters = Letters()
    with mail_server(letters) as smtp, http_server(posts := Posts()) as port:
        mail = letterbox(smtp, "failed", "batch")
        configure(instance, {"me": mail, "hook": hook(port, "failed", "finished", "batch")})
        instance.up("sim:4x24")
        jobs = ["{name: a_x_seed1, run: 'echo accuracy: 0.91'}", "{name: a_x_seed2, run: 'echo accuracy: 0.93'}"]
        instance.ok("run", instance.file("jobs:\n- " + "\n- ".join(jobs)))
        until(lambda: items(posts, "batch"), "the end of the batch arrives")
        code, _, _ = instance.run("run", instance.file("jobs:\n- {name: alone, run: 'exit 3'}\n", "alone.yaml"))
        assert code == 1
        until(lambda: items(posts, "failed"), "the failure arrives")
        until(lambda: len(letters.taken) >= 2, "the letters arrive")
    (batch,) = items(posts, "batch")
    assert (batch["batch"], batch["counts"], batch["failed"]) == (1, {"succeeded": 2}, [])
    assert sorted(item["name"] for item in items(posts, "finished")) == ["a_x_seed1", "a_x_seed2"]
    (failed,) = items(posts, "failed")  # and a batch of one job is told as the job
    assert (failed["name"], failed["exit_code"], failed["reason"]["code"]) == ("alone", 3, "exit_code")
    table = next(letter.get_content() for letter in letters.taken if "batch 1" in letter["Subject"])
    assert re.search(r"0\.92 ± 0\.01 +2 +0\.91 0\.93", table), table
    assert len({letter["Message-ID"] for letter in letters.taken}) == len(letters.taken)


def test_c11_a_dead_worker_is_started_again_and_what_happened_meanwhile_is_told(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        guard, worker = running(instance)
        os.kill(worker, signal.SIGKILL)
        job = instance.submit({"name": "while it was away"})[0]
        instance.end(job)
        until(lambda: items(posts), "it is told")
        assert workers(instance)[0] == guard and workers(instance)[1] != worker
    assert [item["job"] for item in items(posts)] == [job]


def test_c11_whoever_finds_it_dead_starts_it_again(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        for pid in running(instance):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not notifier.runs(str(instance.home)), "both are gone")
        instance.end(*instance.submit({"name": "x"}))  # its client finds no notifier
        until(lambda: items(posts), "it is told")
    assert [item["name"] for item in items(posts)] == ["x"] and len(workers(instance)) == 2


def test_c11_a_worker_whose_guard_was_killed_goes_on_and_can_be_ended(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        guard, worker = running(instance)
        os.kill(guard, signal.SIGKILL)
        until(lambda: notifier.facts(str(instance.home)).get("pid") == worker, "the worker tells that it is the one")
        instance.end(*instance.submit({"name": "x"}))
        until(lambda: items(posts), "it is told")
        instance.ok("down")
        until(lambda: not alive(worker), "it ends")


def test_c11_an_outage_is_over_when_somebody_listens_again_whoever_died_meanwhile(instance):
    port = free_port()
    configure(instance, {"hook": hook(port)})
    instance.up("sim:4x24")
    job = instance.submit({"name": "in the dark"})[0]
    instance.end(job)
    until(lambda: instance.json("notify")["channels"][0]["waiting"] == 1, "it waits")
    (channel,) = instance.json("notify")["channels"]
    assert channel["error"]["code"] == "unreachable" and channel["sent"] == 0
    for _ in range(3):
        _, worker = running(instance)
        os.kill(worker, signal.SIGKILL)
        until(lambda worker=worker: not alive(worker), "it is gone")
    kept = json.loads((instance.home / "notify" / "hook.json").read_text())
    for pid in running(instance):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not notifier.runs(str(instance.home)), "all are gone")
    with http_server(posts := Posts(), port=port):
        attempt(str(instance.home)).close()
        until(lambda: posts.requests, "it arrives")
        until(lambda: instance.json("notify")["channels"][0]["waiting"] == 0, "and is forgotten")
    assert [item["job"] for item in items(posts)] == [job]
    assert posts.requests[0][1]["webhook-id"] == kept["queue"][0]["id"]


def test_c11_changed_settings_are_taken_wrong_ones_are_not_and_without_channels_it_ends(instance):
    with http_server(one := Posts()) as first, http_server(two := Posts()) as second:
        configure(instance, {"one": hook(first)})
        instance.up("sim:4x24")
        guard, worker = running(instance)
        configure(instance, {"two": hook(second)})
        until(lambda: len(found := workers(instance)) == 2 and found[1] != worker, "it begins anew")
        until(lambda: (instance.home / "notify" / "two.json").exists(), "with the new channel")
        instance.end(*instance.submit({"name": "x"}))
        until(lambda: items(two), "it is told there")
        log = instance.home / "notify" / "notify.log"
        (instance.home / "config.yaml").write_text("notify:\n  chanels: {}\n")
        until(lambda: "is not taken" in log.read_text(), "it is told that they are wrong")
        instance.end(*instance.submit({"name": "y"}))
        until(lambda: len(items(two)) == 2, "the ones before stay")
        (instance.home / "config.yaml").write_text("grace: 3s\n")
        until(lambda: not alive(guard), "it ends")
        assert not notifier.wanted(str(instance.home)) and one.requests == []


def test_c11_it_ends_when_the_engine_is_gone_and_all_is_told_and_when_the_home_is(instance, tmp_path):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        guard, _ = running(instance)
        instance.end(*instance.submit({"name": "x"}))
        instance.kill_engine()
        until(lambda: not alive(guard), "it ends")
        assert len(items(posts)) == 1
        instance.up("sim:4x24")
        guard, _ = running(instance)
    remove(instance.home)
    until(lambda: not alive(guard), "its home is gone")


def test_c11_another_database_in_the_place_of_the_one_that_is_read_is_read(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        running(instance)
        instance.end(*instance.submit({"name": "before"}))
        until(lambda: len(items(posts)) == 1, "it is told")
        instance.kill_engine()
        database = instance.home / "jostle.db"
        for path in instance.home.glob("jostle.db-*"):
            path.unlink(missing_ok=True)
        database.with_suffix(".copy").write_bytes(database.read_bytes())
        os.replace(database.with_suffix(".copy"), database)
        database.chmod(0o600)
        instance.up("sim:4x24")
        instance.end(*instance.submit({"name": "after"}))
        until(lambda: len(items(posts)) >= 2, "what happens in the other one is told")
    assert items(posts)[-1]["name"] == "after"


def test_c11_down_ends_it_at_once_and_up_sends_what_waits(instance):
    port = free_port()
    configure(instance, {"hook": hook(port)})
    instance.up("sim:4x24")
    guard, _ = running(instance)
    instance.end(*instance.submit({"name": "x"}))
    until(lambda: instance.json("notify")["channels"][0]["waiting"] == 1, "it waits")
    instance.ok("down")
    until(lambda: not alive(guard), "it ends")
    assert "no notifier runs" in instance.run("notify")[2]
    with http_server(posts := Posts(), port=port):
        instance.ok("up", "--gpus", "sim:4x24")
        until(lambda: posts.requests, "it arrives")


def test_c11_one_runs_however_many_start_it(instance):
    with http_server(Posts()) as port:
        configure(instance, {"hook": hook(port)})
        instance.up("sim:4x24")
        running(instance)
        before = notifier.facts(str(instance.home))["pid"]
        env = {**os.environ, **instance.env}
        words = [os.sys.executable, "-m", notifier.MODULE]
        children = [subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) for _ in range(5)]
        assert [child.wait(60) for child in children] == [0] * 5
        assert notifier.facts(str(instance.home))["pid"] == before and len(workers(instance)) == 2


def test_c11_free_gpus_are_told_from_what_the_engine_sees(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port, "free", "gpu")}, free_gpus=2, free_for="0s")
        instance.ok("up", "--gpus", "sim:2x24")
        until(lambda: items(posts, "free"), "two free cards are told")
    (told,) = items(posts, "free")
    assert told["gpus"] == [0, 1]


def test_c11_the_file_of_the_manager_names_whom_to_tell_of_free_gpus_and_tasks(instance):
    """SPEC C5: notification {enabled, email, gpu_available_threshold}; the mail server is that of config.yaml."""
    letters = Letters()
    with mail_server(letters) as smtp:
        configure(instance, {"me": letterbox(smtp, "failed")}, free_for="0s")
        said = {"notification": {"enabled": True, "email": "you@lab.example", "gpu_available_threshold": 2}}
        file = instance.file(json.dumps(said), "gpu_manager_config.json")
        instance.ok("up", "--gpus", "sim:2x24")
        instance.ok("manage", "--config", file, "--allocate", "held", "--gpus", "1")
        until(lambda: [channel["name"] for channel in instance.json("notify")["channels"]] == ["me", "manager"], "its channel")
        instance.ok("manage", "--config", file, "--release", "held")
        until(lambda: any("2 GPUs are free" in letter["Subject"] for letter in letters.taken), "the letter")
        assert {to for recipients in letters.recipients for to in recipients} == {"you@lab.example"}
        off = instance.file(json.dumps({"notification": {"enabled": False}}), "gpu_manager_config.json")
        instance.ok("manage", "--config", off, "--allocate", "held", "--gpus", "1")
        assert [channel["name"] for channel in instance.json("notify")["channels"]] == ["me"]


def test_c11_an_allocation_and_its_end_are_told_as_such(instance):
    with http_server(posts := Posts()) as port:
        configure(instance, {"hook": hook(port, "finished", "failed", "batch")})
        instance.up("sim:2x24")
        instance.ok("alloc", "mine", "-g", "1")
        instance.ok("release", "mine")
        until(lambda: items(posts), "it is told")
    (item,) = items(posts)
    assert item["allocation"] and item["name"] == "mine"
    assert "allocation 1 (mine) was released" in posts.bodies()[0]["data"]["title"]


def test_c11_a_test_message_is_sent_now_and_what_became_of_it_is_said(instance):
    port = free_port()
    (instance.home / "key").write_text(SECRET)
    (instance.home / "key").chmod(0o600)
    configure(instance, {"hook": hook(port, path=f"/{TOKEN}", secret={"file": "key"})})
    code, out, _ = instance.run("notify", "test")
    assert code == 1 and "hook: not delivered: localhost port" in out
    with http_server(posts := Posts(), port=port):
        assert instance.ok("notify", "test", "hook") == "hook: delivered\n"
        assert instance.json("notify", "test")["channels"] == [{"name": "hook", "ok": True, "error": None}]
    assert [body["data"]["about"] for body in posts.bodies()] == [["test"], ["test"]]
    assert posts.requests[0][1]["webhook-signature"].startswith("v1,")
    assert instance.run("notify", "test", "nobody")[0] == 4
    (instance.home / "key").chmod(0o644)
    code, out, _ = instance.run("notify", "test")
    assert code == 1 and "chmod 600" in out and SECRET not in out
    checks = {check["name"]: check for check in json.loads(instance.run("doctor", "--json")[1])["checks"]}
    assert checks["notify"]["verdict"] == "bad" and "chmod 600" in checks["notify"]["found"]


def test_c11_doctor_finds_a_channel_that_fails_and_a_notifier_that_is_not_there(instance):
    configure(instance, {"hook": hook(free_port())})
    instance.up("sim:4x24")
    running(instance)
    check = {check["name"]: check for check in json.loads(instance.run("doctor", "--json")[1])["checks"]}["notify"]
    assert (check["verdict"], check["found"]) == ("ok", "hook")
    instance.end(*instance.submit({"name": "x"}))
    until(lambda: instance.json("notify")["channels"][0]["failing_since"], "it fails")
    check = {check["name"]: check for check in json.loads(instance.run("doctor", "--json")[1])["checks"]}["notify"]
    assert check["verdict"] == "bad" and "cannot be reached" in check["found"] and "1 wait" in check["found"]
    assert "hook: since " in instance.ok("notify")


def test_s43_no_secret_of_a_channel_is_anywhere_but_where_its_owner_put_it(instance):
    """Its file, its variable, the settings where an address stands, and the wire: searched everywhere else."""
    variable = "V4RIABLE-s3cret-8812"
    posts, letters = Posts((500, f"{SECRET} {TOKEN} {variable}".encode(), {})), Letters()
    with http_server(posts) as port, mail_server(letters, authenticator=letters.login, auth_require_tls=False) as smtp:
        (instance.home / "key").write_text(SECRET)
        (instance.home / "key").chmod(0o600)
        (instance.home / "address").write_text(f"http://localhost:{port}/{TOKEN}")
        (instance.home / "address").chmod(0o600)
        configure(instance, {
            "hook": {"kind": "webhook", "url": {"file": "address"}, "secret": {"file": "key"}, "events": ["failed", "finished"]},
            "ding": {"kind": "dingtalk", "url": {"file": "address"}, "secret": {"env": "DING_SECRET"}, "events": ["finished"]},
            "mail": letterbox(smtp, "finished", user="me", password={"file": "key"}),
        })  # fmt: skip
        instance.up("sim:4x24", env={"DING_SECRET": variable})
        instance.end(*instance.submit({"name": "x"}))
        until(lambda: all(c["failing_since"] for c in instance.json("notify")["channels"]), "all have failed")
        lines = [proc.command_line(pid).encode() for pid in instance.processes()]
        verbs = ["notify", "notify --json", "notify test", "doctor", "doctor --json", "status --json", "ps --json"]
        said = [text for verb in verbs for text in instance.run(*verb.split(), env={"DING_SECRET": variable})] + [instance.log()]
        with instance.reader() as reader:
            said += [json.dumps(reader.events(limit=10_000)), json.dumps(reader.batches())]
        kept = [path for path, mode in modes(instance.home).items() if stat.S_ISREG(mode) and path.name not in ("key", "address")]
        texts = [*(str(text).encode() for text in said), *lines, *map(content, kept)]
        assert posts.requests and letters.logins and any(b"500" in text for text in texts)
        assert [secret for secret in (SECRET, TOKEN, variable) if any(secret.encode() in text for text in texts)] == []
        files = [mode for path, mode in modes(instance.home / "notify").items() if path.name != "notify"]
        assert {mode & 0o777 for mode in files} == {0o600}


def content(path):
    """Nothing, if it went away while we look."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return b""
