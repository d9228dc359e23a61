"""Twenty writers hammer the uni_id file while tasks run: none is lost, doubled or misjudged, and damaged copies are kept.

What cannot be had: a word that is written without a lock and overwritten without a lock, before anybody could read it, is gone.
So the scripts here exit as they speak, and what is held against the file is that no word is ever heard that was not said.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from local_bench import Bench, mark

from jostle.core import failure
from jostle.uniid import UniIdFile, entry_of

FORK = multiprocessing.get_context("fork")
SEED = Path(__file__).parent / "seed_002"
TASKS = 16
PARTS = 120  # of a second, for which tasks run at most


def locked(path: str, n: int, stopped: Callable[[], bool]) -> None:
    file, name = UniIdFile(path), f"locked-{n}"
    while not stopped():
        file.put(name, pid=os.getpid(), state="running", retry_count=n)
        file.put(name, state="abnormal_exit", error_type="oom")
        file.remove(name)
        time.sleep(0.01)


def unlocked(path: str, n: int, stopped: Callable[[], bool]) -> None:
    """As the function of seed 002, in a process that is already there: faster, so worse."""
    while not stopped():
        try:
            with open(path) as f:
                data = json.load(f)
        except (OSError, ValueError):
            data = {}
        data[f"unlocked-{n}"] = {"pid": os.getpid(), "state": random.choice(["running", "normal_exit"]), "retry_count": 0}
        with open(path, "w") as f:
            json.dump(data, f, indent=2)
        time.sleep(random.random() * 0.04)


def verbatim(path: str, n: int, stopped: Callable[[], bool]) -> None:
    script = f'. {SEED}/functions.sh; while :; do update_uni_id_status verbatim-{n} running $$ none; done'
    env = {**os.environ, "SCRIPT_DIR": os.path.dirname(os.path.dirname(path))}
    child = os.posix_spawn("/bin/bash", ["bash", "-c", script], env, setpgroup=0)
    while not stopped():
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)  # its python, too
    os.waitpid(child, 0)


def killed(path: str, n: int, stopped: Callable[[], bool]) -> None:
    """Each of its children is killed while it writes."""
    while not stopped():
        child = os.fork()
        if child == 0:
            with open(path, "r+" if n % 2 else "w") as f:
                f.write('{"killed": {"pid": 12')
                f.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        time.sleep(0.05 + random.random() * 0.1)


def garbage(path: str, n: int, stopped: Callable[[], bool]) -> None:
    while not stopped():
        with open(path, "wb") as f:
            f.write(random.randbytes(random.randrange(2000)))
        time.sleep(0.05 + random.random() * 0.2)


CROWD = [locked] * 6 + [unlocked] * 6 + [verbatim] * 3 + [killed] * 4 + [garbage]


def hammer(path: str, how: Callable[..., None], n: int, stop: str) -> None:
    try:
        how(path, n, lambda: os.path.exists(stop))
    finally:
        os._exit(0)


def script(bench: Bench, uni_id: str, good: bool) -> str:
    """A pipeline as in seed 002 that says how its program ended, and exits so."""
    program = f"import time, random; time.sleep(random.randrange({PARTS}) / 100); raise SystemExit({0 if good else 3})"
    return f"""
echo {uni_id} >> ran
SCRIPT_DIR={bench.home}; UNI_ID={uni_id}; LOG_FILE=/dev/null
. {SEED}/functions.sh
{sys.executable} -c "{program}" &
PY_PID=$!
update_uni_id_status "$UNI_ID" running "$PY_PID" none
wait $PY_PID
EXIT_CODE=$?
. {SEED}/verdict.sh
exit $EXIT_CODE
"""


def test_a29_twenty_writers_lose_double_or_misjudge_no_task(bench: Bench) -> None:
    assert len(CROWD) == 20
    path, stop = bench.home / "script_process" / "uni_id.json", bench.home / "stop"
    path.parent.mkdir()
    path.write_text("{}")
    given = {"uni_id_file": str(path), "failures": 1, "leftovers": "wait"}
    waiting = (1000, 1)
    bench.start(waiting, "while [ ! -e go ]; do sleep 0.05; done", **given)
    crowd = [FORK.Process(target=hammer, args=(str(path), how, n, str(stop))) for n, how in enumerate(CROWD)]
    for one in crowd:
        one.start()
    try:
        for n in range(1, TASKS + 1):
            bench.start((n, 1), script(bench, mark(n, 1), n % 2 == 0), **given)
        ends = {n: bench.end((n, 1)) for n in range(1, TASKS + 1)}
    finally:
        stop.touch()
        for one in crowd:
            one.join(20)
    assert sorted((bench.home / "ran").read_text().split()) == sorted(mark(n, 1) for n in ends), "each once"
    for n, end in ends.items():
        good = n % 2 == 0
        assert failure.succeeded(end.code, end.said) == good, (n, end)
        assert end.said in ("", "normal_exit" if good else "abnormal_exit"), (n, end)
        assert end.code == (0 if good else 3), (n, end)

    # and when they are gone, what they left is kept, and the task that still runs has its entry again
    path.write_text('{"left": by the last')
    bench.until(lambda: _entry(path, mark(1000, 1)) == "running", what="the entry of the one that still runs")
    assert '{"left": by the last' in {p.read_text(errors="replace") for p in path.parent.glob("uni_id.json.damaged-*")}
    (bench.home / "go").touch()
    assert bench.end(waiting).code == 0
    assert _entry(path, mark(1000, 1)) == ""
    heard = sum(bool(end.said) for end in ends.values())
    kept = len([*path.parent.glob("uni_id.json.damaged-*")])
    print(f"{heard} of {TASKS} words were heard, {kept} damaged copies kept")


def _entry(path: Path, uni_id: str) -> str:
    try:
        entry = entry_of(json.loads(path.read_text()).get(uni_id))
    except (OSError, ValueError):
        return ""
    return entry.state if entry is not None else ""
