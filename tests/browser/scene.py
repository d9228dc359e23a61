"""A host as people know it, for pictures and for tests of the look: eight cards, four other people, runs, waits, a failure.

Engine, web process, jobs and files are real. What took an hour elsewhere is over in a second here, so while no engine runs the
times in the store are moved back, and the history is given what the cards would have shown.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

from jostle.store.history import FINE, CardPage, HistoryFile, Mean, Stay
from tests.e2e.instance import until
from tests.web.console import Console

MINUTE = 60.0
WORLD = """
gpus: {count: 8, total: 24GiB, name: NVIDIA GeForce RTX 4090}
runs: {use: 0.92, utilization: 94}
strangers:
  - {user: alice, gpu: 2, used: 19.9GiB, utilization: 38}
  - {user: dave, gpu: 2, used: 1100MiB, utilization: 2, name: jupyter}
  - {user: bob, gpu: 6, used: 23.3GiB, utilization: 97}
  - {user: carol, gpu: 7, used: 23.4GiB, utilization: 0}
"""
CARDS, HOURS = 8, 12
PEOPLE = [  # who, pid, card, from and to in minutes ago, load, MiB
    ("alice", 5000001, 2, 192, 0, 38, 20377), ("dave", 5000002, 2, 49, 0, 2, 1100), ("bob", 5000003, 6, 581, 0, 97, 23859),
    ("carol", 5000004, 7, 305, 0, 0, 23961), ("carol", 4990001, 1, 380, 55, 71, 18000), ("erin", 4990002, 2, 600, 240, 64, 15000),
    ("dave", 4990003, 5, 40, 2, 55, 9000),
]  # fmt: skip
LOST = "\nfaults: [{gpu: 6, state: lost}]"
NO_DRIVER = "\nmismatch: [{from: 0}]"
SIXTEEN = WORLD.replace("count: 8", "count: 16") + """
  - {user: erin, gpu: [9, 10], used: 16GiB, utilization: 71}
  - {user: bob, gpu: [12, 13], used: 22GiB, utilization: 99}
faults: [{gpu: 14, state: lost}]
"""
MOMENTS = (
    ("job", "submitted_at", "id"), ("job", "started_at", "id"), ("job", "ended_at", "id"), ("run", "started_at", "job"),
    ("run", "ended_at", "job"), ("event", "at", "job"),
)  # fmt: skip
CONFIG = "policy: {gpu_left: 1, max_gpu: 4}\n"

TRAIN = r'''
import os, sys, time
want = sys.argv[1]
for step in range(1940, 2003):
    print(f"epoch \033[36m31\033[0m step {step:05} loss \033[33m{0.97 - step / 3400:.4f}\033[0m lr 1e-5 acc \033[32m{step / 2500:.3f}\033[0m")
print("epoch 31:  40%|####      | 1300/3232", end="\r")
print("epoch 31:  62%|######    | 2006/3232", end="\n" if want in ("end", "fail", "odd") else "\r", flush=True)
if want == "fail" and os.environ["JOSTLE_ATTEMPT"] == "1":
    raise ConnectionError("the data server is away")
if want == "fail":
    print("UserWarning: expandable_segments is not set; out of memory is likelier", file=sys.stderr)
    class OutOfMemoryError(RuntimeError): ...
    def forward(q): raise OutOfMemoryError("CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has 23.99 GiB, 602 MiB of it free.")
    def train_one_epoch(x): return forward(x)
    train_one_epoch(1)
if want == "odd":
    raise SystemExit(1)
if want == "1e-4":
    print(f"Test Accuracy: {81 + int(sys.argv[2]) * 0.7:.2f}")
while want not in ("end", "1e-4"):
    time.sleep(1)
'''  # noqa: E501

SWEEP = """
name: vit-b16
command: python3 train.py {lr} {seed}
matrix: {lr: [1e-4, 3e-4, 1e-3], seed: [0, 1, 2, 3, 4, 5]}
job: {name: "vit-b16 · lr={lr} · s{seed}", memory: 5GiB, share: true}
policy: {max_concurrent: 3, gpus: [3]}
"""
RUNNING = 3

COMMANDS = """# queue 1: the car data set, one after the other
rm -rf {work_dir}/experiments/car
bash {work_dir}/scripts/set_hyperparameters.sh car --k 8
bash {work_dir}/scripts/run_pipeline.sh car --uni_id {uni_id}
1,20

