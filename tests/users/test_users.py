"""Three real users on one host (F13, F14, S39, S40). Needs root for the uids; skips with a line without it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neighbours
import pytest
from neighbours import CARDS, SPEC, Town, until
from tests.e2e.instance import modes, said

from jostle import proc
from jostle.backends.local import claims
from jostle.backends.local.claims import Claim
from jostle.probes import scenario
from jostle.store.reads import Reader

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="three users need root to become them")

EACH = 80  # jobs of each of the three


@pytest.fixture
def town() -> Iterator[Town]:
    if not neighbours.python_for(neighbours.free_uids(1)[0]):
        pytest.skip("no Python here that another user could run")
    with neighbours.town(3) as whole:
        yield whole


def uuids() -> list[str]:
    return [card.uuid for card in scenario.load(SPEC.removeprefix("sim:")).cards]


def test_three_users_never_hold_the_same_card(town: Town) -> None:
    for tenant in town.tenants:
        tenant.start()
    began = time.monotonic()
    for tenant in town.tenants:
        tenant.submit(EACH - 20, 0.02)
        tenant.submit(20, 0.02, gpus=2)
    assert until(lambda: all(t.all_succeeded() for t in town.tenants), within=240.0), [t.states() for t in town.tenants]
    lines = town.journal()
    starts = [line for line in lines if line["kind"] == "start"]
    print(f"{len(starts)} contested starts by {len(town.uids)} uids in {time.monotonic() - began:.1f} s")
    assert neighbours.overlaps(lines) == []
    assert len(starts) == len({(line["uid"], line["job"]) for line in starts}) == 3 * EACH >= 200
    assert {line["uid"] for line in starts} == set(town.uids)
    assert until(lambda: not any(t.claims() for t in town.tenants)), os.listdir(town.leases)


def test_what_a_hostile_neighbour_puts_into_the_lease_directory_is_not_followed_and_holds_nobody_up(town: Town) -> None:
    victim, hostile = town.tenants[0], town.tenants[1]
    precious = f"{victim.home}/thesis"
    with open(precious, "w") as f:
        f.write("years of work")
    os.chown(precious, victim.uid, victim.uid)
    before = os.stat(precious)
    victim.start()
    for k, uuid in enumerate(uuids()):
        name = claims.name_of(Claim(uuid=uuid, mib=None, sid=1, home="deadbeef", run=(k + 1, 1)))
        path = f"{town.leases}/{name}"
        if k % 4 == 0:
            os.symlink(precious, path)
        elif k % 4 == 1:
            os.mkfifo(path)
        elif k % 4 == 2:
            os.mkdir(path)
        else:
            os.link(precious, path)  # by root: as on a host that does not protect hard links
        if not os.path.samefile(path, precious):
            os.chown(path, hostile.uid, hostile.uid, follow_symlinks=False)
        junk = f"{town.leases}/jostle-{uuid}~x~\n~{k}"
        open(junk, "w").close()
        os.chown(junk, hostile.uid, hostile.uid)
    victim.submit(CARDS, 0.2)
    assert until(victim.all_succeeded), victim.states()
    assert {c for line in town.journal() for c in line.get("cards", ())} == {str(k) for k in range(CARDS)}
    after = os.stat(precious)
    with open(precious) as f:
        assert f.read() == "years of work"
    assert (after.st_size, after.st_mtime_ns, stat.S_IMODE(after.st_mode), after.st_nlink) == (
        before.st_size, before.st_mtime_ns, stat.S_IMODE(before.st_mode), before.st_nlink + 2)  # fmt: skip
    assert len(os.listdir(town.leases)) == 2 * CARDS, "what others put there is theirs to remove"


HOLD = """import fcntl, os, sys, time
held = []
for path in sys.argv[1:]:
    held.append(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o444))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
for path in sys.argv[1:]:
    os.unlink(path)
