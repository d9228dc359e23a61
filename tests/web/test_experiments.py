"""Batches and results for a page: what `ps --batches` and `results` give, and no pattern takes more than its share."""

import json
import os
import re
import threading

import pytest

from jostle.bounded import Bounds, child
from jostle.errors import JostleError
from tests.e2e.instance import until
from tests.web.console import Console

SWEEP = """
command: 'echo lr {lr}; echo Test Accuracy: 8{seed}; echo loss 0.{seed}; head -c 40000 /dev/zero | tr "\\0" a'
matrix: {lr: [0.1, 0.2], seed: [1, 2]}
job: {gpus: 0}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A console with one sweep that is done."""
    made = Console(tmp_path_factory.mktemp("x"), gpus="sim:1x24")
    made.batch = json.loads(made.instance.ok("run", "--detach", "--json", made.instance.file(SWEEP, "sweep.yaml")))
    until(lambda: set(made.instance.states(made.batch["ids"]).values()) == {"succeeded"}, "the end of the sweep")
    yield made
    made.close()


def test_batches_are_those_of_the_command_line(swept):
    assert swept.get("/api/v1/batches") == swept.instance.json("ps", "--batches")
    (batch,) = swept.get("/api/v1/batches")["batches"]
    assert (batch["counts"], batch["sweep"], batch["file"].endswith("/sweep.yaml")) == ({"succeeded": 4}, True, True)


def test_s55_who_may_only_look_gets_the_name_of_the_file_without_its_place(swept):
    reader = swept.instance.ok("web", "--token", "--read-only").strip()
    told = swept.script("GET", "/api/v1/batches", token=reader)
    assert told.json["batches"][0]["file"] == "sweep.yaml"
    assert str(swept.instance.work).encode() not in told.body
    assert swept.script("GET", "/api/v1/results", token=reader).status == 403


def test_results_are_those_of_the_command_line_in_every_format(swept):
    words = ["results", "1", "--metric=loss=loss ([0-9.]+)", "--across=lr", "--best=max"]
    query = "target=1&metric=loss%3Dloss+([0-9.]%2B)&across=lr&best=max"
    told = swept.get(f"/api/v1/results?{query}")
    assert told.pop("messages") == []
    assert told == swept.instance.json(*words)
    assert [group["metrics"]["loss"]["values"] for group in told["groups"]] == [[0.1, 0.2], [0.1, 0.2]]
    for form in ("markdown", "latex", "csv"):
        assert swept.get(f"/api/v1/results?{query}&format={form}")["text"] == swept.instance.ok(*words, f"--format={form}")


def test_what_is_wrong_with_a_query_is_said_as_on_the_command_line(swept):
    told = swept.script("GET", "/api/v1/results?target=1&metric=a%3D(")
    assert told.status == 422 and "is no regular expression" in told.json["detail"]
    assert swept.script("GET", "/api/v1/results?target=999").status == 404
    assert swept.script("GET", "/api/v1/results?format=xml").status == 422


def test_s57_a_pattern_without_end_is_ended_and_said_so_while_others_are_answered(swept):
    """`(a+)+$` takes exponential time on the 40,000 letters that each log ends with."""
    told = []
    path = "/api/v1/results?target=1&metric=x%3D(a%2B)%2Bb"
    asking = threading.Thread(target=lambda: told.append(swept.script("GET", path)))
    asking.start()
    answered = [swept.script("GET", "/api/v1/batches").status, swept.script("GET", "/api/v1/results?target=1").status]
    assert asking.is_alive() and answered == [200, 200]
    asking.join(timeout=90)
    assert told and told[0].status == 409
    assert re.search(r"`jostle results` took longer than \d+ s( of the processor)? and was ended", told[0].json["detail"])
    assert swept.get("/api/v1/status")["running"]


@pytest.mark.parametrize(("does", "said"), [
    ("bytearray(1 << 30)", "more memory than it may have"),
    ("while True: pass", "took longer than 1 s of the processor and was ended"),
    ("import time; time.sleep(600)", "took longer than 5 s and was ended"),
])  # fmt: skip
def test_s57_what_needs_more_than_its_limits_is_ended_and_says_which(does, said):
    """One limit is met by each; the others are far away."""
    within = 5.0 if "sleep" in does else 60.0
    with pytest.raises(JostleError, match=said):
        child(["timeit", "-n1", "-r1", does], Bounds(within, 1, 500 << 20), os.environ)
