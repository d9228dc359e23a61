"""C13: what a job takes besides cards, with real processes: cores, host memory, counters, priority; time limits and starts at a
given time, which are part of the same list."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.instance import Instance, until

CONFIG = "cpus: 1\nhost_memory: 1GiB\ncounters: {licence: 2}\n"  # any host has so much


@pytest.fixture(scope="module")
def jostle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    instance = Instance(tmp_path_factory.mktemp("resources"))
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text(CONFIG)
    instance.up("sim:2x24")
    instance.see_cards()
    yield instance
    instance.close()


def held_by(jostle: Instance, name: str, *options: str) -> tuple[int, Path]:
    """A job without a card that runs until its file is made."""
    gate = jostle.work / name
    id = jostle.add("-g", "0", *options, "--", f"until [ -e {gate} ]; do sleep 0.05; done")
    jostle.reach(id, "running")
    return id, gate


def test_c13_two_jobs_that_take_all_cores_never_run_at_once_whatever_becomes_of_the_engine(jostle: Instance) -> None:
    first, gate = held_by(jostle, "core", "--cpus", "1")
    second = jostle.add("--cpus", "1", "--", "echo $JOSTLE_CPUS")
    assert jostle.reason(second, "cpus")["text"] == "0 of 1 CPU core is free, and it needs 1."
    assert jostle.ok("why", str(second)).splitlines()[0].endswith("0 of 1 CPU core is free, and it needs 1.")
    jostle.kill_engine()
    jostle.up(None)
    assert jostle.reason(second, "cpus")["params"] == {"needed": 1, "available": 0, "total": 1}
    assert jostle.states([first, second]) == {first: "running", second: "queued"}
    gate.touch()
    assert jostle.end(first, second) == ["succeeded", "succeeded"]
    assert jostle.output(second) == "1\n"
    (before,), (after,) = jostle.runs(first), jostle.runs(second)
    assert before["ended_at"] <= after["started_at"]


def test_c13_a_counter_and_the_memory_of_the_host_are_waited_for_and_told(jostle: Instance) -> None:
    one, gate = held_by(jostle, "licence", "--counters", "licence=2", "--host-memory", "800MiB")
    memory = jostle.add("-g", "0", "--host-memory", "800MiB", "--", "true")
    counter = jostle.add("-g", "0", "--counters", "licence", "--", "true")
    said = jostle.reason(memory, "host_memory")["text"]
    assert said == "0.2 GiB of 1 GiB of host memory is free, and it needs 0.8 GiB."
    assert jostle.reason(counter, "counter")["text"] == "The counter licence has 0 of 2 left, and it needs 1."
    gate.touch()
    assert jostle.end(one, memory, counter) == ["succeeded"] * 3


def test_c13_what_is_larger_than_the_host_is_told_at_once_and_refused_if_asked(jostle: Instance) -> None:
    code, out, err = jostle.run("add", "-g", "0", "--cpus", "60000", "--", "true")
    assert code == 0 and "it needs 60000 CPU cores, and no more than 1 can be handed out" in err
    jostle.ok("set", out.strip(), "cpus=none")
    assert jostle.end(int(out)) == ["succeeded"]
    for words in (["--cpus", "60000"], ["--host-memory", "900TiB"], ["--counters", "nobody=1"]):
        code, out, err = jostle.run("add", "-g", "0", *words, "--strict", "--", "true")
        assert (code, out) == (6, "") and "never" in err


def test_c13_show_tells_what_a_job_asks_for(jostle: Instance) -> None:
    words = ["--cpus", "1", "--host-memory", "64MiB", "--counters", "licence=1", "--nice", "5"]
    id = jostle.add("-g", "0", *words, "--hold", "--", "true")
    told = jostle.ok("show", str(id))
    assert "no GPU, 1 CPU core, 64 MiB of host memory, licence 1" in told and "nice          5" in told
    job = jostle.json("show", str(id))["job"]
    asked = [job[key] for key in ("cpus", "host_memory_mib", "counters", "nice")]
    assert asked == [1, 64, {"licence": 1}, 5]
    jostle.ok("cancel", str(id))


TELL_NICE = "nice; bash -c nice; python3 -c 'import os; print(os.getpriority(os.PRIO_PROCESS, 0))'"


def test_c13_the_processes_of_a_nice_job_give_way_and_the_next_job_is_none_of_it(jostle: Instance) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nice, plain = jostle.add("-g", "0", "--nice", "7", "--", TELL_NICE), jostle.add("-g", "0", "--", TELL_NICE)
    assert jostle.end(nice, plain) == ["succeeded", "succeeded"]
    assert jostle.output(nice).split() == [str(max(own, 7))] * 3
    assert jostle.output(plain).split() == [str(own)] * 3


def grouped() -> bool:
    """Whether this kernel shares the processor among sessions."""
    try:
        return "nice" in Path("/proc/self/autogroup").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not grouped(), reason="the kernel does not share the processor among sessions")
def test_c13_where_sessions_share_the_processor_the_whole_run_gives_way(jostle: Instance) -> None:
    """Nice numbers of processes count within one session only, there. The kernel takes one such word in 0.1 s."""
    told = "until grep -q 'nice 7' /proc/self/autogroup; do sleep 0.05; done"
    assert jostle.end(jostle.add("-g", "0", "--nice", "7", "--", told)) == ["succeeded"]
    assert jostle.end(jostle.add("-g", "0", "--", "grep 'nice 0' /proc/self/autogroup")) == ["succeeded"]


def test_c13_a_run_is_stopped_at_the_time_limit_of_its_job(jostle: Instance) -> None:
    limited = jostle.add("-g", "0", "--time-limit", "0.5", "--", "sleep 600")
    assert jostle.end(limited) == ["failed"]
    assert (jostle.job(limited)["error_type"], jostle.job(limited)["reason"]["code"]) == ("timeout", "time_limit")


def test_c13_a_job_starts_at_the_time_that_it_was_given(jostle: Instance) -> None:
    late = jostle.add("-g", "0", "--begin", "+1s", "--", "true")
    soon = jostle.add("-g", "0", "--", "true")
    assert jostle.end(soon, late) == ["succeeded", "succeeded"]
    job = jostle.job(late)
    assert job["started_at"] >= job["begin_at"] - 0.05, "both are wall time, and what is waited is another clock's"


def test_c13_fifty_jobs_of_all_sizes_never_hold_more_than_there_is_though_engines_are_killed(jostle: Instance) -> None:
    """Each notes when it begins and when it ends; what they hold together is never more than two."""
    notes = jostle.work / "notes"
    take = f'echo "+$1" >> {notes}; sleep 0.05; echo "-$1" >> {notes}'
    jobs = [{"commands": [["bash", "-c", take, "x", str(n)]], "gpus": [0, 0], "counters": {"licence": n}} for n in (1, 2) * 25]
    ids = jostle.submit(*jobs)
    for some in range(5, 50, 9):
        until(lambda ended=some: list(jostle.states(ids).values()).count("succeeded") >= ended, "some have ended")
        jostle.kill_engine()
        jostle.up(None)
    assert jostle.end(*ids) == ["succeeded"] * 50
    held, most = 0, 0
    for line in notes.read_text().split():
        held += int(line)
        most = max(most, held)
    assert (held, most) == (0, 2)


def test_c13_the_settings_of_the_host_count_without_a_new_engine(jostle: Instance) -> None:
    one, gate = held_by(jostle, "reload", "--counters", "licence=2")
    two = jostle.add("-g", "0", "--counters", "licence=1", "--", "true")
    jostle.reason(two, "counter")
    assert jostle.json("status")["resources"]["counters"] == {"licence": {"total": 2, "free": 0}}
    assert "host:   1 of 1 CPU core free for jobs that ask, 1 GiB of 1 GiB of memory, licence 0/2" in jostle.ok("status")
    (jostle.home / "config.yaml").write_text(CONFIG.replace("licence: 2", "licence: 3"))
    jostle.ok("up")
    assert jostle.end(two) == ["succeeded"] and jostle.states([one]) == {one: "running"}
    gate.touch()
    until(lambda: jostle.end(one) == ["succeeded"], "the end of the first")


def test_c13_show_tells_of_each_process_what_it_uses(jostle: Instance) -> None:
    """CPU, memory, GPU memory and its peak, and how long it has run; in words, as JSON, and where the engine is gone."""
    gate = jostle.work / "processes"
    holds, computes = f"{sys.executable} -m jostle burn 600 3072 --load 0", f"{sys.executable} -c 'while True: pass'"
    id = jostle.add("-m", "4GiB", "--", f"{holds} & {computes} & until [ -e {gate} ]; do sleep 0.05; done")

    def seen() -> Any:
        shown = jostle.json("show", str(id))["processes"]
        on_card = [p for p in shown if p["command"] == holds and p["gpu_mib"]]
        busy = [p for p in shown if p["command"] == computes.replace("'", "") and p["cpu_s"] > 0.3]
        return (on_card, busy) if on_card and busy else None

    (on_card, *_), (busy, *_) = until(seen, "the card shows one of them, and the other has computed")
    job = jostle.job(id)
    assert (on_card["gpu_mib"], on_card["gpu_peak_mib"], on_card["gpus"]) == (3072, 3072, job["gpus"])
    assert (busy["gpu_mib"], busy["gpus"]) == (None, []) and busy["cpu_percent"] > 0 and busy["ran_s"] > 0
    assert on_card["rss_mib"] > 5 and busy["rss_mib"] > 1
    table = jostle.ok("show", str(id))
    assert "PID" in table and "GPU MEMORY" in table and re.search(rf"\b{on_card['pid']} .* 3 GiB +3 GiB ", table)
    assert re.search(rf"\b{busy['pid']} +\d+% ", table)
    jostle.kill_engine()
    alone = {p["pid"]: p for p in jostle.json("show", str(id))["processes"]}
    assert {on_card["pid"], busy["pid"]} <= set(alone) and alone[busy["pid"]]["gpu_mib"] is None
    jostle.up(None)
    gate.touch()
    jostle.end(id)
    assert jostle.json("show", str(id))["processes"] == []
