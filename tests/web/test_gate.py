"""The gate, by the numbers of the attacks that it is for: what is not the owner's call gets nothing."""

import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

from jostle.web.server import bound
from tests.e2e.instance import alive, modes, until
from tests.web.console import Console, kept

ANYWHERE = ("/api/v1/ps", "/api/gpu", "/api/config", "/openapi.json", "/docs", "/api/v1/openapi.json", "/nothing", "/api")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another home's console, which may be told a thousand wrong tokens."""
    made = Console(tmp_path_factory.mktemp("o"), gpus=None)
    yield made
    made.close()


@pytest.mark.parametrize("path", ANYWHERE)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_s1_s13_s44_without_a_token_there_is_nothing_not_even_a_word(console, method, path):
    told = console.ask(method, path)
    assert (told.status, told.body) == (401, b"")
    assert not any(name.startswith("access-control") or name == "server" for name in told.heads)


def test_what_is_open_says_nothing_of_anybody(console):
    assert console.ask("GET", "/api/health").json == {"ok": True}
    told = console.ask("GET", "/api/auth/check").json
    assert told["requires_auth"] is True and told["authenticated"] is False and told["rights"] is None


def flipped(token):
    return ("A" if token[0] != "A" else "B") + token[1:]


def test_s2_s3_a_token_that_is_not_the_token_is_none(console):
    right = console.token
    wrong = [flipped(right), right[:-1], right + "a", right.lower(), "admin", "null", "", "x" * 10_000, "t\xf6ken"]
    for token in wrong:
        told = console.ask("GET", "/api/health2", heads={"Authorization": f"Bearer {token}"})
        assert told.status in (400, 401), (token[:50], told)
    for heads in ({"Authorization": right}, {"Authorization": f"Basic {right}"}, {"X-Token": right}):
        assert console.ask("GET", "/api/v1/ps", heads=heads).status == 401
    twice = f"Authorization: Bearer {right}\r\n" * 2
    assert b" 400 " in console.bytes(f"GET /x HTTP/1.1\r\nHost: localhost\r\n{twice}Connection: close\r\n\r\n".encode())


def test_s4_a_token_in_the_address_is_none(console):
    for path in (f"/api/v1/ps?token={console.token}", f"/api/v1/ps?password={console.token}&key={console.token}"):
        assert console.ask("GET", path).status == 401
    assert console.ask("POST", f"/api/auth/login?password={console.token}").status in (400, 415)


@pytest.mark.parametrize("how", ["open", "empty", "short", "link", "directory", "fifo"])
def test_s6_a_token_file_that_others_could_know_is_refused(instance, how, tmp_path):
    instance.ok("web", "--token")
    path = instance.home / "web" / "token"
    if how == "open":
        path.chmod(0o644)
    elif how in ("empty", "short"):
        path.write_text("" if how == "empty" else "secret")
    else:
        path.unlink()
        made = {"link": lambda: path.symlink_to("/etc/hostname"), "fifo": lambda: os.mkfifo(path, 0o600)}
        made.get(how, lambda: path.mkdir(0o700))()
    code, _, err = instance.run("web", "--port", "0")
    assert code == 5 and str(path) in err
    assert instance.run("web", "--list")[1] == ""


@pytest.mark.parametrize("rights", ["token", "read-token"])
def test_s6_a_token_file_that_is_opened_to_others_lets_nobody_in_until_it_is_mended(other, rights):
    other.instance.ok("web", "--token", "--read-only")
    path = other.instance.home / "web" / rights
    path.chmod(0o644)
    try:
        told = other.script("GET", "/api/v1/ps")
        assert told.status == 403 and "jostle web --token" in told.json["detail"] and str(path).encode() not in told.body
        assert other.ask("GET", "/api/health").status == 200
    finally:
        path.chmod(0o600)
    assert other.script("GET", "/api/v1/ps").status == 200


def test_s7_another_address_must_be_said_twice_and_without_tls_three_times(instance):
    for words, missing in ((["--bind", "0.0.0.0"], "--allow-lan"), (["--bind", "0.0.0.0", "--allow-lan"], "--insecure-http")):
        code, _, err = instance.run("web", "--port", "0", *words)
        assert code == 5 and missing in err
    assert instance.run("web", "--list")[1] == ""


