"""How soon does the console answer, and does the time of a refusal tell anything?

One connection that is kept, one call after the other. Wrong tokens of three kinds (one bit off, the first half, quite
another one) come in turn: what their medians differ by is held against what two halves of the same kind differ by. Then
queries that ask for what does not exist: negative, huge and reversed places in a log, thousands of ranges.
"""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from statistics import median

from audience import Web, console
from figures import Row, Series, below, hold_against
from lab import Lab
from peers.base import Peer
from peers.ours import Jostle
from tasks import quantile

GROUP = "gate: answers of the console"
ODD = (
    "from=-1", "from=99999999999999", "from=10&limit=0", "limit=-5", "limit=99999999999", "lines=-1", "lines=99999999",
    "run=0", "run=99999999999", "from=5&lines=5", "from=1e9", "from=0x10",
)  # fmt: skip
RANGES = {"Range": "bytes=" + ",".join(f"{k}-{k}" for k in range(2000))}
KINDS = ("one bit off", "a half of it", "another")


def measure(lab: Lab) -> list[Row]:
    if not lab.named("jostle"):
        return []
    soon = {name: Series() for name in ("an answer, median", "an answer, p95", "an odd query, slowest")}
    spread = Series()
    for rep in range(lab.reps):
        what = f"gate, {rep + 1}/{lab.reps}"
        lab.attempt(what, Jostle, 1, False, lambda peer, rep=rep: answers(lab, peer, rep, soon, spread))
    rows = [series.row(GROUP, name, "ms", ours="jostle") for name, series in soon.items()]
    hold_against(rows[-1], "<= 100 ms", below(rows[-1].ours, 100.0))
    told = spread.row(GROUP, "wrong tokens, what their kinds differ by", "µs", ours="kinds", floor="noise")
    return [*rows, hold_against(told, "no more than noise", below(told.ratio, 2.0))]


def answers(lab: Lab, peer: Peer, rep: int, soon: dict[str, Series], spread: Series) -> None:
    assert isinstance(peer, Jostle)
    first, _ = peer.ask(printing(peer))["ids"]
    with console(peer) as web, closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)) as connection:
        right = {"Authorization": f"Bearer {web.token}"}
        times = [took(connection, "/api/v1/status", right) for _ in range(lab.size(500, 150))]
        odd = [took(connection, f"/api/v1/logs/{first}?{query}", right) for query in ODD]
        odd += [took(connection, f"/api/v1/logs/{first}", {**right, **RANGES}), took(connection, "/ui/gpu", RANGES)]
        for series, value in zip(soon.values(), (quantile(times, 0.5), quantile(times, 0.95), max(odd)), strict=True):
            series.add("jostle", rep, value)
        kinds = refusals(connection, web, lab.size(3000, 600))
    middle = [median(kind) for kind in kinds]
    halves = [abs(median(kind[::2]) - median(kind[1::2])) for kind in kinds]
    spread.add("kinds", rep, (max(middle) - min(middle)) * 1e3)
    spread.add("noise", rep, max(*halves, 1e-3) * 1e3)


def printing(peer: Jostle) -> dict[str, object]:
    request = peer.request([])
    request["jobs"] = [{"commands": ["seq 1000"], "gpus": [0, 0], "workdir": "/"}]
    return request


def refusals(connection: http.client.HTTPConnection, web: Web, count: int) -> list[list[float]]:
    """ms of each kind of wrong token, in turn."""
    bit_off = web.token[:-1] + chr(ord(web.token[-1]) ^ 1)
    tokens = (bit_off, web.token[: len(web.token) // 2], "x" * len(web.token))
    times: list[list[float]] = [[] for _ in KINDS]
    for k in range(count * len(KINDS)):
        heads = {"Authorization": f"Bearer {tokens[k % len(KINDS)]}"}
        times[k % len(KINDS)].append(took(connection, "/api/v1/status", heads))
    return times


def took(connection: http.client.HTTPConnection, path: str, heads: dict[str, str]) -> float:
    """ms until the whole answer is there."""
    began = time.perf_counter()
    connection.request("GET", path, headers=heads)
    connection.getresponse().read()
    return (time.perf_counter() - began) * 1e3