bash {work_dir}/scripts/run_pipeline.sh car --k 5
1,20

# queue 2 runs beside queue 1
bash {work_dir}/scripts/run_pipeline.sh flower --k 15
2,12.5

2 # queue
"bash {work_dir}/scripts/run_pipeline.sh flower --k 5"
12.5 # GB of memory

3
bash {work_dir}/scripts/run_pipeline.sh bird --uni_id {uni_id}
8
"""
SHORT = "sleep 600\n1,20\n"
RULES = """# Which GPUs, how many of them, and what happens after a failure
gpu_left: 1      # left to others …
min_gpu: 2       # … but at least so many are yours,
max_gpu: 3       # and at most so many
memory_save_mode: true
retry_config:
  max_retry_before_backoff: 3
  backoff_duration: 600
"""


def workspace(root: Path) -> Path:
    """Three command files, the second with two flaws, and rules with comments."""
    made = root / "workspace"
    flawed = COMMANDS.replace("2,12.5", "2,twelve").replace("\n8\n", "\n-4\n")
    texts = {
        "command/command_gpu.txt": COMMANDS, "command/command_gpu_1.txt": flawed, "command/command_gpu_2.txt": SHORT,
        "config/gpu_manage.yaml": RULES,
    }  # fmt: skip
    for name, text in texts.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def _mean(at: int, spans: list[tuple[float, float, int, int]]) -> Mean:
    load, mib = max(((load, mib) for began, ended, load, mib in spans if began <= at < ended), default=(0, 0))
    dip = at // FINE * 7919 % 23  # looks uneven, and is the same each time
    shown = max(0, load - (dip if dip < 9 else dip % 3)) if load else 0
    return Mean(at, float(FINE), float(shown), float(mib), 35.0 + 0.4 * shown, 60.0 + 2 * shown)


class Scene:
    """A console on such a host. `fill` makes it lively."""

    def __init__(self, root: Path, world: str = WORLD) -> None:
        self.console = Console(root, gpus=None, workspace=workspace(root))
        self.instance = self.console.instance
        (self.instance.work / "train.py").write_text(TRAIN)
        self.instance.up(self.instance.scenario(world))

    def add(self, name: str, want: str, card: int | None = None, **job: Any) -> int:
        head = {"name": name} if card is None else {"name": name, "policy": {"gpus": [card]}}
        return self.instance.submit({"name": name, "commands": [f"python3 train.py {want}"], **job}, **head)[0]

    def fill(self) -> None:
        self._ended()
        self.failed = self.add("flower102 · k=15 · seed1", "fail", card=1, retry={"max": 2, "backoff_after": 3, "backoff": 600})
        self.backed_off = self.add("bird200 · k=50", "odd", gpus=[0, 0], retry={"max": 9, "backoff_after": 3, "backoff": 600})
        self.instance.end(self.failed)
        self.running = self.add("car196 · k=5 · seed0", "run", card=0, queue="1")
        self.instance.ok("run", "-d", self.instance.file(SWEEP, "sweep.yaml"))
        until(self._sweep_is_on, "the sweep has card 3")  # else four cards are free for a moment, and the wide job takes them
        for seed in (1, 2, 3, 4):
            self.add(f"car196 · k=3 · seed{seed}", "run", queue="1")
        self.wide = self.add("llama3-8b-sft", "run", gpus=[4, 4])
        self.add("llama3-70b-full", "run", gpus=[4, 4], memory_mib=40960)
        held = self.add("dog120 · export", "run", queue="1")
        self.instance.ok("hold", str(held))
        until(lambda: len(self.instance.runs(self.backed_off)) >= 3, "a third try")
        self._move_back()
        self.add("vit-l-ddp", "run", gpus=[3, 3])
        self.instance.submit({"name": "notebook", "commands": [], "gpus": [3, 3], "time_limit": 7200.0}, key="alloc", join=True)

    def _sweep_is_on(self) -> bool:
        states = [row["state"] for row in self.instance.jobs().values() if row["name"].startswith("vit-b16")]
        return states.count("succeeded") == states.count("queued") - RUNNING == 2 * RUNNING and states.count("running") == RUNNING

    def _ended(self) -> None:
        """What is over since this morning: name, card, and when: minutes ago, minutes it took."""
        past = [("pets37 · k=8 · s0", 0, 112, 40), ("car196 · k=8", 0, 70, 5), ("dog120 · eval", 4, 62, 50),
                ("pets37 · k=8 · s1", 5, 100, 30), ("dog120 · s2", 4, 118, 9)]  # fmt: skip
        self.past = {self.add(name, "end", card=card): (ago, took) for name, card, ago, took in past}
        self.instance.end(*self.past)
        given_up = self.add("pets37 · k=8 · s3", "run", card=5)
        self.instance.reach(given_up, "running")
        self.instance.ok("cancel", str(given_up))
        self.instance.end(given_up)
        self.past[given_up] = (64, 20)

    def _move_back(self) -> None:
        self.instance.ok("down")
        (self.instance.home / "config.yaml").write_text(CONFIG)
        jobs = self.instance.jobs().values()
        self.past[self.failed] = (38, 14)
        running = sorted(row["id"] for row in jobs if row["state"] == "running")
        done = sorted(row["id"] for row in jobs if row["state"] == "succeeded" and row["id"] not in self.past)
        self.past |= {id: (63 - 9 * k, 63 - 9 * k) for k, id in enumerate(running)}
        self.past |= {id: (110 - 7 * k, 12) for k, id in enumerate(done)}
        now = time.time()
        with contextlib.closing(sqlite3.connect(self.instance.home / "jostle.db")) as db, db:
            for job, (ago, took) in self.past.items():
                began, ended = db.execute("SELECT started_at, coalesce(ended_at, ?) FROM job WHERE id = ?", (now, job)).fetchone()
                told = {"job": job, "to": now - ago * MINUTE, "began": began, "slow": took * MINUTE / (ended - began)}
                for table, column, key in MOMENTS:
                    db.execute(f"UPDATE {table} SET {column} = :to + ({column} - :began) * :slow WHERE {key} = :job", told)
        self._history(now)
        self.instance.up(f"sim:{self.instance.root / 'scenario.yaml'}")
        self.console.open()

    def _history(self, now: float) -> None:
        """What the cards showed in the last hours, as far as the runs and people of this scene were on them."""
        spans: dict[int, list[tuple[float, float, int, int]]] = {card: [] for card in range(CARDS)}
        others: dict[int, list[Stay]] = {card: [] for card in range(CARDS)}
        for job, (ago, took) in self.past.items():
            for card in self.instance.job(job)["gpus"]:
                spans[card].append((now - ago * MINUTE, now - (ago - took) * MINUTE, 94, 22_000))
        for who, pid, card, ago, until_ago, load, mib in PEOPLE:
            began, seen = now - ago * MINUTE, now - until_ago * MINUTE
            spans[card].append((began, seen if load else now - 42 * MINUTE, load or 88, mib))
            spans[card].append((began, seen, 0, mib))
            others[card].append(Stay(began, who, pid, seen))
        last = int(now) // FINE * FINE
        file = HistoryFile(str(self.instance.home))
        for card in range(CARDS):
            means = [_mean(at, spans[card]) for at in range(last - HOURS * 3600, last, FINE)]
            file.write([CardPage(f"GPU-sim-{card:04}", card, "NVIDIA GeForce RTX 4090", 24576, means, others[card])])
        file.close()

    def many(self, count: int) -> None:
        """So many short jobs more, of which most wait."""
        self.instance.submit(*({"name": f"grid · {k:05}", "queue": f"g{k % 8}", "commands": ["sleep 600"]} for k in range(count)))

    def close(self) -> None:
        try:
            for scheduler in self.console.get("/api/scheduler/running")["schedulers"]:
                self.console.post(f"/api/scheduler/stop/{scheduler['pid']}")  # else it has an engine started for itself
        finally:
            self.console.close()