"""


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_neighbour_who_holds_every_card_is_named_and_waited_for_quietly(town: Town) -> None:
    victim, hostile = town.tenants[0], town.tenants[1]
    names = [claims.name_of(Claim(uuid=u, mib=None, sid=4242, home="deadbeef", run=(1, 1))) for u in uuids()]
    argv = [town.python, "-I", "-S", "-c", HOLD, *(f"{town.leases}/{name}" for name in names)]
    holder = hostile.run(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    victim.start()
    (job,) = victim.submit(1, 0.0)
    reason = until(lambda: victim.call("why", id=job)["reason"])
    assert until(lambda: str(hostile.uid) in said(victim.call("why", id=job)["reason"])), reason
    assert len(victim.call("why", id=job)["reason"]["gpus"]) == CARDS
    began, used = time.monotonic(), cpu_seconds(victim.engine)
    until(lambda: time.monotonic() - began > 2.0)
    spent = cpu_seconds(victim.engine) - used
    assert spent < 0.5, f"the engine used {spent:.2f} s of processor time in 2 s of waiting"
    assert town.journal() == []
    holder.stdin.close()
    assert until(victim.all_succeeded), victim.call("why", id=job)


def test_c6_a_card_that_a_floor_keeps_is_shown_to_others_as_held_with_nothing_on_it(town: Town) -> None:
    keeper, other = town.tenants[0], town.tenants[1]
    keeper.start()
    context = {"env": {}, "umask": 0o022, "limits": {}}
    floor = {"name": "floor-1", "commands": [], "workdir": "/", "gpus": [1, 1]}
    (id, _) = keeper.call("submit", batch={"policy": {"automatic": True}}, context=context, jobs=[floor])["ids"]
    assert until(lambda: keeper.states()[str(id)] == "running")
    other.start()

    def refusals() -> list[dict[str, Any]]:
        return [gpu["refusal"] for gpu in other.call("gpus")["gpus"] if gpu["refusal"] is not None]

    assert until(lambda: [no["code"] for no in refusals()] == ["neighbour_idle"]), refusals()
    assert refusals()[0]["params"]["uid"] == keeper.uid and refusals()[0]["params"]["held_s"] >= 0


SQUAT = """import os, sys
for path in sys.stdin.read().split("\\0"):
    os.mkdir(path)
    os.mkdir(path + "/full")
print("taken", flush=True)
"""


def test_a_neighbour_who_takes_every_name_he_can_guess_delays_no_start(town: Town) -> None:
    """He knows cards, home, job numbers and the pids of the shims that wait; of what is drawn by chance, he can only try some."""
    victim, hostile = town.tenants[0], town.tenants[1]
    victim.start()
    (job,) = victim.submit(1, 30.0)
    (claim,) = until(lambda: [c for c in map(claims.parse, os.listdir(town.leases)) if c is not None])
    victim.call("intent", ids=[job], do="cancel", now=True)
    assert until(lambda: not victim.claims())
    near = proc.tree(victim.engine)  # among them the shims that wait
    sids = [*near, *range(max(near) + 1, max(near) + 20)]
    guesses = [
        f"{town.leases}/{dot}{claims.name_of(Claim(uuid=u, mib=None, sid=s, home=claim.home, run=(job + k, 1), tag=tag))}"
        for u in uuids() for s in sids for k in (1, 2) for tag in (0, 1) for dot in ("", ".")
    ]  # fmt: skip
    squatter = hostile.run([town.python, "-I", "-S", "-c", SQUAT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert squatter.communicate("\0".join(guesses), timeout=60.0)[0] == "taken\n"
    victim.submit(2, 0.0)
    assert until(lambda: list(victim.states().values()).count("succeeded") == 2), victim.call("why", id=job + 1)
    begun = [line["job"] for line in town.journal() if line["kind"] == "start" and line["job"] != job]
    assert sorted(begun) == [job + 1, job + 2]


def test_a_lease_directory_that_became_anothers_is_told_with_his_uid(town: Town) -> None:
    victim, hostile = town.tenants[0], town.tenants[1]
    victim.start()
    os.chown(town.leases, hostile.uid, hostile.uid)
    os.chmod(town.leases, 0o755)
    (job,) = victim.submit(1, 0.0)
    told = until(lambda: f"belongs to uid {hostile.uid}" in said(victim.call("why", id=job)["reason"]))
    assert told, victim.call("why", id=job)
    os.chmod(town.leases, 0o1777)
    assert until(victim.all_succeeded), victim.call("why", id=job)


def kept(engine: int, place: str) -> int:
    """How many files of a directory, removed or not, a process has open."""
    found = 0
    for fd in os.listdir(f"/proc/{engine}/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/{engine}/fd/{fd}").startswith(f"{place}/")
    return found


def clean_away(town: Town, how: str) -> None:
    """As a cleaner of temporary files does it."""
    if how == "claims":
        for name in os.listdir(town.leases):
            with contextlib.suppress(FileNotFoundError):  # published under another name meanwhile
                os.unlink(f"{town.leases}/{name}")
    else:
        if how == "directory moved":
            os.rename(town.leases, f"{town.root}/moved")
        while os.path.exists(town.leases):
            shutil.rmtree(town.leases, ignore_errors=True)  # they come back while it is emptied
        os.mkdir(town.leases)
        os.chmod(town.leases, 0o1777)


@pytest.mark.parametrize("how", ["claims", "directory moved", "directory removed"])
def test_a_claim_deleted_before_its_run_has_allocated_lets_nobody_in(town: Town, how: str) -> None:
    """Nothing shows on the cards, and the owner's engine cannot help: what was seen of the claims must do."""
    first, second = town.tenants[:2]
    empty = town.world(runs={"lag": 3600})
    first.start(empty)
    second.start(empty)
    (job,) = first.submit(1, 3600.0, gpus=CARDS)
    assert until(lambda: town.journal() and len(first.claims()) == CARDS), first.states()
    until(lambda: kept(second.engine, town.leases) >= CARDS)
    os.kill(first.engine, signal.SIGSTOP)
    clean_away(town, how)
    (other,) = second.submit(1, 0.0)
    told = until(lambda: str(first.uid) in said(second.call("why", id=other)["reason"]))
    assert told and len(town.journal()) == 1, second.call("why", id=other)
    os.kill(first.engine, signal.SIGCONT)
    assert until(lambda: len(first.claims()) == CARDS), os.listdir(town.leases)
    assert until(lambda: first.events("republished") and len(second.events("vanished")) == CARDS), second.events("vanished")
    assert {event["data"]["uid"] for event in second.events("vanished")} == {first.uid}
    assert len(town.journal()) == 1
    first.call("intent", ids=[job], do="cancel", now=True)
    assert until(second.all_succeeded), second.call("why", id=other)
    assert until(lambda: not first.claims() and not second.claims()), os.listdir(town.leases)