HOSTS = [
    "evil.com", "localhost.evil.com", "localhost:80@evil", "0x7f000001", "localhost.", "127.0.0.2", "2130706433", "", "[::2]",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_s8_a_host_name_that_is_not_ours_is_refused(console, host):
    for path in ("/api/health", "/ui/gpu"):
        assert console.ask("GET", path, heads={"Host": host}).status == 400


def test_s8_no_host_and_two_hosts_are_refused_and_any_port_is_fine(console):
    assert b" 400 " in console.bytes(b"GET /api/health HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert b" 400 " in console.bytes(b"GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n")
    two = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert b" 400 " in console.bytes(two)
    for host in ("localhost", "127.0.0.1:1", "[::1]:8888", f"localhost:{console.port}"):
        assert console.ask("GET", "/api/health", heads={"Host": host}).status == 200


def test_s9_a_page_of_another_origin_is_refused(console):
    page = console.log_in()
    others = ("https://trusted.example.com.evil.com", "null", f"http://localhost:{console.port + 1}", "https://localhost", "")
    for origin in others:
        told = console.ask("GET", "/x", heads={**page, "Host": f"localhost:{console.port}", "Origin": origin})
        assert told.status == 403, origin
    own = {**page, "Host": f"localhost:{console.port}", "Origin": f"http://localhost:{console.port}"}
    assert console.ask("GET", "/x", heads=own).status == 404


def test_s9_behind_a_proxy_with_tls_its_own_origin_is_the_only_one(make_console):
    console = make_console(gpus=None)
    console.instance.ok("web", "--public-url", "https://gpus.example")  # at the same port
    page = console.log_in()
    others = (
        "http://gpus.example", "https://gpus.example:8443", "https://gpus.example.evil.example", "https://evil.example", "null",
        "https://gpus.example/", "https://GPUS.example.", f"http://localhost:{console.port + 1}",
    )  # fmt: skip
    for host in ("gpus.example", f"localhost:{console.port}"):
        for origin in others:
            assert console.ask("GET", "/x", heads={**page, "Host": host, "Origin": origin}).status == 403, (host, origin)
        assert console.ask("GET", "/x", heads={**page, "Host": host, "Origin": "https://gpus.example"}).status == 404
    local = f"localhost:{console.port}"
    assert console.ask("GET", "/x", heads={**page, "Host": local, "Origin": f"http://{local}"}).status == 404
    assert console.ask("GET", "/x", heads={**page, "Host": "gpus.example", "Origin": f"http://{local}"}).status == 403


def test_s10_s49_the_cookie_alone_is_not_enough_nor_with_another_sessions_key(console):
    one, other = console.log_in(), console.log_in()
    assert console.ask("GET", "/x", heads=one).status == 404
    for method in ("GET", "POST"):
        assert console.ask(method, "/x", heads={"Cookie": one["Cookie"]}).status == 403
        assert console.ask(method, "/x", heads={**one, "X-Jostle-Key": other["X-Jostle-Key"]}).status == 403
        assert console.ask(method, "/x", heads={"X-Jostle-Key": one["X-Jostle-Key"]}).status == 401


def test_s49_a_doubled_cookie_and_a_page_of_another_site_are_refused(console):
    page = console.log_in()
    assert console.ask("GET", "/x", heads={**page, "Cookie": f"{page['Cookie']}; {page['Cookie']}"}).status == 401
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 404), ("none", 404)):
        assert console.ask("GET", "/x", heads={**page, "Sec-Fetch-Site": site}).status == status
    link_in_a_chat = {"Sec-Fetch-Site": "cross-site"}
    assert console.ask("GET", "/ui/gpu", heads=link_in_a_chat).status == 200


