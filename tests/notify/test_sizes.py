"""C11: a real job that grows and shrinks, and cards that stand idle, told by a real engine to somebody who listens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle import notifier
from tests.e2e.instance import Instance, until
from tests.notify.receivers import Posts, http_server

IDLE = "gpus: {count: 2, total: 24GiB}\nruns: {utilization: 0}\n"
UNTIL = "until [ -e {} ]; do sleep 0.02; done"


@pytest.fixture
def posts() -> Posts:
    return Posts()


@pytest.fixture
def home(tmp_path: Path, posts: Posts) -> Iterator[Instance]:
    """Two cards, and somebody who hears of sizes and of idle cards."""
    made = Instance(tmp_path / "i")
    made.home.mkdir(mode=0o700)
    with http_server(posts) as port:
        hook = {"kind": "webhook", "url": f"http://localhost:{port}/hook", "events": ["resized", "idle"]}
        notify = {"gather": "0s", "allow_private": ["localhost"], "channels": {"hook": hook}}
        (made.home / "config.yaml").write_text(json.dumps({"idle_after": 1, "notify": notify}))
        made.up(made.scenario(IDLE))
        made.see_cards()
        yield made
        until(made._is_down, "the end of the engine")
        notifier.stop(str(made.home))
        made.close()


def told(posts: Posts, about: str) -> list[dict[str, Any]]:
    return [item for body in posts.bodies() for item in body["data"]["items"] if item["about"] == about]


def test_c7_c11_a_job_that_grows_and_shrinks_is_told_of_each_time(home: Instance, posts: Posts) -> None:
    (first,) = home.submit({"commands": [UNTIL.format("free")]})
    home.reach(first, "running")
    (grows,) = home.submit({"name": "train", "gpus": [1, 2], "resize": "restart", "commands": ["sleep 600"]},
                           policy={"resize_interval": 0.2})  # fmt: skip
    home.reach(grows, "running")
    (home.work / "free").touch()
    (grown,) = until(lambda: told(posts, "resized"), "that it has grown is told")
    assert (grown["event"], grown["job"], grown["name"], grown["gpus"]) == ("grown", grows, "train", [0, 1])
    (other,) = home.submit({"commands": [UNTIL.format("enough")]})
    home.reach(other, "running")
    _, shrunk = until(lambda: len(told(posts, "resized")) > 1 and told(posts, "resized"), "that it has shrunk is told")
    assert (shrunk["event"], shrunk["job"], len(shrunk["gpus"])) == ("shrunk", grows, 1)
    words = " ".join(f"{body['data']['title']} {body['data']['text']}" for body in posts.bodies())
    assert f"job {grows} (train) has grown" in words and f"job {grows} (train) has shrunk" in words
    assert [event["kind"] for kind in ("grown", "shrunk") for event in home.events(kind, grows)] == ["grown", "shrunk"]


def test_c11_who_holds_cards_and_does_not_use_them_is_told_of_once(home: Instance, posts: Posts) -> None:
    held = int(home.json("alloc", "mine")["id"])
    (lazy,) = home.submit({"name": "lazy", "commands": [UNTIL.format("enough")]})
    home.reach(lazy, "running")
    until(lambda: {item["job"] for item in told(posts, "idle")} >= {held, lazy}, "both are told")
    home.ok("release", "mine")
    (home.work / "enough").touch()
    home.end(lazy)
    items = {item["job"]: item for item in told(posts, "idle")}
    assert len(items) == len(told(posts, "idle")) == 2
    assert (items[held]["allocation"], items[held]["gpus"]) == (True, [0])
    assert (items[lazy]["allocation"], items[lazy]["gpus"]) == (False, [1])
    assert all(item["since_s"] >= 1 for item in items.values())
