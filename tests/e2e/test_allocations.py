"""Cards held under a name: alloc, start, status and release with real processes (SPEC C1, C2, C9)."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle.errors import Declined, JostleError
from tests.e2e.instance import Instance, alive, until

LONG = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    instance = Instance(tmp_path_factory.mktemp("alloc"))
    instance.up("sim:4x24")
    instance.see_cards()
    yield instance
    instance.close()


@pytest.fixture
def here(one: Instance) -> Iterator[Instance]:
    """The same engine for all, with nothing held at the beginning and at the end of a test."""
    yield one
    with one.reader() as reader:
        open_ = reader.ids(("queued", "starting", "running", "stopping"))
    if open_:
        one.call("intent", ids=open_, do="cancel", now=True)
        one.end(*open_)
    one.know_cards()


def alloc(instance: Instance, name: str, *words: str) -> int:
    """It holds its cards when this returns; its job."""
    return int(instance.json("alloc", name, *words)["id"])


def printed(instance: Instance, id: int) -> str:
    """So far; nothing before it has begun."""
    try:
        return instance.output(id)
    except FileNotFoundError:
        return ""


def cards(instance: Instance) -> dict[int, list[str]]:
    """By index: the runs on it."""
    return {g["index"]: g["runs"] for g in instance.call("gpus")["gpus"]}


# --- C1, C2: the verbs


def test_c1_alloc_start_status_release(here: Instance) -> None:
    """The workflow of the source, as verbs; without a number it is one card."""
    code, out, err = here.run("alloc", "train", "-g", "2")
    (row,) = here.newest()
    assert (code, out.strip()) == (0, ",".join(map(str, row["gpus"]))) and len(row["gpus"]) == 2
    assert row["commands"] == [] and row["state"] == "running" and "jostle release train" in err
    program = int(here.ok("start", "train", "--", "bash", "-c", f"echo on $CUDA_VISIBLE_DEVICES in $JOSTLE_ALLOC; {LONG}"))
    until(lambda: "in" in printed(here, program), "it runs")
    assert here.output(program).split() == ["on", out.strip(), "in", str(row["id"])]
    told = here.json("status")
    (held,) = told["allocations"]
    assert (held["name"], held["gpus"], [p["id"] for p in held["programs"]]) == ("train", row["gpus"], [program])
    assert here.ok("release", "train") == ""
    assert here.states([row["id"], program]) == {row["id"]: "succeeded", program: "cancelled"}
    assert cards(here)[row["gpus"][0]] == []
    here.know_cards()
    assert here.json("alloc", "one")["env"]["JOSTLE_GPUS"] == "0", "one card, and these are free again"


def test_c2_a_name_is_unique_and_a_second_alloc_is_refused_naming_the_way_out(here: Instance) -> None:
    alloc(here, "train")
    code, out, err = here.run("alloc", "train", "-g", "1")
    assert (code, out) == (1, "") and "jostle release train" in err
    here.ok("release", "train")
    alloc(here, "train")


def test_c2_a_second_alloc_with_grow_lets_it_have_more_cards(here: Instance) -> None:
    id = alloc(here, "train", "-g", "1", "--grow")
    inside = int(here.ok("start", "train", "--", "bash", "-c", LONG))
    here.reach(inside, "running")
    env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1,2", "JOSTLE_GPUS": "0,1,2", "JOSTLE_ALLOC": str(id)}
    assert here.json("alloc", "train", "-g", "3", "--grow") == {"schema": 1, "name": "train", "id": id, "env": env}
    assert here.job(inside)["gpus"] == [0], "what runs keeps what it has"
    second = int(here.ok("start", "train", "--beside", "--", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES"))
    assert here.end(second) == ["succeeded"] and here.output(second).strip() == "0,1,2"
    code, _, err = here.run("alloc", "train", "-g", "9", "--grow")
    assert code == 6 and "it needs 9 cards and may use 4" in err
    assert here.ok("alloc", "train", "-g", "2", "--grow").strip() == "0,1,2", "it only grows"
    with burning(here, 1):  # a process of ours that is on a card of it
        here.ok("set", str(id), "gpus=1")
        until(lambda: here.job(id)["gpus"] == [0, 1], "the card that nobody is on is given back, and no other")
    until(lambda: here.job(id)["gpus"] == [0], "and that one when he has left it")
    here.ok("release", "train")
    assert here.end(id, inside) == ["succeeded", "cancelled"]


def test_what_cannot_be_had_more_is_told_and_taken_back(here: Instance) -> None:
    id = alloc(here, "train", "-g", "2")
    alloc(here, "other", "-g", "2")
    code, _, err = here.run("alloc", "train", "-g", "3", "--grow", "--now")
    assert code == 1 and "cannot have its cards now" in err
    waiting = here.start("alloc", "train", "-g", "3", "--grow")
    assert waiting.stderr is not None and "train" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130
    assert here.job(id)["state"] == "running" and here.job(id)["gpu_request"] == [2, 2]
    here.ok("release", "other")
    (free,) = here.submit({"gpus": [2, 2]})
    assert here.end(free) == ["succeeded"] and here.job(id)["gpus"] == [0, 1], "it does not want them any more"


def test_c1_start_without_an_allocation_names_alloc(here: Instance) -> None:
    code, out, err = here.run("start", "nobody", "--", "true")
    assert (code, out) == (4, "") and "jostle alloc nobody" in err
    code, _, err = here.run("release", "nobody")
    assert code == 4 and "jostle alloc nobody" in err
    alloc(here, "train")
    code, _, err = here.run("start", "train")
    assert code == 2 and "behind `--`" in err
    code, out, err = here.run("start", "train", "-g", "5", "--", "true")
    assert (code, out) == (6, "") and "`jostle alloc train -g 5 --grow`" in err


def test_c9_status_tells_nodes_and_which_task_holds_what_where(here: Instance) -> None:
    alloc(here, "first", "-g", "2")
    here.start("alloc", "second", "-g", "3")
    until(lambda: here.newest()[0]["name"] == "second", "it is queued")
    here.reason(here.newest()[0]["id"], "gpus")
    told, host = here.json("status"), socket.gethostname()
    assert told["nodes"] == [{"name": host, "total": 4, "free": 2, "allocated": 2}]
    first, second = told["allocations"]
    assert (first["node"], len(first["gpus"]), first["reason"]) == (host, 2, None)
    assert (second["node"], second["gpus"], second["state"], second["gpu_request"]) == (None, [], "queued", [3, 3])
    assert "2 of 4 GPUs fit (3 needed)" in second["reason"]["text"]
    lines = here.ok("status").splitlines()
    assert f"cards:  {host}: 2/4 free (2 yours)" in lines
    assert any(line.startswith(f"holds:  first: 2 GPUs on {host}, GPU 0,1, for ") for line in lines)
    assert any(line.startswith("holds:  second: 3 GPUs, waits: 2 of 4 GPUs fit") for line in lines)


def test_alloc_waits_tells_why_and_gets_its_cards_when_they_are_free(here: Instance) -> None:
    alloc(here, "first", "-g", "3")
    second = here.start("alloc", "second", "-g", "2")
    assert second.stderr is not None
    assert any("1 of 4 GPUs fit (2 needed)" in line for line in second.stderr)  # a busy host may have to read them again first
    here.ok("release", "first")
    out, _ = second.communicate(timeout=60)
    assert (second.returncode, len(out.strip().split(","))) == (0, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_gives_up_an_allocation_that_waits(here: Instance, number: int) -> None:
    alloc(here, "first", "-g", "4")
    waiting = here.start("alloc", "second")
    assert waiting.stderr is not None and "second" in waiting.stderr.readline()
    waiting.send_signal(number)
    assert waiting.wait(60) == 130 and "given up" in waiting.stderr.read()
    assert here.newest()[0]["state"] == "cancelled"


def test_now_exits_1_with_the_reason_and_leaves_nothing_behind(here: Instance) -> None:
    alloc(here, "first", "-g", "3")
    code, out, err = here.run("alloc", "second", "-g", "2", "--now")
    assert (code, out) == (1, "") and "1 of 4 GPUs fit (2 needed)" in err
    assert here.newest()[0]["state"] == "cancelled"
    assert here.run("alloc", "second", "-g", "1", "--now")[0] == 0


def test_more_cards_than_there_are_is_told_at_once_and_not_queued(here: Instance) -> None:
    before = here.newest()
    code, _, err = here.run("alloc", "train", "-g", "9")
    assert code == 6 and "it needs 9 cards and may use 4" in err and "--strict" not in err
    assert here.newest() == before


def test_an_allocation_shows_like_any_job(here: Instance) -> None:
    id = alloc(here, "train", "-g", "2", "--for", "2h")
    (row,) = (row for row in here.json("ps")["jobs"] if row["id"] == id)
    assert (row["state"], row["gpus"], row["commands"], row["time_limit"]) == ("running", [0, 1], [], 7200.0)
    assert cards(here)[0] == [f"{id}.1"] and here.call("gpus")["gpus"][0]["refusal"]["code"] == "taken"
    assert [run["outcome"] for run in here.json("show", str(id))["runs"]] == [None]
    assert here.json("why", str(id))["state"] == "running"
    until(lambda: here.call("gpus")["gpus"][0]["used_mib"] == 0, "it occupies nothing")
    assert [[span["ended_at"] for span in of] for of in spans(here, id)] == [[None], [None], [], []]
    here.ok("cancel", str(id))
    assert here.end(id) == ["succeeded"], "to cancel one that holds its cards is to release it"
    assert here.job(id)["reason"]["code"] == "released"
    ((held,), (beside,), *_) = spans(here, id)
    assert held["began_at"] < held["ended_at"] == beside["ended_at"]


def spans(here: Instance, id: int) -> list[list[dict[str, Any]]]:
    """When it held what, by card."""
    return [[span for span in card["spans"] if span["job"] == id] for card in here.json("gpus", "--history", "1h")["gpus"]]


def test_others_of_ours_keep_off_its_cards(here: Instance) -> None:
    alloc(here, "train", "-g", "3")
    one, two = here.submit({"commands": ["sleep 600"]}, {"commands": ["true"]})
    until(lambda: here.job(one)["state"] == "running", "the free card is used")
    assert here.job(one)["gpus"] == [3]
    assert here.reason(two, "gpus")["params"]["fit"] == 0


# --- how it ends


def test_for_releases_it_when_the_time_is_up_with_what_runs_inside_and_that_is_no_failure(here: Instance) -> None:
    (id,) = here.submit({"commands": [], "name": "train", "time_limit": 2.0, "intent": "hold"})
    (program,) = here.submit({"commands": [LONG], "inside": id})
    here.call("intent", ids=[id], do="unhold")
    assert here.end(id) == ["succeeded"] and here.job(id)["reason"]["code"] == "released_time"
    here.end(program)
    assert here.job(program)["reason"]["code"] == "allocation_over"


def test_it_ends_with_the_process_that_it_is_tied_to(here: Instance) -> None:
    other = subprocess.Popen(["sleep", "600"])
    id = alloc(here, "train", "--pid", str(other.pid))
    other.kill()
    other.wait()
    assert here.end(id) == ["succeeded"] and here.job(id)["reason"]["code"] == "released_process"


def test_one_that_is_tied_to_a_process_which_is_another_by_now_never_has_cards(here: Instance) -> None:
    """A number that was given again, to us: its start says that it is another."""
    from jostle import proc

    me = proc.stat(os.getpid())
    assert me is not None
    (id,) = here.submit({"commands": [], "name": "reused", "tied_to": [me.pid, me.ticks + 1]})
    assert here.end(id) == ["cancelled"] and here.job(id)["reason"]["code"] == "tied_ended" and not here.runs(id)
    (id,) = here.submit({"commands": [], "name": "mine", "tied_to": [me.pid, me.ticks]})
    here.reach(id, "running")
    here.ok("release", "mine")


def test_it_ends_when_nothing_was_on_its_cards_for_as_long_as_was_asked_for(here: Instance) -> None:
    (id,) = here.submit({"commands": [], "name": "train", "idle_release": 1.0})
    assert here.end(id) == ["succeeded"] and here.job(id)["reason"]["code"] == "released_idle"


def test_a_process_of_ours_on_its_cards_is_its_own_and_keeps_it_from_being_idle(here: Instance) -> None:
    id = alloc(here, "train", "--release-idle", "1h")
    assert here.job(id)["idle_release"] == 3600.0
    until(lambda: str(id) in here.call("reasons")["idle"], "it is idle")
    with burning(here, here.job(id)["gpus"][0]) as pid:
        def holder() -> Any:
            return [h for h in here.call("gpus")["gpus"][0]["holders"] if h["pid"] == pid]

        (seen,) = until(holder, "the driver shows it")
        assert seen["run"] == f"{id}.1", "neither a stranger nor in the way"
        until(lambda: str(id) not in here.call("reasons")["idle"], "it is not idle")
        assert here.call("room", policy={})["used"] == [id], "and a floor would not give it back"
    until(lambda: str(id) in here.call("reasons")["idle"], "it is idle again")


@contextlib.contextmanager
def burning(instance: Instance, card: int, mib: int = 4096) -> Iterator[int]:
    """A process of ours, by hand, that uses a simulated card."""
    child = subprocess.Popen(["sleep", "600"])
    use = instance.home / "sim" / "use" / str(child.pid)
    use.with_suffix(".new").write_text(f"{card} {mib} 50\n")
    os.replace(use.with_suffix(".new"), use)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def test_release_stops_what_runs_inside_first_and_kills_who_does_not_listen(here: Instance) -> None:
    id = alloc(here, "train")
    deaf = int(here.ok("start", "train", "--", "bash", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"))
    until(lambda: "up" in printed(here, deaf), "it runs")
    here.ok("release", "train", "--now")
    assert here.end(id, deaf) == ["succeeded", "cancelled"]
    last = here.events("cancelled", deaf)[0]["seq"]
    assert last < here.events("succeeded", id)[0]["seq"], "the program's end comes first"


# --- inside


def test_a_second_program_only_with_beside_and_the_end_of_one_leaves_the_allocation(here: Instance) -> None:
    id = alloc(here, "train", "-g", "2")
    first = int(here.ok("start", "train", "--", "bash", "-c", LONG))
    here.reach(first, "running")
    code, _, err = here.run("start", "train", "--", "true")
    assert code == 1 and f"job {first} is inside" in err and "--beside" in err
    second = int(here.ok("start", "train", "--beside", "-g", "1", "-n", "second", "--", "true"))
    assert here.end(second) == ["succeeded"] and here.job(second)["name"] == "second"
    here.ok("cancel", str(first))
    assert here.end(first) == ["cancelled"] and here.job(id)["state"] == "running"
    assert here.end(int(here.ok("start", "train", "--", "bash", "-c", "exit 3"))) == ["failed"]
    assert here.job(id)["state"] == "running"


def test_a_program_that_fails_can_be_tried_again_inside_and_not_when_it_has_ended(here: Instance) -> None:
    alloc(here, "train")
    id = int(here.ok("start", "train", "--", "bash", "-c", "test -e flag || { touch flag; exit 1; }"))
    assert here.end(id) == ["failed"]
    again = int(here.ok("retry", str(id)))
    assert here.end(again) == ["succeeded"]
    (here.work / "flag").unlink()
    here.ok("release", "train")
    code, _, err = here.run("retry", str(again))
    assert code == 1 and "has ended" in err


def test_a_program_may_be_started_before_the_cards_are_there(here: Instance) -> None:
    alloc(here, "first", "-g", "4")
    waiting = here.start("alloc", "second")
    until(lambda: here.newest()[0]["name"] == "second", "it is queued")
    program = int(here.ok("start", "second", "--", "true"))
    assert here.reason(program, "inside_waits")
    here.ok("release", "first")
    assert here.end(program) == ["succeeded"] and waiting.wait(60) == 0


def test_add_in_a_shell_that_was_made_for_it_runs_inside(here: Instance) -> None:
    asked = here.json("alloc", "train", "-g", "2")
    env = asked["env"]
    id = here.add("--", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES", env=env)
    assert here.end(id) == ["succeeded"] and here.job(id)["inside"] == asked["id"]
    assert here.output(id).strip() in env["CUDA_VISIBLE_DEVICES"].split(",")
    here.ok("release", "train")
    code, _, err = here.run("add", "--", "true", env=env)
    assert code == 1 and "has ended" in err and "unset JOSTLE_ALLOC" in err
    code, _, err = here.run("add", "--", "true", env={"JOSTLE_ALLOC": "nonsense"})
    assert code == 6 and "unset JOSTLE_ALLOC" in err


# --- in this terminal


def test_a_command_behind_it_runs_here_and_its_end_releases_the_cards_with_its_exit_code(here: Instance) -> None:
    code, out, _ = here.run("alloc", "train", "-g", "2", "--", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 7")
    assert (code, out) == (7, "0,1\n")
    assert here.newest()[0]["state"] == "succeeded", "and when it returns, its name and cards can be had again"
    assert here.run("alloc", "train", "-g", "4", "--", "true")[0] == 0
    assert here.run("alloc", "train", "--", "no-such-program")[0] == 127
    assert here.run("alloc", "train", "--", "bash", "-c", "kill -9 $$")[0] == 137


def test_the_command_is_not_begun_before_there_are_cards_nor_if_they_are_given_up(here: Instance) -> None:
    alloc(here, "first", "-g", "4")
    waiting = here.start("alloc", "second", "--", "touch", "began")
    assert waiting.stderr is not None and "second" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130 and not (here.work / "began").exists()


def test_cards_are_held_for_as_long_as_the_command_lives_whatever_becomes_of_jostle(here: Instance) -> None:
    child = here.start("alloc", "train", "--", "bash", "-c", f"echo $$ > pid; {LONG}", start_new_session=True)
    until(lambda: (here.work / "pid").exists() and (here.work / "pid").read_text().strip(), "it runs")
    pid, id = int((here.work / "pid").read_text()), here.newest()[0]["id"]
    child.kill()
    child.wait()
    assert alive(pid) and here.job(id)["state"] == "running"
    os.kill(pid, signal.SIGKILL)
    assert here.end(id) == ["succeeded"]
    (here.work / "pid").unlink()


def test_eval_of_export_sets_this_shell_up_and_its_end_releases_the_cards(here: Instance) -> None:
    script = 'eval $("$0" -m jostle alloc ex -g 2 --export) && echo "$CUDA_VISIBLE_DEVICES $JOSTLE_ALLOC"; echo rc=$?; read line'
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(["bash", "-c", script, sys.executable], env=here.env, cwd=here.work, text=True, **pipes) as shell:
        assert shell.stdout is not None
        cards, allocation = shell.stdout.readline().split()
        assert (cards, shell.stdout.readline()) == ("0,1", "rc=0\n")
        id = int(allocation)
        assert here.job(id)["state"] == "running" and here.job(id)["tied_to"] == shell.pid
        shell.communicate("go\n")
    assert here.end(id) == ["succeeded"]


@pytest.mark.parametrize("words", ["-g 2 --now", "-g 9", "-g nonsense", "--no-such-option"])
def test_eval_of_export_fails_where_there_are_no_cards(here: Instance, words: str) -> None:
    alloc(here, "first", "-g", "3")
    script = f'eval $("$0" -m jostle alloc ex {words} --export) && touch wrong'
    done = subprocess.run(["bash", "-c", script, sys.executable], env=here.env, cwd=here.work, capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr and not (here.work / "wrong").exists()


def test_start_t_gives_the_program_this_terminal_and_its_exit_code(here: Instance) -> None:
    alloc(here, "train")
    script = "test -t 0 -a -t 1 && echo a-$((40+2))-terminal; read answer; echo got-$answer; exit 5"
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(here.work)
        os.execve(sys.executable, [sys.executable, "-m", "jostle", "start", "train", "-t", "--", "bash", "-c", script], here.env)
    shown = b""
    while b"a-42-terminal" not in shown:
        shown += os.read(master, 4096)
    os.write(master, b"yes\r")
    with contextlib.suppress(OSError):
        while part := os.read(master, 4096):
            shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5 and b"got-yes" in shown
    os.close(master)
    assert here.newest()[0]["state"] == "failed" and here.newest()[0]["inside"] is not None
    code, _, err = here.run("start", "train", "-t", "--", "true")
    assert code == 2 and "terminal" in err


# --- from Python


def test_c2_jostle_gpus_holds_cards_for_this_process_and_sets_the_variables_back(here: Instance) -> None:
    script = """
