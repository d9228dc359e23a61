"""A page of another user of the host, on a port of his own, in the browser in which the victim is logged in to the console (S49):
for the browser it is the same site, and the console's cookie goes along. He gets nothing, and nothing happens."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.browser.conftest import badge
from tests.users.neighbours import free_uids, python_for
from tests.web import walk

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root to become him")

SCRIPT = Path(__file__).with_name("neighbour.js").read_bytes()
SERVER = """import http.server, json, sys
script = sys.stdin.buffer.read()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        body, kind = {"/": (b"<!doctype html><title>cat pictures</title><script type=module src=/a.js></script>", "text/html"),
                      "/a.js": (script, "text/javascript")}.get(path, (b"", "text/plain"))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if path == "/toss":
            for name in dict.fromkeys(part.partition("=")[0].strip() for part in self.headers.get("Cookie", "").split(";")):
                self.send_header("Set-Cookie", name + "=tossed; Path=/api; HttpOnly")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print(json.dumps([path, self.headers.get("Cookie")]), flush=True)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Neighbour(NamedTuple):
    uid: int
    port: int
    child: subprocess.Popen[bytes]

    def seen(self, path: str) -> str:
        """The cookies that his server was sent with a request for this."""
        assert self.child.stdout is not None
        while True:
            at, cookies = json.loads(self.child.stdout.readline())
            if at == path:
                return str(cookies)


@pytest.fixture
def neighbour() -> Iterator[Neighbour]:
    uid = free_uids(1)[0]
    python = python_for(uid)
    if not python:
        pytest.skip("no Python here that another user could run")
    child = subprocess.Popen(
        [python, "-I", "-c", SERVER], user=uid, group=uid, extra_groups=[], env={}, cwd="/", stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    with child.stdin as pipe:
        pipe.write(SCRIPT)
    yield Neighbour(uid, int(child.stdout.readline()), child)
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.fixture
def victim(console: Any, open_page: Any) -> Any:
    page = open_page()
    expect(badge(page)).to_have_text("Live")
    return page


def his(victim: Any, console: Any, neighbour: Neighbour) -> Any:
    """His page, in a tab beside the console's."""
    page = victim.context.new_page()
    page.goto(f"http://localhost:{neighbour.port}/?target=http://localhost:{console.port}")
    page.wait_for_function("window.tries !== undefined")
    return page


def of(console: Any) -> dict[str, Any]:
    """What an attack could have changed."""
    page = console.instance.home / "web" / "sessions"
    return {"seq": console.instance.call("hello")["seq"], "sessions": sorted(path.name for path in page.iterdir())}


def test_s49_a_neighbours_page_gets_nothing_whatever_it_tries(console, victim, neighbour):
    console.instance.end(console.instance.add("-g", "0", "--", "echo the-log"))
    his_page = his(victim, console, neighbour)
    cookie = neighbour.seen("/a.js")
    name = (console.instance.home / "web" / "cookie-name").read_text()
    assert f"{name}-{console.port}=" in cookie  # the browser has sent it to him: else this would show nothing
    before = of(console)
    paths = [walk.filled(path, id=1) for method, path in walk.routes() if method == "GET"]
    assets = sorted(victim.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)"))
    script, style = (next(path for path in assets if path.endswith(end)) for end in (".js", ".css"))
    by_path = [*(f"fetch, {how}" for how in ("to read", "blindly", "with a key of his own")), "a script of an answer",
               "a picture of an answer"]  # fmt: skip
    got = his_page.evaluate(
        """async ([byPath, paths, script, style]) => {
            const got = {}
            for (const [name, act] of Object.entries(window.tries)) {
                const each = byPath.includes(name) ? [...paths, script] : [style]
                for (const path of each) got[`${name}: ${path}`] = await act(path)
            }
            return got
        }""",
        [by_path, paths, script, style],
    )
    assert len(got) > 5 * len(paths) and {what: found for what, found in got.items() if found != "nothing"} == {}
    assert of(console) == before
    victim.reload()
    expect(badge(victim)).to_have_text("Live")  # she is logged in yet
    tab = victim.context.new_page()
    tab.goto(f"http://localhost:{console.port}/ui/")
    expect(badge(tab)).to_have_text("Live")  # by the channel of the page, which he did not hear


def test_s49_s50_what_his_server_was_sent_opens_nothing(console, victim, neighbour):
    his(victim, console, neighbour)
    cookie = neighbour.seen("/a.js")
    base = f"http://localhost:{console.port}"
    paths = [walk.filled(path, id=1) for method, path in walk.routes() if method == "GET" and not walk.of_page(path)]
    guarded = [path for path in paths if path not in ("/api/health", "/api/auth/check")]
    argv = ["curl", "-gs", "--max-time", "20", "-w", "%{http_code}\\n", "-H", f"Cookie: {cookie}"]
    each = [word for path in paths for word in ("-o", "/dev/null", base + path)]
    own = subprocess.run([*argv, *each], user=neighbour.uid, group=neighbour.uid, extra_groups=[], env={}, cwd="/",
                         capture_output=True, text=True, timeout=120)  # fmt: skip
    assert set(own.stdout.split()) == {"403"}
    each = [word for path in guarded for word in ("-o", "/dev/null", base + path)]
    as_victim = subprocess.run([*argv, *each], capture_output=True, text=True, timeout=120)
    assert set(as_victim.stdout.split()) <= {"403", "404"} and "200" not in as_victim.stdout  # 404: a ticket that is none


def test_s16_s49_a_cookie_that_he_puts_beside_ours_lets_nobody_in(console, victim, neighbour):
    context, before = victim.context, of(console)["seq"]
    page = context.new_page()
    victim.close()
    page.goto(f"http://localhost:{neighbour.port}/toss")
    page.goto(f"http://localhost:{console.port}/ui/")
    expect(page.locator("#token")).to_be_visible()  # two of them are none: she is asked to log in, and he has gained nothing
    assert of(console)["seq"] == before
    page.goto(f"http://localhost:{console.port}/ui/#code={console.new_code()}")
    page.reload()
    expect(badge(page)).to_have_text("Live")  # and she can: his cookie was taken from her browser
