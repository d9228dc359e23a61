"""The one gate: what every call must bring before anything of it is looked at (RELIABILITY S1–S16, S31, S46, S49, S50).

Rules, in this order: a sane request; a Host name of ours; the page's files are open. Then an Origin, if one is told, is our own,
and so is the site that the browser says fetched it. Open are the check, the login and the health. Everything else needs a token
(a script), or the cookie of a session *and* its key (a page: cookies know no ports, so a neighbour's page has ours sent along). A
read-only caller reads. Bodies are JSON, whole, bounded, and mean one thing only.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jostle.errors import Forbidden
from jostle.web.secret import ALL, Known, digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from jostle.web.secret import Secrets

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

LARGEST = 4 << 20  # bytes of a body
HEAD = 32 << 10  # bytes of headers and query
BODY_WITHIN = 30.0
DRAINED, DRAINED_WITHIN = 1 << 20, 1.0
DEEPEST = 64  # levels of JSON
WRONG = 60  # wrong tokens in so many seconds …
WITHIN = 60.0
OPEN = {("GET", "/api/auth/check"), ("POST", "/api/auth/login"), ("GET", "/api/health")}
ANYBODY = {("POST", "/api/auth/logout")}  # who may only read may leave, too
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
UNSAFE = "a secret of this console is not safe, so nobody is let in: `jostle web --token` (or `--token --read-only`) tells why"
ORDINARY = re.compile(r"/[\w./-]*", re.ASCII)  # a path that can be said in a header
STRAYS = 6  # parts of a path, each of which may have a cookie of its own
LOOPBACK = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.ASCII)
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True)
class Caller:
    rights: str  # all | read
    who: str  # for the audit
    session: Known | None = None
    token: str = ""  # its digest, if it came with one

    @property
    def reads_only(self) -> bool:
        return self.rights != ALL

    def still_welcome(self, secrets: Secrets) -> bool:
        """Whether what it came with is good yet."""
        try:
            if self.session is not None:
                return secrets.session_by(self.session.digest) == self.session
            return secrets.rights_by(self.token) == self.rights
        except Forbidden:
            return False  # a file of ours is open to others: nobody new would come in, either


class Refused(Exception):
    def __init__(self, status: int, text: str = "", code: str = "forbidden") -> None:
        super().__init__(text)
        self.status, self.text, self.code = status, text, code


class Wrong:
    """How many wrong tokens came lately: from a number on they are not even answered as such. The right one always counts."""

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=10_000)

    def note(self) -> int:
        now = time.monotonic()
        self.times.append(now)
        while self.times[0] < now - WITHIN:
            self.times.popleft()
        return len(self.times)


class Heads:
    """The headers of a request; one that must be there once is refused if it is doubled."""

    def __init__(self, scope: Scope) -> None:
        self.all: list[tuple[bytes, bytes]] = list(scope["headers"])

    def each(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self.all if key == name]

    def one(self, name: bytes) -> str | None:
        values = self.each(name)
        if len(values) > 1:
            raise Refused(400, f"more than one {name.decode()} header", "invalid")
        return values[0] if values else None


class Gate:
    def __init__(
        self, app: Any, secrets: Secrets, *, public_url: str | None = None, bind: str | None = None, classic: bool = False
    ) -> None:  # fmt: skip
        self.app, self.secrets, self.classic = app, secrets, classic and bind is None
        self.cookie = secrets.cookie_name()
        self.wrong = Wrong()
        self.origins = {public_url.rstrip("/")} if public_url else set()
        self.names = {urlsplit(public_url).netloc} if public_url else set()
        self.bound = re.escape(bind) if bind else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # there is none, and none gets in
            return
        heads = Heads(scope)
        doubled = len(self._cookies(heads)) > 1
        send, coming = _headed(send, self._strays(scope["path"]) if doubled else []), Coming(receive)
        try:
            caller = self._caller(scope)
            receive = await _body(scope, coming)
        except Refused as e:
            await _refuse(send, e, close=not await coming.drained())
            return
        scope["state"] = {**scope.get("state", {}), "caller": caller}
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller | None:
        """Who calls; None where anybody may."""
        heads, method, path = Heads(scope), scope["method"], scope["path"]
        _sane(scope, heads)
        host = heads.one(b"host")
        if host is None or not self._ours(host):
            raise Refused(400, "this Host is not served here; expected localhost, or the name that was configured", "invalid")
        if method in ("GET", "HEAD") and of_page(path):
            return None
        origin, site = heads.one(b"origin"), heads.one(b"sec-fetch-site")
        if origin is not None and origin not in self.origins and (host in self.names or origin != f"{scope['scheme']}://{host}"):
            raise Refused(403, "the call comes from a page of another origin")
        if site is not None and site not in ("same-origin", "none"):
            raise Refused(403, "the call comes from a page of another site")
        try:
            caller = self._proven(heads, path, site, anybody=(method, path) in OPEN)
        except Forbidden:  # it names the file: for its owner, who asks on the terminal
            raise Refused(403, UNSAFE) from None
        if (method, path) in OPEN:
            return caller
        if caller is None:
            guessed = heads.one(b"authorization") is not None
            raise Refused(429 if guessed and self.wrong.note() > WRONG else 401)
        if caller.reads_only and method not in ("GET", "HEAD") and (method, path) not in ANYBODY:
            raise Refused(403, "this token may look, and change nothing")
        return caller

    def _ours(self, host: str) -> bool:
        if LOOPBACK.fullmatch(host) or host in self.names:
            return True
        return self.bound is not None and re.fullmatch(rf"\[?{self.bound}\]?(?::\d{{1,5}})?", host) is not None

    def _cookies(self, heads: Heads) -> list[str]:
        """The sessions that a browser says it has: one, unless a page of another port has put a second beside ours."""
        return [
            value.strip()
            for line in heads.each(b"cookie")
            for name, _, value in (part.partition("=") for part in line.split(";"))
            if name.strip() == self.cookie
        ]

    def _strays(self, path: str) -> list[tuple[bytes, bytes]]:
        """Takes a second cookie away again: it is of a path below ours, else it would have replaced ours, and two are none."""
        if not ORDINARY.fullmatch(path):
            return []
        ends = [k for k, letter in enumerate(path) if letter == "/" and k][:STRAYS]
        places = {place for k in (*ends, len(path)) for place in (path[:k], f"{path[:k]}/")}
        return [(b"set-cookie", f"{self.cookie}=; Path={place}; Max-Age=0".encode()) for place in sorted(places)]

    def _proven(self, heads: Heads, path: str, site: str | None, *, anybody: bool) -> Caller | None:
        bearer = heads.one(b"authorization")
        if bearer is not None:
            kind, _, token = bearer.partition(" ")
            rights = self.secrets.rights_of(token) if kind.lower() == "bearer" else None
            return Caller(rights, f"{rights} token", token=digest(token)) if rights else None
        cookies = self._cookies(heads)
        known = self.secrets.session(cookies[0]) if len(cookies) == 1 else None
        if known is None:
            return None
        key = heads.one(b"x-jostle-key")
        if key is not None and hmac.compare_digest(digest(key), known.key):
            return Caller(known.rights, f"session {known.digest[:8]}", known)
        alone = self.classic and site == "same-origin" and not path.startswith("/api/v1/")
        if key is None and (alone or path.startswith("/api/v1/download/")):  # whose ticket is the second proof
            return Caller(known.rights, f"session {known.digest[:8]}", known)
        if anybody:
            return None  # a new tab asks whether it has to log in, and one whose key went with its last tab does so
        raise Refused(403, "the key of this session is missing, or another's (X-Jostle-Key)", "key")


def of_page(path: str) -> bool:
    return path in ("/", "/ui", "/favicon.ico") or path.startswith("/ui/")


def _sane(scope: Scope, heads: Heads) -> None:
    """What two programs could read differently is read by none."""
    raw: bytes = scope.get("raw_path") or b""
    if not raw.startswith(b"/") or "\0" in scope["path"] or b"%00" in scope["query_string"]:
        raise Refused(400, "expected a path", "invalid")
    if scope["method"] not in METHODS:
        raise Refused(400, "unknown method", "invalid")
    if sum(len(name) + len(value) for name, value in heads.all) + len(scope["query_string"]) > HEAD:
        raise Refused(400, "the head of the request is too large", "invalid")
    length, coding = heads.one(b"content-length"), heads.one(b"transfer-encoding")
    if (length is not None and coding is not None) or (coding is not None and coding.strip().lower() != "chunked"):
        raise Refused(400, "how long the body is, is said twice or not understood", "invalid")
    if length is not None and int(length) > LARGEST:
        raise Refused(413, f"a body has at most {LARGEST:,} bytes", "invalid")


class Coming:
    """What is sent along with a request."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.over = False  # it has come to its end

    async def next(self) -> bytes:
        message = await self.receive()
        if message["type"] != "http.request":
            raise Refused(400, "the body was not sent to its end", "invalid")
        self.over = not message.get("more_body")
        part: bytes = message.get("body") or b""
        return part

    async def whole(self) -> bytes:
        parts, size = [], 0
        while not self.over:
            parts.append(await self.next())
            size += len(parts[-1])
            if size > LARGEST:
                raise Refused(413, f"a body has at most {LARGEST:,} bytes", "invalid")
        return b"".join(parts)

    async def drained(self) -> bool:
        """Whether the rest of a refused request is read to its end: else nothing more is heard on this connection. A little is
        read in any case, for who hangs up on somebody who still talks is not heard himself."""
        try:
            await asyncio.wait_for(self._drain(), DRAINED_WITHIN)
        except (Refused, asyncio.TimeoutError):
            pass
        return self.over

    async def _drain(self) -> None:
        size = 0
        while not self.over and size <= DRAINED:
            size += len(await self.next())


