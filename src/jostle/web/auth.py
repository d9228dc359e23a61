"""Login, logout, and what anybody may ask: the paths that the gate leaves open."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from jostle import __version__
from jostle.web.answers import Answer
from jostle.web.gate import WRONG, Gate
from jostle.web.secret import SESSION_FOR
from jostle.web.site import Visit, visit

routes = APIRouter()
SLOWEST = 2.0  # s that a wrong password is answered after


class Password(BaseModel):
    model_config = ConfigDict(extra="ignore")
    password: str = Field(max_length=1000)


@routes.get("/api/auth/check")
async def check(request: Request) -> dict[str, Any]:
    caller = request.state.caller
    return {
        "requires_auth": True, "authenticated": caller is not None, "rights": caller.rights if caller else None,
        "version": __version__,
    }  # fmt: skip


@routes.get("/api/health")
async def health() -> dict[str, bool]:
    """That the web process answers; of the rest `/api/v1/doctor` tells."""
    return {"ok": True}


@routes.post("/api/auth/login")
async def login(request: Request, body: Password) -> Response:
    site = request.app.state.site
    gate: Gate = request.app.state.gate
    session = await asyncio.to_thread(site.secrets.log_in, body.password)
    if session is None:
        wrong = gate.wrong.note()
        if wrong > WRONG:
            return Answer({"detail": "too many wrong passwords: wait a minute", "code": "forbidden"}, 429, {"Retry-After": "60"})
        await asyncio.sleep(min(SLOWEST, 0.1 * wrong))
        return Answer({"success": False, "message": "the password is wrong, or its code was used or is too old", "key": None})
    site.audit(f"{session.rights} login", "login", "")
    answer = Answer({"success": True, "message": "logged in", "key": session.key, "rights": session.rights})
    secure = request.url.scheme == "https" or (site.wanted.public_url or "").startswith("https://")
    answer.set_cookie(
        gate.cookie, session.cookie, max_age=int(SESSION_FOR), httponly=True, samesite="strict", secure=secure, path="/"
    )  # fmt: skip
    return answer


@routes.post("/api/auth/logout")
def logout(request: Request, visit: Annotated[Visit, Depends(visit)]) -> Response:
    if visit.caller.session is not None:
        visit.site.secrets.log_out(visit.caller.session)
    answer = Answer({"success": True, "message": "logged out"})
    answer.delete_cookie(request.app.state.gate.cookie, path="/", httponly=True, samesite="strict")
    return answer
