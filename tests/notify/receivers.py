"""Real receivers on loopback: mail servers and HTTP servers, good ones and bad ones."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import email
import email.policy
import functools
import gc
import http.server
import json
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult

CERTIFICATE = str(Path(__file__).with_name("localhost.pem"))  # of nobody: its key lies beside it
PASSWORD = "correct horse battery staple"


def server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


class Letters:
    """What a mail server has taken. `answers`: what it says to each message, the last one for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers) or ["250 taken"]
        self.taken: list[Any] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.recipients: list[list[str]] = []
        self.tls: list[bool] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.startswith("250"):
            self.taken.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
            self.recipients.append(envelope.rcpt_tos)
            self.tls.append(session.ssl is not None)
        return answer

    def login(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)


@contextlib.contextmanager
def mail_server(letters: Letters, *, tls: bool = False, port: int = 0, **options: Any) -> Iterator[int]:
    """aiosmtpd, in a loop of its own; `tls` from the first byte. Its port."""
    loop = asyncio.new_event_loop()

    async def served() -> asyncio.Server:
        factory = functools.partial(SMTP, letters, loop=loop, hostname="localhost", **options)
        return await loop.create_server(factory, "127.0.0.1", port, ssl=server_side() if tls else None)

    async def over() -> None:
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(served(), loop).result(60)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        with warnings.catch_warnings():  # who is still connected is cut off: here, and not in whatever test the garbage is found
            warnings.simplefilter("ignore", ResourceWarning)
            asyncio.run_coroutine_threadsafe(over(), loop).result(60)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(60)
            loop.close()
            gc.collect()


@contextlib.contextmanager
def socket_server(serve: Callable[[socket.socket], None], port: int = 0) -> Iterator[int]:
    """A server whose every connection is served by a function, each in a thread; the function's errors are those of a connection
    that the other side has closed."""
    listener = socket.create_server(("127.0.0.1", port))
    over = threading.Event()

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            serve(connection)

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


_kept: list[socket.socket] = []


@atexit.register
def _let_go() -> None:
    for one in _kept:
        one.close()


def free_port() -> int:
    """One where nobody listens, and nobody but these servers can: it is kept for as long as this process lives."""
    one = socket.socket()
    _kept.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return int(one.getsockname()[1])


class Posts:
    """What an HTTP server was sent. `answers`: (status, body, headers) to each, the last one for ever."""

    def __init__(self, *answers: tuple[int, bytes, dict[str, str]]) -> None:
        self.answers = list(answers) or [(200, b"ok", {})]
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]


@contextlib.contextmanager
def http_server(posts: Posts, *, tls: bool = False, port: int = 0) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posts.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status, said, headers = posts.answers.pop(0) if len(posts.answers) > 1 else posts.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None: ...

    server = Server(("127.0.0.1", port), Handler)
    if tls:
        server.socket = server_side().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
