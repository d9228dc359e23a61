"""The source's own page (SPEC A36): its code sends the password once and the cookie from then on, and knows of no key. In a real
browser, which says by itself where a call comes from: with `--classic` it works, on its own origin, for the source's paths."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser.conftest import PATIENCE_MS
from tests.web.console import Console

SOURCE = """<!doctype html><title>GPU Control</title><script>
const json = { 'Content-Type': 'application/json' }
const statusOf = async (call) => { try { return (await call).status } catch { return 'nothing' } }
const sent = (method, body) => ({ method, headers: json, body: JSON.stringify(body), credentials: 'include' })
window.login = async (password) => (await (await fetch('/api/auth/login', sent('POST', { password }))).json()).success
window.get = (url) => statusOf(fetch(url, { credentials: 'include' }))
window.put = (url, body) => statusOf(fetch(url, sent('PUT', body)))
window.post = (url, more = {}) => statusOf(fetch(url, { method: 'POST', credentials: 'include', ...more }))
</script>"""
READ = [
    "auth/check", "gpu", "gpu/processes", "gpu/status", "gpu/state", "commands/single/list", "commands/multi/list",
    "commands/single/all", "commands/single?config_index=0", "config", "scheduler/status", "scheduler/state", "scheduler/running",
    "scheduler/single/state", "scheduler/single/status", "log/bindings", "log/read?log_path=logs/mine.txt&tail_lines=5",
    "log/content?mode=single&config_index=0&queue_id=1&process_index=0", "settings",
]  # fmt: skip
COMMANDS = "1\necho first\n2\n"


@contextlib.contextmanager
def shown(browser: Any, *words: str, root: Path) -> Iterator[tuple[Console, Any, Any]]:
    """A console, that page in a browser as if the console had served it, and the same page on another port of the host."""
    space = root / "space"
    for folder in ("command", "config", "logs"):
        (space / folder).mkdir(parents=True)
    (space / "command" / "command_gpu.txt").write_text(COMMANDS)
    (space / "logs" / "mine.txt").write_text("mine\n")
    console = Console(root / "c", workspace=space, words=words)
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    try:
        made = []
        for port in (console.port, 1):
            at = f"http://localhost:{port}/source.html"
            context.route(at, lambda route: route.fulfill(body=SOURCE, content_type="text/html"))
            made.append(context.new_page())
            made[-1].goto(at)
        yield console, made[0], made[1]
    finally:
        context.close()
        console.close()


def test_a36_classic_the_page_of_the_source_works_with_password_and_cookie_alone_and_only_from_its_own_origin(
    browser, tmp_path: Path
):
    with shown(browser, "--classic", root=tmp_path) as (console, page, elsewhere):
        base = f"http://localhost:{console.port}"
        assert page.evaluate("get('/api/commands/single/list')") == 401
        assert page.evaluate("([p]) => login(p)", ["not the token"]) is False
        assert page.evaluate("([p]) => login(p)", [console.token]) is True
        assert {path: page.evaluate(f"get('/api/{path}')") for path in READ} == dict.fromkeys(READ, 200)
        queues = [{"id": 1, "processes": [{"commands": ["echo second"], "gpu_count": 1, "memory": 2}]}]
        assert page.evaluate("([q]) => put('/api/commands/single', {queues: q})", [queues]) == 200
        assert page.evaluate("post('/api/commands/single/new')") == 200
        assert page.evaluate("put('/api/config', {max_gpu: 3})") == 200
        bind = "/api/log/bind?mode=single&config_index=0&queue_id=1&process_index=0&log_path=logs/mine.txt"
        assert page.evaluate("([to]) => post(to)", [bind]) == 200
        space = Path(console.workspace or "")
        assert "echo second" in (space / "command" / "command_gpu.txt").read_text()
        for path in ("ps", "gpus", "commands/single", "rules"):
            assert page.evaluate(f"get('/api/v1/{path}')") == 403, path  # those want the key of our own page
        assert page.evaluate("""post('/api/v1/add', {headers: json, body: '{"run": "true", "workdir": "/"}'})""") == 403

        before = sorted((space / "command").iterdir())
        assert elsewhere.context.cookies(base), "the browser sends it along (test_neighbour)"
        assert {path: elsewhere.evaluate(f"get('{base}/api/{path}')") for path in READ} == dict.fromkeys(READ, "nothing")
        assert elsewhere.evaluate(f"put('{base}/api/config', {{max_gpu: 9}})") == "nothing"
        for path in ("commands/single/new", "scheduler/single/start"):  # blindly: it goes there, and nothing comes of it
            assert elsewhere.evaluate(f"post('{base}/api/{path}', {{mode: 'no-cors'}})") == "nothing"
        assert sorted((space / "command").iterdir()) == before
        assert "max_gpu: 3" in (space / "config" / "gpu_manage.yaml").read_text()
        assert console.get("/api/scheduler/running") == {"schedulers": []}


def test_a36_without_classic_the_cookie_alone_opens_nothing(browser, tmp_path: Path):
    with shown(browser, root=tmp_path) as (console, page, _):
        assert page.evaluate("([p]) => login(p)", [console.token]) is True
        closed = [path for path in READ if path != "auth/check"]
        assert {path: page.evaluate(f"get('/api/{path}')") for path in closed} == dict.fromkeys(closed, 403)
