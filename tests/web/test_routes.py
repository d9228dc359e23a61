"""What holds for every route, whoever adds it: found by walking the application, not by a list."""

import asyncio
import hashlib
import json
import tempfile
from urllib.parse import quote

import pytest

from jostle.web.app import app
from jostle.web.gate import OPEN
from jostle.web.instances import Wanted
from jostle.web.site import Site
from tests.web import walk
from tests.web.console import Console

READING = ("GET", "HEAD", "OPTIONS")


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """A console with a workspace, into which only this module looks."""
    root = tmp_path_factory.mktemp("r")
    files = {"command/command_gpu.txt": "1\ntrue\n2\n", "config/gpu_manage.yaml": "gpu_left: 1\n", "logs/x": "x\n"}
    for name, text in files.items():
        (root / "w" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "w" / name).write_text(text)
    made = Console(root / "c", gpus="sim:1x24", workspace=root / "w")
    yield made
    made.close()


def tree(*places):
    """What lies there, to the byte."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for place in places
        for path in sorted(place.rglob("*"))
        if not path.is_socket()
    }


def guarded():
    return [(method, path) for method, path in walk.routes() if (method, path) not in OPEN and not walk.of_page(path)]


def test_the_walk_finds_what_the_document_names_and_what_it_does_not():
    named = {(method.upper(), path) for path, about in walk.document()["paths"].items() for method in about}
    assert named < set(walk.routes()) and ("GET", "/api/v1/openapi.json") in set(walk.routes()) - named


def test_s1_every_route_without_a_token_is_401_with_nothing_in_it(space):
    asked = guarded()
    assert len(asked) > 50
    for method, path in asked:
        told = space.ask(method, walk.filled(path))
        assert (told.status, told.body) == (401, b""), (method, path)
        told = space.ask(method, walk.filled(path), heads={"Authorization": "Bearer wrong"})
        assert told.status in (401, 429) and told.body == b"", (method, path)


def test_s1_what_is_open_is_what_the_design_leaves_open():
    assert {("GET", "/api/auth/check"), ("POST", "/api/auth/login"), ("GET", "/api/health")} == OPEN
    assert {path for _, path in walk.routes() if walk.of_page(path)} == {"/", "/ui", "/ui/", "/ui/{path:path}", "/favicon.ico"}


def test_s10_s49_no_route_is_answered_to_the_cookie_alone(space):
    page = space.log_in()
    for method, path in guarded():
        if path != "/api/v1/download/{ticket}":  # whose ticket is the second proof
            assert space.ask(method, walk.filled(path), heads={"Cookie": page["Cookie"]}).status == 403, (method, path)


def test_s12_nothing_is_changed_by_a_get(space):
    id = space.instance.add("--hold", "--", "true")
    page = space.log_in()
    watched = (space.workspace, space.instance.home / "web")
    before, seq = tree(*watched), space.instance.call("hello")["seq"]
    asked = 0
    for method, path in walk.routes():
        if method in READING and path != walk.STREAM:
            for value in (id, 999_999):
                more = f"ids={id}&within=0&log_path=logs/x&queue_id=1&process_index=0"
                space.ask(method, f"{walk.filled(path, id=value)}?{more}", heads=page)
                asked += 1
    assert asked > 40 and space.instance.call("hello")["seq"] == seq
    after = tree(*watched)
    log = str(space.instance.home / "web" / "web.log")
    assert {**after, log: ""} == {**before, log: ""}


NEED_ENGINE = {f"/api/v1/{verb}" for verb in ("limits", "manage", "monitor")}  # 503 without one


def test_s12_no_engine_is_started_by_a_get(make_console):
    console = make_console(gpus=None)
    for method, path in walk.routes():
        if method == "GET" and path != walk.STREAM and not walk.of_page(path):
            assert console.script("GET", walk.filled(path) + "?ids=1&within=0").status < 500 or path in NEED_ENGINE, path
    assert not (console.instance.home / "engine.sock").exists() and not (console.instance.home / "jostle.db").exists()


@pytest.mark.parametrize("origin", ["http://evil.example", None])
def test_s13_a_preflight_is_promised_nothing(space, origin):
    page = space.log_in()
    for _, path in guarded():
        heads = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-jostle-key,authorization"}
        for proof in ({}, {"Cookie": page["Cookie"]}):
            told = space.ask("OPTIONS", walk.filled(path), heads={**heads, **proof, **({"Origin": origin} if origin else {})})
            assert told.status in (401, 403, 405) and not any(name.startswith("access-control") for name in told.heads), path


def test_s27_who_may_only_read_is_refused_every_other_route(space):
    reader = space.instance.ok("web", "--token", "--read-only").strip()
    for method, path in guarded():
        if method not in READING and path != "/api/auth/logout":
            assert space.script(method, walk.filled(path), token=reader).status == 403, (method, path)


INJECTED = ["1;drop table jobs", "' or 1=1 --", '"; delete from jobs; --']


def test_s24_sql_in_any_query_of_any_route_is_refused_or_a_text_like_any_other(space):
    id = space.instance.add("--hold", "--", "true")
    rows = len(space.get("/api/v1/ps?all")["jobs"])
    asked = 0
    for path, about in walk.document()["paths"].items():
        for parameter in (about.get("get") or {}).get("parameters", ()):
            if parameter["in"] == "query" and path not in (walk.STREAM, "/api/v1/results"):  # which has a process of its own
                more = "" if parameter["name"] == "within" else f"&within=0&ids={id}"
                for sql in INJECTED:
                    told = space.script("GET", f"{walk.filled(path, id=id)}?{parameter['name']}={quote(sql)}{more}")
                    assert told.status < 500, (path, parameter["name"], told)
                    plain = (parameter["schema"].get("type") or "any") in ("integer", "number", "boolean")
                    assert not plain or told.status in (400, 422), (path, parameter["name"], told)
                    asked += 1
    assert asked > 100 and len(space.get("/api/v1/ps?all")["jobs"]) == rows


def test_s44_what_goes_wrong_inside_is_told_without_a_word_of_where():
    """In this process: a route that fails, behind the real gate."""
    with tempfile.TemporaryDirectory() as home:
        site = Site(Wanted(home=home))
        gate = app(site)

        @gate.app.get("/api/v1/broken")
        def broken():
            raise RuntimeError(f"secret-words of {home}")

        scope = {
            "type": "http", "method": "GET", "path": "/api/v1/broken", "raw_path": b"/api/v1/broken", "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {site.secrets.token()}".encode())],
            "scheme": "http", "http_version": "1.1", "root_path": "", "client": ("127.0.0.1", 1), "server": ("localhost", 1),
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        with pytest.raises(RuntimeError):  # for the log of the process
            asyncio.run(gate(scope, receive, send))
    assert sent[0]["status"] == 500 and b"server" not in dict(sent[0]["headers"])
    told = json.loads(sent[1]["body"])
    assert set(told) == {"detail", "code"} and "secret" not in told["detail"] and home not in told["detail"]


def test_s14_no_websocket_gets_in_even_where_the_server_would_speak_it():
    with tempfile.TemporaryDirectory() as home:
        gate, sent = app(Site(Wanted(home=home))), []

        async def send(message):
            sent.append(message)

        asyncio.run(gate({"type": "websocket", "path": walk.STREAM, "headers": []}, None, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
