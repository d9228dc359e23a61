"""Attacks on the console that are about what is sent and kept, by their numbers (docs/reliability.md). The gate's own are in
test_gate.py, those of slow and many callers in test_slow.py, those for every route in test_routes.py."""

import contextlib
import http.client
import json
import os
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from jostle.web import children, secret
from jostle.web.gate import Caller
from jostle.web.instances import Wanted
from jostle.web.site import Site, Visit
from tests.e2e.instance import PATIENCE, alive, until
from tests.web.console import Console
from tests.web.test_slow import begun_peak, peak

ROOT = Path(__file__).parents[2]
RULES = "gpu_left: 1\n"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """A console with a workspace whose name would do something in a shell."""
    root = tmp_path_factory.mktemp("a") / "w; touch owned; $(touch owned) `touch owned` 'x' \"y\""
    for name in ("command", "config", "logs"):
        (root / name).mkdir(parents=True)
    (root / "command" / "command_gpu.txt").write_text("1\necho plain; sleep 60\n2\n")
    (root / "config" / "gpu_manage.yaml").write_text(RULES)
    made = Console(root.parent / "c", gpus="sim:2x24", workspace=root)
    yield made
    made.close()


# --- tokens and sessions


def test_s2_every_wrong_token_is_compared_in_the_same_way(tmp_path, monkeypatch):
    """By digest, whole, and with both tokens: how long it takes tells nothing of the right ones."""
    secrets = secret.Secrets(str(tmp_path))
    right, other = secrets.token(), secrets.token(secret.READ)
    compared = []
    same = secret.hmac.compare_digest
    monkeypatch.setattr(secret.hmac, "compare_digest", lambda a, b: compared.append((len(a), b)) or same(a, b))
    bit_off = right[:-1] + chr(ord(right[-1]) ^ 1)
    for token in (right, other, bit_off, right[:10], right + "x", "", "x" * 100_000, "admin", "null", "\xe9"):
        compared.clear()
        secrets.rights_of(token)
        assert compared == [(64, secret.digest(right)), (64, secret.digest(other))]
    assert secrets.rights_of(bit_off) is None and secrets.rights_of(right) == "all"


def test_s3_odd_tokens_are_refused_and_break_nothing(space):
    tokens = ("admin", "", "null", "undefined", "Bearer", "x" * 10_000, "\xff\xfe", "a b", "'; --", "../token")
    for token in tokens:
        for path in ("/api/v1/ps", "/api/auth/login"):
            told = space.ask("GET", path, heads={"Authorization": f"Bearer {token}"})
            assert told.status in (400, 401, 405, 429), (token[:20], told)
    logins = space.at_once([partial(space.ask, "POST", "/api/auth/login", {"password": token[:1000]}) for token in tokens])
    assert {told.status for told in logins} <= {200, 400, 429}
    assert not any(told.status == 200 and told.json["success"] for told in logins)
    assert space.ask("POST", "/api/auth/login", {"password": ["x"]}).status == 400


def test_s5_a_thousand_wrong_tokens_are_turned_away_and_the_right_one_still_counts(make_console):
    console = make_console(gpus=None)
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
    seen = []
    for n in range(1000):
        connection.request("GET", "/x", headers={"Authorization": f"Bearer {n:040}"})
        answer = connection.getresponse()
        answer.read()
        seen.append(answer.status)
    connection.close()
    assert set(seen) == {401, 429} and set(seen[100:]) == {429}
    assert console.script("GET", "/x").status == 404
    assert console.ask("POST", "/api/auth/login", {"password": "wrong"}).status == 429
    assert console.log_in()


def test_s16_a_session_that_a_caller_chose_is_none(space):
    """Fixation: a cookie that was there before the login is worth nothing after it."""
    name = space.log_in()["Cookie"].partition("=")[0]
    chosen = {"Cookie": f"{name}=chosen-by-somebody-else"}
    told = space.ask("POST", "/api/auth/login", {"password": space.token}, heads=chosen)
    given = told.heads["set-cookie"].partition(";")[0]
    assert told.json["success"] and given != chosen["Cookie"]
    assert space.ask("GET", "/x", heads={**chosen, "X-Jostle-Key": told.json["key"]}).status == 401
    for path in ("../token", "../../token", "/etc/passwd", "..", "%2e%2e/token", "\\..\\token"):
        assert space.ask("GET", "/x", heads={"Cookie": f"{name}={path}", "X-Jostle-Key": "x"}).status == 401


