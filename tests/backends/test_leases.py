"""Claims in a directory where anybody may write: what is live, what is ours, and who wins."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import select
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_bench import PATIENCE, Bench, MakeBench

from jostle import failpoint
from jostle.backends.local import claims, leases
from jostle.backends.local.claimlock import is_free
from jostle.backends.local.filewatch import DirWatch
from jostle.backends.local.leasedir import MOST, Directory
from jostle.core.reasons import Hold, as_text, hold_of
from jostle.errors import JostleError
from jostle.port import Denied, Launch, Reserved, Tenure

HOME = "0badcafe"


def name(uuid: str = "GPU-0", *, home: str = HOME, run: tuple[int, int] = (1, 1), mib: int | None = None) -> str:
    return claims.name_of(claims.Claim(uuid=uuid, mib=mib, sid=4711, home=home, run=run))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "leases").mkdir()
    return tmp_path / "leases"


@pytest.fixture
def directory(place: Path) -> Directory:
    return Directory(str(place), HOME)


@pytest.fixture
def held(place: Path) -> Iterator[leases.HeldClaim]:
    one = leases.publish(str(place), name())
    yield one
    try:
        os.close(one.fd)
    except OSError:
        pass


def test_a_published_claim_is_live_readable_by_all_and_writable_by_none(
    directory: Directory, place: Path, held: leases.HeldClaim
) -> None:
    [one] = directory.live({})
    assert (one.name, one.uid, one.ours, one.inode) == (held.name, os.geteuid(), True, held.inode)
    assert [p.name for p in place.iterdir()] == [held.name]
    assert stat.S_IMODE((place / held.name).stat().st_mode) == 0o444


def test_a_claim_of_another_home_is_live_and_not_ours(place: Path, held: leases.HeldClaim) -> None:
    [one] = Directory(str(place), "ffffffff").live({})
    assert not one.ours


def test_a_claim_ends_with_the_last_descriptor(directory: Directory, place: Path, held: leases.HeldClaim) -> None:
    copy = os.dup(held.fd)
    os.close(held.fd)
    assert len(directory.live({})) == 1
    os.close(copy)
    assert directory.live({}) == []
    assert list(place.iterdir()) == []  # ours and stale: removed


def test_a_stale_claim_of_another_home_is_dead_but_left_alone(place: Path, held: leases.HeldClaim) -> None:
    os.close(held.fd)
    assert Directory(str(place), "ffffffff").live({}) == []
    assert [p.name for p in place.iterdir()] == [held.name]


def test_withdrawing_removes_only_what_was_published(place: Path, held: leases.HeldClaim) -> None:
    (place / held.name).unlink()
    (place / held.name).write_text("somebody else's")
    leases.withdraw(str(place), [held])
    assert (place / held.name).exists()


def test_publishing_is_all_or_nothing(place: Path) -> None:
    taken = place / name("GPU-1")
    taken.mkdir()  # cannot be replaced by a file
    with pytest.raises(OSError):
        leases.publish_all(str(place), [name("GPU-0"), name("GPU-1"), name("GPU-2")])
    assert list(place.iterdir()) == [taken]


def test_what_a_crash_left_half_published_is_removed_and_in_nobodys_way(directory: Directory, place: Path) -> None:
    (place / f".{name()}").touch(0o000)
    other = place / f".{name(home='ffffffff')}"
    other.touch(0o000)
    held = leases.publish(str(place), name())
    assert len(directory.live({})) == 1
    (place / f".{name()}").touch(0o000)
    assert len(directory.live({})) == 1
    assert sorted(p.name for p in place.iterdir()) == sorted([held.name, other.name])
    os.close(held.fd)


def test_hostile_entries_are_neither_followed_nor_waited_for_nor_harmed(
    directory: Directory, place: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (place / name("GPU-1")).symlink_to(victim)
    (place / name("GPU-2")).symlink_to("/nowhere")
    os.mkfifo(place / name("GPU-3"))
    (place / name("GPU-4")).mkdir()
    sock = socket.socket(socket.AF_UNIX)
    here = os.open(place, os.O_RDONLY)
    sock.bind(f"/proc/self/fd/{here}/{name('GPU-5')}")
    (place / "jostle-rubbish~x").write_text("")
    os.mkfifo(place / "other")
    assert directory.live({}) == []
    assert directory.contested({f"GPU-{i}" for i in range(9)}, ()) is False
    assert victim.read_text() == "precious"
    assert len(list(place.iterdir())) == 7
    sock.close()
    os.close(here)


def test_a_hard_link_to_our_own_file_is_not_taken_for_our_claim(directory: Directory, place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.link(victim, place / name())
    assert directory.live({}) == []
    with victim.open() as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        [one] = directory.live({})
        assert not one.ours
    assert victim.read_text() == "precious"
    assert (place / name()).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_an_unreadable_claim_of_another_user_counts_as_live(place: Path) -> None:
    place.chmod(0o1777)
    for parent in place.parents:
        if stat.S_IMODE(parent.stat().st_mode) & 0o005 != 0o005:
            parent.chmod(0o755)
    (place / name()).touch(0o000)
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            found = Directory(str(place), HOME).live({})
            os.write(w, f"{len(found)} {found[0].uid} {found[0].ours}".encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(r, 100) == b"1 0 False"
    os.close(r)
    os.close(w)


def test_a_directory_that_cannot_be_read_lets_nothing_start(place: Path) -> None:
    gone = Directory(str(place / "gone"), HOME)
    assert gone.live({}) == []
    assert gone.contested({"GPU-0"}, ()) is True
    assert gone.publish([name()]) is None
    assert gone.trouble is not None and "No such file" in gone.trouble.detail


def test_the_meeting_place_must_be_roots_and_sticky(place: Path) -> None:
    assert leases.find_dir(("/nowhere", "/tmp")) == "/tmp"
    with pytest.raises(JostleError, match="JOSTLE_LEASE_DIR"):
        leases.find_dir((str(place), "/proc"))


def test_a_claim_of_a_stranger_wins_over_a_reservation_unless_it_was_known(make_bench: MakeBench) -> None:
    one, two = make_bench("one"), make_bench("two")
    first = one.reserve((1, 1), [("GPU-0", None), ("GPU-1", 500)])
    two.until(lambda: two.local.capacity())
    assert two.local.reserve((1, 1), "", [("GPU-1", 500)], frozenset()) is Denied.REFUSED
    assert {c.name for c in two.local.claims()} == set(first.names)
    assert not any(c.ours for c in two.local.claims())
    allowed = two.local.reserve((1, 1), "", [("GPU-1", 500)], frozenset(first.names))
    assert isinstance(allowed, Reserved)
    two.local.withdraw([(1, 1)])
    one.local.withdraw([(1, 1)])
    assert one.local.claims() == two.local.claims() == []
    assert two.local.capacity() >= 1


def test_our_own_claims_are_not_in_our_way(bench: Bench) -> None:
    bench.local.want(3)
    first = bench.reserve((1, 1), [("GPU-0", 500)])
    second = bench.reserve((2, 1), [("GPU-0", 500)])
    assert first.pid != second.pid
    assert {c.claim.sid for c in bench.local.claims()} == {first.pid, second.pid}
    bench.local.withdraw([(1, 1), (2, 1)])


def test_c3_claims_of_all_homes_count_and_who_would_be_one_too_many_withdraws(make_bench: MakeBench) -> None:
    """Two homes of one user: a card counts once, what nobody asked for apart, and nothing is left of what was too much."""
    one, two = make_bench("one"), make_bench("two")
    for bench in (one, two):
        bench.local.want(4)
        bench.until(lambda bench=bench: bench.local.capacity() >= 4)
    by_hand, automatic = Tenure(total=3, alike=2), Tenure(automatic=True, total=3, alike=1)

    def reserved(bench: Bench, job: int, card: int, tenure: Tenure) -> bool:
        known = frozenset(c.name for c in bench.local.claims())
        return isinstance(bench.local.reserve((job, 1), "", [(f"GPU-{card}", 500)], known, tenure=tenure), Reserved)

    assert reserved(one, 1, 0, by_hand) and reserved(two, 1, 0, by_hand), "the same card, shared, counts once"
    assert reserved(two, 2, 1, automatic)
    assert {c.claim.uuid: c.automatic for c in one.local.claims() if not c.ours} == {"GPU-0": False, "GPU-1": True}
    assert not reserved(one, 2, 2, automatic), "one automatically is all"
    assert reserved(one, 3, 2, by_hand)
    before = {c.name for c in one.local.claims()}
    assert not reserved(two, 3, 3, by_hand), "three in all"
    assert {c.name for c in one.local.claims()} == before, "what was published is withdrawn"
    two.local.withdraw([(2, 1)])
    assert not reserved(two, 4, 3, by_hand), "two by hand"
    assert reserved(two, 5, 4, automatic), "but one automatically again"
    one.local.withdraw([(3, 1)])
    assert reserved(one, 5, 4, by_hand) and reserved(two, 6, 5, automatic), "which no longer is, as a program is there by hand"
    one.local.withdraw([(5, 1)])
    two.local.withdraw([(6, 1)])
    one.local.withdraw([(1, 1), (3, 1)])
    two.local.withdraw([(1, 1), (5, 1)])


def test_c3_a_claim_that_nobody_asked_for_stays_such_when_it_is_published_again(make_bench: MakeBench) -> None:
    one, two = make_bench("one"), make_bench("two")
    run = (1, 1)
    held = one.reserve(run, [("GPU-0", None)], Tenure(automatic=True))
    one.give(held, one.spec(run, ["while [ ! -e go ]; do sleep 0.02; done"]))
    (claim,) = two.local.claims()
    assert claim.automatic and claim.since is not None
    (one.lease_dir / claim.name).unlink()
    one.until(lambda: one.ear.notes, what="it is noticed")
    again = next(c for c in two.local.claims() if not c.vanished)
    assert again.name != claim.name and again.automatic
    (one.home / "go").touch()
    one.end(run)
    one.forget(run)


def test_a_claim_deleted_while_held_is_noticed_and_published_again(bench: Bench) -> None:
    run = (1, 1)
    bench.start(run, "while [ ! -e go ]; do sleep 0.02; done", wants=[("GPU-0", None), ("GPU-1", None)])
    names = [c.name for c in bench.local.claims()]
    bench.local.tick(time.monotonic())
    assert len(names) == 2 and bench.ear.notes == [], "nothing is missing"
    (bench.lease_dir / names[0]).unlink()
    assert len(bench.local.claims()) == 1
    bench.until(lambda: bench.ear.notes, what="it is noticed")
    assert bench.ear.notes == [(run, "republished", {"claims": [names[0]]})] and bench.ear.wakes
    back = {c.name for c in bench.local.claims()}
    assert len(back) == 2 and names[1] in back and names[0] not in back, "under a name that nobody could take ahead"
    (bench.home / "go").touch()
    bench.end(run)
    bench.forget(run)
    assert bench.local.claims() == [] and list(bench.lease_dir.iterdir()) == []


def kept(place: Path) -> int:
    """How many files of a directory this process has open."""
    return sum(os.path.realpath(f"/proc/self/fd/{fd}").startswith(f"{place}/") for fd in os.listdir("/proc/self/fd"))


def test_what_removes_a_claim_while_it_is_held_is_heard_and_an_orderly_end_is_not(bench: Bench) -> None:
    bench.start((1, 1), "until [ -e go ]; do sleep 0.02; done", wants=[("GPU-0", None)])
    bench.until(lambda: bench.has_begun((1, 1)))
    (bench.home / "go").touch()
    bench.end((1, 1))
    bench.until((bench.dir((1, 1)) / "exit").exists)
    bench.loop.turn(0)
    bench.local.tick(time.monotonic() + 1e6)
    assert bench.ear.notes == []
    bench.forget((1, 1))
    (bench.home / "go").unlink()
    bench.start((2, 1), "until [ -e go ]; do sleep 0.02; done", wants=[("GPU-0", None)])
    bench.until(lambda: bench.has_begun((2, 1)))
    bench.until(lambda: kept(bench.lease_dir), what="the claim is seen")
    next(bench.lease_dir.iterdir()).unlink()
    while not bench.ear.notes:  # no tick: the watch on the directory alone
        bench.loop.turn(PATIENCE)
    assert [(run, kind) for run, kind, _ in bench.ear.notes] == [((2, 1), "republished")]
    (bench.home / "go").touch()
    bench.end((2, 1))


@pytest.mark.parametrize("how", ["unlink", "rename", "replace"])
def test_a_claim_that_was_seen_counts_for_as_long_as_it_is_held_whatever_becomes_of_its_file(place: Path, how: str) -> None:
    other = Directory(str(place), "ffffffff")
    held = leases.publish(str(place), name())
    assert [one.vanished for one in other.live({})] == [False]
    if how == "unlink":
        (place / held.name).unlink()
    elif how == "rename":
        (place / held.name).rename(place / "aside")
    else:
        (place / held.name).unlink()
        (place / held.name).touch()  # unlocked: a claim that nobody holds
    [one] = other.live({})
    assert (one.name, one.inode, one.vanished) == (held.name, held.inode, True)
    assert other.live({}, {"GPU-0"}) == [one] == other.live({}, {"GPU-0"})
    os.close(held.fd)
    assert other.live({}) == []
    other.close()


def test_a_claim_that_is_published_again_counts_once(place: Path) -> None:
    other = Directory(str(place), "ffffffff")
    first = leases.publish(str(place), name(mib=500))
    assert len(other.live({})) == 1
    (place / first.name).unlink()
    second = leases.publish(str(place), name(mib=500))
    assert [(one.inode, one.vanished) for one in other.live({})] == [(second.inode, False)]
    leases.withdraw(str(place), [second])
    assert [(one.inode, one.vanished) for one in other.live({})] == [(first.inode, True)]
    leases.withdraw(str(place), [first])
    assert other.live({}) == [] and list(place.iterdir()) == []
    other.close()


def test_who_waits_for_the_lock_of_a_claim_holds_no_gpu_by_it_when_it_was_given_back(place: Path) -> None:
    other = Directory(str(place), "ffffffff")
    held = leases.publish(str(place), name())
    assert len(other.live({})) == 1
    probe = os.open(place / held.name, os.O_RDONLY)
    code = "import fcntl, sys; f = open(sys.argv[1]); print(flush=True); fcntl.flock(f, 2); print(flush=True); input()"
    argv = [sys.executable, "-I", "-S", "-c", code, str(place / held.name)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdin is not None and neighbour.stdout is not None
        neighbour.stdout.readline()
        leases.withdraw(str(place), [held])
        neighbour.stdout.readline()
        assert not is_free(probe) and other.live({}) == [], "the neighbour has the lock, and nothing by it"
        neighbour.stdin.close()
    os.close(probe)
    other.close()


def test_descriptors_of_claims_go_with_the_claims(place: Path) -> None:
    other = Directory(str(place), "ffffffff")
    for n in range(50):
        held = leases.publish(str(place), name(run=(n, 1)))
        assert len(other.live({})) == 1
        if n % 2:
            (place / held.name).unlink()
        assert kept(place) == 2
        leases.withdraw(str(place), [held])
        assert other.live({}) == [] and kept(place) == 0


def test_beyond_a_bound_a_users_claims_are_not_opened_and_their_cards_count_as_his(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Directory(str(place), "ffffffff")
    opened: list[str] = []
    for n in range(2 * MOST):
        (place / name(f"GPU-{n % 3}", run=(n, 1))).touch(0o444)  # that nobody has locked
        (place / name("GPU-not-here", run=(n, 1))).touch(0o444)
    real = os.open

    def counted(path: str, *more: int) -> int:
        opened.append(path)
        return real(path, *more)

    monkeypatch.setattr(os, "open", counted)
    found = other.live({}, {"GPU-0", "GPU-1", "GPU-2", "GPU-3"})
    assert {(c.claim.uuid, c.claim.mib, c.uid) for c in found} == {(f"GPU-{n}", None, os.geteuid()) for n in range(3)}
    assert len(opened) == MOST and not any("not-here" in path for path in opened)
    opened.clear()
    assert other.contested({"GPU-3"}, ()) is False and opened == []
    assert other.contested({"GPU-0", "GPU-1", "GPU-2"}, ()) is True and len(opened) <= MOST
    (place / ("." + name("GPU-9"))).touch()
    for path in place.iterdir():
        path.unlink()
    held = leases.publish(str(place), name())
    assert [c.name for c in other.live({}, {"GPU-0"})] == [held.name], "those who come later are judged as ever"
    leases.withdraw(str(place), [held])
    other.close()


def test_two_homes_that_contest_gpus_never_overlap(make_bench: MakeBench, tmp_path: Path) -> None:
    chance = random.Random(1)
    (tmp_path / "witness").mkdir()
    shell = 'cd "$0" && for g; do mkdir $g || exit 9; done && for g; do rmdir $g || exit 8; done'
    benches = [make_bench("one"), make_bench("two")]
    live: dict[tuple[int, tuple[int, int]], None] = {}
    ended, refused, job = 0, 0, 0
    while ended < 200:
        for i, bench in enumerate(benches):
            bench.local.tick(0.0)
            bench.loop.turn(0.001)
            job += 1
            gpus = chance.sample(["GPU-0", "GPU-1", "GPU-2"], chance.choice([1, 1, 2]))
            busy = {c.claim.uuid for c in bench.local.claims() if c.ours}
            if bench.local.capacity() and not busy & set(gpus):
                got = bench.local.reserve((job, 1), "", [(g, None) for g in gpus], frozenset())
                refused += got is Denied.REFUSED
                if isinstance(got, Reserved):
                    command = ["sh", "-c", shell, str(tmp_path / "witness"), *gpus]
                    bench.local.start([Launch((job, 1), got.handle, bench.spec((job, 1), [command]))])
                    live[i, (job, 1)] = None
        for i, run in list(live):
            report = benches[i].poll(run)
            if report.kind == "ended":
                assert report.exit is not None and report.exit.code == 0, (run, report.exit)
                benches[i].forget(run)
                del live[i, run]
                ended += 1
            else:
                assert report.kind in ("starting", "alive")
    assert refused > 10  # they did get in each other's way


MET = 10


def _contend(place: Path, witness: Path, home: str, starts: int, look: bool) -> tuple[int, int]:
    """One scheduler: publish, look again, use the GPU, give it back; how often it overlapped and was refused. On a busy host one
    may be through before the next begins: all go on until one has met others often enough."""
    directory, chance = Directory(str(place), home), random.Random(home)
    overlaps = refused = done = 0
    met, end = witness / "met", time.monotonic() + PATIENCE
    while done < starts or not (met.exists() or time.monotonic() > end):
        if overlaps + refused >= MET:
            met.touch()
        gpu = chance.choice(["GPU-0", "GPU-1"])
        held = directory.publish([name(gpu, home=home, run=(done, 1))])
        assert held is not None
        if look and directory.contested({gpu}, {one.name for one in held}):
            refused += 1
            leases.withdraw(str(place), held)
            select.select([], [], [], chance.uniform(0, 0.002))
            continue
        done += 1
        try:
            (witness / gpu).mkdir()
        except FileExistsError:
            overlaps += 1
        else:
            os.sched_yield()
            (witness / gpu).rmdir()
        leases.withdraw(str(place), held)
    return overlaps, refused


def _contention(place: Path, witness: Path, look: bool) -> tuple[int, int]:
    """Three processes at once; the sums of what they saw."""
    witness.mkdir()
    readers, pids = [], []
    for home in ("00000001", "00000002", "00000003"):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(w, json.dumps(_contend(place, witness, home, 150, look)).encode())
            finally:
                os._exit(0)
        os.close(w)
        readers.append(r)
        pids.append(pid)
    told = []
    for r, pid in zip(readers, pids, strict=True):
        told.append(json.loads(os.read(r, 100)))
        os.close(r)
        os.waitpid(pid, 0)
    return sum(t[0] for t in told), sum(t[1] for t in told)


def test_processes_that_claim_at_the_same_time_never_overlap(place: Path, tmp_path: Path) -> None:
    overlaps, refused = _contention(place, tmp_path / "witness", look=True)
    assert overlaps == 0 and refused >= MET


def test_the_contest_would_show_overlaps_if_nobody_looked_again(place: Path, tmp_path: Path) -> None:
    overlaps, _ = _contention(place, tmp_path / "witness", look=False)
    assert overlaps > 0


def test_a_name_that_somebody_sits_on_is_no_trouble_for_anything_else(directory: Directory, place: Path) -> None:
    blocked = place / name()
    blocked.mkdir()
    (blocked / "full").touch()
    assert (directory.publish([name()]), directory.trouble) == (None, None)
    other = directory.publish([name("GPU-1")])
    assert other is not None
    leases.withdraw(str(place), other)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EPERM"])
def test_a_directory_in_which_nothing_can_be_claimed_is_told_with_its_owner(
    directory: Directory, place: Path, error: str
) -> None:
    """EPERM also where files can be made and not renamed (append-only): no name is taken there, and none would do."""
    os.chown(place, 65534, 65534)
    failpoint.arm(f"leases.published={error}")
    try:
        assert directory.publish([name()]) is None
    finally:
        failpoint.arm("")
    why = f"{place}, which belongs to uid 65534: {os.strerror(getattr(errno, error))}"
    assert directory.trouble == Hold("gpus_unclaimable", why, gpus_only=True) == hold_of(as_text(directory.trouble))
    assert os.listdir(place) == []


def test_one_file_that_comes_and_goes_under_many_names_is_kept_once_for_each_card(place: Path) -> None:
    other = Directory(str(place), "ffffffff")
    (place / ".one").touch()
    with open(place / ".one") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        for number in range(50):
            os.link(place / ".one", place / name(f"GPU-{number % 2}", run=(number + 1, 1)))
            assert any(one.claim.run == (number + 1, 1) for one in other.live({}))
            (place / name(f"GPU-{number % 2}", run=(number + 1, 1))).unlink()
        assert {one.claim.uuid for one in other.live({})} == {"GPU-0", "GPU-1"}
        assert sum(os.path.realpath(f"/proc/self/fd/{fd}").startswith(f"{place}/") for fd in os.listdir("/proc/self/fd")) == 3
    assert other.live({}) == []
    other.close()


def test_of_vanished_claims_of_one_user_a_bounded_number_is_kept_and_every_card_counts(place: Path) -> None:
    other = Directory(str(place), "ffffffff")
    held: list[leases.HeldClaim] = []
    for number in range(MOST + 60):  # the last cards come when there is no room for more
        held.append(leases.publish(str(place), name(f"GPU-{number // 100}", run=(number + 1, 1), mib=100)))
        assert any(one.claim.run == (number + 1, 1) for one in other.live({}))
        (place / held[-1].name).unlink()
    found = other.live({})
    assert len(found) <= MOST + 1 and all(one.vanished for one in found)
    assert {one.claim.uuid for one in found} == {f"GPU-{n}" for n in range(len(held) // 100 + 1)}
    assert {one.claim.uuid for one in found if one.claim.alone} >= {"GPU-0"}  # stands for those that were not kept
    for one in held:
        os.close(one.fd)
    assert other.live({}) == []
    other.close()


def test_who_is_quicker_in_the_directory_than_we_are_does_not_keep_us_there(place: Path) -> None:
    watch = DirWatch(str(place))
    (place / "a").touch()
    for _ in range(3000):
        (place / "a").rename(place / "b")
        (place / "b").rename(place / "a")
    leases.withdraw(str(place), [leases.publish(str(place), name())])
    assert watch.fd is not None and name() not in watch.changes()[0], "all was taken in at once"
    heard: dict[str, bool] = {}
    while select.select([watch.fd], [], [], 0)[0]:
        heard |= watch.changes()[0]
    assert heard[name()] is False and heard["a"] is True
    watch.close()
