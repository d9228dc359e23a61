"""Who speaks slowly, without end or in floods (S45): what it costs is bounded, and everybody else is answered.

The patience of the process is a matter of seconds, so here the same code is served from this process with less of it.
"""

import asyncio
import contextlib
import resource
import socket
import threading

import pytest
import uvicorn

from jostle.web import gate, protocol
from jostle.web.app import app
from jostle.web.instances import Wanted
from jostle.web.server import bound
from jostle.web.site import Site
from tests.e2e.instance import PATIENCE, until

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Served:
    def __init__(self, home):
        self.site = Site(Wanted(home=str(home)))
        self.token = self.site.secrets.token()
        self.sockets = bound(None, 0)
        self.port = self.sockets[0].getsockname()[1]
        self.config = uvicorn.Config(
            app(self.site), http=protocol.Connection, ws="none", lifespan="off", log_level="error",
            h11_max_incomplete_event_size=32 << 10,
        )  # fmt: skip
        self.server = uvicorn.Server(self.config)
        self.server.capture_signals = contextlib.nullcontext
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(self.sockets)))
        self.thread.start()

    def dial(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def answers(self):
        with patient(), self.dial() as sock:
            sock.sendall(HEALTH)
            return read(sock).startswith(b"HTTP/1.1 200")

    def close(self):
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        for sock in self.sockets:
            sock.close()


@contextlib.contextmanager
def patient():
    """For who speaks as fast as this host lets him: a connection that is opened meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "HEAD_WITHIN", PATIENCE)
        yield


def read(sock):
    """All that comes, until the other end has had enough."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65536):
            got += part
    return got


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_WITHIN", 0.5)
    monkeypatch.setattr(protocol, "READ_WITHIN", 0.5)
    monkeypatch.setattr(gate, "BODY_WITHIN", 0.5)
    made = Served(tmp_path)
    yield made
    made.close()


def dribble(sock, sent):
    """A byte at a time, for ever, if one lets it."""
    with contextlib.suppress(OSError):
        for n in range(10_000):
            sock.sendall(sent(n))
            if threading.Event().wait(0.02):
                break


BEGUN = b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOWLY = {
    "nothing": (b"", None),
    "a head, byte by byte": (b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: ", lambda n: b"x"),
    "headers without end": (b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n", lambda n: b"X-%d: y\r\n" % n),
    "a body, byte by byte": (BEGUN + b"Content-Length: 5000\r\n\r\n{", lambda n: b" "),
    "chunks, one by one": (BEGUN + b"Transfer-Encoding: chunked\r\n\r\n", lambda n: b"1\r\n \r\n"),
    "a second request, byte by byte": (b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/he", lambda n: b"a"),
}


@pytest.mark.parametrize("how", SLOWLY)
def test_s45_who_speaks_slowly_is_hung_up_on(served, how):
    begun, more = SLOWLY[how]
    with served.dial() as sock:
        sock.sendall(begun)
        talking = threading.Thread(target=dribble, args=(sock, more)) if more else None
        if talking:
            talking.start()
        got = read(sock)  # comes to an end
        if talking:
            talking.join(PATIENCE)
    assert got == b"" or got.split(b" ")[1] in (b"408", b"400", b"200"), got[:200]
    assert b"success" not in got and served.answers()


def test_s45_who_does_not_read_what_he_asked_for_is_hung_up_on(served, monkeypatch):
    """A page of megabytes, which waits in our memory for as long as we are patient."""
    files = served.config.app.app.state.page.files
    name = next(iter(files))
    monkeypatch.setitem(files, "large.txt", files[name]._replace(kind="text/plain", content=b"x" * (64 << 20), packed=None))
    with patient(), served.dial() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(b"GET /ui/large.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(12) == b"HTTP/1.1 200"
        until(lambda: not served.server.server_state.connections, "that it is given up")
        assert served.answers()


def test_s45_a_stream_that_is_read_lasts_longer_than_that_patience(served):
    with patient(), served.dial() as sock:
        sock.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n\r\n".encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
        quiet = threading.Event()
        quiet.wait(1.5)  # three times as long
        assert served.server.server_state.connections and served.answers()
        sock.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            assert sock.recv(1 << 20) != b""


@pytest.fixture
def files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this host allows too few open files for a thousand clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def begun_peak(pid):
    """The peak from now on begins with what it has now; else what another test needed would hide what this one needs."""
    with open(f"/proc/{pid}/clear_refs", "w") as f:
        f.write("5")
    return peak(pid)


def peak(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM"))


def test_s45_of_a_thousand_streams_as_many_are_served_as_there_is_room_for(console, files):
    asked = f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {console.token}\r\n\r\n".encode()
    pid = console.pid
    before = peak(pid)
    with contextlib.ExitStack() as ends:
        crowd = [ends.enter_context(socket.create_connection(("127.0.0.1", console.port), timeout=PATIENCE)) for _ in range(1000)]
        heard = []
        for sock in crowd:
            with contextlib.suppress(ConnectionError):
                sock.sendall(asked)
            try:
                heard.append(sock.recv(4096).split(b" ")[1])
            except (ConnectionError, IndexError):
                heard.append(b"503")  # its refusal was lost with the connection
        assert set(heard) == {b"200", b"503"} and 100 <= heard.count(b"200") <= 150
        assert peak(pid) - before < 100, "MiB"
    until(lambda: console.bytes(HEALTH).startswith(b"HTTP/1.1 200"), "an answer")
    until(lambda: console.script("GET", "/api/v1/wait?ids=all&within=0").status != 503, "room")


FLOODS = {
    "multipart": ("POST", "/api/v1/add", {"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\n\r\n\r\n" * 300_000, 415),
    "ranges": ("GET", "/ui/gpu", {"Range": "bytes=" + ",".join(f"{n}-{n}" for n in range(2000))}, None, 200),
    "more ranges": ("GET", "/ui/gpu", {"Range": "bytes=" + ",".join("0-" for _ in range(20_000))}, None, 400),
    "a head of 64 kB": ("GET", "/api/health", {"X": "x" * 65_000}, None, 400),
    "a query of 64 kB": ("GET", "/api/health?" + "x" * 65_000, {}, None, 400),
    "headers": ("GET", "/api/health", {f"X-{n}": "" for n in range(3000)}, None, (200, 400)),
    "cookies": ("GET", "/api/health", {"Cookie": "a=b;" * 5000}, None, 200),
}


@pytest.mark.parametrize("what", FLOODS)
def test_s21_s45_a_flood_in_one_request_is_answered_once_and_costs_little(console, what):
    method, path, heads, body, status = FLOODS[what]
    pid = console.pid
    before = peak(pid)
    told = console.ask(method, path, heads={"Authorization": f"Bearer {console.token}", **heads}, raw=body)
    assert told.status in (status if isinstance(status, tuple) else (status,))
    assert len(told.body) < 1 << 20 and "content-range" not in told.heads and peak(pid) - before < 100
