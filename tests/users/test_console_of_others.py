"""The console of one user, and another user of the same host (S33, S50, S60): real uids, with curl and with Python.
Needs root for the uids; skips with a line without it."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from typing import Any

import neighbours
import pytest
from neighbours import CARDS, SPEC, Tenant, Town, until
from tests.web import walk

from jostle.backends.local import claims
from jostle.backends.local.claims import Claim
from jostle.probes import scenario

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="two users need root to become them")

LARGEST = 1 << 20  # bytes of an answer about eight cards, whatever neighbours do


class Console:
    """One of a user who is not root."""

    def __init__(self, town: Town, owner: Tenant) -> None:
        self.town, self.owner, self.home = town, owner, f"{owner.home}/jostle"
        owner.start(SPEC)
        self.open("--port", "0")

    def jostle(self, *words: str) -> tuple[int, str, str]:
        path = f"{self.town.code}:{sysconfig.get_paths()['purelib']}"
        env = {
            "PATH": os.environ["PATH"], "HOME": self.owner.home, "JOSTLE_HOME": self.home, "PYTHONPATH": path, "LANG": "C.UTF-8",
            "JOSTLE_LEASE_DIR": self.town.leases, "JOSTLE_SIM_DIR": self.town.sim, "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        done = subprocess.run(
            [self.town.python, "-m", "jostle", *words], user=self.owner.uid, group=self.owner.uid, extra_groups=[], env=env,
            cwd="/", capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def open(self, *words: str) -> str:
        code, out, err = self.jostle("web", *words)
        assert code == 0, (out, err)
        self.port = int(re.search(r":(\d+)/", out)[1])  # type: ignore[index]
        self.token = self.jostle("web", "--token")[1].strip()
        return err

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        heads = {"Authorization": f"Bearer {self.token}", **({"Content-Type": "application/json"} if body is not None else {})}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, heads)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def session(self) -> str:
        """The headers of a page that is logged in."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = json.dumps({"password": self.token})
        connection.request("POST", "/api/auth/login", given, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        cookie, key = (answer.getheader("set-cookie") or "").partition(";")[0], json.loads(answer.read())["key"]
        connection.close()
        return f"Cookie: {cookie}\r\nX-Jostle-Key: {key}\r\n"

    def get(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200 and len(body) < LARGEST, (path, status, len(body))
        return json.loads(body)


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    uid = neighbours.free_uids(1)[0]
    python = neighbours.python_for(uid)
    if not python:
        pytest.skip("no Python here that another user could run")
    packages = {"PYTHONPATH": sysconfig.get_paths()["purelib"]}
    argv = [python, "-c", "import fastapi, uvicorn"]
    if subprocess.run(argv, user=uid, group=uid, extra_groups=[], env=packages, cwd="/", capture_output=True).returncode:
        pytest.skip("no Python here with which another user could run a console")
    with neighbours.town(2) as whole:
        yield whole


@pytest.fixture(scope="module")
def console(town: Town) -> Console:
    return Console(town, town.tenants[0])


STRANGER = """import json, socket, sys
port, path, heads, targets = json.load(sys.stdin)
heard = []
for method, target in targets:
    for family, address in ((socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port))):
        with socket.socket(family) as sock:
            sock.settimeout(30)
            sock.connect(address)
            try:
                sock.sendall(f"{method} {target} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n{heads}\\r\\n".encode())
                got = b""
                while part := sock.recv(1000):
                    got += part
            except ConnectionError:
                pass
            heard.append(got.decode("latin-1"))
try:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        heard.append("connected")
except OSError as e:
    heard.append(type(e).__name__)
print(json.dumps(heard))
"""
NOTHING = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_s50_another_user_gets_nothing_from_any_route_with_token_or_session_in_his_hands(town: Town, console: Console) -> None:
    targets = [(method, walk.filled(path)) for method, path in walk.routes()]
    assert len(targets) > 60
    for proof in ("", f"Authorization: Bearer {console.token}\r\n", console.session()):
        child = town.tenants[1].run([town.python, "-I", "-c", STRANGER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        given = json.dumps([console.port, f"{console.home}/web/{console.port}.sock", proof, targets])
        *heard, by_socket = json.loads(child.communicate(given, timeout=120)[0])
        assert len(heard) == 2 * len(targets) and set(heard) <= {NOTHING, ""} and by_socket == "PermissionError"
    assert console.get("/api/v1/status")["running"] is True  # for its owner, whose calls root may make


def test_s50_another_user_gets_nothing_by_curl(town: Town, console: Console) -> None:
    token = ("-H", f"Authorization: Bearer {console.token}")
    for base in (f"http://127.0.0.1:{console.port}", f"http://[::1]:{console.port}"):
        for method in sorted({method for method, _ in walk.routes()} - {"HEAD"}):
            urls = [base + walk.filled(path) for one, path in walk.routes() if one == method]
            argv = ["curl", "-gs", "--max-time", "30", "-X", method, *token, "-w", "%{http_code} %{size_download}\n", *urls]
            child = town.tenants[1].run(argv, stdout=subprocess.PIPE)
            assert set(child.communicate(timeout=120)[0].splitlines()) == {"403 0"}
    over = ["--unix-socket", f"{console.home}/web/{console.port}.sock", "http://localhost/api/health"]
    child = town.tenants[1].run(["curl", "-s", *token, *over], stdout=subprocess.PIPE)
    assert child.communicate(timeout=60)[0] == "" and child.returncode == 7  # could not connect
    done = subprocess.run(["curl", "-s", *over], capture_output=True, text=True, timeout=60)
    assert done.stdout == '{"ok":true}', done  # root can everything


@pytest.mark.parametrize("half", ["127.0.0.1", "::1"])
def test_s50_a_neighbour_who_sits_on_the_remembered_port_is_told_of_loudly(town: Town, console: Console, half: str) -> None:
    squat = (
        "import socket, sys\n"
        "s = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)\n"
        "print(s.getsockname()[1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    squatter = town.tenants[1].run([town.python, "-I", "-c", squat, half], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert squatter.stdout is not None and squatter.stdin is not None
    taken = int(squatter.stdout.readline())
    console.jostle("web", "--stop")
    with open(f"{console.home}/web/port", "w") as f:
        f.write(str(taken))
    os.chown(f"{console.home}/web/port", console.owner.uid, console.owner.uid)
    try:
        said = console.open()
        assert f"port {taken} is taken" in said and console.port != taken
        assert console.get("/api/v1/status")["running"] is True
    finally:
        squatter.stdin.close()
        squatter.wait(60)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as another, pytest.raises(OSError):
            another.bind((address, console.port))  # both halves of localhost are ours


def test_s33_a_job_goes_where_its_user_may_go_and_nowhere_else(town: Town, console: Console) -> None:
    theirs, gone = town.tenants[1].home, f"{console.owner.home}/gone"
    link = f"{console.owner.home}/link"
    os.symlink(theirs, link)
    status, body = console.ask("POST", "/api/v1/add", {"run": "pwd", "workdir": gone, "gpus": 0})
    assert status == 422 and gone.encode() in body
    for place in (theirs, link):
        _, body = console.ask("POST", "/api/v1/add", {"run": "pwd", "workdir": place, "gpus": 0})
        fails(console, json.loads(body)["id"])
    os.mkdir(gone)
    os.chown(gone, console.owner.uid, console.owner.uid)
    status, body = console.ask("POST", "/api/v1/add", {"run": "pwd", "workdir": gone, "gpus": 0, "hold": True})
    os.rmdir(gone)
    os.symlink(theirs, gone)  # between the submit and the start
    id = json.loads(body)["id"]
    console.ask("POST", "/api/v1/unhold", {"ids": [id]})
    fails(console, id)


def fails(console: Console, id: int) -> None:
    assert until(lambda: console.get(f"/api/v1/show/{id}")["job"]["state"] == "failed"), console.get(f"/api/v1/show/{id}")
    assert "Permission denied" in console.get(f"/api/v1/why/{id}")["reason"]["text"]


def cards() -> list[str]:
    return [card.uuid for card in scenario.load(SPEC.removeprefix("sim:")).cards]


FLOOD = """import fcntl, os, sys
held = []
for path in sys.stdin.readline().strip().split("\\t"):
    held.append(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o444))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def seen(console: Console, job: int) -> dict[str, Any]:
    """Everything that a page asks for, each answer bounded."""
    paths = ("ps?all", "gpus", "status", f"why/{job}", f"show/{job}", "doctor", "compete")
    return {path.partition("?")[0].partition("/")[0]: console.get(f"/api/v1/{path}") for path in paths}


def test_s60_a_flood_of_claims_leaves_the_console_bounded_and_says_who_it_is(town: Town, console: Console) -> None:
    hostile = town.tenants[1]
    names = [
        f"{town.leases}/{claims.name_of(Claim(uuid=uuid, mib=None, sid=4242 + k, home='deadbeef', run=(k + 1, 1)))}"
        for uuid in cards() for k in range(100)
    ]  # fmt: skip
    flood = hostile.run([town.python, "-I", "-S", "-c", FLOOD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert flood.stdout is not None and flood.stdin is not None
    flood.stdin.write("\t".join(names) + "\n")
    flood.stdin.flush()
    assert flood.stdout.readline() == "held\n"
    status, body = console.ask("POST", "/api/v1/add", {"run": "true", "workdir": "/", "name": "flooded"})
    job = json.loads(body)["id"]
    assert until(lambda: str(hostile.uid) in console.get(f"/api/v1/why/{job}")["reason"]["text"])
    told = seen(console, job)
    assert status == 200 and len(told["why"]["gpus"]) == CARDS and len(told["gpus"]["gpus"]) == CARDS
    flood.stdin.close()
    flood.wait(60)
    for name in names:
        os.unlink(name)
    assert until(lambda: console.get(f"/api/v1/show/{job}")["job"]["state"] == "succeeded"), console.get(f"/api/v1/why/{job}")


def test_s60_a_directory_of_claims_that_is_swapped_or_squatted_on_is_told_on_the_page(town: Town, console: Console) -> None:
    hostile = town.tenants[1]
    away = f"{town.root}/away"
    os.rename(town.leases, away)
    os.mkdir(town.leases)
    os.chown(town.leases, hostile.uid, hostile.uid)
    os.chmod(town.leases, 0o755)
    try:
        _, body = console.ask("POST", "/api/v1/add", {"run": "true", "workdir": "/", "name": "swapped"})
        job = json.loads(body)["id"]
        why = f"/api/v1/why/{job}"
        assert until(lambda: f"uid {hostile.uid}" in json.dumps(console.get(why))), console.get(why)
        told = seen(console, job)
        assert f"uid {hostile.uid}" in told["status"]["hold_text"]
        (check,) = [check for check in told["doctor"]["checks"] if check["name"] == "leases"]
        assert check["verdict"] == "bad" and f"uid {hostile.uid}" in check["found"] + check["advice"]
    finally:
        os.rmdir(town.leases)
        os.rename(away, town.leases)
    assert until(lambda: console.get(f"/api/v1/show/{job}")["job"]["state"] == "succeeded"), console.get(f"/api/v1/why/{job}")


def test_s50_a_user_who_is_trusted_needs_the_token_and_nobody_else_gets_in_with_it(town: Town, console: Console) -> None:
    proxy = town.tenants[1]
    console.open("--trust-uid", str(proxy.uid))
    url, token = f"http://127.0.0.1:{console.port}/api/v1/ps", f"Authorization: Bearer {console.token}"
    argv = ["curl", "-s", "-o", "/dev/null", "--max-time", "30", "-w", "%{http_code}", url]
    try:
        for uid, more, status in ((proxy.uid, [], "401"), (proxy.uid, ["-H", token], "200"), (65534, ["-H", token], "403")):
            who = {"user": uid, "group": uid, "extra_groups": [], "env": {}, "cwd": "/"}
            done = subprocess.run([*argv, *more], capture_output=True, text=True, **who)
            assert done.stdout == status, (uid, more, done)
    finally:
        console.jostle("web", "--stop")
        console.open("--port", "0")
    again = [*argv[:-1], f"http://127.0.0.1:{console.port}/api/v1/ps", "-H", token]
    assert proxy.run(again, stdout=subprocess.PIPE).communicate(timeout=60)[0] == "403"  # a console that was not told so
