"""Runs that get other cards while they live: legs, lists and signals, with real shims and programs."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench, Held, MakeBench

from jostle import proc
from jostle.backends.local import control
from jostle.backends.local.legs import GAP
from jostle.core.model import RunId
from jostle.port import Adopted, Denied, Footing, Phase, Resizing

RUN = (7, 1)
A, B, C = "GPU-a", "GPU-b", "GPU-c"

LISTENER = """
import os, signal, sys, time
def told(*_):
    lines = open(os.environ["JOSTLE_GPUS_FILE"]).read().split("\\n")
    open("told.new", "w").write(" ".join(lines[:2])); os.rename("told.new", "told")
signal.signal(signal.SIGUSR1, told)
open("listens", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
"""
STEPS = 'echo "$JOSTLE_LEG $CUDA_VISIBLE_DEVICES" >> legs; until [ -e go ]; do sleep 0.02; done; exit 3'


def names(cards: Sequence[str]) -> str:
    return ",".join(card.removeprefix("GPU-") for card in cards)


def start(bench: Bench, command: str | list[str], how: str, cards: Sequence[str] = (A,), **more: Any) -> Held:
    env = {"CUDA_VISIBLE_DEVICES": names(cards), "JOSTLE_GPUS": names(cards), **more.pop("env", {})}
    held = bench.start(RUN, command, wants=[(c, None) for c in cards], resize=how, env=env, **more)
    bench.until(lambda: bench.has_begun(RUN))
    return held


def order(bench: Bench, number: int, cards: Sequence[str], run: RunId = RUN, more: Sequence[str] = ()) -> Denied | None:
    """As the engine does: reserve what is new, record it, tell it."""
    claims = frozenset(c.name for c in bench.local.claims())
    denied = bench.local.reserve_more(run, [(card, None) for card in more], claims, alone=True) if more else None
    if denied is None:
        env = {"CUDA_VISIBLE_DEVICES": names(cards), "JOSTLE_GPUS": names(cards)}
        bench.local.resize([Resizing(run, number, tuple(cards), env)])
    return denied


def footing(bench: Bench, order: int, *, settled: bool = True) -> Footing:
    def known() -> Footing | None:
        got = bench.poll(RUN).footing
        done = got is not None and got.order >= order and (not settled or not got.taken or got.effective == got.order)
        return got if done else None

    got = bench.until(known, what=f"order {order}, last {bench.poll(RUN)}")
    assert isinstance(got, Footing)
    return got


def on(bench: Bench) -> list[str]:
    """The cards that the run has live claims on, for everybody to see."""
    return sorted(c.claim.uuid for c in bench.local.claims() if c.claim.run == RUN)


def begun(bench: Bench) -> None:
    """Until the first leg of STEPS has said so."""
    bench.until(lambda: (bench.home / "legs").exists() and (bench.home / "legs").read_text().endswith("\n"))


def reads(path: Path, text: str) -> bool:
    return path.exists() and path.read_text().strip() == text


def test_c8_a_program_that_restarts_begins_again_on_the_new_cards_as_another_leg(bench: Bench) -> None:
    start(bench, STEPS, "restart")
    begun(bench)
    assert order(bench, 2, (A, B), more=[B]) is None
    got = footing(bench, 2)
    assert (got.effective, got.taken, sorted(got.cards)) == (2, True, [A, B]) and on(bench) == [A, B]
    bench.until(lambda: reads(bench.home / "legs", "1 a\n2 a,b"))
    order(bench, 3, (B,))
    assert footing(bench, 3).cards == (B,) and on(bench) == [B]
    bench.until(lambda: reads(bench.home / "legs", "1 a\n2 a,b\n3 b"))
    assert [(end.order, end.code, end.signal) for end in footing(bench, 3).ended] == [(1, -15, 15), (2, -15, 15)]
    assert "leg 2 begins with GPU a,b" in bench.log(RUN)
    (bench.home / "go").touch()
    exit = bench.end(RUN)
    assert (exit.code, exit.stopped) == (3, False)
    bench.forget(RUN)
    assert on(bench) == []


def test_orders_that_never_came_are_no_legs(bench: Bench) -> None:
    start(bench, STEPS, "restart")
    begun(bench)
    order(bench, 5, (A, B), more=[B])
    assert footing(bench, 5).effective == 5, "the order by its number"
    bench.until(lambda: reads(bench.home / "legs", "1 a\n2 a,b"))
    assert "leg 2 begins" in bench.log(RUN)
    bench.local.stop([RUN], kill=True)
    bench.end(RUN)


def test_c8_cards_are_given_back_when_nobody_of_the_leg_before_is_left(bench: Bench) -> None:
    """A stubborn child of it keeps them until it is killed after the grace."""
    start(bench, "(trap '' TERM; until [ -e let ]; do sleep 0.02; done) & touch up; wait", "restart", (A, B), grace=60.0)
    bench.running(RUN, "up")
    order(bench, 2, (A,))
    assert footing(bench, 2, settled=False).taken
    for _ in range(20):
        bench.turn()
        assert on(bench) == [A, B] and bench.poll(RUN).footing.effective == 1  # type: ignore[union-attr]
    (bench.home / "let").touch()
    assert footing(bench, 2).cards == (A,) and on(bench) == [A]


def test_a_leg_that_is_cancelled_on_its_way_does_not_begin_and_is_no_success(bench: Bench) -> None:
    start(bench, "trap 'touch hears' TERM; touch up; until [ -e let ]; do sleep 0.02; done; exit 0", "restart", grace=60.0)
    bench.running(RUN, "up")
    order(bench, 2, (A, B), more=[B])
    bench.running(RUN, "hears")
    bench.stop(RUN, kill=False)
    (bench.home / "let").touch()
    exit = bench.end(RUN)
    assert (exit.code, exit.stopped) == (0, True) and on(bench) == []
    assert "leg 2" not in bench.log(RUN)


def test_c8_a_program_that_listens_hears_of_its_new_list(bench: Bench) -> None:
    start(bench, ["python3", "-I", "-S", "-c", LISTENER], "signal")
    bench.running(RUN, "listens")
    assert (bench.dir(RUN) / "gpus").read_text() == "a\n1\n"
    order(bench, 2, (A, B), more=[B])
    assert footing(bench, 2).cards == (A, B)
    bench.until(lambda: reads(bench.home / "told", "a,b 2"))
    order(bench, 3, (B,))
    assert sorted(footing(bench, 3).cards) == [A, B], "a card is given up when the engine says that nobody is on it"
    bench.until(lambda: reads(bench.home / "told", "b 3"))
    bench.local.give_up(RUN, 2, [A])
    bench.local.give_up(RUN, 3, [B])
    bench.local.give_up(RUN, 3, [A])
    bench.until(lambda: bench.poll(RUN).footing.cards == (B,))  # type: ignore[union-attr]
    assert on(bench) == [B]
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


def test_c8_nobody_listens_so_nothing_is_sent_and_no_card_is_taken(bench: Bench) -> None:
    start(bench, "touch up; until [ -e go ]; do sleep 0.02; done", "signal")
    bench.running(RUN, "up")
    order(bench, 2, (A, B), more=[B])
    got = footing(bench, 2)
    assert (got.effective, got.taken, got.why, got.cards) == (1, False, "no_listener", (A,))
    bench.until(lambda: on(bench) == [A])
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0, "and nobody was killed"


def test_children_on_their_way_to_another_program_are_not_signalled(bench: Bench) -> None:
    """A program that listens and starts others all the time: none of them dies of the signal (25 of 5,762 did)."""
    program = LISTENER.replace("    time.sleep(0.02)", "    import subprocess; bad = subprocess.call(['true'])\n"
                               "    if bad: open('killed', 'a').write(str(bad))")  # fmt: skip
    start(bench, ["python3", "-I", "-c", program], "signal")
    bench.running(RUN, "listens")
    for number in range(2, 12):
        cards = (A, B) if number % 2 else (A,)
        order(bench, number, cards, more=[B] if number == 3 else [])
        footing(bench, number)
        bench.until(lambda: reads(bench.home / "told", f"{names(cards)} {number}"))  # noqa: B023
    assert not (bench.home / "killed").exists()
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


def test_f66_a_card_that_came_by_signal_is_held_for_as_long_as_the_program_lives(bench: Bench) -> None:
    """Its shim is killed: the program has the card, so its claim must not go."""
    held = start(bench, ["python3", "-I", "-S", "-c", LISTENER], "signal")
    bench.running(RUN, "listens")
    order(bench, 2, (A, B), more=[B])
    bench.until(lambda: reads(bench.home / "told", "a,b 2"))
    order(bench, 3, (A, B, C), more=[C])
    bench.until(lambda: reads(bench.home / "told", "a,b,c 3"))
    os.kill(held.pid, signal.SIGKILL)
    bench.unsupervised(RUN)
    for _ in range(10):
        bench.turn()
        assert on(bench) == [A, B, C]
    (bench.home / "go").touch()
    bench.report(RUN, Phase.GONE)
    assert on(bench) == []


def test_a_card_that_was_given_up_is_not_held_by_a_program_whose_shim_dies_later(bench: Bench) -> None:
    held = start(bench, ["python3", "-I", "-S", "-c", LISTENER], "signal", (A, B))
    bench.running(RUN, "listens")
    order(bench, 2, (A,))
    footing(bench, 2)
    bench.local.give_up(RUN, 2, [B])
    bench.until(lambda: on(bench) == [A])
    os.kill(held.pid, signal.SIGKILL)
    bench.unsupervised(RUN)
    assert on(bench) == [A]


@pytest.mark.parametrize("meddles", ["one.recvmsg(16, 4096)", "one.shutdown(socket.SHUT_RDWR)"])
def test_a_program_that_meddles_with_what_it_inherited_keeps_nobody_from_its_run(bench: Bench, meddles: str) -> None:
    """It reads all that is laid into the socket that holds its cards, or shuts it: orders are obeyed all the same."""
    meddler = f"""
import os, socket, stat, threading
def meddle(one):
    while True:
        {meddles}
for fd in range(3, 64):
    try:
        sock = stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        continue
    if sock:
        threading.Thread(target=meddle, args=[socket.socket(fileno=fd)], daemon=True).start()
        open("meddles", "w").close()
"""
    start(bench, ["python3", "-I", "-S", "-c", meddler + LISTENER], "signal")
    bench.running(RUN, "listens")
    assert (bench.home / "meddles").exists()
    for number, cards, more in ((2, (A, B), [B]), (3, (A, B, C), [C]), (4, (A,), [])):
        order(bench, number, cards, more=more)
        assert footing(bench, number).effective == number
        bench.until(lambda: reads(bench.home / "told", f"{names(cards)} {number}"))  # noqa: B023
    (bench.home / "go").touch()
    assert bench.end(RUN).code == 0


def adopted(bench: Bench, held: Held, order: int) -> Adopted:
    uni_id = json.loads((bench.dir(RUN) / "claim").read_text())["uni_id"]
    return Adopted(RUN, uni_id, held.handle, True, order)


def test_the_next_engine_reaches_the_run(bench: Bench, make_bench: MakeBench) -> None:
    held = start(bench, STEPS, "restart")
    begun(bench)
    order(bench, 2, (A, B), more=[B])
    footing(bench, 2)
    bench.local.close()
    other = make_bench(rows=[adopted(bench, held, 2)])
    assert footing(other, 2).cards == (A, B) and on(other) == [A, B]
    order(other, 3, (A,))
    assert footing(other, 3).cards == (A,) and on(other) == [A]


def test_f67_an_order_that_did_not_arrive_never_will_and_its_cards_are_nobodys(bench: Bench, make_bench: MakeBench) -> None:
    """It was recorded, then the engine died. A late copy of it is refused."""
    held = start(bench, STEPS, "restart")
    begun(bench)
    bench.local.close()
    other = make_bench(rows=[adopted(bench, held, 2)])
    got = footing(other, 2)
    assert (got.effective, got.taken, got.why, got.cards) == (1, False, "lost", (A,))
    order(other, 2, (A, B), more=[B])
    assert footing(other, 2).cards == (A,)
    other.until(lambda: on(other) == [A])
    order(other, 3, (A, B), more=[B])
    assert footing(other, 3).cards == (A, B), "and it grows again in the ordinary way"


def test_a_run_whose_socket_is_gone_keeps_what_it_has(bench: Bench) -> None:
    start(bench, STEPS, "restart")
    begun(bench)
    (bench.dir(RUN) / "control").unlink()
    assert order(bench, 2, (A, B), more=[B]) is Denied.REFUSED
    order(bench, 2, (A,))
    got = footing(bench, 2)
    assert (got.taken, got.why) == (False, "unreachable") and on(bench) == [A]
    assert (bench.home / "legs").read_text() == "1 a\n"


def test_a_card_that_another_took_first_is_not_had(bench: Bench, make_bench: MakeBench) -> None:
    start(bench, STEPS, "restart")
    other = make_bench("other")
    other.reserve((9, 1), [(B, None)])
    known = frozenset(c.name for c in bench.local.claims() if c.ours)
    assert bench.local.reserve_more(RUN, [(B, None)], known, alone=True) is Denied.REFUSED
    assert sorted(c.claim.uuid for c in bench.local.claims() if c.ours) == [A]


@pytest.fixture
def line(bench: Bench) -> Iterator[socket.socket]:
    """Somebody of the same user at the control socket of a run."""
    start(bench, STEPS, "restart", (A, B))
    begun(bench)
    sock = control.connected(str(bench.dir(RUN)))
    assert sock is not None
    sock.settimeout(60)
    with sock:
        yield sock


def good(number: int) -> dict[str, Any]:
    return {"resize": number, "cards": [A], "claims": [], "env": {"CUDA_VISIBLE_DEVICES": "a", "JOSTLE_GPUS": "a"}}


ABSURD: dict[str, dict[str, Any]] = {
    "an order of long ago": good(1), "an order that nobody counts": good(1 << 30), "one beyond all that were lost": good(3 + GAP),
    "no number": {**good(2), "resize": "2"}, "a truth": {**good(2), "resize": True}, "below nothing": {**good(2), "resize": -4},
    "no cards": {**good(2), "cards": []}, "a card that it has not": {**good(2), "cards": [A, "GPU-x"]},
    "a card twice": {**good(2), "cards": [A, A]}, "no list": {**good(2), "cards": A}, "no text": {**good(2), "cards": [7]},
    "no environment": {**good(2), "env": {}},
    "a line more": {**good(2), "env": {"CUDA_VISIBLE_DEVICES": "a\n", "JOSTLE_GPUS": ""}},
    "a claim without descriptor": {**good(2), "claims": ["jostle-GPU-x~x~1~00000000~7.1"]},
    "a drop of what is listed": {"drop": 1, "cards": [A]}, "a drop of another order": {"drop": 2, "cards": [A]},
    "a fence beyond all": {"fence": 1 << 30}, "nothing known": {"hello": 1},
}  # fmt: skip


def test_f68_absurd_orders_are_refused_and_change_nothing(bench: Bench, line: socket.socket) -> None:
    for what, message in ABSURD.items():
        assert control.sent(line, message)
        answer = json.loads(line.recv(65536))
        assert answer["why"] and answer["leg"] == 1 and len(answer["claims"]) == 2, what
        assert on(bench) == [A, B] and (bench.home / "legs").read_text() == "1 a,b\n", what
    order(bench, 2, (A,))
    assert footing(bench, 2).taken, "and a good order is taken as ever"


def test_fences_that_nobody_needs_leave_room_for_orders(bench: Bench, line: socket.socket) -> None:
    """Somebody of the same user can make the next few orders late, but not row by row all that will ever come."""
    for number in (1 + GAP, 2 + GAP, 1 + 2 * GAP):
        assert control.sent(line, {"fence": number})
        assert json.loads(line.recv(65536))["order"] == 1 + GAP
    order(bench, 2 + GAP, (A,))
    assert footing(bench, 2 + GAP).taken


def test_f68_descriptors_that_nobody_asked_for_are_closed(bench: Bench, line: socket.socket, tmp_path: Path) -> None:
    shim = json.loads((bench.dir(RUN) / "claim").read_text())["pid"]
    files = []
    for k in range(40):
        path = tmp_path / f"surplus-{k}"
        files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for message in (good(2), {"fence": 1}, {**good(2), "claims": ["jostle-GPU-x~x~1~00000000~7.1"] * 40}, {"hello": 1}):
        assert control.sent(line, message, files)
        json.loads(line.recv(65536))
    assert not [name for name in proc.open_files(shim) if "surplus" in name]
    for unreadable in (b"[" * 60000, b"[]", b" " * (control.MOST_BYTES + 1)):
        socket.send_fds(line, [unreadable], files)
        assert json.loads(line.recv(65536))["why"] == "unreadable"
    assert not [name for name in proc.open_files(shim) if "surplus" in name]
    assert bench.poll(RUN).kind is Phase.ALIVE
    for fd in files:
        os.close(fd)


def test_f68_a_file_that_is_no_claim_of_this_run_is_not_taken(bench: Bench, line: socket.socket) -> None:
    shim = json.loads((bench.dir(RUN) / "claim").read_text())["pid"]
    for name in (f"jostle-GPU-x~x~{shim}~00000000~7.1", f"jostle-GPU-x~x~{shim}~00000000~8.1", "jostle-GPU-x~x~1~00000000~7.1"):
        path = bench.lease_dir / name
        path.write_text("")
        fd = os.open(os.devnull, os.O_RDONLY)
        message = {**good(2), "cards": [A, "GPU-x"], "claims": [name]}
        assert control.sent(line, message, [fd])
        assert json.loads(line.recv(65536))["why"] == "no_claim"
        os.close(fd)


def test_many_who_connect_do_not_keep_the_engine_out(bench: Bench, line: socket.socket) -> None:
    others = [control.connected(str(bench.dir(RUN))) for _ in range(3 * control.MOST_PEERS)]
    numbers = itertools.count(2)

    def taken() -> bool:
        number = next(numbers)
        order(bench, number, (A,))
        return footing(bench, number).taken

    bench.until(taken)
    for sock in filter(None, others):
        sock.close()