def test_a_browser_whose_last_tab_was_closed_has_a_cookie_and_no_key_and_logs_in_by_a_link(console):
    cookie = {"Cookie": console.log_in()["Cookie"]}
    for stale in (cookie, {**cookie, "X-Jostle-Key": "of another session"}):
        assert console.ask("GET", "/x", heads=stale).status == 403
        assert console.ask("GET", "/api/auth/check", heads=stale).json["authenticated"] is False
        told = console.ask("POST", "/api/auth/login", {"password": console.new_code()}, heads=stale)
        assert told.status == 200 and told.json["success"] is True
        page = {"Cookie": told.heads["set-cookie"].partition(";")[0], "X-Jostle-Key": told.json["key"]}
        assert page["Cookie"] != cookie["Cookie"] and console.ask("GET", "/x", heads=page).status == 404


@pytest.mark.parametrize("path", ["/api/v1/ps", "/api/auth/check", "/api/auth/login"])
def test_s49_a_second_cookie_is_taken_from_the_browser_that_was_given_one(console, path):
    """It lies below ours, at a path that this call is below, too: our own, which is at /, stays."""
    name, _, session = console.log_in()["Cookie"].partition("=")
    sent = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {name}=his; {name}={session}\r\nConnection: close\r\n\r\n"
    heads = console.bytes(sent.encode()).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    gone = {line.partition("path=")[2].partition(";")[0] for line in heads if line.startswith(f"set-cookie: {name}=;")}
    assert {"/api", "/api/", path, path.rpartition("/")[0]} <= gone and not {"/", ""} & gone
    assert all("max-age=0" in line for line in heads if line.startswith("set-cookie"))
    assert "set-cookie" not in console.ask("GET", path, heads={"Cookie": f"{name}={session}"}).heads


def test_s49_s50_a_session_is_of_the_port_it_began_at(console):
    """Two consoles of a home in one browser are not in each other's way; and who came to know a session where our port once was
    has nothing where we are now."""
    page = console.log_in()
    second = Console.on(console.instance, int(console.instance.ok("web", "--port", "0").partition("localhost:")[2].split("/")[0]))
    try:
        assert second.port != console.port
        other = second.log_in()
        assert other["Cookie"].partition("=")[0] != page["Cookie"].partition("=")[0]
        renamed = {**page, "Cookie": f"{other['Cookie'].partition('=')[0]}={page['Cookie'].partition('=')[2]}"}
        assert second.ask("GET", "/x", heads=renamed).status == 401 and second.ask("GET", "/x", heads=page).status == 401
        both = f"{page['Cookie']}; {other['Cookie']}"
        assert console.ask("GET", "/x", heads={**page, "Cookie": both}).status == 404
        assert second.ask("GET", "/x", heads={**other, "Cookie": both}).status == 404
    finally:
        (line,) = [line for line in console.instance.ok("web", "--list").splitlines() if f":{second.port}" in line]
        pid = int(line.split("pid ")[1].split()[0])
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid), "the end of the second console")


def test_s49_the_cookie_is_of_this_home_alone_and_no_script_sees_it(console, other):
    told = console.ask("POST", "/api/auth/login", {"password": console.token}).heads["set-cookie"]
    assert "HttpOnly" in told and "SameSite=strict" in told and "Path=/" in told and "Secure" not in told
    assert other.log_in()["Cookie"].partition("=")[0] != told.partition("=")[0]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""])
def test_s11_a_body_that_a_form_could_send_is_refused(console, kind):
    heads = {"Authorization": f"Bearer {console.token}", "Content-Type": kind}
    assert console.ask("POST", "/api/auth/logout", heads=heads, raw=b'{"password": "x"}').status == 415
    assert console.ask("POST", "/api/auth/login", heads={"Content-Type": kind}, raw=b'{"password": "x"}').status == 415


