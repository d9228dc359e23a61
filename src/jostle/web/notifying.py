"""`/api/v1/notify`: how notifications stand, and a test of them. Where they go stands in the owner's settings file, and cannot be
changed from here (RELIABILITY S47)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from jostle.errors import Forbidden
from jostle.notify.status import status
from jostle.web.children import Visiting, Word, perform
from jostle.wording.flaws import flaw
from jostle.wording.notices import troubled

routes = APIRouter(prefix="/api/v1")


@routes.get("/notify")
def notify(visit: Visiting) -> dict[str, Any]:
    """`text`: what is wrong with a channel, in sentences."""
    if visit.caller.reads_only:
        raise Forbidden(flaw("may_not_channels"))
    view = status(visit.home)
    channels = [{**channel, "text": troubled(channel, visit.language)} for channel in view["channels"]]
    return {"schema": 1, **view, "channels": channels}


class Test(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    channel: Annotated[Word, Field(min_length=1, max_length=40)] | None = None


@routes.post("/notify/test")
def test(visit: Visiting, body: Test) -> dict[str, Any]:
    """A message by each channel, or by this one; it takes as long as they take, a minute at the most."""
    return perform(visit, "notify", body.model_dump())
