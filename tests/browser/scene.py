"""A host as people know it, for pictures and for tests of the look: eight cards, four other people, runs, waits, a failure.

Engine, web process, jobs and files are real. What took minutes for others is over in a second here, so the times of what has
ended are moved back in the store while no engine runs; nothing else is made up.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

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
print("epoch 31:  62%|######    | 2006/3232", end="\r" if want == "run" else "\n", flush=True)
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
while want == "run":
    time.sleep(1)
'''  # noqa: E501

SWEEP = """
name: vit-b16 lr×seed
defaults: {memory: 5GiB, share: true, workdir: %(work)s}
policy: {max_concurrent: 3, gpus: [3]}
jobs:
"""
DONE, RUNNING, JOBS_OF_SWEEP = 6, 3, 18

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
        self._sweep()
        for seed in (1, 2, 3, 4):
            self.add(f"car196 · k=3 · seed{seed}", "run", queue="1")
        self.wide = self.add("llama3-8b-sft", "run", gpus=[4, 4])
        self.add("llama3-70b-full", "run", gpus=[4, 4], memory_mib=40960)
        held = self.add("dog120 · export", "run", queue="1")
        self.instance.ok("hold", str(held))
        until(lambda: len(self.instance.runs(self.backed_off)) >= 3, "a third try")
        until(lambda: sum(row["state"] == "running" for row in self.instance.jobs().values()) >= 1 + RUNNING, "runs")
        self._move_back()
        self.add("vit-l-ddp", "run", gpus=[3, 3])

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

    def _sweep(self) -> None:
        lines = [SWEEP % {"work": self.instance.work}]
        for k in range(JOBS_OF_SWEEP):
            want = "end" if k < DONE else "run"
            name = f"vit-b16 · lr={('1e-4', '3e-4', '1e-3')[k // 6]} · s{k % 6}"
            lines.append(f"  - {{name: {name}, run: python3 train.py {want}}}\n")
        self.instance.ok("run", "-d", self.instance.file("".join(lines), "sweep.yaml"))

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
        self.instance.up(f"sim:{self.instance.root / 'scenario.yaml'}")
        self.console.open()

    def many(self, count: int) -> None:
        """So many short jobs more, of which most wait."""
        self.instance.submit(*({"name": f"grid · {k:05}", "queue": f"g{k % 8}", "commands": ["sleep 600"]} for k in range(count)))

    def close(self) -> None:
        self.console.close()