import os, jostle
os.environ["CUDA_VISIBLE_DEVICES"] = "7"; del os.environ["CUDA_VISIBLE_DEVICES"]
with jostle.gpus(2, memory="20GiB", name="nb") as g:
    print(g.indices, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["JOSTLE_ALLOC"] == str(g.id))
print("CUDA_VISIBLE_DEVICES" in os.environ)
with jostle.gpus(4, name="nb") as g:
    print(g.visible)
try:
    with jostle.gpus(5): pass
except jostle.api.JostleError as e:
    print("5 cards" in str(e))
"""
    out = subprocess.run([sys.executable, "-c", script], env=here.env, cwd=here.work, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == ["[0, 1] 0,1 True", "False", "0,1,2,3", "True"]


def test_cards_of_a_notebook_that_is_killed_are_released(here: Instance) -> None:
    script = "import jostle, time\nwith jostle.gpus(name='nb') as g:\n    print(g.id, flush=True)\n    time.sleep(600)"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], env=here.env, cwd=here.work, text=True, stdout=pipe) as child:
        assert child.stdout is not None
        id = int(child.stdout.readline())
        assert here.job(id)["state"] == "running"
        child.kill()
    assert here.end(id) == ["succeeded"]


@pytest.mark.parametrize(("module", "begun"), [("torch", True), ("torch", False), ("pycuda.autoinit", True), ("numpy", False)])
def test_jostle_gpus_is_refused_where_cuda_has_begun_and_imports_nothing_to_learn_that(
    here: Instance, module: str, begun: bool
) -> None:
    script = f"""
