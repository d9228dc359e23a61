"""Others of a group who can change a directory above the home (S37): what they serve is not spoken to, and they end no engine.
Needs root for the uids; skips with a line without it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import neighbours
import pytest
from neighbours import SPEC, Tenant, Town, until

from jostle import proc

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="two users need root to become them")

MATES = 61_999  # a group that nobody has

SWAPPER = """import ctypes, os, socket, sys
# changes two directories for one another without end, as the kernel does it: at once; and listens in its own
ours, theirs, told = sys.argv[1:]
os.makedirs(theirs + "/jostle", mode=0o755)
listener = socket.socket(socket.AF_UNIX)
listener.bind(theirs + "/jostle/engine.sock")
os.chmod(theirs + "/jostle/engine.sock", 0o777)
listener.listen(64)
listener.settimeout(0.0005)
libc = ctypes.CDLL(None, use_errno=True)
print("ready", flush=True)
while True:
    if libc.renameat2(-100, ours.encode(), -100, theirs.encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")
    try:
        taken = listener.accept()[0]
    except TimeoutError:
        continue
    taken.settimeout(2)
    try:
        heard = taken.recv(1 << 20)
    except OSError:
        heard = b""
    taken.close()
    with open(told, "ab") as f:
        f.write(b"%d bytes %s\\n" % (len(heard), heard))
"""

SUBMIT = """import sys, time
sys.path.insert(0, sys.argv[1])
from jostle import client
from jostle.errors import JostleError
seen, left, end = set(), int(sys.argv[3]), time.monotonic() + 50
while left > 0 or not seen and time.monotonic() < end:  # on a busy host the mate may not get a core for long
    left -= 1
    try:
        engine = client.attempt(sys.argv[2])
        if engine is not None:
            engine.call("submit", batch={}, context={"env": {"SECRET": "hunter2"}, "umask": 18, "limits": {}}, jobs=[])
    except JostleError as e:
        seen.add(type(e).__name__)
print(*sorted(seen))
"""


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    if not neighbours.python_for(neighbours.free_uids(1)[0]):
        pytest.skip("no Python here that another user could run")
    with neighbours.town(2) as whole:
        yield whole


def shared_parent(town: Town, victim: Tenant) -> str:
    """A directory of the victim's in a place of the group, with the home inside."""
    parent = tempfile.mkdtemp(prefix="lab-", dir=town.root)
    os.chown(parent, 0, MATES)
    os.chmod(parent, 0o775)
    os.mkdir(f"{parent}/mine", 0o755)
    os.chown(f"{parent}/mine", victim.uid, victim.uid)
    victim.home = f"{parent}/mine"
    return parent


def jostle(town: Town, tenant: Tenant, *words: str, group: int | None = None) -> tuple[int, str, str]:
    env = {
        "PATH": os.environ["PATH"], "HOME": tenant.home, "JOSTLE_HOME": f"{tenant.home}/jostle", "PYTHONPATH": town.code,
        "JOSTLE_LEASE_DIR": town.leases, "JOSTLE_SIM_DIR": town.sim, "LANG": "C.UTF-8", "JOSTLE_WEB": "off",
    }  # fmt: skip
    done = subprocess.run(
        [town.python, "-m", "jostle", *words], user=tenant.uid, group=group or tenant.uid, extra_groups=[], env=env, cwd="/",
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_what_a_group_mate_serves_in_place_of_the_engine_is_never_sent_a_word(town: Town) -> None:
    victim, mate = town.tenants
    parent = shared_parent(town, victim)
    os.mkdir(f"{victim.home}/jostle", 0o700)
    os.chown(f"{victim.home}/jostle", victim.uid, victim.uid)
    told = f"{mate.home}/told"
    swapper = as_mate(town, mate, SWAPPER, f"{parent}/mine", f"{parent}/theirs", told)
    code = [town.python, "-I", "-S", "-c", SUBMIT, town.code, f"{parent}/mine/jostle", "400"]
    child = victim.run(code, stdout=subprocess.PIPE)
    said = child.communicate(timeout=240)[0]
    lines = until(lambda: os.path.exists(told) and text_of(told).splitlines())
    swapper.kill()
    swapper.wait()
    assert "Forbidden" in said and lines, "the mate was never reached, so this has shown nothing"
    assert {line.split()[0] for line in lines} == {"0"}, lines


def as_mate(town: Town, mate: Tenant, code: str, *words: str) -> subprocess.Popen[str]:
    """A process of the mate's, in the group; it is ready when this returns."""
    child = subprocess.Popen(
        [town.python, "-I", "-S", "-c", code, *words], user=mate.uid, group=MATES, extra_groups=[], env={}, cwd="/", text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    town.children.append(child)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("level", ["", "/mine"])
def test_a_home_below_a_directory_that_a_group_can_change_is_refused_at_any_level(town: Town, level: str) -> None:
    victim = town.tenants[0]
    parent = shared_parent(town, victim)
    os.chmod(parent, 0o755)
    os.chown(parent + level, -1, MATES)
    os.chmod(parent + level, 0o775)
    code, _, err = jostle(town, victim, "add", "-g", "0", "--", "true")
    assert (code, f"chmod g-w {parent}{level}" in err) == (5, True), err
    assert not os.path.exists(f"{victim.home}/jostle/jostle.db")
    os.chmod(parent + level, 0o1775)
    assert jostle(town, victim, "ps")[0] == 0, "a sticky directory keeps what is mine"
    os.chmod(parent + level, 0o755)
    assert jostle(town, victim, "ps")[0] == 0


def test_a_home_below_a_directory_of_another_user_is_refused(town: Town) -> None:
    victim, mate = town.tenants
    parent = shared_parent(town, victim)
    os.chown(parent, mate.uid, mate.uid)
    os.chmod(parent, 0o755)
    code, _, err = jostle(town, victim, "add", "-g", "0", "--", "true")
    assert (code, f"{parent} belongs to uid {mate.uid}" in err) == (5, True), err


def test_in_an_existing_home_only_what_begins_something_is_refused_and_doctor_says_why(town: Town) -> None:
    victim = town.tenants[0]
    parent = shared_parent(town, victim)
    os.chmod(parent, 0o755)
    assert jostle(town, victim, "up", "--gpus", SPEC)[0] == 0
    code, out, err = jostle(town, victim, "add", "--hold", "--", "true")
    assert (code, out) == (0, "1\n"), err
    os.chmod(parent, 0o775)
    warning = f"chmod g-w {parent}"
    for words in (["ps"], ["show", "1"], ["why", "1"], ["status"], ["gpus"], ["cancel", "1"], ["down"]):
        code, out, err = jostle(town, victim, *words)
        assert (code, err.count(warning)) == (0, 1), (words, err)
    for words in (["add", "--", "true"], ["up"], ["retry", "1"]):
        code, out, err = jostle(town, victim, *words)
        assert (code, warning in err) == (5, True), (words, err)
    code, out, _ = jostle(town, victim, "doctor")
    (line,) = [line for line in out.splitlines() if line.startswith("home ")]
    assert code == 1 and " bad " in line and warning in line


def test_doctor_names_the_owner_of_a_lease_directory_that_is_neither_mine_nor_roots(town: Town) -> None:
    victim, mate = town.tenants
    parent = shared_parent(town, victim)
    os.chmod(parent, 0o755)
    os.chown(town.leases, mate.uid, mate.uid)
    try:
        code, out, _ = jostle(town, victim, "doctor")
        (line,) = [line for line in out.splitlines() if line.startswith("leases ")]
        assert code == 1 and " bad " in line and f"uid {mate.uid} could remove your claims" in line
    finally:
        os.chown(town.leases, 0, 0)
    (line,) = [line for line in jostle(town, victim, "doctor")[1].splitlines() if line.startswith("leases ")]
    assert " ok " in line


def test_an_engine_whose_home_a_mate_moves_away_lives_on_and_is_found_when_it_is_back(town: Town) -> None:
    victim, mate = town.tenants
    parent = shared_parent(town, victim)
    os.chmod(parent, 0o755)
    assert jostle(town, victim, "ps")[0] == 0
    with open(f"{victim.home}/jostle/config.yaml", "w") as f:
        f.write(f"gpus: {SPEC}\n")
    assert jostle(town, victim, "add", "--hold", "--", "true")[:2] == (0, "1\n")
    engine = pid_of(f"{victim.home}/jostle")
    os.chmod(parent, 0o775)
    log = f"{parent}/away/jostle/engine.log"
    for times, mode in ((1, 0o755), (2, 0o700)):
        swap(town, mate, parent, mode)
        assert until(lambda times=times: text_of(log).count("not in its place") == times), text_of(log)
        os.unlink(f"{parent}/away/jostle/engine.sock")
        back(town, mate, parent)
        assert until(lambda: os.path.exists(f"{victim.home}/jostle/engine.sock"))
    os.chmod(parent, 0o755)
    assert jostle(town, victim, "unhold", "1")[0] == 0
    assert jostle(town, victim, "wait", "1")[0] == 0
    assert pid_of(f"{victim.home}/jostle") == engine and proc.uid(engine) == victim.uid
    assert "Traceback" not in text_of(f"{victim.home}/jostle/engine.log")


def swap(town: Town, mate: Tenant, parent: str, mode: int) -> None:
    code = (
        "import os, sys; p, mode = sys.argv[1], int(sys.argv[2]); os.rename(p + '/mine', p + '/away')\n"
        "os.mkdir(p + '/mine'); os.mkdir(p + '/mine/jostle'); os.chmod(p + '/mine', mode); print('ready', flush=True)"
    )
    as_mate(town, mate, code, parent, str(mode)).wait()


def back(town: Town, mate: Tenant, parent: str) -> None:
    code = (
        "import os, sys; p = sys.argv[1]; os.chmod(p + '/mine', 0o700); os.rmdir(p + '/mine/jostle'); os.rmdir(p + '/mine')\n"
        "os.rename(p + '/away', p + '/mine'); print('ready', flush=True)"
    )
    as_mate(town, mate, code, parent).wait()


def pid_of(home: str) -> int:
    with open(f"{home}/engine.lock") as f:
        return int(f.read())


def text_of(path: str) -> Any:
    with open(path) as f:
        return f.read()
