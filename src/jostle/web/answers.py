"""Answers and refusals over HTTP. An error says what the same error says on a terminal; its kind decides the status."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Body
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BeforeValidator
from starlette.exceptions import HTTPException

from jostle.errors import Damaged, Declined, DiskFull, Forbidden, Invalid, JostleError, NoEngine, NotFound, Unwritten, Usage
from jostle.formats.flaws import BadFiles, sentence
from jostle.web import hidden
from jostle.wording.flaws import FlawText, flaw, worded

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

SHOWN = 100  # flaws of files
PACKED_FROM = 4096  # bytes of an answer that is worth compressing
Flag = Annotated[bool, BeforeValidator(lambda value: value == "" or value)]
"""Of a query: `?all` means `?all=true`."""
Values = Annotated[dict[str, Any], Body(title="Given")]
"""A body with keys that only its route knows. The title is that of openapi.json, after which clients name what they generate."""


class Answer(JSONResponse):
    """JSON in ASCII: a name that was never text passes, too."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


def takes_gzip(request: Request) -> bool:
    return "gzip" in (request.headers.get("accept-encoding") or "")


def large(content: Any, *, packed: bool) -> Answer:
    """One that may be long, compressed for who takes that. It must hold no secret of ours: the length of what is compressed tells
    of what is in it."""
    answer = Answer(content)
    if packed and len(answer.body) >= PACKED_FROM:
        answer.body = gzip.compress(bytes(answer.body), 1)
        answer.headers.update({"content-encoding": "gzip", "content-length": str(len(answer.body))})
    answer.headers["vary"] = "accept-encoding"
    return answer


class Changed(JostleError):
    """What was to be saved over is not what it was."""

    code = "changed"


class Busy(JostleError):
    """As much as may go on at once does; it was not begun, and can be asked for again."""

    code = "busy"


STATUS: dict[type[JostleError], int] = {
    NotFound: 404, Forbidden: 403, Changed: 412, NoEngine: 503, Busy: 503, DiskFull: 507, Unwritten: 503, Damaged: 503,
}  # fmt: skip


def status_of(e: JostleError, path: str) -> int:
    if isinstance(e, Invalid | Usage):
        return 422 if path.startswith("/api/v1/") else 400
    return next((status for kind, status in STATUS.items() if isinstance(e, kind)), 409)


def language(request: Request) -> str:
    chosen = request.query_params.get("lang") or request.headers.get("accept-language") or "en"
    return "zh" if chosen.lower().startswith("zh") else "en"


def problem(e: JostleError, lang: str, *, reads_only: bool = False) -> dict[str, Any]:
    """Who may only look is not told where files lie, nor what is wrong in them."""
    if reads_only:
        return {"detail": hidden.words(sentence(e, lang)), "code": e.code}
    answer: dict[str, Any] = {"detail": sentence(e, lang), "code": e.code}
    if isinstance(e, BadFiles):
        flaws = [{"file": file, "line": line, "text": worded(text, lang)} for file, line, text in e.flaws[:SHOWN] if file]
        answer |= {"flaws": flaws} if flaws else {}
    if isinstance(e, Declined):
        answer["declined"] = e.why
    if hasattr(e, "refused"):
        answer["refused"] = e.refused
    return answer


def etag(content: bytes | None) -> str:
    """What a file holds, or that there is none."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"' if content is not None else '"none"'


EXPECTED = {
    "missing": "asked_needed", "extra_forbidden": "asked_unknown", "json_invalid": "asked_json",
    "greater_than_equal": "asked_ge", "greater_than": "asked_gt", "less_than_equal": "asked_le", "less_than": "asked_lt",
    "too_long": "asked_long", "too_short": "asked_short", "string_too_long": "asked_text_long", "string_too_short": "asked_text",
}  # by the kind of a flaw, the code of its words
KINDS = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "finite": "a number", "string": "a text",
    "list": "a list", "dict": "a mapping", "model": "a mapping", "none": "null",
}  # fmt: skip
_ALTERNATIVE = re.compile(r"(int|str|float|bool)$|constrained-|(list|dict|function-\w+)\[")


def expected(wrong: Mapping[str, Any]) -> FlawText:
    """What is wrong with a value, in our words: those of the library that found it are for programmers."""
    kind = str(wrong["type"])
    if kind in EXPECTED:
        return flaw(EXPECTED[kind], **(wrong.get("ctx") or {}))
    what = KINDS.get(kind.partition("_")[0])
    return flaw("asked_kind", expected=what) if what else flaw("asked_unread")


def place(steps: Sequence[str | int]) -> str:
    """`ids.0`: without where it came from, and without the alternatives of a type, which have no name."""
    return ".".join(str(step) for step in steps[1:] if not _ALTERNATIVE.match(str(step))) or "the body"


def install(app: FastAPI) -> None:
    @app.exception_handler(JostleError)
    def refused(request: Request, e: JostleError) -> Response:
        caller = getattr(request.state, "caller", None)
        reads_only = caller is not None and caller.reads_only
        return Answer(problem(e, language(request), reads_only=reads_only), status_of(e, request.url.path))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, e: RequestValidationError) -> Response:
        texts = [flaw("told_at", place=place(one["loc"]), text=expected(one)) for one in e.errors()[:SHOWN]]
        flaws = dict.fromkeys(worded(one, language(request)) for one in texts)  # each once
        return Answer({"detail": "; ".join(flaws), "code": "invalid"}, 422 if request.url.path.startswith("/api/v1/") else 400)

    @app.exception_handler(HTTPException)
    def other(request: Request, e: HTTPException) -> Response:
        return Answer({"detail": e.detail, "code": "not_found" if e.status_code == 404 else "invalid"}, e.status_code, e.headers)

    @app.exception_handler(Exception)
    def broken(request: Request, e: Exception) -> Response:
        return Answer({"detail": "the web process made a mistake: its log says more", "code": "failed"}, 500)