def test_a_deleted_claim_is_back_at_once(town: Town) -> None:
    """Also for those who come new and have never seen it; an engine at rest looks at its runs every 5 s only."""
    first, second = town.tenants[:2]
    empty = town.world(runs={"lag": 3600})
    first.start(empty)
    first.submit(1, 3600.0, gpus=CARDS)
    assert until(lambda: town.journal() and len(first.claims()) == CARDS), first.states()
    for n in range(6):
        clean_away(town, ("claims", "directory moved", "directory removed")[n % 3])
        assert until(lambda: len(first.claims()) == CARDS), os.listdir(town.leases)
        shutil.rmtree(f"{town.root}/moved", ignore_errors=True)
    assert until(lambda: len(first.events("republished")) >= 6)
    second.start(empty)
    (other,) = second.submit(1, 0.0)
    assert until(lambda: str(first.uid) in said(second.call("why", id=other)["reason"]))


SIT = """import fcntl, sys, threading
def sit(path):
    fcntl.flock(open(path), fcntl.LOCK_EX)  # as soon as it can be had
    print(path, flush=True)
    threading.Event().wait()
for path in sys.argv[1:]:
    threading.Thread(target=sit, args=(path,), daemon=True).start()
print("sits", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_neighbour_who_locks_the_claims_of_a_dead_run_keeps_neither_it_nor_its_cards(town: Town, cancelled: bool) -> None:
    victim, hostile, third = town.tenants
    empty = town.world(runs={"lag": 3600})
    for tenant in (victim, third):
        tenant.start(empty)
    (job,) = victim.submit(1, 3600.0, gpus=CARDS)
    assert until(lambda: town.journal() and len(victim.claims()) == CARDS), victim.states()
    argv = [town.python, "-I", "-S", "-c", SIT, *(f"{town.leases}/{name}" for name in victim.claims())]
    sitter = hostile.run(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert sitter.stdout is not None and sitter.stdin is not None
    assert sitter.stdout.readline() == "sits\n"
    with open(f"{victim.home}/jostle/runs/{job}.1/claim") as f:
        shim = json.load(f)["pid"]
    commands = proc.tree(shim)
    os.kill(shim, signal.SIGKILL)
    if cancelled:
        assert until(lambda: victim.events("unsupervised"))
        victim.call("intent", ids=[job], do="cancel", now=True)
    else:
        for pid in commands:
            os.kill(pid, signal.SIGKILL)
    locked = {sitter.stdout.readline().strip() for _ in range(CARDS)}  # from here on he has them all
    assert len(locked) == CARDS
    wanted = "cancelled" if cancelled else "failed"
    assert until(lambda: victim.states()[str(job)] == wanted), victim.call("why", id=job)
    assert until(lambda: not victim.claims()), os.listdir(town.leases)
    for path in os.listdir(town.evidence):
        if path.startswith("gpu-"):
            os.unlink(f"{town.evidence}/{path}")  # of the one that was killed
    (again,) = third.submit(1, 0.0, gpus=CARDS)
    assert until(third.all_succeeded), third.call("why", id=again)
    (again,) = victim.submit(1, 0.0, gpus=CARDS)
    assert until(lambda: victim.states()[str(again)] == "succeeded"), victim.call("why", id=again)
    assert sitter.poll() is None
    sitter.stdin.close()


def test_another_user_is_not_heard_by_the_engine_and_cannot_see_its_home(town: Town) -> None:
    first, second = town.tenants[:2]
    first.start()
    code = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect(sys.argv[1])\n"
        "except PermissionError: sys.exit(13)\n"
    )
    child = second.run([town.python, "-I", "-S", "-c", code, f"{first.home}/jostle/engine.sock"], stdout=subprocess.DEVNULL)
    assert child.wait(60) == 13
    for path, mode in modes(Path(first.home, "jostle")).items():
        assert not mode & 0o077, f"{path} is open to others: {stat.filemode(mode)}"
    assert proc.uid(first.engine) == first.uid


def test_another_user_is_not_heard_even_where_no_mode_of_a_file_keeps_him_out(town: Town) -> None:
    """Homes have been opened by `chmod -R` before, and root passes every mode: who speaks is asked of the kernel."""
    first, second = town.tenants[:2]
    first.start()
    sock = f"{first.home}/jostle/engine.sock"
    for path, mode in ((first.home, 0o755), (f"{first.home}/jostle", 0o755), (sock, 0o666)):
        os.chmod(path, mode)
    code = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.settimeout(20)\n"
        "s.connect(sys.argv[1])\n"
        "try:\n"
        "    s.sendall(b'{\"op\": \"status\"}\\n')\n"
        "    heard = s.recv(1 << 16)\n"
        "except ConnectionError:\n"
        "    heard = b''\n"
        "print(len(heard))\n"
    )
    child = second.run([town.python, "-I", "-S", "-c", code, sock], stdout=subprocess.PIPE)
    assert child.communicate(timeout=60)[0] == "0\n"
    log = Path(first.home, "jostle", "engine.log")
    assert until(lambda: f"refused a connection by uid {second.uid}\n" in log.read_text()), log.read_text()
    as_root = subprocess.run([town.python, "-I", "-S", "-c", code, sock], capture_output=True, text=True, timeout=60)
    assert as_root.stdout == "0\n", as_root
    asked = first.run([town.python, "-I", "-S", "-c", code, sock], stdout=subprocess.PIPE)
    assert int(asked.communicate(timeout=60)[0]) > 0, "the user himself is answered"
    many = "import socket, sys\nfor _ in range(3000):\n    with socket.socket(socket.AF_UNIX) as s: s.connect(sys.argv[1])\n"
    assert second.run([town.python, "-I", "-S", "-c", many, sock]).wait(60) == 0

    def knocks() -> list[int]:
        """How often he did, of each event that tells of it."""
        with contextlib.closing(Reader(f"{first.home}/jostle")) as reader:
            events = [event["data"] for event in reader.events(limit=100_000) if event["kind"] == "refused"]
        return [event["times"] for event in events if event["uid"] == second.uid]

    assert until(lambda: sum(knocks()) == 3001), knocks()
    assert len(knocks()) < 300, "one event tells of all that came together"


BOMB = """import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.2)
"""


def test_s42_a_job_that_forks_without_end_hurts_only_itself_and_can_be_ended(town: Town) -> None:
    """Up to the limit of its user, which is the end of all that want to start a process; the engine goes on, and what waits runs
    when it has ended."""
    tenant, limit = town.tenants[0], 120
    tenant.child = tenant.run(
        [town.python, "-I", "-S", f"{town.code}/tenant.py", town.code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)),
    )  # fmt: skip
    tenant.start()

    def processes() -> list[int]:
        return [pid for pid in town.left() if proc.uid(pid) == tenant.uid]

    argv = [town.python, "-I", "-S", "-c", BOMB]
    context = {"env": {"PATH": os.environ["PATH"]}, "umask": 0o022, "limits": {}}
    jobs = [{"commands": [argv], "gpus": [0, 0], "workdir": "/"}]
    bomb = tenant.call("submit", batch={}, context=context, jobs=jobs)["ids"][0]
    assert until(lambda: len(processes()) >= limit - 5), len(processes())
    (other,) = tenant.submit(1, 0.0)
    assert tenant.call("hello")["pid"] == tenant.engine
    assert until(lambda: tenant.states()[str(bomb)] == "running"), tenant.states()
    tenant.call("intent", ids=[bomb], batch=None, do="cancel", now=True)
    assert until(lambda: tenant.states() == {str(bomb): "cancelled", str(other): "succeeded"}), tenant.states()
    assert until(lambda: len(processes()) < limit - 80), len(processes())
    assert tenant.call("hello")["pid"] == tenant.engine
