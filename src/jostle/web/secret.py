"""The secrets of the web process, as files of the home: two tokens, codes for one login, sessions.

Rules: each is ours alone (0600, in directories of 0700) from its first instant, and one that is not is refused. Nothing is kept
in memory: several web processes of one home, and `jostle web --url` beside them, see the same, and a restart ends no session.
What need not be shown again lies there by its digest only. Standard library only, for `jostle web` imports this.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from jostle.errors import Forbidden, Invalid
from jostle.store.private import check_private, private_folder
from jostle.web.instances import folder
from jostle.wording.flaws import flaw

ALL, READ = "all", "read"
TOKENS = {ALL: "token", READ: "read-token"}
CODE_FOR = 600.0  # s in which a code is good for a login
SESSION_FOR = 30 * 86400.0
MOST = 200  # sessions, and codes; beyond that the oldest go
LEAST = 20  # characters of a token that a person has chosen
WELL_KNOWN = ("admin", "password", "secret", "token", "123456", "qwerty", "letmein", "changeme", "jostle")


class Login(NamedTuple):
    """What a browser gets, once."""

    cookie: str
    key: str
    rights: str


class Known(NamedTuple):
    """A session as it lies here."""

    digest: str  # of its cookie
    key: str  # its digest
    rights: str


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Secrets:
    """Of a home, as its console at `port` sees them: a session is of the port that it began at. Who takes our port while nobody
    serves there is sent its cookie and may read its key; where we serve then, they are worth nothing."""

    port = 0

    def __init__(self, home: str) -> None:
        self.folder = folder(home)
        self.codes, self.sessions = (os.path.join(self.folder, name) for name in ("codes", "sessions"))
        for path in (self.codes, self.sessions):
            private_folder(path)

    # --- tokens

    def token(self, rights: str = ALL) -> str:
        """Made at its first use; Forbidden if its file is not as we keep it."""
        path = os.path.join(self.folder, TOKENS[rights])
        if not os.path.lexists(path):
            try:
                _link_new(path, secrets.token_urlsafe(32))
            except FileExistsError:
                pass  # another of our processes was quicker
        return _kept(path)

    def known_token(self, rights: str) -> str | None:
        return self.token(rights) if os.path.lexists(os.path.join(self.folder, TOKENS[rights])) else None

    def rotate(self, rights: str = ALL, chosen: str | None = None) -> str:
        """Another token; whoever came in with the old one is out."""
        token = secrets.token_urlsafe(32) if chosen is None else _checked(chosen)
        path = os.path.join(self.folder, TOKENS[rights])
        fresh = f"{path}.{secrets.token_hex(8)}"
        _write_new(fresh, token)
        os.replace(fresh, path)
        return token

    def rights_of(self, token: str) -> str | None:
        return self.rights_by(digest(token))

    def rights_by(self, token_digest: str) -> str | None:
        """What the token with this digest allows; both are always compared, in a time that tells nothing of them."""
        allowed = None
        for rights in TOKENS:
            known = self.known_token(rights)
            if known is not None and hmac.compare_digest(token_digest, digest(known)):
                allowed = rights
        return allowed

    # --- codes for one login

    def code(self) -> str:
        _sweep(self.codes, CODE_FOR)
        made = secrets.token_urlsafe(24)
        _write_new(os.path.join(self.codes, digest(made)), "")
        return made

    def redeem(self, code: str) -> bool:
        """Whether this code is good; it is not any more, then. Of two who come with it at once one finds it."""
        path = os.path.join(self.codes, digest(code))
        try:
            made = os.lstat(path).st_mtime
            os.unlink(path)
        except OSError:
            return False
        return 0 <= time.time() - made < CODE_FOR

    # --- sessions

    def cookie_name(self) -> str:
        """Of this home and port alone: cookies do not know ports, and another console of ours, or a neighbour's, has another."""
        path = os.path.join(self.folder, "cookie-name")
        if not os.path.lexists(path):
            try:
                _link_new(path, f"jostle-{secrets.token_hex(8)}")
            except FileExistsError:
                pass
        return f"{_kept(path)}-{self.port}"

    def log_in(self, password: str) -> Login | None:
        rights = self.rights_of(password) or (ALL if self.redeem(password) else None)
        if rights is None:
            return None
        _sweep(self.sessions, SESSION_FOR)
        login = Login(secrets.token_urlsafe(32), secrets.token_urlsafe(32), rights)
        record = {"key": digest(login.key), "rights": rights, "token": digest(self.token(rights)), "port": self.port}
        _write_new(os.path.join(self.sessions, digest(login.cookie)), json.dumps(record))
        return login

    def session(self, cookie: str) -> Known | None:
        return self.session_by(digest(cookie))

    def session_by(self, name: str) -> Known | None:
        """The session of the cookie with this digest, unless it is over, of another port, or its token has been changed since."""
        path = os.path.join(self.sessions, name)
        try:
            if time.time() - os.lstat(path).st_mtime > SESSION_FOR:
                return None
            record = json.loads(_kept(path))
            known = Known(name, str(record["key"]), str(record["rights"]))
            token = self.known_token(known.rights)
            same = token is not None and hmac.compare_digest(str(record["token"]), digest(token)) and record["port"] == self.port
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return known if same else None

    def log_out(self, known: Known) -> None:
        try:
            os.unlink(os.path.join(self.sessions, known.digest))
        except FileNotFoundError:
            pass


def _checked(token: str) -> str:
    if len(token) < LEAST or len(set(token)) < 8 or any(word in token.lower() for word in WELL_KNOWN):
        raise Invalid(flaw("secret_weak", least=LEAST))
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > 500:
        raise Invalid(flaw("secret_characters"))
    return token


def _kept(path: str) -> str:
    """The content of a file that nobody else could have written or read."""
    check_private(path)
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Forbidden(f"{path} is not a regular file; remove it, and a new one is made")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as f:
        text = f.read(4096).decode("utf-8", "replace").strip()
    if not text or (os.path.basename(path) in TOKENS.values() and len(text) < LEAST):
        raise Forbidden(f"{path} is empty or too short to be a secret: remove it, and a new one is made")
    return text


def _write_new(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as f:
        f.write(text)


def _link_new(path: str, text: str) -> None:
    """A file that is complete when it appears; FileExistsError if there is one."""
    fresh = f"{path}.{secrets.token_hex(8)}"
    _write_new(fresh, text)
    try:
        os.link(fresh, path)
    finally:
        os.unlink(fresh)


def _sweep(directory: str, kept_for: float) -> None:
    """Removes what is over, and of the rest the oldest if there are too many."""
    now = time.time()
    newest_first = sorted(_dated(directory), reverse=True)
    for k, (at, path) in enumerate(newest_first):
        if now - at > kept_for or k >= MOST:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass


def _dated(directory: str) -> Iterator[tuple[float, str]]:
    for entry in os.scandir(directory):
        try:
            yield entry.stat(follow_symlinks=False).st_mtime, entry.path
        except FileNotFoundError:
            continue  # removed by another process of ours
