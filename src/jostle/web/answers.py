"""Answers and refusals over HTTP. An error says what the same error says on a terminal; its kind decides the status."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from jostle.errors import Damaged, DiskFull, Forbidden, Invalid, JostleError, NoEngine, NotFound, Unwritten, Usage

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

STATUS: dict[type[JostleError], int] = {
    NotFound: 404, Forbidden: 403, NoEngine: 503, DiskFull: 507, Unwritten: 503, Damaged: 503,
}  # fmt: skip
SHOWN = 100  # flaws of files


class Answer(JSONResponse):
    """JSON in ASCII: a name that was never text passes, too."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


class Changed(JostleError):
    """What was to be saved over is not what it was."""

    code = "changed"


def status_of(e: JostleError, path: str) -> int:
    if isinstance(e, Changed):
        return 412
    if isinstance(e, Invalid | Usage):
        return 422 if path.startswith("/api/v1/") else 400
    return next((status for kind, status in STATUS.items() if isinstance(e, kind)), 409)


def told(e: JostleError) -> dict[str, Any]:
    said: dict[str, Any] = {"detail": str(e), "code": e.code}
    if hasattr(e, "flaws"):
        said["flaws"] = [{"file": file, "line": line, "text": text} for file, line, text in e.flaws[:SHOWN]]
    if hasattr(e, "refused"):
        said["refused"] = e.refused
    return said


def etag(content: bytes | None) -> str:
    """What a file holds, or that there is none."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"' if content is not None else '"none"'


def matched(request: Request, found: str) -> None:
    """Raises Changed if the caller has seen something else."""
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted.strip() not in ("*", found):
        raise Changed("it was changed meanwhile: read it again, and save over what you have seen")


def install(app: FastAPI) -> None:
    @app.exception_handler(JostleError)
    def refused(request: Request, e: JostleError) -> Response:
        return Answer(told(e), status_of(e, request.url.path))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, e: RequestValidationError) -> Response:
        flaws = [f"{'.'.join(map(str, one['loc'][1:])) or 'the body'}: {one['msg']}" for one in e.errors()[:SHOWN]]
        return Answer({"detail": "; ".join(flaws), "code": "invalid"}, 422 if request.url.path.startswith("/api/v1/") else 400)

    @app.exception_handler(HTTPException)
    def other(request: Request, e: HTTPException) -> Response:
        return Answer({"detail": e.detail, "code": "not_found" if e.status_code == 404 else "invalid"}, e.status_code, e.headers)

    @app.exception_handler(Exception)
    def broken(request: Request, e: Exception) -> Response:
        return Answer({"detail": "the web process made a mistake: its log says more", "code": "failed"}, 500)
