"""Full, failing, read-only, foreign and network disks under the state (F21-F23, F27, F29, S37, S38)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jostle.errors import Forbidden, Unwritten
from jostle.store.private import check_way
from jostle.store.store import Store
from tests.compiled import library
from tests.e2e.instance import Instance, alive, modes, said, until

WAITING = "echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.02; done; exit {1}"
NEW_MOUNTS, PRIVATE, REMOUNT, READ_ONLY, BIND, DETACH = 0x20000, 1 << 18 | 1 << 14, 32, 1, 4096, 2
BAD_SYNC = os.path.join(os.path.dirname(__file__), "badsync.c")
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path | str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    words = [None if w is None else str(w).encode() for w in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()):
        raise OSError(ctypes.get_errno(), f"mount {target}")


@pytest.fixture
def mounts() -> Iterator[None]:
    """Mounts of this test are seen by nobody else, and gone when it ends."""
    here = os.getcwd()
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    if libc.unshare(NEW_MOUNTS):
        os.close(before)
        pytest.skip("needs root, to mount a small disk in a namespace of its own")
    try:
        mount("none", "/", None, PRIVATE)
        yield
    finally:
        assert libc.setns(before, NEW_MOUNTS) == 0
        os.close(before)
        os.chdir(here)


@pytest.fixture
def small(mounts: None, make_instance: Callable[..., Instance]) -> Iterator[Instance]:
    """A home on a disk of 2 MiB; the test's own namespace outlives it."""
    instance = make_instance("small")
    instance.home.mkdir(mode=0o700)
    mount("none", instance.home, "tmpfs", data="size=2m,mode=700")
    yield instance
    mount("none", instance.home, None, REMOUNT, "size=4m,mode=700")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(instance.home / "ballast")
    instance.close()