async def _body(scope: Scope, coming: Coming) -> Receive:
    """What the body is read from: whole, checked, and once."""
    heads = Heads(scope)
    kind = (heads.one(b"content-type") or "").partition(";")[0].strip().lower()
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        if heads.one(b"transfer-encoding") is not None or (heads.one(b"content-length") or "0") != "0":
            raise Refused(400, "a body where none is expected", "invalid")
        return coming.receive
    try:
        body = await asyncio.wait_for(coming.whole(), BODY_WITHIN)
    except asyncio.TimeoutError:
        raise Refused(408, "the body did not come in time", "invalid") from None
    if (body or kind) and kind != "application/json":
        raise Refused(415, "expected a body of type application/json", "invalid")
    if body:
        _one_meaning(body)
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await coming.receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _one_meaning(body: bytes) -> None:
    """JSON that every reader understands alike: no key twice, no NaN, no half of a character, no depth without end."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            raise ValueError("a key is there twice")
        return made

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        if _depth(value) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels")
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")  # infinity by 1e999, lone surrogates by \ud800
    except (ValueError, RecursionError) as e:
        raise Refused(400, f"the body is not understood: {e}", "invalid") from None


def _depth(value: Any) -> int:
    deep, level = 0, [value]
    while level and deep <= DEEPEST:
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        deep += 1
    return deep


def _headed(send: Send, more: list[tuple[bytes, bytes]]) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            theirs = {name.lower() for name, _ in message.get("headers") or ()}
            ours = [*((k, v) for k, v in HEADERS.items() if k not in theirs), *more]
            message["headers"] = [*(message.get("headers") or ()), *ours]
        await send(message)

    return headed


async def _refuse(send: Send, e: Refused, *, close: bool) -> None:
    body = json.dumps({"detail": e.text, "code": e.code}).encode() if e.text else b""
    heads = [(b"content-length", str(len(body)).encode())]
    if body:
        heads.append((b"content-type", b"application/json"))
    if e.status == 429:
        heads.append((b"retry-after", b"60"))
    if close:
        heads.append((b"connection", b"close"))  # what is left of its body is nobody's next request
    await send({"type": "http.response.start", "status": e.status, "headers": heads})
    await send({"type": "http.response.body", "body": body})
