"""Health in one look: each thing that can be wrong is brought about, and its row says what it is and what to do."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.instance import PATIENCE, Instance, alive, until
from tests.faults.test_disk import fill, mounts, small
from tests.web.console import Console

__all__ = ["mounts", "small"]

VITAL = ("engine", "gpus", "cards", "disk", "leases")
CARDS = "gpus: {count: 2, total: 24GiB}\n"


def rows(instance: Instance, *languages: str) -> list[dict[str, dict[str, str]]]:
    """What doctor says in each language, asked side by side for it may wait long; its exit code must agree."""
    asked = [instance.start("doctor", "--json", env={"JOSTLE_LANG": language}) for language in languages]
    found = []
    for child in asked:
        checks = json.loads(child.communicate(timeout=PATIENCE)[0])["checks"]
        assert child.returncode == int(any(check["verdict"] == "bad" for check in checks))
        assert [check["name"] for check in checks][: len(VITAL)] == list(VITAL), "what matters most is told first"
        found.append({check["name"]: check for check in checks})
    return found


def row(instance: Instance, name: str, language: str = "en") -> dict[str, str]:
    return rows(instance, language)[0][name]


def bad(instance: Instance, name: str, words: str, act: str) -> dict[str, dict[str, str]]:
    """The row names what is wrong and what to do, in both languages; all rows in English."""
    told = rows(instance, "en", "zh")
    english, chinese = (rows[name] for rows in told)
    assert english["verdict"] == chinese["verdict"] == "bad", english
    assert words in english["found"] and act in english["advice"], english
    assert re.search("[\u4e00-\u9fff]", chinese["advice"]) and act in chinese["advice"], chinese
    return told[0]


def answered(instance: Instance) -> None:
    """The engine has read its cards: what is wrong with them afterwards has come since."""
    until(lambda: {g["state"] for g in instance.call("gpus")["gpus"]} == {"ok"}, "the driver has answered")


def test_where_all_is_well_nothing_is_to_be_done(instance: Instance) -> None:
    instance.up("sim:2x24")
    answered(instance)
    (told,) = rows(instance, "en")
    for name in set(VITAL) - {"disk"}:  # that of this machine may be nearly full
        assert (told[name]["verdict"], told[name]["advice"]) == ("ok", ""), told[name]
    assert told["cards"]["found"] == "none of 2 GPUs is lost or set aside"


def test_an_engine_that_is_gone_while_jobs_wait(instance: Instance) -> None:
    instance.up("sim:1x24")
    held = instance.add("--hold", "--", "true")
    pid = instance.call("hello")["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it is dead")
    bad(instance, "engine", "none runs; jobs of yours that have not ended: 1", "`jostle up`")
    instance.ok("up")
    assert row(instance, "engine")["verdict"] == "ok"
    instance.ok("cancel", str(held))
    instance.ok("down")
    assert row(instance, "engine")["verdict"] == "ok", "where nothing waits none is needed"


def test_an_engine_that_stands_still(instance: Instance) -> None:
    instance.up("sim:1x24")
    pid = instance.call("hello")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        bad(instance, "engine", f"pid {pid} does not answer: it is stopped, and `kill -CONT {pid}` lets it go on", "`jostle up`")
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_driver_that_does_not_answer(instance: Instance) -> None:
    instance.up(instance.scenario(CARDS))
    answered(instance)
    instance.scenario(CARDS + "hang: [{from: 0}]\n")
    until(lambda: instance.call("hello")["probe"], "the engine has noticed")
    told = bad(instance, "gpus", "", "`nvidia-smi`")
    assert told["cards"]["found"] == "none is known"


def test_a_driver_whose_parts_do_not_match(instance: Instance) -> None:
    instance.up(instance.scenario(CARDS))
    instance.scenario(CARDS + "mismatch: [{from: 0}]\n")
    until(lambda: row(instance, "gpus")["verdict"] == "bad", "it is told")
    bad(instance, "gpus", "", "`nvidia-smi`")


def test_a_card_that_is_lost_and_one_that_is_set_aside(instance: Instance) -> None:
    instance.up(instance.scenario("gpus: {count: 3, total: 24GiB}\n"))
    answered(instance)
    instance.scenario("gpus: {count: 3, total: 24GiB}\nfaults: [{gpu: 1, state: ecc}, {gpu: 2, state: lost}]\n")
    until(lambda: instance.call("gpus") and instance.events("quarantined"), "the card is set aside")
    bad(instance, "cards", "GPU 2 is lost", "nvidia-smi --gpu-reset -i 2")
    told = bad(instance, "cards", "GPU 1: set aside as faulty", "jostle gpus --include 1")
    assert told["gpus"]["verdict"] == "ok", "the driver is well"


def test_a_disk_that_is_nearly_full(small: Instance) -> None:
    small.up("sim:1x24")
    ballast = fill(small)
    try:
        bad(small, "disk", " free, ", "`jostle clean`")
    finally:
        os.truncate(ballast, 0)


@pytest.mark.parametrize("how", ["a file", "nothing"])
def test_a_lease_directory_that_is_none(make_instance: Callable[..., Instance], tmp_path: Path, how: str) -> None:
    leases = tmp_path / "leases"
    leases.mkdir(mode=0o700)
    instance = make_instance(JOSTLE_LEASE_DIR=str(leases))
    instance.up("sim:1x24")
    leases.rmdir()
    if how == "a file":
        leases.touch()
    bad(instance, "leases", f"{leases} is no directory", f"mkdir -m 1777 {leases}")


def test_a_lease_directory_in_the_home_that_is_none(instance: Instance) -> None:
    instance.up("sim:1x24")
    instance.ok("down")
    leases = instance.home / "leases"
    for name in os.listdir(leases):
        (leases / name).unlink()
    leases.rmdir()
    leases.touch()
    bad(instance, "leases", f"{leases} is no directory", "mkdir")


def test_the_console_tells_the_same(tmp_path: Path) -> None:
    console = Console(tmp_path / "c", gpus="sim:2x24")
    try:
        instance = console.instance
        answered(instance)

        def told(**heads: str) -> dict[str, Any]:
            answer = console.script("GET", "/api/v1/doctor", **heads).json
            return {check["name"]: check for check in answer["checks"]} | {"ok": answer["ok"]}

        for name in set(VITAL) - {"disk", "gpus"}:  # how much is free, and how long a look took, differs
            assert told()[name] == row(instance, name)
        instance.add("--hold", "--", "true")
        pid = instance.call("hello")["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "it is dead")
        assert told()["engine"] == row(instance, "engine") and told()["engine"]["verdict"] == "bad" and told()["ok"] is False
        assert told(**{"Accept-Language": "zh"})["engine"] == row(instance, "engine", "zh")
    finally:
        console.close()
