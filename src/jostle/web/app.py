"""The application: routes, behind the gate."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from jostle import __version__
from jostle.web import (
    answers,
    auth,
    boundlogs,
    cards,
    changing,
    children,
    commands,
    holding,
    jobfiles,
    looking,
    managing,
    metrics,
    notifying,
    outlooks,
    page,
    ruleeffects,
    rules,
    schedulers,
    settings,
    stream,
)
from jostle.web.gate import Gate
from jostle.web.site import Site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def app(site: Site) -> Any:
    """What uvicorn serves."""

    @asynccontextmanager
    async def life(fast: FastAPI) -> AsyncIterator[None]:
        yield

    fast = FastAPI(
        title="jostle", version=__version__, openapi_url=None, docs_url=None, redoc_url=None, lifespan=life,
        default_response_class=answers.Answer,
    )  # fmt: skip
    wanted = site.wanted
    gate = Gate(fast, site.secrets, public_url=wanted.public_url, bind=wanted.bind, classic=wanted.classic)
    fast.state.site, fast.state.gate, fast.state.page, fast.state.hub = site, gate, page.Page(), stream.Hub(site)
    answers.install(fast)
    classic = (cards, commands, outlooks, rules, ruleeffects, schedulers, boundlogs, settings)
    for room in (auth, page, *classic, looking, changing, holding, managing, children, jobfiles, notifying, stream, metrics):
        fast.include_router(room.routes)
    return gate
