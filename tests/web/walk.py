"""Every route that the application has, found by walking it: what somebody adds tomorrow is among them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from jostle.web.app import app
from jostle.web.instances import Wanted
from jostle.web.site import Site

STREAM = "/api/v1/stream"
VALUES = {"mode": "single", "path": "gpu"}  # of what stands in a path; else a number that nothing has


def leaves(routes: Iterable[Any]) -> Iterator[Any]:
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from leaves(included.routes)
        else:
            yield route


@cache
def document() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        made: dict[str, Any] = app(Site(Wanted(home=home))).app.openapi()
    return made


@cache
def routes() -> tuple[tuple[str, str], ...]:
    """(method, path) of each, those that the document does not name included."""
    with tempfile.TemporaryDirectory() as home:
        found = list(leaves(app(Site(Wanted(home=home))).app.routes))
    assert all(getattr(route, "methods", None) for route in found), "something that is no route of HTTP"
    return tuple(sorted({(method, route.path) for route in found for method in route.methods}))


def of_page(path: str) -> bool:
    return path in ("/", "/favicon.ico") or path.startswith("/ui")


def filled(path: str, **values: object) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda name: str(values.get(name[1], VALUES.get(name[1], 999_999))), path)