import sys, types, jostle
from jostle.errors import JostleError
made = types.ModuleType({module!r})
made.cuda = types.SimpleNamespace(is_initialized=lambda: {begun})
sys.modules[{module!r}] = made
try:
    with jostle.gpus(): print("held")
except JostleError as e:
    print("begun" in str(e))
print(sorted({{"torch", "numba", "jax", "cupy", "pycuda"}} & set(sys.modules) - {{{module!r}}}))
"""
    out = subprocess.run([sys.executable, "-c", script], env=here.env, cwd=here.work, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == ["True" if begun else "held", "[]"]


# --- what a request may say


def test_no_malformed_submit_ends_the_engine(here: Instance) -> None:
    """Each of these fields with each of these values, of an allocation and of a job inside one."""
    pid, held = here.engine, alloc(here, "train")
    odd: list[Any] = [None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 1e308, -1e308, "", "x", "\0", "1", [], [1], [1, 1],
                      [[1, 1]], {}, {"a": 1}, [2**22, 0], [-1, 5], ["1", "2"], [1, 1e3]]  # fmt: skip
    fields = ("inside", "tied_to", "idle_release", "time_limit", "gpus", "memory_mib", "share", "name", "commands", "on", "begin")
    taken: list[int] = []
    client = here.client()
    for commands, field, value in itertools.product(([], ["true"]), fields, odd):
        job = {"workdir": "/", "commands": commands, "intent": "hold", "name": f"n{len(taken)}", field: value}
        with contextlib.suppress(JostleError):
            answer = client.call("submit", batch={}, context={}, jobs=[job], beside=value)
            taken += range(answer["ids"][0], answer["ids"][1] + 1)
    client.close()
    assert here.engine == pid and taken
    here.call("intent", ids=taken, do="unhold")
    assert here.end(int(here.ok("start", "train", "--beside", "--", "true"))) == ["succeeded"]
    assert (here.engine, here.job(held)["state"]) == (pid, "running")


def test_fifty_who_want_one_name_get_it_once(here: Instance) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(_: int) -> bool:
        try:
            here.submit({"commands": [], "name": "wanted"})
        except Declined:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(ask, range(50))) == 1


# --- who else is there


def test_a_stranger_who_comes_before_anything_was_started_is_told(instance: Instance) -> None:
    world = "gpus: {count: 2, total: 24GiB}\n"
    instance.up(instance.scenario(world))
    id = alloc(instance, "train", "-g", "1")
    assert instance.job(id)["gpus"] == [0]
    until(lambda: instance.call("gpus")["gpus"][0]["state"] == "ok", "its cards were seen without him")
    instance.scenario(world + "strangers: [{gpu: 0, user: alice, used: 10GiB}]\n")
    told = instance.reason(id, "visited")
    assert "alice came onto GPU 0" in told["text"]
    for words in (["ps"], ["why", str(id)], ["show", str(id)]):
        assert f"alice came onto GPU 0 (pid {told['params']['pid']})" in instance.ok(*words), words
    assert f", alice is on GPU 0 (pid {told['params']['pid']})" in instance.ok("status")
    assert f"，alice 在 GPU 0 上（pid {told['params']['pid']}）" in instance.ok("status", env={"JOSTLE_LANG": "zh"})
    assert instance.json("status")["allocations"][0]["reason"] == told
    assert instance.job(id)["state"] == "running"
    instance.ok("start", "train", "--", "true")


def test_another_home_of_ours_and_its_lease_directory_respect_it(make_instance: Callable[..., Instance], tmp_path: Path) -> None:
    common = {"JOSTLE_LEASE_DIR": str(tmp_path / "leases"), "JOSTLE_SIM_DIR": str(tmp_path / "sim")}
    (tmp_path / "leases").mkdir(mode=0o700)
    first, second = (make_instance(name, **common) for name in ("a", "b"))
    for instance in (first, second):
        instance.up("sim:2x24")
        instance.see_cards()
    alloc(first, "train", "-g", "1")
    (id,) = second.submit({"gpus": [2, 2]})
    told = second.reason(id, "gpus")
    assert [r["code"] for r in second.call("why", id=id)["reason"]["gpus"]] == ["taken_elsewhere"], told
    first.ok("release", "train")
    assert second.end(id) == ["succeeded"]


def test_it_survives_the_engine(here: Instance) -> None:
    id = alloc(here, "train")
    here.kill_engine()
    held = [gpu["runs"] for gpu in here.json("gpus")["gpus"]]
    assert held[0] == [f"{id}.1"] and held[1:] == [[]] * 3, "nobody's are they not, without an engine either"
    here.up(None)
    program = int(here.ok("start", "train", "--", "bash", "-c", LONG))
    here.reach(program, "running")
    here.kill_engine()
    here.up(None)
    assert here.states([id, program]) == {id: "running", program: "running"}
    assert here.run("start", "train", "--", "true")[0] == 1, "what is inside is known, too"
    here.ok("release", "train")
    assert here.end(id, program) == ["succeeded", "cancelled"]
    assert json.loads(here.ok("status", "--json"))["allocations"] == []
