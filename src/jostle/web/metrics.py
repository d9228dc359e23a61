"""`/metrics`, for Prometheus: with a token like everything, and the one that may only look is enough."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from jostle.views.metrics import Sample, metrics
from jostle.web.site import Visit, visit
from jostle.wording.metrics import KIND, exposition

routes = APIRouter()


@routes.get("/metrics")
def scrape(request: Request, visit: Annotated[Visit, Depends(visit)]) -> Response:
    streams = Sample("jostle_console_streams", len(request.app.state.hub.listeners))
    text = exposition([*metrics(visit), streams])
    return Response(text.encode("utf-8", "replace"), headers={"content-type": KIND})