def fill(instance: Instance) -> Path:
    ballast = instance.home / "ballast"
    with open(ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(b"x" * 4096)
    with open(ballast, "ab", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(b"x")
    return ballast


def test_a_full_disk_refuses_submits_spares_running_jobs_and_goes_on_by_itself(small: Instance) -> None:
    small.up("sim:1x24")
    first, second = small.submit({"commands": [WAITING.format("a", 3)], "queue": "q"}, {"queue": "q"})
    pid = small.pid_in("a")
    small.reach(first, "running")
    ballast = fill(small)
    code, out, err = until(lambda: refused(small), "the disk is full")
    assert (code, out) == (1, "")
    assert "no space left" in err and "nothing was recorded" in err
    assert alive(pid)
    (small.work / "a.go").touch()
    until(lambda: not alive(pid))
    until(lambda: small.call("hello")["hold"] == "disk_full", "it says why nothing starts")
    assert small.states([first, second]) == {first: "running", second: "queued"}
    ballast.unlink()
    assert small.end(first, second) == ["failed", "succeeded"]
    row = small.job(first)
    assert (row["exit_code"], row["attempt"]) == (3, 1)
    with contextlib.closing(sqlite3.connect(small.home / "jostle.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def refused(instance: Instance) -> tuple[int, str, str] | None:
    """A submit that did not fit; some bytes may have been left for the ones before."""
    found = instance.run("add", "--hold", "-e", "BIG=" + "x" * 20_000, "--", "true")
    return None if found[0] == 0 else found


def test_an_engine_that_finds_the_disk_full_says_so_and_its_jobs_are_found_later(small: Instance) -> None:
    small.up("sim:1x24")
    (id,) = small.submit({"commands": [WAITING.format("a", 0)]})
    pid = small.pid_in("a")
    small.reach(id, "running")
    small.kill_engine()
    ballast = fill(small)
    code, _, err = small.run("up")
    assert "Traceback" not in err
    assert code == 0 or ("space" in err and code == 1), err
    assert alive(pid)
    assert small.states() == {id: "running"}, "what is known can still be read"
    ballast.unlink()
    small.up(None)
    (small.work / "a.go").touch()
    assert small.end(id) == ["succeeded"]


def test_a_read_only_home_is_refused_with_what_to_do_and_can_still_be_read(small: Instance) -> None:
    small.up("sim:1x24")
    (id,) = small.submit({})
    small.end(id)
    small.ok("down")
    until(lambda: not small.processes())
    mount(str(small.home), small.home, None, BIND)
    mount("none", small.home, None, REMOUNT | BIND | READ_ONLY)
    try:
        for words in (("up",), ("add", "--", "true")):
            code, _, err = small.run(*words)
            assert (code, "Traceback" in err) == (5, False), err
            assert str(small.home) in err and "read-only" in err.lower().replace("readonly", "read-only")
        assert [row["id"] for row in small.json("ps", "--all")["jobs"]] == [id]
    finally:
        assert libc.umount2(str(small.home).encode(), DETACH) == 0
    small.up(None)
    assert small.states() == {id: "succeeded"}


def test_state_on_a_network_file_system_moves_to_a_local_disk_and_says_so(
    mounts: None, make_instance: Callable[..., Instance]
) -> None:
    instance = make_instance("net")
    instance.env["JOSTLE_TEST_FSTYPE"] = f"{instance.home}=nfs4"
    local = instance.root / "var-tmp"
    local.mkdir(mode=0o1777)
    mount(str(local), "/var/tmp", None, BIND)
    code, _, err = instance.run("up", "--gpus", "sim:1x24")
    assert (code, "network file system" in err, f"/var/tmp/jostle-{os.getuid()}" in err) == (0, True, True), err
    moved = local / f"jostle-{os.getuid()}"
    assert stat.S_IMODE(moved.stat().st_mode) == 0o700
    assert (moved / "jostle.db").exists() and not instance.home.exists()
    instance.ok("down")


def test_a_write_error_is_told_to_the_client_and_nothing_is_half_recorded(instance: Instance) -> None:
    instance.up("sim:1x24", env={"JOSTLE_FAILPOINTS": "service.before_commit=EIO@1"})
    code, out, err = instance.run("add", "--", "true")
    assert (code, out) == (1, "")
    assert "Input/output error" in err and "nothing was recorded" in err
    id = instance.add("--", "true")
    assert (id, instance.end(id)) == (1, ["succeeded"])


def test_a_disk_that_cannot_make_sure_holds_starts_until_it_can(instance: Instance) -> None:
    """fdatasync fails (F23): what was begun goes on, nothing else is begun, and it goes on by itself."""
    flag = instance.root / "bad"
    instance.up("sim:1x24", env={"LD_PRELOAD": library(BAD_SYNC, "badsync.so"), "BAD_SYNC": str(flag)})
    ids = instance.submit(*[{"commands": [WAITING.format(name, 0)]} for name in "abc"])
    first = instance.pid_in("a")
    flag.touch()
    (instance.work / "a.go").touch()
    until(lambda: not alive(first))
    until(lambda: instance.call("hello")["hold"] == "disk_error")
    (instance.work / "b.go").touch()  # if its start was recorded with the end of the first it goes on, and ends
    tried = flag.stat().st_size
    until(lambda: flag.stat().st_size > tried, "the engine asks the disk again")
    assert instance.states()[ids[2]] == "queued" and not (instance.work / "c").exists()
    flag.unlink()
    (instance.work / "c.go").touch()
    assert instance.end(*ids) == ["succeeded"] * 3
    said = [line for line in instance.log().splitlines() if "the disk" in line]
    assert "reports an error (Input/output error)" in said[0] and "takes what is written again" in said[1]


def test_a_disk_that_fails_is_not_called_full(instance: Instance) -> None:
    """EIO: freeing space would not help; who asks is told what is wrong, in either language."""
    instance.up("sim:1x24", env={"JOSTLE_FAILPOINTS": "store.before_sync=EIO"})
    with contextlib.closing(instance.client()) as client:
        assert until(lambda: client.call("hello")["hold"]) == "disk_error"
    for language, words in (("en", "reports errors"), ("zh", "报告读写错误")):
        told = instance.ok("status", env={"JOSTLE_LANG": language})
        assert words in told and "full" not in told and "已满" not in told
    code, _, err = instance.run("add", "--", "true")
    assert code == 1 and "reports an error (Input/output error)" in err and "space" not in err
    instance.kill_engine()


def test_what_was_refused_because_the_disk_failed_is_not_there_for_the_next_engine(instance: Instance) -> None:
    """SQLite leaves the refused commit whole in its journal; whoever opens it next would take it for made."""
    flag = instance.root / "bad"
    instance.up("sim:1x24", env={"LD_PRELOAD": library(BAD_SYNC, "badsync.so"), "BAD_SYNC": str(flag)})
    kept = instance.add("--hold", "--", "true")
    instance.see_cards()  # else what the engine writes of its own accord may be what fails, and this be refused without a try
    flag.touch()
    code, _, err = instance.run("add", "--", "touch", "ran")
    assert code == 1 and "nothing was recorded" in err
    pid = instance.call("hello")["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    flag.unlink()
    instance.up(None)
    assert instance.states() == {kept: "queued"}


def test_an_engine_that_cannot_write_its_own_log_goes_on(small: Instance) -> None:
    small.up("sim:1x24")
    (id,) = small.submit({"commands": [WAITING.format("a", 3)]})
    small.pid_in("a")
    pid = small.call("hello")["pid"]
    log = small.home / "engine.log"
    with open(log, "ab") as f:
        f.write(b"." * (-log.stat().st_size % 4096))  # its next line needs a block more
    ballast = fill(small)
    (small.work / "a.go").touch()
    until(lambda: small.call("hello")["hold"] == "disk_full")
    ballast.unlink()
    assert small.end(id) == ["failed"] and small.call("hello")["pid"] == pid


def test_a_disk_that_fails_when_a_jobs_time_comes_does_not_end_the_engine(instance: Instance) -> None:
    instance.up("sim:1x24")
    (id,) = instance.submit({"begin": 1e11})
    instance.see_cards()  # else the first commit of the next engine is what it sees of them
    instance.kill_engine()  # one that is told to end notes when it read them last, and the next takes that back
    with contextlib.closing(sqlite3.connect(instance.home / "jostle.db")) as db, db:
        db.execute("UPDATE job SET not_before = 1")
    instance.up(None, env={"JOSTLE_FAILPOINTS": "store.before_commit=ENOSPC@1"})
    until(lambda: "nothing was recorded" in instance.log())
    assert instance.end(id) == ["succeeded"]


def test_a_database_that_another_program_keeps_locked_is_not_taken_for_damaged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = Store(str(home))
    store.db.execute("PRAGMA busy_timeout = 20")
    with contextlib.closing(sqlite3.connect(home / "jostle.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unwritten, match="another program keeps"), store.transaction():
            store.put("a", 1)
        other.execute("ROLLBACK")
    with store.transaction():
        store.put("a", 2)
    assert store.get("a") == 2
    store.close()


def test_a_log_that_cannot_be_written_does_not_end_its_job(instance: Instance) -> None:
    instance.up("sim:1x24")
    full, limited, gone = instance.submit(
        {"commands": ["echo lost; echo lost >&2; exit 0"], "log": "/dev/full"},
        {"commands": ["trap '' XFSZ; ulimit -f 1; head -c 5000 /dev/zero; exit 0"]},
        {"commands": ["true"], "log": "/proc/none/log"},
    )
    assert instance.end(full, limited, gone) == ["succeeded", "succeeded", "failed"]
    assert "/proc/none/log" in said(instance.job(gone)["reason"])


# --- whose it is and who else may see it


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_home_that_is_open_to_others_is_refused_with_the_chmod_to_run(instance: Instance, mode: int) -> None:
    instance.home.mkdir()
    instance.home.chmod(mode)
    for words in (("up",), ("ps",), ("add", "--", "true")):
        code, _, err = instance.run(*words)
        assert (code, f"chmod 700 {instance.home}" in err) == (5, True)
    assert os.listdir(instance.home) == []
    instance.home.chmod(0o700)


def test_a_linked_home_and_one_where_anybody_could_put_another_in_its_place_are_refused(instance: Instance) -> None:
    real = instance.root / "real"
    real.mkdir(mode=0o700)
    os.symlink(real, instance.home)
    code, _, err = instance.run("ps")
    assert (code, "symbolic link" in err) == (5, True)
    instance.home.unlink()
    instance.root.chmod(0o777)
    try:
        code, _, err = instance.run("up", "--gpus", "sim:1x24")
        assert (code, f"chmod o-w {instance.root}" in err) == (5, True), err
    finally:
        instance.root.chmod(0o700)


ACCESS_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, may, who)  # owner, uid 4242, group, mask, others
    for tag, may, who in ((1, 7, 0xFFFFFFFF), (2, 7, 4242), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF))
)


@pytest.mark.parametrize(
    ("members", "primary", "named", "listed", "good"),
    [
        ("", 0, True, False, True),
        ("root", 0, True, False, True),
        ("root,mate", 0, True, False, False),
        ("", 4000, True, False, False),
        ("", 0, False, False, False),
        ("", 0, True, True, False),
    ],
    ids=["nobody", "only me", "a member", "a user whose group it is", "a group without a name", "an access list"],
)  # fmt: skip
def test_a_directory_above_may_be_changed_by_its_group_only_if_nobody_else_is_in_it(
    mounts: None, tmp_path: Path, members: str, primary: int, named: bool, listed: bool, good: bool
) -> None:
    passwd, group, lab = tmp_path / "passwd", tmp_path / "group", tmp_path / "lab"
    passwd.write_text(f"root:x:0:0::/root:/bin/sh\nmate:x:4001:{primary or 4001}::/:/bin/sh\n")
    group.write_text("root:x:0:\n" + (f"lab:x:4000:{members}\n" if named else ""))
    for path in (passwd, group):
        mount(str(path), f"/etc/{path.name}", None, BIND)
    (lab / "mine" / "home").mkdir(parents=True)
    os.chown(lab, 0, 4000)
    lab.chmod(0o775)
    if listed:
        lab.chmod(0o755)
        os.setxattr(lab, "system.posix_acl_access", ACCESS_LIST)
    with contextlib.nullcontext() if good else pytest.raises(Forbidden, match=f"chmod g-w {lab}"):
        check_way(str(lab / "mine" / "home"))


def test_a_link_on_the_way_is_followed_and_where_it_leads_is_looked_at(tmp_path: Path) -> None:
    """However it is written: what a stranger can change lies behind the link, not before it."""
    real = tmp_path / "real"
    (real / "deep").mkdir(parents=True)
    os.symlink("../real", real / "again")
    os.symlink(real, tmp_path / "link")
    path = tmp_path / "link" / "again" / "deep" / "home"
    check_way(str(path))
    real.chmod(0o757)
    with pytest.raises(Forbidden, match=f"chmod o-w {real}"):
        check_way(str(path))


def test_a_foreign_home_is_refused(instance: Instance) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give a directory away")
    instance.home.mkdir(mode=0o700)
    os.chown(instance.home, 4242, 4242)
    code, _, err = instance.run("ps")
    assert (code, "uid 4242" in err) == (5, True)
    os.chown(instance.home, 0, 0)


def test_with_no_umask_at_all_nothing_that_is_made_for_the_state_can_be_changed_by_others(instance: Instance) -> None:
    """Not `~/.local` on the way to it either; whichever process makes it, the engine or a verb before there is one."""
    user = instance.root / "user"
    user.mkdir(mode=0o700)
    instance.home = user / ".local" / "state" / "jostle"
    del instance.env["JOSTLE_HOME"]
    instance.env["HOME"] = str(user)
    umask = {"preexec_fn": lambda: os.umask(0)}
    code = instance.work / "main.py"
    code.write_text("print(1)\n")
    code.chmod(0o666)
    instance.ok("gpus", "--gpus", "sim:1x24", **umask)
    file = instance.file("jobs: [{name: a, run: python3 main.py}, {name: b, run: 'umask', gpus: 0}]")
    try:
        instance.ok("run", "--gpus", "sim:1x24", "--freeze", file, **umask)
        made = {str(path.relative_to(user)): stat.filemode(mode) for path, mode in modes(user / ".local").items()}
        assert {name: mode for name, mode in made.items() if "w" in mode[4:] and mode[0] != "l"} == {}
        assert {mode[4:] for name, mode in made.items() if name.count("/") < 3 and mode[0] == "d"} == {"------"}
        assert any("frozen" in name for name in made) and any("/leases" in name for name in made)
    finally:
        instance.ok("down", "--stop-jobs", "--now")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_whatever_the_umask_only_the_owner_can_see_anything(instance: Instance, mask: int) -> None:
    instance.up("sim:1x24", preexec_fn=lambda: os.umask(mask))
    id = instance.add("--", "umask; true", preexec_fn=lambda: os.umask(mask))
    assert instance.end(id) == ["succeeded"]
    assert instance.output(id).strip() == f"{mask:04o}", "the job has the umask it was submitted with"
    open_to_others = [
        str(path) for path, mode in modes(instance.home).items() if mode & 0o077 and path.parent.name not in ("leases", "sim")
    ]
    assert open_to_others == []