def test_s15_no_other_page_shows_ours_in_a_frame_and_no_inline_script_runs(console):
    told = console.ask("GET", "/ui/gpu")
    policy = told.heads["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert told.heads["x-content-type-options"] == "nosniff"
    nonces = {console.ask("GET", "/ui/gpu").heads["content-security-policy"] for _ in range(3)}
    assert len(nonces) == 3


def test_s16_a_session_ends_with_its_logout_and_with_its_token(console):
    one, other = console.log_in(), console.log_in()
    assert one["Cookie"] != other["Cookie"] and one["X-Jostle-Key"] != other["X-Jostle-Key"]
    assert console.ask("POST", "/api/auth/logout", heads=one).json["success"] is True
    assert console.ask("GET", "/x", heads=one).status == 401
    assert console.ask("GET", "/x", heads=other).status == 404
    old, console.token = console.token, console.instance.ok("web", "--token", "--new").strip()
    assert console.ask("GET", "/x", heads=other).status == 401
    assert console.script("GET", "/x", token=old).status == 401
    assert console.script("GET", "/x").status == 404


def test_s16_a_session_outlives_a_restart_of_the_console(console):
    page = console.log_in()
    console.instance.ok("web", "--stop")
    with kept(console.port):
        console.open(console.port)
    assert console.ask("GET", "/x", heads=page).status == 404


def test_a_code_is_good_for_one_login(console):
    code = console.new_code()
    assert console.log_in(code)
    told = console.ask("POST", "/api/auth/login", {"password": code})
    assert (told.status, told.json["success"], told.json["key"]) == (200, False, None) and "set-cookie" not in told.heads
    assert console.log_in(console.new_code())


def test_a_code_is_too_old_after_ten_minutes(console):
    code = console.new_code()
    for entry in os.scandir(console.instance.home / "web" / "codes"):
        os.utime(entry.path, (entry.stat().st_atime, entry.stat().st_mtime - 601))
    assert console.ask("POST", "/api/auth/login", {"password": code}).json["success"] is False


@pytest.mark.parametrize("where", ["/?next=//evil.com", "/ui?next=https://evil.com", "/?next=%2f%2fe", "/ui/?next=/\\evil.com"])
def test_s17_no_address_leads_elsewhere(console, where):
    told = console.ask("GET", where)
    assert told.status == 307 and told.heads["location"] == "/ui/gpu"


PATHS = ["../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "assets/../../app.py", "/etc/passwd", "..%2fapp.py", "..%c0%af"]


@pytest.mark.parametrize("path", [f"/ui/{path}" for path in PATHS])
def test_s18_the_page_has_no_file_but_its_own(console, path):
    told = console.ask("GET", path)
    assert told.status in (200, 404)
    assert b"root:" not in told.body and b"import" not in told.body


def test_s27_who_may_only_read_changes_nothing(console):
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    assert reader != console.token
    assert console.script("GET", "/x", token=reader).status == 404
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert console.script(method, "/x", token=reader).status == 403
    page = console.log_in(reader)
    assert console.ask("GET", "/api/auth/check", heads=page).json["rights"] == "read"
    assert console.ask("POST", "/x", heads=page).status == 403
    assert console.ask("POST", "/api/auth/logout", heads=page).status == 200


BODIES = [
    b"[" * 10_000 + b"]" * 10_000, b'{"password": "a", "password": "b"}', b'{"password": NaN}', b'{"password": 1e999}',
    b'{"password": "\\ud800"}', b"\xff\xfe", b"{", b'{"password": ' + b"9" * 100_000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_s31_a_body_that_means_two_things_or_nothing_is_refused(console, body):
    told = console.ask("POST", "/api/auth/login", heads={"Content-Type": "application/json"}, raw=body)
    assert told.status == 400 and told.json["code"] == "invalid"


def test_s31_a_body_without_end_is_not_read_to_its_end(console):
    head = b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert b" 413 " in console.bytes(head + b"Content-Length: 100000000\r\n\r\n{")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", console.port), timeout=30) as sock:
        sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        got = b""
        try:
            for _ in range(200):
                sock.sendall(chunk)
        except OSError:
            pass  # it hung up, which is right
        try:
            got = sock.recv(100)
        except OSError:
            pass
    assert got == b"" or b" 413 " in got
    assert console.ask("GET", "/api/health").status == 200


SMUGGLED = [
    b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /api/health HTTP/1.1\nHost: localhost\n\n",
    b"GET /api/health HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
    b"GET http://localhost/api/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/health\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("sent", SMUGGLED, ids=range(len(SMUGGLED)))
def test_s45_s46_what_two_programs_could_read_differently_is_read_by_none(console, sent):
    got = console.bytes(sent, until_closed=False)
    assert got.split(b"\r\n")[0].split(b" ")[1] in (b"400", b"501"), got[:200]


def test_s43_the_token_is_in_no_command_line_environment_or_log(console):
    console.log_in()
    console.ask("POST", "/api/auth/login", {"password": "wrong-" + console.token})
    places = [*(f"/proc/{console.pid}/{name}" for name in ("cmdline", "environ")), console.instance.home / "web" / "web.log"]
    for place in places:
        with open(place, "rb") as f:
            assert console.token.encode() not in f.read(), place


def test_s38_nothing_of_the_console_is_open_to_others_whatever_the_umask(instance):
    try:
        instance.ok("web", "--port", "0", str(instance.work), umask=0)
        found = modes(instance.home / "web")
        assert len(found) > 6 and (instance.home / "web" / "workspace").exists()
        assert [str(path) for path, mode in found.items() if mode & 0o077] == []
    finally:
        instance.ok("web", "--stop")


STRANGER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
for family, address in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_INET6, ("::1", int(sys.argv[1])))):
    with socket.socket(family) as sock:
        try:
            sock.connect(address)
        except OSError:
            continue
        sock.sendall(sys.argv[2].encode())
        print(sock.recv(1000).split(b"\\r\\n")[0].decode())
try:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(sys.argv[3])
        print("connected")
except OSError as e:
    print(type(e).__name__)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_s50_another_user_of_this_host_gets_nothing_not_even_the_page_and_with_the_token(console):
    request = f"GET /ui/gpu HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {console.token}\r\n\r\n"
    path = str(console.instance.home / "web" / f"{console.port}.sock")
    argv = [sys.executable, "-c", STRANGER, str(console.port), request, path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    told = done.stdout.split("\n")[:-1]
    assert set(told[:-1]) == {"HTTP/1.1 403 Forbidden"} and told[-1] == "PermissionError", (told, done.stderr)
    assert console.script("GET", "/x").status == 404


def test_s50_a_port_that_is_taken_is_told_loudly_and_both_families_are_ours(instance):
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        code, out, err = instance.run("web", "--port", str(port))
        try:
            assert code == 0 and f"port {port} is taken" in err and f":{port}/" not in out
            mine = int(out.partition("localhost:")[2].partition("/")[0])
            for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                with socket.socket(family) as another, pytest.raises(OSError):
                    another.bind((address, mine))
        finally:
            instance.ok("web", "--stop")


def test_no_answer_waits_until_its_head_was_acknowledged():
    """A connection that gathers small pieces would hold the body back for the 40 ms after which the other side says that it has
    the head."""
    listeners = bound(None, 0)
    try:
        for listener in listeners:
            with socket.socket(listener.family) as caller:
                caller.connect(listener.getsockname())
                with listener.accept()[0] as connection:
                    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    finally:
        for listener in listeners:
            listener.close()


def test_the_unix_socket_serves_the_same_to_its_owner(console):
    path = console.instance.home / "web" / f"{console.port}.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost:8000\r\nConnection: close\r\n\r\n")
        got = b""
        while part := sock.recv(1000):
            got += part
    assert got.startswith(b"HTTP/1.1 200") and got.endswith(b'{"ok":true}')


def test_a_console_is_listed_used_again_and_gone_with_the_engine(instance):
    instance.up("sim:1x24")
    url = instance.ok("web", "--port", "0")
    first = instance.ok("web", "--list")
    assert instance.ok("web").partition("#")[0] == url.partition("#")[0]  # the same one
    assert instance.ok("web", "--list") == first
    pid = int(first.split("pid ")[1].split()[0])
    code, _, err = instance.run("down")
    assert code == 0 and "the console is down" in err
    until(lambda: not alive(pid), "the end of the console")
    assert instance.run("web", "--url")[0] == 3


def test_up_starts_both_and_prints_where_to_log_in(instance):
    code, out, err = instance.run("up", "--gpus", "sim:1x24", "--port", "0", env={"JOSTLE_WEB": ""})
    assert code == 0 and out.startswith("http://localhost:") and "/ui/#code=" in out and "ssh -L" in err
    instance.ok("down")
    assert instance.run("up", "--gpus", "sim:1x24", "--no-web", env={"JOSTLE_WEB": ""})[1] == ""


def port_and_pid(instance):
    (line,) = instance.ok("web", "--list").splitlines()
    return line.partition(":")[2].split()[0], line.split("pid ")[1].split()[0]


def test_a_home_has_one_console_and_it_takes_up_the_workspace_that_is_named(instance):
    """Whoever is logged in stays so; a second one is a port that is named."""
    env = {"JOSTLE_WEB": ""}
    first, second = instance.root / "first", instance.root / "second"
    first.mkdir(), second.mkdir()
    try:
        with kept() as free:
            port = str(free)
            instance.run("up", "--gpus", "sim:1x24", "--port", port, env=env)
        plain = port_and_pid(instance)
        console = Console.on(instance, int(port))
        heads = console.log_in()
        for space in (first, second):
            code, out, err = instance.run("up", str(space), env=env)
            assert code == 0 and f"localhost:{port}/" in out and "taken" not in err
            assert f"the console on port {port} has started anew; its workspace: {space}\n" in err
            assert port_and_pid(instance)[0] == port  # and there is no other
            assert console.ask("GET", "/api/v1/workspaces", heads=heads).json["workspaces"][0]["path"] == str(space)
        last = port_and_pid(instance)
        assert last != plain
        code, out, err = instance.run("up", env=env)
        assert f"localhost:{port}/" in out and "anew" not in err and port_and_pid(instance) == last
        assert f"  workspace {second}  " in instance.ok("web", "--list")
        instance.ok("web", str(first), "--port", "0")
        assert len(instance.ok("web", "--list").splitlines()) == 2
        assert f"localhost:{port}/" not in instance.run("up", env=env)[1]  # the one that was used last
        assert f"localhost:{port}/" in instance.run("up", str(second), env=env)[1]
        assert len(instance.ok("web", "--list").splitlines()) == 2
    finally:
        instance.ok("web", "--stop")


def test_a_console_has_the_options_that_are_said_until_others_are(instance):
    (instance.root / "space").mkdir()

    def status(host):
        return Console.on(instance, int(port_and_pid(instance)[0])).ask("GET", "/api/health", heads={"Host": host}).status

    try:
        instance.ok("web", "--port", "0")
        port = port_and_pid(instance)[0]
        assert status("gpus.example") == 400
        for words in (("--public-url", "https://gpus.example"), (str(instance.root / "space"),)):
            instance.ok("web", *words)
            assert status("gpus.example") == 200  # its name is allowed
        instance.ok("web", "--public-url", "https://cards.example")
        assert (status("gpus.example"), status("cards.example")) == (400, 200)
        assert port_and_pid(instance)[0] == port and f"workspace {instance.root / 'space'}" in instance.ok("web", "--list")
    finally:
        instance.ok("web", "--stop")


@pytest.mark.parametrize("url", ["foo", "ftp://gpus.example", "https://", "https://gpus.example/#x"])
def test_an_address_for_browsers_that_is_none_is_refused(instance, url):
    code, out, err = instance.run("web", "--public-url", url)
    assert (code, out) == (2, "") and "such as https://gpus.example" in err and instance.ok("web", "--list") == ""


def test_up_without_the_packages_starts_the_engine_and_says_so(instance, tmp_path):
    hides = "None if name == 'fastapi' else found(name, package)"
    text = f"import importlib.util as u\nfound = u.find_spec\nu.find_spec = lambda name, package=None: {hides}\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    env = {"JOSTLE_WEB": "", "PYTHONPATH": f"{tmp_path}:{instance.env['PYTHONPATH']}"}
    code, out, err = instance.run("up", "--gpus", "sim:1x24", env=env)
    assert (code, out) == (0, "") and "jostle[web]" in err and "the engine is up" in err
