"""JSON posted to an address, and what came back: a status and the beginning of an answer."""

from __future__ import annotations

import contextlib
import http.client
import math
from collections.abc import Mapping
from json import loads
from typing import Any, NamedTuple

from jostle import __version__
from jostle.notify.outward import Endpoint, connected
from jostle.notify.trouble import Undelivered

LARGEST = 64 << 10  # bytes of an answer that are looked at
LONGEST_WAIT = 3600.0


class HttpAnswer(NamedTuple):
    status: int
    body: bytes
    wait: float | None  # s that they ask us to wait

    def json(self) -> Mapping[str, Any]:
        """The answer as JSON; nothing if it is none."""
        try:
            value = loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


def post(endpoint: Endpoint, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
    """Undelivered unless somebody answered; whatever they answered is for the caller to judge."""
    with connected(endpoint) as way:
        connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        connection.sock = way.sock
        connection.auto_open = 0  # this way or none
        try:
            connection.request("POST", endpoint.path, body, {
                "Content-Type": "application/json; charset=utf-8", "User-Agent": f"jostle/{__version__}", "Accept": "*/*",
                "Connection": "close", **headers,
            })  # fmt: skip
            answer = connection.getresponse()
            return HttpAnswer(answer.status, answer.read(LARGEST), _wait(answer.getheader("Retry-After")))
        except http.client.HTTPException:
            raise Undelivered("too_slow" if way.late else "no_answer", host=endpoint.host) from None


def _wait(header: str | None) -> float | None:
    """Seconds; what is no number, or none with which can be calculated (nan), asks for nothing."""
    with contextlib.suppress(ValueError):
        asked = float(header or "")
        return None if math.isnan(asked) else min(max(asked, 1.0), LONGEST_WAIT)
    return None


def check_status(endpoint: Endpoint, answer: HttpAnswer) -> None:
    """Undelivered unless it is a 2xx. 400, 413 and 422 are about this message; all else about the way."""
    if 200 <= answer.status < 300:
        return
    if 300 <= answer.status < 400:
        raise Undelivered("redirected", host=endpoint.host, status=answer.status)
    whole = answer.status not in (400, 413, 422)
    raise Undelivered("http_status", whole=whole, wait=answer.wait, host=endpoint.host, status=answer.status)
