"""A job that gives way to a real other user (C7): he comes by hand, without a jostle, and can touch nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import neighbours
import pytest
from neighbours import Town, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="two users need root to become them")

COMES = """import json, os, socket, sys
use, card, claim, run, shim = sys.argv[1:]
def becomes(act):
    try:
        act()
    except PermissionError:
        return "refused"
    except OSError as e:
        return e.strerror
    return "done"
tries = {
    "ends it": lambda: os.kill(int(shim), 15), "looks into its directory": lambda: os.listdir(run),
    "reads its log": lambda: open(run + "/log"), "gives it orders": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(run + "/control"),
    "writes its claim": lambda: open(claim, "r+b"), "opens its claim to all": lambda: os.chmod(claim, 0o666),
    "moves its claim": lambda: os.rename(claim, claim + "x"), "removes its claim": lambda: os.unlink(claim),
}
print(json.dumps({name: becomes(act) for name, act in tries.items()}), flush=True)
with open(f"{use}/.{os.getpid()}", "w") as f:
    f.write(f"{card} 9000 50\\n")
os.rename(f"{use}/.{os.getpid()}", f"{use}/{os.getpid()}")
sys.stdin.read()
"""  # noqa: E501


@pytest.fixture
def town() -> Iterator[Town]:
    if not neighbours.python_for(neighbours.free_uids(1)[0]):
        pytest.skip("no Python here that another user could run")
    with neighbours.town(2) as whole:
        os.mkdir(f"{whole.sim}/use")
        os.chmod(f"{whole.sim}/use", 0o1777)
        yield whole


def test_c7_a_job_gives_way_to_another_user_who_cannot_touch_what_is_its_own(town: Town) -> None:
    ours, other = town.tenants
    ours.start()
    argv = [town.python, "-I", "-S", f"{town.code}/tenant_job.py", town.evidence, "3600"]
    job = {"commands": [argv], "gpus": [1, 1], "workdir": "/", "when_stranger": "requeue", "resize": "restart"}
    context = {"env": {"TOWN": town.root}, "umask": 0o022, "limits": {}}
    batch = {"name": "fills gaps", "policy": {"yield_after": 0.2, "gpus": [3]}}
    (id, _) = ours.call("submit", batch=batch, context=context, jobs=[job])["ids"]
    (start,) = until(lambda: [line for line in town.journal() if line["kind"] == "start"])
    run = f"{ours.home}/jostle/runs/{id}.1"
    with open(f"{run}/claim") as f:
        shim = json.load(f)["pid"]
    (claim,) = ours.claims()
    words = [f"{town.sim}/use", *start["cards"], f"{town.leases}/{claim}", run, str(shim)]
    stranger = other.run([town.python, "-I", "-S", "-c", COMES, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert stranger.stdout is not None
    tries = json.loads(stranger.stdout.readline())
    assert len(tries) == 8 and set(tries.values()) == {"refused"}, tries
    seen = until(lambda: (told := ours.call("runs", id=id))["runs"][0]["outcome"] and told)
    assert seen["runs"][0]["outcome"] == "yielded" and len(seen["runs"]) == 1, seen["runs"]
    assert (seen["job"]["state"], seen["job"]["retries"], seen["job"]["reason"]["code"]) == ("queued", 0, "yielded")
    (event,) = ours.events("yielding")
    assert event["data"]["reason"]["code"] == "stranger_came" and str(other.uid) in json.dumps(event["data"]["reason"])
    assert until(lambda: not ours.claims()), os.listdir(town.leases)
    assert stranger.poll() is None, "nobody does anything to him"
