"""An allocation that waits goes with who waits for it, and with the process that it is tied to; one that was told of stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jostle import proc
from jostle.intake.allocations import Applicant
from tests.e2e.instance import Instance, until


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    instance = Instance(tmp_path_factory.mktemp("waits"))
    instance.up("sim:1x24")
    instance.see_cards()
    yield instance
    instance.close()


@pytest.fixture
def full(one: Instance) -> Iterator[Instance]:
    """Its only card is held, by nobody's process."""
    (id,) = one.submit({"commands": [], "name": "first"})
    one.reach(id, "running")
    yield one
    with one.reader() as reader:
        open_ = reader.ids(("queued", "starting", "running", "stopping"))
    one.call("intent", ids=open_, do="cancel", now=True)
    one.end(*open_)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child
        child.kill()


def known(pid: int) -> list[int]:
    stat = proc.stat(pid)
    assert stat is not None
    return [stat.pid, stat.ticks]


def waiting(instance: Instance, *words: str, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """A `jostle alloc second` that waits in line, and its job."""
    child = instance.start("alloc", "second", *words, **options)
    assert child.stderr is not None and "second" in child.stderr.readline()
    (row,) = instance.newest()
    assert (row["name"], row["state"]) == ("second", "queued")
    return child, row["id"]


def over(instance: Instance, id: int) -> tuple[str, str]:
    instance.end(id)
    return instance.job(id)["state"], instance.job(id)["reason"]["code"]


@pytest.mark.parametrize("words", [[], ["--export"]])
def test_who_is_killed_as_he_waits_waits_no_longer(full: Instance, words: list[str]) -> None:
    child, id = waiting(full, *words)
    child.kill()
    child.communicate()
    assert over(full, id) == ("cancelled", "waiter_ended")
    assert "The `jostle alloc` that waited for its cards was ended" in full.ok("show", str(id))
    assert not full.runs(id), "and it never had them"
    full.ok("alloc", "second", "-d")


def test_a_terminal_that_is_closed_gives_up_what_waits_in_it(full: Instance) -> None:
    child, id = waiting(full)
    child.send_signal(signal.SIGHUP)
    assert child.wait(60) == 130
    assert over(full, id) == ("cancelled", "cancelled")


def test_nohup_waits_on(full: Instance) -> None:
    child, id = waiting(full, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child.send_signal(signal.SIGHUP)
    full.ok("release", "first")
    out, _ = child.communicate(timeout=60)
    assert (child.returncode, out.strip(), full.job(id)["state"]) == (0, "0", "running")


def test_a_command_that_waits_for_its_cards_goes_with_jostle_and_never_runs(full: Instance) -> None:
    child, id = waiting(full, "--", "touch", "began")
    child.kill()
    child.communicate()
    assert over(full, id) == ("cancelled", "tied_ended") and not (full.work / "began").exists()


def test_a_notebook_that_is_killed_as_it_waits_waits_no_longer(full: Instance) -> None:
    script = "import jostle\nwith jostle.gpus(name='nb'): pass"
    with subprocess.Popen([sys.executable, "-c", script], env=full.env, cwd=full.work) as child:
        id = until(lambda: full.newest()[0]["name"] == "nb" and full.newest()[0]["id"], "it is queued")
        child.kill()
    assert over(full, id) == ("cancelled", "tied_ended")
    assert "The process that it was tied to ended before it had its cards" in full.ok("show", str(id))


def test_who_was_told_of_the_cards_may_leave_and_who_dies_before_gives_them_back(
    full: Instance, sleeper: subprocess.Popen[bytes]
) -> None:
    full.ok("release", "first")
    full.ok("alloc", "told")
    (told,) = full.newest()
    full.call("intent", ids=[told["id"]], do="cancel")
    full.end(told["id"])
    assert full.job(told["id"])["reason"]["code"] == "released", "it was there until then, though its `alloc` had ended"
    (id,) = full.submit({"commands": [], "name": "untold", "awaited_by": known(sleeper.pid)})
    full.reach(id, "running")
    sleeper.kill()
    assert over(full, id) == ("succeeded", "waiter_ended")


def test_detached_it_waits_by_itself_and_has_its_cards_later(full: Instance) -> None:
    id = int(full.ok("alloc", "second", "--detach"))
    assert full.job(id)["state"] == "queued"
    gone, _ = full.run("alloc", "third", "--now")[:2]
    assert gone == 1
    full.ok("release", "first")
    full.reach(id, "running")
    code, out, err = full.run("alloc", "fourth", "-d", "--now")
    assert (code, out) == (2, "") and "--detach" in err


def test_a_tied_process_that_dies_while_no_engine_runs_is_found_dead_by_the_next(
    full: Instance, sleeper: subprocess.Popen[bytes]
) -> None:
    (id,) = full.submit({"commands": [], "name": "tied", "tied_to": known(sleeper.pid)})
    full.reason(id, "gpus")
    full.kill_engine()
    sleeper.kill()
    sleeper.wait()
    full.up(None)
    assert over(full, id) == ("cancelled", "tied_ended")


def test_a_process_of_an_earlier_boot_is_gone_whoever_has_its_number_now(make_instance: Callable[..., Instance]) -> None:
    home = make_instance("boots")
    home.up("sim:1x24", env={"JOSTLE_TEST_BOOT_ID": "one"})
    (now,) = home.submit({"commands": [], "name": "now", "tied_to": [*known(os.getpid()), "one"], "intent": "hold"})
    (then,) = home.submit({"commands": [], "name": "then", "tied_to": [*known(os.getpid()), "another"], "intent": "hold"})
    assert over(home, then) == ("cancelled", "tied_ended")
    assert home.job(now)["state"] == "queued"
    home.kill_engine()
    home.up(None, env={"JOSTLE_TEST_BOOT_ID": "another"})
    assert over(home, now) == ("cancelled", "tied_ended")


def test_who_waits_is_told_why_when_that_changes_and_not_because_a_second_has_passed() -> None:
    told: list[str] = []
    session: Any = SimpleNamespace(language="en")
    waits = Applicant(session, told.append, now=False)

    def hear(code: str, **params: Any) -> int:
        waits.hear("train", {"code": code, "params": params}, lambda: None)
        return len(told)

    assert [hear("resize_pause", left_s=float(left), lost=1) for left in (50, 49, 48)] == [1, 1, 1]
    assert [hear("at_most", most=2), hear("at_most", most=2), hear("at_most", most=3)] == [2, 2, 3]
    assert hear("resize_pause", left_s=47.0, lost=1) == 4