def test_s7_a_settings_file_opens_the_console_to_nobody(instance, tmp_path):
    (tmp_path / "w" / "config").mkdir(parents=True)
    (tmp_path / "w" / "command").mkdir()
    (tmp_path / "w" / "config" / "control_setting.yaml").write_text("bind-address: 0.0.0.0\nallow-lan: true\nsecret: admin\n")
    try:
        port = int(re.search(r":(\d+)/", instance.ok("web", str(tmp_path / "w"), "--port", "0"))[1])
        with open("/proc/net/tcp") as f:
            bound = [line.split()[1] for line in f if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"]
        assert bound == [f"0100007F:{port:04X}"]
        assert Console.on(instance, port).ask("GET", "/x", heads={"Authorization": "Bearer admin"}).status == 401
    finally:
        instance.ok("web", "--stop")


UPGRADES = [
    {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x" * 22 + "==", "Sec-WebSocket-Version": "13"},
    {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA"},
]  # fmt: skip


@pytest.mark.parametrize("heads", UPGRADES, ids=["websocket", "h2c"])
def test_s14_no_connection_becomes_another_kind(space, heads):
    cookie = {"Cookie": space.log_in()["Cookie"]}
    foreign = {"Origin": "http://evil.example"}
    for proof, status in (({}, 401), (cookie, 403), ({**cookie, **foreign}, 403), (foreign, 403)):
        assert space.ask("GET", "/api/v1/stream", heads={**heads, **proof}).status == status
    assert space.script("GET", "/x", **heads).status == 404  # and not 101


# --- what jobs and files say


PRINTED = {
    "tags": b"<script>alert(1)</script><img src=x onerror=alert(2)>", "escapes": b"\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07",
    "links": b"\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "bidi": "\u202etxt.exe\u2066".encode(),
    "invalid": b"\xff\xfe\xc3(\xed\xa0\x80", "nul": b"a\x00b", "controls": bytes(range(1, 32)),
}  # fmt: skip


@pytest.mark.parametrize("what", PRINTED)
def test_s22_a_log_is_a_text_in_json_and_nothing_else(space, what):
    raw = PRINTED[what] + b"\n"
    (space.instance.work / "raw").write_bytes(raw)
    (space.workspace / "logs" / "raw.txt").write_bytes(raw)
    id = space.instance.add("-g", "0", "--", f"cat {space.instance.work}/raw")
    space.instance.end(id)
    for path in (f"/api/v1/logs/{id}", "/api/log/read?log_path=logs/raw.txt"):
        told = space.script("GET", path)
        text = told.json.get("text", told.json.get("content"))
        assert text == raw.decode("utf-8", "replace"), path
        assert told.heads["content-type"] == "application/json" and told.heads["x-content-type-options"] == "nosniff"
        assert told.body.isascii() and not any(byte < 32 for byte in told.body)
        assert "default-src 'none'" in told.heads["content-security-policy"]


def test_s22_a_line_of_many_megabytes_comes_in_bounded_pieces(space):
    id = space.instance.add("-g", "0", "--", "head -c 30000000 /dev/zero | tr '\\0' m; echo; echo end")
    space.instance.end(id)
    before = begun_peak(space.pid)
    told = space.get(f"/api/v1/logs/{id}?lines=2")
    assert len(told["text"]) <= 1 << 20 and told["text"].endswith("m\nend\n")
    assert len(space.get(f"/api/v1/logs/{id}?from=0&limit=1048576")["text"]) == 1 << 20
    (space.workspace / "logs" / "long.txt").write_bytes(b"m" * 30_000_000 + b"\nend")
    read = space.get("/api/log/read?log_path=logs/long.txt&tail_lines=100000")
    assert len(read["content"]) <= 4 << 20 and read["content"].endswith("\nend") and peak(space.pid) - before < 100


PLACES = [
    "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%c0%af", "%2fetc%2fpasswd", "1%00", "1%2f..%2f..", "1%23",
    "%3f", "-1",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_s18_a_log_is_named_by_a_number_only(space, place):
    for path in (f"/api/v1/logs/{place}", f"/api/v1/show/{place}", f"/api/v1/download/{place}", f"/api/v1/logs/1?run={place}"):
        told = space.script("GET", path)
        assert told.status in (400, 403, 404, 422) and b"root:" not in told.body, path


NAMES = ["", "   ", "a\nb", "a\r\nb", "a\0b", "x" * 10_000, "\x1b[31mred", "\x85"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize("key", ["name", "queue", "tags"])
def test_s23_a_name_that_is_no_line_of_text_is_refused(space, key, name):
    named = {key: [name] if key == "tags" else name}
    told = space.script("POST", "/api/v1/add", {"run": "true", "workdir": "/", "hold": True, **named})
    assert told.status == 422 and key in told.json["detail"], told


def test_s28_nothing_of_a_job_that_runs_is_changed_and_no_command_ever(space):
    id = space.instance.add("--", "sleep 600")
    space.instance.reach(id, "running")
    for values, status in (({"priority": 1}, 409), ({"memory": "1GiB"}, 409), ({"commands": "id"}, 422), ({"run": "id"}, 422)):
        assert space.script("POST", "/api/v1/set", {"ids": [id], "values": values}).status == status, values
    assert space.instance.job(id)["commands"] == ["sleep 600"]
    space.post("/api/v1/cancel", {"ids": [id], "now": True})
    space.instance.end(id)


VALUES = [
    "; touch owned", "$(touch owned)", "`touch owned`", "{work_dir}", "{__class__}", "%s%n", "' \" \\\\",
    "a && b | c > owned", "-rf",
]  # fmt: skip


@pytest.mark.parametrize("command", ["python3 -c {code} {v} {args}", "[python3, -c, '{code}', '{v}', '{args}']"])
def test_s29_a_value_of_a_sweep_is_one_literal_argument(space, command):
    code = "import sys; print(sys.argv[1:])"
    matrix = json.dumps({"code": [code], "v": VALUES, "w": VALUES[:2]})
    path = space.instance.file(f"command: {command}\nmatrix: {matrix}\njob: {{gpus: 0}}\n", "sweep.yaml")
    (batch,) = space.post("/api/v1/run", {"file": path})["batches"]
    space.instance.end(*batch["ids"])
    said = {space.get(f"/api/v1/logs/{id}")["text"] for id in batch["ids"]}
    assert said == {f"{[v, '--w', w]}\n" for v in VALUES for w in VALUES[:2]}
    assert not any(path.name == "owned" for path in space.instance.work.rglob("*"))


@pytest.mark.parametrize("key", ["A=B", "A\0B", "", "="])
def test_s32_a_variable_that_no_environment_can_carry_is_refused(space, key):
    told = space.script("POST", "/api/v1/add", {"run": "true", "workdir": "/", "hold": True, "env": {key: "x"}})
    assert told.status == 422 and "env" in told.json["detail"], told


def test_s32_variables_that_act_on_programs_act_on_the_job_alone(space):
    env = {"LD_LIBRARY_PATH": "/planted", "BASH_ENV": "/planted", "PATH": "/planted:/usr/bin:/bin", "PYTHONPATH": "/planted"}
    told = "env | grep -c planted; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c planted"
    id = space.post("/api/v1/add", {"run": told, "workdir": "/", "gpus": 0, "env": env})["id"]
    space.instance.end(id)
    assert space.get(f"/api/v1/logs/{id}")["text"].splitlines()[-2:] == ["4", "0"]
    engine = Path(f"/proc/{space.instance.engine}/environ").read_bytes()
    assert b"planted" not in engine


def test_s33_a_directory_that_is_none_is_refused_and_a_link_leads_where_it_leads(space):
    work = space.instance.work
    (work / "real").mkdir()
    (work / "link").symlink_to(work / "real")
    (work / "loop").symlink_to(work / "loop")
    (work / "file").write_text("")
    for place in (work / "loop", work / "file", work / "gone", "relative", "", "\0", "~", "/proc/self/nothing"):
        told = space.script("POST", "/api/v1/add", {"run": "pwd -P", "workdir": str(place), "gpus": 0})
        assert told.status == 422 and "workdir" in told.json["detail"], place
    id = space.post("/api/v1/add", {"run": "pwd -P", "workdir": str(work / "link"), "gpus": 0})["id"]
    assert space.instance.end(id) == ["succeeded"] and space.get(f"/api/v1/logs/{id}")["text"] == f"{work / 'real'}\n"


YAML = {
    "object": "gpu_left: !!python/object/apply:os.system ['touch owned']\n",
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "loop": "gpu_left: &a [*a]\n", "large": "gpu_left: 1\n" + "# x\n" * 13_000_000, "twice": "gpu_left: 1\ngpu_left: 2\n",
    "tabs": "retry_config:\n\tbackoff_duration: 1\n", "nan": "check_time: .nan\n", "negative": "gpu_left: -1\n",
    "huge": "check_time: 1e309\n", "bool": "gpu_left: true\n", "deep": "a: " + "[" * 5000, "binary": "gpu_left: 1\n\x00\x01\n",
    "list": "- a\n- b\n", "text": "hello\n", "colon": "gpu_left: 1: 2\n",
}  # fmt: skip


@pytest.mark.parametrize("what", YAML)
def test_s30_rules_that_are_an_attack_are_told_with_their_line_and_cost_little(space, what):
    path = space.workspace / "config" / "gpu_manage.yaml"
    path.write_text(YAML[what])
    before = begun_peak(space.pid)
    try:
        calls = (("GET", "/api/v1/rules", None), ("GET", "/api/config", None), ("PUT", "/api/config", {"gpu_left": 3}))
        for method, asked, body in calls:
            told = space.script(method, asked, body)
            assert told.status in (200, 400, 409, 422), (asked, told)
            if told.status == 200 and asked == "/api/v1/rules":
                assert [flaw["line"] for flaw in told.json["flaws"]], told
            elif told.status == 200:
                assert method == "GET" or what in ("negative", "bool")  # the value itself was wrong, and is another one now
            else:
                said = told.json["detail"]
                assert told.json.get("flaws") or "larger than" in said or "is wrong" in said, told
        assert peak(space.pid) - before < 100
        assert what in ("negative", "bool") or path.read_text() == YAML[what]
        assert not any((place / "owned").exists() for place in (space.workspace, Path("/"), space.instance.work))
    finally:
        path.write_text(RULES)


@pytest.mark.parametrize("what", YAML)
def test_s30_settings_that_are_an_attack_are_told_and_cost_little(space, what):
    path = space.workspace / "config" / "control_setting.yaml"
    path.write_text(YAML[what].replace("gpu_left", "port"))
    before = begun_peak(space.pid)
    try:
        for method, body in (("GET", None), ("PUT", {"log-level": "debug"})):
            told = space.script(method, "/api/settings", body)
            assert told.status in (200, 400, 409, 422), told
        assert peak(space.pid) - before < 100
    finally:
        path.unlink()
        Path(f"{path}.backup").unlink(missing_ok=True)


TASKS = {
    "large": b"1\ntrue\n2\n\n" * 2_000_000, "many": b"1\ntrue\n2\n\n" * 1_600_000,
    "as many as are taken": b"1\ntrue\n2\n\n" * 50_000, "as many that are wrong": b"1\ntrue\n-2\n\n" * 50_000,
    "binary": b"1\n\x00\xff\xfe\n2\n", "tabs": b"\t1\n\ttrue\n\t2\n",
    "numbers": b"9" * 5000 + b"\n",
    "nan": b"1\ntrue\nnan\n", "negative": b"1\ntrue\n-1\n", "infinite": b"1\ntrue\n1e309\n", "no lines": b"x" * (8 << 20),
    "returns": b"\r" * 1_000_000, "backslashes": b"1\n" + b"\\\n" * 500_000 + b"2\n",
    "quotes": b'1\n"' + b'"\\' * 500_000 + b"\n2\n",
}  # fmt: skip


@pytest.mark.parametrize("what", TASKS)
def test_s30_a_task_file_that_is_an_attack_is_told_with_its_line_and_costs_little(space, what):
    path = space.workspace / "command" / "command_gpu_7.txt"
    path.write_bytes(TASKS[what])
    before = begun_peak(space.pid)
    try:
        calls = ("/api/commands/single?config_index=7", "/api/v1/commands/single?config_index=7", "/api/commands/single/all")
        for asked in calls:
            told = space.script("GET", asked)
            assert told.status in (200, 400, 409, 422), (asked, told.body[:300])
            if told.status == 200 and "all" not in asked and what not in ("tabs", "returns", "quotes", "as many as are taken"):
                assert told.json["flaws"][0]["line"] >= 1
        if "as many" not in what:  # whose scheduler would take its time
            begun = space.script("POST", "/api/scheduler/single/start?config_index=7").status
            assert begun in (400, 409) or what in ("tabs", "quotes")
        assert peak(space.pid) - before < 100
    finally:
        space.script("POST", "/api/scheduler/single/stop?config_index=7")
        path.unlink()


def test_s30_how_two_long_texts_differ_is_told_at_once(space):
    """Each line of one is many times in the other: to find the shortest difference would take hours."""
    lines = [f"# {k % 997}" for k in range(190_000)]
    path = space.workspace / "command" / "command_gpu_7.txt"
    path.write_text("x\n" + "\n".join(lines))
    before = begun_peak(space.pid)
    try:
        told = space.post("/api/v1/commands/single/preview?config_index=7", {"text": "\n".join(reversed(lines)) + "\ny"})
        assert len(told["diff"]) == 2 * 190_001 + 3 and peak(space.pid) - before < 300  # the answer alone is of 7 MB
    finally:
        path.unlink()


# --- files


def test_s51_s52_settings_and_bindings_that_somebody_edited_lead_nowhere_else(space, tmp_path):
    (tmp_path / "secret.txt").write_text("1\nthe secret\n2\n")
    rules = space.workspace / "config" / "gpu_manage.yaml"
    rules.write_text(f"gpu_command_file: {tmp_path}/secret.txt\nlog_dir: {tmp_path}\nprocess_json_path: {tmp_path}/secret.txt\n")
    bindings = space.workspace / "control" / "logs" / "log_bindings.json"
    bindings.parent.mkdir(parents=True, exist_ok=True)
    place = {"mode": "single", "config_index": 0, "queue_id": 1, "process_index": 0}
    bindings.write_text(json.dumps({"single_0_1_0": {**place, "log_path": f"{tmp_path}/secret.txt"}}))
    try:
        for path in ("/api/commands/single", "/api/v1/commands/single", "/api/commands/single/all",
                     f"/api/log/read?log_path={tmp_path}/secret.txt",
                     "/api/log/content?mode=single&config_index=0&queue_id=1&process_index=0"):  # fmt: skip
            told = space.script("GET", path)
            assert told.status in (403, 404) and b"the secret" not in told.body, (path, told)
        assert space.script("PUT", "/api/commands/single", {"queues": []}).status == 403
        assert (tmp_path / "secret.txt").read_text() == "1\nthe secret\n2\n"
    finally:
        rules.write_text(RULES)
        bindings.unlink()


@pytest.mark.parametrize("how", ["link", "hard link", "folder"])
def test_s54_a_backup_is_put_through_no_link_and_taken_from_none(space, tmp_path, how):
    path = space.workspace / "command" / "command_gpu.txt"
    before, backup, secret = path.read_text(), Path(f"{path}.backup"), tmp_path / "secret"
    secret.write_text("1\nthe secret\n2\n")
    backup.unlink(missing_ok=True)
    {"link": lambda: backup.symlink_to(secret), "hard link": lambda: os.link(secret, backup), "folder": backup.mkdir}[how]()
    try:
        assert space.script("POST", "/api/commands/single/reset").status in (403, 409) and path.read_text() == before
        told = space.script("PUT", "/api/commands/single", {"queues": []})
        assert told.status == (409 if how == "folder" else 200) and secret.read_text() == "1\nthe secret\n2\n"
        assert how == "folder" or (backup.read_text() == before and not backup.is_symlink() and backup.stat().st_nlink == 1)
    finally:
        backup.rmdir() if how == "folder" else backup.unlink()
        path.write_text(before)


# --- processes


CHILD = """#!/bin/bash
sleep 600 & echo $! > {0}/grandchild
echo $$ > {0}/child
until [ "$(ulimit -t)" != unlimited ] && [ "$(ulimit -v)" != unlimited ]; do sleep 0.02; done
ulimit -t > {0}/cpu; ulimit -v > {0}/memory
{1}
"""


ASKED = {
    "validate": lambda visit: children.validate(visit, children.Validate(file="/x")),
    "a dry run": lambda visit: children.run(visit, children.Run(file="/x"), dry_run=True),
    "clean": lambda visit: children.clean(visit, children.Clean()),
}


@pytest.mark.parametrize("what", ASKED)
def test_s57_what_a_browser_asks_for_has_limits_and_leaves_no_process(tmp_path, monkeypatch, what):
    visit = Visit(Site(Wanted(home=str(tmp_path))), Caller("all", "a test"), "en")
    fake = tmp_path / "python"
    fake.write_text(CHILD.format(tmp_path, "echo '{\"answer\": {}, \"messages\": []}'; exit 0"))
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    ASKED[what](visit)
    assert 0 < int((tmp_path / "cpu").read_text()) <= 45 and 0 < int((tmp_path / "memory").read_text()) <= 4 << 20
    grandchild = int((tmp_path / "grandchild").read_text())
    until(lambda: not alive(grandchild), "the end of what it left behind")


def test_s57_an_answer_without_end_is_cut_off(tmp_path, monkeypatch):
    visit = Visit(Site(Wanted(home=str(tmp_path))), Caller("all", "a test"), "en")
    loud = tmp_path / "loud"
    loud.write_text(CHILD.format(tmp_path, "head -c 40000000 /dev/zero; exit 0"))
    loud.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(loud))
    with pytest.raises(children.JostleError, match="too large"):
        children.perform(visit, "results", {})


def test_s58_a_scheduler_is_started_by_a_list_of_words_and_knows_no_secret(space):
    assert "$(touch owned)" in str(space.workspace)
    page = space.log_in()
    told = space.ask("POST", "/api/scheduler/single/start", heads=page)
    assert told.status == 200, told
    pid = told.json["pid"]
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert os.fsencode(space.workspace) in words  # one word, whatever it says
    known = Path(f"/proc/{pid}/environ").read_bytes() + b"\0".join(words)
    for hidden in (space.token, page["X-Jostle-Key"], page["Cookie"].partition("=")[2]):
        assert hidden.encode() not in known
    assert re.search(r"^Umask:\s*0?077$", Path(f"/proc/{pid}/status").read_text(), re.M)
    until(lambda: space.script("POST", f"/api/scheduler/stop/{pid}").status == 200, "it is known, and told to end")
    until(lambda: not alive(pid), "its end")
    assert not any(path.name == "owned" for place in (space.workspace, space.instance.work) for path in place.rglob("*"))
    assert not Path("/owned").exists() and not Path("owned").exists()


def test_s43_no_secret_is_in_any_log_command_line_environment_answer_or_event(space):
    page = space.log_in()
    hidden = [space.token, page["X-Jostle-Key"], page["Cookie"].partition("=")[2], space.new_code()]
    env = "an-environment-value"
    id = space.instance.add("-g", "0", "-e", f"PASSWORD={env}", "--", "sleep 600")
    space.instance.reach(id, "running")
    for password in (space.token, "wrong-" + space.token):
        space.ask("POST", "/api/auth/login", {"password": password})
    space.ask("GET", f"/api/v1/{space.token}", heads=page)
    space.script("PUT", "/api/settings", {"secret": "admin"})
    logs = (space.instance.home / "web" / "web.log", space.instance.home / "engine.log")
    found = {str(path): path.read_bytes() for path in logs}
    for pid in space.instance.processes():
        with contextlib.suppress(OSError):  # it has just ended
            found[f"command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes()
    web = space.pid
    assert f"command line of {web}" in found
    found["environment of the console"] = Path(f"/proc/{web}/environ").read_bytes()
    verbs = ("openapi.json", f"show/{id}", "ps?all", "status", "doctor")
    for path in ("/api/settings", *(f"/api/v1/{verb}" for verb in verbs)):
        found[path] = space.script("GET", path).body
    wrong = ("/x", f"/ui/{space.token}?{space.token}", "/api/v1/show/x")
    found["errors"] = b"".join(space.ask("GET", path).body for path in wrong)
    found["events"] = json.dumps(space.instance.events("asked"), default=str).encode()
    for place, content in found.items():
        for one in [*hidden, env]:
            assert one.encode() not in content, place
    space.post("/api/v1/cancel", {"ids": [id], "now": True})
    space.instance.end(id)


def test_s59_that_a_job_can_read_what_its_user_can_is_said():
    text = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    assert "A job can read the console's token like any other file of its user" in text
