"""The page's files, read once: what is not among them is not there, so no path leads anywhere else.

Every other `/ui/…` is the page itself (its routes are its own). `__NONCE__` in it is a fresh nonce for each answer, which its
Content-Security-Policy allows for styles; scripts come from files only.
"""

from __future__ import annotations

import gzip
import mimetypes
import os
import secrets
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from jostle.web.answers import takes_gzip

routes = APIRouter(include_in_schema=False)
BUILT, PLAIN = (os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("page", "plain"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg+xml", "application/manifest+json")
LEAST = 1000  # bytes that are worth compressing


class File(NamedTuple):
    kind: str
    content: bytes
    packed: bytes | None  # gzip


class Page:
    def __init__(self, folder: str | None = None) -> None:
        folder = folder or (BUILT if os.path.exists(os.path.join(BUILT, "index.html")) else PLAIN)
        self.files = {name: _read(path) for name, path in _walk(folder)}

    def answer(self, path: str, packed: bool) -> Response:
        name = path.removeprefix("/ui").removeprefix("/")
        file = self.files.get(name)
        if file is None or name == "index.html":
            return self._index(packed) if not name.startswith("assets/") else Response(status_code=404)
        lasting = "public, max-age=31536000, immutable" if name.startswith("assets/") else "no-cache"
        return _packed(file.content, file.packed if packed else None, file.kind, {"cache-control": lasting})

    def _index(self, packed: bool) -> Response:
        nonce = secrets.token_urlsafe(16)
        content = self.files["index.html"].content.replace(b"__NONCE__", nonce.encode())
        heads = {"content-security-policy": POLICY.format(nonce=nonce), "cache-control": "no-store"}
        return _packed(content, gzip.compress(content) if packed else None, "text/html; charset=utf-8", heads)


def _packed(content: bytes, packed: bytes | None, kind: str, heads: dict[str, str]) -> Response:
    if packed is not None:
        return Response(packed, headers={**heads, "content-encoding": "gzip", "vary": "accept-encoding"}, media_type=kind)
    return Response(content, headers={**heads, "vary": "accept-encoding"}, media_type=kind)


def _walk(folder: str) -> list[tuple[str, str]]:
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return [(os.path.relpath(path, folder), path) for path in paths]


def _read(path: str) -> File:
    with open(path, "rb") as f:
        content = f.read()
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    packs = kind.startswith(COMPRESSED) and len(content) >= LEAST
    return File(kind, content, gzip.compress(content) if packs else None)


@routes.get("/")
@routes.get("/ui")
@routes.get("/ui/")
async def front() -> Response:
    return RedirectResponse("/ui/gpu")


@routes.get("/favicon.ico")
@routes.get("/ui/{path:path}")
async def page(request: Request) -> Response:
    files: Page = request.app.state.page
    path = request.url.path
    return files.answer("/ui/favicon.ico" if path == "/favicon.ico" else path, takes_gzip(request))
